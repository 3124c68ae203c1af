//! The function: groups, parts of groups, and loops over the items of a phase.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block, FuncRef, Function, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Type,
    Value, types,
};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use usm_kernel_ir::{
    Array, ArrayId, ExprKind, Home, Kernel, Parameter, Part, Phases, Place, Scalar, Space, Stmt, VarId,
    definition, phases, with_extents_at, without_collections,
};

use crate::machine::check::Checks;
use crate::machine::lanes::{LANES, Row};
use crate::machine::pause::Pauses;
use crate::machine::variables::used;

/// Accesses stay inside existing memory, of any alignment.
pub(crate) const MEMORY: MemFlagsData = MemFlagsData::new().with_notrap();
/// Maximum elements for which memory of a group is computed. No machine has more, and no product
/// with it wraps.
const MOST: i64 = 1 << 48;

/// Writes the function of [`Code::run`](crate::machine::Code::run).
pub(crate) fn write(
    kernel: &Kernel,
    function: &mut Function,
    context: &mut FunctionBuilderContext,
    target: TargetFrontendConfig,
    (vectors, places, asks): (bool, Option<&[(ArrayId, Place)]>, FuncRef),
) {
    let needs_groups = kernel.needs_groups();
    let kernel = without_collections(kernel);
    let kernel = with_extents_at(kernel, places.unwrap_or_default());
    let phases = phases(&kernel);
    let mut builder = FunctionBuilder::new(function, context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let zero = builder.ins().iconst(types::I64, 0);
    let bases = kernel.arrays.iter().map(|_| new_slot(&mut builder)).collect();
    let mut writer = Writer {
        kernel: &kernel,
        phases: &phases,
        vectors,
        places,
        checks: None,
        pauses: None,
        needs_groups,
        barriers: kernel.body.iter().any(Stmt::has_barrier),
        variables: Vec::new(),
        bases,
        variables_kept: vec![zero; kernel.variables.len()],
        values: vec![zero; kernel.values.len()],
        lengths: vec![zero; kernel.arrays.len()],
        sizes: Sizes { global: [zero; 3], local: [zero; 3], groups: [zero; 3] },
        base: [zero; 3],
        group: [zero; 3],
        lid: [zero; 3],
        gid: [zero; 3],
        item: zero,
        loops: Vec::new(),
        counters: Vec::new(),
        group_end: entry,
        item_end: None,
        loops_of_group: 0,
        builder,
    };
    writer.function(asks);
    writer.builder.seal_all_blocks();
    writer.builder.finalize(target);
}

/// A phase, which all items run.
struct Phase<'p> {
    body: &'p [&'p Stmt],
    /// The used variables, each after those that its recomputation reads; and the set ones.
    used: Vec<VarId>,
    sets: Vec<VarId>,
    /// The plan for sixteen items at once, if possible.
    row: Option<Row>,
}

/// Sizes of the launch, the fastest dimension first.
pub(crate) struct Sizes {
    pub(crate) global: [Value; 3],
    pub(crate) local: [Value; 3],
    pub(crate) groups: [Value; 3],
}

pub(crate) struct Writer<'w> {
    pub(crate) builder: FunctionBuilder<'w>,
    pub(crate) kernel: &'w Kernel,
    phases: &'w Phases<'w>,
    pub(crate) vectors: bool,
    /// The indices to check, by their numbers from 1.
    pub(crate) places: Option<&'w [(ArrayId, Place)]>,
    pub(crate) checks: Option<Checks>,
    pub(crate) pauses: Option<Pauses>,
    /// Whether the kernel needs groups, which then have equal sizes.
    needs_groups: bool,
    pub(crate) barriers: bool,
    /// One for each variable of the kernel.
    pub(crate) variables: Vec<Variable>,
    /// The places of the addresses of arrays. In a register an address would be one value more
    /// that lives through all loops, and loops store and load those for which no register is left.
    pub(crate) bases: Vec<StackSlot>,
    /// Addresses of the variables that live across a barrier.
    variables_kept: Vec<Value>,
    pub(crate) values: Vec<Value>,
    pub(crate) lengths: Vec<Value>,
    pub(crate) sizes: Sizes,
    /// The first item of the group in each dimension.
    base: [Value; 3],
    pub(crate) group: [Value; 3],
    pub(crate) lid: [Value; 3],
    pub(crate) gid: [Value; 3],
    /// The item's linear local id.
    pub(crate) item: Value,
    /// The targets of `continue` and `break`.
    pub(crate) loops: Vec<[Block; 2]>,
    /// The counters of the counting loops around, and their limits.
    pub(crate) counters: Vec<[Variable; 2]>,
    pub(crate) group_end: Block,
    pub(crate) item_end: Option<Block>,
    /// The number of loops around the phase, which the group runs.
    pub(crate) loops_of_group: usize,
}

/// The type of values.
pub(crate) const fn type_of(scalar: Scalar) -> Type {
    match scalar {
        Scalar::Bool | Scalar::I8 | Scalar::U8 => types::I8,
        Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::Bf16 => types::I16,
        Scalar::I32 | Scalar::U32 => types::I32,
        Scalar::I64 | Scalar::U64 => types::I64,
        Scalar::F32 => types::F32,
        Scalar::F64 => types::F64,
    }
}

impl Writer<'_> {
    fn function(&mut self, asks: FuncRef) {
        let entry = self.builder.current_block().expect("the entry");
        let &[arrays, values, lengths, sizes, scratch, pause] = self.builder.block_params(entry) else {
            unreachable!("the signature has six parameters")
        };
        let one = self.number(1);
        let mut bounds = [[one; 2]; 3];
        for (axis, bounds) in bounds.iter_mut().enumerate() {
            let [global, local, first, last] =
                [0, 3, 6, 9].map(|from| self.word(sizes, (from + axis) as i32));
            // A launch without items has local size 0 and no group.
            let divisor = self.builder.ins().umax(local, one);
            (self.sizes.global[axis], self.sizes.local[axis]) = (global, local);
            self.sizes.groups[axis] = self.builder.ins().udiv(global, divisor);
            *bounds = [first, last];
        }
        let [x, y, z] = self.sizes.local;
        let items = self.builder.ins().imul(x, y);
        let items = self.builder.ins().imul(items, z);
        let mut pointers = 0;
        for parameter in &self.kernel.parameters {
            match parameter {
                Parameter::Array(id) => {
                    let base = self.word(arrays, pointers);
                    self.set_slot(self.bases[id.0 as usize], base);
                    pointers += 1;
                }
                Parameter::Value(id) => {
                    let bits = self.word(values, id.0 as i32);
                    let ty = self.kernel.value(*id).ty;
                    self.values[id.0 as usize] = self.of_word(ty, bits);
                }
            }
        }
        let mut lengths_used = self.kernel.lengths();
        for (array, _) in self.places.unwrap_or_default() {
            lengths_used.push(*array);
            // An extent may follow from lengths that nothing else needs.
            if let Space::Extent(len) = &self.kernel.array(*array).space {
                len.for_each(&mut |expr| {
                    if let ExprKind::Len(array) = expr.kind {
                        lengths_used.push(array);
                    }
                });
            }
        }
        for id in lengths_used {
            self.lengths[id.0 as usize] = self.word(lengths, id.0 as i32);
        }
        if self.places.is_some() {
            let record = self.word(arrays, pointers);
            self.begin_checks(record);
        }
        for variable in &self.kernel.variables {
            let ty = type_of(variable.ty);
            let variable = self.builder.declare_var(ty);
            let zero = self.zero(ty);
            self.builder.def_var(variable, zero);
            self.variables.push(variable);
        }
        let top = self.reserve_arrays(scratch, items);
        let pauses = self.begin_pauses(pause, asks);
        self.pauses = Some(pauses);
        let (count, run) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(scratch, run, &[], count, &[]);
        self.builder.switch_to_block(count);
        self.builder.ins().return_(&[top]);
        self.builder.switch_to_block(run);
        self.groups(self.kernel.dimensions, &bounds);
        self.builder.ins().return_(&[top]);
        self.builder.switch_to_block(pauses.stop);
        self.builder.ins().return_(&[top]);
    }

    /// Memory of a group for local and private arrays, and for variables that live across a
    /// barrier. Returns its size in bytes.
    fn reserve_arrays(&mut self, scratch: Value, items: Value) -> Value {
        let kernel = self.kernel;
        let mut top = self.number(0);
        for (index, Array { element, space, .. }) in kernel.arrays.iter().enumerate() {
            let len = match space {
                Space::Local(len) => self.expr(len),
                Space::Private(len) => {
                    let len = self.number((*len).min(MOST as u64) as i64);
                    if self.barriers { self.builder.ins().imul(len, items) } else { len }
                }
                _ => continue,
            };
            let (base, end) = self.reserve_array(scratch, top, len, element.bytes());
            self.set_slot(self.bases[index], base);
            top = end;
        }
        for (index, variable) in kernel.variables.iter().enumerate() {
            if self.phases.homes.get(index) == Some(&Home::Kept) {
                (self.variables_kept[index], top) =
                    self.reserve_array(scratch, top, items, variable.ty.bytes());
            }
        }
        top
    }

    pub(crate) fn set_slot(&mut self, slot: StackSlot, value: Value) {
        self.builder.ins().stack_store(types::I64, value, slot, 0);
    }

    pub(crate) fn in_slot(&mut self, slot: StackSlot) -> Value {
        self.builder.ins().stack_load(types::I64, types::I64, slot, 0)
    }

    fn reserve_array(&mut self, scratch: Value, top: Value, len: Value, size: u64) -> (Value, Value) {
        let most = self.number(MOST);
        let address = self.builder.ins().iadd(scratch, top);
        let len = self.builder.ins().umin(len, most);
        let bytes = self.builder.ins().imul_imm_s(len, size as i64);
        let bytes = self.builder.ins().iadd_imm_s(bytes, 63);
        let bytes = self.builder.ins().band_imm_s(bytes, !63);
        (address, self.builder.ins().iadd(top, bytes))
    }

    /// Loops over the groups in this many dimensions, the slowest outermost.
    fn groups(&mut self, dimensions: u8, bounds: &[[Value; 2]; 3]) {
        let Some(axis) = usize::from(dimensions).checked_sub(1) else {
            self.group_end = self.builder.create_block();
            self.leave_if_failed();
            self.parts(&self.phases.parts);
            self.builder.ins().jump(self.group_end, &[]);
            self.builder.switch_to_block(self.group_end);
            return;
        };
        let [first, last] = bounds[axis];
        self.count(first, last, 1, |writer, group| {
            writer.group[axis] = group;
            writer.base[axis] = writer.builder.ins().imul(group, writer.sizes.local[axis]);
            writer.groups(dimensions - 1, bounds);
        });
    }

    /// A counting loop that runs as long as a whole step remains.
    pub(crate) fn count(
        &mut self,
        first: Value,
        last: Value,
        step: i64,
        body: impl FnOnce(&mut Self, Value),
    ) -> Value {
        let counter = self.builder.declare_var(types::I64);
        self.builder.def_var(counter, first);
        let [head, inside, out] = [(); 3].map(|()| self.builder.create_block());
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(head);
        let position = self.builder.use_var(counter);
        let end = self.builder.ins().iadd_imm_s(position, step - 1);
        let goes_on = self.builder.ins().icmp(IntCC::UnsignedLessThan, end, last);
        self.builder.ins().brif(goes_on, inside, &[], out, &[]);
        self.builder.switch_to_block(inside);
        body(self, position);
        let next = self.builder.ins().iadd_imm_s(position, step);
        self.builder.def_var(counter, next);
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(out);
        position
    }

    fn parts(&mut self, parts: &[Part<'_>]) {
        for part in parts {
            match part {
                Part::Items(body) => self.items(body),
                Part::Set(variable, value) => self.set(*variable, value),
                Part::If(condition, then, other) => {
                    self.branch(condition, |writer| writer.parts(then), |writer| writer.parts(other))
                }
                Part::While(condition, body) => self.repeat(condition, |writer| writer.parts(body)),
                Part::For(variable, bounds, body) => {
                    self.count_loop(*variable, *bounds, true, |writer| writer.parts(body));
                }
                Part::Break => self.leave(1),
                Part::Continue => self.leave(0),
                Part::Return => {
                    let end = self.group_end;
                    self.go(end);
                }
            }
        }
    }

    /// Items of the group in a dimension.
    fn items_along(&mut self, axis: usize) -> Value {
        let local = self.sizes.local[axis];
        if self.needs_groups {
            return local;
        }
        let rest = self.builder.ins().isub(self.sizes.global[axis], self.base[axis]);
        self.builder.ins().umin(rest, local)
    }

    /// A phase: loops over the items, the last dimension innermost.
    fn items(&mut self, body: &[&Stmt]) {
        let (used, sets) = used(self.kernel, &self.phases.homes, body);
        let row = self.row(&self.phases.homes, &used, body);
        self.rows(self.kernel.dimensions, &mut Phase { body, used, sets, row });
    }

    fn rows(&mut self, dimensions: u8, phase: &mut Phase<'_>) {
        let axis = usize::from(dimensions.max(1)) - 1;
        let (zero, items) = (self.number(0), self.items_along(axis));
        if axis > 0 {
            self.count(zero, items, 1, |writer, lid| {
                writer.enter(axis, lid);
                writer.rows(dimensions - 1, phase);
            });
            return;
        }
        let first = match &mut phase.row {
            None => zero,
            Some(row) => self.count(zero, items, LANES as i64, |writer, lid| {
                writer.enter(0, lid);
                writer.run_sixteen(row, &phase.used, &phase.sets, phase.body);
            }),
        };
        self.count(first, items, 1, |writer, lid| {
            writer.enter(0, lid);
            writer.item(phase);
        });
    }

    fn enter(&mut self, axis: usize, lid: Value) {
        self.lid[axis] = lid;
        self.gid[axis] = self.builder.ins().iadd(self.base[axis], lid);
        if axis == 0 {
            let last = usize::from(self.kernel.dimensions.max(1)) - 1;
            let mut item = self.lid[last];
            for axis in (0..last).rev() {
                item = self.builder.ins().imul(item, self.sizes.local[axis]);
                item = self.builder.ins().iadd(item, self.lid[axis]);
            }
            self.item = item;
        }
    }

    /// One item.
    fn item(&mut self, phase: &Phase<'_>) {
        for variable in &phase.used {
            match self.home_of(*variable) {
                Home::Again => {
                    if let Some(value) = definition(&self.kernel.body, *variable) {
                        self.set(*variable, value);
                    }
                }
                Home::Kept => {
                    let (ty, address) = self.kept_place(*variable);
                    let value = self.load(ty, address);
                    self.builder.def_var(self.variables[variable.0 as usize], value);
                }
                _ => {}
            }
        }
        let end = self.builder.create_block();
        self.item_end = Some(end);
        self.loops_of_group = self.loops.len();
        for stmt in phase.body {
            self.stmt(stmt);
        }
        self.builder.ins().jump(end, &[]);
        self.builder.switch_to_block(end);
        self.item_end = None;
        for variable in &phase.used {
            if self.home_of(*variable) == Home::Kept && phase.sets.contains(variable) {
                let (_, address) = self.kept_place(*variable);
                let value = self.builder.use_var(self.variables[variable.0 as usize]);
                self.builder.ins().store(MEMORY, value, address, 0);
            }
        }
    }

    pub(crate) fn home_of(&self, variable: VarId) -> Home {
        self.phases.homes.get(variable.0 as usize).copied().unwrap_or(Home::Phase)
    }

    /// The type of a variable that lives across a barrier, and the address of the item's value.
    pub(crate) fn kept_place(&mut self, variable: VarId) -> (Scalar, Value) {
        let ty = self.kernel.variable(variable).ty;
        let (item, base) = (self.item, self.variables_kept[variable.0 as usize]);
        (ty, self.element(base, item, ty))
    }

    /// The address of an element.
    pub(crate) fn element(&mut self, base: Value, index: Value, ty: Scalar) -> Value {
        let shift = i64::from(ty.bytes().trailing_zeros());
        let offset = if shift == 0 { index } else { self.builder.ins().ishl_imm_u(index, shift) };
        self.builder.ins().iadd(base, offset)
    }

    /// A value from memory.
    pub(crate) fn load(&mut self, ty: Scalar, address: Value) -> Value {
        let value = self.builder.ins().load(type_of(ty), MEMORY, address, 0);
        if ty == Scalar::Bool { self.builder.ins().icmp_imm_s(IntCC::NotEqual, value, 0) } else { value }
    }

    pub(crate) fn word(&mut self, base: Value, index: i32) -> Value {
        self.builder.ins().load(types::I64, MEMORY, base, 8 * index)
    }

    /// The value with the bits of a word.
    fn of_word(&mut self, ty: Scalar, word: Value) -> Value {
        let ins = self.builder.ins();
        match ty {
            Scalar::Bool => ins.icmp_imm_s(IntCC::NotEqual, word, 0),
            Scalar::I64 | Scalar::U64 => word,
            Scalar::F64 => ins.bitcast(types::F64, MemFlagsData::new(), word),
            Scalar::F32 => {
                let bits = ins.ireduce(types::I32, word);
                self.builder.ins().bitcast(types::F32, MemFlagsData::new(), bits)
            }
            _ => ins.ireduce(type_of(ty), word),
        }
    }

    pub(crate) fn number(&mut self, value: i64) -> Value {
        self.builder.ins().iconst(types::I64, value)
    }

    pub(crate) fn zero(&mut self, ty: Type) -> Value {
        match ty {
            types::F32 => self.builder.ins().f32const(0.0),
            types::F64 => self.builder.ins().f64const(0.0),
            ty => self.builder.ins().iconst(ty, 0),
        }
    }

    /// The number of elements of an array.
    pub(crate) fn len(&mut self, id: ArrayId) -> Value {
        match &self.kernel.array(id).space {
            Space::Constant(len) | Space::Private(len) => self.number(*len as i64),
            Space::Local(len) | Space::Extent(len) => self.expr(len),
            _ => self.lengths[id.0 as usize],
        }
    }

    /// Jumps to a block; the following code is unreachable.
    pub(crate) fn go(&mut self, to: Block) {
        self.builder.ins().jump(to, &[]);
        let after_end = self.builder.create_block();
        self.builder.switch_to_block(after_end);
    }
}

/// A place for a word on the stack.
pub(crate) fn new_slot(builder: &mut FunctionBuilder<'_>) -> StackSlot {
    builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3))
}
