//! The C table behind `__dlpack_c_exchange_api__` (DLPack 1.3): converts arrays to tensors and back
//! without a call into Python.
//!
//! "No sync" in the names means that the consumer may not rely on synchronisation. usm waits for
//! its work in flight anyway or, on CUDA and ROCm, orders it before the stream that
//! `current_work_stream` names. So a consumer that asks for no stream is correct too.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::{NonNull, null_mut};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use usm_core::AllocKind;
use usm_interface::Policy;
use usm_interface::dlpack::abi::{
    self, DLDataType, DLDevice, DLManagedTensorVersioned, DLPackExchangeAPI, DLPackExchangeAPIHeader,
    DLPackVersion, DLTensor, OwnedTensor, SetError,
};
use usm_interface::dlpack::{Device, DeviceType, StreamArgument, Tensor, Version};

use super::{WAYS, copy_error, device, export, import, is_streamed, needs_copy, streams_of};
use crate::array::Array;
use crate::array::view::{FEW_DIMS, MAX_DIMS, View};
use crate::device::runtime;
use crate::exchange::cuda;
use crate::process::once::LazyCell;
use crate::storage::Storage;
use crate::storage::side::Side;
use crate::storage::transfer;
use crate::text::error::{Class, OrRaise};

struct Table(DLPackExchangeAPI);

// SAFETY: a constant; the pointer to an older table is NULL.
unsafe impl Sync for Table {}

static TABLE: Table = Table(DLPackExchangeAPI {
    header: DLPackExchangeAPIHeader {
        version: DLPackVersion { major: Version::CURRENT.major, minor: Version::CURRENT.minor },
        prev_api: null_mut(),
    },
    managed_tensor_allocator: Some(allocate),
    managed_tensor_from_py_object_no_sync: Some(from_object),
    managed_tensor_to_py_object_no_sync: Some(to_object),
    dltensor_from_py_object_no_sync: Some(borrow),
    current_work_stream: Some(work_stream),
});

/// The capsule of the table, which has two names; it is never destroyed.
pub(crate) fn capsule(py: Python<'_>) -> PyResult<Py<PyCapsule>> {
    static CAPSULE: LazyCell<Py<PyCapsule>> = LazyCell::new();
    let make = || {
        let table = NonNull::from(&TABLE.0).cast::<c_void>();
        // SAFETY: the table is a constant of this library, which Python never unloads.
        unsafe { PyCapsule::new_with_pointer(py, table, abi::EXCHANGE_API) }.map(Bound::unbind)
    };
    CAPSULE.get_or_try_make(py, make).map(|capsule| capsule.clone_ref(py))
}

/// Runs with the interpreter attached. An exception becomes the current one, and the result -1.
fn guarded(run: impl FnOnce(Python<'_>) -> PyResult<()>) -> c_int {
    let status = Python::try_attach(|py| match run(py) {
        Ok(()) => 0,
        Err(error) => {
            error.restore(py);
            -1
        }
    });
    status.unwrap_or(-1)
}

/// The writable array behind a C pointer, with its work ordered before the device's stream.
///
/// Read-only memory is refused, although a tensor with a version has a flag for it: consumers of
/// the table, such as tvm-ffi, do not look at the flag. They fall back to `__dlpack__`, which is
/// asked for a version.
///
/// # Safety
/// `object` is NULL or an object that the caller holds.
unsafe fn array_of<'py>(py: Python<'py>, object: *mut c_void) -> PyResult<Bound<'py, Array>> {
    // SAFETY: the caller's promise.
    let object = unsafe { Bound::from_borrowed_ptr_or_opt(py, object.cast()) };
    let object = object.ok_or_else(|| PyTypeError::new_err("no object was given"))?;
    let array = object.cast_into::<Array>().map_err(|_| {
        PyTypeError::new_err("this table serves objects of type usm.Array, from which it was taken")
    })?;
    let side = array.get().side();
    if side.storage.is_readonly() {
        return Err(Class::Access.error(
            "the array is read-only, which consumers of the exchange table do not respect; __dlpack__ can say it",
        ));
    }
    let own_device = device(&side);
    if needs_copy(&side, own_device) {
        return Err(copy_error(&side, WAYS));
    }
    if is_streamed(own_device.kind) {
        let stream = runtime::default_stream(&side.stream)?;
        cuda::order_consumer(py, &side, StreamArgument::Handle(cuda::handle(&stream)))?;
    } else {
        transfer::expose(py, &side.storage)?;
    }
    Ok(array)
}

unsafe extern "C" fn from_object(object: *mut c_void, out: *mut *mut DLManagedTensorVersioned) -> c_int {
    guarded(|py| {
        // SAFETY: the C caller holds the object.
        let side = unsafe { array_of(py, object) }?.get().side();
        let own_device = device(&side);
        let owner = if side.view.ndim() <= FEW_DIMS {
            export::managed::<FEW_DIMS>(side, own_device, 0)
        } else {
            export::managed::<MAX_DIMS>(side, own_device, 0)
        }?;
        // SAFETY: the C caller provides room for the result.
        unsafe { out.write(owner.into_raw().as_ptr()) };
        Ok(())
    })
}

unsafe extern "C" fn to_object(tensor: *mut DLManagedTensorVersioned, out: *mut *mut c_void) -> c_int {
    guarded(|py| {
        let tensor = NonNull::new(tensor).ok_or_else(|| PyTypeError::new_err("no tensor was given"))?;
        // SAFETY: the C caller hands the tensor over in any case.
        let owner = unsafe { OwnedTensor::from_raw(tensor) };
        let array = import::owned(py, None, owner, false, false)?;
        // SAFETY: the C caller provides room for the result, a new reference.
        unsafe { out.write(array.into_ptr().cast()) };
        Ok(())
    })
}

unsafe extern "C" fn borrow(object: *mut c_void, out: *mut DLTensor) -> c_int {
    guarded(|py| {
        // SAFETY: the C caller holds the object.
        let array = unsafe { array_of(py, object) }?;
        let array = array.get();
        let side = array.side();
        let own_device = device(&side);
        let (dtype, data) = {
            let (tensor, data): (Tensor<MAX_DIMS>, _) = export::tensor(&side, own_device, 0)?;
            array.dims().get_or_init(|| [tensor.shape(), tensor.strides()].concat().into());
            (tensor.dtype(), data)
        };
        if export::is_padded(dtype) {
            return Err(export::padding_error());
        }
        let ndim = side.view.ndim();
        let dims = array.dims().get().map_or(&[][..], |dims| &**dims);
        let at = |start: usize| dims.get(start..).map_or(null_mut(), |dims| dims.as_ptr().cast_mut());
        let tensor = DLTensor {
            data,
            device: DLDevice { device_type: own_device.kind.code(), device_id: own_device.id },
            ndim: ndim as i32,
            dtype: DLDataType { code: dtype.code, bits: dtype.bits, lanes: dtype.lanes },
            shape: at(0),
            strides: at(ndim),
            byte_offset: 0,
        };
        // SAFETY: the C caller provides room for the result. Shape, strides and memory live as long
        // as the object.
        unsafe { out.write(tensor) };
        Ok(())
    })
}

unsafe extern "C" fn work_stream(device_type: i32, device_id: i32, out: *mut *mut c_void) -> c_int {
    guarded(|py| {
        let stream = match Device::from_codes(device_type, device_id).or_raise()? {
            // All work is complete when such memory is exported.
            Device { kind: DeviceType::Cpu | DeviceType::OneApi, .. } => null_mut(),
            Device { kind, id } => {
                let Some(backend) = streams_of(kind) else {
                    let message = format!("usm has no memory on DLPack devices of type {device_type}");
                    return Err(Class::Device.error(message));
                };
                let stream = cuda::stream(py, backend, id)?;
                cuda::handle(&stream) as *mut c_void
            }
        };
        // SAFETY: the C caller provides room for the result.
        unsafe { out.write(stream) };
        Ok(())
    })
}

/// A new array with the prototype's type, shape and device.
unsafe extern "C" fn allocate(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    context: *mut c_void,
    set_error: SetError,
) -> c_int {
    let result = Python::try_attach(|py| {
        // SAFETY: the C caller provides a tensor with a readable shape.
        let prototype = unsafe { prototype.as_ref() };
        prototype.ok_or_else(|| PyTypeError::new_err("no prototype was given")).and_then(|prototype| {
            let prototype = DLTensor { strides: null_mut(), byte_offset: 0, data: null_mut(), ..*prototype };
            // SAFETY: as above; the strides are NULL.
            unsafe { empty_like(py, &prototype) }
        })
    });
    let report_error = |kind: &str, message: String| {
        let kind = CString::new(kind).unwrap_or_default();
        let message = CString::new(message).unwrap_or_default();
        let texts: (*const c_char, *const c_char) = (kind.as_ptr(), message.as_ptr());
        // SAFETY: the C caller provides the function for its context; the texts live until it
        // returns.
        unsafe { set_error(context, texts.0, texts.1) };
        -1
    };
    match result {
        Some(Ok(owner)) => {
            // SAFETY: the C caller provides room for the result.
            unsafe { out.write(owner.into_raw().as_ptr()) };
            0
        }
        Some(Err(error)) => {
            let kind = Python::attach(|py| {
                if error.is_instance_of::<pyo3::exceptions::PyMemoryError>(py) {
                    "MemoryError"
                } else if error.is_instance_of::<pyo3::exceptions::PyTypeError>(py) {
                    "TypeError"
                } else {
                    "BufferError"
                }
            });
            report_error(kind, Python::attach(|py| error.value(py).to_string()))
        }
        None => report_error("RuntimeError", "the interpreter is not running".to_owned()),
    }
}

/// # Safety
/// The prototype's shape is NULL or readable for its dimensions; its strides are NULL.
unsafe fn empty_like(
    py: Python<'_>,
    prototype: &DLTensor,
) -> PyResult<OwnedTensor<DLManagedTensorVersioned>> {
    // SAFETY: the caller's promise.
    let raw = unsafe { abi::read(prototype, None, 0) }.or_raise()?;
    // Any address except NULL will do: it is never dereferenced.
    let raw = usm_interface::dlpack::RawTensor { data: 1 << 12, ..raw };
    let tensor: Tensor<MAX_DIMS> = raw.validate(&Policy::default()).or_raise()?;
    let Some(dtype) = tensor.to_dtype() else {
        return Err(Class::Access.error("elements of this type have no array type here"));
    };
    let view = View::contiguous(dtype, tensor.shape())?;
    let device = tensor.device();
    let (stream, kind) = match device.kind {
        DeviceType::Cpu => (runtime::host_stream()?.clone(), AllocKind::Host),
        DeviceType::OneApi => (import::sycl_stream(py, device.id)?, AllocKind::Device),
        other => {
            let Some(backend) = streams_of(other) else {
                let message = format!("usm has no memory on DLPack devices of type {}", other.code());
                return Err(Class::Device.error(message));
            };
            let kind = match other {
                DeviceType::CudaHost | DeviceType::RocmHost => AllocKind::Host,
                DeviceType::CudaManaged => AllocKind::Shared,
                _ => AllocKind::Device,
            };
            (cuda::stream(py, backend, device.id)?, kind)
        }
    };
    let storage = py.detach(|| Storage::allocate(&stream, kind, view.nbytes(), 0)).or_raise()?;
    let side = Side { storage, stream, view };
    export::managed::<MAX_DIMS>(side, device, 0)
}
