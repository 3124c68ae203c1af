//! Items that continue a loop alone skip the rest of its iteration by a flag, for host code.
//!
//! There a group may run a loop in several phases. An item that continues the loop in one of them
//! would still run the next.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::inline::set;
use crate::kernel::{Expr, ExprKind, Kernel, Stmt, StmtKind, VarId, Variable};
use crate::operator::Unary;
use crate::scalar::Scalar;
use crate::uniform::{Uniformity, address};

/// The kernel without a `continue` that only some items of a group reach, if it has phases.
pub(crate) fn without_lone_continues(kernel: Cow<'_, Kernel>) -> Cow<'_, Kernel> {
    if !kernel.body.iter().any(Stmt::has_barrier) {
        return kernel;
    }
    let addresses = Uniformity::of(&kernel).jumps_apart(&kernel, |kind| matches!(kind, StmtKind::Continue));
    if addresses.is_empty() {
        return kernel;
    }
    let mut is_lone = Vec::new();
    kernel.for_each(
        &mut |stmt| {
            if matches!(stmt.kind, StmtKind::Continue) {
                is_lone.push(addresses.contains(&address(stmt)));
            }
        },
        &mut |_| (),
    );
    let mut kernel = kernel.into_owned();
    let mut body = core::mem::take(&mut kernel.body);
    replace(&mut body, &mut is_lone.into_iter(), &mut None, &mut kernel.variables);
    kernel.body = body;
    Cow::Owned(kernel)
}

/// Replaces the lone ones, in the order of the text, by sets of the flag of their loop.
fn replace(
    body: &mut [Stmt],
    is_lone: &mut dyn Iterator<Item = bool>,
    flag: &mut Option<VarId>,
    variables: &mut Vec<Variable>,
) {
    for stmt in body {
        let place = stmt.place;
        match &mut stmt.kind {
            StmtKind::Continue if is_lone.next() == Some(true) => {
                let flag = *flag.get_or_insert_with(|| {
                    variables.push(Variable { name: "continued".into(), ty: Scalar::Bool, place });
                    VarId(variables.len() as u32 - 1)
                });
                *stmt = set(flag, true, place);
            }
            StmtKind::If { then, other, .. } => {
                replace(then, is_lone, flag, variables);
                replace(other, is_lone, flag, variables);
            }
            StmtKind::While(_, body) | StmtKind::For { body, .. } => {
                let mut of_loop = None;
                replace(body, is_lone, &mut of_loop, variables);
                if let Some(flag) = of_loop {
                    guard(body, flag);
                    body.insert(0, set(flag, false, place));
                }
            }
            _ => {}
        }
    }
}

/// Puts what follows a set of the flag under the condition that it is not set.
fn guard(body: &mut Vec<Stmt>, flag: VarId) {
    let Some(at) = body.iter().position(|stmt| may_set(stmt, flag)) else { return };
    let rest = body.split_off(at + 1);
    let Some(Stmt { kind: StmtKind::If { then, other, .. }, place }) = body.last_mut() else { return };
    let place = *place;
    guard(then, flag);
    guard(other, flag);
    let mut rest = rest;
    guard(&mut rest, flag);
    if !rest.is_empty() {
        let set = Expr::variable(flag, Scalar::Bool, place);
        let condition = Expr { kind: ExprKind::Unary(Unary::Not, Box::new(set)), ty: Scalar::Bool, place };
        body.push(Stmt::new(StmtKind::If { condition, then: rest, other: vec![] }, place));
    }
}

/// Whether a statement sets the flag of the loop around it.
fn may_set(stmt: &Stmt, flag: VarId) -> bool {
    match &stmt.kind {
        StmtKind::Set(variable, _) => *variable == flag,
        StmtKind::If { then, other, .. } => then.iter().chain(other).any(|stmt| may_set(stmt, flag)),
        _ => false,
    }
}
