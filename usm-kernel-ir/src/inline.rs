//! Inlines the bodies of functions into a kernel: for front ends, which inline a function at each
//! call.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use crate::kernel::{Expr, Kernel, Place, Stmt, StmtKind, VarId, Variable, for_each};
use crate::operator::Unary;
use crate::phase::{Part, phases};
use crate::scalar::{Literal, Scalar};
use crate::uniform::{Uniformity, address};

/// The body of a function without [`StmtKind::Return`], so that it ends itself and not the item. A
/// function sets the variables of its `results` before it returns. If some path does not set one,
/// [`verify`](crate::verify) refuses its reads.
///
/// Conditional returns become branches. Returns inside loops need a flag, which may prevent a
/// proof.
#[must_use]
pub fn without_returns(kernel: &mut Kernel, body: Vec<Stmt>, results: &[VarId]) -> Vec<Stmt> {
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
    for result in results.iter().copied() {
        // It has a value at every read; the flag says whether the value counts.
        let none = Literal::integer(kernel.variable(result).ty, 0);
        out.push(Stmt::new(StmtKind::Set(result, Expr::literal(none, place)), place));
    }
    out.extend(set_flag(&body, &has_return, flag, false));
    out
}

fn has_return(stmt: &Stmt) -> bool {
    matches!(stmt.kind, StmtKind::Return) || stmt.blocks().into_iter().flatten().any(has_return)
}

pub(crate) const fn set(flag: VarId, value: bool, place: Place) -> Stmt {
    Stmt::new(StmtKind::Set(flag, Expr::literal(Literal::bool(value), place)), place)
}

/// Moves the statements behind a return into the other branch, and tells whether the block always
/// returns. `None` if that is impossible.
fn branches(body: &[Stmt]) -> Option<(Vec<Stmt>, bool)> {
    let mut out = Vec::new();
    for (index, stmt) in body.iter().enumerate() {
        match &stmt.kind {
            StmtKind::Return => return Some((out, true)),
            StmtKind::If { condition, then, other } if has_return(stmt) => {
                let ((mut then, first), (mut other, second)) = (branches(then)?, branches(other)?);
                let both = first && second;
                if !both && has_hidden(stmt, first, second) {
                    return None;
                }
                let mut is_certain = both;
                if !both {
                    let (rest, returns) = branches(&body[index + 1..])?;
                    is_certain = returns;
                    if first { &mut other } else { &mut then }.extend(rest);
                }
                out.push(Stmt::new(StmtKind::If { condition: condition.clone(), then, other }, stmt.place));
                return Some((out, is_certain));
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
    let variable_of = |index: usize, is_certain: bool| {
        !is_certain && blocks.get(index).is_some_and(|block| block.iter().any(has_return))
    };
    variable_of(0, first) || variable_of(1, second)
}

/// Rewrites the returns of the statements for which `returns` holds, with a flag that says whether
/// the function has returned.
fn set_flag(body: &[Stmt], returns: &dyn Fn(&Stmt) -> bool, flag: VarId, in_loop: bool) -> Vec<Stmt> {
    let block = |body: &[Stmt], in_loop| set_flag(body, returns, flag, in_loop);
    let mut out = Vec::new();
    for (index, stmt) in body.iter().enumerate() {
        let place = stmt.place;
        if !returns(stmt) {
            out.push(stmt.clone());
            continue;
        }
        let kind = match &stmt.kind {
            StmtKind::If { condition, then, other } => StmtKind::If {
                condition: condition.clone(),
                then: block(then, in_loop),
                other: block(other, in_loop),
            },
            StmtKind::While(condition, body) => StmtKind::While(condition.clone(), block(body, true)),
            StmtKind::For { variable, start, end, step, body } => StmtKind::For {
                variable: *variable,
                start: start.clone(),
                end: end.clone(),
                step: step.clone(),
                body: block(body, true),
            },
            _ => {
                out.push(set(flag, true, place));
                if in_loop {
                    out.push(Stmt::new(StmtKind::Break, place));
                }
                return out;
            }
        };
        let leaves_loop = matches!(kind, StmtKind::While(..) | StmtKind::For { .. });
        out.push(Stmt { kind, place });
        let has_returned = Expr::variable(flag, Scalar::Bool, place);
        if in_loop {
            // A return in a branch has already left this loop.
            if leaves_loop {
                let leave = vec![Stmt::new(StmtKind::Break, place)];
                out.push(Stmt::new(
                    StmtKind::If { condition: has_returned, then: leave, other: Vec::new() },
                    place,
                ));
            }
            continue;
        }
        let rest = block(&body[index + 1..], false);
        if !rest.is_empty() {
            let goes_on = Expr {
                kind: crate::kernel::ExprKind::Unary(Unary::Not, Box::new(has_returned)),
                ty: Scalar::Bool,
                place,
            };
            out.push(Stmt::new(StmtKind::If { condition: goes_on, then: rest, other: Vec::new() }, place));
        }
        return out;
    }
    out
}

/// Makes items that have returned skip the phases that follow, for host code. There a return in a
/// phase ends that phase only.
pub(crate) fn without_early_returns(mut kernel: Cow<'_, Kernel>) -> Cow<'_, Kernel> {
    if !kernel.body.iter().any(Stmt::has_barrier) || !kernel.body.iter().any(has_return) {
        return kernel;
    }
    // First the returns that all items of a group reach together. Barriers may follow them, and a
    // flag that differs between the items would divide the items there.
    for is_apart in [false, true] {
        let parts = phases(&kernel).parts;
        if !enters_again(&parts, &mut false) {
            return kernel;
        }
        let jumps = Uniformity::of(&kernel).jumps_apart(&kernel, |kind| matches!(kind, StmtKind::Return));
        let mut returns = BTreeSet::new();
        in_phases(&parts, &mut |stmt| {
            if jumps.contains(&address(stmt)) == is_apart {
                returns.insert(address(stmt));
            }
        });
        if returns.is_empty() {
            continue;
        }
        let place = kernel.place;
        let flag = VarId(kernel.variables.len() as u32);
        let mut body = vec![set(flag, false, place)];
        body.extend(set_flag(&kernel.body, &|stmt| has_one_of(stmt, &returns), flag, false));
        let variable = Variable { name: "returned".into(), ty: Scalar::Bool, place };
        let mut result = kernel.into_owned();
        result.variables.push(variable);
        result.body = body;
        kernel = Cow::Owned(result);
    }
    kernel
}

/// Visits the returns in phases.
fn in_phases(parts: &[Part<'_>], visit: &mut dyn FnMut(&Stmt)) {
    for part in parts {
        match part {
            Part::Items(stmts) => {
                for stmt in stmts {
                    for_each(
                        core::slice::from_ref(*stmt),
                        &mut |stmt| {
                            if matches!(stmt.kind, StmtKind::Return) {
                                visit(stmt);
                            }
                        },
                        &mut |_| (),
                    );
                }
            }
            Part::If(_, then, other) => {
                in_phases(then, visit);
                in_phases(other, visit);
            }
            Part::While(_, body) | Part::For(.., body) => in_phases(body, visit),
            Part::Set(..) | Part::Break | Part::Continue | Part::Return => {}
        }
    }
}

/// Whether a phase may follow one in which items return.
fn enters_again(parts: &[Part<'_>], is_left: &mut bool) -> bool {
    let mut repeats = false;
    for part in parts {
        match part {
            Part::Items(stmts) => {
                repeats |= *is_left;
                *is_left |= stmts.iter().any(|stmt| has_return(stmt));
            }
            Part::If(_, then, other) => {
                let mut of_other = *is_left;
                repeats |= enters_again(then, is_left) || enters_again(other, &mut of_other);
                *is_left |= of_other;
            }
            Part::While(_, body) | Part::For(.., body) => {
                // A round follows another one.
                repeats |= enters_again(body, is_left) || enters_again(body, is_left);
            }
            Part::Set(..) | Part::Break | Part::Continue | Part::Return => {}
        }
    }
    repeats
}

fn has_one_of(stmt: &Stmt, addresses: &BTreeSet<usize>) -> bool {
    addresses.contains(&address(stmt))
        || stmt.blocks().into_iter().flatten().any(|inner| has_one_of(inner, addresses))
}
