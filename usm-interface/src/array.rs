//! `__array_interface__`, version 3.
//!
//! Strides are in bytes. `data` is `(address, read-only)`, a buffer, None or absent; `offset` (bytes) belongs to buffers only.
//! NumPy never reads `version` and neither do we, but a version that is no positive integer is refused in [`Mode::Strict`].

use crate::error::{EntryError, Key, ProtocolError, Result};
use crate::policy::{Mode, Policy};
use crate::raw::{Data, Dimensions, Interface, Protocol, Raw};

/// The version that is written.
pub const VERSION: i64 = 3;

/// Checks the fields of an `__array_interface__`.
///
/// # Errors
/// A refusal that names the key.
#[inline]
pub fn validate<'a, 'f, const N: usize>(raw: &Raw<'a, 'f>, policy: &Policy) -> Result<Interface<'a, 'f, N>> {
    raw.check(raw.dimensions(), Protocol::Array, policy)
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
    let offset = match (raw.data, raw.offset) {
        (_, None | Some(0)) => 0,
        // NumPy ignores it; the standard does not allow it; either reading alone would be silently wrong.
        (Data::Pointer { .. }, Some(_)) if policy.mode == Mode::Numpy => 0,
        (Data::Pointer { .. }, Some(offset)) => {
            return Err(Key::Offset.error(ProtocolError::OffsetWithPointer { offset }));
        }
        (_, Some(offset)) => offset,
    };
    array.layout.set(dtype, shape, dimensions.strides, offset, 1)?;
    raw.check_data(&array.layout, policy)?;
    if let Some(version) = raw.version
        && version < 1
        && policy.mode == Mode::Strict
    {
        return Err(Key::Version.error(ProtocolError::BadVersion { version, allowed: "1 and newer" }));
    }
    array.version = raw.version.unwrap_or(VERSION);
    array.readonly = match raw.data {
        Data::Pointer { flag, .. } => flag,
        Data::Buffer { readonly, .. } => readonly,
        Data::Absent | Data::Object => false,
    };
    Ok(())
}
