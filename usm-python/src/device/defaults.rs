//! The default device and queue: those of the innermost block of `with usm.Device(..)`, `with
//! usm.Queue(..)` or `usm.device_context`.

use std::sync::Arc;

use pyo3::prelude::*;
use usm_core::Selector;

use crate::device::PyDevice;
use crate::device::blocks::Blocks;
use crate::device::context::PyContext;
use crate::device::queue::PyQueue;
use crate::device::runtime::{self, Stream};
use crate::exchange::import;
use crate::process::once::name;
use crate::text::argument;
use crate::text::error::Class;

/// The blocks, each with its queue.
static OPEN: Blocks = Blocks::new();

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
    PyContext(stream.scope())
        .device(py)
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

/// Ends a block of `owner` and waits for its queue.
fn leave(owner: &Bound<'_, PyAny>, exception: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = owner.py();
    let Some(left) = OPEN.leave(owner)? else { return Ok(()) };
    match PyQueue(left).wait(py, WAIT) {
        // The exception from inside the block has precedence.
        Err(error) if !exception.is_none() => {
            exception.call_method1(name!(py, "add_note"), (format!("the queue then failed: {error}"),))?;
            Ok(())
        }
        outcome => outcome,
    }
}

/// Longest wait at the end of a block in seconds, as for `Queue.wait`.
const WAIT: f64 = 30.0;

#[pymethods]
impl PyDevice {
    /// Makes this device, and its default queue, the default until the end of the ``with`` block:
    /// of this thread or task, and of tasks that begin in the block. The caller of a generator sees
    /// a block that is open across a ``yield``.
    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        OPEN.enter(slf, slf.get().0.scope()?.queue()?)?;
        Ok(slf.clone())
    }

    /// Waits for the device's default queue, at most 30 seconds.
    fn __exit__(
        slf: &Bound<'_, Self>,
        _class: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        leave(slf, error)
    }
}

#[pymethods]
impl PyQueue {
    /// Makes this queue, and its device, the default until the end of the ``with`` block: of this
    /// thread or task, and of tasks that begin in the block. The caller of a generator sees a block
    /// that is open across a ``yield``.
    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        OPEN.enter(slf, Arc::clone(&slf.get().0))?;
        Ok(slf.clone())
    }

    /// Waits for the queue, at most 30 seconds.
    fn __exit__(
        slf: &Bound<'_, Self>,
        _class: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        leave(slf, error)
    }
}

/// ``with usm.device_context(selector) as queue:`` makes a device's default queue, or the given
/// queue, the default in the block, and waits for it at the end. The default is that of this
/// thread or task, and of tasks that begin in the block. The caller of a generator sees a block
/// that is open across a ``yield``.
///
/// >>> with usm.device_context("host") as queue:
/// ...     usm.zeros(3).device == queue.device
/// True
#[pyclass(frozen, weakref, module = "usm", name = "device_context")]
#[derive(Debug)]
pub(crate) struct PyDeviceContext(Arc<Stream>);

#[pymethods]
impl PyDeviceContext {
    #[new]
    fn new(device: &Bound<'_, PyAny>) -> PyResult<Self> {
        import::named_stream(device, ("device", argument::QUEUE)).map(Self)
    }

    fn __enter__(slf: &Bound<'_, Self>) -> PyResult<PyQueue> {
        let stream = &slf.get().0;
        OPEN.enter(slf, Arc::clone(stream))?;
        Ok(PyQueue(Arc::clone(stream)))
    }

    fn __exit__(
        slf: &Bound<'_, Self>,
        _class: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        leave(slf, error)
    }
}
