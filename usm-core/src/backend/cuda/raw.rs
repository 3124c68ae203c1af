//! Native handles of the CUDA driver, for code that calls it beside this crate.

use core::ffi::{CStr, c_void};
use core::ptr::NonNull;

use super::{CudaContext, CudaEvent, CudaQueue};
use crate::error::Result;

/// The driver's function of this name, if it has one.
#[must_use]
pub fn function(context: &CudaContext, name: &CStr) -> Option<NonNull<c_void>> {
    context.driver().function(name)
}

/// `CUdevice` of the context.
#[must_use]
pub fn device(context: &CudaContext) -> i32 {
    context.device().as_raw()
}

/// Calls `work` with the context current on this thread.
///
/// # Errors
/// When the context cannot be made current; `work` has not been called then.
pub fn with_current<R>(context: &CudaContext, work: impl FnOnce() -> R) -> Result<R> {
    let _current = context.current()?;
    Ok(work())
}

/// Enqueues by `call`, which gets a `CUstream` that waits for `after`, with the context current, and gives the `CUresult`.
///
/// # Safety
/// `call` submits to that stream only, with valid arguments; an error of it means that nothing was submitted. What the operation
/// touches is the caller's to keep valid; [`Queue::submit`](crate::Queue::submit) does that.
///
/// # Errors
/// [`ErrorKind::Native`](crate::ErrorKind::Native) with the code, naming `operation`.
pub unsafe fn submit(
    queue: &CudaQueue,
    operation: &'static str,
    after: &[CudaEvent],
    call: impl FnOnce(*mut c_void) -> i32,
) -> Result<CudaEvent> {
    queue.submit(operation, after, call)
}
