//! CUDA memory, import and export: `__cuda_array_interface__`, and the order of streams that it and
//! DLPack require. HIP memory supports the streams but not the dictionary, as in CuPy and JAX:
//! consumers of the dictionary assume NVIDIA's memory.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use pyo3::exceptions::{PyException, PyMemoryError, PyRecursionError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use usm_core::backend::{Dyn, DynQueue};
use usm_core::{AllocKind, BackendKind, Context, Queue};
use usm_cuda::{Cuda, CudaContext, CudaQueue, raw};
use usm_interface::dlpack::{DataType, StreamArgument};
use usm_interface::{Extent, Policy, Protocol, SyclObject};

use crate::array::Array;
use crate::device::runtime::{self, Entry, Stream};
use crate::exchange::adoption;
use crate::exchange::bounds;
use crate::exchange::dictionary::{self, CheckedArray};
use crate::process::attribute;
use crate::process::once::name;
use crate::storage::side::Side;
use crate::text::error::{Class, OrRaise};

/// `CU_STREAM_PER_THREAD`, `hipStreamPerThread`: both protocols use the drivers' own handles.
const PER_THREAD: u64 = 2;

/// `CU_STREAM_LEGACY`. Older releases of HIP have no such number; 0 is the device's default stream
/// in all.
fn default_stream_number(backend: BackendKind) -> u64 {
    if backend == BackendKind::Hip { 0 } else { 1 }
}

/// Imports memory behind `__cuda_array_interface__` without a copy. Asks the driver for the
/// memory's owner and size. Orders usm's work after the work on the producer's stream.
pub(crate) fn import<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Array>>> {
    let Some((dict, statement_read)) = statement(object)? else { return Ok(None) };
    adopt(object, dict, statement_read).map(Some)
}

/// The memory of a producer that also has DLPack, which refused with `refusal`. The dictionary
/// states less, so it serves elements only that DLPack has no type for, such as structures. A
/// tensor of numbers was refused for another reason, as torch refuses a conjugated one, whose
/// dictionary does not mention it.
#[cold]
pub(crate) fn import_beyond_dlpack<'py>(
    object: &Bound<'py, PyAny>,
    refusal: PyErr,
) -> PyResult<Bound<'py, Array>> {
    let py = object.py();
    let of_producer = |error: &PyErr| is_of_producer(py, error);
    if !of_producer(&refusal) {
        return Err(refusal);
    }
    // CuPy's DLPack has the wrong numbers for strides below 0, its dictionary the right ones.
    let is_ours = Class::Interface.is_of(&refusal, py);
    let goes_backwards =
        |entry: &CheckedArray<'_>| is_ours && entry.view.strides().iter().any(|stride| *stride < 0);
    let has_no_type =
        |entry: &CheckedArray<'_>| DataType::of(entry.view.dtype).is_none() || !entry.view.dtype.is_native();
    match statement(object) {
        Ok(Some((dict, entry))) if has_no_type(&entry) || goes_backwards(&entry) => {
            adopt(object, dict, entry)
        }
        Err(error) if !of_producer(&error) => Err(error),
        _ => Err(refusal),
    }
}

/// Whether an exception is a producer's refusal, and not the end of memory or of the program.
pub(super) fn is_of_producer(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyException>(py)
        && !error.is_instance_of::<PyMemoryError>(py)
        && !error.is_instance_of::<PyRecursionError>(py)
}

/// Whether a producer's dictionary says that its memory at an address may be written, which
/// DLPack's structure without a version cannot say.
#[cold]
pub(crate) fn is_stated_writable(object: &Bound<'_, PyAny>, address: u64) -> PyResult<bool> {
    let py = object.py();
    let data = adoption::dictionary_of(object, name!(py, "__cuda_array_interface__"))
        .and_then(|dict| dict.map(|dict| dict.get_item(name!(py, "data"))).transpose());
    match data {
        Ok(data) => {
            let pair = data.flatten().and_then(|pair| pair.extract::<(u64, bool)>().ok());
            Ok(pair == Some((address, false)))
        }
        // torch has tensors without a dictionary.
        Err(error) if error.is_instance_of::<PyException>(py) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The dictionary of an object that has one, checked.
fn statement<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyDict>, CheckedArray<'py>)>> {
    let name = name!(object.py(), "__cuda_array_interface__");
    let Some(dict) = adoption::dictionary_of(object, name)? else { return Ok(None) };
    let policy = Policy::default();
    let array = dictionary::read(object, &dict, Protocol::Cuda, &policy, |_| SyclObject::Unknown)?;
    Ok(Some((dict, array)))
}

fn adopt<'py>(
    object: &Bound<'py, PyAny>,
    dict: Bound<'py, PyDict>,
    array: CheckedArray<'py>,
) -> PyResult<Bound<'py, Array>> {
    let py = object.py();
    let CheckedArray { view, extent, address, readonly, stream: order, .. } = array;
    let (mut stream, kind) = match locate(py, BackendKind::Cuda, extent, address, 0) {
        Ok(place) => place,
        // AMD's bindings provide the dictionary for HIP memory too, and it names no runtime. So
        // HIP is tried if the program has opened it.
        Err(cuda) if runtime::has_hip() => locate(py, BackendKind::Hip, extent, address, 0)
            .map_err(|hip| both_refused_error(py, &cuda, &hip))?,
        Err(error) => return Err(error),
    };
    if extent.low == extent.high {
        return adoption::empty(py, stream, kind, view, readonly);
    }
    // Page-locked memory belongs to every device, but a stream to one, and it cannot record events
    // of another device.
    if let (AllocKind::Host, usm_interface::Stream::Handle(handle)) = (kind, order) {
        // SAFETY: the producer guarantees that this is its stream, as below.
        if let Some(id) = unsafe { device_of(stream.context(), handle) } {
            stream = self::stream(py, stream.context().info().backend, id)?;
        }
    }
    let owner = adoption::owner(object, dict, None);
    // SAFETY: the driver reports the bytes as memory of that kind; the producer keeps them alive.
    let array = unsafe { adoption::adopt(py, owner, stream, kind, address, (view, extent), readonly)? };
    let handle = match order {
        usm_interface::Stream::None => return Ok(array),
        usm_interface::Stream::LegacyDefault => {
            default_stream_number(array.get().holding().stream.context().info().backend)
        }
        usm_interface::Stream::PerThreadDefault => PER_THREAD,
        usm_interface::Stream::Handle(handle) => handle,
    };
    // SAFETY: the producer guarantees that this is its stream, and is kept alive. The driver cannot
    // check whether the number is a stream.
    let theirs = unsafe { adopt_stream(array.get().holding().stream.context(), handle) }?;
    let storage = array.get().storage();
    py.detach(|| storage.follow(&theirs)).or_raise()?;
    Ok(array)
}

/// Orders work on memory of CUDA or HIP after its device's default stream: there is the work of a
/// producer that was told no stream. Nothing for other memory.
pub(crate) fn follow_default_stream(py: Python<'_>, array: &Bound<'_, Array>) -> PyResult<()> {
    let context = array.get().holding().stream.context();
    let handle = match context.info().backend {
        backend @ (BackendKind::Cuda | BackendKind::Hip) => default_stream_number(backend),
        _ => return Ok(()),
    };
    // SAFETY: the default stream of a device lives as long as the process.
    let theirs = unsafe { adopt_stream(context, handle) }?;
    let storage = array.get().storage();
    py.detach(|| storage.follow(&theirs)).or_raise()
}

/// Runs `ask` while the stream's device is the thread's current one.
pub(crate) fn with_device<R>(stream: &Stream, ask: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    match stream.context().raw().downcast_ref::<CudaContext>() {
        Some(context) => raw::with_current(context, ask).or_raise()?,
        None => ask(),
    }
}

/// The error for memory that neither CUDA nor HIP accepts, with both reasons.
#[cold]
fn both_refused_error(py: Python<'_>, cuda: &PyErr, hip: &PyErr) -> PyErr {
    PyErr::from_type(hip.get_type(py), (format!("{}; {}", cuda.value(py), hip.value(py)),))
}

/// The queue of a device's default context, for work on the device's memory. HIP memory opens HIP.
pub(crate) fn stream(py: Python<'_>, backend: BackendKind, id: i32) -> PyResult<Arc<Stream>> {
    let word = match backend {
        BackendKind::Hip => {
            runtime::open_hip(py);
            "HIP"
        }
        _ => "CUDA",
    };
    let is_device = |entry: &&Arc<Entry>| entry.info.backend == backend && entry.info.ordinal as i32 == id;
    match runtime::entries(py).find(is_device) {
        Some(entry) => entry.scope()?.queue(),
        None => {
            let reason = runtime::absence_reason(py, backend);
            let reason = reason.as_deref().unwrap_or("no such device");
            Err(Class::Device.error(format!("the memory is on the {word} device {id}: {reason}")))
        }
    }
}

/// Kind and place of memory that is declared as CUDA's or HIP's, on the device that the driver
/// reports. Refuses memory that the driver does not know. `id` is the device for an array without
/// bytes and for page-locked host memory.
pub(crate) fn locate(
    py: Python<'_>,
    backend: BackendKind,
    extent: Extent,
    address: u64,
    id: i32,
) -> PyResult<(Arc<Stream>, AllocKind)> {
    let guess = stream(py, backend, id)?;
    if extent.low == extent.high {
        return Ok((guess, AllocKind::Device));
    }
    let (kind, ordinal) = bounds::of(guess.context(), extent, address)?;
    match ordinal {
        Some(ordinal) if ordinal as i32 != id => Ok((stream(py, backend, ordinal as i32)?, kind)),
        _ => Ok((guess, kind)),
    }
}

/// The native stream of a queue: the number in both protocols.
pub(crate) fn handle(stream: &Stream) -> u64 {
    let legacy = default_stream_number(stream.context().info().backend);
    stream.queue.raw().downcast_ref::<CudaQueue>().map_or(legacy, |queue| queue.as_raw() as u64)
}

/// The device of a stream, if the driver reports it.
///
/// # Safety
/// The handle is a live stream of the driver.
unsafe fn device_of(context: &Context<Dyn>, handle: u64) -> Option<i32> {
    type Ask = unsafe extern "C" fn(*mut c_void, *mut raw::CUcontext) -> raw::CUresult;
    type AskHip = unsafe extern "C" fn(*mut c_void, *mut raw::CUdevice) -> raw::CUresult;
    let native = context.raw().downcast_ref::<CudaContext>()?;
    if context.info().backend == BackendKind::Hip {
        // Since release 5.6.
        let ask = raw::function(native, c"hipStreamGetDevice")?;
        // SAFETY: the signature of HIP's header.
        let ask = unsafe { std::mem::transmute::<NonNull<c_void>, AskHip>(ask) };
        let mut device = 0;
        // SAFETY: the caller's promise, and room for the answer.
        return (unsafe { ask(handle as *mut c_void, &raw mut device) } == 0).then_some(device);
    }
    let ask = raw::function(native, c"cuStreamGetCtx")?;
    // SAFETY: the signature of the driver's header.
    let ask = unsafe { std::mem::transmute::<NonNull<c_void>, Ask>(ask) };
    let mut theirs = std::ptr::null_mut();
    // SAFETY: the caller's promise, and room for the answer.
    if unsafe { ask(handle as *mut c_void, &raw mut theirs) } != 0 {
        return None;
    }
    let backend = Cuda::load().ok()?;
    // SAFETY: the context of a live stream, borrowed here only.
    let theirs = unsafe { CudaContext::from_raw(&backend, theirs) }.ok()?;
    Some(raw::device(&theirs))
}

/// Waits for an event of a producer: a pointer to a `cudaEvent_t` or `hipEvent_t`. Returns whether
/// the runtime has such events.
///
/// # Safety
/// `event` points at an event of the stream's driver that has been recorded and is alive.
pub(crate) unsafe fn wait_for_event(py: Python<'_>, stream: &Stream, event: *mut c_void) -> PyResult<bool> {
    type Wait = unsafe extern "C" fn(*mut c_void) -> c_int;
    let context = stream.context();
    let Some(native) = context.raw().downcast_ref::<CudaContext>() else { return Ok(false) };
    let name = match context.info().backend {
        BackendKind::Hip => c"hipEventSynchronize",
        _ => c"cuEventSynchronize",
    };
    let Some(wait) = raw::function(native, name) else { return Ok(false) };
    // SAFETY: the signature of the driver's header; a `CUresult` is an `int`.
    let wait = unsafe { std::mem::transmute::<NonNull<c_void>, Wait>(wait) };
    // SAFETY: the caller's promise.
    let event = unsafe { event.cast::<*mut c_void>().read() } as usize;
    // SAFETY: the caller's promise.
    let code = py.detach(|| unsafe { wait(event as *mut c_void) });
    match code {
        0 => Ok(true),
        code => Err(Class::Device.error(format!("the producer's work failed: code {code} of its event"))),
    }
}

/// The queue over another library's stream, which it tells by `__cuda_stream__`; `None` if the
/// object has no such method. The queue keeps the object. Streams of HIP tell themselves in the
/// same way, if HIP is open and CUDA does not have the stream.
pub(crate) fn stream_of(value: &Bound<'_, PyAny>) -> PyResult<Option<Arc<Stream>>> {
    let py = value.py();
    if value.is_instance_of::<PyType>() {
        return Ok(None);
    }
    let Some(answer) = attribute::call(value, name!(py, "__cuda_stream__"), None)? else { return Ok(None) };
    let wrong = || Class::Interface.error("__cuda_stream__() gave no pair of a version and a handle");
    let (version, handle) = answer.extract::<(u64, u64)>().map_err(|_| wrong())?;
    if version != 0 {
        return Err(Class::Interface.error(format!("__cuda_stream__: version {version}, accepted: 0")));
    }
    let (backend, first) = match self::stream(py, BackendKind::Cuda, 0) {
        Ok(first) => (BackendKind::Cuda, first),
        Err(_) if runtime::has_hip() => (BackendKind::Hip, self::stream(py, BackendKind::Hip, 0)?),
        Err(error) => return Err(error),
    };
    let handle = if handle == 0 { default_stream_number(backend) } else { handle };
    // SAFETY: the object promises that this is its live stream; the driver cannot check it.
    let id = unsafe { device_of(first.context(), handle) }.unwrap_or(0);
    let scope = self::stream(py, backend, id)?.scope();
    // SAFETY: the object, which is kept, owns the stream.
    let queue = unsafe { adopt_stream(&scope.context, handle) }?;
    let stream = Stream::new(queue, &scope);
    let _ = stream.foreign.set(value.clone().unbind());
    Ok(Some(stream))
}

/// A foreign stream as a queue of this context.
///
/// # Safety
/// The handle is a live stream of the context's device. It outlives the queue, its clones, all work
/// on it, and its memory.
unsafe fn adopt_stream(context: &Context<Dyn>, handle: u64) -> PyResult<Queue<Dyn>> {
    let Some(native) = context.raw().downcast_ref::<CudaContext>() else {
        return Err(Class::Device.error("a context that is not CUDA's"));
    };
    // SAFETY: the caller's promise.
    let (queue, order) = unsafe { CudaQueue::from_raw(native, handle as *mut c_void) };
    // SAFETY: a stream of this context; the backend guarantees its order.
    Ok(unsafe { Queue::from_raw(context, DynQueue::erase::<Cuda>(queue), order) })
}

/// Makes the consumer's stream wait for the work on the array. Does not block.
pub(crate) fn order_consumer(py: Python<'_>, side: &Side, consumer: StreamArgument) -> PyResult<()> {
    let handle = match consumer {
        StreamArgument::NoSync => return py.detach(|| side.storage.escape_unordered()).or_raise(),
        StreamArgument::Default => default_stream_number(side.stream.context().info().backend),
        StreamArgument::PerThreadDefault => PER_THREAD,
        StreamArgument::Handle(handle) => handle,
    };
    side.storage.escape();
    // SAFETY: the consumer guarantees that this is its stream, which it continues to use.
    let theirs = unsafe { adopt_stream(side.stream.context(), handle) }?;
    py.detach(|| side.storage.follow(&theirs)).or_raise()
}
