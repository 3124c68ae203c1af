//! `usm.Device` and `usm.devices`.

pub(crate) mod blocks;
pub(crate) mod choice;
pub(crate) mod context;
pub(crate) mod default_blocks;
pub(crate) mod defaults;
pub(crate) mod handles;
pub(crate) mod queue;
pub(crate) mod runtime;

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use usm_core::{AccessFlags, Capabilities, DeviceInfo, Error, ErrorKind, Selector};
use usm_plan::units;

use crate::device::choice::device_of;
use crate::device::handles::{PyContext, PyDevice};
use crate::device::runtime::Entry;
use crate::text::argument;
use crate::text::error::OrRaise;
use crate::text::html::{self, bundle};

bundle!(PyDevice, "text/html", |device, py| Ok(device._repr_html_(py)));

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (selector=None))]
    fn new(py: Python<'_>, selector: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        device_of(py, selector, ("selector", argument::DEVICE))
    }

    /// The selector of exactly this device.
    #[getter]
    fn selector(&self) -> String {
        self.0.selector()
    }

    /// The device's name, from the runtime.
    #[getter]
    fn name(&self) -> &str {
        self.0.info.name.as_str()
    }

    /// The device's vendor.
    #[getter]
    fn vendor(&self) -> &str {
        self.0.info.vendor.as_str()
    }

    /// The runtime's name for the platform, which distinguishes two drivers of one runtime. Empty
    /// for the host.
    #[getter]
    fn platform(&self) -> &str {
        self.0.info.platform.as_str()
    }

    /// The driver's version as it reports it. Empty for the host.
    #[getter]
    fn driver_version(&self) -> &str {
        self.0.info.driver_version.as_str()
    }

    /// The runtime's name in `usm.backends()`: `"host"`, `"cuda"` and so on.
    #[getter]
    fn backend(&self) -> &'static str {
        self.0.info.backend.name()
    }

    /// `"cpu"`, `"gpu"`, `"accelerator"`, `"host"` and so on.
    #[getter]
    fn r#type(&self) -> &'static str {
        self.0.info.device_type.name()
    }

    /// Largest size of one allocation in bytes.
    #[getter]
    fn max_alloc_size(&self) -> u64 {
        self.0.info.max_alloc_size
    }

    /// Size of the device's memory in bytes.
    #[getter]
    fn global_mem_size(&self) -> u64 {
        self.0.info.global_mem_size
    }

    /// Free bytes of the device's memory, after all programs' use; ``None`` if the runtime does not
    /// report it. For a CPU, the memory that the system can give.
    #[getter]
    fn free_memory(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        let scope = self.0.scope()?;
        match py.detach(|| scope.context.free_memory()) {
            Err(Error { kind: ErrorKind::Unsupported { .. }, .. }) => Ok(None),
            other => other.or_raise().map(Some),
        }
    }

    /// Largest local memory of a work-group in bytes.
    #[getter]
    fn local_mem_size(&self) -> u64 {
        self.0.info.local_mem_size
    }

    /// Largest number of work-items in a work-group.
    #[getter]
    fn max_work_group_size(&self) -> u64 {
        self.0.info.max_work_group_size
    }

    /// Whether host and device share their memory.
    #[getter]
    fn integrated(&self) -> bool {
        self.0.info.integrated
    }

    /// For each kind of memory, bits: access 1, atomic 2, concurrent 4, concurrent atomic 8.
    #[getter]
    fn capabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        capabilities_of(py, &self.0.info)
    }

    /// The device's default context.
    #[getter]
    fn context(&self) -> PyResult<PyContext> {
        self.0.scope().map(PyContext)
    }

    fn __repr__(&self) -> String {
        format!("usm.Device({:?})", self.0.selector())
    }

    /// The table shown in notebooks.
    fn _repr_html_(&self, py: Python<'_>) -> String {
        let info = &self.0.info;
        let mut rows = vec![
            ("selector", self.0.selector()),
            ("name", info.name.to_string()),
            ("vendor", info.vendor.to_string()),
            ("type", info.device_type.name().to_owned()),
            ("memory", units::shown(info.global_mem_size)),
            ("largest allocation", units::shown(info.max_alloc_size)),
            ("local memory", units::shown(info.local_mem_size)),
            ("largest work-group", info.max_work_group_size.to_string()),
        ];
        if let Ok(Some(free)) = self.free_memory(py) {
            rows.insert(5, ("free memory", units::shown(free)));
        }
        html::properties(&rows)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| Arc::ptr_eq(&self.0, &other.get().0))
    }

    /// Pickles and copies by the selector.
    fn __reduce__(slf: &Bound<'_, Self>) -> (Py<PyAny>, (String,)) {
        (slf.get_type().into_any().unbind(), (slf.get().selector(),))
    }

    fn __hash__(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

/// The state of each runtime: a dictionary with the keys of ``usm devices --json``. ``found`` tells
/// whether its library was opened, ``library`` is its file, ``error`` the reason why it cannot be
/// used, and ``devices`` has a dictionary for each device. Opens every runtime, as `devices` does.
#[pyfunction]
pub(crate) fn backends(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let all = PyList::empty(py);
    for runtime in runtime::all(py).iter() {
        let devices = runtime.devices();
        let row = PyDict::new(py);
        row.set_item("name", runtime.name())?;
        row.set_item("compiled", runtime.is_compiled())?;
        row.set_item("found", runtime.backend().is_some())?;
        row.set_item("library", runtime.library().map(|path| path.display().to_string()))?;
        row.set_item("error", devices.err().map(ToString::to_string))?;
        let devices = devices.unwrap_or_default().iter();
        row.set_item(
            "devices",
            devices.map(|device| row_of(py, &device.info())).collect::<PyResult<Vec<_>>>()?,
        )?;
        all.append(row)?;
    }
    Ok(all)
}

/// All devices: SYCL's in the runtime's order if dpctl is importable, those of Level Zero, CUDA,
/// OpenCL and HIP, then the host. Opens every runtime, HIP too. A HIP device is used only if `hip`
/// is named, because HIP was never run on an AMD GPU. Notebooks show the list as a table.
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    runtime::open_hip(py);
    runtime::check_all_listed(py)?;
    let devices: Vec<_> = runtime::entries(py).map(|entry| PyDevice(Arc::clone(entry))).collect();
    py.import("usm.device_list")?.getattr("DeviceList")?.call1((devices,))
}

/// The table of devices shown in notebooks.
#[pyfunction]
pub(crate) fn _devices_html(devices: &Bound<'_, PyAny>) -> PyResult<String> {
    let entry = |device: &Bound<'_, PyAny>| Ok(Arc::clone(&device.cast::<PyDevice>()?.get().0));
    let devices: Vec<Arc<Entry>> = argument::items(devices, usize::MAX, entry)?;
    let row = |device: &Arc<Entry>| {
        let info = &device.info;
        [
            device.selector(),
            info.name.to_string(),
            info.vendor.to_string(),
            units::shown(info.global_mem_size),
            units::shown(info.local_mem_size),
        ]
    };
    Ok(html::table(&["selector", "name", "vendor", "memory", "local memory"], devices.iter().map(row)))
}

/// A device in the form of `usm devices --json`.
fn row_of<'py>(py: Python<'py>, info: &DeviceInfo) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("selector", Selector::of(info).to_string())?;
    row.set_item("name", info.name.as_str())?;
    row.set_item("vendor", info.vendor.as_str())?;
    row.set_item("type", info.device_type.name())?;
    row.set_item("max_alloc_size", info.max_alloc_size)?;
    row.set_item("global_mem_size", info.global_mem_size)?;
    row.set_item("local_mem_size", info.local_mem_size)?;
    row.set_item("max_work_group_size", info.max_work_group_size)?;
    row.set_item("capabilities", capabilities_of(py, info)?)?;
    row.set_item("platform", info.platform.as_str())?;
    row.set_item("driver_version", info.driver_version.as_str())?;
    row.set_item("queue_memory", info.queue_memory)?;
    Ok(row)
}

fn capabilities_of<'py>(py: Python<'py>, info: &DeviceInfo) -> PyResult<Bound<'py, PyDict>> {
    let Capabilities { host, device, shared, cross_device_shared, system, .. } = info.capabilities;
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
