//! `usm.Queue` and `usm.Event`.

use std::slice;
use std::sync::Arc;

use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use usm_core::backend::Dyn;
use usm_core::{BackendKind, ErrorKind, Event, EventStatus, QueueOrder};

use crate::device::choice::device_of;
use crate::device::handles::{PyContext, PyDevice, PyQueue};
use crate::device::runtime::Stream;
use crate::exchange::capsule;
use crate::exchange::cuda;
use crate::exchange::sycl;
use crate::process::wait::{self, Limit};
use crate::storage::transfer;
use crate::text::argument;
use crate::text::error::{self, Class, OrRaise};

/// The completion of one operation.
#[pyclass(frozen, weakref, module = "usm", name = "Event")]
#[derive(Clone, Debug)]
pub(crate) struct PyEvent(pub(crate) Event<Dyn>);

/// Reads the argument `after`, a sequence of events.
#[derive(Debug, Default)]
pub(crate) struct After(pub(crate) Vec<Event<Dyn>>);

impl<'py> FromPyObject<'_, 'py> for After {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let event = |item: &Bound<'py, PyAny>| Ok(item.cast::<PyEvent>()?.get().0.clone());
        argument::items(&value, usize::MAX, event).map(Self)
    }
}

#[pymethods]
impl PyQueue {
    /// `device` is a device, a selector, a context, or a queue that is then shared: dpctl's, or an
    /// object with `__cuda_stream__`, such as a stream of CuPy, torch or cuda.core. Events
    /// of a `timed` queue know their times.
    #[new]
    #[pyo3(signature = (device=None, in_order=true, *, timed=false))]
    fn new(py: Python<'_>, device: Option<&Bound<'_, PyAny>>, in_order: bool, timed: bool) -> PyResult<Self> {
        let scope = match device {
            Some(argument) if argument.is_instance_of::<PyContext>() => {
                Arc::clone(&argument.cast::<PyContext>()?.get().0)
            }
            Some(argument) if sycl::looks_like_queue(argument)? => {
                // Its properties were chosen when it was made.
                return match timed {
                    true => Err(PyValueError::new_err(
                        "timed: make the dpctl queue with property=\"enable_profiling\"",
                    )),
                    false => sycl::stream_of(argument).map(Self),
                };
            }
            Some(argument) if let Some(stream) = cuda::stream_of(argument)? => {
                return match timed {
                    true => Err(PyValueError::new_err(
                        "timed: a queue over another library's stream has no times",
                    )),
                    false => Ok(Self(stream)),
                };
            }
            _ => device_of(py, device, ("device", argument::QUEUE))?.0.scope()?,
        };
        let order = if in_order { QueueOrder::InOrder } else { QueueOrder::OutOfOrder };
        let context = &scope.context;
        let create = || if timed { context.timed_queue(order) } else { context.queue(order) };
        let queue = py.detach(create).or_raise()?;
        Ok(Self(Stream::new(queue, &scope)))
    }

    /// The device; `None` if usm does not list it.
    #[getter]
    fn device(&self, py: Python<'_>) -> Option<PyDevice> {
        self.context().device(py)
    }

    /// The context of the queue and of its memory.
    #[getter]
    fn context(&self) -> PyContext {
        PyContext(self.0.scope())
    }

    /// The queue's number, unique in the process; `usm.history` and snapshots use it.
    #[getter]
    fn number(&self) -> u64 {
        self.0.number
    }

    /// Whether each operation waits for the previous one.
    #[getter]
    pub(crate) fn is_in_order(&self) -> bool {
        self.0.queue.order() == QueueOrder::InOrder
    }

    /// Waits until all earlier work is complete, at most `timeout` seconds.
    #[pyo3(signature = (timeout=30.0))]
    pub(crate) fn wait(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::timeout)] timeout: f64,
    ) -> PyResult<()> {
        wait::for_pending(py, timeout, self.0.context(), |_| self.0.queue.pending(), || Ok(()))
    }

    /// An event after all earlier work.
    fn barrier(&self, py: Python<'_>) -> PyResult<PyEvent> {
        py.detach(|| self.0.queue.barrier(&[])).or_raise().map(PyEvent)
    }

    /// Copies `src` to `dst`, two contiguous arrays or memory objects of this queue's context,
    /// without waiting. The event tells when the copy is complete. Other code must not access
    /// imported memory meanwhile. `usm.copy` takes memory of other contexts and NumPy's arrays.
    fn copy(&self, py: Python<'_>, dst: &Bound<'_, PyAny>, src: &Bound<'_, PyAny>) -> PyResult<PyEvent> {
        transfer::copy_async(py, &self.0, dst, src).map(PyEvent)
    }

    /// `(0, stream)` for other libraries on CUDA and HIP: the driver's handle of the queue.
    fn __cuda_stream__(&self) -> PyResult<(u8, u64)> {
        match self.0.context().info().backend {
            BackendKind::Cuda | BackendKind::Hip => Ok((0, cuda::handle(&self.0))),
            other => Err(PyAttributeError::new_err(format!("a queue of {other} is no CUDA stream"))),
        }
    }

    /// A fresh `SyclQueueRef` capsule. SYCL only.
    fn _get_capsule<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::of_queue(py, &self.0)
    }

    /// Handles of one queue are equal.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| Arc::ptr_eq(&self.0, &other.get().0))
    }

    fn __hash__(&self) -> usize {
        Arc::as_ptr(&self.0) as usize >> 4
    }

    fn __repr__(&self) -> String {
        let selector = usm_core::Selector::of(self.0.context().info());
        let order = if self.is_in_order() { "in order" } else { "out of order" };
        format!("<usm.Queue on {selector}, {order}>")
    }
}

#[pymethods]
impl PyEvent {
    /// Whether the operation is complete. Never waits.
    #[getter]
    fn done(&self) -> PyResult<bool> {
        Ok(self.0.status().or_raise()? == EventStatus::Complete)
    }

    /// Waits until the operation is complete, at most `timeout` seconds.
    #[pyo3(signature = (timeout=30.0))]
    fn wait(&self, py: Python<'_>, #[pyo3(from_py_with = argument::timeout)] timeout: f64) -> PyResult<()> {
        Limit::seconds(timeout)?.outcome(py, slice::from_ref(self.0.raw()))?.or_raise()
    }

    /// When the device began the operation and when it had finished, in nanoseconds of the
    /// runtime's own clock. Waits for the operation, at most `timeout` seconds. Only events of a
    /// queue made with `timed=True` have times; other events raise a `DeviceError`.
    #[pyo3(signature = (timeout=30.0))]
    fn times(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::timeout)] timeout: f64,
    ) -> PyResult<(u128, u128)> {
        self.wait(py, timeout)?;
        let times = py.detach(|| self.0.times()).map_err(|error| match error.kind {
            ErrorKind::Unsupported { .. } => {
                Class::Device.error(format!("{error}; make the queue by usm.Queue(device, timed=True)"))
            }
            _ => error::core(error),
        })?;
        Ok((times.started.as_nanos(), times.ended.as_nanos()))
    }

    /// `await event`: waits in a thread of the loop's, at most 30 seconds, as `wait` does.
    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let event_loop = py.import("asyncio")?.call_method0("get_running_loop")?;
        let wait = slf.getattr("wait")?;
        event_loop.call_method1("run_in_executor", (py.None(), wait))?.call_method0("__await__")
    }

    fn __repr__(&self) -> &'static str {
        match self.0.status() {
            Ok(EventStatus::Complete) => "<usm.Event done>",
            Ok(EventStatus::Pending) => "<usm.Event pending>",
            Err(_) => "<usm.Event failed>",
        }
    }
}
