//! Finds the values that are the same for all items of a group.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use crate::error::Refusal;
use crate::kernel::{Collection, Expr, ExprKind, Kernel, Place, Query, Space, Stmt, StmtKind};
use crate::operator::Binary;

/// Which variables may differ between the items of a group.
#[derive(Clone, Debug)]
pub struct Uniformity {
    /// For each variable, the place where it began to differ.
    reasons: Vec<Option<Place>>,
}

/// Calls `note` for what decides whether an element outside is read: the indices in an expression,
/// and the conditions under which operands with an index are evaluated. Returns whether it has an
/// index.
fn indices(expr: &Expr, note: &mut dyn FnMut(&Expr)) -> bool {
    match &expr.kind {
        ExprKind::Load(_, index) => {
            note(index);
            true
        }
        ExprKind::Binary { operator: Binary::AndThen | Binary::OrElse, left: condition, right: other } => {
            let is_lazy = indices(other, note);
            if is_lazy {
                note(condition);
            }
            indices(condition, note) | is_lazy
        }
        ExprKind::Select { condition, then: one, other } => {
            let is_lazy = indices(one, note) | indices(other, note);
            if is_lazy {
                note(condition);
            }
            indices(condition, note) | is_lazy
        }
        _ => expr.operands().into_iter().fold(false, |any, operand| any | indices(operand, note)),
    }
}

/// Receives each statement, and the place where the group's items diverged if not all of them reach
/// it.
type Report<'r> = &'r mut dyn FnMut(&Uniformity, &Stmt, Option<Place>);

/// The identity of a statement within its kernel.
pub(crate) fn address(stmt: &Stmt) -> usize {
    core::ptr::from_ref(stmt) as usize
}

/// The end of a divergence: some items do not reach the following statements.
#[derive(Clone, Copy, Default)]
struct Divergence {
    /// Until the end of the innermost loop's body.
    round: Option<Place>,
    /// Until the end of the innermost loop.
    of_loop: Option<Place>,
    /// Until the end of the kernel.
    kernel: Option<Place>,
}

impl Divergence {
    fn any(self) -> Option<Place> {
        self.kernel.or(self.of_loop).or(self.round)
    }

    fn add(&mut self, other: Self) {
        self.round = self.round.or(other.round);
        self.of_loop = self.of_loop.or(other.of_loop);
        self.kernel = self.kernel.or(other.kernel);
    }
}

impl Uniformity {
    /// Finds the variables that differ.
    #[must_use]
    pub fn of(kernel: &Kernel) -> Self {
        let mut result = Self { reasons: vec![None; kernel.variables.len()] };
        // A round adds a variable, or is the last one.
        loop {
            let before = result.reasons.iter().flatten().count();
            let _ = result.block(kernel, &kernel.body, None, &mut |_, _, _| ());
            if result.reasons.iter().flatten().count() == before {
                return result;
            }
        }
    }

    /// Whether the variable is the same for all items of a group.
    #[must_use]
    pub fn is_uniform(&self, variable: crate::VarId) -> bool {
        self.reasons.get(variable.0 as usize).is_some_and(Option::is_none)
    }

    /// The place where the value begins to differ between the items of a group; `None` if it does
    /// not.
    #[must_use]
    pub fn varies(&self, kernel: &Kernel, expr: &Expr) -> Option<Place> {
        match &expr.kind {
            ExprKind::Query(Query::LocalId | Query::GlobalId, _) => Some(expr.place),
            ExprKind::Variable(variable) => self.reasons[variable.0 as usize],
            ExprKind::Load(array, index) => match kernel.array(*array).space {
                // Without a race, no item writes an element that all items read until the next
                // barrier.
                _ if kernel.unordered.contains(array) => Some(expr.place),
                Space::Read | Space::Constant(_) | Space::Write | Space::Local(_) | Space::Extent(_) => {
                    self.varies(kernel, index)
                }
                _ => Some(expr.place),
            },
            _ => expr.operands().into_iter().find_map(|operand| self.varies(kernel, operand)),
        }
    }

    /// Refuses barriers that not all items of a group reach.
    pub(crate) fn barriers(&self, kernel: &Kernel) -> Result<(), Refusal> {
        let mut first = None;
        let mut state = self.clone();
        let _ = state.block(kernel, &kernel.body, None, &mut |_, stmt, jump| {
            first = first.or(jump.filter(|_| stmt.is_barrier()).map(|jump| (stmt.place, jump)));
        });
        let Some((barrier, jump)) = first else { return Ok(()) };
        Err(Refusal::with(
            barrier,
            jump,
            format!(
                "not all work-items of a group reach this barrier: they part at {}; move it out of the condition",
                kernel.locate(jump)
            ),
        ))
    }

    /// The addresses of the statements that all items of a group run together: loops with equal
    /// rounds, and others whose indices are equal, so that all items or none are outside.
    pub(crate) fn find_joint(&self, kernel: &Kernel) -> BTreeSet<usize> {
        let (mut all, mut jumps) = (BTreeSet::new(), BTreeSet::new());
        let mut state = self.clone();
        let _ = state.block(kernel, &kernel.body, None, &mut |found, stmt, control| {
            let mut varies = control.is_some();
            let mut note = |expr: &Expr| varies |= found.varies(kernel, expr).is_some();
            match &stmt.kind {
                // Values that no order decides say nothing of indices beside them.
                StmtKind::Store { index, .. }
                | StmtKind::Atomic { index, .. }
                | StmtKind::CompareExchange { index, .. }
                    if !kernel.unordered.is_empty() =>
                {
                    note(index);
                    stmt.for_each_expr(&mut |expr| {
                        indices(expr, &mut note);
                    });
                }
                StmtKind::Set(..) if !kernel.unordered.is_empty() => {
                    stmt.for_each_expr(&mut |expr| {
                        indices(expr, &mut note);
                    });
                }
                _ => stmt.for_each_expr(&mut note),
            }
            if varies { &mut jumps } else { &mut all }.insert(address(stmt));
        });
        &all - &jumps
    }

    /// The addresses of the jumps of a kind that not all items of a group reach together.
    pub(crate) fn jumps_apart(&self, kernel: &Kernel, is_meant: fn(&StmtKind) -> bool) -> BTreeSet<usize> {
        let mut jumps = BTreeSet::new();
        let mut state = self.clone();
        let _ = state.block(kernel, &kernel.body, None, &mut |_, stmt, parted| {
            if parted.is_some() && is_meant(&stmt.kind) {
                jumps.insert(address(stmt));
            }
        });
        jumps
    }

    /// The start of a condition or bound that differs between items: there they part, wherever the
    /// value began to differ.
    fn parts(&self, kernel: &Kernel, condition: &Expr) -> Option<Place> {
        self.varies(kernel, condition)?;
        let mut first = condition.place;
        condition.for_each(&mut |part| {
            let (one, other) = (part.place, first);
            if one.file == other.file && (one.line, one.column) < (other.line, other.column) {
                first = one;
            }
        });
        Some(first)
    }

    fn set(&mut self, variable: crate::VarId, reason: Option<Place>) {
        let reasons = &mut self.reasons[variable.0 as usize];
        *reasons = reasons.or(reason);
    }

    fn block(
        &mut self,
        kernel: &Kernel,
        body: &[Stmt],
        mut control: Option<Place>,
        report: Report<'_>,
    ) -> Divergence {
        let mut divergence = Divergence::default();
        for stmt in body {
            let inner = self.stmt(kernel, stmt, control, report);
            divergence.add(inner);
            control = control.or(inner.any());
        }
        divergence
    }

    fn stmt(
        &mut self,
        kernel: &Kernel,
        stmt: &Stmt,
        control: Option<Place>,
        report: Report<'_>,
    ) -> Divergence {
        report(self, stmt, control);
        match &stmt.kind {
            StmtKind::Set(variable, value) => {
                let reason = control.or(self.varies(kernel, value));
                self.set(*variable, reason);
            }
            StmtKind::Store { .. } | StmtKind::Fence { .. } => {}
            StmtKind::Collect { collection, variable, .. } => {
                let varies = (*collection != Collection::Reduce).then_some(stmt.place);
                self.set(*variable, control.or(varies));
            }
            StmtKind::Broadcast { variable, from, .. } => {
                let varies = self.varies(kernel, from);
                self.set(*variable, control.or(varies));
            }
            StmtKind::Atomic { old, .. } | StmtKind::CompareExchange { old, .. } => {
                if let Some(old) = old {
                    self.set(*old, Some(stmt.place));
                }
            }
            StmtKind::If { condition, then, other } => {
                let control = control.or(self.parts(kernel, condition));
                let mut divergence = self.block(kernel, then, control, report);
                divergence.add(self.block(kernel, other, control, report));
                return divergence;
            }
            StmtKind::While(condition, body) => {
                let reason = control.or(self.parts(kernel, condition));
                return self.rounds(kernel, (stmt, body), reason, report);
            }
            StmtKind::For { variable, start, end, step, body } => {
                let bounds = [start, end, step].into_iter().find_map(|bound| self.parts(kernel, bound));
                let reason = control.or(bounds);
                // Inside, the value is this loop's, whatever others do with the variable.
                let at = variable.0 as usize;
                let outer = core::mem::replace(&mut self.reasons[at], reason);
                let divergence = self.rounds(kernel, (stmt, body), reason, report);
                self.set(*variable, outer);
                return divergence;
            }
            StmtKind::Break => return Divergence { of_loop: control, ..Divergence::default() },
            StmtKind::Continue => return Divergence { round: control, ..Divergence::default() },
            StmtKind::Return => return Divergence { kernel: control, ..Divergence::default() },
            StmtKind::Barrier { .. } => {}
        }
        Divergence::default()
    }

    /// The body of a loop: an item that left in one round is missing in the next.
    fn rounds(
        &mut self,
        kernel: &Kernel,
        (stmt, body): (&Stmt, &[Stmt]),
        control: Option<Place>,
        report: Report<'_>,
    ) -> Divergence {
        let first = self.block(kernel, body, control, report);
        let cause = first.of_loop.or(first.kernel);
        if control.is_none() && cause.is_some() {
            report(self, stmt, cause);
            let _ = self.block(kernel, body, cause, report);
        }
        // An item that left keeps the number of its last iteration.
        if let StmtKind::For { variable, .. } = &stmt.kind {
            self.set(*variable, cause);
        }
        Divergence { kernel: first.kernel, ..Divergence::default() }
    }
}
