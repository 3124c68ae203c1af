//! Modules with a second function of a kernel, which checks every index that a launch may leave
//! unproven. An access outside does not happen: a read gives 0, a write does nothing.
//!
//! It is a separate module, because a runtime builds it only for launches that prove too little.
//! Also, Intel's OpenCL compiler for processors faults, four times of five, if one module contains
//! both functions of a kernel with group operations.
//!
//! The function is called [`function`]. It takes the kernel's parameters, then [`lengths`], then
//! the sizes of the range as every function does, then a pointer to five 32-bit words in global
//! memory, then the local arrays. The words are zero before the launch. The first item with an
//! index outside writes them: the number of the place in [`places`], from 1; then the index and the
//! array's length, 64 bits each, the low word first.
//!
//! An item with an index outside leaves its loops, so that it does not wait for a value that it
//! cannot read. A loop that all items of its group run together is left only by all of them: such a
//! loop computes the same for all, and barriers lie inside or depend on it.

use alloc::string::String;
use alloc::vec::Vec;

use super::c;
use crate::kernel::{ArrayId, Expr, ExprKind, Kernel, Place, Space, Stmt, StmtKind, for_each};
use crate::proof::Claims;
use crate::scalar::Scalar;

/// Number of words that the function may write.
pub const WORDS: usize = 5;

/// What the words say of an index that was outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside {
    /// The position in [`places`].
    pub place: usize,
    /// The index, in elements.
    pub index: u64,
    /// Elements of the array.
    pub len: u64,
}

/// Reads [`WORDS`] words; `None` if every index was inside.
#[must_use]
pub fn read(words: &[u32]) -> Option<Outside> {
    let &[number, index_low, index_high, len_low, len_high] = words else { return None };
    let wide = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
    let place = (number as usize).checked_sub(1)?;
    Some(Outside { place, index: wide(index_low, index_high), len: wide(len_low, len_high) })
}

/// The record of an item with an index outside.
pub(super) const ALONE: u8 = 1;
/// The record of a statement in which all items of the group had an index outside.
pub(super) const TOGETHER: u8 = 2;

/// A function of a module.
pub(super) struct Entry<'k> {
    pub(super) kernel: &'k Kernel,
    /// The indices to check; `None` in a function for proven launches only.
    pub(super) checks: Option<Checks>,
}

/// The indices that a function checks.
pub(super) struct Checks {
    pub(super) places: Vec<(ArrayId, Place)>,
    pub(super) lengths: Vec<ArrayId>,
}

impl Checks {
    /// The number of the place of a checked index.
    pub(super) fn number(&self, array: ArrayId, place: Place) -> Option<u32> {
        self.places.iter().position(|other| *other == (array, place)).map(|place| place as u32 + 1)
    }

    /// Whether a statement has a checked index.
    pub(super) fn has_checked_index(&self, stmt: &Stmt) -> bool {
        let mut has_checks = false;
        let stmts = core::slice::from_ref(stmt);
        for_each(
            stmts,
            &mut |stmt| {
                has_checks |= match &stmt.kind {
                    StmtKind::Store { array, .. }
                    | StmtKind::Atomic { array, .. }
                    | StmtKind::CompareExchange { array, .. } => self.number(*array, stmt.place).is_some(),
                    _ => false,
                };
            },
            &mut |_| (),
        );
        for_each(stmts, &mut |_| (), &mut |expr| {
            if let ExprKind::Load(array, _) = expr.kind {
                has_checks |= self.number(array, expr.place).is_some();
            }
        });
        has_checks
    }
}

impl<'k> Entry<'k> {
    pub(super) const fn plain(kernel: &'k Kernel) -> Self {
        Self { kernel, checks: None }
    }

    fn checked(kernel: &'k Kernel, claims: &Claims) -> Self {
        let checks = Checks { places: places(claims), lengths: lengths(kernel, claims) };
        Self { kernel, checks: Some(checks) }
    }

    pub(super) fn name(&self) -> String {
        if self.checks.is_some() { function(self.kernel) } else { super::function(self.kernel) }
    }
}

/// The number of elements of an array.
pub(super) const fn len(array: ArrayId, place: Place) -> Expr {
    Expr { kind: ExprKind::Len(array), ty: Scalar::U64, place }
}

/// The name of the function.
#[must_use]
pub fn function(kernel: &Kernel) -> String {
    alloc::format!("checked_{}", super::function(kernel))
}

/// The arrays whose lengths it takes as 64-bit parameters.
#[must_use]
pub fn lengths(kernel: &Kernel, claims: &Claims) -> Vec<ArrayId> {
    let mut all = kernel.lengths();
    let mut note = |expr: &Expr| {
        if let ExprKind::Len(array) = expr.kind {
            all.push(array);
        }
    };
    for bound in &claims.bounds {
        if let Space::Extent(len) = &kernel.array(bound.array).space {
            len.for_each(&mut note);
        }
    }
    all.extend(
        claims
            .bounds
            .iter()
            .map(|bound| bound.array)
            .filter(|array| matches!(kernel.array(*array).space, Space::Read | Space::Write | Space::Atomic)),
    );
    all.sort_unstable();
    all.dedup();
    all
}

/// The place and array of each checked index.
#[must_use]
pub fn places(claims: &Claims) -> Vec<(ArrayId, Place)> {
    let mut all = Vec::new();
    for bound in &claims.bounds {
        if !all.contains(&(bound.array, bound.place)) {
            all.push((bound.array, bound.place));
        }
    }
    all
}

/// The function in OpenCL C.
#[must_use]
pub fn opencl_c(kernel: &Kernel, claims: &Claims) -> String {
    c::module(&[Entry::checked(kernel, claims)], c::Dialect::OpenCl)
}

/// The function [`HOST_FUNCTION`](super::HOST_FUNCTION) in C for the processor, as
/// [`host_c`](super::host_c) describes it. `arrays` has an additional last address, of the five
/// words. No group starts after an index outside.
#[must_use]
pub fn host_c(kernel: &Kernel, claims: &Claims, disjoint: bool) -> String {
    c::host(&Entry::checked(kernel, claims), disjoint)
}

/// The function in CUDA C++.
#[must_use]
pub fn cuda_c(kernel: &Kernel, claims: &Claims) -> String {
    c::module(&[Entry::checked(kernel, claims)], c::Dialect::Cuda)
}

/// The function as the bytes of a SPIR-V module.
#[cfg(feature = "spirv")]
#[must_use]
pub fn spirv(kernel: &Kernel, claims: &Claims) -> Vec<u8> {
    super::spirv::module(&[Entry::checked(kernel, claims)])
}
