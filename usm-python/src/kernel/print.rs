//! What a kernel prints: arrays for a launch, whose contents `usm._kernel.printing` formats.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::argument::Argument;
use super::code::Code;
use super::launch::Prepared;
use crate::device::queue::PyQueue;
use crate::device::runtime::Stream;
use crate::storage::transfer;

/// Adds the arrays of the log, if there is one, to the arguments of a launch.
pub(crate) fn add_arrays(
    py: Python<'_>,
    code: &Code,
    stream: &Arc<Stream>,
    arguments: &mut Vec<Argument>,
) -> PyResult<()> {
    let Some(log) = &code.log else { return Ok(()) };
    let arrays = log.bind(py).call_method1("arrays", (PyQueue(Arc::clone(stream)),))?;
    for array in arrays.try_iter()? {
        arguments.push(Argument::of(&array?, &|| "the log of a kernel".to_owned())?);
    }
    Ok(())
}

/// Prints what a launch stored in its log, which is complete.
pub(crate) fn show(py: Python<'_>, prepared: &Prepared) -> PyResult<()> {
    if prepared.code.log.is_none() {
        return Ok(());
    }
    let mut contents = Vec::new();
    for argument in prepared.arguments.iter().skip(prepared.given) {
        if let Argument::Array(memory) = argument {
            contents.push(transfer::to_bytes(py, &memory.side)?);
        }
    }
    show_contents(py, &prepared.code, &contents)
}

/// [`show`] for the bytes of these arrays.
pub(crate) fn show_contents(py: Python<'_>, code: &Code, contents: &[Vec<u8>]) -> PyResult<()> {
    let Some(log) = &code.log else { return Ok(()) };
    let contents = PyList::new(py, contents.iter().map(|bytes| PyBytes::new(py, bytes)))?;
    log.bind(py).call_method1("show", (contents,)).map(drop)
}
