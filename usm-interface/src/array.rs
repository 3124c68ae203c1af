//! `__array_interface__`, version 3.
//!
//! Strides are in bytes. `data` is `(address, read-only)`, a buffer, None or absent; `offset`
//! (bytes) belongs to buffers only. NumPy never reads `version`, and neither does this module, but
//! [`Mode::Strict`] refuses a version that is no positive integer.

use crate::error::{Key, ProtocolError, Result};
use crate::interface::{Interface, Own, Terms};
use crate::policy::{Mode, Policy};
use crate::raw::{Data, Protocol, Raw};

/// The version that this crate writes.
pub const VERSION: i64 = 3;

/// Checks the fields of an `__array_interface__`.
///
/// # Errors
/// A refusal that names the key.
#[inline]
pub fn validate<'a, 'f, const N: usize>(raw: &Raw<'a, 'f>, policy: &Policy) -> Result<Interface<'a, 'f, N>> {
    raw.check(raw.dimensions(), Protocol::Array, policy)
}

/// Whether `data` is read-only, except for a pointer, which has its own flag.
#[cold]
const fn is_readonly(data: Data) -> bool {
    matches!(data, Data::Buffer { readonly: true, .. } | Data::Bytes { .. })
}

/// The protocol's rules for all fields except type, shape and strides.
#[inline(always)]
pub(crate) fn terms<'a>(raw: &Raw<'a, '_>, policy: &Policy) -> Result<Terms<'a>> {
    let offset = match (raw.data, raw.offset) {
        (_, None | Some(0)) => 0,
        // NumPy ignores the offset, and the standard forbids it. Either reading alone could
        // silently be wrong.
        (Data::Pointer { .. }, Some(_)) if policy.mode == Mode::Numpy => 0,
        (Data::Pointer { .. }, Some(offset)) => {
            return Err(Key::Offset.error(ProtocolError::OffsetWithPointer { offset }));
        }
        (_, Some(offset)) => offset,
    };
    let version = raw.version.unwrap_or(VERSION);
    if version < 1 && policy.mode == Mode::Strict {
        return Err(Key::Version.error(ProtocolError::BadVersion { version, allowed: "1 and newer" }));
    }
    // The fast path has a pointer, so the compiler removes this match there.
    let readonly = match raw.data {
        Data::Pointer { flag, .. } => flag,
        _ => is_readonly(raw.data),
    };
    Ok(Terms {
        own: Own::Array { version },
        elements: false,
        offset,
        offset_given: raw.offset.is_some(),
        readonly,
    })
}
