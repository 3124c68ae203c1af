//! Scalars by which a kernel multiplies, or steps, in loops that write.
//!
//! If one of them is 0, elements that look different are one: `a[i * s]` is the same element in
//! every round. Compilers of vendors take them for different ones (see
//! [`SCALAR_LOOPS`](crate::emit::SCALAR_LOOPS)).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::kernel::{Expr, ExprKind, Kernel, Stmt, StmtKind, ValueId, VarId, for_each};
use crate::operator::Binary;

impl Kernel {
    /// The integer scalars by which the body multiplies, or that it adds to a variable again and
    /// again, in order; none if no loop stores to an array. The strides of arrays are among them.
    ///
    /// A number that is computed from others, such as `s - 1`, is none of them.
    #[must_use]
    pub fn strides(&self) -> Vec<ValueId> {
        let mut in_loop = false;
        self.for_each(&mut |stmt| in_loop |= stores_in_loop(stmt), &mut |_| ());
        if !in_loop {
            return Vec::new();
        }
        let copies = self.copies();
        let mut strides = BTreeSet::new();
        let mut note = |operator, expr: &Expr| match &expr.kind {
            ExprKind::Binary { operator: other, left: one, right: two } if *other == operator => {
                strides.extend([one, two].into_iter().flat_map(|side| same(&copies, side)));
            }
            _ => {}
        };
        self.for_each(&mut |_| (), &mut |expr| note(Binary::Mul, expr));
        self.for_each(
            &mut |stmt| {
                let StmtKind::Set(variable, value) = &stmt.kind else { return };
                let mut changes = false;
                value.for_each(&mut |expr| changes |= expr.kind == ExprKind::Variable(*variable));
                if changes {
                    value.for_each(&mut |expr| {
                        note(Binary::Add, expr);
                        note(Binary::Sub, expr);
                    });
                }
            },
            &mut |_| (),
        );
        strides.retain(|id| self.value(*id).ty.is_integer());
        strides.into_iter().collect()
    }

    /// For each variable, the scalars that are set to it.
    fn copies(&self) -> Vec<BTreeSet<ValueId>> {
        let mut copies = alloc::vec![BTreeSet::new(); self.variables.len()];
        loop {
            let mut products = Vec::new();
            self.for_each(
                &mut |stmt| {
                    if let StmtKind::Set(variable, value) = &stmt.kind {
                        let new = same(&copies, value);
                        if !new.is_subset(&copies[variable.0 as usize]) {
                            products.push((*variable, new));
                        }
                    }
                },
                &mut |_| (),
            );
            if products.is_empty() {
                return copies;
            }
            for (VarId(variable), new) in products {
                copies[variable as usize].extend(new);
            }
        }
    }
}

/// The scalars that an expression may be, apart from its type.
fn same(copies: &[BTreeSet<ValueId>], expr: &Expr) -> BTreeSet<ValueId> {
    match &expr.kind {
        ExprKind::Value(id) => BTreeSet::from([*id]),
        ExprKind::Variable(id) => copies[id.0 as usize].clone(),
        ExprKind::Cast(inner) => same(copies, inner),
        _ => BTreeSet::new(),
    }
}

/// Whether a statement is a loop that stores to an array.
fn stores_in_loop(stmt: &Stmt) -> bool {
    let (StmtKind::While(_, body) | StmtKind::For { body, .. }) = &stmt.kind else { return false };
    stores(body)
}

/// Whether a block stores to an array.
pub(crate) fn stores(body: &[Stmt]) -> bool {
    let mut has_query = false;
    for_each(body, &mut |stmt| has_query |= matches!(stmt.kind, StmtKind::Store { .. }), &mut |_| ());
    has_query
}
