//! `__sycl_usm_array_interface__`, version 1.
//!
//! **Units.** dpctl writes and reads `strides` and `offset` in elements, counted from `data[0]`.
//! The numba-dpex documents say bytes for strides. Every measured producer uses elements, so
//! [`SyclUnits::Elements`] is the default.
//!
//! **Polarity.** The documents define `data[1]` true = read-only, and arrays follow them.
//! `dpctl.memory` objects export `(ptr, True)` for writable memory. See [`SyclFlag`].
//!
//! **Byte order.** dpctl writes `|` for every type, so it means native order here. **Structures**
//! are described by `typedescr` (`descr` is read too). **Without `data`** the producer's PEP 3118
//! buffer is the data, and the context knows the kind of its pointer.

use crate::dtype::{Dtype, Kind};
use crate::error::{EntryError, Key, ProtocolError, Result, ValueKind};
use crate::interface::{Interface, Own, Terms};
use crate::policy::{Policy, SyclFlag, SyclUnits};
use crate::raw::{Data, Dimensions, Protocol, Raw, SyclObject};

/// The only version.
pub const VERSION: i64 = 1;

/// Checks the fields of a `__sycl_usm_array_interface__`.
///
/// # Errors
/// A refusal that names the key.
#[inline]
pub fn validate<'a, 'f, const N: usize>(raw: &Raw<'a, 'f>, policy: &Policy) -> Result<Interface<'a, 'f, N>> {
    raw.check(raw.dimensions(), Protocol::Sycl, policy)
}

/// The protocol's rules for all fields except type, shape and strides.
#[inline(always)]
pub(crate) fn terms<'a>(
    raw: &Raw<'a, '_>,
    dimensions: Dimensions<'_>,
    dtype: Dtype,
    policy: &Policy,
) -> Result<Terms<'a>> {
    match raw.version {
        Some(VERSION) => {}
        Some(version) => {
            return Err(Key::Version.error(ProtocolError::BadVersion { version, allowed: "1" }));
        }
        None => return Err(Key::Version.error(EntryError::Missing)),
    }
    let syclobj = raw.syclobj.ok_or_else(|| Key::Syclobj.error(EntryError::Missing))?;
    if let SyclObject::Filter(filter) = syclobj
        && filter.is_empty()
    {
        return Err(Key::Syclobj.error(ProtocolError::EmptyFilter));
    }
    let readonly = match raw.data {
        Data::Pointer { flag, .. } => readonly(flag, raw, dimensions, dtype, syclobj, policy),
        Data::Buffer { readonly, .. } => readonly,
        Data::Absent => false,
        Data::Bytes { .. } | Data::Object => {
            return Err(Key::Data.error(EntryError::WrongType {
                expected: "(address, read-only)",
                found: ValueKind::Object,
            }));
        }
    };
    Ok(Terms {
        own: Own::Sycl { syclobj },
        elements: policy.sycl_units == SyclUnits::Elements,
        offset: raw.offset.unwrap_or(0),
        offset_given: raw.offset.is_some(),
        readonly,
    })
}

fn readonly(
    flag: bool,
    raw: &Raw<'_, '_>,
    dimensions: Dimensions<'_>,
    dtype: Dtype,
    syclobj: SyclObject<'_>,
    policy: &Policy,
) -> bool {
    match policy.sycl_flag {
        SyclFlag::ReadOnly => flag,
        SyclFlag::Writable => !flag,
        SyclFlag::Auto => flag && !is_dpctl_memory(raw, dimensions, dtype, syclobj),
    }
}

/// Whether the dictionary has the form of `dpctl.memory`: no `offset`, no strides, one dimension of
/// `|u1`, a queue.
fn is_dpctl_memory(
    raw: &Raw<'_, '_>,
    dimensions: Dimensions<'_>,
    dtype: Dtype,
    syclobj: SyclObject<'_>,
) -> bool {
    raw.offset.is_none()
        && dimensions.strides.is_none()
        && raw.descr.is_none()
        && dimensions.shape.is_some_and(|shape| shape.len() == 1)
        && (dtype.kind(), dtype.itemsize()) == (Kind::Uint, 1)
        && matches!(syclobj, SyclObject::Queue | SyclObject::Unknown)
}
