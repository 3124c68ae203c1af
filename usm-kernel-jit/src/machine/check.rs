//! Checked indices. An access outside goes to a word on the stack, which is 0 before.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, StackSlot, StackSlotData, StackSlotKind, Value, types};
use cranelift_frontend::Variable;
use usm_kernel_ir::{ArrayId, ExprKind, Place, Stmt, StmtKind};

use crate::machine::function::{MEMORY, Writer};

/// The additional parts of code with checks.
#[derive(Clone, Copy)]
pub(crate) struct Checks {
    /// Address of the record of the first index outside.
    record: Value,
    /// Not 0 after an index outside.
    failure: Variable,
    /// Memory for accesses outside.
    spare: StackSlot,
}

impl Writer<'_> {
    pub(crate) fn begin_checks(&mut self, record: Value) {
        let failure = self.builder.declare_var(types::I8);
        let none = self.builder.ins().iconst(types::I8, 0);
        self.builder.def_var(failure, none);
        let spare = StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3);
        let spare = self.builder.create_sized_stack_slot(spare);
        self.checks = Some(Checks { record, failure, spare });
    }

    /// Whether sixteen items at once check indices in the order of the items: the phase has no
    /// checked index, or only that of one atomic operation, which every item executes.
    pub(crate) fn checks_keep_order(&self, body: &[&Stmt]) -> bool {
        let mut statements = body.iter().filter(|stmt| self.is_checked(stmt));
        let (first, second) = (statements.next(), statements.next());
        first.is_none_or(|stmt| {
            let is_atomic = matches!(stmt.kind, StmtKind::Atomic { .. });
            second.is_none() && is_atomic && !self.loads_checked(stmt)
        })
    }

    /// Whether an index in a statement is checked.
    fn is_checked(&self, stmt: &Stmt) -> bool {
        let own = match &stmt.kind {
            StmtKind::Store { array, .. }
            | StmtKind::Atomic { array, .. }
            | StmtKind::CompareExchange { array, .. } => self.is_checked_at(*array, stmt.place),
            _ => false,
        };
        let inside = || stmt.blocks().into_iter().flatten().any(|stmt| self.is_checked(stmt));
        own || self.loads_checked(stmt) || inside()
    }

    /// Whether an expression of the statement, without those of its blocks, loads at a checked
    /// index.
    fn loads_checked(&self, stmt: &Stmt) -> bool {
        let mut has_check = false;
        stmt.for_each_expr(&mut |expr| {
            expr.for_each(&mut |expr| {
                if let ExprKind::Load(array, _) = expr.kind {
                    has_check |= self.is_checked_at(array, expr.place);
                }
            });
        });
        has_check
    }

    pub(crate) fn is_checked_at(&self, array: ArrayId, place: Place) -> bool {
        self.places.is_some_and(|places| places.contains(&(array, place)))
    }

    /// An index of [`Space::Extent`](usm_kernel_ir::Space); 0 for one outside, which is recorded.
    pub(crate) fn checked_index(&mut self, array: ArrayId, index: Value, place: Place) -> Value {
        self.inside(array, index, place, index, |writer| writer.number(0))
    }

    /// The address of an element; of a zero if the index is outside, which is recorded.
    pub(crate) fn checked_address(&mut self, array: ArrayId, index: Value, place: Place) -> Value {
        let address = self.address_at(array, index);
        self.inside(array, index, place, address, |writer| {
            let Some(checks) = writer.checks else { return address };
            let spare = writer.builder.ins().stack_addr(types::I64, checks.spare, 0);
            let zero = writer.number(0);
            writer.builder.ins().store(MEMORY, zero, spare, 0);
            spare
        })
    }

    /// The first value if an index is inside or not checked. Otherwise it records the index, if it
    /// is the first one outside, and gives the other value.
    fn inside(
        &mut self,
        array: ArrayId,
        index: Value,
        place: Place,
        value: Value,
        other: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        let Some(Checks { record, failure, .. }) = self.checks else { return value };
        let number = self.places.and_then(|places| places.iter().position(|other| *other == (array, place)));
        let Some(number) = number.map(|number| number + 1) else { return value };
        let len = self.len(array);
        let inside = self.builder.ins().icmp(IntCC::UnsignedLessThan, index, len);
        let [outside, first, end] = [(); 3].map(|()| self.builder.create_block());
        let result = self.builder.append_block_param(end, types::I64);
        self.builder.ins().brif(inside, end, &[value.into()], outside, &[]);
        self.builder.set_cold_block(outside);
        self.builder.set_cold_block(first);
        self.builder.switch_to_block(outside);
        let one = self.builder.ins().iconst(types::I8, 1);
        self.builder.def_var(failure, one);
        // No counting loop goes on, and none pays for it.
        for [counter, limit] in self.counters.clone() {
            let count = self.builder.use_var(counter);
            let ty = self.builder.func.dfg.value_type(count);
            let one = self.builder.ins().iconst(ty, 1);
            let next = self.builder.ins().iadd(count, one);
            self.builder.def_var(limit, next);
        }
        let other = other(self);
        let old = self.builder.ins().load(types::I32, MEMORY, record, 0);
        self.builder.ins().brif(old, end, &[other.into()], first, &[]);
        self.builder.switch_to_block(first);
        let number = self.builder.ins().iconst(types::I32, number as i64);
        self.builder.ins().store(MEMORY, number, record, 0);
        for (at, value) in [(4, index), (12, len)] {
            let high = self.builder.ins().ushr_imm_u(value, 32);
            for (at, half) in [(at, value), (at + 4, high)] {
                let half = self.builder.ins().ireduce(types::I32, half);
                self.builder.ins().store(MEMORY, half, record, at);
            }
        }
        self.builder.ins().jump(end, &[other.into()]);
        self.builder.switch_to_block(end);
        result
    }

    /// A loop's condition, which an index outside ends.
    pub(crate) fn and_not_failed(&mut self, condition: Value) -> Value {
        let Some(checks) = self.checks else { return condition };
        let failure = self.builder.use_var(checks.failure);
        let goes_on = self.builder.ins().icmp_imm_s(IntCC::Equal, failure, 0);
        self.builder.ins().band(condition, goes_on)
    }

    /// Goes to the end of the group after an index outside.
    pub(crate) fn leave_if_failed(&mut self) {
        let Some(checks) = self.checks else { return };
        let (end, run) = (self.group_end, self.builder.create_block());
        let failure = self.builder.use_var(checks.failure);
        self.builder.ins().brif(failure, end, &[], run, &[]);
        self.builder.switch_to_block(run);
    }
}
