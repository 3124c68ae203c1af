//! SPIR-V for kernels: 64-bit pointers, the memory model of OpenCL.
//!
//! Variables are memory of the function, as in unoptimised code. Drivers turn them into registers.

mod arithmetic;
mod atomic;
mod block;
mod check;
mod expr;
mod half;
mod stmt;

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use rspirv::binary::Assemble as _;
use rspirv::dr::{Builder, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel, FunctionControl,
    MemoryModel, Op, StorageClass, Word,
};

use super::checked::{Checks, Entry};
use crate::kernel::{Expr, ExprKind, Kernel, Parameter, Query, Space, StmtKind};
use crate::lower::{By, lower, with_extents_at, without_negations};
use crate::scalar::{Literal, Scalar};
use crate::uniform::Uniformity;

/// The scope of atomic operations and fences, as an operand.
const DEVICE: u32 = 1;

/// The kernel as the bytes of a SPIR-V module, as [`opencl_c`](super::opencl_c) about arrays on
/// which items may race.
#[must_use]
pub fn spirv(kernel: &Kernel) -> Vec<u8> {
    module(&[Entry::plain(kernel)])
}

/// Kernels with different names as the bytes of one SPIR-V module. A driver's time goes mostly into
/// each module, whatever it contains.
#[must_use]
pub fn spirv_module(kernels: &[Kernel]) -> Vec<u8> {
    module(&kernels.iter().map(Entry::plain).collect::<Vec<_>>())
}

pub(super) fn module(entries: &[Entry<'_>]) -> Vec<u8> {
    let kernels = entries.iter().map(|entry| {
        let kernel = without_negations(lower(entry.kernel, By::All));
        with_extents_at(kernel, entry.checks.as_ref().map_or(&[][..], |checks| &checks.places))
    });
    let kernels: Vec<_> = kernels.collect();
    let mut builder = Builder::new();
    builder.set_version(1, 0);
    let extension = {
        for capability in [Capability::Addresses, Capability::Linkage, Capability::Kernel, Capability::Int64]
        {
            builder.capability(capability);
        }
        let uses = |ty: Scalar| kernels.iter().any(|kernel| kernel.uses(ty));
        if [Scalar::I16, Scalar::U16, Scalar::F16, Scalar::Bf16].into_iter().any(uses) {
            builder.capability(Capability::Int16);
        }
        builder.capability(Capability::Int8);
        if uses(Scalar::F64) {
            builder.capability(Capability::Float64);
        }
        if kernels.iter().any(|kernel| has_wide_atomics(kernel)) {
            builder.capability(Capability::Int64Atomics);
        }
        builder.ext_inst_import("OpenCL.std")
    };
    builder.memory_model(AddressingModel::Physical64, MemoryModel::OpenCL);
    let mut built_ins = Vec::new();
    for (entry, kernel) in entries.iter().zip(&kernels) {
        let mut writer = Writer {
            kernel,
            checks: entry.checks.as_ref(),
            record: 0,
            failure: 0,
            joint: Uniformity::of(kernel).find_joint(kernel),
            record_mask: 0,
            builder,
            extension,
            built_ins,
            arrays: vec![0; kernel.arrays.len()],
            values: vec![0; kernel.values.len()],
            lengths: vec![0; kernel.arrays.len()],
            has_guard: entry.kernel.is_guarded(),
            range: [0; 3],
            variables: Vec::new(),
            block: 0,
            open: true,
            loops: Vec::new(),
        };
        writer.function(&entry.name());
        Writer { builder, built_ins, .. } = writer;
    }
    builder.module().assemble().into_iter().flat_map(u32::to_le_bytes).collect()
}

fn has_wide_atomics(kernel: &Kernel) -> bool {
    let mut wide = false;
    kernel.for_each(
        &mut |stmt| {
            if let StmtKind::Atomic { array, .. } | StmtKind::CompareExchange { array, .. } = &stmt.kind {
                wide |= kernel.array(*array).element.bits() == 64;
            }
        },
        &mut |_| (),
    );
    wide
}

struct Writer<'k> {
    kernel: &'k Kernel,
    checks: Option<&'k Checks>,
    /// The record of a checking function, and whether the item had an index outside.
    record: Word,
    failure: Word,
    /// Statements that all items of a group run together.
    joint: BTreeSet<usize>,
    /// The record for an index outside, in the statement that is written now.
    record_mask: u8,
    builder: Builder,
    extension: Word,
    built_ins: Vec<(BuiltIn, Word)>,
    arrays: Vec<Word>,
    values: Vec<Word>,
    lengths: Vec<Word>,
    /// Whether the function ignores items beyond the range: [`Kernel::is_guarded`].
    has_guard: bool,
    /// Its sizes then, the fastest dimension first.
    range: [Word; 3],
    variables: Vec<Word>,
    /// Label of the current block.
    block: Word,
    /// Whether the current block is not yet terminated.
    open: bool,
    /// Targets of `continue` and `break`.
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
    fn memory_type(&mut self, ty: Scalar) -> Word {
        self.ty(if ty == Scalar::Bool { Scalar::U8 } else { ty })
    }

    fn pointer(&mut self, class: StorageClass, to: Word) -> Word {
        self.builder.type_pointer(None, class, to)
    }

    fn function(&mut self, name: &str) {
        let kernel = self.kernel;
        let lengths = self.checks.map_or_else(|| kernel.lengths(), |checks| checks.lengths.clone());
        let sizes = if self.has_guard { usize::from(kernel.dimensions) } else { 0 };
        let types = self.parameter_types(lengths.len(), sizes);
        self.declare_built_ins();
        let void = self.builder.type_void();
        let function_type = self.builder.type_function(void, types.iter().copied());
        let function_id = self.builder.begin_function(void, None, FunctionControl::NONE, function_type);
        let id = function_id.expect("no function is open");
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
        for size in &mut self.range[..sizes] {
            *size = parameters.next().unwrap_or(0);
        }
        if self.checks.is_some() {
            self.record = parameters.next().unwrap_or(0);
        }
        let locals =
            kernel.arrays.iter().enumerate().filter(|(_, array)| matches!(array.space, Space::Local(_)));
        for (index, _) in locals {
            self.arrays[index] = parameters.next().unwrap_or(0);
        }
        drop(parameters);
        self.begin(None);
        self.declare_variables();
        if self.has_guard {
            self.guard();
        }
        self.stmts(&kernel.body);
        if self.open {
            self.builder.ret().expect("a block is open");
        }
        self.builder.end_function().expect("the function is open");
        let interface: Vec<Word> = self.built_ins.iter().map(|(_, word)| *word).collect();
        self.builder.entry_point(ExecutionModel::Kernel, id, name, interface);
        if let Some(group) = kernel.group.as_ref().filter(|group| !group.contains(&0)) {
            let mut sizes: Vec<u32> = group.iter().rev().map(|size| *size as u32).collect();
            sizes.resize(3, 1);
            self.builder.execution_mode(id, ExecutionMode::LocalSize, sizes);
        }
    }

    /// The types of the function's parameters, with so many lengths and sizes of the range.
    fn parameter_types(&mut self, lengths: usize, sizes: usize) -> Vec<Word> {
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
                    let element = self.memory_type(array.element);
                    self.pointer(class, element)
                }
                Parameter::Value(id) => self.memory_type(kernel.value(*id).ty),
            });
        }
        let word = self.ty(Scalar::U64);
        types.extend(core::iter::repeat_n(word, lengths));
        types.extend(core::iter::repeat_n(word, sizes));
        if self.checks.is_some() {
            let word = self.ty(Scalar::U32);
            types.push(self.pointer(StorageClass::CrossWorkgroup, word));
        }
        for array in &kernel.arrays {
            if matches!(array.space, Space::Local(_)) {
                let element = self.memory_type(array.element);
                types.push(self.pointer(StorageClass::Workgroup, element));
            }
        }
        types
    }

    /// Declares variables, private arrays and whether a check failed.
    fn declare_variables(&mut self) {
        let kernel = self.kernel;
        for variable in &kernel.variables {
            let ty = self.memory_type(variable.ty);
            let pointer = self.pointer(StorageClass::Function, ty);
            self.variables.push(self.builder.variable(pointer, None, StorageClass::Function, None));
        }
        for (index, array) in kernel.arrays.iter().enumerate() {
            if let Space::Private(len) = array.space {
                let element = self.memory_type(array.element);
                let len = self.constant(Literal::integer(Scalar::U64, len.max(1)));
                let ty = self.builder.type_array(element, len);
                let pointer = self.pointer(StorageClass::Function, ty);
                self.arrays[index] = self.builder.variable(pointer, None, StorageClass::Function, None);
            }
        }
        if self.checks.is_some() {
            let byte = self.ty(Scalar::U8);
            let pointer = self.pointer(StorageClass::Function, byte);
            self.failure = self.builder.variable(pointer, None, StorageClass::Function, None);
            let none = self.number(Scalar::U8, 0);
            self.store(self.failure, Scalar::U8, none);
        }
    }

    /// Ends items beyond the range.
    fn guard(&mut self) {
        for dimension in (0..self.kernel.dimensions).rev() {
            let axis = usize::from(self.kernel.dimensions - 1 - dimension);
            let id = self.expr(&Expr::query(Query::GlobalId, dimension, self.kernel.place));
            let (bool, size) = (self.ty(Scalar::Bool), self.range[axis]);
            let beyond = self.op(Op::UGreaterThanEqual, bool, &[id, size]);
            let (end, inside) = (self.builder.id(), self.builder.id());
            self.fork(beyond, end, inside);
            self.begin(Some(end));
            self.builder.ret().expect("a block is open");
            self.begin(Some(inside));
        }
    }

    fn declare_built_ins(&mut self) {
        let mut queries = Vec::new();
        if self.has_guard {
            queries.push(BuiltIn::GlobalInvocationId);
        }
        let mut note = |expr: &Expr| {
            if let ExprKind::Query(query, _) = expr.kind {
                let built_in = built_in(query);
                if !queries.contains(&built_in) {
                    queries.push(built_in);
                }
            }
        };
        self.kernel.for_each(&mut |_| (), &mut note);
        for array in &self.kernel.arrays {
            if let Space::Local(len) | Space::Extent(len) = &array.space {
                len.for_each(&mut note);
            }
        }
        let word = self.ty(Scalar::U64);
        let vector = self.builder.type_vector(word, 3);
        let pointer = self.pointer(StorageClass::Input, vector);
        let is_new = |built_in: &BuiltIn| !self.built_ins.iter().any(|(other, _)| other == built_in);
        queries.retain(is_new);
        for built_in in queries {
            let variable = self.builder.variable(pointer, None, StorageClass::Input, None);
            self.builder.decorate(variable, Decoration::BuiltIn, [Operand::BuiltIn(built_in)]);
            self.builder.decorate(variable, Decoration::Constant, []);
            self.built_ins.push((built_in, variable));
        }
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
