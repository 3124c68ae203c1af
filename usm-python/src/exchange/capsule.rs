//! The capsules `SyclQueueRef` and `SyclContextRef`, with dpctl's rules: a user copies the pointee
//! and renames the capsule; the capsule's own destructor deletes the pointee under either name.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use usm_sycl::{Dpctl, DpctlContext, DpctlQueue};

use crate::device::runtime::{self, Scope, Stream};
use crate::text::error::{Class, OrRaise};

const QUEUE: &CStr = c"SyclQueueRef";
const USED_QUEUE: &CStr = c"used_SyclQueueRef";
const CONTEXT: &CStr = c"SyclContextRef";
const USED_CONTEXT: &CStr = c"used_SyclContextRef";

/// The name of a fresh capsule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Queue(NonNull<c_void>),
    Context(NonNull<c_void>),
}

/// The content of an unused capsule.
pub(crate) fn content(capsule: &Bound<'_, PyCapsule>) -> Option<Content> {
    if let Ok(queue) = capsule.pointer_checked(Some(QUEUE)) {
        return Some(Content::Queue(queue));
    }
    capsule.pointer_checked(Some(CONTEXT)).ok().map(Content::Context)
}

/// Marks a capsule as used.
pub(crate) fn mark_used(capsule: &Bound<'_, PyCapsule>, content: Content) -> PyResult<()> {
    let name = match content {
        Content::Queue(_) => USED_QUEUE,
        Content::Context(_) => USED_CONTEXT,
    };
    // SAFETY: a capsule; the name is static.
    match unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), name.as_ptr()) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(capsule.py())),
    }
}

/// A fresh capsule with a copy of the queue.
pub(crate) fn of_queue<'py>(py: Python<'py>, stream: &Stream) -> PyResult<Bound<'py, PyCapsule>> {
    let Some(queue) = stream.queue.raw().downcast_ref::<DpctlQueue>() else {
        return Err(Class::Device.error("a queue that is not SYCL's has no SyclQueueRef capsule"));
    };
    let native = queue.copy_native().or_raise()?;
    // SAFETY: the destructor may run on any thread, knows both names and deletes the result of
    // `copy_native`.
    unsafe { PyCapsule::new_with_pointer_and_destructor(py, native, QUEUE, Some(delete_queue)) }
}

/// A fresh capsule with a copy of the context.
pub(crate) fn of_context<'py>(py: Python<'py>, scope: &Scope) -> PyResult<Bound<'py, PyCapsule>> {
    let Some(context) = scope.context.raw().downcast_ref::<DpctlContext>() else {
        return Err(Class::Device.error("a context that is not SYCL's has no SyclContextRef capsule"));
    };
    let native = context.copy_native().or_raise()?;
    // SAFETY: as above.
    unsafe { PyCapsule::new_with_pointer_and_destructor(py, native, CONTEXT, Some(delete_context)) }
}

unsafe extern "C" fn delete_queue(capsule: *mut ffi::PyObject) {
    // SAFETY: `delete` receives a queue of the library, once.
    let queue = |library: &Dpctl, native| unsafe { library.delete_native_queue(native) };
    // SAFETY: Python calls the destructor with its capsule; the pointee is a queue of the library.
    unsafe { delete(capsule, [QUEUE, USED_QUEUE], queue) };
}

unsafe extern "C" fn delete_context(capsule: *mut ffi::PyObject) {
    // SAFETY: as above, with a context.
    let context = |library: &Dpctl, native| unsafe { library.delete_native_context(native) };
    // SAFETY: as above, with a context.
    unsafe { delete(capsule, [CONTEXT, USED_CONTEXT], context) };
}

/// # Safety
/// `capsule` is being destroyed, and `delete` fits its pointee.
unsafe fn delete(capsule: *mut ffi::PyObject, names: [&CStr; 2], delete: unsafe fn(&Dpctl, NonNull<c_void>)) {
    for name in names {
        // SAFETY: a capsule; the names are terminated.
        if unsafe { ffi::PyCapsule_IsValid(capsule, name.as_ptr()) } == 0 {
            continue;
        }
        // SAFETY: a capsule of that name.
        let pointer = unsafe { ffi::PyCapsule_GetPointer(capsule, name.as_ptr()) };
        if let (Some(library), Some(native)) = (runtime::sycl_if_open(), NonNull::new(pointer)) {
            // SAFETY: the caller's promise; the capsule dies, so this happens once.
            unsafe { delete(&library, native) };
        }
    }
}
