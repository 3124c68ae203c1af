//! `__array_interface__`, version 3.
//!
//! Strides are in bytes. `data` is `(address, read-only)`, a buffer, None or absent; `offset` (bytes) belongs to buffers only.
//! NumPy never reads `version` and neither do we, but a version that is no positive integer is refused in [`Mode::Strict`].

use crate::error::{ErrorKind, Key, Result};
use crate::layout::Layout;
use crate::policy::{Mode, Policy};
use crate::raw::{Data, Interface, Protocol, Raw, Stream};

/// The version that is written.
pub const VERSION: i64 = 3;

/// Checks the fields of an `__array_interface__`.
///
/// # Errors
/// A refusal that names the key.
#[inline]
pub fn validate<'a, 'f, const N: usize>(raw: &Raw<'a, 'f>, policy: &Policy) -> Result<Interface<'a, 'f, N>> {
    let shape = raw.shape.ok_or_else(|| Key::Shape.error(ErrorKind::Missing))?;
    let dtype = raw.dtype(false, policy)?;
    let descr = raw.structure(dtype, policy)?;
    raw.refuse_mask()?;
    let offset = match (raw.data, raw.offset) {
        (_, None | Some(0)) => 0,
        // NumPy ignores it; the standard does not allow it; either reading alone would be silently wrong.
        (Data::Pointer { .. }, Some(_)) if policy.mode == Mode::Numpy => 0,
        (Data::Pointer { .. }, Some(offset)) => {
            return Err(Key::Offset.error(ErrorKind::OffsetWithPointer { offset }));
        }
        (_, Some(offset)) => offset,
    };
    let layout = Layout::new(dtype, shape, raw.strides, offset)?;
    raw.check_data(&layout, policy)?;
    if let Some(version) = raw.version
        && version < 1
        && policy.mode == Mode::Strict
    {
        return Err(Key::Version.error(ErrorKind::BadVersion { version, allowed: "1 and newer" }));
    }
    let readonly = match raw.data {
        Data::Pointer { flag, .. } => flag,
        Data::Buffer { readonly, .. } => readonly,
        Data::Absent | Data::Object => false,
    };
    Ok(Interface {
        protocol: Protocol::Array,
        layout,
        data: raw.data,
        readonly,
        descr,
        version: raw.version.unwrap_or(VERSION),
        stream: Stream::None,
        syclobj: None,
        offset_given: raw.offset.is_some(),
        unit: 1,
    })
}
