//! SYCL objects of others: whose queue a `syclobj` means, and memory behind a `__sycl_usm_array_interface__`.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString, PyType};
use usm_core::backend::dpctl::{Dpctl, DpctlContext, DpctlQueue};
use usm_core::backend::{Dyn, DynQueue};
use usm_core::{AllocKind, BackendKind, Context, Queue};
use usm_interface::{Allocation, Policy, Protocol, SyclObject, value::Str};

use crate::capsule::{self, Content};
use crate::context::PyContext;
use crate::dictionary::{self, Checked};
use crate::error::{Class, OrRaise};
use crate::queue::PyQueue;
use crate::runtime::{self, Scope, Stream};
use crate::storage::Storage;
use crate::view::View;

/// What an import gives.
pub(crate) struct Imported {
    pub(crate) storage: Arc<Storage>,
    pub(crate) view: View,
    pub(crate) stream: Arc<Stream>,
    pub(crate) readonly: bool,
}

/// dpctl's own classes, when somebody has imported it.
fn dpctl_class<'py>(py: Python<'py>, name: &str) -> Option<Bound<'py, PyType>> {
    let modules = py.import(intern!(py, "sys")).ok()?.getattr(intern!(py, "modules")).ok()?;
    let module = modules.cast::<PyDict>().ok()?.get_item(intern!(py, "dpctl")).ok()??;
    module.getattr(name).ok()?.cast_into().ok()
}

/// Whether this is exactly a `dpctl.SyclQueue` or `dpctl.SyclContext`: such an object means the same queue for ever.
fn is_exact(value: &Bound<'_, PyAny>) -> bool {
    static CLASSES: OnceLock<[Py<PyType>; 2]> = OnceLock::new();
    let py = value.py();
    let classes = match CLASSES.get() {
        Some(classes) => classes,
        None => {
            let (Some(queue), Some(context)) = (dpctl_class(py, "SyclQueue"), dpctl_class(py, "SyclContext"))
            else {
                return false;
            };
            CLASSES.get_or_init(|| [queue.unbind(), context.unbind()])
        }
    };
    classes.iter().any(|class| value.get_type_ptr().cast() == class.as_ptr())
}

/// Whether a value can stand for a queue: ours, a capsule, or something that gives one.
pub(crate) fn looks_like_queue(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(value.is_instance_of::<PyQueue>()
        || value.is_instance_of::<PyCapsule>()
        || value.hasattr(intern!(value.py(), "_get_capsule"))?)
}

/// The last few objects of dpctl's and what they mean, so that a queue is unwrapped once. Keeps them alive.
static SEEN: Mutex<Vec<(Py<PyAny>, Arc<Stream>)>> = Mutex::new(Vec::new());
const REMEMBERED: usize = 16;

fn seen(value: &Bound<'_, PyAny>) -> Option<Arc<Stream>> {
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, stream) = seen.iter().rev().find(|(object, _)| object.is(value))?;
    Some(Arc::clone(stream))
}

fn remember(value: &Bound<'_, PyAny>, stream: &Arc<Stream>) {
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let oldest = (seen.len() == REMEMBERED).then(|| seen.remove(0));
    seen.push((value.clone().unbind(), Arc::clone(stream)));
    drop(seen);
    drop(oldest);
}

/// The queue that any of the documented `syclobj` variants means; a context or a filter string means the default queue
/// of its context.
pub(crate) fn stream_of(value: &Bound<'_, PyAny>) -> PyResult<Arc<Stream>> {
    if let Ok(queue) = value.cast::<PyQueue>() {
        return Ok(Arc::clone(&queue.get().0));
    }
    if let Ok(context) = value.cast::<PyContext>() {
        return context.get().0.queue();
    }
    if let Some(stream) = seen(value) {
        return Ok(stream);
    }
    if let Ok(filter) = value.cast_exact::<PyString>() {
        return of_filter(value.py(), filter.to_str()?);
    }
    if let Ok(capsule) = value.cast::<PyCapsule>() {
        return of_capsule(capsule);
    }
    let Ok(method) = value.getattr(intern!(value.py(), "_get_capsule")) else {
        return Err(Class::Interface.error(
            "syclobj: a filter string, a queue, a context, a capsule or an object with _get_capsule() expected",
        ));
    };
    let capsule = method.call0()?;
    let capsule = capsule
        .cast::<PyCapsule>()
        .map_err(|_| Class::Interface.error("syclobj: _get_capsule() gave an object that is no capsule"))?;
    let stream = of_capsule(capsule)?;
    if is_exact(value) {
        if value.hasattr(intern!(value.py(), "sycl_context"))? {
            // A queue of dpctl's: dictionaries of ours then name the very object.
            let _ = stream.foreign.set(value.clone().unbind());
        }
        remember(value, &stream);
    }
    Ok(stream)
}

/// A filter string has SYCL's meaning: the default context of a root device.
fn of_filter(py: Python<'_>, filter: &str) -> PyResult<Arc<Stream>> {
    let text = if filter.starts_with("sycl:") { filter.to_owned() } else { format!("sycl:{filter}") };
    let entry = runtime::select(py, &text)
        .map_err(|error| Class::Interface.error(format!("syclobj: {}", error.value(py))))?;
    entry.scope()?.queue()
}

fn of_capsule(capsule: &Bound<'_, PyCapsule>) -> PyResult<Arc<Stream>> {
    let Some(content) = capsule::content(capsule) else {
        return Err(Class::Interface.error(
            "syclobj: the capsule is neither a fresh SyclQueueRef nor a fresh SyclContextRef; each serves once",
        ));
    };
    let py = capsule.py();
    let library = runtime::sycl(py)?;
    // SAFETY: the names promise live objects of the SYCL runtime that dpctl uses, which is the one opened.
    let stream = unsafe {
        match content {
            Content::Queue(native) => of_native_queue(py, &library, native),
            Content::Context(native) => of_native_context(py, &library, native),
        }
    }?;
    capsule::mark_used(capsule, content)?;
    Ok(stream)
}

/// # Safety
/// `native` is a live `sycl::queue` of the library.
unsafe fn of_native_queue(py: Python<'_>, library: &Dpctl, native: NonNull<c_void>) -> PyResult<Arc<Stream>> {
    // SAFETY: the caller's promise.
    let known =
        runtime::known_context(py, |context| unsafe { context.serves_queue(native) }.unwrap_or(false))?;
    let scope = match known {
        Some(scope) => scope,
        // SAFETY: the caller's promise.
        None => runtime::adopt_context(&Context::from_raw(
            unsafe { DpctlContext::of_queue(library, native) }.or_raise()?,
        )),
    };
    let Some(context) = scope.context.raw().downcast_ref::<DpctlContext>() else {
        return Err(Class::Device.error("a context that is not SYCL's"));
    };
    // SAFETY: the caller's promise.
    let (queue, order) = unsafe { DpctlQueue::from_raw(context, native) }.or_raise()?;
    // SAFETY: `from_raw` checked that the queue is the context's, and asked for its order.
    let queue = unsafe { Queue::from_raw(&scope.context, DynQueue::erase::<Dpctl>(queue), order) };
    Ok(Stream::new(queue, &scope))
}

/// # Safety
/// `native` is a live `sycl::context` of the library.
unsafe fn of_native_context(
    py: Python<'_>,
    library: &Dpctl,
    native: NonNull<c_void>,
) -> PyResult<Arc<Stream>> {
    // SAFETY: the caller's promise.
    let known = runtime::known_context(py, |context| unsafe { context.serves_context(native) })?;
    let scope: Arc<Scope> = match known {
        Some(scope) => scope,
        // SAFETY: the caller's promise.
        None => runtime::adopt_context(&Context::from_raw(
            unsafe { DpctlContext::from_raw(library, native) }.or_raise()?,
        )),
    };
    scope.queue()
}

/// Which variant a `syclobj` is, as far as the codec needs to know.
fn classify(value: &Bound<'_, PyAny>) -> SyclObject<'static> {
    if value.is_instance_of::<PyString>() {
        // The codec refuses the empty one; the filter itself is read by `of_filter`.
        return SyclObject::Filter(Str::new(if value.is_truthy().unwrap_or(true) { "filter" } else { "" }));
    }
    if is_exact(value) { SyclObject::Queue } else { SyclObject::CapsuleProvider }
}

/// Imports what `producer`'s dictionary describes, without a copy. The producer is kept alive by the storage.
///
/// Bounds: memory of ours is checked against its allocation. Of other memory SYCL tells neither base nor size, so the
/// first and the last byte must both be USM of the same kind in this context.
pub(crate) fn import(
    producer: &Bound<'_, PyAny>,
    dict: &Bound<'_, PyDict>,
    policy: &Policy,
) -> PyResult<Imported> {
    let Checked { layout, address, readonly, descr, syclobj } =
        dictionary::read(dict, Protocol::Sycl, policy, classify)?;
    let syclobj = syclobj.ok_or_else(|| Class::Interface.error("syclobj: missing"))?;
    let stream = stream_of(&syclobj)?;
    let context = stream.context();
    let Some(address) = address else {
        return Err(Class::Interface.error("data: missing, and the producer has no buffer to stand in"));
    };
    if layout.nbytes() == 0 {
        let kind = Some(context.query(address as *const u8).or_raise()?.kind);
        let kind = kind.filter(|kind| *kind != AllocKind::Unknown).unwrap_or(AllocKind::Device);
        let storage = Storage::allocate(context, kind, 1, 0).or_raise()?;
        let view = View { descr, ..View::of_layout(&layout, 0)? };
        return Ok(Imported { storage, view, stream, readonly });
    }
    // The codec has proven that address plus extent stays inside the address space.
    let low = address.wrapping_add_signed(layout.extent().low);
    let last = address.wrapping_add_signed(layout.extent().high) - 1;
    let kind = bounds(context, &layout, address, low, last)?;
    let size = usize::try_from(last - low).ok().and_then(|size| size.checked_add(1));
    let (Some(size), Some(pointer)) = (size, NonNull::new(low as *mut u8)) else {
        return Err(Class::Interface.error("data: the array does not fit the address space"));
    };
    // The dictionary too: a producer may keep a temporary alive in it, as NumPy's scalars do.
    let keeper = Box::new((producer.clone().unbind(), dict.clone().unbind()));
    // SAFETY: the bytes are USM of this context and of that kind, as the runtime says; the producer keeps them alive.
    let storage = unsafe { Storage::foreign(context, kind, pointer, size, producer, keeper) };
    let view = View { descr, ..View::of_layout(&layout, -layout.extent().low)? };
    Ok(Imported { storage, view, stream, readonly })
}

/// The kind of memory that both ends of a layout lie in.
pub(crate) fn bounds(
    context: &Context<Dyn>,
    layout: &usm_interface::Layout<{ crate::view::MAX_DIMS }>,
    address: u64,
    low: u64,
    last: u64,
) -> PyResult<AllocKind> {
    let mut first = context.query(low as *const u8).or_raise()?;
    if first.base == 0 && address != low {
        // Where the pointer lies in memory of ours, the error can say how far the layout leaves it.
        let data = context.query(address as *const u8).or_raise()?;
        first = if data.base == 0 { first } else { data };
    }
    let refused = |what: &str, at: u64, kind: AllocKind| {
        let backend = context.info().backend;
        Class::Interface.error(format!(
            "data: the {what} byte {at:#x} is {kind} memory in the {backend} context of syclobj, not USM of one kind"
        ))
    };
    if first.kind == AllocKind::Unknown {
        return Err(refused("first", low, first.kind));
    }
    if first.base != 0 {
        let allocation = Allocation { base: first.base as u64, len: first.size as u64 };
        layout.check_inside(address, allocation).or_raise()?;
    } else if last != low {
        let end = context.query(last as *const u8).or_raise()?;
        if end.kind != first.kind || end.base != 0 {
            return Err(refused("last", last, end.kind));
        }
    }
    Ok(first.kind)
}

/// The queue as an object of dpctl's: the very one that was imported, or a view of ours.
pub(crate) fn dpctl_queue<'py>(py: Python<'py>, stream: &Stream) -> PyResult<Bound<'py, PyAny>> {
    if let Some(queue) = stream.foreign.get() {
        return Ok(queue.bind(py).clone());
    }
    if stream.context().info().backend != BackendKind::Sycl {
        return Err(Class::Device.error("a queue that is not SYCL's has no dpctl.SyclQueue"));
    }
    let made = py.import("dpctl")?.getattr("SyclQueue")?.call1((capsule::of_queue(py, stream)?,))?;
    Ok(stream.foreign.get_or_init(|| made.unbind()).bind(py).clone())
}

/// What a dictionary of ours names as its `syclobj`: an object of dpctl's where dpctl is imported, which its consumers
/// take fastest, else our own queue, which they take by its capsule.
pub(crate) fn syclobj<'py>(py: Python<'py>, stream: &Arc<Stream>) -> PyResult<Bound<'py, PyAny>> {
    if stream.foreign.get().is_some() || dpctl_class(py, "SyclQueue").is_some() {
        return dpctl_queue(py, stream);
    }
    Ok(Bound::new(py, PyQueue(Arc::clone(stream)))?.into_any())
}
