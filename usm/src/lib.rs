#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![allow(clippy::std_instead_of_alloc, clippy::std_instead_of_core, reason = "devices are opened with std")]

mod error;
mod runtime;
mod runtimes;

pub use error::{Attempt, OpenError, Reason};
pub use runtime::{Absence, OpenRuntime, Runtime};
pub use runtimes::{DEVICE_VARIABLE, Runtimes, devices, open, open_default, runtimes};

pub use usm_core::*;

#[cfg(feature = "array")]
pub use usm_array as array;
#[cfg(any(feature = "cuda", feature = "hip"))]
pub use usm_cuda as cuda;
#[cfg(feature = "interface")]
pub use usm_interface as interface;
#[cfg(feature = "level-zero")]
pub use usm_level_zero as level_zero;
#[cfg(feature = "nrt")]
pub use usm_nrt as nrt;
#[cfg(feature = "opencl")]
pub use usm_opencl as opencl;
#[cfg(feature = "pool")]
pub use usm_pool as pool;
#[cfg(feature = "nrt")]
pub use usm_prune as prune;
#[cfg(feature = "sycl")]
pub use usm_sycl as sycl;

/// Kernels: nd-ranges, launches, one source for the host and all devices.
#[cfg(feature = "kernel")]
pub mod kernel {
    // The pages are usm_kernel's.
    #[doc(no_inline)]
    pub use usm_kernel::*;

    /// Kernels that are compiled at run time: arguments, launches and errors of
    /// [`compile`].
    #[cfg(feature = "jit")]
    pub use usm_kernel_jit as jit;
    #[cfg(feature = "jit")]
    pub use usm_kernel_jit::compile;
}
