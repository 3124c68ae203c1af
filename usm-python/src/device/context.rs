//! `usm.Context`.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use usm_core::{Error, ErrorKind};

use crate::device::choice::device_of;
use crate::device::handles::{PyContext, PyDevice, PyQueue};
use crate::device::runtime::{self, Scope};
use crate::exchange::capsule;
use crate::process::wait;
use crate::storage::{origin, stats};
use crate::text::argument;
use crate::text::error::OrRaise;

#[pymethods]
impl PyContext {
    #[new]
    #[pyo3(signature = (device=None))]
    fn new(py: Python<'_>, device: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let device = device_of(py, device, ("device", argument::DEVICE))?;
        let scope = Scope::new(device.0.device.context().or_raise()?);
        runtime::note_made(py, &scope);
        Ok(Self(scope))
    }

    /// The device; `None` if usm does not list it.
    #[getter]
    pub(crate) fn device(&self, py: Python<'_>) -> Option<PyDevice> {
        runtime::listed(py, self.0.context.info()).map(|entry| PyDevice(Arc::clone(entry)))
    }

    /// The in-order queue for work without a queue of its own.
    #[getter]
    fn queue(&self) -> PyResult<PyQueue> {
        self.0.queue().map(PyQueue)
    }

    /// Waits until all queues of the context are idle, at most `timeout` seconds. A failure of a
    /// dropped queue is raised once; a failure of a live queue every time.
    #[pyo3(signature = (timeout=30.0))]
    fn synchronize(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::timeout)] timeout: f64,
    ) -> PyResult<()> {
        let context = &self.0.context;
        // The failure of a dropped queue is reported once; the next call reports later ones.
        let tell = || context.synchronize(Duration::ZERO);
        wait::for_pending(py, timeout, context, |limit| context.pending(limit), tell)
    }

    /// Counters of live memory for each kind and in total, in bytes and blocks.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        stats::table(py, &self.0.context.stats())
    }

    /// Keeps the last `records` allocations, frees and refused requests; 0 keeps none.
    fn keep_history(&self, #[pyo3(from_py_with = argument::records)] records: usize) {
        origin::keep_history(&self.0.context, records);
    }

    /// The kept allocations, frees and refused requests, oldest first.
    fn history<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        stats::records(py, &self.0.context)
    }

    /// The memory of a pointer: `(kind, base, size)`. Base and size are 0 if only the runtime knows
    /// the pointer.
    fn query(
        &self,
        #[pyo3(from_py_with = argument::pointer)] pointer: usize,
    ) -> PyResult<(&'static str, usize, usize)> {
        let info = self.0.context.query(pointer as *const u8).or_raise()?;
        Ok((info.kind.name(), info.base, info.size))
    }

    /// Whether this context's device can reach the memory of ``peer``'s, another GPU of the same
    /// runtime, once that is enabled.
    fn can_access_peer(&self, peer: &Self) -> PyResult<bool> {
        match self.0.context.can_access_peer(&peer.0.context) {
            Err(Error { kind: ErrorKind::Unsupported { .. }, .. }) => Ok(false),
            other => other.or_raise(),
        }
    }

    /// Lets this context's device reach the memory of ``peer``'s. Twice is no error; `DeviceError`
    /// where the devices cannot.
    fn enable_peer_access(&self, peer: &Self) -> PyResult<()> {
        self.0.context.enable_peer_access(&peer.0.context).or_raise()
    }

    /// Disables the access that `enable_peer_access` enabled. It is no error if it was not enabled.
    fn disable_peer_access(&self, peer: &Self) -> PyResult<()> {
        self.0.context.disable_peer_access(&peer.0.context).or_raise()
    }

    /// A fresh `SyclContextRef` capsule. SYCL only.
    fn _get_capsule<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::of_context(py, &self.0)
    }

    fn __repr__(&self) -> String {
        let selector = usm_core::Selector::of(self.0.context.info());
        format!("<usm.Context {} on {selector}>", self.0.context.id())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().0.context.id() == self.0.context.id())
    }

    fn __hash__(&self) -> u64 {
        self.0.context.id()
    }
}
