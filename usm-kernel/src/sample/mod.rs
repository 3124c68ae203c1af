//! Sample kernels, each with a plain loop as its specification.
//!
//! They show phases that compile to the same loop as written by hand: cut slices to the group's
//! size first, and the compiler proves the indices.

#[cfg(feature = "alloc")]
mod device;
mod histogram;
mod matmul;
mod reduce;
mod reverse;
#[cfg(feature = "alloc")]
mod runner;
mod saxpy;
mod scan;

pub use histogram::{Histogram, histogram_plain};
pub use matmul::{Matmul, matmul_plain};
pub use reduce::{Reduce, reduce_plain};
#[cfg(feature = "alloc")]
pub use reduce::{reduce, reduce_on};
pub use reverse::{Reverse, ReverseOneGroup, reverse_plain};
pub use saxpy::{Saxpy, saxpy_plain};
pub use scan::{ScanCarry, ScanParts, scan_plain};
#[cfg(feature = "alloc")]
pub use scan::{scan, scan_on};
