//! `usm.kernel`: Python functions as kernels.
//!
//! The package's module `usm._kernel` makes nodes of a function and of the types that it is called
//! with; all that runs at a launch is here.

mod argument;
mod code;
mod compiled;
mod device;
mod finished;
mod function;
mod host;
mod kept;
mod launch;
mod range;

pub(crate) use finished::{PyKernel, PyModule, launch_finished};
pub(crate) use function::PyKernelFunction;
pub(crate) use launch::PyLaunch;
