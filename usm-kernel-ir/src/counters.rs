//! Gives each counting loop a variable of its own, for host code.
//!
//! A variable has one place for a whole kernel: with the group if its loops contain barriers, with
//! the item otherwise. Two loops that share a variable would have to agree. Items may leave one of
//! them alone, which a loop of the group cannot do.

use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;

use crate::kernel::{Expr, ExprKind, Kernel, Stmt, StmtKind, VarId, Variable};

/// How a kernel uses a variable.
#[derive(Clone, Copy, Default)]
struct Uses {
    loops: u32,
    /// Sets by other statements than counting loops.
    sets: u32,
    /// Whether it is read outside of the loops that count with it.
    is_read_outside: bool,
}

impl Uses {
    fn is_shared(self) -> bool {
        self.loops > 0 && (self.loops > 1 || self.sets > 0 || self.is_read_outside)
    }
}

/// The kernel with a variable for each counting loop.
pub(crate) fn with_own_counters(kernel: Cow<'_, Kernel>) -> Cow<'_, Kernel> {
    let mut uses = vec![Uses::default(); kernel.variables.len()];
    note(&kernel.body, &mut Vec::new(), &mut uses);
    if !uses.iter().any(|uses| uses.is_shared()) {
        return kernel;
    }
    let mut kernel = kernel.into_owned();
    let mut body = core::mem::take(&mut kernel.body);
    divide(&mut body, &uses, &mut kernel.variables);
    kernel.body = body;
    Cow::Owned(kernel)
}

/// Notes the uses of variables; `counters` are those of the loops around.
fn note(body: &[Stmt], counters: &mut Vec<VarId>, uses: &mut [Uses]) {
    for stmt in body {
        stmt.for_each_expr(&mut |expr| {
            expr.for_each(&mut |expr| {
                if let ExprKind::Variable(variable) = expr.kind {
                    uses[variable.0 as usize].is_read_outside |= !counters.contains(&variable);
                }
            });
        });
        if let StmtKind::For { variable, body, .. } = &stmt.kind {
            uses[variable.0 as usize].loops += 1;
            counters.push(*variable);
            note(body, counters, uses);
            counters.pop();
            continue;
        }
        if let Some(variable) = stmt.sets() {
            uses[variable.0 as usize].sets += 1;
        }
        stmt.blocks().into_iter().for_each(|block| note(block, counters, uses));
    }
}

fn divide(body: &mut [Stmt], uses: &[Uses], variables: &mut Vec<Variable>) {
    for stmt in body {
        let place = stmt.place;
        if let StmtKind::For { variable, body, .. } = &mut stmt.kind {
            let (shared, of_variable) = (*variable, uses[variable.0 as usize]);
            if of_variable.is_shared() {
                let own = VarId(variables.len() as u32);
                let of_loop = variables[shared.0 as usize].clone();
                let ty = of_loop.ty;
                variables.push(of_loop);
                *variable = own;
                // Nothing inside sets the variable of a loop.
                body.iter_mut().for_each(|stmt| rename(stmt, shared, own));
                if of_variable.is_read_outside {
                    let value = Expr::variable(own, ty, place);
                    body.insert(0, Stmt::new(StmtKind::Set(shared, value), place));
                }
            }
        }
        stmt.blocks_mut().into_iter().for_each(|block| divide(block, uses, variables));
    }
}

fn rename(stmt: &mut Stmt, from: VarId, to: VarId) {
    fn of(expr: &mut Expr, from: VarId, to: VarId) {
        match &mut expr.kind {
            ExprKind::Variable(variable) if *variable == from => *variable = to,
            _ => expr.operands_mut().into_iter().for_each(|operand| of(operand, from, to)),
        }
    }
    stmt.for_each_expr_mut(&mut |expr| of(expr, from, to));
    stmt.blocks_mut().into_iter().flatten().for_each(|stmt| rename(stmt, from, to));
}
