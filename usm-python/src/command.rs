//! The command `usm` inside of the module: what is beside it in a wheel would have all of its code
//! once more.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::shapes;

/// Runs the command with these arguments, the first of which is its name, without the interpreter:
/// its exit code. Output goes to the process's own standard output and error, and Ctrl-C is the
/// process's.
#[pyfunction]
pub(crate) fn _run_command(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    let inference = shapes::is_there().then_some(shapes::infer as usm_cli::Inference);
    usm_cli::infer_shapes_with(inference, "the package onnx does: pip install onnx");
    Ok(py.detach(|| usm_cli::run_command(arguments)))
}
