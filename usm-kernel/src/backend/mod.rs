//! Backends whose devices run code that a runtime compiles or loads.
//!
//! [`Programmable`] is the trait that usm-kernel needs in addition to [`Backend`]. The backends of
//! runtimes take code; host backends take none and run the host bodies of kernels.

mod erased;
mod host;
pub(crate) mod spir_v;

use alloc::vec::Vec;
use core::ffi::CStr;
use core::fmt::Debug;

use usm_core::{Backend, Error, ErrorKind};

pub use erased::{DynFunction, DynModule, Kernels};
pub use host::NoModule;

pub use crate::code_store::{CodeStore, keep_code};

use crate::module::{BuildError, Code, Formats, FunctionInfo};

/// For backends: the sizes of argument lists, strings that end in NUL, and strided copies.
#[doc(hidden)]
pub mod driver {
    pub use crate::call::{FEW_ARGUMENTS, MOST_ARGUMENTS};
    pub use crate::module::text;
    pub use crate::rounding::is_better_rounded;
    pub use crate::strided::{StridedCode, StridedCopies};
}

/// An index space for a runtime: the last dimension is the fastest one.
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

    /// Work-items in each dimension, 1 beyond the last one. No size is 0.
    #[must_use]
    pub const fn global(&self) -> [u64; 3] {
        self.global
    }

    /// Work-items of a group in each dimension, if the launch has groups.
    #[must_use]
    pub const fn local(&self) -> Option<[u64; 3]> {
        self.local
    }

    /// The sizes with the fastest dimension first, 1 beyond the slowest one: the order of OpenCL
    /// and CUDA.
    #[inline]
    #[must_use]
    pub fn fastest_first(&self, sizes: [u64; 3]) -> [u64; 3] {
        core::array::from_fn(|d| if d < self.dimensions { sizes[self.dimensions - 1 - d] } else { 1 })
    }
}

/// One argument for a runtime.
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
/// [`launch`](Self::launch) runs its function over its grid after its events, and the returned
/// event is complete when the function no longer runs. An error means that nothing was submitted. A
/// function keeps its module alive, also while it runs.
pub unsafe trait Programmable: Backend {
    /// Built code.
    type Module: Debug + Send + Sync;
    /// A function of a module.
    type Function: Debug + Send + Sync;

    /// The formats of code that the context's device takes.
    fn formats(context: &Self::Context) -> Formats;

    /// Builds code in one of [`formats`](Self::formats).
    ///
    /// # Errors
    /// [`BuildError::Compile`], or the runtime's.
    fn build(context: &Self::Context, code: &Code<'_>, options: &str) -> Result<Self::Module, BuildError>;

    /// The runtime's compiled form of a module's code; `None` if the runtime does not give it.
    fn native(module: &Self::Module) -> Option<Vec<u8>> {
        let _ = module;
        None
    }

    /// Builds a result of [`native`](Self::native).
    ///
    /// # Errors
    /// [`BuildError::Compile`], or the runtime's.
    fn build_native(context: &Self::Context, code: &[u8]) -> Result<Self::Module, BuildError> {
        let _ = (context, code);
        Err(Error::from(ErrorKind::Unsupported { operation: "code that the runtime made before" }).into())
    }

    /// The function of this name, with the runtime's description of it.
    ///
    /// # Errors
    /// [`BuildError::NoFunction`], or the runtime's.
    fn function(module: &Self::Module, name: &CStr) -> Result<(Self::Function, FunctionInfo), BuildError>;

    /// Runs a function of the queue's context.
    ///
    /// # Safety
    /// The function's code may run with these arguments over this grid: the memory that it accesses
    /// is live, and not accessed in conflict, until the event is complete.
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
