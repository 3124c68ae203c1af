//! Writers of verified kernels: Rust for the host, OpenCL C, CUDA C and SPIR-V for devices.
//!
//! Device functions are called [`function`] and take the kernel's parameters, then the lengths that
//! its body asks for ([`Kernel::lengths`](crate::Kernel::lengths), 64 bits each), then its local
//! arrays.

mod c;
mod rust;
#[cfg(feature = "spirv")]
mod spirv;

use alloc::string::String;

use crate::kernel::Kernel;
pub use c::{cuda_c, opencl_c};
pub use rust::rust;
#[cfg(feature = "spirv")]
pub use spirv::spirv;

/// The name of a kernel's function in device code. It has a prefix, because a kernel may be called
/// like a word of the language.
#[must_use]
pub fn function(kernel: &Kernel) -> String {
    let plain = kernel.name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
    "usm_".chars().chain(plain).collect()
}
