//! Whether nodes print as a front end makes them.

use alloc::vec::Vec;

use super::{COUNTED, LINES};
use crate::kernel::{Array, ArrayId, Atomic, Expr, ExprKind, Kernel, Stmt, StmtKind, VarId};
use crate::operator::Binary;

/// Whether each line has one writer, as proofs trust: an item stores in a line only directly after
/// it got the number of it, and the counter never returns to 0. Nodes of a front end are such.
#[must_use]
pub fn has_sound_lines(kernel: &Kernel) -> bool {
    if !kernel.arrays.iter().any(Array::is_log) {
        return true;
    }
    let is_log = |id: ArrayId| kernel.arrays.get(id.0 as usize).is_some_and(Array::is_log);
    let mut reads = false;
    let (mut touches, mut slots) = (0_usize, Vec::new());
    kernel.for_each(
        &mut |stmt| match &stmt.kind {
            StmtKind::Store(id, ..) | StmtKind::Atomic(_, id, ..) | StmtKind::CompareExchange(id, ..) => {
                touches += usize::from(is_log(*id));
            }
            _ => {}
        },
        &mut |expr| reads |= matches!(expr.kind, ExprKind::Load(id, _) if is_log(id)),
    );
    let prints = known_prints(&kernel.body, &is_log, &mut slots);
    let mut sets = 0;
    kernel.for_each(
        &mut |stmt| sets += usize::from(stmt.sets().is_some_and(|id| slots.contains(&id))),
        &mut |_| (),
    );
    !reads && prints == touches && sets == slots.len()
}

/// The number of accesses to hidden arrays in whole prints, and the variables of their lines.
fn known_prints(body: &[Stmt], is_log: &dyn Fn(ArrayId) -> bool, slots: &mut Vec<VarId>) -> usize {
    let mut count = 0;
    for (place, stmt) in body.iter().enumerate() {
        if let StmtKind::Atomic(Atomic::Add, array, index, one, Some(slot)) = &stmt.kind
            && is_log(*array)
            && is_number(index, 0)
            && is_number(one, 1)
            && let Some(accesses) =
                body.get(place + 1).and_then(|next| stores_of(next, *array, *slot, is_log))
        {
            slots.push(*slot);
            count += 1 + accesses;
        }
        count += stmt.blocks().into_iter().map(|block| known_prints(block, is_log, slots)).sum::<usize>();
    }
    count
}

fn is_number(expr: &Expr, number: u64) -> bool {
    matches!(expr.kind, ExprKind::Literal(literal) if literal.bits == number)
}

/// The accesses of the statement after the one that gives an item its line, if it is the right one.
fn stores_of(stmt: &Stmt, counter: ArrayId, slot: VarId, is_log: &dyn Fn(ArrayId) -> bool) -> Option<usize> {
    let is_slot = |expr: &Expr| matches!(expr.kind, ExprKind::Variable(id) if id == slot);
    let is_line = |expr: &Expr| matches!(&expr.kind, ExprKind::Cast(inner) if is_slot(inner));
    let StmtKind::If(fits, stores, full) = &stmt.kind else { return None };
    let ExprKind::Binary(Binary::Lt, line, most) = &fits.kind else { return None };
    let is_store = |stmt: &Stmt| {
        let StmtKind::Store(array, index, _) = &stmt.kind else { return false };
        let ExprKind::Binary(Binary::Add, start, line) = &index.kind else { return false };
        let column = matches!(start.kind, ExprKind::Literal(literal) if literal.bits % LINES == 0);
        is_log(*array) && *array != counter && column && is_line(line)
    };
    let [Stmt { kind: StmtKind::If(is_full, back, none), .. }] = &full[..] else { return None };
    let ExprKind::Binary(Binary::Ge, counted, limit) = &is_full.kind else { return None };
    let [Stmt { kind: StmtKind::Atomic(Atomic::Sub, array, index, one, None), .. }] = &back[..] else {
        return None;
    };
    let is_back = *array == counter && is_number(index, 0) && is_number(one, 1);
    let is_limit = is_slot(counted) && is_number(limit, COUNTED.into()) && none.is_empty();
    let is_right =
        is_line(line) && is_number(most, LINES) && stores.iter().all(is_store) && is_back && is_limit;
    is_right.then_some(stores.len() + 1)
}
