//! Foreign SYCL objects: the queue of a `syclobj`, and memory behind a
//! `__sycl_usm_array_interface__`.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString, PyType};
use usm_core::backend::DynQueue;
use usm_core::{AllocKind, BackendKind, Context, Queue};
use usm_interface::{Policy, Protocol, SyclFlag, SyclObject, value::Str};
use usm_sycl::{Dpctl, DpctlContext, DpctlQueue};

use crate::array::Array;
use crate::device::handles::PyContext;
use crate::device::handles::PyQueue;
use crate::device::runtime::{self, Scope, Stream};
use crate::exchange::adoption;
use crate::exchange::bounds;
use crate::exchange::capsule::{self, Content};
use crate::exchange::dictionary::{self, CheckedArray};
use crate::exchange::sycl_queues::{cached_queue, remember};
use crate::process::once::name;
use crate::text::argument;
use crate::text::error::{Class, OrRaise};

/// dpctl's own classes, if it is imported.
fn dpctl_class<'py>(py: Python<'py>, name: &str) -> Option<Bound<'py, PyType>> {
    let modules = py.import(name!(py, "sys")).ok()?.getattr(name!(py, "modules")).ok()?;
    let module = modules.cast::<PyDict>().ok()?.get_item(name!(py, "dpctl")).ok()??;
    module.getattr(name).ok()?.cast_into().ok()
}

/// Whether this is exactly a `dpctl.SyclQueue` or `dpctl.SyclContext`: such an object always means
/// the same queue.
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

/// Whether a value can stand for a queue: ours, a capsule, or an object that returns one.
pub(crate) fn looks_like_queue(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(value.is_instance_of::<PyQueue>()
        || value.is_instance_of::<PyCapsule>()
        // A class has the method too, but is no queue.
        || (!value.is_instance_of::<PyType>() && value.hasattr(name!(value.py(), "_get_capsule"))?))
}

/// The queue of any documented `syclobj` variant. A context or a filter string means the default
/// queue of its context.
pub(crate) fn stream_of(value: &Bound<'_, PyAny>) -> PyResult<Arc<Stream>> {
    if let Ok(queue) = value.cast::<PyQueue>() {
        return Ok(Arc::clone(&queue.get().0));
    }
    if let Ok(context) = value.cast::<PyContext>() {
        return context.get().0.queue();
    }
    if let Some(stream) = cached_queue(value) {
        return Ok(stream);
    }
    if value.is_exact_instance_of::<PyString>() {
        return of_filter(value.py(), argument::text("syclobj", value, "a filter string")?);
    }
    if let Ok(capsule) = value.cast::<PyCapsule>() {
        return of_capsule(capsule);
    }
    let Ok(method) = value.getattr(name!(value.py(), "_get_capsule")) else {
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
        if value.hasattr(name!(value.py(), "sycl_context"))? {
            // A dpctl queue: our dictionaries then name this object.
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
    let stream = match content {
        // SAFETY: the name promises a live object of the SYCL runtime that dpctl uses, which is the
        // opened one.
        Content::Queue(native) => unsafe { of_native_queue(py, &library, native) },
        // SAFETY: as above.
        Content::Context(native) => unsafe { of_native_context(py, &library, native) },
    }?;
    capsule::mark_used(capsule, content)?;
    Ok(stream)
}

/// # Safety
/// `native` is a live `sycl::queue` of the library.
unsafe fn of_native_queue(py: Python<'_>, library: &Dpctl, native: NonNull<c_void>) -> PyResult<Arc<Stream>> {
    // SAFETY: the caller's promise.
    let cached =
        runtime::known_context(py, |context| unsafe { context.serves_queue(native) }.unwrap_or(false))?;
    let scope = match cached {
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
    // SAFETY: `from_raw` checked that the queue belongs to the context, and read its order.
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
    let known_context = runtime::known_context(py, |context| unsafe { context.serves_context(native) })?;
    let scope: Arc<Scope> = match known_context {
        Some(scope) => scope,
        // SAFETY: the caller's promise.
        None => runtime::adopt_context(&Context::from_raw(
            unsafe { DpctlContext::from_raw(library, native) }.or_raise()?,
        )),
    };
    scope.queue()
}

/// The variant of a `syclobj`, as far as the codec needs it.
fn classify(value: &Bound<'_, PyAny>) -> SyclObject<'static> {
    if value.is_instance_of::<PyString>() {
        // The codec refuses the empty one; `of_filter` reads the filter.
        return SyclObject::Filter(Str::new(if value.is_truthy().unwrap_or(true) { "filter" } else { "" }));
    }
    if is_exact(value) { SyclObject::Queue } else { SyclObject::CapsuleProvider }
}

/// Imports the memory of `producer`'s dictionary without a copy. The storage keeps the producer
/// alive.
///
/// Without `data` the producer's buffer is the data, and the context identifies the pointer: USM
/// keeps its kind, other memory is plain host memory. With `ignore_flag` the array is always
/// writable.
pub(crate) fn import<'py>(
    producer: &Bound<'py, PyAny>,
    dict: Bound<'py, PyDict>,
    ignore_flag: bool,
) -> PyResult<Bound<'py, Array>> {
    let py = producer.py();
    let policy = Policy { sycl_flag: SyclFlag::Auto, ..Policy::default() };
    let array = dictionary::read(producer, &dict, Protocol::Sycl, &policy, classify)?;
    let CheckedArray { view, extent, address, readonly, syclobj, buffer, .. } = array;
    let readonly = readonly && !ignore_flag;
    let syclobj = syclobj.ok_or_else(|| Class::Interface.error("syclobj: missing"))?;
    let mut stream = stream_of(&syclobj)?;
    let context = stream.context();
    let kind_at = |at: u64| PyResult::Ok(context.query(at as *const u8).or_raise()?.kind);
    if extent.low == extent.high {
        let kind = Some(kind_at(address)?).filter(|kind| *kind != AllocKind::Unknown);
        return adoption::empty(py, stream, kind.unwrap_or(AllocKind::Device), view, readonly);
    }
    let low = address.wrapping_add_signed(extent.low);
    let kind = if buffer.is_some() && kind_at(low)? == AllocKind::Unknown {
        // The codec checked the buffer's bounds.
        stream = Arc::clone(runtime::host_stream()?);
        AllocKind::Host
    } else {
        bounds::of(context, extent, address)?.0
    };
    let owner = adoption::owner(producer, dict, buffer);
    // SAFETY: the runtime reports the bytes as USM of this context and kind, or they are the
    // buffer's. The producer keeps them alive.
    unsafe { adoption::adopt(py, owner, stream, kind, address, (view, extent), readonly) }
}

/// The queue as a dpctl object: the imported one, or a view of ours.
pub(crate) fn dpctl_queue<'py>(py: Python<'py>, stream: &Stream) -> PyResult<Bound<'py, PyAny>> {
    if stream.context().info().backend != BackendKind::Sycl {
        return Err(Class::Device.error("a queue that is not SYCL's has no dpctl.SyclQueue"));
    }
    if let Some(queue) = stream.foreign.get() {
        return Ok(queue.bind(py).clone());
    }
    let object = py.import("dpctl")?.getattr("SyclQueue")?.call1((capsule::of_queue(py, stream)?,))?;
    Ok(stream.foreign.get_or_init(|| object.unbind()).bind(py).clone())
}

/// [`dpctl_queue`] of a SYCL queue in a program that has imported dpctl.
pub(crate) fn queue_of_dpctl<'py>(
    py: Python<'py>,
    stream: &Arc<Stream>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let is_known = stream.foreign.get().is_some() || dpctl_class(py, "SyclQueue").is_some();
    (stream.is_sycl() && is_known).then(|| dpctl_queue(py, stream)).transpose()
}

/// The `syclobj` of our dictionaries: a dpctl object if dpctl is imported, which its consumers
/// handle fastest; otherwise our own queue, which they use through its capsule.
pub(crate) fn syclobj<'py>(py: Python<'py>, stream: &Arc<Stream>) -> PyResult<Bound<'py, PyAny>> {
    if let Some(queue) = queue_of_dpctl(py, stream)? {
        return Ok(queue);
    }
    Ok(Bound::new(py, PyQueue(Arc::clone(stream)))?.into_any())
}
