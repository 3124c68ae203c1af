//! Statements: blocks and the jumps between them.

use rspirv::spirv::{MemoryAccess, Op};

use super::super::checked::{ALONE, TOGETHER};
use super::{DEVICE, Writer};
use crate::kernel::{ArrayId, Expr, ExprKind, Space, Stmt, StmtKind, VarId};
use crate::scalar::Scalar;
use crate::uniform::address;

/// The scope of a barrier.
const WORKGROUP: u32 = 2;
/// Memory semantics, as operands.
const SEQUENTIAL: u32 = 0x10;
const LOCAL_MEMORY: u32 = 0x100;
const GLOBAL_MEMORY: u32 = 0x200;

impl Writer<'_> {
    pub(super) fn stmts(&mut self, body: &[Stmt]) {
        for stmt in body {
            // Statements behind a jump are unreachable.
            if !self.open {
                return;
            }
            self.stmt(stmt);
        }
    }

    /// How a statement stores to an array.
    ///
    /// Intel's CPU runtime 2026.2.0 joins stores of equal bytes to a private array to one
    /// instruction. In SPIR-V it then runs that for one of the items that a vector holds, and the
    /// others read old bytes. It does not join volatile stores.
    fn access_of(&self, array: ArrayId, value: &Expr) -> MemoryAccess {
        let object = self.kernel.array(array);
        let width = object.element.bytes() as usize;
        let is_alike = match value.kind {
            ExprKind::Literal(literal) => {
                let bytes = literal.bits.to_le_bytes();
                bytes[..width].iter().all(|byte| *byte == bytes[0])
            }
            _ => width == 1,
        };
        let joins = matches!(object.space, Space::Private(_)) && is_alike;
        if joins { MemoryAccess::ALIGNED | MemoryAccess::VOLATILE } else { MemoryAccess::ALIGNED }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let is_together = self.joint.contains(&address(stmt));
        self.record_mask = if is_together { ALONE | TOGETHER } else { ALONE };
        match &stmt.kind {
            StmtKind::Set(variable, value) => {
                let value = self.expr(value);
                self.set(*variable, value);
            }
            StmtKind::Store { array, index, value } => {
                let access = self.access_of(*array, value);
                let (index, value) = (self.expr(index), self.expr(value));
                let store = |writer: &mut Self| writer.store_element(*array, index, value, access);
                self.change((*array, index, stmt.place), store, |_| ());
            }
            StmtKind::Atomic { operation, array, index, value, old } => {
                let (index, value) = (self.expr(index), self.expr(value));
                self.change(
                    (*array, index, stmt.place),
                    |writer| writer.atomic(*operation, *array, [index, value], *old),
                    |writer| writer.set_none(*old),
                );
            }
            StmtKind::CompareExchange { array, index, expected, new, old } => {
                let (index, expected, new) = (self.expr(index), self.expr(expected), self.expr(new));
                self.change(
                    (*array, index, stmt.place),
                    |writer| writer.compare_exchange(*array, index, [expected, new], *old),
                    |writer| writer.set_none(*old),
                );
            }
            // Lowered before.
            StmtKind::Collect { .. } | StmtKind::Broadcast { .. } => {}
            StmtKind::Fence { local, global } => {
                let semantics = SEQUENTIAL
                    | if *local { LOCAL_MEMORY } else { 0 }
                    | if *global { GLOBAL_MEMORY } else { 0 };
                let scope = self.number(Scalar::U32, u64::from(DEVICE));
                let semantics = self.number(Scalar::U32, u64::from(semantics));
                self.builder.memory_barrier(scope, semantics).expect("a block is open");
            }
            StmtKind::If { condition, then, other } => {
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
                self.leave_if_failed(is_together, end);
                let condition = self.expr(condition);
                self.fork(condition, inside, end);
                self.begin(Some(inside));
                self.loops.push((head, end));
                self.stmts(body);
                self.loops.pop();
                self.jump(head);
                self.begin(Some(end));
            }
            StmtKind::For { variable, start, end, step, body } => {
                self.count(*variable, [start, end, step], body, is_together);
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

    /// Goes to the end of a loop after an index outside.
    fn leave_if_failed(&mut self, is_together: bool, end: u32) {
        if self.checks.is_none() {
            return;
        }
        let (byte, bool) = (self.ty(Scalar::U8), self.ty(Scalar::Bool));
        let (failure, none) = (self.load(self.failure, Scalar::U8), self.number(Scalar::U8, 0));
        let mask = u64::from(if is_together { TOGETHER } else { ALONE });
        let mask = self.number(Scalar::U8, mask);
        let failure = self.op(Op::BitwiseAnd, byte, &[failure, mask]);
        let (failure, goes_on) = (self.op(Op::INotEqual, bool, &[failure, none]), self.builder.id());
        self.fork(failure, end, goes_on);
        self.begin(Some(goes_on));
    }

    fn count(&mut self, variable: VarId, [start, end, step]: [&Expr; 3], body: &[Stmt], is_together: bool) {
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
        self.leave_if_failed(is_together, after);
        let counter = self.load(pointer, scalar);
        let less = if scalar.is_signed() { Op::SLessThan } else { Op::ULessThan };
        let condition = self.op(less, bool, &[counter, last]);
        self.fork(condition, inside, after);
        self.begin(Some(inside));
        self.loops.push((next, after));
        self.stmts(body);
        self.loops.pop();
        self.jump(next);
        // The remaining distance is unsigned; an overflow ends the loop.
        self.begin(Some(next));
        let counter = self.load(pointer, scalar);
        let left = self.op(Op::ISub, ty, &[last, counter]);
        let more = self.op(Op::UGreaterThan, bool, &[left, step]);
        self.fork(more, further, after);
        self.begin(Some(further));
        let counter = self.op(Op::IAdd, ty, &[counter, step]);
        self.store(pointer, scalar, counter);
        self.jump(head);
        self.begin(Some(after));
    }
}
