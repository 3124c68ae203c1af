//! `__cuda_array_interface__`, versions 0 to 3.
//!
//! Strides are in bytes, and there is no offset. Version 1 added `mask`; no consumer supports
//! masks, so a mask is an error and never ignored. Version 2 made the address of an empty array 0.
//! Version 3 added `stream`; stream 0 is forbidden.

use crate::error::{EntryError, Key, ProtocolError, Result, ValueKind};
use crate::interface::{Interface, Own, Terms};
use crate::policy::{MissingData, Policy};
use crate::raw::{Data, Protocol, Raw, Stream};
use crate::value::Int;

/// The version that this crate writes.
pub const VERSION: i64 = 3;
pub(crate) const WRITTEN: u8 = 3;

/// Reads a stream number.
///
/// # Errors
/// [`ProtocolError::StreamZero`]; [`EntryError::IntegerRange`] for a negative one.
pub fn stream(number: Int) -> Result<Stream> {
    checked(number).map(Stream::from_number)
}

fn checked(number: Int) -> Result<u64> {
    match number.to_u64() {
        Some(0) => Err(Key::Stream.error(ProtocolError::StreamZero)),
        Some(number) => Ok(number),
        None => Err(Key::Stream.error(EntryError::IntegerRange { range: "1..2^64" })),
    }
}

/// Checks the fields of a `__cuda_array_interface__`.
///
/// # Errors
/// A refusal that names the key.
#[inline]
pub fn validate<'a, 'f, const N: usize>(raw: &Raw<'a, 'f>, policy: &Policy) -> Result<Interface<'a, 'f, N>> {
    raw.check(raw.dimensions(), Protocol::Cuda, policy)
}

/// The protocol's rules for all fields except type, shape and strides.
#[inline(always)]
pub(crate) fn terms<'a>(raw: &Raw<'a, '_>, policy: &Policy) -> Result<Terms<'a>> {
    let version = raw.version.ok_or_else(|| Key::Version.error(EntryError::Missing))?;
    let version = match u8::try_from(version) {
        Ok(number) if i64::from(number) <= VERSION => number,
        _ => return Err(Key::Version.error(ProtocolError::BadVersion { version, allowed: "0 to 3" })),
    };
    if let Some(offset) = raw.offset.filter(|&offset| offset != 0) {
        return Err(Key::Offset.error(ProtocolError::OffsetWithPointer { offset }));
    }
    let stream = match raw.stream {
        None => 0,
        Some(number) => checked(number)?,
    };
    let readonly = match raw.data {
        Data::Pointer { flag, .. } => flag,
        Data::Absent if policy.missing_data == MissingData::Allow => false,
        Data::Absent => return Err(Key::Data.error(EntryError::Missing)),
        Data::Buffer { .. } | Data::Bytes { .. } | Data::Object => {
            return Err(Key::Data.error(EntryError::WrongType {
                expected: "(address, read-only)",
                found: ValueKind::Object,
            }));
        }
    };
    Ok(Terms {
        own: Own::Cuda { version, stream },
        elements: false,
        offset: 0,
        offset_given: false,
        readonly,
    })
}
