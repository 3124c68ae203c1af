//! `usm.Queue` and `usm.Event`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use usm_core::backend::Dyn;
use usm_core::{Error, ErrorKind, Event, EventStatus, QueueOrder};

use crate::capsule;
use crate::context::{PyContext, device_of};
use crate::device::PyDevice;
use crate::error::OrRaise;
use crate::runtime::Stream;
use crate::sycl;
use crate::transfer;

/// Ordered submission of work.
#[pyclass(frozen, module = "usm", name = "Queue")]
#[derive(Clone, Debug)]
pub(crate) struct PyQueue(pub(crate) Arc<Stream>);

/// The completion of one operation.
#[pyclass(frozen, module = "usm", name = "Event")]
#[derive(Clone, Debug)]
pub(crate) struct PyEvent(pub(crate) Event<Dyn>);

#[pymethods]
impl PyQueue {
    /// `device` is a device, a selector, a context, or a queue of dpctl's, which is then shared.
    #[new]
    #[pyo3(signature = (device=None, in_order=true))]
    fn new(py: Python<'_>, device: Option<&Bound<'_, PyAny>>, in_order: bool) -> PyResult<Self> {
        let scope = match device {
            Some(given) if given.is_instance_of::<PyContext>() => {
                Arc::clone(&given.cast::<PyContext>()?.get().0)
            }
            Some(given) if sycl::looks_like_queue(given)? => return sycl::stream_of(given).map(Self),
            _ => device_of(py, device)?.0.scope()?,
        };
        let order = if in_order { QueueOrder::InOrder } else { QueueOrder::OutOfOrder };
        let queue = py.detach(|| scope.context.queue(order)).or_raise()?;
        Ok(Self(Stream::new(queue, &scope)))
    }

    #[getter]
    fn device(&self, py: Python<'_>) -> Option<PyDevice> {
        self.context().device(py)
    }

    #[getter]
    fn context(&self) -> PyContext {
        PyContext(self.0.scope())
    }

    #[getter]
    fn is_in_order(&self) -> bool {
        self.0.queue.order() == QueueOrder::InOrder
    }

    /// Waits until everything submitted before has finished, at most `timeout` seconds.
    #[pyo3(signature = (timeout=30.0))]
    fn wait(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        wait(py, timeout, |limit| self.0.queue.wait_for(limit))
    }

    /// An event after everything submitted before.
    fn barrier(&self, py: Python<'_>) -> PyResult<PyEvent> {
        py.detach(|| self.0.queue.barrier(&[])).or_raise().map(PyEvent)
    }

    /// Copies `src` into `dst`, two contiguous arrays or memory objects of this queue's context, and does not wait:
    /// the event says when it is done. Memory that was imported must not be touched elsewhere meanwhile.
    fn copy(&self, py: Python<'_>, dst: &Bound<'_, PyAny>, src: &Bound<'_, PyAny>) -> PyResult<PyEvent> {
        transfer::copy_async(py, &self.0, dst, src).map(PyEvent)
    }

    /// A fresh `SyclQueueRef` capsule; SYCL only.
    fn _get_capsule<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::of_queue(py, &self.0)
    }

    fn __repr__(&self) -> String {
        let selector = usm_core::Selector::of(self.0.context().info());
        let order = if self.is_in_order() { "in order" } else { "out of order" };
        format!("<usm.Queue on {selector}, {order}>")
    }
}

#[pymethods]
impl PyEvent {
    /// Whether the operation has finished; never waits.
    #[getter]
    fn done(&self) -> PyResult<bool> {
        Ok(self.0.status().or_raise()? == EventStatus::Complete)
    }

    /// Waits until the operation has finished, at most `timeout` seconds.
    #[pyo3(signature = (timeout=30.0))]
    fn wait(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        wait(py, timeout, |limit| self.0.wait_for(limit))
    }

    fn __repr__(&self) -> &'static str {
        match self.0.status() {
            Ok(EventStatus::Complete) => "<usm.Event done>",
            Ok(EventStatus::Pending) => "<usm.Event pending>",
            Err(_) => "<usm.Event failed>",
        }
    }
}

/// How long a wait goes on before signals are looked at: Ctrl-C.
const UNTIL_SIGNALS: Duration = Duration::from_millis(100);

/// Waits by `wait`, which gets a limit, at most `timeout` seconds in all, without the interpreter.
pub(crate) fn wait(
    py: Python<'_>,
    timeout: f64,
    wait: impl Fn(Duration) -> usm_core::Result<()> + Sync,
) -> PyResult<()> {
    let (start, limit) = (Instant::now(), seconds(timeout)?);
    loop {
        let left = limit.saturating_sub(start.elapsed());
        match py.detach(|| wait(left.min(UNTIL_SIGNALS))) {
            Err(Error { kind: ErrorKind::Timeout { .. }, .. }) if left > UNTIL_SIGNALS => {
                py.check_signals()?
            }
            Err(mut error) => {
                if let ErrorKind::Timeout { limit_ms } = &mut error.kind {
                    *limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                } else {
                    // One of several queues failed; the others are waited for all the same.
                    let _ = py.detach(|| wait(limit.saturating_sub(start.elapsed())));
                }
                return Err(error).or_raise();
            }
            Ok(()) => return Ok(()),
        }
    }
}

/// A time limit from Python.
fn seconds(value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| PyValueError::new_err("a timeout is a number of seconds, not negative"))
}
