//! Sets local and private memory to zero where an item may read what nobody wrote.

use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;

use crate::initialization::{Need, needs};
use crate::kernel::{
    ArrayId, Expr, ExprKind, Kernel, Place, Query, Space, Stmt, StmtKind, VarId, Variable, for_each,
};
use crate::lower::{By, item, items, number};
use crate::operator::Binary;
use crate::scalar::{Literal, Scalar};

/// A verified kernel that reads zeros where nobody has written. All code for hosts and devices is
/// made of it, so no writer needs a rule of its own.
///
/// Local arrays are set to zero at the start, before an item can return, and a barrier follows.
/// Private arrays are set before the first statement that names them.
pub(crate) fn with_zeros(kernel: &Kernel, by: By) -> Cow<'_, Kernel> {
    let needs = needs(kernel);
    if needs.is_empty() {
        return Cow::Borrowed(kernel);
    }
    let mut result = kernel.clone();
    let body = core::mem::take(&mut result.body);
    let mut out = Vec::new();
    let (local, private): (Vec<Need>, Vec<Need>) =
        needs.into_iter().partition(|need| matches!(kernel.array(need.array).space, Space::Local(_)));
    for needs_of_one in local.chunk_by(|one, two| one.unless == two.unless) {
        let place = kernel.array(needs_of_one[0].array).place;
        let mut stmts = Vec::new();
        for need in needs_of_one {
            let Space::Local(len) = &kernel.array(need.array).space else { continue };
            stmts.push(match by {
                By::One => {
                    let fill =
                        fill(&mut result, need.array, [number(0, place), len.clone(), number(1, place)]);
                    let first = Expr::binary(Binary::Eq, item(kernel, place), number(0, place), place);
                    Stmt::new(StmtKind::If { condition: first, then: vec![fill], other: Vec::new() }, place)
                }
                By::All => {
                    let bounds = [item(kernel, place), len.clone(), items(kernel, place)];
                    fill(&mut result, need.array, bounds)
                }
            });
        }
        stmts.push(Stmt::new(StmtKind::Barrier { local: true, global: false }, place));
        match needs_of_one[0].unless.as_ref().and_then(|sizes| differs(sizes, place)) {
            Some(other) => {
                out.push(Stmt::new(StmtKind::If { condition: other, then: stmts, other: Vec::new() }, place))
            }
            None => out.extend(stmts),
        }
    }
    let mut private: Vec<ArrayId> = private.into_iter().map(|need| need.array).collect();
    for stmt in body {
        let (here, others): (Vec<ArrayId>, Vec<ArrayId>) =
            private.into_iter().partition(|array| names(&stmt, *array));
        for array in here {
            let Space::Private(len) = kernel.array(array).space else { continue };
            let place = kernel.array(array).place;
            let bounds = [number(0, place), number(len, place), number(1, place)];
            out.push(fill(&mut result, array, bounds));
        }
        private = others;
        out.push(stmt);
    }
    result.body = out;
    Cow::Owned(result)
}

/// A loop that sets elements of an array to zero.
fn fill(kernel: &mut Kernel, array: ArrayId, [start, end, step]: [Expr; 3]) -> Stmt {
    let (place, element) = (kernel.array(array).place, kernel.array(array).element);
    kernel.variables.push(Variable { name: "zeroed".into(), ty: Scalar::U64, place });
    let at = VarId(kernel.variables.len() as u32 - 1);
    let zero = Expr::literal(Literal { ty: element, bits: 0 }, place);
    let store = StmtKind::Store { array, index: Expr::variable(at, Scalar::U64, place), value: zero };
    Stmt::new(StmtKind::For { variable: at, start, end, step, body: vec![Stmt::new(store, place)] }, place)
}

/// The condition that a group has other sizes.
fn differs(sizes: &[u64], place: Place) -> Option<Expr> {
    let other = |(dimension, size): (usize, &u64)| {
        let here = Expr::query(Query::LocalSize, dimension as u8, place);
        Expr::binary(Binary::Ne, here, number(*size, place), place)
    };
    let others = sizes.iter().enumerate().map(other);
    others.reduce(|one, two| Expr::binary(Binary::OrElse, one, two, place))
}

/// Whether a statement accesses an array.
fn names(stmt: &Stmt, array: ArrayId) -> bool {
    let (mut stores, mut loads) = (false, false);
    for_each(
        core::slice::from_ref(stmt),
        &mut |stmt| stores |= matches!(stmt.kind, StmtKind::Store { array: found, .. } if found == array),
        &mut |expr| loads |= matches!(expr.kind, ExprKind::Load(found, _) if found == array),
    );
    stores || loads
}
