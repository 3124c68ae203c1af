//! The default device and queue. Each thread has a stack of them, to which `with usm.Device(..)`,
//! `with usm.Queue(..)` and `usm.device_context` push.

use std::cell::RefCell;
use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;

use crate::argument;
use crate::context::PyContext;
use crate::device::PyDevice;
use crate::error::Class;
use crate::import;
use crate::queue::PyQueue;
use crate::runtime::{self, Stream};

thread_local! {
    /// The queues of this thread's blocks, outermost first.
    static OPEN: RefCell<Vec<Arc<Stream>>> = const { RefCell::new(Vec::new()) };
}

/// The queue of this thread's innermost block. None at the end of a thread.
pub(crate) fn innermost() -> Option<Arc<Stream>> {
    OPEN.try_with(|open| open.borrow().last().cloned()).ok().flatten()
}

/// The queue for work without a named one.
pub(crate) fn stream(py: Python<'_>) -> PyResult<Arc<Stream>> {
    match innermost() {
        Some(stream) => Ok(stream),
        None => runtime::default_entry(py)?.scope()?.queue(),
    }
}

/// The device if none is named.
pub(crate) fn device(py: Python<'_>) -> PyResult<PyDevice> {
    let Some(stream) = innermost() else {
        return runtime::default_entry(py).map(|entry| PyDevice(Arc::clone(entry)));
    };
    PyContext(stream.scope())
        .device(py)
        .ok_or_else(|| Class::Device.error("the queue of this `with` block is on no device that usm lists"))
}

fn enter(stream: Arc<Stream>) {
    OPEN.with_borrow_mut(|open| open.push(stream));
}

/// Ends the innermost block of `stream` and waits for it. Generators may end blocks in another
/// order than they began.
fn leave(py: Python<'_>, stream: &Arc<Stream>, raised: &Bound<'_, PyAny>) -> PyResult<()> {
    let left = OPEN.with_borrow_mut(|open| {
        let place = open.iter().rposition(|known| Arc::ptr_eq(known, stream));
        place.map(|place| open.remove(place))
    });
    let Some(left) = left else { return Ok(()) };
    match PyQueue(left).wait(py, WAIT) {
        // The exception from inside the block has precedence.
        Err(error) if !raised.is_none() => {
            raised.call_method1(intern!(py, "add_note"), (format!("the queue then failed: {error}"),))?;
            Ok(())
        }
        outcome => outcome,
    }
}

/// Longest wait at the end of a block in seconds, as for `Queue.wait`.
const WAIT: f64 = 30.0;

#[pymethods]
impl PyDevice {
    /// Makes this device, and its default queue, the default of this thread until the end of the
    /// ``with`` block.
    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        enter(slf.get().0.scope()?.queue()?);
        Ok(slf.clone())
    }

    /// Waits for the device's default queue, at most 30 seconds.
    fn __exit__(
        &self,
        py: Python<'_>,
        _class: &Bound<'_, PyAny>,
        raised: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        leave(py, &self.0.scope()?.queue()?, raised)
    }
}

#[pymethods]
impl PyQueue {
    /// Makes this queue, and its device, the default of this thread until the end of the ``with``
    /// block.
    fn __enter__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        enter(Arc::clone(&slf.get().0));
        slf.clone()
    }

    /// Waits for the queue, at most 30 seconds.
    fn __exit__(
        &self,
        py: Python<'_>,
        _class: &Bound<'_, PyAny>,
        raised: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        leave(py, &self.0, raised)
    }
}

/// ``with usm.device_context(selector) as queue:`` makes a device's default queue, or the given
/// queue, the default of this thread in the block, and waits for it at the end.
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

    fn __enter__(&self) -> PyQueue {
        enter(Arc::clone(&self.0));
        PyQueue(Arc::clone(&self.0))
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _class: &Bound<'_, PyAny>,
        raised: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        leave(py, &self.0, raised)
    }
}
