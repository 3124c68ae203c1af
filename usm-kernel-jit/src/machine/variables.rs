//! The variables that a phase reads and sets.

use usm_kernel_ir::{Expr, ExprKind, Home, Kernel, Stmt, VarId, needed};

/// The variables of a phase, each after those that its recomputation reads, and the variables that
/// the phase sets.
pub(crate) fn used(kernel: &Kernel, homes: &[Home], body: &[&Stmt]) -> (Vec<VarId>, Vec<VarId>) {
    let (mut reads, mut sets) = (Vec::new(), Vec::new());
    for stmt in body {
        name_variables(stmt, &mut reads, &mut sets);
    }
    let mut used = Vec::new();
    for variable in sets.iter().chain(&reads) {
        needed(kernel, homes, *variable, &mut used);
    }
    (used, sets)
}

fn read(expr: &Expr, reads: &mut Vec<VarId>) {
    expr.for_each(&mut |expr| {
        if let ExprKind::Variable(variable) = expr.kind {
            reads.push(variable);
        }
    });
}

/// Variables that a statement reads, and those that it sets.
pub(crate) fn name_variables(stmt: &Stmt, reads: &mut Vec<VarId>, sets: &mut Vec<VarId>) {
    sets.extend(stmt.sets());
    stmt.for_each_expr(&mut |expr| read(expr, reads));
    for block in stmt.blocks() {
        block.iter().for_each(|stmt| name_variables(stmt, reads, sets));
    }
}
