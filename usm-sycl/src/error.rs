//! Converts NULL and status codes to typed errors.

use core::ffi::{c_int, c_void};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicI32, Ordering};

use usm_core::{BackendKind, Error, ErrorKind, Result};

/// Code of the last asynchronous error that the runtime reported, 0 for none.
static LAST_ASYNC: AtomicI32 = AtomicI32::new(0);

/// The error handler of contexts and queues. Records the code, so that the error of a failed event
/// can name it. Runs on any thread inside the runtime and must not call back into it.
pub(super) extern "C" fn on_async_error(code: c_int) {
    LAST_ASYNC.store(code, Ordering::Relaxed);
}

pub(super) fn of(kind: ErrorKind) -> Error {
    Error::from(kind).in_backend(BackendKind::Sycl)
}

/// The failure of the call `operation`, with the last asynchronous code, if any.
pub(super) fn native(operation: &'static str) -> Error {
    let error = of(ErrorKind::Native { operation });
    match LAST_ASYNC.swap(0, Ordering::Relaxed) {
        0 => error,
        code => error.with_native(i64::from(code)),
    }
}

/// The library returns NULL for a failed call.
pub(super) fn not_null(operation: &'static str, raw: *mut c_void) -> Result<NonNull<c_void>> {
    NonNull::new(raw).ok_or_else(|| native(operation))
}
