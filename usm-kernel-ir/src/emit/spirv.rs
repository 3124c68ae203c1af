//! SPIR-V for kernels: 64-bit pointers, the memory model of OpenCL.
//!
//! Variables are memory of the function, as an unoptimising compiler has them; drivers make
//! registers of them.

use alloc::vec;
use alloc::vec::Vec;

use rspirv::binary::Assemble as _;
use rspirv::dr::{Builder, InsertPoint, Instruction, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel, FunctionControl,
    MemoryAccess, MemoryModel, Op, StorageClass, Word,
};

use super::function;
use crate::kernel::{Atomic, Expr, ExprKind, Kernel, Parameter, Query, Space, Stmt, StmtKind, VarId};
use crate::lower::{By, lower};
use crate::operator::{Binary, Math, Unary};
use crate::scalar::{Literal, Scalar};

/// Scopes and memory semantics, as the instructions take them.
const WORKGROUP: u32 = 2;
const DEVICE: u32 = 1;
const RELAXED: u32 = 0;
const SEQUENTIAL: u32 = 0x10;
const ACQUIRE_RELEASE: u32 = 0x8;
const LOCAL_MEMORY: u32 = 0x100;
const GLOBAL_MEMORY: u32 = 0x200;

/// The kernel as the bytes of a SPIR-V module.
#[must_use]
pub fn spirv(kernel: &Kernel) -> Vec<u8> {
    spirv_module(core::slice::from_ref(kernel))
}

/// Kernels of different names as the bytes of one SPIR-V module: a driver takes most of its time
/// for a module, whatever is in it.
#[must_use]
pub fn spirv_module(kernels: &[Kernel]) -> Vec<u8> {
    let lowered: Vec<_> = kernels.iter().map(|kernel| lower(kernel, By::All)).collect();
    let mut builder = Builder::new();
    builder.set_version(1, 0);
    let extended = {
        for capability in [Capability::Addresses, Capability::Linkage, Capability::Kernel, Capability::Int64]
        {
            builder.capability(capability);
        }
        let uses = |ty: Scalar| lowered.iter().any(|kernel| uses(kernel, ty));
        if uses(Scalar::I16) || uses(Scalar::U16) {
            builder.capability(Capability::Int16);
        }
        builder.capability(Capability::Int8);
        if uses(Scalar::F64) {
            builder.capability(Capability::Float64);
        }
        if lowered.iter().any(|kernel| has_wide_atomics(kernel)) {
            builder.capability(Capability::Int64Atomics);
        }
        builder.ext_inst_import("OpenCL.std")
    };
    builder.memory_model(AddressingModel::Physical64, MemoryModel::OpenCL);
    let mut built_ins = Vec::new();
    for kernel in &lowered {
        let mut writer = Writer {
            kernel,
            builder,
            extended,
            built_ins,
            arrays: vec![0; kernel.arrays.len()],
            values: vec![0; kernel.values.len()],
            lengths: vec![0; kernel.arrays.len()],
            variables: Vec::new(),
            block: 0,
            open: true,
            loops: Vec::new(),
        };
        writer.function();
        Writer { builder, built_ins, .. } = writer;
    }
    builder.module().assemble().into_iter().flat_map(u32::to_le_bytes).collect()
}

fn has_wide_atomics(kernel: &Kernel) -> bool {
    let mut wide = false;
    kernel.for_each(
        &mut |stmt| {
            if let StmtKind::Atomic(_, array, ..) | StmtKind::CompareExchange(array, ..) = &stmt.kind {
                wide |= kernel.array(*array).element.bits() == 64;
            }
        },
        &mut |_| (),
    );
    wide
}

fn uses(kernel: &Kernel, ty: Scalar) -> bool {
    let mut found = kernel.arrays.iter().any(|array| array.element == ty)
        || kernel.values.iter().any(|value| value.ty == ty)
        || kernel.variables.iter().any(|variable| variable.ty == ty);
    kernel.for_each(&mut |_| (), &mut |expr| found |= expr.ty == ty);
    found
}

struct Writer<'k> {
    kernel: &'k Kernel,
    builder: Builder,
    extended: Word,
    built_ins: Vec<(BuiltIn, Word)>,
    arrays: Vec<Word>,
    values: Vec<Word>,
    lengths: Vec<Word>,
    variables: Vec<Word>,
    /// Label of the block that is written.
    block: Word,
    /// Whether it has no end yet.
    open: bool,
    /// Where `continue` and `break` go.
    loops: Vec<(Word, Word)>,
}

impl Writer<'_> {
    fn ty(&mut self, ty: Scalar) -> Word {
        match ty {
            Scalar::Bool => self.builder.type_bool(),
            Scalar::F32 => self.builder.type_float(32, None),
            Scalar::F64 => self.builder.type_float(64, None),
            other => self.builder.type_int(other.bits(), 0),
        }
    }

    /// The type in memory.
    fn stored(&mut self, ty: Scalar) -> Word {
        self.ty(if ty == Scalar::Bool { Scalar::U8 } else { ty })
    }

    fn pointer(&mut self, class: StorageClass, to: Word) -> Word {
        self.builder.type_pointer(None, class, to)
    }

    fn function(&mut self) {
        let kernel = self.kernel;
        let mut types = Vec::new();
        for parameter in &kernel.parameters {
            types.push(match parameter {
                Parameter::Array(id) => {
                    let array = kernel.array(*id);
                    let class = if matches!(array.space, Space::Constant(_)) {
                        StorageClass::UniformConstant
                    } else {
                        StorageClass::CrossWorkgroup
                    };
                    let element = self.stored(array.element);
                    self.pointer(class, element)
                }
                Parameter::Value(id) => self.stored(kernel.value(*id).ty),
            });
        }
        let lengths = kernel.lengths();
        let word = self.ty(Scalar::U64);
        types.extend(lengths.iter().map(|_| word));
        for array in &kernel.arrays {
            if matches!(array.space, Space::Local(_)) {
                let element = self.stored(array.element);
                types.push(self.pointer(StorageClass::Workgroup, element));
            }
        }
        self.declare_built_ins();
        let void = self.builder.type_void();
        let function_type = self.builder.type_function(void, types.iter().copied());
        let started = self.builder.begin_function(void, None, FunctionControl::NONE, function_type);
        let id = started.expect("no function is open");
        let mut parameters = types.into_iter().map(|ty| {
            let parameter = self.builder.function_parameter(ty);
            parameter.expect("the function is open")
        });
        for parameter in &kernel.parameters {
            let word = parameters.next().unwrap_or(0);
            match parameter {
                Parameter::Array(id) => self.arrays[id.0 as usize] = word,
                Parameter::Value(id) => self.values[id.0 as usize] = word,
            }
        }
        for array in &lengths {
            self.lengths[array.0 as usize] = parameters.next().unwrap_or(0);
        }
        let locals =
            kernel.arrays.iter().enumerate().filter(|(_, array)| matches!(array.space, Space::Local(_)));
        for (index, _) in locals {
            self.arrays[index] = parameters.next().unwrap_or(0);
        }
        drop(parameters);
        self.begin(None);
        for variable in &kernel.variables {
            let ty = self.stored(variable.ty);
            let pointer = self.pointer(StorageClass::Function, ty);
            self.variables.push(self.builder.variable(pointer, None, StorageClass::Function, None));
        }
        for (index, array) in kernel.arrays.iter().enumerate() {
            if let Space::Private(len) = array.space {
                let element = self.stored(array.element);
                let len = self.constant(Literal::integer(Scalar::U64, len.max(1)));
                let ty = self.builder.type_array(element, len);
                let pointer = self.pointer(StorageClass::Function, ty);
                self.arrays[index] = self.builder.variable(pointer, None, StorageClass::Function, None);
            }
        }
        self.stmts(&kernel.body);
        if self.open {
            self.builder.ret().expect("a block is open");
        }
        self.builder.end_function().expect("the function is open");
        let interface: Vec<Word> = self.built_ins.iter().map(|(_, word)| *word).collect();
        self.builder.entry_point(ExecutionModel::Kernel, id, function(kernel), interface);
        if let Some(group) = kernel.group.as_ref().filter(|group| !group.contains(&0)) {
            let mut sizes: Vec<u32> = group.iter().rev().map(|size| *size as u32).collect();
            sizes.resize(3, 1);
            self.builder.execution_mode(id, ExecutionMode::LocalSize, sizes);
        }
    }

    fn declare_built_ins(&mut self) {
        let mut asked = Vec::new();
        let mut note = |expr: &Expr| {
            if let ExprKind::Query(query, _) = expr.kind {
                let built_in = built_in(query);
                if !asked.contains(&built_in) {
                    asked.push(built_in);
                }
            }
        };
        self.kernel.for_each(&mut |_| (), &mut note);
        for array in &self.kernel.arrays {
            if let Space::Local(len) = &array.space {
                len.for_each(&mut note);
            }
        }
        let word = self.ty(Scalar::U64);
        let vector = self.builder.type_vector(word, 3);
        let pointer = self.pointer(StorageClass::Input, vector);
        let is_new = |built_in: &BuiltIn| !self.built_ins.iter().any(|(known, _)| known == built_in);
        asked.retain(is_new);
        for built_in in asked {
            let variable = self.builder.variable(pointer, None, StorageClass::Input, None);
            self.builder.decorate(variable, Decoration::BuiltIn, [Operand::BuiltIn(built_in)]);
            self.builder.decorate(variable, Decoration::Constant, []);
            self.built_ins.push((built_in, variable));
        }
    }

    fn begin(&mut self, label: Option<Word>) {
        self.block = self.builder.begin_block(label).expect("a function is open and no block is");
        self.open = true;
    }

    fn jump(&mut self, to: Word) {
        if self.open {
            self.builder.branch(to).expect("a block is open");
            self.open = false;
        }
    }

    fn fork(&mut self, condition: Word, yes: Word, no: Word) {
        self.builder.branch_conditional(condition, yes, no, []).expect("a block is open");
        self.open = false;
    }

    fn op(&mut self, op: Op, ty: Word, operands: &[Word]) -> Word {
        let id = self.builder.id();
        let operands = operands.iter().map(|operand| Operand::IdRef(*operand)).collect();
        let instruction = Instruction::new(op, Some(ty), Some(id), operands);
        self.builder.insert_into_block(InsertPoint::End, instruction).expect("a block is open");
        id
    }

    fn constant(&mut self, literal: Literal) -> Word {
        let ty = self.ty(literal.ty);
        match literal.ty {
            Scalar::Bool if literal.bits != 0 => self.builder.constant_true(ty),
            Scalar::Bool => self.builder.constant_false(ty),
            other if other.bits() == 64 => self.builder.constant_bit64(ty, literal.bits),
            // The high bits of a narrow integer are its sign, or zeros as it is declared without
            // one.
            Scalar::I8 => self.builder.constant_bit32(ty, u32::from(literal.bits as u8)),
            Scalar::I16 => self.builder.constant_bit32(ty, u32::from(literal.bits as u16)),
            _ => self.builder.constant_bit32(ty, literal.bits as u32),
        }
    }

    fn number(&mut self, ty: Scalar, value: u64) -> Word {
        self.constant(Literal::integer(ty, value))
    }

    fn load(&mut self, pointer: Word, ty: Scalar) -> Word {
        let stored = self.stored(ty);
        let aligned = [Operand::LiteralBit32(ty.bytes() as u32)];
        let loaded = self.builder.load(stored, None, pointer, Some(MemoryAccess::ALIGNED), aligned);
        let loaded = loaded.expect("a block is open");
        if ty != Scalar::Bool {
            return loaded;
        }
        let (bool, zero) = (self.ty(Scalar::Bool), self.number(Scalar::U8, 0));
        self.op(Op::INotEqual, bool, &[loaded, zero])
    }

    fn store(&mut self, pointer: Word, ty: Scalar, value: Word) {
        let value = if ty == Scalar::Bool {
            let (byte, one, zero) =
                (self.ty(Scalar::U8), self.number(Scalar::U8, 1), self.number(Scalar::U8, 0));
            self.op(Op::Select, byte, &[value, one, zero])
        } else {
            value
        };
        let aligned = [Operand::LiteralBit32(ty.bytes() as u32)];
        self.builder.store(pointer, value, Some(MemoryAccess::ALIGNED), aligned).expect("a block is open");
    }

    fn element(&mut self, array: crate::ArrayId, index: Word) -> Word {
        let found = self.kernel.array(array);
        let (base, element) = (self.arrays[array.0 as usize], self.stored(found.element));
        let class = match found.space {
            Space::Constant(_) => StorageClass::UniformConstant,
            Space::Local(_) => StorageClass::Workgroup,
            Space::Private(_) => StorageClass::Function,
            _ => StorageClass::CrossWorkgroup,
        };
        let pointer = self.pointer(class, element);
        let address = if class == StorageClass::Function {
            self.builder.in_bounds_access_chain(pointer, None, base, [index])
        } else {
            self.builder.in_bounds_ptr_access_chain(pointer, None, base, index, [])
        };
        address.expect("a block is open")
    }

    fn variable(&mut self, variable: VarId) -> (Word, Scalar) {
        (self.variables[variable.0 as usize], self.kernel.variable(variable).ty)
    }

    fn set(&mut self, variable: VarId, value: Word) {
        let (pointer, ty) = self.variable(variable);
        self.store(pointer, ty, value);
    }

    fn stmts(&mut self, body: &[Stmt]) {
        for stmt in body {
            // Nothing comes behind a way out.
            if !self.open {
                return;
            }
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Set(variable, value) => {
                let value = self.expr(value);
                self.set(*variable, value);
            }
            StmtKind::Store(array, index, value) => {
                let (index, value) = (self.expr(index), self.expr(value));
                let pointer = self.element(*array, index);
                self.store(pointer, self.kernel.array(*array).element, value);
            }
            StmtKind::Atomic(operation, array, index, value, old)
                if self.kernel.array(*array).element.is_float() && *operation != Atomic::Exchange =>
            {
                self.float_atomic(*operation, *array, [index, value], *old);
            }
            StmtKind::CompareExchange(array, index, [expected, new], old) => {
                let (index, expected, new) = (self.expr(index), self.expr(expected), self.expr(new));
                let ty = self.kernel.array(*array).element;
                let pointer = self.word(*array, index);
                let (expected, new) = (self.word_of(ty, expected), self.word_of(ty, new));
                let seen = self.cas(ty, pointer, expected, new);
                if let Some(old) = old {
                    let seen = self.number_of(ty, seen);
                    self.set(*old, seen);
                }
            }
            // Lowered.
            StmtKind::Collect(..) | StmtKind::Broadcast(..) => {}
            StmtKind::Fence { local, global } => {
                let semantics = ACQUIRE_RELEASE
                    | if *local { LOCAL_MEMORY } else { 0 }
                    | if *global { GLOBAL_MEMORY } else { 0 };
                let scope = self.number(Scalar::U32, u64::from(DEVICE));
                let semantics = self.number(Scalar::U32, u64::from(semantics));
                self.builder.memory_barrier(scope, semantics).expect("a block is open");
            }
            StmtKind::Atomic(operation, array, index, value, old) => {
                let (index, value) = (self.expr(index), self.expr(value));
                let (pointer, element) = (self.element(*array, index), self.kernel.array(*array).element);
                let (ty, scope) = (self.ty(element), self.number(Scalar::U32, u64::from(DEVICE)));
                let semantics = self.number(Scalar::U32, u64::from(RELAXED));
                let op = match (operation, element.is_signed()) {
                    (Atomic::Add, _) => Op::AtomicIAdd,
                    (Atomic::Sub, _) => Op::AtomicISub,
                    (Atomic::Min, true) => Op::AtomicSMin,
                    (Atomic::Min, false) => Op::AtomicUMin,
                    (Atomic::Max, true) => Op::AtomicSMax,
                    (Atomic::Max, false) => Op::AtomicUMax,
                    (Atomic::And, _) => Op::AtomicAnd,
                    (Atomic::Or, _) => Op::AtomicOr,
                    (Atomic::Xor, _) => Op::AtomicXor,
                    (Atomic::Exchange, _) => Op::AtomicExchange,
                };
                let before = self.op(op, ty, &[pointer, scope, semantics, value]);
                if let Some(old) = old {
                    self.set(*old, before);
                }
            }
            StmtKind::If(condition, then, other) => {
                let condition = self.expr(condition);
                let (yes, no, end) = (self.builder.id(), self.builder.id(), self.builder.id());
                self.fork(condition, yes, no);
                for (label, body) in [(yes, then), (no, other)] {
                    self.begin(Some(label));
                    self.stmts(body);
                    self.jump(end);
                }
                self.begin(Some(end));
            }
            StmtKind::While(condition, body) => {
                let (head, inside, end) = (self.builder.id(), self.builder.id(), self.builder.id());
                self.jump(head);
                self.begin(Some(head));
                let condition = self.expr(condition);
                self.fork(condition, inside, end);
                self.begin(Some(inside));
                self.loops.push((head, end));
                self.stmts(body);
                self.loops.pop();
                self.jump(head);
                self.begin(Some(end));
            }
            StmtKind::For(variable, start, end, step, body) => {
                self.counting(*variable, [start, end, step], body)
            }
            StmtKind::Break => {
                if let Some((_, end)) = self.loops.last().copied() {
                    self.jump(end);
                }
            }
            StmtKind::Continue => {
                if let Some((head, _)) = self.loops.last().copied() {
                    self.jump(head);
                }
            }
            StmtKind::Return => {
                self.builder.ret().expect("a block is open");
                self.open = false;
            }
            StmtKind::Barrier { local, global } => {
                let semantics = SEQUENTIAL
                    | if *local { LOCAL_MEMORY } else { 0 }
                    | if *global { GLOBAL_MEMORY } else { 0 };
                let group = self.number(Scalar::U32, u64::from(WORKGROUP));
                let semantics = self.number(Scalar::U32, u64::from(semantics));
                self.builder.control_barrier(group, group, semantics).expect("a block is open");
            }
        }
    }

    /// The address of an element, as that of an integer of its width.
    fn word(&mut self, array: crate::ArrayId, index: Word) -> Word {
        let pointer = self.element(array, index);
        let found = self.kernel.array(array);
        if !found.element.is_float() {
            return pointer;
        }
        let is_local = matches!(found.space, Space::Local(_));
        let class = if is_local { StorageClass::Workgroup } else { StorageClass::CrossWorkgroup };
        let word = self.ty(found.element.unsigned());
        let ty = self.pointer(class, word);
        self.op(Op::Bitcast, ty, &[pointer])
    }

    fn word_of(&mut self, ty: Scalar, value: Word) -> Word {
        let word = self.ty(ty.unsigned());
        if ty.is_float() { self.op(Op::Bitcast, word, &[value]) } else { value }
    }

    fn number_of(&mut self, ty: Scalar, value: Word) -> Word {
        let float = self.ty(ty);
        if ty.is_float() { self.op(Op::Bitcast, float, &[value]) } else { value }
    }

    /// What was there; the new bits are there now where it was what is expected.
    fn cas(&mut self, ty: Scalar, pointer: Word, expected: Word, new: Word) -> Word {
        let word = self.ty(ty.unsigned());
        let scope = self.number(Scalar::U32, u64::from(DEVICE));
        let relaxed = self.number(Scalar::U32, u64::from(RELAXED));
        let id = self.builder.id();
        let operands = [
            Operand::IdRef(pointer),
            Operand::IdScope(scope),
            Operand::IdMemorySemantics(relaxed),
            Operand::IdMemorySemantics(relaxed),
            Operand::IdRef(new),
            Operand::IdRef(expected),
        ];
        let instruction =
            Instruction::new(Op::AtomicCompareExchange, Some(word), Some(id), operands.to_vec());
        self.builder.insert_into_block(InsertPoint::End, instruction).expect("a block is open");
        id
    }

    /// Tried until nobody was in between.
    fn float_atomic(
        &mut self,
        operation: Atomic,
        array: crate::ArrayId,
        [index, value]: [&Expr; 2],
        old: Option<VarId>,
    ) {
        let (index, by) = (self.expr(index), self.expr(value));
        let ty = self.kernel.array(array).element;
        let (float, word, bool) = (self.ty(ty), self.ty(ty.unsigned()), self.ty(Scalar::Bool));
        let pointer = self.word(array, index);
        let first = self.load(pointer, ty.unsigned());
        let (entry, head, end) = (self.block, self.builder.id(), self.builder.id());
        let seen = self.builder.id();
        self.jump(head);
        self.begin(Some(head));
        let expected = self.builder.phi(word, None, [(first, entry), (seen, head)]).expect("a block is open");
        let before = self.op(Op::Bitcast, float, &[expected]);
        let new = match operation {
            Atomic::Sub => self.op(Op::FSub, float, &[before, by]),
            Atomic::Min => self.call(28, float, &[before, by]),
            Atomic::Max => self.call(27, float, &[before, by]),
            _ => self.op(Op::FAdd, float, &[before, by]),
        };
        let new = self.op(Op::Bitcast, word, &[new]);
        let found = self.cas(ty, pointer, expected, new);
        // The value that the next round begins with, under the name that the head knows.
        let same = Instruction::new(Op::CopyObject, Some(word), Some(seen), vec![Operand::IdRef(found)]);
        self.builder.insert_into_block(InsertPoint::End, same).expect("a block is open");
        let done = self.op(Op::IEqual, bool, &[found, expected]);
        self.fork(done, end, head);
        self.begin(Some(end));
        if let Some(old) = old {
            let old_value = self.number_of(ty, found);
            self.set(old, old_value);
        }
    }

    fn counting(&mut self, variable: VarId, [start, end, step]: [&Expr; 3], body: &[Stmt]) {
        let (pointer, scalar) = self.variable(variable);
        let (start, last, step) = (self.expr(start), self.expr(end), self.expr(step));
        let (ty, bool) = (self.ty(scalar), self.ty(Scalar::Bool));
        let (zero, one) = (self.number(scalar, 0), self.number(scalar, 1));
        let is_zero = self.op(Op::IEqual, bool, &[step, zero]);
        let step = self.op(Op::Select, ty, &[is_zero, one, step]);
        self.store(pointer, scalar, start);
        let (head, inside, next) = (self.builder.id(), self.builder.id(), self.builder.id());
        let (further, after) = (self.builder.id(), self.builder.id());
        self.jump(head);
        self.begin(Some(head));
        let here = self.load(pointer, scalar);
        let less = if scalar.is_signed() { Op::SLessThan } else { Op::ULessThan };
        let condition = self.op(less, bool, &[here, last]);
        self.fork(condition, inside, after);
        self.begin(Some(inside));
        self.loops.push((next, after));
        self.stmts(body);
        self.loops.pop();
        self.jump(next);
        // What is left has no sign: an overflow ends the loop.
        self.begin(Some(next));
        let here = self.load(pointer, scalar);
        let left = self.op(Op::ISub, ty, &[last, here]);
        let more = self.op(Op::UGreaterThan, bool, &[left, step]);
        self.fork(more, further, after);
        self.begin(Some(further));
        let here = self.op(Op::IAdd, ty, &[here, step]);
        self.store(pointer, scalar, here);
        self.jump(head);
        self.begin(Some(after));
    }

    fn expr(&mut self, expr: &Expr) -> Word {
        let ty = self.ty(expr.ty);
        match &expr.kind {
            ExprKind::Literal(literal) => self.constant(*literal),
            ExprKind::Variable(variable) => {
                let (pointer, scalar) = self.variable(*variable);
                self.load(pointer, scalar)
            }
            ExprKind::Value(value) => {
                let word = self.values[value.0 as usize];
                if expr.ty != Scalar::Bool {
                    return word;
                }
                let zero = self.number(Scalar::U8, 0);
                self.op(Op::INotEqual, ty, &[word, zero])
            }
            ExprKind::Len(array) => match &self.kernel.array(*array).space {
                Space::Constant(len) | Space::Private(len) => self.number(Scalar::U64, *len),
                Space::Local(len) => self.expr(&len.clone()),
                _ => self.lengths[array.0 as usize],
            },
            ExprKind::Query(query, dimension) => {
                let built_in = built_in(*query);
                let variable =
                    self.built_ins.iter().find(|(found, _)| *found == built_in).map_or(0, |(_, word)| *word);
                let vector = self.builder.type_vector(ty, 3);
                let aligned = [Operand::LiteralBit32(32)];
                let loaded = self.builder.load(vector, None, variable, Some(MemoryAccess::ALIGNED), aligned);
                // The last dimension is the fastest one, which is the first of the vector.
                let axis = u32::from(self.kernel.dimensions - 1 - dimension);
                let loaded = loaded.expect("a block is open");
                self.builder.composite_extract(ty, None, loaded, [axis]).expect("a block is open")
            }
            ExprKind::Load(array, index) => {
                let index = self.expr(index);
                let pointer = self.element(*array, index);
                self.load(pointer, expr.ty)
            }
            ExprKind::Unary(operator, operand) => {
                let value = self.expr(operand);
                if (*operator, expr.ty) == (Unary::Not, Scalar::Bool) {
                    // Intel's compiler for GPUs ends the process over `OpLogicalNot`.
                    let [no, yes] = [false, true].map(|value| self.constant(Literal::bool(value)));
                    return self.op(Op::Select, ty, &[value, no, yes]);
                }
                let op = match (operator, expr.ty) {
                    (Unary::Not, _) => Op::Not,
                    (Unary::Neg, ty) if ty.is_float() => Op::FNegate,
                    (Unary::Neg, _) => Op::SNegate,
                };
                self.op(op, ty, &[value])
            }
            ExprKind::Binary(Binary::AndThen, left, right) => {
                let no = Expr::literal(Literal::bool(false), right.place);
                self.select(left, right, &no)
            }
            ExprKind::Binary(Binary::OrElse, left, right) => {
                let yes = Expr::literal(Literal::bool(true), right.place);
                self.select(left, &yes, right)
            }
            ExprKind::Binary(operator, left, right) => {
                let (one, two) = (self.expr(left), self.expr(right));
                self.binary(*operator, (left.ty, one), (right.ty, two), ty)
            }
            ExprKind::Cast(operand) => {
                let value = self.expr(operand);
                self.cast(operand.ty, expr.ty, value)
            }
            ExprKind::Select(condition, one, two) => self.select(condition, one, two),
            ExprKind::Math(function, arguments) => {
                let number = match function {
                    Math::Acos => 0,
                    Math::Acosh => 1,
                    Math::Asin => 3,
                    Math::Asinh => 4,
                    Math::Atan => 6,
                    Math::Atan2 => 7,
                    Math::Atanh => 8,
                    Math::Cbrt => 11,
                    Math::Ceil => 12,
                    Math::CopySign => 13,
                    Math::Cos => 14,
                    Math::Cosh => 15,
                    Math::Exp => 19,
                    Math::Exp2 => 20,
                    Math::ExpM1 => 22,
                    Math::Abs => 23,
                    Math::Floor => 25,
                    Math::MulAdd => 26,
                    Math::Hypot => 32,
                    Math::Ln => 37,
                    Math::Log2 => 38,
                    Math::Log10 => 39,
                    Math::Ln1p => 40,
                    Math::Pow => 48,
                    Math::RoundEven => 53,
                    Math::Round => 55,
                    Math::Sin => 57,
                    Math::Sinh => 59,
                    Math::Sqrt => 61,
                    Math::Tan => 62,
                    Math::Tanh => 63,
                    Math::Trunc => 66,
                };
                let arguments: Vec<Word> = arguments.iter().map(|argument| self.expr(argument)).collect();
                self.call(number, ty, &arguments)
            }
        }
    }

    /// An instruction of OpenCL's set.
    fn call(&mut self, number: u32, ty: Word, arguments: &[Word]) -> Word {
        let arguments = arguments.iter().map(|argument| Operand::IdRef(*argument)).collect::<Vec<_>>();
        self.builder.ext_inst(ty, None, self.extended, number, arguments).expect("a block is open")
    }

    /// One of two values, of which only that one is computed.
    fn select(&mut self, condition: &Expr, one: &Expr, two: &Expr) -> Word {
        let (chosen, ty) = (self.expr(condition), self.ty(one.ty));
        let (yes, no, end) = (self.builder.id(), self.builder.id(), self.builder.id());
        self.fork(chosen, yes, no);
        let mut ways = Vec::new();
        for (label, value) in [(yes, one), (no, two)] {
            self.begin(Some(label));
            let value = self.expr(value);
            ways.push((value, self.block));
            self.jump(end);
        }
        self.begin(Some(end));
        self.builder.phi(ty, None, ways).expect("a block is open")
    }

    fn binary(
        &mut self,
        operator: Binary,
        (scalar, one): (Scalar, Word),
        (shift, two): (Scalar, Word),
        ty: Word,
    ) -> Word {
        let (float, signed) = (scalar.is_float(), scalar.is_signed());
        let bool = self.ty(Scalar::Bool);
        let of = |for_float: Op, for_signed: Op, for_unsigned: Op| {
            if float {
                for_float
            } else if signed {
                for_signed
            } else {
                for_unsigned
            }
        };
        let op = match operator {
            Binary::Add => of(Op::FAdd, Op::IAdd, Op::IAdd),
            Binary::Sub => of(Op::FSub, Op::ISub, Op::ISub),
            Binary::Mul => of(Op::FMul, Op::IMul, Op::IMul),
            Binary::Div if float => Op::FDiv,
            Binary::Rem if float => Op::FRem,
            Binary::Div | Binary::Rem => {
                let (zero, by) = (self.number(scalar, 0), self.number(scalar, 1));
                let mut wrong = self.op(Op::IEqual, bool, &[two, zero]);
                if signed {
                    let (minus, least) =
                        (self.number(scalar, u64::MAX), self.number(scalar, scalar.min() as u64));
                    let is_minus = self.op(Op::IEqual, bool, &[two, minus]);
                    let is_least = self.op(Op::IEqual, bool, &[one, least]);
                    let overflows = self.op(Op::LogicalAnd, bool, &[is_minus, is_least]);
                    wrong = self.op(Op::LogicalOr, bool, &[wrong, overflows]);
                }
                let two = self.op(Op::Select, ty, &[wrong, by, two]);
                let op = match operator {
                    Binary::Div => of(Op::FDiv, Op::SDiv, Op::UDiv),
                    _ => of(Op::FRem, Op::SRem, Op::UMod),
                };
                return self.op(op, ty, &[one, two]);
            }
            Binary::And if scalar == Scalar::Bool => Op::LogicalAnd,
            Binary::Or if scalar == Scalar::Bool => Op::LogicalOr,
            Binary::Xor if scalar == Scalar::Bool => Op::LogicalNotEqual,
            Binary::And => Op::BitwiseAnd,
            Binary::Or => Op::BitwiseOr,
            Binary::Xor => Op::BitwiseXor,
            Binary::Shl | Binary::Shr => {
                let by = self.cast(shift, scalar, two);
                let mask = self.number(scalar, u64::from(scalar.bits() - 1));
                let by = self.op(Op::BitwiseAnd, ty, &[by, mask]);
                let op = match operator {
                    Binary::Shl => Op::ShiftLeftLogical,
                    _ => of(Op::ShiftRightLogical, Op::ShiftRightArithmetic, Op::ShiftRightLogical),
                };
                return self.op(op, ty, &[one, by]);
            }
            Binary::Min | Binary::Max => {
                // fmin 28, fmax 27; s_min 158, u_min 159, s_max 156, u_max 157.
                let number = match (operator, float, signed) {
                    (Binary::Min, true, _) => 28,
                    (Binary::Max, true, _) => 27,
                    (Binary::Min, _, true) => 158,
                    (Binary::Min, ..) => 159,
                    (_, _, true) => 156,
                    _ => 157,
                };
                return self.call(number, ty, &[one, two]);
            }
            Binary::Eq if scalar == Scalar::Bool => Op::LogicalEqual,
            Binary::Ne if scalar == Scalar::Bool => Op::LogicalNotEqual,
            Binary::Eq => of(Op::FOrdEqual, Op::IEqual, Op::IEqual),
            Binary::Ne => of(Op::FUnordNotEqual, Op::INotEqual, Op::INotEqual),
            Binary::Lt => of(Op::FOrdLessThan, Op::SLessThan, Op::ULessThan),
            Binary::Le => of(Op::FOrdLessThanEqual, Op::SLessThanEqual, Op::ULessThanEqual),
            Binary::Gt => of(Op::FOrdGreaterThan, Op::SGreaterThan, Op::UGreaterThan),
            Binary::Ge => of(Op::FOrdGreaterThanEqual, Op::SGreaterThanEqual, Op::UGreaterThanEqual),
            Binary::AndThen => Op::LogicalAnd,
            Binary::OrElse => Op::LogicalOr,
        };
        let ty = if operator.compares() { bool } else { ty };
        self.op(op, ty, &[one, two])
    }

    fn cast(&mut self, from: Scalar, to: Scalar, value: Word) -> Word {
        let ty = self.ty(to);
        if from == to {
            return value;
        }
        if from == Scalar::Bool {
            let (one, zero) = (self.number(to, 1), self.number(to, 0));
            return self.op(Op::Select, ty, &[value, one, zero]);
        }
        let op = match (from.is_float(), to.is_float()) {
            (true, true) => Op::FConvert,
            (false, true) if from.is_signed() => Op::ConvertSToF,
            (false, true) => Op::ConvertUToF,
            (true, false) => return self.saturate(from, to, value),
            // The same bits, as integers of this language have no sign.
            (false, false) if from.bits() == to.bits() => return value,
            (false, false) if from.is_signed() => Op::SConvert,
            (false, false) => Op::UConvert,
        };
        self.op(op, ty, &[value])
    }

    /// From a floating point number, with the nearest integer for what is too large, and 0 for a
    /// NaN.
    fn saturate(&mut self, from: Scalar, to: Scalar, value: Word) -> Word {
        let (ty, bool) = (self.ty(to), self.ty(Scalar::Bool));
        let bits = if to.is_signed() { to.bits() - 1 } else { to.bits() };
        let limit = libm::ldexp(1.0, bits as i32);
        let float =
            |value: f64| if from == Scalar::F32 { Literal::f32(value as f32) } else { Literal::f64(value) };
        let (most, least) =
            (self.constant(float(limit)), self.constant(float(if to.is_signed() { -limit } else { 0.0 })));
        let zero = self.constant(float(0.0));
        let high = self.op(Op::FOrdGreaterThanEqual, bool, &[value, most]);
        let low = self.op(Op::FOrdLessThanEqual, bool, &[value, least]);
        let nan = self.op(Op::FUnordNotEqual, bool, &[value, value]);
        // What cannot be converted is not: its result would be undefined.
        let inside = self.op(Op::LogicalOr, bool, &[high, low]);
        let inside = self.op(Op::LogicalOr, bool, &[inside, nan]);
        let float_ty = self.ty(from);
        let safe = self.op(Op::Select, float_ty, &[inside, zero, value]);
        let op = if to.is_signed() { Op::ConvertFToS } else { Op::ConvertFToU };
        let plain = self.op(op, ty, &[safe]);
        let greatest = if bits == 64 { u64::MAX } else { (1_u64 << bits) - 1 };
        let (greatest, smallest) = (self.number(to, greatest), self.number(to, to.min() as u64));
        let plain = self.op(Op::Select, ty, &[high, greatest, plain]);
        self.op(Op::Select, ty, &[low, smallest, plain])
    }
}

const fn built_in(query: Query) -> BuiltIn {
    match query {
        Query::GlobalId => BuiltIn::GlobalInvocationId,
        Query::LocalId => BuiltIn::LocalInvocationId,
        Query::GroupId => BuiltIn::WorkgroupId,
        Query::GlobalSize => BuiltIn::GlobalSize,
        Query::LocalSize => BuiltIn::WorkgroupSize,
        Query::Groups => BuiltIn::NumWorkgroups,
    }
}
