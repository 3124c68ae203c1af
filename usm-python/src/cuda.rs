//! CUDA memory, both ways: `__cuda_array_interface__`, and the order of streams that it and DLPack ask for.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use usm_core::backend::cuda::{Cuda, CudaContext, CudaQueue, raw};
use usm_core::backend::{Dyn, DynQueue};
use usm_core::{AllocKind, BackendKind, Context, Queue};
use usm_interface::dlpack::StreamArgument;
use usm_interface::{Extent, Policy, Protocol, SyclObject};

use crate::array::Array;
use crate::bounds;
use crate::dictionary::{self, Checked};
use crate::error::{Class, OrRaise};
use crate::export;
use crate::import;
use crate::runtime::{self, Entry, Stream};
use crate::transfer::Side;

/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`: the numbers of both protocols are the driver's own handles.
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;

/// Memory behind `__cuda_array_interface__`, without a copy. The driver is asked whose memory it is and how far it goes,
/// and everything that usm does with it comes after the work on the producer's stream.
pub(crate) fn import<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Array>>> {
    let py = object.py();
    let name = intern!(py, "__cuda_array_interface__");
    let Some(dict) = import::dictionary_of(object, name)? else { return Ok(None) };
    let policy = Policy::default();
    let checked = dictionary::read(object, &dict, Protocol::Cuda, &policy, |_| SyclObject::Unknown)?;
    let Checked { view, extent, address, readonly, stream: order, .. } = checked;
    let (mut stream, kind) = locate(py, extent, address, 0)?;
    if extent.low == extent.high {
        return import::empty(py, stream, kind, view, readonly).map(Some);
    }
    // Page-locked memory is every device's, but a stream is one's, and events of another device cannot be recorded there.
    if let (AllocKind::Host, usm_interface::Stream::Handle(handle)) = (kind, order) {
        // SAFETY: the producer says that this is its stream, as below.
        if let Some(id) = unsafe { device_of(stream.context(), handle) } {
            stream = self::stream(py, id)?;
        }
    }
    let owner = import::owner(object, dict, None);
    // SAFETY: the driver says that the bytes are memory of that kind; the producer keeps them alive.
    let array = unsafe { import::adopt(py, owner, stream, kind, address, (view, extent), readonly)? };
    let handle = match order {
        usm_interface::Stream::None => return Ok(Some(array)),
        usm_interface::Stream::LegacyDefault => LEGACY,
        usm_interface::Stream::PerThreadDefault => PER_THREAD,
        usm_interface::Stream::Handle(handle) => handle,
    };
    // SAFETY: the producer says that this is its stream, and is kept alive. A number that is no stream is the one lie
    // that the driver cannot be asked about.
    let theirs = unsafe { adopt_stream(array.get().holding().stream.context(), handle) }?;
    let storage = array.get().storage();
    py.detach(|| storage.follow(&theirs)).or_raise()?;
    Ok(Some(array))
}

/// The devices of CUDA.
fn devices(py: Python<'_>) -> impl Iterator<Item = &'static Arc<Entry>> {
    runtime::entries(py).iter().filter(|entry| entry.info.backend == BackendKind::Cuda)
}

/// The queue of a device's default context, to which work of the device's memory goes.
pub(crate) fn stream(py: Python<'_>, id: i32) -> PyResult<Arc<Stream>> {
    match devices(py).find(|entry| entry.info.ordinal as i32 == id) {
        Some(entry) => entry.scope()?.queue(),
        None => {
            let reason = runtime::no_cuda(py).unwrap_or("no such device");
            Err(Class::Device.error(format!("the memory is on the CUDA device {id}: {reason}")))
        }
    }
}

/// Kind and place of memory that is said to be CUDA's, on the device that the driver names; memory that the driver does
/// not know is refused. `id` is where an array without bytes goes, and page-locked host memory.
pub(crate) fn locate(
    py: Python<'_>,
    extent: Extent,
    address: u64,
    id: i32,
) -> PyResult<(Arc<Stream>, AllocKind)> {
    let guess = stream(py, id)?;
    if extent.low == extent.high {
        return Ok((guess, AllocKind::Device));
    }
    let (kind, ordinal) = bounds::of(guess.context(), extent, address)?;
    match ordinal {
        Some(ordinal) if ordinal as i32 != id => Ok((stream(py, ordinal as i32)?, kind)),
        _ => Ok((guess, kind)),
    }
}

/// The native stream of a queue: a number that both protocols carry.
pub(crate) fn handle(stream: &Stream) -> u64 {
    stream.queue.raw().downcast_ref::<CudaQueue>().map_or(LEGACY, |queue| queue.as_raw() as u64)
}

/// The device of a stream, where the driver says it.
///
/// # Safety
/// The handle is a live stream of the driver.
unsafe fn device_of(context: &Context<Dyn>, handle: u64) -> Option<i32> {
    type Ask = unsafe extern "C" fn(*mut c_void, *mut raw::CUcontext) -> raw::CUresult;
    let native = context.raw().downcast_ref::<CudaContext>()?;
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

/// A stream of others as a queue of this context.
///
/// # Safety
/// The handle is a live stream of the context's device, and outlives the queue, its clones, what is submitted to it, and memory from it.
unsafe fn adopt_stream(context: &Context<Dyn>, handle: u64) -> PyResult<Queue<Dyn>> {
    let Some(native) = context.raw().downcast_ref::<CudaContext>() else {
        return Err(Class::Device.error("a context that is not CUDA's"));
    };
    // SAFETY: the caller's promise.
    let (queue, order) = unsafe { CudaQueue::from_raw(native, handle as *mut c_void) };
    // SAFETY: a stream of this context, in order as the backend says.
    Ok(unsafe { Queue::from_raw(context, DynQueue::erase::<Cuda>(queue), order) })
}

/// Makes the consumer's stream wait for the work on the array; nothing blocks.
pub(crate) fn order_consumer(py: Python<'_>, side: &Side, consumer: StreamArgument) -> PyResult<()> {
    let handle = match consumer {
        StreamArgument::NoSync => return Ok(()),
        StreamArgument::Default => LEGACY,
        StreamArgument::PerThreadDefault => PER_THREAD,
        StreamArgument::Handle(handle) => handle,
    };
    // SAFETY: the consumer says that this is its stream, which it goes on to use.
    let theirs = unsafe { adopt_stream(side.stream.context(), handle) }?;
    py.detach(|| side.storage.follow(&theirs)).or_raise()
}

/// `__cuda_array_interface__` version 3. Its stream is the array's queue, which waits for the work of all others first.
pub(crate) fn dictionary<'py>(py: Python<'py>, side: &Side) -> PyResult<Bound<'py, PyDict>> {
    if side.stream.context().info().backend != BackendKind::Cuda {
        let message = "memory that is not CUDA's has no __cuda_array_interface__";
        return Err(PyAttributeError::new_err(message));
    }
    let dict = export::bytes_dictionary(py, side)?;
    if side.view.nbytes() == 0 {
        dict.set_item(intern!(py, "data"), (0, side.readonly))?;
    }
    py.detach(|| side.storage.follow(&side.stream.queue)).or_raise()?;
    dict.set_item(intern!(py, "stream"), handle(&side.stream))?;
    Ok(dict)
}
