//! Converts the driver's result codes to typed errors.
//!
//! The codes are the same in `cuda.h` and in `hip_runtime_api.h`, which took them over.

use crate::table::Code;

pub(super) const SUCCESS: Code = 0;
pub(super) const INVALID_VALUE: Code = 1;
pub(super) const OUT_OF_MEMORY: Code = 2;
/// HIP returns this code and the next one for memory that it does not know.
pub(super) const INVALID_DEVICE_POINTER: Code = 17;
pub(super) const INVALID_HANDLE: Code = 400;
pub(super) const NOT_FOUND: Code = 500;
pub(super) const NO_DEVICE: Code = 100;
pub(super) const INVALID_DEVICE: Code = 101;
pub(super) const INVALID_CONTEXT: Code = 201;
pub(super) const PEER_ACCESS_UNSUPPORTED: Code = 217;
pub(super) const NOT_READY: Code = 600;
pub(super) const PEER_ACCESS_ALREADY_ENABLED: Code = 704;
pub(super) const PEER_ACCESS_NOT_ENABLED: Code = 705;
pub(super) const NOT_SUPPORTED: Code = 801;
pub(super) const UNKNOWN: Code = 999;

/// Whether a code is a fault of a kernel or another operation on the device. From then on every
/// call of the context returns it (`CUresult`: "the context cannot be used"; illegal address,
/// time-out, assertion, and 714 to 719).
pub(super) const fn is_fault(code: i64) -> bool {
    matches!(code, 700 | 702 | 710 | 714..=719)
}
