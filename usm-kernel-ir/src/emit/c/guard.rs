//! Guards of items as bounds of the loop over them.
//!
//! `if i > 0 && i < n - 1 { .. }` of each item becomes a loop from 1 to `n - 1`. A compiler makes
//! vectors of that loop without masks, and a loop inside of the guard may go around the items.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::host::Host;
use crate::kernel::{Expr, ExprKind, Kernel, Query, Stmt, StmtKind};
use crate::operator::{Binary, Unary};
use crate::phase::{Home, definition, is_of_row};
use crate::scalar::Scalar;

/// The conditions that all statements of a phase are under.
pub(super) struct Guards<'k> {
    /// Conditions that are the same for a row, and the value that each has inside.
    rows: Vec<Condition<'k>>,
    bounds: Vec<Bound<'k>>,
    /// Conditions that each item asks, and the statement that they are of.
    pub(super) rest: Vec<Condition<'k>>,
    pub(super) statement: Option<&'k Stmt>,
}

/// An expression, and its value inside of a guard.
pub(super) type Condition<'k> = (&'k Expr, bool);

/// A bound of an id in the fastest dimension, which is the same for a row.
struct Bound<'k> {
    id: Query,
    value: &'k Expr,
    /// What is added to the value where the first id inside begins; `None`: it bounds the end only.
    first: Option<u8>,
    /// The same of the id behind the last one.
    end: Option<u8>,
}

/// A kernel, the places of its variables, and those that are the same for a row.
pub(super) type Rows<'p> = (&'p Kernel, &'p [Home], &'p [bool]);

impl<'k> Guards<'k> {
    /// The guards of a phase, and the statements under them.
    pub(super) fn of(rows: Rows<'k>, body: &[&'k Stmt]) -> (Self, Vec<&'k Stmt>) {
        let mut guards = Self { rows: Vec::new(), bounds: Vec::new(), rest: Vec::new(), statement: None };
        let mut stmts = body.to_vec();
        while guards.rest.is_empty() {
            let Some(at) = stmts.iter().position(|stmt| !is_recomputed(rows, stmt)) else { break };
            let Some((condition, value, inside)) = guarded(&stmts[at..]) else { break };
            let mut conditions = Vec::new();
            conjuncts(condition, value, &mut conditions);
            let count = conditions.iter().take_while(|condition| guards.take(rows, **condition)).count();
            if count == 0 {
                break;
            }
            guards.rest = conditions.split_off(count);
            guards.statement = stmts.get(at).copied();
            stmts.truncate(at);
            stmts.extend(inside);
        }
        (guards, stmts)
    }

    /// Adds a condition, unless each item has to ask it.
    fn take(&mut self, rows: Rows<'k>, (expr, value): Condition<'k>) -> bool {
        let (kernel, _, of_row) = rows;
        if is_of_row(kernel, of_row, expr) {
            self.rows.push((expr, value));
            return true;
        }
        let ExprKind::Binary { operator, left: one, right: two } = &expr.kind else { return false };
        let operator = if value { Some(*operator) } else { operator.negated() };
        let Some(operator) = operator else { return false };
        let (id, bound, operator) = match (id_of(rows, one), id_of(rows, two)) {
            (Some(id), None) => (id, two, operator),
            (None, Some(id)) => (id, one, operator.mirrored()),
            _ => return false,
        };
        let (first, end) = match operator {
            Binary::Ge => (Some(0), None),
            Binary::Gt => (Some(1), None),
            Binary::Lt => (None, Some(0)),
            Binary::Le => (None, Some(1)),
            Binary::Eq => (Some(0), Some(1)),
            _ => return false,
        };
        let fits = is_of_row(kernel, of_row, bound);
        if fits {
            self.bounds.push(Bound { id, value: bound, first, end });
        }
        fits
    }
}

/// Whether a statement sets a variable that each phase computes anew.
fn is_recomputed((_, homes, _): Rows<'_>, stmt: &Stmt) -> bool {
    let StmtKind::Set(variable, _) = &stmt.kind else { return false };
    homes.get(variable.0 as usize) == Some(&Home::Again)
}

/// The condition of the first statement, its value inside, and what is inside, if nothing else is
/// to be done.
fn guarded<'k>(stmts: &[&'k Stmt]) -> Option<(&'k Expr, bool, Vec<&'k Stmt>)> {
    let (stmt, after) = stmts.split_first()?;
    let StmtKind::If { condition, then, other } = &stmt.kind else { return None };
    let returns = |block: &[Stmt]| matches!(block, [Stmt { kind: StmtKind::Return, .. }]);
    if after.is_empty() && other.is_empty() {
        Some((condition, true, then.iter().collect()))
    } else if returns(then) {
        Some((condition, false, other.iter().chain(after.iter().copied()).collect()))
    } else {
        None
    }
}

/// The conditions that are all needed for this one, in the order in which they are asked.
fn conjuncts<'k>(expr: &'k Expr, value: bool, conditions: &mut Vec<Condition<'k>>) {
    match (&expr.kind, value) {
        (ExprKind::Binary { operator: Binary::AndThen, left: one, right: two }, true)
        | (ExprKind::Binary { operator: Binary::OrElse, left: one, right: two }, false) => {
            conjuncts(one, value, conditions);
            conjuncts(two, value, conditions);
        }
        (ExprKind::Unary(Unary::Not, operand), _) => conjuncts(operand, !value, conditions),
        _ => conditions.push((expr, value)),
    }
}

/// The id in the fastest dimension that a 64-bit integer is.
fn id_of(rows: Rows<'_>, expr: &Expr) -> Option<Query> {
    let (kernel, homes, _) = rows;
    let mut expr = expr;
    // A chain of definitions ends: each reads variables that are set before.
    loop {
        if !matches!(expr.ty, Scalar::I64 | Scalar::U64) {
            return None;
        }
        expr = match &expr.kind {
            ExprKind::Query(id @ (Query::GlobalId | Query::LocalId), dimension) => {
                return (*dimension + 1 == kernel.dimensions).then_some(*id);
            }
            ExprKind::Cast(operand) => operand,
            ExprKind::Variable(variable) if homes.get(variable.0 as usize) == Some(&Home::Again) => {
                definition(&kernel.body, *variable)?
            }
            _ => return None,
        };
    }
}

impl Host<'_, '_> {
    /// Writes the first local id of a row that is inside of the guards, and the one behind the
    /// last.
    pub(super) fn bounds(&mut self, guards: &Guards<'_>, [from, to]: [&str; 2]) {
        self.line(&format!("ulong {from} = 0, {to} = usm_here_0;"));
        if guards.rows.is_empty() && guards.bounds.is_empty() {
            return;
        }
        self.line("{");
        let rows = guards.rows.iter().map(|(expr, _)| *expr);
        let exprs: Vec<&Expr> = rows.chain(guards.bounds.iter().map(|bound| bound.value)).collect();
        self.recompute(&exprs);
        for condition in &guards.rows {
            let outside = self.condition(*condition, false);
            self.line(&format!("if ({outside}) {to} = 0;"));
        }
        for Bound { id, value, first, end } in &guards.bounds {
            let base = if *id == Query::GlobalId { "usm_base_0" } else { "0ul" };
            let convert = if value.ty == Scalar::I64 { "usm_of_signed" } else { "usm_of_unsigned" };
            let value = self.writer.expr(value);
            if let Some(more) = first {
                self.line(&format!("{from} = usm_later({from}, {convert}({value}, {more}), {base});"));
            }
            if let Some(more) = end {
                self.line(&format!("{to} = usm_earlier({to}, {convert}({value}, {more}), {base});"));
            }
        }
        self.line("}");
    }

    /// The text that is true if a condition has its value, or has it not.
    pub(super) fn condition(&mut self, (expr, value): Condition<'_>, has: bool) -> String {
        let text = self.writer.expr(expr);
        if value == has { text } else { format!("!({text})") }
    }
}
