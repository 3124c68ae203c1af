//! What a file with kernels imports.

#[cfg(feature = "alloc")]
pub use crate::Executable;
pub use crate::{Launch, NdRange, Range, kernel, kernels};
