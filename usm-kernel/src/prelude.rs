//! The imports of a file with kernels.

#[cfg(feature = "alloc")]
pub use crate::Executable;
pub use crate::{Complex32, Complex64, Launch, NdRange, Range, Structure, VouchedKernel, kernel, kernels};
