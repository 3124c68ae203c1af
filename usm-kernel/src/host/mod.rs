//! Kernels on the host.

pub mod phased;
#[cfg(feature = "threads")]
pub(crate) mod threads;
