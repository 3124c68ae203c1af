//! The imports of a file with kernels.

#[cfg(feature = "alloc")]
pub use crate::Executable;
pub use crate::{Launch, NdRange, Range, Structure, Vouched, kernel, kernels};
