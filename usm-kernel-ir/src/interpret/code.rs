//! The body as a list of steps with jumps, so that an item can stop at a barrier and continue
//! later.

use alloc::vec::Vec;

use crate::kernel::{Expr, Kernel, Place, Stmt, StmtKind, VarId};

/// A step of an item.
#[derive(Clone, Debug)]
pub(super) enum Step<'k> {
    /// A statement without inner statements.
    Plain(&'k Stmt),
    Jump(usize),
    /// Continues if the condition is true; otherwise jumps.
    Unless(&'k Expr, usize),
    /// Begins a counting loop with this number.
    Count(usize, [&'k Expr; 3]),
    /// Sets the variable to the loop's next value; leaves the loop if there is none.
    Next(usize, VarId, usize),
    /// Begins this loop.
    Enter(usize),
    /// Begins a round of this loop.
    Round(usize),
    /// Waits at a barrier or collective operation, inside these loops.
    Wait(&'k Stmt, Vec<usize>),
    End(Place),
}

pub(super) struct Code<'k> {
    pub(super) steps: Vec<Step<'k>>,
    /// Number of loops.
    pub(super) loops: usize,
}

struct Writer<'k> {
    steps: Vec<Step<'k>>,
    loops: usize,
    /// Enclosing loops: the target of `continue`, and the jumps out, whose target is not yet known.
    around: Vec<(usize, usize, Vec<usize>)>,
}

pub(super) fn code(kernel: &Kernel) -> Code<'_> {
    let mut writer = Writer { steps: Vec::new(), loops: 0, around: Vec::new() };
    writer.block(&kernel.body);
    let end = kernel.body.last().map_or(kernel.place, |stmt| stmt.place);
    writer.steps.push(Step::End(end));
    Code { steps: writer.steps, loops: writer.loops }
}

impl<'k> Writer<'k> {
    fn block(&mut self, body: &'k [Stmt]) {
        body.iter().for_each(|stmt| self.stmt(stmt));
    }

    /// A jump whose target is not yet known.
    fn open(&mut self, step: Step<'k>) -> usize {
        self.steps.push(step);
        self.steps.len() - 1
    }

    /// Sets a jump's target to the next step.
    fn close(&mut self, step: usize) {
        let position = self.steps.len();
        match &mut self.steps[step] {
            Step::Jump(to) | Step::Unless(_, to) | Step::Next(_, _, to) => *to = position,
            _ => {}
        }
    }

    fn stmt(&mut self, stmt: &'k Stmt) {
        match &stmt.kind {
            StmtKind::If { condition, then, other } => {
                let unless = self.open(Step::Unless(condition, 0));
                self.block(then);
                let skip = self.open(Step::Jump(0));
                self.close(unless);
                self.block(other);
                self.close(skip);
            }
            StmtKind::While(condition, body) => {
                self.steps.push(Step::Enter(self.loops));
                let head = self.steps.len();
                let unless = self.open(Step::Unless(condition, 0));
                self.rounds(head, body, unless);
            }
            StmtKind::For { variable, start, end, step, body } => {
                let number = self.loops;
                self.steps.push(Step::Count(number, [start, end, step]));
                let head = self.open(Step::Next(number, *variable, 0));
                self.rounds(head, body, head);
            }
            StmtKind::Break => {
                let jump = self.open(Step::Jump(0));
                if let Some((.., out)) = self.around.last_mut() {
                    out.push(jump);
                }
            }
            StmtKind::Continue => {
                let head = self.around.last().map_or(0, |(head, ..)| *head);
                self.steps.push(Step::Jump(head));
            }
            StmtKind::Return => self.steps.push(Step::End(stmt.place)),
            StmtKind::Barrier { .. } | StmtKind::Collect { .. } | StmtKind::Broadcast { .. } => {
                let loops = self.around.iter().map(|(_, number, _)| *number).collect();
                self.steps.push(Step::Wait(stmt, loops));
            }
            StmtKind::Set(..)
            | StmtKind::Store { .. }
            | StmtKind::Atomic { .. }
            | StmtKind::CompareExchange { .. }
            | StmtKind::Fence { .. } => self.steps.push(Step::Plain(stmt)),
        }
    }

    /// Writes a loop's body, the jump back to its head, and its end.
    fn rounds(&mut self, head: usize, body: &'k [Stmt], out: usize) {
        let number = self.loops;
        self.loops += 1;
        self.around.push((head, number, Vec::new()));
        self.steps.push(Step::Round(number));
        self.block(body);
        self.steps.push(Step::Jump(head));
        self.close(out);
        for jump in self.around.pop().map(|(.., out)| out).unwrap_or_default() {
            self.close(jump);
        }
    }
}
