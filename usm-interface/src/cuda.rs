//! `__cuda_array_interface__`, versions 0 to 3.
//!
//! Strides are in bytes and there is no offset. Version 1 added `mask` (which no consumer supports: a mask is an error, never ignored),
//! version 2 made the address of an empty array 0, version 3 added `stream`. Stream 0 is forbidden.

use crate::error::{ErrorKind, Key, Result};
use crate::layout::Layout;
use crate::policy::{MissingData, Policy};
use crate::raw::{Data, Interface, Protocol, Raw, Stream};
use crate::value::Int;

/// The version that is written.
pub const VERSION: i64 = 3;

/// Reads a stream number.
///
/// # Errors
/// [`ErrorKind::StreamZero`]; [`ErrorKind::IntegerRange`] for a negative one.
pub fn stream(number: Int) -> Result<Stream> {
    match number.to_u64() {
        Some(0) => Err(Key::Stream.error(ErrorKind::StreamZero)),
        Some(1) => Ok(Stream::LegacyDefault),
        Some(2) => Ok(Stream::PerThreadDefault),
        Some(handle) => Ok(Stream::Handle(handle)),
        None => Err(Key::Stream.error(ErrorKind::IntegerRange { range: "1..2^64" })),
    }
}

/// Checks the fields of a `__cuda_array_interface__`.
///
/// # Errors
/// A refusal that names the key.
#[inline]
pub fn validate<'a, 'f, const N: usize>(raw: &Raw<'a, 'f>, policy: &Policy) -> Result<Interface<'a, 'f, N>> {
    let shape = raw.shape.ok_or_else(|| Key::Shape.error(ErrorKind::Missing))?;
    let dtype = raw.dtype(false, policy)?;
    let descr = raw.structure(dtype, policy)?;
    raw.refuse_mask()?;
    let version = raw.version.ok_or_else(|| Key::Version.error(ErrorKind::Missing))?;
    if !(0..=VERSION).contains(&version) {
        return Err(Key::Version.error(ErrorKind::BadVersion { version, allowed: "0 to 3" }));
    }
    if let Some(offset) = raw.offset.filter(|&offset| offset != 0) {
        return Err(Key::Offset.error(ErrorKind::OffsetWithPointer { offset }));
    }
    let stream = match raw.stream {
        None => Stream::None,
        Some(number) => stream(number)?,
    };
    let layout = Layout::new(dtype, shape, raw.strides, 0)?;
    raw.check_data(&layout, policy)?;
    let readonly = match raw.data {
        Data::Pointer { flag, .. } => flag,
        Data::Absent if policy.missing_data == MissingData::Allow => false,
        Data::Absent => return Err(Key::Data.error(ErrorKind::Missing)),
        Data::Buffer { .. } | Data::Object => {
            return Err(Key::Data
                .error(ErrorKind::WrongType { expected: "(address, read-only)", found: "an object" }));
        }
    };
    Ok(Interface {
        protocol: Protocol::Cuda,
        layout,
        data: raw.data,
        readonly,
        descr,
        version,
        stream,
        syclobj: None,
        offset_given: false,
        unit: 1,
    })
}
