//! Kernels on the host.

pub mod phased;
