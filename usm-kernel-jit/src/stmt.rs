//! Statements of one item.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value, types};
use usm_kernel_ir::{ArrayId, Atomic, Binary, Expr, Scalar, Space, Stmt, StmtKind, VarId};

use crate::function::{MEMORY, Writer, type_of};

impl Writer<'_> {
    pub(crate) fn block(&mut self, body: &[Stmt]) {
        body.iter().for_each(|stmt| self.stmt(stmt));
    }

    pub(crate) fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Set(variable, value) => self.set(*variable, value),
            StmtKind::Store(array, index, value) => {
                let index = self.expr(index);
                let address = self.checked_address(*array, index, stmt.place);
                let value = self.expr(value);
                self.builder.ins().store(MEMORY, value, address, 0);
            }
            StmtKind::Atomic(operation, array, index, value, old) => {
                let index = self.expr(index);
                let address = self.checked_address(*array, index, stmt.place);
                let value = self.expr(value);
                let ty = self.kernel.array(*array).element;
                let before = self.atomic(*operation, ty, address, value);
                self.give(*old, before);
            }
            StmtKind::CompareExchange(array, index, [expected, new], old) => {
                let index = self.expr(index);
                let address = self.checked_address(*array, index, stmt.place);
                let (expected, new) = (self.expr(expected), self.expr(new));
                let ty = self.kernel.array(*array).element;
                let before = self.compare_exchange(ty, address, expected, new);
                self.give(*old, before);
            }
            StmtKind::If(condition, then, other) => {
                self.branch(condition, |writer| writer.block(then), |writer| writer.block(other));
            }
            StmtKind::While(condition, body) => self.repeat(condition, |writer| writer.block(body)),
            StmtKind::For(variable, start, end, step, body) => {
                self.counting(*variable, [start, end, step], |writer| writer.block(body));
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
            | StmtKind::Collect(..)
            | StmtKind::Broadcast(..) => {}
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
        let [bits, wanted] = [before, expected].map(|value| self.bits(ty, value));
        let equal = self.builder.ins().icmp(IntCC::Equal, bits, wanted);
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
        self.element(self.bases[id.0 as usize], index, array.element)
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
        let condition = self.expr(condition);
        let [one, two, out] = [(); 3].map(|()| self.builder.create_block());
        self.builder.ins().brif(condition, one, &[], two, &[]);
        self.builder.switch_to_block(one);
        [two, out]
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
        self.loops.push([head, out]);
        body(self);
        self.loops.pop();
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(out);
    }

    /// A counting loop. A separate counter sets the variable in each iteration.
    pub(crate) fn counting(
        &mut self,
        variable: VarId,
        [start, end, step]: [&Expr; 3],
        body: impl FnOnce(&mut Self),
    ) {
        let ty = self.kernel.variable(variable).ty;
        let (start, end, step) = (self.expr(start), self.expr(end), self.expr(step));
        let one = self.builder.ins().iconst(type_of(ty), 1);
        let step = self.builder.ins().umax(step, one);
        let counter = self.builder.declare_var(type_of(ty));
        self.builder.def_var(counter, start);
        let [inside, latch, further, out] = [(); 4].map(|()| self.builder.create_block());
        let below = if ty.is_signed() { IntCC::SignedLessThan } else { IntCC::UnsignedLessThan };
        let runs = self.builder.ins().icmp(below, start, end);
        self.builder.ins().brif(runs, inside, &[], out, &[]);
        self.builder.switch_to_block(inside);
        let here = self.builder.use_var(counter);
        self.builder.def_var(self.variables[variable.0 as usize], here);
        self.loops.push([latch, out]);
        body(self);
        self.loops.pop();
        self.builder.ins().jump(latch, &[]);
        self.builder.switch_to_block(latch);
        let here = self.builder.use_var(counter);
        let left = self.builder.ins().isub(end, here);
        let goes_on = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, left, step);
        self.builder.ins().brif(goes_on, further, &[], out, &[]);
        self.builder.switch_to_block(further);
        let next = self.builder.ins().iadd(here, step);
        self.builder.def_var(counter, next);
        self.builder.ins().jump(inside, &[]);
        self.builder.switch_to_block(out);
    }

    /// Continues the innermost loop, or leaves it.
    pub(crate) fn leave(&mut self, way: usize) {
        if let Some(blocks) = self.loops.last() {
            let to = blocks[way];
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
