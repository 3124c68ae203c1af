//! Native handles of OpenCL, for code that calls the runtime beside this crate.

use core::ffi::{CStr, c_void};
use core::ptr::NonNull;

use super::{OpenClContext, OpenClEvent, OpenClQueue, device};
use crate::error::Result;

/// The loader's function of this name, if it has one.
#[must_use]
pub fn function(context: &OpenClContext, name: &CStr) -> Option<NonNull<c_void>> {
    context.library().function(name)
}

/// The function of an extension, as the context's platform gives it.
#[must_use]
pub fn extension_function(context: &OpenClContext, name: &CStr) -> Option<NonNull<c_void>> {
    let platform = device::platform(context.device()) as *mut c_void;
    // SAFETY: the platform of a device of this library.
    unsafe { context.library().extension(platform, name) }
}

/// `cl_device_id` of the context's device.
#[must_use]
pub fn device(context: &OpenClContext) -> *mut c_void {
    context.device().as_raw()
}

/// Enqueues by `call`, which gets the `cl_command_queue`, the length of the wait list, the wait list and the place of the new
/// `cl_event`, and gives the status. On an in-order queue the list names the operation before.
///
/// # Safety
/// `call` passes all four on to one enqueue function, with arguments that are valid for it, and gives its status. What the
/// operation touches is the caller's to keep valid; [`Queue::submit`](crate::Queue::submit) does that.
///
/// # Errors
/// [`ErrorKind::Native`](crate::ErrorKind::Native) with the status, naming `operation`.
pub unsafe fn submit(
    queue: &OpenClQueue,
    operation: &'static str,
    after: &[OpenClEvent],
    call: impl FnOnce(*mut c_void, u32, *const *mut c_void, *mut *mut c_void) -> i32,
) -> Result<OpenClEvent> {
    // SAFETY: the caller's promise.
    unsafe { queue.submit(operation, after, call) }
}
