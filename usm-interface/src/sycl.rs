//! `__sycl_usm_array_interface__`, version 1.
//!
//! **Units.** dpctl writes and reads `strides` and `offset` in elements, counted from `data[0]`; the numba-dpex documents say bytes
//! for strides. Every producer that was measured uses elements, so [`SyclUnits::Elements`] is the default.
//!
//! **Polarity.** The documents say `data[1]` true = read-only, and arrays do so; `dpctl.memory` objects export `(ptr, True)` for
//! writable memory. See [`SyclFlag`].
//!
//! **Byte order.** dpctl writes `|` for every type: it means native order here. **Structures** are described by `typedescr`
//! (`descr` is read too). **Without `data`** the producer's PEP 3118 buffer stands in, and the pointer's kind is asked from the context.

use crate::dtype::{Dtype, Kind};
use crate::error::{ErrorKind, Key, Result};
use crate::layout::Layout;
use crate::policy::{Policy, SyclFlag, SyclUnits};
use crate::raw::{Data, Interface, Protocol, Raw, Stream, SyclObject};

/// The only version.
pub const VERSION: i64 = 1;

/// Checks the fields of a `__sycl_usm_array_interface__`.
///
/// # Errors
/// A refusal that names the key.
#[inline]
pub fn validate<'a, 'f, const N: usize>(raw: &Raw<'a, 'f>, policy: &Policy) -> Result<Interface<'a, 'f, N>> {
    match raw.version {
        Some(VERSION) => {}
        Some(version) => {
            return Err(Key::Version.error(ErrorKind::BadVersion { version, allowed: "1" }));
        }
        None => return Err(Key::Version.error(ErrorKind::Missing)),
    }
    let shape = raw.shape.ok_or_else(|| Key::Shape.error(ErrorKind::Missing))?;
    let dtype = raw.dtype(true, policy)?;
    let descr = raw.structure(dtype, policy)?;
    raw.refuse_mask()?;
    let syclobj = raw.syclobj.ok_or_else(|| Key::Syclobj.error(ErrorKind::Missing))?;
    if let SyclObject::Filter(filter) = syclobj
        && filter.is_empty()
    {
        return Err(Key::Syclobj.error(ErrorKind::EmptyFilter));
    }
    let unit = match policy.sycl_units {
        SyclUnits::Elements => dtype.itemsize(),
        SyclUnits::Bytes => 1,
    };
    let layout = Layout::scaled(dtype, shape, raw.strides, raw.offset.unwrap_or(0), i64::from(unit))?;
    raw.check_data(&layout, policy)?;
    let readonly = match raw.data {
        Data::Pointer { flag, .. } => readonly(flag, raw, dtype, syclobj, policy),
        Data::Buffer { readonly, .. } => readonly,
        Data::Absent => false,
        Data::Object => {
            return Err(Key::Data
                .error(ErrorKind::WrongType { expected: "(address, read-only)", found: "an object" }));
        }
    };
    Ok(Interface {
        protocol: Protocol::Sycl,
        layout,
        data: raw.data,
        readonly,
        descr,
        version: VERSION,
        stream: Stream::None,
        syclobj: Some(syclobj),
        offset_given: raw.offset.is_some(),
        unit,
    })
}

fn readonly(flag: bool, raw: &Raw<'_, '_>, dtype: Dtype, syclobj: SyclObject<'_>, policy: &Policy) -> bool {
    match policy.sycl_flag {
        SyclFlag::ReadOnly => flag,
        SyclFlag::Writable => !flag,
        SyclFlag::Auto => flag && !is_dpctl_memory(raw, dtype, syclobj),
    }
}

/// Whether the dictionary looks as `dpctl.memory` writes it: no `offset`, no strides, one dimension of `|u1`, a queue.
fn is_dpctl_memory(raw: &Raw<'_, '_>, dtype: Dtype, syclobj: SyclObject<'_>) -> bool {
    raw.offset.is_none()
        && raw.strides.is_none()
        && raw.descr.is_none()
        && raw.shape.is_some_and(|shape| shape.len() == 1)
        && (dtype.kind(), dtype.itemsize()) == (Kind::Uint, 1)
        && matches!(syclobj, SyclObject::Queue | SyclObject::Unknown)
}
