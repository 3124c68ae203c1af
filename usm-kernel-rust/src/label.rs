//! Loops and their labels.
//!
//! The IR leaves only the innermost loop. A jump further out sets a variable and leaves the
//! innermost loop, and each loop on the way out is followed by a test of the variable.

use syn::{Label, Lifetime, Result};
use usm_kernel_ir::{Expr, Literal, Place, Scalar, Stmt, StmtKind, VarId};

use crate::scope::{Scope, refuse};

/// An enclosing loop.
pub(crate) struct Loop {
    label: Option<String>,
    /// Number of functions around it: a label is not known inside of a function that is called.
    calls: usize,
    /// Jumps from inside to loops around it.
    exits: Vec<Exit>,
}

/// Jumps to one loop.
#[derive(Clone, Copy)]
struct Exit {
    /// The loop's index among the enclosing ones.
    to: usize,
    jump: Jump,
    /// Whether an item jumps.
    variable: VarId,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Jump {
    Break,
    Continue,
}

impl Jump {
    fn stmt(self, at: Place) -> Stmt {
        Stmt::new(if self == Self::Break { StmtKind::Break } else { StmtKind::Continue }, at)
    }
}

/// Reads a loop, and adds it with the tests behind it.
pub(crate) fn enclosing(
    label: Option<&Label>,
    scope: &mut Scope,
    out: &mut Vec<Stmt>,
    read: impl FnOnce(&mut Scope) -> Result<Stmt>,
) -> Result<()> {
    let (depth, label) = (scope.loops.len(), label.map(|label| label.name.ident.to_string()));
    scope.loops.push(Loop { label, calls: scope.called.len(), exits: Vec::new() });
    let stmt = read(scope)?;
    let exits = scope.loops.pop().map_or_else(Vec::new, |found| found.exits);
    let at = stmt.place;
    let is_last = |exit: &Exit| exit.to + 1 == depth;
    for exit in exits.iter().filter(|exit| is_last(exit)) {
        out.push(Stmt::new(StmtKind::Set(exit.variable, Expr::literal(Literal::bool(false), at)), at));
    }
    out.push(stmt);
    for exit in &exits {
        let jump = if is_last(exit) { exit.jump } else { Jump::Break };
        let leaves = Expr::variable(exit.variable, Scalar::Bool, at);
        out.push(Stmt::new(
            StmtKind::If { condition: leaves, then: vec![jump.stmt(at)], other: Vec::new() },
            at,
        ));
    }
    Ok(())
}

/// Adds a jump to a loop, by default the innermost one.
pub(crate) fn jump(
    jump: Jump,
    label: Option<&Lifetime>,
    at: Place,
    scope: &mut Scope,
    out: &mut Vec<Stmt>,
) -> Result<()> {
    let innermost = scope.loops.len().wrapping_sub(1);
    let mut to = innermost;
    if let Some(label) = label {
        let (name, calls) = (label.ident.to_string(), scope.called.len());
        let is_meant = |found: &Loop| found.calls == calls && found.label.as_ref() == Some(&name);
        match scope.loops.iter().rposition(is_meant) {
            Some(found) => to = found,
            None => return refuse(label.span(), format!("no loop around this has the label `{label}`")),
        }
    }
    if to == innermost {
        out.push(jump.stmt(at));
        return Ok(());
    }
    let same = |exit: &&Exit| (exit.to, exit.jump) == (to, jump);
    let variable = match scope.loops[to + 1].exits.iter().find(same) {
        Some(exit) => exit.variable,
        None => scope.hidden("leaves", Scalar::Bool, at),
    };
    for inner in &mut scope.loops[to + 1..] {
        if !inner.exits.iter().any(|exit| exit.variable == variable) {
            inner.exits.push(Exit { to, jump, variable });
        }
    }
    out.push(Stmt::new(StmtKind::Set(variable, Expr::literal(Literal::bool(true), at)), at));
    out.push(Jump::Break.stmt(at));
    Ok(())
}
