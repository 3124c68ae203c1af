//! `usm.Device` and `usm.devices`.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use usm_core::{AccessFlags, Capabilities};

use crate::context::PyContext;
use crate::runtime::{self, Entry};

/// A device of a runtime.
#[pyclass(frozen, module = "usm", name = "Device")]
#[derive(Clone, Debug)]
pub(crate) struct PyDevice(pub(crate) Arc<Entry>);

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (selector=None))]
    fn new(py: Python<'_>, selector: Option<&str>) -> PyResult<Self> {
        let entry = match selector {
            Some(text) => runtime::select(py, text)?,
            None => runtime::default_entry(py)?,
        };
        Ok(Self(Arc::clone(entry)))
    }

    /// The selector that names exactly this device.
    #[getter]
    fn selector(&self) -> String {
        self.0.selector()
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.info.name.as_str()
    }

    #[getter]
    fn vendor(&self) -> &str {
        self.0.info.vendor.as_str()
    }

    /// The platform as the runtime names it: two drivers of one runtime differ here. Empty for the host.
    #[getter]
    fn platform(&self) -> &str {
        self.0.info.platform.as_str()
    }

    /// The driver's version in its own words; empty for the host.
    #[getter]
    fn driver_version(&self) -> &str {
        self.0.info.driver_version.as_str()
    }

    #[getter]
    fn backend(&self) -> &'static str {
        self.0.info.backend.name()
    }

    #[getter]
    fn r#type(&self) -> &'static str {
        self.0.info.device_type.name()
    }

    #[getter]
    fn max_alloc_size(&self) -> u64 {
        self.0.info.max_alloc_size
    }

    #[getter]
    fn global_mem_size(&self) -> u64 {
        self.0.info.global_mem_size
    }

    #[getter]
    fn local_mem_size(&self) -> u64 {
        self.0.info.local_mem_size
    }

    #[getter]
    fn max_work_group_size(&self) -> u64 {
        self.0.info.max_work_group_size
    }

    #[getter]
    fn integrated(&self) -> bool {
        self.0.info.integrated
    }

    /// Bits per kind of memory: access 1, atomic 2, concurrent 4, concurrent atomic 8.
    #[getter]
    fn capabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Capabilities { host, device, shared, cross_device_shared, system, .. } = self.0.info.capabilities;
        let rows: [(&str, AccessFlags); 5] = [
            ("host", host),
            ("device", device),
            ("shared", shared),
            ("cross_device_shared", cross_device_shared),
            ("system", system),
        ];
        let dict = PyDict::new(py);
        for (name, flags) in rows {
            dict.set_item(name, flags.bits())?;
        }
        Ok(dict)
    }

    /// The device's default context.
    #[getter]
    fn context(&self) -> PyResult<PyContext> {
        self.0.scope().map(PyContext)
    }

    fn __repr__(&self) -> String {
        format!("usm.Device({:?})", self.0.selector())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| Arc::ptr_eq(&self.0, &other.get().0))
    }

    fn __hash__(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

/// All devices: SYCL's in the runtime's order when dpctl is importable, those of Level Zero, CUDA, OpenCL and HIP, then the host. This opens every
/// runtime, HIP's too; a device of HIP is used only where `hip` is named, because that has never run on an AMD GPU.
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> Vec<PyDevice> {
    runtime::open_hip(py);
    runtime::entries(py).map(|entry| PyDevice(Arc::clone(entry))).collect()
}
