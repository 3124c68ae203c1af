//! Sample kernels: each with a plain loop that says what it must compute.

mod reverse;

pub use reverse::{Reverse, ReverseOneGroup, reverse_plain};
