//! `__cuda_array_interface__`, versions 0 to 3.
//!
//! Strides are in bytes and there is no offset. Version 1 added `mask` (which no consumer supports: a mask is an error, never ignored),
//! version 2 made the address of an empty array 0, version 3 added `stream`. Stream 0 is forbidden.

use crate::error::{EntryError, Found, Key, ProtocolError, Result};
use crate::policy::{MissingData, Policy};
use crate::raw::{Data, Dimensions, Interface, Protocol, Raw, Stream};
use crate::value::Int;

/// The version that is written.
pub const VERSION: i64 = 3;

/// Reads a stream number.
///
/// # Errors
/// [`ProtocolError::StreamZero`]; [`EntryError::IntegerRange`] for a negative one.
pub fn stream(number: Int) -> Result<Stream> {
    match number.to_u64() {
        Some(0) => Err(Key::Stream.error(ProtocolError::StreamZero)),
        Some(1) => Ok(Stream::LegacyDefault),
        Some(2) => Ok(Stream::PerThreadDefault),
        Some(handle) => Ok(Stream::Handle(handle)),
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

#[inline]
pub(crate) fn check<'a, 'f, const N: usize>(
    raw: &Raw<'a, 'f>,
    dimensions: Dimensions<'_>,
    policy: &Policy,
    array: &mut Interface<'a, 'f, N>,
) -> Result<()> {
    let shape = dimensions.shape.ok_or_else(|| Key::Shape.error(EntryError::Missing))?;
    let dtype = raw.dtype(false, policy)?;
    array.descr = raw.structure(dtype, policy)?;
    raw.refuse_mask()?;
    array.version = raw.version.ok_or_else(|| Key::Version.error(EntryError::Missing))?;
    if !(0..=VERSION).contains(&array.version) {
        let kind = ProtocolError::BadVersion { version: array.version, allowed: "0 to 3" };
        return Err(Key::Version.error(kind));
    }
    if let Some(offset) = raw.offset.filter(|&offset| offset != 0) {
        return Err(Key::Offset.error(ProtocolError::OffsetWithPointer { offset }));
    }
    array.offset_given = false;
    if let Some(number) = raw.stream {
        array.stream = stream(number)?;
    }
    array.layout.set(dtype, shape, dimensions.strides, 0, 1)?;
    raw.check_data(&array.layout, policy)?;
    array.readonly = match raw.data {
        Data::Pointer { flag, .. } => flag,
        Data::Absent if policy.missing_data == MissingData::Allow => false,
        Data::Absent => return Err(Key::Data.error(EntryError::Missing)),
        Data::Buffer { .. } | Data::Object => {
            return Err(Key::Data
                .error(EntryError::WrongType { expected: "(address, read-only)", found: Found::Object }));
        }
    };
    Ok(())
}
