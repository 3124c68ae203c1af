//! `usm.kernel`: Python functions as kernels.
//!
//! The Python module `usm._kernel` compiles a function, for the types of its arguments, to nodes of
//! usm-kernel-ir, and usm-kernel-jit compiles and proves these. This module holds the conversion of
//! arguments, and a launch's turns on their memory.

mod argument;
mod builtin;
mod code;
mod device;
mod function;
mod host;
mod launch;
mod precompiled;
mod prepared_launch;
mod print;
mod range;
mod structure;

pub(crate) use builtin::_builtins;
pub(crate) use function::PyKernelFunction;
pub(crate) use host::set_threads;
pub(crate) use launch::PyLaunch;
pub(crate) use precompiled::{PyKernel, PyModule, launch_finished};
