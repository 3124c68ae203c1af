//! The command `usm` inside the module: a separate program in the wheel would contain all code
//! twice.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::text::argument;

/// Runs the command with these arguments, of which the first is its name, without the interpreter.
/// Returns its exit code. Output goes to the process's own standard output and error, and Ctrl-C is
/// the process's.
#[pyfunction]
pub(crate) fn _run_command(py: Python<'_>, arguments: &Bound<'_, PyAny>) -> PyResult<u8> {
    let arguments: Vec<OsString> = argument::items(arguments, usize::MAX, |word| word.extract())?;
    Ok(py.detach(|| usm_cli::run_command(arguments)))
}
