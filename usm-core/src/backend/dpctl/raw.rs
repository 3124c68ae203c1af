//! Native handles of dpctl's C library, for code that calls it beside this crate.

use core::ffi::{CStr, c_void};
use core::ptr::NonNull;

use super::{DpctlContext, DpctlEvent, DpctlQueue};
use crate::error::Result;

/// The library's function of this name, if it has one.
#[must_use]
pub fn function(context: &DpctlContext, name: &CStr) -> Option<NonNull<c_void>> {
    context.library().function(name)
}

/// `DPCTLSyclContextRef` of the context, which keeps it.
#[must_use]
pub fn context(context: &DpctlContext) -> *mut c_void {
    context.native().raw()
}

/// `DPCTLSyclDeviceRef` of the context's device; the context keeps it.
#[must_use]
pub fn device(context: &DpctlContext) -> *mut c_void {
    context.device().handle().raw()
}

/// Submits by `call`, which gets the `DPCTLSyclQueueRef`, the events to wait for and their number, and gives the
/// `DPCTLSyclEventRef` of the work, or NULL.
///
/// # Safety
/// `call` passes all three on to one function that submits, with valid arguments, and gives what that gave. What the operation
/// touches is the caller's to keep valid; [`Queue::submit`](crate::Queue::submit) does that.
///
/// # Errors
/// [`ErrorKind::Native`](crate::ErrorKind::Native) naming `operation`.
pub unsafe fn submit(
    queue: &DpctlQueue,
    operation: &'static str,
    after: &[DpctlEvent],
    call: impl FnOnce(*mut c_void, *const *mut c_void, usize) -> *mut c_void,
) -> Result<DpctlEvent> {
    // SAFETY: the caller's promise.
    unsafe { queue.submit(operation, after, call) }
}
