//! Imports arrays: `__dlpack__` and owned tensors.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyDict, PyTuple};
use usm_core::{AllocKind, BackendKind};
use usm_interface::dlpack::abi::{DLManagedTensor, DLManagedTensorVersioned, OwnedTensor, Structure};
use usm_interface::dlpack::{DataType, Device, DeviceType, FLAG_IS_COPIED, Tensor, Version};
use usm_interface::{Dtype, Extent, Policy};

use super::{capsule, streams_of, takes_stream};
use crate::array::Array;
use crate::array::content::{Keeper, Owner};
use crate::array::view::{FEW_DIMS, MAX_DIMS, View};
use crate::device::runtime::{self, Stream};
use crate::exchange::adoption;
use crate::exchange::bounds;
use crate::exchange::cuda;
use crate::exchange::ndarray;
use crate::process::attribute;
use crate::process::once::{LazyCell, name};
use crate::text::argument;
use crate::text::error::{Class, OrRaise};
use usm_array::Axes;

/// The request to the producer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) dl_device: Option<(i32, i32)>,
    pub(crate) copy: Option<bool>,
}

/// Imports memory behind `__dlpack__`, without a copy unless one is requested. `None` if the object
/// has no such method.
///
/// Producers of CUDA and ROCm receive our stream, and make it wait for their work. The structure
/// without a version has no flag for read-only, so its memory is not written, unless the producer
/// states elsewhere that memory at the tensor's address may be: `is_writable`.
pub(crate) fn import<'py>(
    object: &Bound<'py, PyAny>,
    request: Request,
    is_writable: impl FnOnce(u64) -> PyResult<bool>,
) -> PyResult<Option<Bound<'py, Array>>> {
    let py = object.py();
    // NumPy would describe the same array.
    if request == Request::default()
        && let Some(array) = ndarray::import_tensor(object)?
    {
        return Ok(Some(array));
    }
    refuse_pending_negation(object)?;
    // The stream belongs to the device of the requested tensor.
    let device = match request.dl_device {
        Some((kind, id)) => Some(Device::from_codes(kind, id).or_raise()?),
        None => device_of(object)?,
    };
    let stream = match device {
        Some(Device { kind, id }) if takes_stream(kind) => {
            streams_of(kind).map(|backend| cuda::stream(py, backend, id)).transpose()?
        }
        _ => None,
    };
    let capsule = match (&stream, request) {
        (None, Request { dl_device: None, copy: None }) => call_dlpack(object)?,
        (None, _) => with_options(object, request, None)?,
        // torch exports from the current device only; CuPy waits for a stream of that device.
        (Some(stream), _) => cuda::with_device(stream, || with_options(object, request, Some(stream)))?,
    };
    let Some(capsule) = capsule else { return Ok(None) };
    let capsule = capsule
        .cast_into::<PyCapsule>()
        .map_err(|_| Class::Interface.error("__dlpack__() gave an object that is no capsule"))?;
    let array = if let Some(tensor) = capsule::take::<DLManagedTensorVersioned>(&capsule)? {
        owned(py, Some(object), tensor, false, request.copy == Some(false))?
    } else if let Some(tensor) = capsule::take::<DLManagedTensor>(&capsule)? {
        let address = tensor.validate::<MAX_DIMS>(&Policy::default()).or_raise()?.data().unwrap_or(0);
        // NumPy reads it the same way.
        let readonly = !is_writable(address)?;
        owned(py, Some(object), tensor, readonly, false)?
    } else {
        return Err(
            Class::Interface.error("the capsule is neither a fresh dltensor nor a fresh dltensor_versioned")
        );
    };
    match stream {
        // Our stream waits for the producer's work; all other users of the memory wait for our
        // stream.
        Some(stream) if array.get().holding().stream.context().id() == stream.context().id() => {
            let storage = array.get().storage();
            py.detach(|| storage.follow(&stream.queue)).or_raise()?;
        }
        Some(_) => {}
        None => cuda::follow_default_stream(py, &array)?,
    }
    Ok(Some(array))
}

/// torch negates the imaginary part of a conjugated tensor only when it computes with it, and
/// exports the numbers as they lie in memory, without a word.
fn refuse_pending_negation(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let Some(is_negative) = attribute::get(object, name!(object.py(), "is_neg"))? else { return Ok(()) };
    // Of another library's type it may mean anything.
    match is_negative.is_callable() && is_negative.call0()?.is(PyBool::new(object.py(), true)) {
        true => Err(Class::Access
            .error("DLPack cannot say this tensor: its negation is pending; resolve_neg() makes it")),
        false => Ok(()),
    }
}

/// `__dlpack__(max_version=...)`, the usual request. `None` if there is no such method.
fn call_dlpack<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    static ARGUMENT: LazyCell<(Py<PyTuple>, Py<PyTuple>)> = LazyCell::new();
    let py = object.py();
    let (names, version) = ARGUMENT.get_or_try_make(py, || {
        let version = (Version::CURRENT.major, Version::CURRENT.minor).into_pyobject(py)?;
        PyResult::Ok((PyTuple::new(py, [name!(py, "max_version")])?.unbind(), version.unbind()))
    })?;
    let name = name!(py, "__dlpack__");
    match attribute::call(object, name, Some((names.bind(py), version.bind(py).as_any()))) {
        // A producer that does not support this argument.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => attribute::call(object, name, None),
        other => other,
    }
}

/// Calls `__dlpack__` with a stream or with options. `None` if there is no such method.
fn with_options<'py>(
    object: &Bound<'py, PyAny>,
    request: Request,
    stream: Option<&Stream>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    let Some(method) = attribute::get(object, name!(py, "__dlpack__"))? else { return Ok(None) };
    let arguments = PyDict::new(py);
    if let Some(stream) = stream {
        arguments.set_item(name!(py, "stream"), cuda::handle(stream))?;
    }
    let least = arguments.copy()?;
    if let Some(copy) = request.copy {
        arguments.set_item(name!(py, "copy"), copy)?;
    }
    if let Some(device) = request.dl_device {
        arguments.set_item(name!(py, "dl_device"), device)?;
    }
    // A producer that cannot serve such an option must not be called without it.
    let optional = arguments.len() == least.len();
    arguments.set_item(name!(py, "max_version"), (Version::CURRENT.major, Version::CURRENT.minor))?;
    let none = PyTuple::empty(py);
    match method.call(&none, Some(&arguments)) {
        // A producer that does not support this argument.
        Err(error) if optional && error.is_instance_of::<PyTypeError>(py) => method.call(&none, Some(&least)),
        other => other,
    }
    .map(Some)
}

/// `__dlpack_device__()`; `None` if there is no such method.
fn device_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Device>> {
    let Some(answer) = attribute::call(object, name!(object.py(), "__dlpack_device__"), None)? else {
        return Ok(None);
    };
    let wrong = || Class::Interface.error("__dlpack_device__() gave no pair of integers");
    let pair = answer.cast::<PyTuple>().map_err(|_| wrong())?;
    let pair = pair.extract::<(i32, i32)>();
    let (kind, id) = pair.map_err(|error| argument::conversion_error(object.py(), error, wrong))?;
    Device::from_codes(kind, id).or_raise().map(Some)
}

/// The memory of an owned tensor. After a refusal the tensor's deleter has run once.
pub(super) fn owned<'py, T: Structure>(
    py: Python<'py>,
    object: Option<&Bound<'_, PyAny>>,
    owner: OwnedTensor<T>,
    readonly: bool,
    refuse_copy: bool,
) -> PyResult<Bound<'py, Array>>
where
    Keeper: From<OwnedTensor<T>>,
{
    match &owner.validate::<FEW_DIMS>(&Policy::default()) {
        Ok(tensor) => sized(py, object, owner, tensor, readonly, refuse_copy),
        // Too many dimensions, or another fault that the general path finds again.
        Err(_) => {
            let tensor = owner.validate::<MAX_DIMS>(&Policy::default()).or_raise()?;
            sized(py, object, owner, &tensor, readonly, refuse_copy)
        }
    }
}

fn sized<'py, T: Structure, const N: usize>(
    py: Python<'py>,
    object: Option<&Bound<'_, PyAny>>,
    structure: OwnedTensor<T>,
    tensor: &Tensor<N>,
    readonly: bool,
    refuse_copy: bool,
) -> PyResult<Bound<'py, Array>>
where
    Keeper: From<OwnedTensor<T>>,
{
    if refuse_copy && tensor.flags() & FLAG_IS_COPIED != 0 {
        return Err(Class::Access.error("copy=False, but the producer made a copy"));
    }
    let readonly = readonly || tensor.readonly();
    let Some(dtype) = tensor.to_dtype() else {
        let DataType { code, bits, lanes } = tensor.dtype();
        return Err(Class::Interface.error(format!(
            "dtype: elements of code {code}, {bits} bits and {lanes} lanes have no array type here"
        )));
    };
    if tensor.is_packed() {
        return Err(Class::Interface.error(format!(
            "dtype: elements of {} bits are packed, and every element of an array here starts at a byte",
            tensor.dtype().bits
        )));
    }
    let (view, extent) = (view(tensor, dtype)?, tensor.extent());
    // The codec refuses a missing pointer if there are bytes.
    let address = tensor.data().unwrap_or(0);
    let device = tensor.device();
    let (stream, kind) = place(py, device, extent, address)?;
    if extent.low == extent.high {
        return adoption::empty(py, stream, kind, view, readonly);
    }
    let owner =
        Owner { object: object.map(|object| object.clone().unbind()), keeper: Keeper::from(structure) };
    // SAFETY: the tensor's bytes; device or runtime reports the kind. The managed tensor keeps them
    // alive.
    unsafe { adoption::adopt(py, owner, stream, kind, address, (view, extent), readonly) }
}

/// The queue and the kind of memory on a device of DLPack's, whose codes Arrow has too.
pub(crate) fn place(
    py: Python<'_>,
    device: Device,
    extent: Extent,
    address: u64,
) -> PyResult<(Arc<Stream>, AllocKind)> {
    match device.kind {
        DeviceType::Cpu => Ok((Arc::clone(runtime::host_stream()?), AllocKind::Host)),
        DeviceType::OneApi => {
            let stream = sycl_stream(py, device.id)?;
            let kind = match extent.low == extent.high {
                true => AllocKind::Device,
                false => bounds::of(stream.context(), extent, address)?.0,
            };
            Ok((stream, kind))
        }
        other => {
            let code = other.code();
            let Some(backend) = streams_of(other) else {
                return Err(Class::Device.error(format!(
                    "the memory is on a DLPack device of type {code}, not the host, SYCL, CUDA or ROCm"
                )));
            };
            cuda::locate(py, backend, extent, address, device.id)
        }
    }
}

/// Strides and offset in bytes, on a storage that starts at the tensor's lowest byte.
fn view<const N: usize>(tensor: &Tensor<N>, dtype: Dtype) -> PyResult<View> {
    let shape = tensor.shape().iter().map(|extent| *extent as isize).collect();
    let Extent { low, high } = tensor.extent();
    let itemsize = i64::from(dtype.itemsize());
    let steps = tensor.strides().iter().zip(tensor.shape()).map(|(stride, extent)| {
        // A dimension without a second element may have any stride.
        if *extent <= 1 || low == high { Some(0) } else { Some(stride.checked_mul(itemsize)? as isize) }
    });
    let strides = steps.collect::<Option<Axes>>();
    let strides =
        strides.ok_or_else(|| Class::Interface.error("strides: a step leaves the address space"))?;
    // The lowest byte is at most the offset, and their distance does not overflow.
    let offset = tensor.byte_offset().wrapping_sub(low) as usize;
    Ok(View::imported(dtype, shape, strides, if low == high { 0 } else { offset }))
}

pub(super) fn sycl_stream(py: Python<'_>, id: i32) -> PyResult<Arc<Stream>> {
    let mut devices = runtime::entries(py).filter(|entry| entry.info.backend == BackendKind::Sycl);
    let entry = devices.find(|entry| entry.info.ordinal as i32 == id);
    let import_error =
        || Class::Device.error(format!("the tensor is on the SYCL device {id}, which is not there"));
    entry.ok_or_else(import_error)?.scope()?.queue()
}
