//! The functions of Numba's `helperlib` that compiled code calls and that need no Python, under
//! their C names.
//!
//! `HELPERS.md` lists every one of Numba's: provided here, in need of Python, or out of scope and
//! why. Results are those of Numba's functions; where those crash or are undefined, these say what
//! they do instead.

pub mod array;
pub mod complex;
pub mod integer;
pub mod math;
pub mod process;
pub mod random;
