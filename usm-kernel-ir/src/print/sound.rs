//! Whether nodes print as a front end makes them.

use alloc::vec::Vec;

use super::{COUNTED, LINES};
use crate::kernel::{
    Array, ArrayId, Atomic, Expr, ExprKind, Kernel, Parameter, Space, Stmt, StmtKind, VarId,
};
use crate::operator::Binary;
use crate::scalar::Scalar;

/// Whether each line has one writer, as proofs trust: an item stores in a line only directly after
/// it got the number of it, and the counter never returns to 0. The arrays are the last parameters:
/// one counter, and at most one for each type of columns. Nodes of a front end are such.
#[must_use]
pub fn has_sound_lines(kernel: &Kernel) -> bool {
    if !kernel.arrays.iter().any(Array::is_log) {
        return true;
    }
    let Some(counter) = counter_of(kernel) else { return false };
    let is_log = |id: ArrayId| kernel.arrays.get(id.0 as usize).is_some_and(Array::is_log);
    let mut reads = false;
    let (mut touches, mut slots) = (0_usize, Vec::new());
    kernel.for_each(
        &mut |stmt| match &stmt.kind {
            StmtKind::Store { array: id, .. }
            | StmtKind::Atomic { array: id, .. }
            | StmtKind::CompareExchange { array: id, .. } => {
                touches += usize::from(is_log(*id));
            }
            _ => {}
        },
        &mut |expr| reads |= matches!(expr.kind, ExprKind::Load(id, _) if is_log(id)),
    );
    let prints = known_prints(&kernel.body, counter, &is_log, &mut slots);
    let mut sets = 0;
    kernel.for_each(
        &mut |stmt| sets += usize::from(stmt.sets().is_some_and(|id| slots.contains(&id))),
        &mut |_| (),
    );
    !reads && prints == touches && sets == slots.len()
}

/// The only counter, if all arrays of what is printed are as launches make them.
fn counter_of(kernel: &Kernel) -> Option<ArrayId> {
    let logs: Vec<ArrayId> = kernel.logs().into_iter().map(|(id, _)| id).collect();
    let first = kernel.parameters.len().checked_sub(logs.len())?;
    let last = kernel.parameters[first..].iter().zip(&logs);
    let is_last = last.clone().all(|(parameter, id)| *parameter == Parameter::Array(*id));
    let all = kernel.arrays.iter().filter(|array| array.is_log()).count() == logs.len();
    let of = |ty| logs.iter().filter(move |id| kernel.array(**id).element == ty);
    let spaces = logs.iter().all(|id| {
        let array = kernel.array(*id);
        match array.element {
            Scalar::U32 => array.space == Space::Atomic,
            Scalar::I64 | Scalar::F32 | Scalar::F64 => array.space == Space::Write,
            _ => false,
        }
    });
    let is_once = Scalar::ALL.into_iter().all(|ty| of(ty).count() <= 1);
    let is_column = |id: &ArrayId| {
        let columns = kernel.structures.iter().filter_map(|(first, _)| match first {
            Parameter::Array(first) => kernel.columns(*first),
            Parameter::Value(_) => None,
        });
        columns.into_iter().any(|(_, arrays)| arrays.contains(id))
    };
    let is_right = is_last && all && spaces && is_once && !logs.iter().any(is_column);
    of(Scalar::U32).next().copied().filter(|_| is_right)
}

/// The number of accesses to hidden arrays in whole prints, and the variables of their lines.
fn known_prints(
    body: &[Stmt],
    counter: ArrayId,
    is_log: &dyn Fn(ArrayId) -> bool,
    slots: &mut Vec<VarId>,
) -> usize {
    let mut count = 0;
    for (place, stmt) in body.iter().enumerate() {
        if let StmtKind::Atomic { operation: Atomic::Add, array, index, value: one, old: Some(slot) } =
            &stmt.kind
            && *array == counter
            && is_number(index, 0)
            && is_number(one, 1)
            && let Some(accesses) =
                body.get(place + 1).and_then(|next| stores_of(next, *array, *slot, is_log))
        {
            slots.push(*slot);
            count += 1 + accesses;
        }
        count +=
            stmt.blocks().into_iter().map(|block| known_prints(block, counter, is_log, slots)).sum::<usize>();
    }
    count
}

fn is_number(expr: &Expr, number: u64) -> bool {
    matches!(expr.kind, ExprKind::Literal(literal) if literal.bits == number)
}

/// The accesses of the statement after the one that gives an item its line, if it is the right one.
fn stores_of(stmt: &Stmt, counter: ArrayId, slot: VarId, is_log: &dyn Fn(ArrayId) -> bool) -> Option<usize> {
    let is_slot = |expr: &Expr| matches!(expr.kind, ExprKind::Variable(id) if id == slot);
    let is_line =
        |expr: &Expr| expr.ty == Scalar::U64 && matches!(&expr.kind, ExprKind::Cast(inner) if is_slot(inner));
    let StmtKind::If { condition: fits, then: stores, other: full } = &stmt.kind else { return None };
    let ExprKind::Binary { operator: Binary::Lt, left: line, right: most } = &fits.kind else { return None };
    let is_store = |stmt: &Stmt| {
        let StmtKind::Store { array, index, .. } = &stmt.kind else { return false };
        let ExprKind::Binary { operator: Binary::Add, left: start, right: line } = &index.kind else {
            return false;
        };
        let column = matches!(start.kind, ExprKind::Literal(literal) if literal.bits % LINES == 0);
        is_log(*array) && *array != counter && column && is_line(line)
    };
    let [Stmt { kind: StmtKind::If { condition: is_full, then: back, other: none }, .. }] = &full[..] else {
        return None;
    };
    let ExprKind::Binary { operator: Binary::Ge, left: count, right: limit } = &is_full.kind else {
        return None;
    };
    let [
        Stmt {
            kind: StmtKind::Atomic { operation: Atomic::Sub, array, index, value: one, old: None }, ..
        },
    ] = &back[..]
    else {
        return None;
    };
    let is_back = *array == counter && is_number(index, 0) && is_number(one, 1);
    let is_limit = is_slot(count) && is_number(limit, COUNTED.into()) && none.is_empty();
    let is_right =
        is_line(line) && is_number(most, LINES) && stores.iter().all(is_store) && is_back && is_limit;
    is_right.then_some(stores.len() + 1)
}
