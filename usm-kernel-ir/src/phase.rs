//! Splits a kernel at barriers: into parts that a group runs once, and phases that its items run
//! one after the other.

use alloc::vec;
use alloc::vec::Vec;

use crate::kernel::{Expr, ExprKind, Kernel, Query, Stmt, StmtKind, VarId, for_each};
use crate::uniform::Uniformity;

/// A part of a group's work.
#[derive(Clone, Debug)]
pub enum Part<'k> {
    /// A phase: each item runs these statements. Its end is a barrier.
    Items(Vec<&'k Stmt>),
    /// Statements that run once for each group.
    Set(VarId, &'k Expr),
    /// A branch that runs once for each group, with phases inside.
    If(&'k Expr, Vec<Part<'k>>, Vec<Part<'k>>),
    /// A loop that runs once for each group, with phases inside.
    While(&'k Expr, Vec<Part<'k>>),
    /// A counting loop that runs once for each group, with phases inside.
    For(VarId, [&'k Expr; 3], Vec<Part<'k>>),
    /// Leaves the innermost loop of the group.
    Break,
    /// Continues the innermost loop of the group.
    Continue,
    /// Ends the group.
    Return,
}

/// The place of a variable's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// In one phase.
    Phase,
    /// In the group: the same for all items.
    Group,
    /// Recomputed in every phase that reads it: a function of ids only.
    Again,
    /// In memory of the item, because it lives across a barrier.
    Kept,
}

/// The parts of a kernel, and the places of its variables.
#[derive(Clone, Debug)]
pub struct Phases<'k> {
    /// The parts of a group's work.
    pub parts: Vec<Part<'k>>,
    /// For each variable of the kernel.
    pub homes: Vec<Home>,
}

/// Splits a verified kernel. Of a collective operation only the barrier counts.
#[must_use]
pub fn phases(kernel: &Kernel) -> Phases<'_> {
    let uniformity = Uniformity::of(kernel);
    let mut splitter = Splitter {
        kernel,
        group_flags: vec![false; kernel.variables.len()],
        barriers: kernel.body.iter().any(Stmt::has_barrier),
        is_function_of_ids: find_recomputed(kernel),
        uniformity,
    };
    // The group's variables depend on the parts that are split, and those depend on the group's
    // variables.
    loop {
        let parts = splitter.block(&kernel.body, false);
        let mut users = vec![Vec::new(); kernel.variables.len()];
        let mut phase = 0;
        let mut fresh = Vec::new();
        uses(&parts, &mut phase, &mut users, &mut fresh);
        for (index, users) in users.iter().enumerate() {
            let variable = VarId(index as u32);
            if users.len() > 1
                && splitter.uniformity.is_uniform(variable)
                && !splitter.is_recomputed(variable)
            {
                fresh.push(variable);
            }
        }
        fresh.retain(|variable| !splitter.group_flags[variable.0 as usize]);
        if fresh.is_empty() {
            let homes = users.iter().enumerate().map(|(index, users)| {
                let variable = VarId(index as u32);
                match () {
                    () if splitter.group_flags[index] => Home::Group,
                    () if splitter.is_recomputed(variable) => Home::Again,
                    () if users.len() <= 1 => Home::Phase,
                    () => Home::Kept,
                }
            });
            return Phases { homes: homes.collect(), parts };
        }
        for variable in fresh {
            splitter.group_flags[variable.0 as usize] = true;
        }
    }
}

struct Splitter<'k> {
    kernel: &'k Kernel,
    uniformity: Uniformity,
    group_flags: Vec<bool>,
    barriers: bool,
    /// Variables that can be recomputed from ids at every read.
    is_function_of_ids: Vec<bool>,
}

impl<'k> Splitter<'k> {
    fn block(&self, body: &'k [Stmt], in_loop: bool) -> Vec<Part<'k>> {
        let mut parts = Vec::new();
        let mut items = Vec::new();
        for stmt in body {
            if !self.is_of_group(stmt, in_loop) {
                items.push(stmt);
                continue;
            }
            if !items.is_empty() {
                parts.push(Part::Items(core::mem::take(&mut items)));
            }
            parts.push(match &stmt.kind {
                StmtKind::Barrier { .. } => continue,
                StmtKind::Set(variable, value) => Part::Set(*variable, value),
                StmtKind::If { condition, then, other } => {
                    Part::If(condition, self.block(then, in_loop), self.block(other, in_loop))
                }
                StmtKind::While(condition, body) => Part::While(condition, self.block(body, true)),
                StmtKind::For { variable, start, end, step, body } => {
                    Part::For(*variable, [start, end, step], self.block(body, true))
                }
                StmtKind::Break => Part::Break,
                StmtKind::Continue => Part::Continue,
                StmtKind::Return => Part::Return,
                StmtKind::Store { .. }
                | StmtKind::Atomic { .. }
                | StmtKind::CompareExchange { .. }
                | StmtKind::Collect { .. }
                | StmtKind::Broadcast { .. }
                | StmtKind::Fence { .. } => {
                    items.push(stmt);
                    continue;
                }
            });
        }
        if !items.is_empty() {
            parts.push(Part::Items(items));
        }
        parts
    }

    /// Whether the group runs it, instead of each item.
    fn is_of_group(&self, stmt: &Stmt, in_loop: bool) -> bool {
        if stmt.has_barrier() || self.sets_grouped(stmt) {
            return true;
        }
        let uniform = |expr: &Expr| self.uniformity.varies(self.kernel, expr).is_none();
        match &stmt.kind {
            StmtKind::Return => self.barriers,
            StmtKind::Break | StmtKind::Continue => in_loop,
            StmtKind::If { condition, .. } if self.barriers => uniform(condition) && exits(stmt, in_loop),
            _ => false,
        }
    }

    fn sets_grouped(&self, stmt: &Stmt) -> bool {
        let mut sets = false;
        for_each(
            core::slice::from_ref(stmt),
            &mut |stmt| sets |= stmt.sets().is_some_and(|variable| self.group_flags[variable.0 as usize]),
            &mut |_| (),
        );
        sets
    }

    fn is_recomputed(&self, variable: VarId) -> bool {
        self.is_function_of_ids[variable.0 as usize]
    }
}

/// The variables with one value only, which is a function of ids. Such a value reads variables that
/// are set before it, so one pass suffices.
fn find_recomputed(kernel: &Kernel) -> Vec<bool> {
    let mut counts = vec![0_u32; kernel.variables.len()];
    let mut count = |stmt: &Stmt| stmt.sets().into_iter().for_each(|id| counts[id.0 as usize] += 1);
    kernel.for_each(&mut count, &mut |_| ());
    let mut is_function = vec![false; kernel.variables.len()];
    let mut note = |stmt: &Stmt| {
        if let StmtKind::Set(variable, value) = &stmt.kind {
            let at = variable.0 as usize;
            is_function[at] = counts[at] == 1 && is_pure(value, &is_function);
        }
    };
    kernel.for_each(&mut note, &mut |_| ());
    is_function
}

fn is_pure(expr: &Expr, is_function: &[bool]) -> bool {
    match &expr.kind {
        ExprKind::Load(..) => false,
        ExprKind::Variable(variable) => is_function[variable.0 as usize],
        _ => expr.operands().into_iter().all(|operand| is_pure(operand, is_function)),
    }
}

/// The first value of a variable.
#[must_use]
pub fn definition(body: &[Stmt], id: VarId) -> Option<&Expr> {
    body.iter().find_map(|stmt| match &stmt.kind {
        StmtKind::Set(variable, value) if *variable == id => Some(value),
        _ => stmt.blocks().into_iter().find_map(|block| definition(block, id)),
    })
}

/// Whether it contains a jump out of the enclosing loop or the kernel.
fn exits(stmt: &Stmt, in_loop: bool) -> bool {
    match &stmt.kind {
        StmtKind::Return => true,
        StmtKind::Break | StmtKind::Continue => in_loop,
        StmtKind::If { then, other, .. } => then.iter().chain(other).any(|stmt| exits(stmt, in_loop)),
        StmtKind::While(_, body) | StmtKind::For { body, .. } => body.iter().any(|stmt| exits(stmt, false)),
        _ => false,
    }
}

/// Records for each variable the phases that use it, and the variables that the group reads or
/// sets.
fn uses(parts: &[Part<'_>], phase: &mut u32, users: &mut Vec<Vec<u32>>, of_groups: &mut Vec<VarId>) {
    for part in parts {
        match part {
            Part::Items(body) => {
                let mut used = Vec::new();
                for stmt in body {
                    let stmts = core::slice::from_ref(*stmt);
                    for_each(stmts, &mut |stmt| used.extend(stmt.sets()), &mut |_| ());
                    for_each(stmts, &mut |_| (), &mut |expr| {
                        if let ExprKind::Variable(variable) = expr.kind {
                            used.push(variable);
                        }
                    });
                }
                for variable in used {
                    let users = &mut users[variable.0 as usize];
                    if users.last() != Some(phase) {
                        users.push(*phase);
                    }
                }
                *phase += 1;
            }
            Part::Set(variable, value) => {
                of_group(value, of_groups);
                of_groups.push(*variable);
            }
            Part::If(condition, then, other) => {
                of_group(condition, of_groups);
                uses(then, phase, users, of_groups);
                uses(other, phase, users, of_groups);
            }
            Part::While(condition, body) => {
                of_group(condition, of_groups);
                uses(body, phase, users, of_groups);
            }
            Part::For(variable, bounds, body) => {
                bounds.iter().for_each(|bound| of_group(bound, of_groups));
                of_groups.push(*variable);
                uses(body, phase, users, of_groups);
            }
            Part::Break | Part::Continue | Part::Return => {}
        }
    }
}

fn of_group(expr: &Expr, variables: &mut Vec<VarId>) {
    expr.for_each(&mut |expr| {
        if let ExprKind::Variable(variable) = expr.kind {
            variables.push(variable);
        }
    });
}

/// Adds a variable to those that a phase uses, after those that its recomputation reads.
pub fn needed(kernel: &Kernel, homes: &[Home], variable: VarId, used: &mut Vec<VarId>) {
    // A chain of variables may be longer than the stack.
    let mut open = vec![(variable, reads(kernel, homes, variable))];
    while let Some((variable, reads_left)) = open.last_mut() {
        let variable = *variable;
        if used.contains(&variable) {
            open.pop();
        } else if let Some(next) = reads_left.pop() {
            open.push((next, reads(kernel, homes, next)));
        } else {
            used.push(variable);
            open.pop();
        }
    }
}

/// The variables that a recomputation reads, the first one last.
fn reads(kernel: &Kernel, homes: &[Home], variable: VarId) -> Vec<VarId> {
    let mut variables = Vec::new();
    if homes.get(variable.0 as usize) == Some(&Home::Again) {
        if let Some(value) = definition(&kernel.body, variable) {
            of_group(value, &mut variables);
        }
    }
    variables.reverse();
    variables
}

/// The variables that are the same for the items of a row of a group.
pub(crate) fn of_row(kernel: &Kernel, homes: &[Home]) -> Vec<bool> {
    let mut rows: Vec<bool> = homes.iter().map(|home| *home == Home::Group).collect();
    let mut note = |stmt: &Stmt| {
        if let StmtKind::Set(variable, value) = &stmt.kind {
            let at = variable.0 as usize;
            rows[at] |= homes[at] == Home::Again && is_of_row(kernel, &rows, value);
        }
    };
    kernel.for_each(&mut note, &mut |_| ());
    rows
}

/// Whether a value is the same for the items of a row of a group.
pub(crate) fn is_of_row(kernel: &Kernel, rows: &[bool], expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Load(..) => false,
        ExprKind::Query(Query::LocalId | Query::GlobalId, dimension) => *dimension + 1 != kernel.dimensions,
        ExprKind::Variable(id) => rows[id.0 as usize],
        _ => expr.operands().into_iter().all(|operand| is_of_row(kernel, rows, operand)),
    }
}

/// Whether an expression depends on the item's position.
#[must_use]
pub fn needs_item(expr: &Expr) -> bool {
    let mut needs = false;
    expr.for_each(&mut |expr| {
        needs |= matches!(expr.kind, ExprKind::Query(Query::LocalId | Query::GlobalId, _));
    });
    needs
}
