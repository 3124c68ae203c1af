//! Modules with a second function for a kernel: it checks every index that a launch may leave
//! unproven. What is outside is not touched: a read gives 0, a write does nothing.
//!
//! The function is called [`function`] and takes the kernel's parameters, then [`lengths`], then a
//! pointer to five 32-bit words in global memory, then the local arrays. The words are zero before.
//! The first item that finds an index outside writes them: the number of the place in [`places`],
//! from 1; the index, and the elements of the array, 64 bits each, the low word first. An item that
//! was outside leaves its loops without barriers, so that none waits for a value that it cannot
//! read.

use alloc::string::String;
use alloc::vec::Vec;

use super::c;
use crate::kernel::{ArrayId, Expr, ExprKind, Kernel, Place, Space, StmtKind};
use crate::proof::Claims;
use crate::scalar::Scalar;

/// Words that the function may write.
pub const WORDS: usize = 5;

/// A function of a module.
pub(super) struct Entry<'k> {
    pub(super) kernel: &'k Kernel,
    /// Indices to check; none in a function that only proven launches run.
    pub(super) checks: Option<Checks>,
}

/// Indices that a function checks.
pub(super) struct Checks {
    places: Vec<(ArrayId, Place)>,
    pub(super) lengths: Vec<ArrayId>,
}

impl Checks {
    /// The number of a place where an index is checked.
    pub(super) fn number(&self, array: ArrayId, place: Place) -> Option<u32> {
        self.places.iter().position(|found| *found == (array, place)).map(|place| place as u32 + 1)
    }
}

impl<'k> Entry<'k> {
    pub(super) const fn plain(kernel: &'k Kernel) -> Self {
        Self { kernel, checks: None }
    }

    pub(super) fn both(kernel: &'k Kernel, claims: &Claims) -> Vec<Self> {
        let mut all = alloc::vec![Self::plain(kernel)];
        if is_written(kernel, claims) {
            let checks = Checks { places: places(claims), lengths: lengths(kernel, claims) };
            all.push(Self { kernel, checks: Some(checks) });
        }
        all
    }

    pub(super) fn name(&self) -> String {
        if self.checks.is_some() { function(self.kernel) } else { super::function(self.kernel) }
    }
}

/// The elements of an array.
pub(super) const fn len(array: ArrayId, place: Place) -> Expr {
    Expr { kind: ExprKind::Len(array), ty: Scalar::U64, place }
}

/// Whether the module has the function: something is left to prove, and the items of a group do not
/// collect anything together. Intel's compiler for OpenCL on processors faults, four times of five,
/// on both functions of such a kernel in one module.
#[must_use]
pub fn is_written(kernel: &Kernel, claims: &Claims) -> bool {
    let mut collects = false;
    kernel.for_each(&mut |stmt| collects |= matches!(stmt.kind, StmtKind::Collect(..)), &mut |_| ());
    !claims.bounds.is_empty() && !collects
}

/// The name of the function.
#[must_use]
pub fn function(kernel: &Kernel) -> String {
    alloc::format!("checked_{}", super::function(kernel))
}

/// The arrays whose lengths it takes, 64 bits each.
#[must_use]
pub fn lengths(kernel: &Kernel, claims: &Claims) -> Vec<ArrayId> {
    let mut all = kernel.lengths();
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

/// Where it checks an index of which array.
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

/// Both functions in OpenCL C; one where the second [is not written](is_written).
#[must_use]
pub fn opencl_c(kernel: &Kernel, claims: &Claims) -> String {
    c::module(&Entry::both(kernel, claims), c::Dialect::OpenCl)
}

/// Both functions in CUDA C++; one where the second [is not written](is_written).
#[must_use]
pub fn cuda_c(kernel: &Kernel, claims: &Claims) -> String {
    c::module(&Entry::both(kernel, claims), c::Dialect::Cuda)
}

/// Both functions as the bytes of a SPIR-V module; one where the second [is not
/// written](is_written).
#[cfg(feature = "spirv")]
#[must_use]
pub fn spirv(kernel: &Kernel, claims: &Claims) -> Vec<u8> {
    super::spirv::module(&Entry::both(kernel, claims))
}
