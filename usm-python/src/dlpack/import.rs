//! Arrays of others: `__dlpack__` and owned tensors.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use usm_core::{AllocKind, BackendKind};
use usm_interface::dlpack::abi::{DLManagedTensor, DLManagedTensorVersioned, Managed, Structure};
use usm_interface::dlpack::{DataType, Device, DeviceType, FLAG_IS_COPIED, Tensor, Version};
use usm_interface::{Layout, Policy};

use super::{capsule, is_cuda};
use crate::attribute;
use crate::bounds;
use crate::cuda;
use crate::error::{Class, OrRaise};
use crate::found::{Found, Keeper, Owner};
use crate::import;
use crate::runtime;
use crate::view::{FEW_DIMS, MAX_DIMS, View};

/// What is asked of the producer beside its memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Request {
    pub(crate) dl_device: Option<(i32, i32)>,
    pub(crate) copy: Option<bool>,
}

/// Memory behind `__dlpack__`, without a copy unless one is asked for; `None` when the object has no such method.
///
/// CUDA's producers are told our stream, which they make wait for their work.
pub(crate) fn import(object: &Bound<'_, PyAny>, request: Request) -> PyResult<Option<Found>> {
    let py = object.py();
    let Some(method) = attribute::get(object, intern!(py, "__dlpack__"))? else { return Ok(None) };
    let arguments = PyDict::new(py);
    // The stream is one of the device that the tensor shall be on.
    let device = match request.dl_device {
        Some((kind, id)) => Some(Device::from_codes(kind, id).or_raise()?),
        None => device_of(object)?,
    };
    let stream = match device {
        Some(device) if is_cuda(device.kind) => Some(cuda::stream(py, device.id)?),
        _ => None,
    };
    if let Some(stream) = &stream {
        arguments.set_item(intern!(py, "stream"), cuda::handle(stream))?;
    }
    let least = arguments.copy()?;
    if let Some(copy) = request.copy {
        arguments.set_item(intern!(py, "copy"), copy)?;
    }
    if let Some(device) = request.dl_device {
        arguments.set_item(intern!(py, "dl_device"), device)?;
    }
    // With such a wish a producer that cannot serve it must not be asked without it.
    let optional = arguments.len() == least.len();
    arguments.set_item(intern!(py, "max_version"), (Version::CURRENT.major, Version::CURRENT.minor))?;
    let capsule = match method.call((), Some(&arguments)) {
        // A producer that knows no such argument.
        Err(error) if optional && error.is_instance_of::<PyTypeError>(py) => method.call((), Some(&least))?,
        other => other?,
    };
    let capsule = capsule
        .cast_into::<PyCapsule>()
        .map_err(|_| Class::Interface.error("__dlpack__() gave an object that is no capsule"))?;
    let found = if let Some(managed) = capsule::take::<DLManagedTensorVersioned>(&capsule)? {
        owned(py, Some(object), managed, false, request.copy == Some(false))?
    } else if let Some(managed) = capsule::take::<DLManagedTensor>(&capsule)? {
        // It cannot say whether it may be written; NumPy reads it the same way.
        owned(py, Some(object), managed, true, false)?
    } else {
        return Err(
            Class::Interface.error("the capsule is neither a fresh dltensor nor a fresh dltensor_versioned")
        );
    };
    if let Some(stream) = stream
        && found.stream.context().id() == stream.context().id()
    {
        // Our stream waits for the producer's work; whatever else of ours uses the memory waits for our stream.
        let storage = found.storage();
        py.detach(|| storage.follow(&stream.queue)).or_raise()?;
    }
    Ok(Some(found))
}

/// `__dlpack_device__()`; `None` without such a method.
fn device_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Device>> {
    let py = object.py();
    let Some(method) = attribute::get(object, intern!(py, "__dlpack_device__"))? else { return Ok(None) };
    let answer = method.call0()?;
    let wrong = || Class::Interface.error("__dlpack_device__() gave no pair of integers");
    let pair = answer.cast::<PyTuple>().map_err(|_| wrong())?;
    let (kind, id) = pair.extract::<(i32, i32)>().map_err(|_| wrong())?;
    Device::from_codes(kind, id).or_raise().map(Some)
}

/// Memory of a tensor that is ours now. Whatever is refused here, the tensor's deleter has run once afterwards.
pub(super) fn owned<T: Structure>(
    py: Python<'_>,
    object: Option<&Bound<'_, PyAny>>,
    managed: Managed<T>,
    readonly: bool,
    refuse_copy: bool,
) -> PyResult<Found>
where
    Keeper: From<Managed<T>>,
{
    match managed.validate::<FEW_DIMS>(&Policy::default()) {
        Ok(tensor) => sized(py, object, managed, &tensor, readonly, refuse_copy),
        // Too many dimensions, or another reason, which is found again.
        Err(_) => {
            let tensor = managed.validate::<MAX_DIMS>(&Policy::default()).or_raise()?;
            sized(py, object, managed, &tensor, readonly, refuse_copy)
        }
    }
}

fn sized<T: Structure, const N: usize>(
    py: Python<'_>,
    object: Option<&Bound<'_, PyAny>>,
    managed: Managed<T>,
    tensor: &Tensor<N>,
    readonly: bool,
    refuse_copy: bool,
) -> PyResult<Found>
where
    Keeper: From<Managed<T>>,
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
    let itemsize = i64::from(dtype.itemsize());
    let mut strides = [0; N];
    for ((slot, stride), extent) in strides.iter_mut().zip(tensor.strides()).zip(tensor.shape()) {
        // Where there is no second element the stride says nothing, and may be anything.
        let bytes = if *extent <= 1 { Some(0) } else { stride.checked_mul(itemsize) };
        *slot = match bytes {
            Some(bytes) => bytes,
            None if tensor.nbytes() == 0 => 0,
            None => return Err(Class::Interface.error("strides: a step leaves the address space")),
        };
    }
    let strides = strides.get(..tensor.shape().len()).filter(|_| tensor.nbytes() > 0);
    let layout = Layout::<N>::new(dtype, tensor.shape(), strides, tensor.byte_offset()).or_raise()?;
    let (view, extent) = (View::of_layout(&layout), layout.extent());
    // The codec refuses a missing pointer where there are bytes.
    let address = tensor.data().unwrap_or(0);
    let device = tensor.device();
    let none = extent.low == extent.high;
    let (stream, kind) = match device.kind {
        DeviceType::Cpu => (Arc::clone(runtime::host_stream()?), AllocKind::Host),
        DeviceType::OneApi => {
            let stream = sycl_stream(py, device.id)?;
            let kind =
                if none { AllocKind::Device } else { bounds::of(stream.context(), extent, address)?.0 };
            (stream, kind)
        }
        kind if is_cuda(kind) => cuda::locate(py, extent, address, device.id)?,
        other => {
            let code = other.code();
            return Err(Class::Device.error(format!(
                "the tensor is on a DLPack device of type {code}, not the host, SYCL or CUDA"
            )));
        }
    };
    if none {
        return import::empty(stream, kind, view, readonly);
    }
    let owner = Owner { object: object.map(|object| object.clone().unbind()), keeper: Keeper::from(managed) };
    // SAFETY: the tensor's bytes, of that kind as the device or the runtime says; the managed tensor keeps them alive.
    unsafe { import::adopt(owner, stream, kind, address, (view, extent), readonly) }
}

pub(super) fn sycl_stream(py: Python<'_>, id: i32) -> PyResult<Arc<runtime::Stream>> {
    let mut devices = runtime::entries(py).iter().filter(|entry| entry.info.backend == BackendKind::Sycl);
    let entry = devices.find(|entry| entry.info.ordinal as i32 == id);
    let missing =
        || Class::Device.error(format!("the tensor is on the SYCL device {id}, which is not there"));
    entry.ok_or_else(missing)?.scope()?.queue()
}
