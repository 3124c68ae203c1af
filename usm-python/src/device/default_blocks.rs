//! The blocks that set the default device and queue: `with usm.Device(..)`, `with usm.Queue(..)`
//! and `usm.device_context`.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::device::choice;
use crate::device::defaults::OPEN;
use crate::device::handles::{PyDevice, PyQueue};
use crate::device::runtime::Stream;
use crate::process::once::name;
use crate::text::argument;

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
        choice::named_stream(device, ("device", argument::QUEUE)).map(Self)
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
