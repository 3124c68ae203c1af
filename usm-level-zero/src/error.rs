//! Converts Level Zero's result codes to typed errors.

use level_zero_sys::{
    ZE_RESULT_ERROR_DEVICE_LOST, ZE_RESULT_ERROR_INVALID_ENUMERATION, ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY,
    ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY, ZE_RESULT_ERROR_UNINITIALIZED,
    ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION, ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, ze_result_t,
};

use usm_core::{BackendKind, Error, ErrorKind};

/// The library's name in errors.
pub(super) const LIBRARY: &str = level_zero_sys::LIBRARY_NAMES[0];

pub(super) fn of(kind: ErrorKind) -> Error {
    Error::from(kind).in_backend(BackendKind::LevelZero)
}

pub(super) fn unsupported(operation: &'static str) -> Error {
    of(ErrorKind::Unsupported { operation })
}

/// The failure of the call `operation`.
pub(super) fn native(operation: &'static str, result: ze_result_t) -> Error {
    let kind = match result {
        ZE_RESULT_ERROR_DEVICE_LOST => ErrorKind::DeviceLost,
        _ => ErrorKind::Native { operation },
    };
    of(kind).with_native(i64::from(result.0))
}

/// The table's result for a call without a function.
pub(super) fn call(error: level_zero_sys::Error) -> Error {
    match error {
        level_zero_sys::Error::MissingSymbol { name } => {
            of(ErrorKind::SymbolMissing { library: LIBRARY, symbol: name })
        }
        level_zero_sys::Error::Call { function, result } => native(function, result),
        _ => unsupported("the version of this Level Zero driver"),
    }
}

/// As [`call`], for an `operation` that a driver may lack.
pub(super) fn optional(operation: &'static str, error: level_zero_sys::Error) -> Error {
    match error {
        level_zero_sys::Error::MissingSymbol { .. }
        | level_zero_sys::Error::Call {
            result:
                ZE_RESULT_ERROR_UNINITIALIZED
                | ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
                | ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION
                | ZE_RESULT_ERROR_INVALID_ENUMERATION,
            ..
        } => unsupported(operation),
        _ => call(error),
    }
}

/// The error for a driver that is out of memory.
pub(super) fn exhaustion(error: &level_zero_sys::Error) -> Option<ze_result_t> {
    match *error {
        level_zero_sys::Error::Call {
            result: result @ (ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY | ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY),
            ..
        } => Some(result),
        _ => None,
    }
}
