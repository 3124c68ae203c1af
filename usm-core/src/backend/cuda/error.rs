//! From the driver's result codes to typed errors.

use super::loader::Code;
use crate::BackendKind;
use crate::error::{Error, ErrorKind, Result};

pub(super) const SUCCESS: Code = 0;
pub(super) const INVALID_VALUE: Code = 1;
pub(super) const OUT_OF_MEMORY: Code = 2;
pub(super) const NO_DEVICE: Code = 100;
pub(super) const PEER_ACCESS_UNSUPPORTED: Code = 217;
pub(super) const NOT_READY: Code = 600;
pub(super) const PEER_ACCESS_ALREADY_ENABLED: Code = 704;
pub(super) const PEER_ACCESS_NOT_ENABLED: Code = 705;

pub(super) fn of(kind: ErrorKind) -> Error {
    Error::from(kind).in_backend(BackendKind::Cuda)
}

pub(super) fn unsupported(operation: &'static str) -> Error {
    of(ErrorKind::Unsupported { operation })
}

/// The failure of the call `operation`.
pub(super) fn native(operation: &'static str, code: Code) -> Error {
    of(ErrorKind::Native { operation }).with_native(i64::from(code))
}

pub(super) fn check(operation: &'static str, code: Code) -> Result<()> {
    if code == SUCCESS { Ok(()) } else { Err(native(operation, code)) }
}
