//! Guards of items as bounds of the host's loops over them.
//!
//! `if i > 0 && i < n - 1 { .. }` of each item becomes a loop from 1 to `n - 1`. A compiler makes
//! vectors of that loop without masks, and a loop inside of the guard may go around the items. The
//! writers for the host spell what this finds, in Rust or C.

use alloc::vec::Vec;

use crate::kernel::{Expr, ExprKind, Kernel, Query, Stmt, StmtKind};
use crate::operator::{Binary, Unary};
use crate::phase::{Home, definition, is_of_row};
use crate::scalar::Scalar;

/// A kernel, and the place of a phase's bounds in it.
#[derive(Clone, Copy)]
pub(super) struct Site<'k> {
    pub(super) kernel: &'k Kernel,
    /// The places of the kernel's variables.
    pub(super) homes: &'k [Home],
    pub(super) level: Level<'k>,
}

/// The loops that bounds stand before.
#[derive(Clone, Copy)]
pub(super) enum Level<'k> {
    /// Those of all dimensions. Ids and bounds are unsigned; an id may have a summand. A bound
    /// behind a condition of the items counts too: bounds read no memory.
    Group,
    /// That of the fastest dimension, inside of the others, with the variables that are the same
    /// for a row. Ids and bounds may be signed. A condition of the items keeps its place: a
    /// function with checks records the index in it.
    Row(&'k [bool]),
}

/// The conditions that the statements of a phase are under.
pub(super) struct Guards<'k> {
    /// Conditions that are the same for all items of a row; at [`Level::Row`] only.
    pub(super) rows: Vec<Condition<'k>>,
    pub(super) bounds: Vec<Bound<'k>>,
    /// Statements before the conditions. Each computes a value of ids.
    pub(super) prelude: Vec<&'k Stmt>,
    /// Conditions that each item asks.
    pub(super) rest: Vec<Condition<'k>>,
    /// The statement that these conditions are of.
    pub(super) statement: Option<&'k Stmt>,
    /// Statements under all conditions.
    pub(super) body: Vec<&'k Stmt>,
}

/// An expression, and its value inside of a guard.
#[derive(Clone, Copy)]
pub(super) struct Condition<'k> {
    pub(super) expr: &'k Expr,
    pub(super) value: bool,
    /// The position of the bound with a summand that it became. Where a sum may wrap, the bound
    /// does not count, and items ask.
    pub(super) bound: Option<usize>,
}

/// A bound of an id, which all items of its level share.
pub(super) struct Bound<'k> {
    /// [`Query::GlobalId`] or [`Query::LocalId`].
    pub(super) id: Query,
    pub(super) dimension: u8,
    /// What is added to the id before it is compared. The sum may wrap.
    pub(super) summand: Option<&'k Expr>,
    pub(super) limit: &'k Expr,
    /// What is added to the limit where the first id inside begins; `None`: it bounds the end only.
    pub(super) first: Option<u8>,
    /// The same of the id behind the last one.
    pub(super) end: Option<u8>,
}

/// The place of a condition.
enum Verdict {
    /// Before the loops.
    Outside,
    /// In the loops too, unless the bound at this position counts.
    Both(usize),
    Inside,
}

impl<'k> Guards<'k> {
    /// The guards of a phase, and the statements under them.
    pub(super) fn of(site: Site<'k>, phase: &[&'k Stmt]) -> Self {
        let mut guards = Self {
            rows: Vec::new(),
            bounds: Vec::new(),
            prelude: Vec::new(),
            rest: Vec::new(),
            statement: None,
            body: phase.to_vec(),
        };
        while guards.rest.is_empty() {
            let Some(at) = guards.body.iter().position(|stmt| !site.is_prelude(stmt)) else { break };
            let Some((condition, inside)) = guard_of(&guards.body[at..]) else { break };
            let mut conditions = Vec::new();
            conjuncts(condition, &mut conditions);
            if !guards.sort(site, &conditions) {
                break;
            }
            guards.statement = guards.body.get(at).copied();
            guards.prelude.extend(guards.body.drain(..at));
            guards.body = inside;
        }
        guards
    }

    /// Adds the conditions of a statement; `false`, and nothing is added, if each item has to ask
    /// them all.
    fn sort(&mut self, site: Site<'k>, conditions: &[Condition<'k>]) -> bool {
        let mut rest = Vec::new();
        let mut is_guard = false;
        for condition in conditions {
            let keeps_order = matches!(site.level, Level::Row(_));
            let verdict = match keeps_order && !rest.is_empty() {
                true => Verdict::Inside,
                false => self.add(site, *condition),
            };
            match verdict {
                Verdict::Outside => is_guard = true,
                Verdict::Both(bound) => {
                    is_guard = true;
                    rest.push(Condition { bound: Some(bound), ..*condition });
                }
                Verdict::Inside => rest.push(*condition),
            }
        }
        if is_guard {
            self.rest = rest;
        }
        is_guard
    }

    /// Adds a condition, unless each item has to ask it.
    fn add(&mut self, site: Site<'k>, condition: Condition<'k>) -> Verdict {
        if matches!(site.level, Level::Row(_)) && site.is_shared(condition.expr) {
            self.rows.push(condition);
            return Verdict::Outside;
        }
        let Some(bound) = site.bound(condition) else { return Verdict::Inside };
        let verdict =
            if bound.summand.is_some() { Verdict::Both(self.bounds.len()) } else { Verdict::Outside };
        self.bounds.push(bound);
        verdict
    }
}

impl<'k> Site<'k> {
    /// Whether a statement before a guard may stay before it: it sets a variable that each phase
    /// computes anew, or, of a group's bounds, an id.
    fn is_prelude(&self, stmt: &Stmt) -> bool {
        let StmtKind::Set(variable, value) = &stmt.kind else { return false };
        let is_id = matches!(value.kind, ExprKind::Query(..));
        self.homes.get(variable.0 as usize) == Some(&Home::Again)
            || (is_id && matches!(self.level, Level::Group))
    }

    /// Whether an expression has one value for all items of the level, and reads no memory.
    fn is_shared(&self, expr: &Expr) -> bool {
        match (self.level, &expr.kind) {
            (Level::Row(rows), _) => is_of_row(self.kernel, rows, expr),
            (_, ExprKind::Load(..) | ExprKind::Query(Query::LocalId | Query::GlobalId, _)) => false,
            (_, ExprKind::Variable(id)) => self.homes.get(id.0 as usize) == Some(&Home::Group),
            _ => expr.operands().into_iter().all(|operand| self.is_shared(operand)),
        }
    }

    /// The bound that a comparison is.
    fn bound(&self, Condition { expr, value, .. }: Condition<'k>) -> Option<Bound<'k>> {
        let ExprKind::Binary { operator, left, right } = &expr.kind else { return None };
        let operator = if value { *operator } else { operator.negated()? };
        let (((id, dimension), summand), limit, operator) = match (self.sum(left), self.sum(right)) {
            (Some(sum), None) => (sum, right, operator),
            (None, Some(sum)) => (sum, left, operator.mirrored()),
            _ => return None,
        };
        let (first, end) = match (operator, summand) {
            (Binary::Lt, _) => (None, Some(0)),
            (_, Some(_)) => return None,
            (Binary::Le, _) => (None, Some(1)),
            (Binary::Ge, _) => (Some(0), None),
            (Binary::Gt, _) => (Some(1), None),
            (Binary::Eq, _) => (Some(0), Some(1)),
            _ => return None,
        };
        self.is_shared(limit).then_some(Bound { id, dimension, summand, limit, first, end })
    }

    /// The id that an expression is, and what is added to it.
    fn sum(&self, expr: &'k Expr) -> Option<((Query, u8), Option<&'k Expr>)> {
        if let Some(id) = self.id(expr) {
            return Some((id, None));
        }
        let ExprKind::Binary { operator: Binary::Add, left, right } = &expr.kind else { return None };
        if matches!(self.level, Level::Row(_)) {
            return None;
        }
        let (id, summand) = match (self.id(left), self.id(right)) {
            (Some(id), None) => (id, right),
            (None, Some(id)) => (id, left),
            _ => return None,
        };
        self.is_shared(summand).then_some((id, Some(summand)))
    }

    /// The id that a 64-bit integer is, and its dimension.
    fn id(&self, expr: &Expr) -> Option<(Query, u8)> {
        if matches!(self.level, Level::Group) && expr.ty != Scalar::U64 {
            return None;
        }
        let mut expr = expr;
        // A chain of definitions ends: each reads variables that are set before.
        loop {
            if !matches!(expr.ty, Scalar::I64 | Scalar::U64) {
                return None;
            }
            expr = match &expr.kind {
                ExprKind::Query(id @ (Query::GlobalId | Query::LocalId), dimension) => {
                    let is_fastest = *dimension + 1 == self.kernel.dimensions;
                    let is_of_level = is_fastest || matches!(self.level, Level::Group);
                    return is_of_level.then_some((*id, *dimension));
                }
                ExprKind::Cast(operand) => operand,
                ExprKind::Variable(id) if self.homes.get(id.0 as usize) == Some(&Home::Again) => {
                    definition(&self.kernel.body, *id)?
                }
                _ => return None,
            };
        }
    }
}

/// The condition of the first statement, and what is inside, if nothing else is to be done.
fn guard_of<'k>(stmts: &[&'k Stmt]) -> Option<(Condition<'k>, Vec<&'k Stmt>)> {
    let (stmt, after) = stmts.split_first()?;
    let StmtKind::If { condition, then, other } = &stmt.kind else { return None };
    let condition = |value| Condition { expr: condition, value, bound: None };
    let returns = |block: &[Stmt]| matches!(block, [Stmt { kind: StmtKind::Return, .. }]);
    if after.is_empty() && other.is_empty() {
        Some((condition(true), then.iter().collect()))
    } else if returns(then) {
        Some((condition(false), other.iter().chain(after.iter().copied()).collect()))
    } else {
        None
    }
}

/// The conditions that are all needed for this one, in the order in which they are asked.
fn conjuncts<'k>(condition: Condition<'k>, conditions: &mut Vec<Condition<'k>>) {
    let of = |expr, value| Condition { expr, value, bound: None };
    let value = condition.value;
    match (&condition.expr.kind, value) {
        (ExprKind::Binary { operator: Binary::AndThen, left, right }, true)
        | (ExprKind::Binary { operator: Binary::OrElse, left, right }, false) => {
            conjuncts(of(left, value), conditions);
            conjuncts(of(right, value), conditions);
        }
        (ExprKind::Unary(Unary::Not, operand), _) => conjuncts(of(operand, !value), conditions),
        _ => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests;
