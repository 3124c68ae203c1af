//! Exports arrays with `__arrow_c_array__` and its device form.

use std::ffi::c_void;

use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use usm_interface::arrow::Column;
use usm_interface::arrow::abi::{self, ArrowDeviceArray, ArrowSchema, OwnedStructure};
use usm_interface::dlpack::{Device, DeviceType};

use super::capsule;
use crate::array::view::MAX_DIMS;
use crate::exchange::dlpack;
use crate::process::wait::Protocol;
use crate::storage::side::Side;
use crate::storage::transfer;
use crate::text::error::Class;

type Pair<'py> = (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>);

/// `__arrow_c_schema__`.
pub(crate) fn schema<'py>(py: Python<'py>, side: &Side) -> PyResult<Bound<'py, PyCapsule>> {
    capsule::to_capsule(py, column(side, device(side))?.0)
}

/// `__arrow_c_array__`: memory that the host can access.
pub(crate) fn host_pair<'py>(py: Python<'py>, side: &Side) -> PyResult<Pair<'py>> {
    if !side.storage.is_host_accessible() {
        return Err(dlpack::copy_error(
            side,
            "usm.to_numpy(array), or __arrow_c_device_array__ for a consumer on the device",
        ));
    }
    let (schema, array) = column(side, Device::CPU)?;
    transfer::expose_to_host(py, &side.storage, Protocol::Other)?;
    let array = array.into_raw().array;
    // SAFETY: a part of the structure that was held; the rest owns nothing.
    let array = unsafe { OwnedStructure::from_raw(array) };
    Ok((capsule::to_capsule(py, schema)?, capsule::to_capsule(py, array)?))
}

/// `__arrow_c_device_array__`. Work in flight is waited for, so the structure has no event.
pub(crate) fn device_pair<'py>(
    py: Python<'py>,
    side: &Side,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Pair<'py>> {
    // The protocol's rule for options that come later.
    for (name, value) in options.into_iter().flatten() {
        if !value.is_none() {
            return Err(PyNotImplementedError::new_err(format!(
                "__arrow_c_device_array__ has no option {name}"
            )));
        }
    }
    let device = device(side);
    if device.kind == DeviceType::Cpu && !side.storage.is_host_accessible() {
        return Err(dlpack::copy_error(side, "usm.to_numpy(array)"));
    }
    let (schema, array) = column(side, device)?;
    match device.kind {
        DeviceType::Cpu => transfer::expose_to_host(py, &side.storage, Protocol::Other)?,
        _ => transfer::expose(py, &side.storage)?,
    }
    Ok((capsule::to_capsule(py, schema)?, capsule::to_capsule(py, array)?))
}

/// Memory that the host can access is the host's: few consumers know the devices of shared memory.
fn device(side: &Side) -> Device {
    if side.storage.is_host_accessible() { Device::CPU } else { dlpack::device(side) }
}

/// The structures, which own a reference to the array's memory.
fn column(
    side: &Side,
    device: Device,
) -> PyResult<(OwnedStructure<ArrowSchema>, OwnedStructure<ArrowDeviceArray>)> {
    let view = &side.view;
    let access_error = |reason: &str| Class::Access.error(format!("Arrow cannot say this array: {reason}"));
    if view.ndim() == 0 {
        return Err(access_error("it has no dimension; array.reshape(1) has one"));
    }
    if !view.is_c_contiguous() {
        return Err(access_error("it is not in C order; array.copy() is"));
    }
    let shape: Vec<i64> = view.shape().iter().map(|extent| *extent as i64).collect();
    let address = side.storage.address() + view.offset();
    let column = Column::<MAX_DIMS>::new(view.dtype, &shape, address as u64, device);
    let column = column.ok_or_else(|| access_error("its size"))?;
    abi::export(&column, address as *const c_void, side.clone()).map_err(|error| match error.kind() {
        usm_interface::ErrorKind::NotRepresentable(_) => {
            access_error(&format!("elements of type {}", view.dtype))
        }
        _ => access_error(&error.to_string()),
    })
}
