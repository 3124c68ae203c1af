//! Exports arrays with `__dlpack__`.

use std::ffi::c_void;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyInt};
use usm_core::AllocKind;
use usm_interface::Policy;
use usm_interface::dlpack::abi::{self, DLManagedTensorVersioned, OwnedTensor};
use usm_interface::dlpack::{
    DataType, Device, DeviceType, FLAG_IS_COPIED, FLAG_READ_ONLY, FLAG_SUBBYTE_PADDED, RawTensor,
    StreamArgument, Tensor, Version, stream_argument,
};
use usm_interface::value::Int;

use super::{WAYS, capsule, copy_error, device, is_streamed, needs_copy};
use crate::array::view::{FEW_DIMS, MAX_DIMS};
use crate::device::runtime;
use crate::exchange::cuda;
use crate::exchange::sycl;
use crate::storage::side::Side;
use crate::storage::transfer;
use crate::text::error::{Class, OrRaise};

/// The arguments of `__dlpack__`.
#[derive(Debug)]
pub(crate) struct ExportOptions<'a, 'py> {
    pub(crate) stream: Option<&'a Bound<'py, PyAny>>,
    pub(crate) max_version: Option<(u32, u32)>,
    pub(crate) dl_device: Option<(i32, i32)>,
    pub(crate) copy: Option<bool>,
}

/// `__dlpack__`. Work on CUDA and ROCm device memory continues: the consumer's stream waits for it.
/// All other work in flight is waited for, also work on memory of these runtimes that a consumer
/// may read on the host: NumPy accepts such memory and ignores streams.
pub(crate) fn export<'py>(
    py: Python<'py>,
    side: &Side,
    options: &ExportOptions<'_, 'py>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let own_device = device(side);
    let target = match options.dl_device {
        Some((kind, id)) => Device::from_codes(kind, id).or_raise()?,
        None => own_device,
    };
    let stream = read_stream(target, options.stream)?;
    let to_host = target.kind == DeviceType::Cpu;
    if target != own_device && !(to_host && target.id == 0) {
        let (kind, id) = (target.kind.code(), target.id);
        return Err(
            Class::Access.error(format!("the array cannot be exported to the DLPack device ({kind}, {id})"))
        );
    }
    let must_copy = needs_copy(side, target);
    // A consumer that names the host accepts a copy. One that names no device expects the memory.
    let may_copy = options.copy.unwrap_or(options.dl_device.is_some());
    if must_copy && !may_copy {
        return Err(copy_error(side, WAYS));
    }
    let makes_copy = must_copy || options.copy == Some(true);
    let side = match (makes_copy, to_host) {
        (false, _) => side.clone(),
        (true, true) => {
            let host = Arc::clone(runtime::host_stream()?);
            transfer::duplicate(py, side, &host, AllocKind::Host, 0)?
        }
        (true, false) => transfer::duplicate(py, side, &side.stream, side.storage.kind(), 0)?,
    };
    if is_streamed(target.kind) {
        cuda::order_consumer(py, &side, stream)?;
    } else {
        transfer::expose(py, &side.storage)?;
    }
    let copy_flag = if makes_copy { FLAG_IS_COPIED } else { 0 };
    let is_versioned = options.max_version.is_some_and(|(major, _)| major >= Version::CURRENT.major);
    if side.view.ndim() <= FEW_DIMS {
        export_new::<FEW_DIMS>(py, side, target, copy_flag, is_versioned)
    } else {
        export_new::<MAX_DIMS>(py, side, target, copy_flag, is_versioned)
    }
}

/// A stream of the host or of SYCL has no number. A queue is accepted, because no order is left to
/// establish.
fn read_stream(device: Device, stream: Option<&Bound<'_, PyAny>>) -> PyResult<StreamArgument> {
    let number = match stream.filter(|stream| !stream.is_none()) {
        Some(stream) if device.kind == DeviceType::Cpu && stream.is_instance_of::<PyInt>() => {
            return Err(Class::Access.error("stream must be None: the host has no streams"));
        }
        None => None,
        Some(stream) if device.kind == DeviceType::OneApi && sycl::looks_like_queue(stream)? => {
            return Ok(StreamArgument::NoSync);
        }
        Some(stream) if stream.is_instance_of::<PyInt>() && !stream.is_instance_of::<PyBool>() => {
            let small = stream.extract::<i64>().map(Int::from);
            Some(small.unwrap_or_else(|_| Int::new(false, stream.extract().ok())))
        }
        Some(_) => return Err(PyTypeError::new_err("stream is not an integer, a queue or None")),
    };
    stream_argument(device.kind, number).or_raise()
}

/// Whether elements are smaller than a byte: DLPack packs them unless a flag gives each its own
/// byte.
pub(super) fn is_padded(dtype: DataType) -> bool {
    !dtype.element_bits().is_multiple_of(8)
}

#[cold]
pub(super) fn padding_error() -> PyErr {
    Class::Access.error("DLPack cannot say this array: elements of less than a byte that are not packed, without a flag for it")
}

/// The array as a checked tensor, and its data pointer.
pub(super) fn tensor<const N: usize>(
    side: &Side,
    device: Device,
    flags: u64,
) -> PyResult<(Tensor<N>, *mut c_void)> {
    let view = &side.view;
    let access_error = |reason: &str| Class::Access.error(format!("DLPack cannot say this array: {reason}"));
    let Some(dtype) = DataType::of(view.dtype).filter(|_| view.dtype.is_native()) else {
        return Err(access_error(&format!("elements of type {}", view.dtype)));
    };
    let steps =
        view.element_strides().ok_or_else(|| access_error("strides that are no multiple of the element"))?;
    let (mut shape, mut strides) = ([0; N], [0; N]);
    for (slot, extent) in shape.iter_mut().zip(view.shape()) {
        *slot = *extent as i64;
    }
    for (slot, step) in strides.iter_mut().zip(&steps) {
        *slot = *step as i64;
    }
    let ndim = view.ndim().min(N);
    let readonly = if side.storage.is_readonly() { FLAG_READ_ONLY } else { 0 };
    // Every element of an array starts at a byte; without the flag they would count as packed.
    let padding_flag = if is_padded(dtype) { FLAG_SUBBYTE_PADDED } else { 0 };
    let data = (side.storage.address() + view.offset()) as *mut c_void;
    let raw = RawTensor {
        data: data as u64,
        device: (device.kind.code(), device.id),
        ndim: view.ndim() as i32,
        dtype,
        shape: Some(&shape[..ndim]),
        strides: Some(&strides[..ndim]),
        byte_offset: 0,
        flags: flags | readonly | padding_flag,
        version: Some(Version::CURRENT),
    };
    Ok((raw.validate(&Policy::default()).or_raise()?, data))
}

/// A structure that owns a reference to the array's memory.
pub(super) fn managed<const N: usize>(
    side: Side,
    device: Device,
    flags: u64,
) -> PyResult<OwnedTensor<DLManagedTensorVersioned>> {
    let (tensor, data) = tensor::<N>(&side, device, flags)?;
    abi::export(&tensor, data, side).or_raise()
}

fn export_new<const N: usize>(
    py: Python<'_>,
    side: Side,
    device: Device,
    flags: u64,
    is_versioned: bool,
) -> PyResult<Bound<'_, PyCapsule>> {
    if is_versioned {
        return capsule::to_capsule(py, managed::<N>(side, device, flags)?);
    }
    if side.storage.is_readonly() {
        return Err(Class::Access.error(
            "DLPack cannot say this array: read-only, which the consumer's version of DLPack has no flag for",
        ));
    }
    let (tensor, data) = tensor::<N>(&side, device, flags)?;
    if is_padded(tensor.dtype()) {
        return Err(padding_error());
    }
    capsule::to_capsule(py, abi::export_legacy(&tensor, data, side).or_raise()?)
}
