//! Where an array's memory is: hints to the runtime, prefetch and advice, and dpctl's names.

use std::sync::Arc;

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use usm_core::backend::MemAdvice;

use crate::array::Array;
use crate::device::choice;
use crate::device::queue::PyEvent;
use crate::device::runtime::Stream;
use crate::exchange::sycl;
use crate::text::argument;
use crate::text::error::{Class, OrRaise};

/// The values of `advise`.
const ADVICE: [(&str, MemAdvice); 4] = [
    ("reset", MemAdvice::Reset),
    ("read_mostly", MemAdvice::ReadMostly),
    ("prefer_device", MemAdvice::PreferDevice),
    ("prefer_host", MemAdvice::PreferHost),
];

#[pymethods]
impl Array {
    /// The `dpctl.SyclQueue` of the memory, for code that was written for dpctl; only for SYCL, and
    /// in programs that have imported dpctl. ``queue`` is of usm's own class.
    #[getter]
    fn sycl_queue<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let queue = sycl::queue_of_dpctl(py, &self.holding().stream)?;
        queue.ok_or_else(|| PyAttributeError::new_err("no queue of dpctl's: `queue` is of usm's own class"))
    }

    /// ``kind`` by dpctl's name for it; only for SYCL.
    #[getter]
    fn usm_type(&self) -> PyResult<&'static str> {
        match self.holding().stream.is_sycl() {
            true => Ok(self.holding().kind().name()),
            false => {
                Err(PyAttributeError::new_err("memory of another runtime than SYCL: `kind` is its kind"))
            }
        }
    }

    /// Asks the runtime to move the array's whole allocation near the queue's device. Does not
    /// wait. A hint: no value depends on it, and a runtime without prefetch ignores it. ``queue``
    /// defaults to the array's own.
    #[pyo3(signature = (*, queue=None))]
    fn prefetch(&self, py: Python<'_>, queue: Option<&Bound<'_, PyAny>>) -> PyResult<PyEvent> {
        let (stream, storage) = (self.stream_or(queue)?, self.storage());
        py.detach(|| storage.hint(&stream.queue, None)).or_raise().map(PyEvent)
    }

    /// Tells the runtime how the whole allocation will be used: ``"read_mostly"``,
    /// ``"prefer_device"``, ``"prefer_host"``, or ``"reset"``. A hint, as :meth:`prefetch` is. SYCL
    /// supports only ``"reset"``, OpenCL none.
    #[pyo3(signature = (advice, *, queue=None))]
    fn advise(
        &self,
        py: Python<'_>,
        advice: &Bound<'_, PyAny>,
        queue: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyEvent> {
        let fits = "\"read_mostly\", \"prefer_device\", \"prefer_host\" or \"reset\"";
        let word = argument::text("advice", advice, fits)?;
        let Some((_, advice)) = ADVICE.iter().find(|(name, _)| *name == word) else {
            return Err(Class::Request.error(format!("advice {word:?} is not {fits}")));
        };
        let (stream, storage) = (self.stream_or(queue)?, self.storage());
        py.detach(|| storage.hint(&stream.queue, Some(*advice))).or_raise().map(PyEvent)
    }
}

impl Array {
    fn stream_or(&self, queue: Option<&Bound<'_, PyAny>>) -> PyResult<Arc<Stream>> {
        match queue.filter(|queue| !queue.is_none()) {
            Some(queue) => choice::named_stream(queue, ("queue", argument::QUEUE)),
            None => Ok(Arc::clone(&self.holding().stream)),
        }
    }
}
