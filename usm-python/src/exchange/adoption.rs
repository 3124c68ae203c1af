//! Arrays over the memory of producers, which they keep alive.

use std::ptr::NonNull;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use usm_core::AllocKind;
use usm_interface::Extent;

use crate::array::Array;
use crate::array::content::{Holding, Keeper, Owner};
use crate::array::view::View;
use crate::device::runtime::{self, Stream};
use crate::exchange::buffer::HeldBuffer;
use crate::nrt::source;
use crate::process::attribute;
use crate::storage::Storage;
use crate::storage::side::Side;
use crate::text::error::{Class, OrRaise};

/// Reads an attribute that must be a dictionary; `None` if the object has no such attribute.
#[inline]
pub(crate) fn dictionary_of<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(value) = attribute::get(object, name)? else { return Ok(None) };
    match value.cast_into::<PyDict>() {
        Ok(dict) => Ok(Some(dict)),
        Err(_) => Err(Class::Interface.error(format!("{name} is not a dictionary"))),
    }
}

/// An array over foreign memory.
///
/// # Safety
/// The bytes of `extent` from `address` are memory of that kind in the stream's context. They live
/// until the owner's keeper is dropped.
#[inline]
pub(crate) unsafe fn adopt(
    py: Python<'_>,
    owner: Owner,
    stream: Arc<Stream>,
    kind: AllocKind,
    address: u64,
    (view, extent): (View, Extent),
    readonly: bool,
) -> PyResult<Bound<'_, Array>> {
    // The codec has proven that address plus extent stays inside the address space.
    let low = address.wrapping_add_signed(extent.low);
    let size = usize::try_from(extent.high.wrapping_sub(extent.low));
    let (Ok(size), Some(pointer)) = (size, NonNull::new(low as *mut u8)) else {
        return Err(Class::Interface.error("data: the array does not fit the address space"));
    };
    // SAFETY: the caller's promise.
    let content = unsafe { Holding::from_loan((kind, pointer, size), owner, stream, view, readonly) };
    Array::new(content).into_object(py)
}

/// An array without bytes. It keeps no reference to its producer.
pub(crate) fn empty(
    py: Python<'_>,
    stream: Arc<Stream>,
    kind: AllocKind,
    view: View,
    readonly: bool,
) -> PyResult<Bound<'_, Array>> {
    let storage = Storage::allocate(&stream, kind, 1, 0).or_raise()?.restricted(readonly);
    Array::new(Side { storage, stream, view }).into_object(py)
}

/// An array over foreign host memory, which may be a part of a block of our own source.
///
/// # Safety
/// The bytes of `extent` from `address` are host memory. They live until the owner's keeper is
/// dropped.
#[inline]
pub(crate) unsafe fn adopt_host(
    py: Python<'_>,
    owner: Owner,
    address: u64,
    (view, extent): (View, Extent),
    readonly: bool,
) -> PyResult<Bound<'_, Array>> {
    let stream = Arc::clone(runtime::host_stream()?);
    if extent.low == extent.high {
        return empty(py, stream, AllocKind::Host, view, readonly);
    }
    let low = address.wrapping_add_signed(extent.low) as usize;
    let size = extent.high.wrapping_sub(extent.low) as usize;
    let (kind, stream) = source::kind_and_queue(low, size).unwrap_or((AllocKind::Host, stream));
    // SAFETY: the bytes lie in a block of that context and kind, or are plain memory, which is host
    // memory of the host's context. The caller guarantees the rest.
    unsafe { adopt(py, owner, stream, kind, address, (view, extent), readonly) }
}

/// The owner of a dictionary's memory. `buffer` is the buffer that replaces `data`.
#[inline]
pub(crate) fn owner(object: &Bound<'_, PyAny>, dict: Bound<'_, PyDict>, buffer: Option<HeldBuffer>) -> Owner {
    let (producer, dict) = (object.clone().unbind(), dict.unbind());
    let keeper = match buffer {
        None => Keeper::Dictionary(producer, dict),
        Some(buffer) => Keeper::DataBuffer(producer, dict, buffer),
    };
    Owner { object: Some(object.clone().unbind()), keeper }
}
