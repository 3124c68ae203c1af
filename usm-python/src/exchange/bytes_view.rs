//! An array over a part of a buffer, as files describe it: element type, extents, place.

use std::sync::Arc;

use pyo3::prelude::*;
use usm_core::AllocKind;
use usm_interface::Layout;

use crate::array::Array;
use crate::array::content::{Keeper, Owner};
use crate::array::create;
use crate::array::dtype::PyDtype;
use crate::array::view::{MAX_DIMS, View};
use crate::device::runtime;
use crate::exchange::adoption;
use crate::exchange::buffer::HeldBuffer;
use crate::text::error::{Class, OrRaise};

/// A read-only array of host memory over the bytes of a buffer from `offset` on, without a copy.
#[pyfunction]
pub(crate) fn _array_of_bytes<'py>(
    buffer: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    shape: &Bound<'py, PyAny>,
    offset: usize,
) -> PyResult<Bound<'py, Array>> {
    let py = buffer.py();
    let element: PyDtype = PyDtype::of(dtype)?;
    let extents = create::shape(shape)?;
    let layout = Layout::<MAX_DIMS>::new(element.dtype, &extents, None, 0).or_raise()?;
    let (view, extent) = (View { descr: element.descr, ..View::of_layout(&layout) }, layout.extent());
    let held_buffer = HeldBuffer::new(buffer, false)?;
    let room = held_buffer.len().checked_sub(offset).and_then(|room| u64::try_from(room).ok());
    let bytes = extent.high.wrapping_sub(extent.low);
    if room.and_then(|room| i64::try_from(room).ok()).is_none_or(|room| bytes > room) {
        let reason = format!("{bytes} bytes from byte {offset} on, but the buffer has {}", held_buffer.len());
        return Err(Class::Interface.error(reason));
    }
    let stream = Arc::clone(runtime::host_stream()?);
    if bytes == 0 {
        return adoption::empty(py, stream, AllocKind::Host, view, true);
    }
    let address = held_buffer.pointer() as u64 + offset as u64;
    let owner = Owner { object: Some(buffer.clone().unbind()), keeper: Keeper::Buffer(held_buffer) };
    // SAFETY: plain memory is host memory of the host's context. The exporter keeps these bytes
    // alive and in place while the buffer is held, and they end inside of it.
    unsafe { adoption::adopt(py, owner, stream, AllocKind::Host, address, (view, extent), true) }
}
