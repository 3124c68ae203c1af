//! Converts OpenCL's status codes to typed errors.

use core::ffi::c_void;
use core::ptr::NonNull;

use usm_core::{BackendKind, Error, ErrorKind, Result};

/// `cl_int`.
pub(super) type Status = i32;

pub(super) const SUCCESS: Status = 0;
pub(super) const DEVICE_NOT_FOUND: Status = -1;
pub(super) const MEM_OBJECT_ALLOCATION_FAILURE: Status = -4;
pub(super) const OUT_OF_RESOURCES: Status = -5;
pub(super) const OUT_OF_HOST_MEMORY: Status = -6;
pub(super) const PROFILING_INFO_NOT_AVAILABLE: Status = -7;
pub(super) const INVALID_VALUE: Status = -30;
pub(super) const PLATFORM_NOT_FOUND: Status = -1001;

pub(super) fn of(kind: ErrorKind) -> Error {
    Error::from(kind).in_backend(BackendKind::OpenCl)
}

pub(super) fn unsupported(operation: &'static str) -> Error {
    of(ErrorKind::Unsupported { operation })
}

/// The failure of the call `operation`.
pub(super) fn native(operation: &'static str, status: Status) -> Error {
    of(ErrorKind::Native { operation }).with_native(i64::from(status))
}

pub(super) fn check(operation: &'static str, status: Status) -> Result<()> {
    if status == SUCCESS { Ok(()) } else { Err(native(operation, status)) }
}

/// The object that a call returned together with its status.
pub(super) fn object(operation: &'static str, raw: *mut c_void, status: Status) -> Result<NonNull<c_void>> {
    check(operation, status)?;
    NonNull::new(raw).ok_or_else(|| native(operation, status))
}
