//! Backends whose devices run code that a runtime compiles or loads.
//!
//! [`Programmable`] is what usm-kernel asks of a backend beside [`Backend`]. The backends of
//! runtimes take code; those of the host take none, and run the host bodies of kernels instead.

mod erased;
mod host;
pub(crate) mod spir_v;

use core::ffi::CStr;
use core::fmt::Debug;

use usm_core::Backend;

pub use erased::{DynFunction, DynModule, Kernels};
pub use host::NoModule;

use crate::module::{BuildError, Code, Formats, FunctionInfo};

/// For backends: the sizes of argument lists, and text with a NUL at its end.
#[doc(hidden)]
pub mod driver {
    pub use crate::call::{FEW_ARGUMENTS, MOST_ARGUMENTS};
    pub use crate::module::text;
}

/// An index space as a runtime is given it: the last dimension is the fastest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    dimensions: usize,
    global: [u64; 3],
    local: Option<[u64; 3]>,
}

impl Grid {
    #[inline]
    pub(crate) fn new<const D: usize>(global: [u64; D], local: Option<[u64; D]>) -> Self {
        let pad = |sizes: [u64; D]| core::array::from_fn(|d| sizes.get(d).map_or(1, |size| *size));
        Self { dimensions: D, global: pad(global), local: local.map(pad) }
    }

    /// Dimensions, 1 to 3.
    #[must_use]
    pub const fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Work-items in each dimension; 1 behind the last one. None is 0.
    #[must_use]
    pub const fn global(&self) -> [u64; 3] {
        self.global
    }

    /// Work-items of a group in each dimension, where the launch has groups.
    #[must_use]
    pub const fn local(&self) -> Option<[u64; 3]> {
        self.local
    }

    /// The sizes with the fastest dimension first, 1 behind the slowest one: the order of OpenCL
    /// and CUDA.
    #[inline]
    #[must_use]
    pub fn fastest_first(&self, sizes: [u64; 3]) -> [u64; 3] {
        core::array::from_fn(|d| if d < self.dimensions { sizes[self.dimensions - 1 - d] } else { 1 })
    }
}

/// One argument as a runtime is given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Slot<'s> {
    /// An address in USM memory.
    Pointer(usize),
    /// A memory object without an address, by its handle.
    Object(usize),
    /// The bytes of a value.
    Value(&'s [u8]),
    /// Local memory of a group.
    Local {
        /// Bytes, not 0.
        bytes: usize,
        /// Alignment in bytes, a power of two.
        alignment: usize,
    },
}

/// A backend that runs code which its runtime compiles or loads.
///
/// # Safety
/// [`launch`](Self::launch) runs the function it is given over the grid it is given, after the
/// events it is given, and its event is complete when the function no longer runs; an error means
/// that nothing was submitted. A function keeps what it needs of its module, also while it runs.
pub unsafe trait Programmable: Backend {
    /// Code that was built.
    type Module: Debug + Send + Sync;
    /// A function of it.
    type Function: Debug + Send + Sync;

    /// What the context's device takes as code.
    fn formats(context: &Self::Context) -> Formats;

    /// Builds code in one of [`formats`](Self::formats).
    ///
    /// # Errors
    /// [`BuildError::Compile`], or the runtime's.
    fn build(context: &Self::Context, code: &Code<'_>, options: &str) -> Result<Self::Module, BuildError>;

    /// The function of this name, and what the runtime says of it.
    ///
    /// # Errors
    /// [`BuildError::NoFunction`], or the runtime's.
    fn function(module: &Self::Module, name: &CStr) -> Result<(Self::Function, FunctionInfo), BuildError>;

    /// Runs a function of the queue's context.
    ///
    /// # Safety
    /// The function's code may run with these arguments over this grid: what it touches is live,
    /// and not accessed in conflict, until the event is complete.
    ///
    /// # Errors
    /// The runtime's.
    unsafe fn launch(
        queue: &Self::Queue,
        function: &Self::Function,
        grid: &Grid,
        arguments: &[Slot<'_>],
        after: &[Self::Event],
    ) -> usm_core::Result<Self::Event>;
}
