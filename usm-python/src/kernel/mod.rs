//! `usm.kernel`: Python functions as kernels.
//!
//! The Python module `usm._kernel` compiles a function, for the types of its arguments, to nodes of
//! usm-kernel-ir. This module holds everything that runs at a launch.

mod argument;
mod code;
mod compiled;
mod device;
mod finished;
mod folder;
mod function;
mod host;
mod kept;
mod launch;
mod range;

pub(crate) use finished::{PyKernel, PyModule, launch_finished};
pub(crate) use function::PyKernelFunction;
pub(crate) use host::set_threads;
pub(crate) use launch::PyLaunch;
