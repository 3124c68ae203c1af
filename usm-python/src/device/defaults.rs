//! The default device and queue: those of the innermost block of `with usm.Device(..)`, `with
//! usm.Queue(..)` or `usm.device_context`.

use std::sync::Arc;

use pyo3::prelude::*;
use usm_core::Selector;

use crate::device::blocks::Blocks;
use crate::device::handles::PyDevice;
use crate::device::runtime::{self, Stream};
use crate::text::error::Class;

/// The blocks, each with its queue.
pub(super) static OPEN: Blocks = Blocks::new();

pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    OPEN.prepare(py, "usm.queue")
}

/// The queue of the innermost block.
fn innermost(py: Python<'_>) -> PyResult<Option<Arc<Stream>>> {
    OPEN.find(py, |stream| Some(Arc::clone(stream)))
}

/// The queue for work without a named one.
pub(crate) fn stream(py: Python<'_>) -> PyResult<Arc<Stream>> {
    match innermost(py)? {
        Some(stream) => Ok(stream),
        None => runtime::default_entry(py)?.scope()?.queue(),
    }
}

/// The device if none is named.
pub(crate) fn device(py: Python<'_>) -> PyResult<PyDevice> {
    let Some(stream) = innermost(py)? else {
        return runtime::default_entry(py).map(|entry| PyDevice(Arc::clone(entry)));
    };
    runtime::listed(py, stream.context().info())
        .map(|entry| PyDevice(Arc::clone(entry)))
        .ok_or_else(|| Class::Device.error("the queue of this `with` block is on no device that usm lists"))
}

/// The device of a selector. Where it names no runtime, that of the default device comes first, so
/// that both work together in one call.
pub(crate) fn select(py: Python<'_>, text: &str) -> PyResult<PyDevice> {
    let names_no_runtime = text.parse::<Selector>().is_ok_and(|it| it.backend.is_none() && !it.sycl);
    if names_no_runtime && let Ok(default) = device(py) {
        let selector = format!("{}:{text}", default.0.info.backend.name());
        if let Ok(entry) = runtime::select(py, &selector) {
            return Ok(PyDevice(Arc::clone(entry)));
        }
    }
    runtime::select(py, text).map(|entry| PyDevice(Arc::clone(entry)))
}
