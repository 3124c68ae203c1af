//! Statements of one item.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value, types};
use cranelift_frontend::Variable;
use usm_kernel_ir::{ArrayId, Atomic, Binary, Expr, ExprKind, Scalar, Space, Stmt, StmtKind, VarId};

use crate::machine::function::{MEMORY, Writer, type_of};

impl Writer<'_> {
    pub(crate) fn block(&mut self, body: &[Stmt]) {
        body.iter().for_each(|stmt| self.stmt(stmt));
    }

    pub(crate) fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Set(variable, value) => self.set(*variable, value),
            StmtKind::Store { array, index, value } => {
                let index = self.expr(index);
                let address = self.checked_address(*array, index, stmt.place);
                let value = self.expr(value);
                self.builder.ins().store(MEMORY, value, address, 0);
            }
            StmtKind::Atomic { operation, array, index, value, old } => {
                let index = self.expr(index);
                let address = self.checked_address(*array, index, stmt.place);
                let value = self.expr(value);
                let ty = self.kernel.array(*array).element;
                let before = self.atomic(*operation, ty, address, value);
                self.give(*old, before);
            }
            StmtKind::CompareExchange { array, index, expected, new, old } => {
                let index = self.expr(index);
                let address = self.checked_address(*array, index, stmt.place);
                let (expected, new) = (self.expr(expected), self.expr(new));
                let ty = self.kernel.array(*array).element;
                let before = self.compare_exchange(ty, address, expected, new);
                self.give(*old, before);
            }
            StmtKind::If { condition, then, other } => {
                self.branch(condition, |writer| writer.block(then), |writer| writer.block(other));
            }
            StmtKind::While(condition, body) => self.repeat(condition, |writer| writer.block(body)),
            StmtKind::For { variable, start, end, step, body } => {
                let asks = !stmt.is_short_loop();
                self.count_loop(*variable, [start, end, step], asks, |writer| writer.block(body));
            }
            StmtKind::Break => self.leave(1),
            StmtKind::Continue => self.leave(0),
            StmtKind::Return => {
                if let Some(end) = self.item_end {
                    self.go(end);
                }
            }
            // Phases end at barriers, and a thread sees its own stores. Group operations were
            // lowered before.
            StmtKind::Barrier { .. }
            | StmtKind::Fence { .. }
            | StmtKind::Collect { .. }
            | StmtKind::Broadcast { .. } => {}
        }
    }

    /// Changes an element; returns its old value.
    pub(crate) fn atomic(&mut self, operation: Atomic, ty: Scalar, address: Value, value: Value) -> Value {
        let before = self.load(ty, address);
        let after = match operator(operation) {
            Some(operator) => self.operate(operator, ty, before, value),
            None => value,
        };
        self.builder.ins().store(MEMORY, after, address, 0);
        before
    }

    pub(crate) fn compare_exchange(
        &mut self,
        ty: Scalar,
        address: Value,
        expected: Value,
        new: Value,
    ) -> Value {
        let before = self.load(ty, address);
        let [bits, old] = [before, expected].map(|value| self.bits(ty, value));
        let equal = self.builder.ins().icmp(IntCC::Equal, bits, old);
        let after = self.builder.ins().select(equal, new, before);
        self.builder.ins().store(MEMORY, after, address, 0);
        before
    }

    pub(crate) fn set(&mut self, variable: VarId, value: &Expr) {
        let value = self.expr(value);
        self.builder.def_var(self.variables[variable.0 as usize], value);
    }

    fn give(&mut self, variable: Option<VarId>, value: Value) {
        if let Some(variable) = variable {
            self.builder.def_var(self.variables[variable.0 as usize], value);
        }
    }

    fn bits(&mut self, ty: Scalar, value: Value) -> Value {
        let width = match ty {
            Scalar::F32 => types::I32,
            Scalar::F64 => types::I64,
            _ => return value,
        };
        self.builder.ins().bitcast(width, MemFlagsData::new(), value)
    }

    pub(crate) fn address_at(&mut self, id: ArrayId, index: Value) -> Value {
        let array = self.kernel.array(id);
        let index = match array.space {
            // Each item has its own array.
            Space::Private(len) if self.barriers => {
                let first = self.builder.ins().imul_imm_s(self.item, len as i64);
                self.builder.ins().iadd(first, index)
            }
            _ => index,
        };
        let base = self.in_slot(self.bases[id.0 as usize]);
        self.element(base, index, array.element)
    }

    pub(crate) fn branch(
        &mut self,
        condition: &Expr,
        then: impl FnOnce(&mut Self),
        other: impl FnOnce(&mut Self),
    ) {
        let blocks = self.open(condition);
        then(self);
        self.begin_else(blocks);
        other(self);
        self.close(blocks);
    }

    /// Starts a branch; returns the start of its other side, and its end.
    pub(crate) fn open(&mut self, condition: &Expr) -> [Block; 2] {
        let [one, two, out] = [(); 3].map(|()| self.builder.create_block());
        self.jump_by(condition, one, two);
        self.builder.switch_to_block(one);
        [two, out]
    }

    /// Jumps to one of two blocks. Each part of a condition has a jump of its own, because a
    /// number for the whole would take a register from the loop around.
    fn jump_by(&mut self, condition: &Expr, then: Block, other: Block) {
        let (left, right, is_both) = match &condition.kind {
            ExprKind::Binary { operator: Binary::AndThen, left, right } => (left, right, true),
            ExprKind::Binary { operator: Binary::OrElse, left, right } => (left, right, false),
            _ => {
                let condition = self.expr(condition);
                self.builder.ins().brif(condition, then, &[], other, &[]);
                return;
            }
        };
        let further = self.builder.create_block();
        if is_both {
            self.jump_by(left, further, other);
        } else {
            self.jump_by(left, then, further);
        }
        self.builder.switch_to_block(further);
        self.jump_by(right, then, other);
    }

    pub(crate) fn begin_else(&mut self, [two, out]: [Block; 2]) {
        self.builder.ins().jump(out, &[]);
        self.builder.switch_to_block(two);
    }

    pub(crate) fn close(&mut self, [_, out]: [Block; 2]) {
        self.builder.ins().jump(out, &[]);
        self.builder.switch_to_block(out);
    }

    pub(crate) fn repeat(&mut self, condition: &Expr, body: impl FnOnce(&mut Self)) {
        let [head, inside, out] = [(); 3].map(|()| self.builder.create_block());
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(head);
        let condition = self.expr(condition);
        let condition = self.and_not_failed(condition);
        self.builder.ins().brif(condition, inside, &[], out, &[]);
        self.builder.switch_to_block(inside);
        self.count_round();
        self.loops.push([head, out]);
        body(self);
        self.loops.pop();
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(out);
    }

    /// A counting loop. A separate counter sets the variable in each iteration. `asks` states
    /// whether it asks now and then if the launch may go on.
    ///
    /// With steps of 1, the rounds before the next question are a limit of the counter, so that a
    /// round costs nothing more. An index outside ends the loop by that limit too.
    pub(crate) fn count_loop(
        &mut self,
        variable: VarId,
        [start, end, step]: [&Expr; 3],
        asks: bool,
        body: impl FnOnce(&mut Self),
    ) {
        let ty = self.kernel.variable(variable).ty;
        let by_one = matches!(step.kind, ExprKind::Literal(literal) if literal.bits <= 1);
        let (start, end, step) = (self.expr(start), self.expr(end), self.expr(step));
        let one = self.builder.ins().iconst(type_of(ty), 1);
        let step = self.builder.ins().umax(step, one);
        let [counter, limit] = [(); 2].map(|()| self.builder.declare_var(type_of(ty)));
        self.builder.def_var(counter, start);
        let [first, inside, latch, out] = [(); 4].map(|()| self.builder.create_block());
        let below = if ty.is_signed() { IntCC::SignedLessThan } else { IntCC::UnsignedLessThan };
        let runs = self.builder.ins().icmp(below, start, end);
        let runs = self.and_not_failed(runs);
        self.builder.ins().brif(runs, first, &[], out, &[]);
        self.builder.switch_to_block(first);
        let is_limited = by_one && asks;
        if is_limited {
            self.limit(limit, start, end);
        } else {
            self.builder.def_var(limit, end);
        }
        self.builder.ins().jump(inside, &[]);
        self.builder.switch_to_block(inside);
        let count = self.builder.use_var(counter);
        self.builder.def_var(self.variables[variable.0 as usize], count);
        self.loops.push([latch, out]);
        self.counters.push([counter, limit]);
        body(self);
        self.counters.pop();
        self.loops.pop();
        self.builder.ins().jump(latch, &[]);
        self.builder.switch_to_block(latch);
        let (count, last) = (self.builder.use_var(counter), self.builder.use_var(limit));
        let next = self.builder.ins().iadd(count, step);
        if is_limited {
            // The jump back is the only one of an iteration.
            self.builder.def_var(counter, next);
            let [pause, more] = [(); 2].map(|()| self.builder.create_block());
            let goes_on = self.builder.ins().icmp(IntCC::NotEqual, next, last);
            self.builder.ins().brif(goes_on, inside, &[], pause, &[]);
            self.builder.switch_to_block(pause);
            let goes_on = self.builder.ins().icmp(IntCC::NotEqual, next, end);
            let goes_on = self.and_not_failed(goes_on);
            self.builder.ins().brif(goes_on, more, &[], out, &[]);
            self.builder.set_cold_block(more);
            self.builder.switch_to_block(more);
            self.ask_if_due();
            self.limit(limit, next, end);
            self.builder.ins().jump(inside, &[]);
        } else {
            let left = self.builder.ins().isub(last, count);
            let goes_on = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, left, step);
            let further = self.builder.create_block();
            self.builder.ins().brif(goes_on, further, &[], out, &[]);
            self.builder.switch_to_block(further);
            if asks {
                self.count_round();
            }
            self.builder.def_var(counter, next);
            self.builder.ins().jump(inside, &[]);
        }
        self.builder.switch_to_block(out);
    }

    /// Sets the limit of a counter that is at `from`, at least one round further.
    fn limit(&mut self, limit: Variable, from: Value, end: Value) {
        let most = self.builder.ins().isub(end, from);
        let ty = self.builder.func.dfg.value_type(most);
        let most = if ty == types::I64 { most } else { self.builder.ins().uextend(types::I64, most) };
        let round_count = self.take_rounds(most);
        let round_count =
            if ty == types::I64 { round_count } else { self.builder.ins().ireduce(ty, round_count) };
        let last = self.builder.ins().iadd(from, round_count);
        self.builder.def_var(limit, last);
    }

    /// Continues the innermost loop, or leaves it. Of a loop that the group runs an item ends its
    /// phase.
    pub(crate) fn leave(&mut self, way: usize) {
        let end = self.item_end.filter(|_| self.loops.len() == self.loops_of_group);
        let of_loop = self.loops.last().map(|blocks| blocks[way]);
        if let Some(to) = end.or(of_loop) {
            self.go(to);
        }
    }
}

/// The operator of an atomic operation; `None` for an exchange.
pub(crate) const fn operator(operation: Atomic) -> Option<Binary> {
    match operation {
        Atomic::Add => Some(Binary::Add),
        Atomic::Sub => Some(Binary::Sub),
        Atomic::Min => Some(Binary::Min),
        Atomic::Max => Some(Binary::Max),
        Atomic::And => Some(Binary::And),
        Atomic::Or => Some(Binary::Or),
        Atomic::Xor => Some(Binary::Xor),
        Atomic::Exchange => None,
    }
}
