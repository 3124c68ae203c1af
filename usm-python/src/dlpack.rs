//! DLPack, both ways: capsules by the rules of renaming and deleting, memory without a copy.

use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::Mutex;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyInt};
use usm_core::{AllocKind, BackendKind};
use usm_interface::dlpack::abi::{self, DLManagedTensor, DLManagedTensorVersioned, Managed, Structure};
use usm_interface::dlpack::{
    DataType, Device, DeviceType, FLAG_IS_COPIED, FLAG_READ_ONLY, RawTensor, Tensor, Version, stream_argument,
};
use usm_interface::value::Int;
use usm_interface::{Layout, Policy};

use crate::error::{Class, OrRaise};
use crate::runtime;
use crate::storage::Storage;
use crate::sycl;
use crate::transfer::{self, Side};
use crate::view::{MAX_DIMS, View};

/// Where DLPack says that an array is. USM of SYCL has one device type whatever the kind; its id counts root devices. All
/// other memory is exported to the host, device memory as a copy: DLPack has no type for it.
pub(crate) fn device(side: &Side) -> Device {
    match side.stream.context().info() {
        info if info.backend == BackendKind::Sycl => {
            Device { kind: DeviceType::OneApi, id: info.ordinal as i32 }
        }
        _ => Device::CPU,
    }
}

/// The arguments of `__dlpack__`.
#[derive(Debug)]
pub(crate) struct Wishes<'a, 'py> {
    pub(crate) stream: Option<&'a Bound<'py, PyAny>>,
    pub(crate) max_version: Option<(u32, u32)>,
    pub(crate) dl_device: Option<(i32, i32)>,
    pub(crate) copy: Option<bool>,
}

/// `__dlpack__`: waits for work that is in flight, so whatever stream the consumer uses is ordered after it.
pub(crate) fn export<'py>(
    py: Python<'py>,
    side: &Side,
    wishes: &Wishes<'_, 'py>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let here = device(side);
    let wanted = match wishes.dl_device {
        Some((kind, id)) => Device::from_codes(kind, id).or_raise()?,
        None => here,
    };
    check_stream(wanted, wishes.stream)?;
    let to_host = wanted.kind == DeviceType::Cpu;
    if wanted != here && !to_host {
        let (kind, id) = (wanted.kind.code(), wanted.id);
        return Err(
            Class::Access.error(format!("the array cannot be exported to the DLPack device ({kind}, {id})"))
        );
    }
    let must_copy = to_host && !side.storage.is_host_accessible();
    if must_copy && wishes.copy == Some(false) {
        return Err(Class::Access.error("copy=False, but device memory reaches the host only by a copy"));
    }
    let copied = must_copy || wishes.copy == Some(true);
    let side = match (copied, to_host) {
        (false, _) => side.clone(),
        (true, true) => {
            let host = runtime::host(py)?.scope()?.queue()?;
            transfer::duplicate(py, side, &host, AllocKind::Host, 0)?
        }
        (true, false) => transfer::duplicate(py, side, &side.stream, side.storage.kind(), 0)?,
    };
    transfer::expose(py, &side.storage)?;
    let flags = if side.readonly { FLAG_READ_ONLY } else { 0 } | if copied { FLAG_IS_COPIED } else { 0 };
    let versioned = wishes.max_version.is_some_and(|(major, _)| major >= Version::CURRENT.major);
    if side.view.ndim() <= 8 {
        capsule::<8>(py, side, wanted, flags, versioned)
    } else {
        capsule::<MAX_DIMS>(py, side, wanted, flags, versioned)
    }
}

/// A stream of the host or of SYCL carries no number; a queue is accepted, since nothing is left to order.
fn check_stream(device: Device, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let Some(stream) = stream.filter(|stream| !stream.is_none()) else { return Ok(()) };
    if device.kind == DeviceType::OneApi && sycl::looks_like_queue(stream)? {
        return Ok(());
    }
    if !stream.is_instance_of::<PyInt>() {
        return Err(PyTypeError::new_err("stream is not an integer, a queue or None"));
    }
    let number = stream.extract::<i64>().map(Int::from).unwrap_or(Int::new(false, None));
    stream_argument(device.kind, Some(number)).or_raise().map(drop)
}

fn capsule<const N: usize>(
    py: Python<'_>,
    side: Side,
    device: Device,
    flags: u64,
    versioned: bool,
) -> PyResult<Bound<'_, PyCapsule>> {
    let view = &side.view;
    let refused = |reason: &str| Class::Access.error(format!("DLPack cannot say this array: {reason}"));
    let Some(dtype) = DataType::of(view.dtype).filter(|_| view.dtype.is_native()) else {
        return Err(refused(&format!("elements of type {}", view.dtype)));
    };
    let strides =
        view.element_strides().ok_or_else(|| refused("strides that are no multiple of the element"))?;
    let wide = |values: &[isize]| values.iter().map(|value| *value as i64).collect::<Vec<_>>();
    let data = (side.storage.address() + view.offset) as *mut core::ffi::c_void;
    let raw = RawTensor {
        data: data as u64,
        device: (device.kind.code(), device.id),
        ndim: view.ndim() as i32,
        dtype,
        shape: Some(&wide(&view.shape)),
        strides: Some(&wide(&strides)),
        byte_offset: 0,
        flags,
        version: Some(Version::CURRENT),
    };
    let tensor: Tensor<N> = raw.validate(&Policy::default()).or_raise()?;
    if versioned {
        let managed = abi::export(&tensor, data, side).or_raise()?;
        return hand_out(py, managed, abi::VERSIONED, delete::<DLManagedTensorVersioned>);
    }
    if side.readonly {
        return Err(refused("read-only, which the consumer's version of DLPack has no flag for"));
    }
    let managed = abi::export_legacy(&tensor, data, side).or_raise()?;
    hand_out(py, managed, abi::LEGACY, delete::<DLManagedTensor>)
}

fn hand_out<'py, T: Structure>(
    py: Python<'py>,
    managed: Managed<T>,
    name: &'static CStr,
    destructor: unsafe extern "C" fn(*mut ffi::PyObject),
) -> PyResult<Bound<'py, PyCapsule>> {
    let raw = managed.into_raw();
    // SAFETY: the destructor deletes the structure unless a consumer has renamed the capsule and taken it.
    let made = unsafe { PyCapsule::new_with_pointer_and_destructor(py, raw.cast(), name, Some(destructor)) };
    made.inspect_err(|_| {
        // SAFETY: nobody has it.
        drop(unsafe { Managed::from_raw(raw) });
    })
}

/// A tensor structure and the name that its capsule has while nobody has taken it.
trait Named: Structure {
    const NAME: &'static CStr;
    const USED: &'static CStr;
}

impl Named for DLManagedTensor {
    const NAME: &'static CStr = abi::LEGACY;
    const USED: &'static CStr = abi::USED_LEGACY;
}

impl Named for DLManagedTensorVersioned {
    const NAME: &'static CStr = abi::VERSIONED;
    const USED: &'static CStr = abi::USED_VERSIONED;
}

/// Deletes what nobody has taken.
unsafe extern "C" fn delete<T: Named>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls the destructor with its capsule; the name is terminated.
    let pointer = unsafe {
        match ffi::PyCapsule_IsValid(capsule, T::NAME.as_ptr()) {
            0 => std::ptr::null_mut(),
            _ => ffi::PyCapsule_GetPointer(capsule, T::NAME.as_ptr()),
        }
    };
    if let Some(raw) = NonNull::new(pointer.cast::<T>()) {
        // SAFETY: the name says that the structure is still the capsule's, which dies.
        drop(unsafe { Managed::from_raw(raw) });
    }
}

/// Takes the tensor out of a capsule that still has it.
fn take<T: Named>(capsule: &Bound<'_, PyCapsule>) -> PyResult<Option<Managed<T>>> {
    let Ok(pointer) = capsule.pointer_checked(Some(T::NAME)) else { return Ok(None) };
    // SAFETY: a capsule; the name lives for ever.
    if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), T::USED.as_ptr()) } != 0 {
        return Err(PyErr::fetch(capsule.py()));
    }
    // SAFETY: the name promised a structure of this sort, and the new one that it is ours now.
    Ok(Some(unsafe { Managed::from_raw(pointer.cast()) }))
}

/// Memory behind `__dlpack__`, without a copy; `None` when the object has no such method.
pub(crate) fn import(object: &Bound<'_, PyAny>) -> PyResult<Option<Side>> {
    let py = object.py();
    let Some(method) = object.getattr_opt(intern!(py, "__dlpack__"))? else { return Ok(None) };
    let arguments = PyDict::new(py);
    let newest = (Version::CURRENT.major, Version::CURRENT.minor);
    arguments.set_item(intern!(py, "max_version"), newest)?;
    let capsule = match method.call((), Some(&arguments)) {
        // A producer that knows no such argument.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => method.call0()?,
        other => other?,
    };
    let capsule = capsule
        .cast_into::<PyCapsule>()
        .map_err(|_| Class::Interface.error("__dlpack__() gave an object that is no capsule"))?;
    if let Some(managed) = take::<DLManagedTensorVersioned>(&capsule)? {
        return of_tensor(object, managed, false).map(Some);
    }
    if let Some(managed) = take::<DLManagedTensor>(&capsule)? {
        // It cannot say whether it may be written; NumPy reads it the same way.
        return of_tensor(object, managed, true).map(Some);
    }
    Err(Class::Interface.error("the capsule is neither a fresh dltensor nor a fresh dltensor_versioned"))
}

/// Memory of a tensor that is ours now. Whatever is refused here, the tensor's deleter has run once afterwards.
fn of_tensor<T: Structure + 'static>(
    object: &Bound<'_, PyAny>,
    managed: Managed<T>,
    readonly: bool,
) -> PyResult<Side> {
    let py = object.py();
    let tensor: Tensor<MAX_DIMS> = managed.validate(&Policy::default()).or_raise()?;
    let readonly = readonly || tensor.readonly();
    let Some(dtype) = tensor.to_dtype() else {
        let DataType { code, bits, lanes } = tensor.dtype();
        return Err(Class::Interface.error(format!(
            "dtype: elements of code {code}, {bits} bits and {lanes} lanes have no array type here"
        )));
    };
    let itemsize = i64::from(dtype.itemsize());
    let too_far = || Class::Interface.error("strides: a step leaves the address space");
    let strides = tensor.strides().iter().map(|stride| stride.checked_mul(itemsize).ok_or_else(too_far));
    let strides = if tensor.nbytes() == 0 { None } else { Some(strides.collect::<PyResult<Vec<_>>>()?) };
    let layout = Layout::<MAX_DIMS>::new(dtype, tensor.shape(), strides.as_deref(), tensor.byte_offset())
        .or_raise()?;

    let stream = match tensor.device().kind {
        DeviceType::Cpu => runtime::host(py)?.scope()?.queue()?,
        DeviceType::OneApi => {
            let id = tensor.device().id;
            let mut devices =
                runtime::entries(py).iter().filter(|entry| entry.info.backend == BackendKind::Sycl);
            let entry = devices.find(|entry| entry.info.ordinal as i32 == id);
            let missing =
                || Class::Device.error(format!("the tensor is on the SYCL device {id}, which is not there"));
            entry.ok_or_else(missing)?.scope()?.queue()?
        }
        other => {
            let code = other.code();
            return Err(Class::Device
                .error(format!("the tensor is on a DLPack device of type {code}, not the host or SYCL")));
        }
    };
    let context = stream.context();
    if layout.nbytes() == 0 {
        let storage = Storage::allocate(context, AllocKind::Host, 1, 0).or_raise()?;
        return Ok(Side { storage, stream, view: View::of_layout(&layout, 0)?, readonly });
    }
    let Some(address) = tensor.data() else {
        return Err(PyValueError::new_err("data: missing"));
    };
    let low = address.wrapping_add_signed(layout.extent().low);
    let last = address.wrapping_add_signed(layout.extent().high) - 1;
    let kind = match tensor.device().kind {
        DeviceType::Cpu => AllocKind::Host,
        _ => sycl::bounds(context, &layout, address, low, last)?,
    };
    let (Ok(size), Some(pointer)) = (usize::try_from(last - low + 1), NonNull::new(low as *mut u8)) else {
        return Err(Class::Interface.error("data: the array does not fit the address space"));
    };
    // A lock, because a deleter may run on any thread but only one at a time.
    let keeper = Box::new(Mutex::new(managed));
    // SAFETY: the tensor's bytes, of that kind as the device or the runtime says; the managed tensor keeps them alive.
    let storage = unsafe { Storage::foreign(context, kind, pointer, size, object, keeper) };
    Ok(Side { storage, stream, view: View::of_layout(&layout, -layout.extent().low)?, readonly })
}
