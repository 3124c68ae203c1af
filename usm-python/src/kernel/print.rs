//! What a kernel prints: arrays for a launch, whose contents `usm._kernel.printing` formats.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use usm_core::AllocKind;

use super::argument::{Argument, Memory};
use super::code::Code;
use super::prepared_launch::PreparedLaunch;
use crate::array::dtype::PyDtype;
use crate::array::view::View;
use crate::device::runtime::Stream;
use crate::storage::Storage;
use crate::storage::side::Side;
use crate::storage::source::Source;
use crate::storage::transfer;
use crate::text::error::OrRaise;

/// Adds the arrays of the log, if there is one, to the arguments of a launch. They are no arrays of
/// the program's, so a `with` block of `usm.Pool` does not count them.
pub(crate) fn add_arrays(
    py: Python<'_>,
    code: &Code,
    stream: &Arc<Stream>,
    arguments: &mut Vec<Argument>,
) -> PyResult<()> {
    let Some(log) = &code.log else { return Ok(()) };
    let (kind, source) = (AllocKind::Device, Source::outside_blocks(stream, AllocKind::Device));
    for array in log.bind(py).call_method0("arrays")?.try_iter()? {
        let (dtype, len): (Bound<'_, PyAny>, i64) = array?.extract()?;
        let view = View::contiguous(PyDtype::of(&dtype)?.dtype, &[len])?;
        let size = view.nbytes();
        let storage = py.detach(|| Storage::allocate_zeroed(&source, stream, kind, size, 0)).or_raise()?;
        let side = Side { storage, stream: Arc::clone(stream), view };
        arguments.push(Argument::Array(Memory::new(side, &|| "the log of a kernel".to_owned())?));
    }
    Ok(())
}

/// Prints what a launch stored in its log, which is complete.
pub(crate) fn show(py: Python<'_>, launch: &PreparedLaunch) -> PyResult<()> {
    if launch.code.log.is_none() {
        return Ok(());
    }
    let mut contents = Vec::new();
    for argument in launch.arguments.iter().skip(launch.caller_arguments) {
        if let Argument::Array(memory) = argument {
            contents.push(transfer::to_bytes(py, &memory.side)?);
        }
    }
    show_contents(py, &launch.code, &contents)
}

/// [`show`] for the bytes of these arrays.
pub(crate) fn show_contents(py: Python<'_>, code: &Code, contents: &[Vec<u8>]) -> PyResult<()> {
    let Some(log) = &code.log else { return Ok(()) };
    let contents = PyList::new(py, contents.iter().map(|bytes| PyBytes::new(py, bytes)))?;
    log.bind(py).call_method1("show", (contents,)).map(drop)
}
