//! Functions of Numba's `helperlib` that compiled code calls and that need no Python, under their C
//! names.
//!
//! `HELPERS.md` lists every function of `helperlib`: provided here, in need of Python, or out of
//! scope with the reason. Results equal those of Numba's functions. Where those crash or are
//! undefined, the comments here define a result.

pub mod array;
pub mod complex;
pub mod integer;
pub mod math;
pub mod process;
pub mod random;
