//! `usm.kernel`: Python functions as kernels.
//!
//! The Python module `usm._kernel` compiles a function, for the types of its arguments, to nodes of
//! usm-kernel-ir. This module holds everything that runs at a launch.

mod argument;
mod code;
mod compiled;
mod device;
mod disk_cache;
mod folder;
mod function;
mod host;
mod launch;
mod precompiled;
mod print;
mod range;

pub(crate) use disk_cache::keep_code_of_copies;
pub(crate) use function::PyKernelFunction;
pub(crate) use host::set_threads;
pub(crate) use launch::PyLaunch;
pub(crate) use precompiled::{PyKernel, PyModule, launch_finished};
