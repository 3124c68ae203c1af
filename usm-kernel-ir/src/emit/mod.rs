//! Writers of verified kernels: Rust for the host, OpenCL C, CUDA C and SPIR-V for devices.
//!
//! Device functions have the name [`function`]. Their parameters are the kernel's, then the lengths
//! that its body reads ([`Kernel::lengths`](crate::Kernel::lengths), 64 bits each), then, if
//! [`is_guarded`](crate::Kernel::is_guarded), the sizes of the range, the fastest dimension first
//! (64 bits each; in OpenCL C only with the option [`GUARD`]), then its local arrays.

mod c;
pub mod checked;
mod guard;
mod rust;
#[cfg(feature = "spirv")]
mod spirv;

use alloc::string::String;
use alloc::vec::Vec;

use crate::kernel::{Expr, Kernel, Space};
use crate::lower::{By, lower};
use crate::scalar::Scalar;
pub use c::{HOST_FUNCTION, cuda_c, cuda_c_module, host_c, opencl_c, opencl_c_module};
pub use rust::rust;
#[cfg(feature = "spirv")]
pub use spirv::{spirv, spirv_module};

/// The option of OpenCL compilers that builds a variant of our OpenCL C in which no loop that
/// stores is vectorised, for launches on processors where one of [`Kernel::strides`] is 0. All
/// elements `a[i * s]` are one then. On machines with AVX-512, Intel's compiler 2026.2 takes them
/// for different ones.
///
/// Without the option, and for kernels without strides, it changes nothing.
pub const SCALAR_LOOPS: &str = "-D own_scalar_loops";

/// The option of OpenCL compilers with which our OpenCL C of a kernel with
/// [`is_guarded`](Kernel::is_guarded) gets the sizes of the range and ignores items beyond it, as CUDA
/// C and SPIR-V always do. Processors vectorise better without.
pub const GUARD: &str = "-D own_guard";

/// A kernel's SPIR-V modules, for [`rust`].
#[derive(Clone, Debug)]
pub struct SpirV {
    /// For proven launches.
    pub plain: Vec<u8>,
    /// For other launches.
    pub checked: Vec<u8>,
}

#[cfg(feature = "spirv")]
impl SpirV {
    /// Writes both.
    #[must_use]
    pub fn new(kernel: &Kernel, claims: &crate::proof::Claims) -> Self {
        let kernel = claims.name_unordered(kernel);
        Self { plain: spirv(&kernel), checked: checked::spirv(&kernel, claims) }
    }
}

/// The name of a kernel's function in device code. It has a prefix, because a kernel's name may be
/// a keyword of the language.
#[must_use]
pub fn function(kernel: &Kernel) -> String {
    let plain = kernel.name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
    "usm_".chars().chain(plain).collect()
}

/// The local arrays of a kernel's device functions: element type and length. They are the kernel's
/// own, and those for its collective operations.
#[must_use]
pub fn locals(kernel: &Kernel) -> Vec<(Scalar, Expr)> {
    let kernel_of_groups = lower(kernel, By::All);
    let arrays = kernel_of_groups.arrays.iter().filter_map(|array| match &array.space {
        Space::Local(len) => Some((array.element, len.clone())),
        _ => None,
    });
    arrays.collect()
}
