//! Inlines the bodies of functions into a kernel: for front ends, which inline a function at each
//! call.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::kernel::{Expr, Kernel, Place, Stmt, StmtKind, VarId, Variable};
use crate::operator::Unary;
use crate::scalar::{Literal, Scalar};

/// The body of a function without [`StmtKind::Return`], so that it ends itself and not the item. A
/// function with a result sets the variable `result` before it returns. If some path does not set
/// it, [`verify`](crate::verify) refuses its reads.
///
/// Conditional returns become branches. Returns inside loops need a flag, which may prevent a
/// proof.
#[must_use]
pub fn without_returns(kernel: &mut Kernel, body: Vec<Stmt>, result: Option<VarId>) -> Vec<Stmt> {
    if !body.iter().any(has_return) {
        return body;
    }
    if let Some((body, _)) = branches(&body) {
        return body;
    }
    let place = body.first().map_or(kernel.place, |stmt| stmt.place);
    kernel.variables.push(Variable { name: "returned".into(), ty: Scalar::Bool, place });
    let flag = VarId(kernel.variables.len() as u32 - 1);
    let mut out = vec![set(flag, false, place)];
    if let Some(result) = result {
        // It has a value at every read; the flag says whether the value counts.
        let none = Literal::integer(kernel.variable(result).ty, 0);
        out.push(Stmt::new(StmtKind::Set(result, Expr::literal(none, place)), place));
    }
    out.extend(flagged(&body, flag, false));
    out
}

fn has_return(stmt: &Stmt) -> bool {
    matches!(stmt.kind, StmtKind::Return) || stmt.blocks().into_iter().flatten().any(has_return)
}

const fn set(flag: VarId, value: bool, place: Place) -> Stmt {
    Stmt::new(StmtKind::Set(flag, Expr::literal(Literal::bool(value), place)), place)
}

/// Moves the statements behind a return into the other branch, and tells whether the block always
/// returns. `None` if that is impossible.
fn branches(body: &[Stmt]) -> Option<(Vec<Stmt>, bool)> {
    let mut out = Vec::new();
    for (index, stmt) in body.iter().enumerate() {
        match &stmt.kind {
            StmtKind::Return => return Some((out, true)),
            StmtKind::If(condition, then, other) if has_return(stmt) => {
                let ((mut then, first), (mut other, second)) = (branches(then)?, branches(other)?);
                let both = first && second;
                if !both && has_hidden(stmt, first, second) {
                    return None;
                }
                let mut always = both;
                if !both {
                    let (rest, returns) = branches(&body[index + 1..])?;
                    always = returns;
                    if first { &mut other } else { &mut then }.extend(rest);
                }
                out.push(Stmt::new(StmtKind::If(condition.clone(), then, other), stmt.place));
                return Some((out, always));
            }
            _ if has_return(stmt) => return None,
            _ => out.push(stmt.clone()),
        }
    }
    Some((out, false))
}

/// Whether a branch that continues contains a return.
fn has_hidden(stmt: &Stmt, first: bool, second: bool) -> bool {
    let blocks = stmt.blocks();
    let hidden = |index: usize, always: bool| {
        !always && blocks.get(index).is_some_and(|block| block.iter().any(has_return))
    };
    hidden(0, first) || hidden(1, second)
}

/// Rewrites returns with a flag that says whether the function has returned.
fn flagged(body: &[Stmt], flag: VarId, in_loop: bool) -> Vec<Stmt> {
    let mut out = Vec::new();
    for (index, stmt) in body.iter().enumerate() {
        let place = stmt.place;
        if !has_return(stmt) {
            out.push(stmt.clone());
            continue;
        }
        let kind = match &stmt.kind {
            StmtKind::If(condition, then, other) => {
                StmtKind::If(condition.clone(), flagged(then, flag, in_loop), flagged(other, flag, in_loop))
            }
            StmtKind::While(condition, body) => StmtKind::While(condition.clone(), flagged(body, flag, true)),
            StmtKind::For(variable, start, end, step, body) => {
                StmtKind::For(*variable, start.clone(), end.clone(), step.clone(), flagged(body, flag, true))
            }
            _ => {
                out.push(set(flag, true, place));
                if in_loop {
                    out.push(Stmt::new(StmtKind::Break, place));
                }
                return out;
            }
        };
        let leaves_loop = matches!(kind, StmtKind::While(..) | StmtKind::For(..));
        out.push(Stmt { kind, place });
        let returned = Expr::variable(flag, Scalar::Bool, place);
        if in_loop {
            // A return in a branch has already left this loop.
            if leaves_loop {
                let leave = vec![Stmt::new(StmtKind::Break, place)];
                out.push(Stmt::new(StmtKind::If(returned, leave, Vec::new()), place));
            }
            continue;
        }
        let rest = flagged(&body[index + 1..], flag, false);
        if !rest.is_empty() {
            let goes_on = Expr {
                kind: crate::kernel::ExprKind::Unary(Unary::Not, Box::new(returned)),
                ty: Scalar::Bool,
                place,
            };
            out.push(Stmt::new(StmtKind::If(goes_on, rest, Vec::new()), place));
        }
        return out;
    }
    out
}
