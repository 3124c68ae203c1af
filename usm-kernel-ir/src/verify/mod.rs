//! The invariants of every kernel, from any front end. All code that reads kernels relies on them.

use alloc::format;
use alloc::vec;

use crate::error::Refusal;
use crate::kernel::{Expr, Kernel, Stmt, StmtKind};
use crate::scalar::Scalar;
use crate::uniform::Uniformity;

mod expr;
mod head;
mod stmt;

/// Checks a kernel: types, positions, that variables have a value at every read, and that all items
/// reach every barrier.
///
/// # Errors
/// The first fault, with its place.
pub fn verify(kernel: &Kernel) -> Result<(), Refusal> {
    verify_items(kernel)?;
    Uniformity::of(kernel).barriers(kernel)
}

/// [`verify`] without the check that all items of a group reach its barriers.
pub(crate) fn verify_items(kernel: &Kernel) -> Result<(), Refusal> {
    let checker = Checker { kernel };
    checker.head()?;
    let mut has_value = vec![false; kernel.variables.len()];
    checker.block(&kernel.body, &mut has_value, 0, 0)
}

struct Checker<'k> {
    kernel: &'k Kernel,
}

impl Checker<'_> {
    fn block(
        &self,
        body: &[Stmt],
        has_value: &mut [bool],
        loops: usize,
        depth: usize,
    ) -> Result<(), Refusal> {
        body.iter().try_for_each(|stmt| self.stmt(stmt, has_value, loops, depth))
    }

    fn same(&self, expr: &Expr, ty: Scalar) -> Result<(), Refusal> {
        if expr.ty == ty {
            return Ok(());
        }
        Err(Refusal::new(expr.place, format!("{} where {ty} is needed: write `as {ty}`", expr.ty)))
    }
}

const fn is_atomic(element: Scalar) -> bool {
    matches!(element, Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64 | Scalar::F32 | Scalar::F64)
}

/// Whether the statements behind the block never run after it.
pub(crate) fn leaves(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match &stmt.kind {
        StmtKind::Break | StmtKind::Continue | StmtKind::Return => true,
        StmtKind::If { then, other, .. } => leaves(then) && leaves(other),
        _ => false,
    })
}
