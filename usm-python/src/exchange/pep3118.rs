//! Imports memory through the buffer protocol.

use std::ffi::{CStr, c_int};
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;
use usm_core::AllocKind;
use usm_interface::pep3118::{Padding, RawBuffer};
use usm_interface::{Field, Policy, Protocol, Spelling, Target};

use crate::array::Array;
use crate::array::content::{Keeper, Owner};
use crate::array::members::{MAX_FIELDS, Members};
use crate::array::view::{MAX_DIMS, View};
use crate::device::runtime;
use crate::exchange::adoption;
use crate::exchange::buffer::HeldBuffer;
use crate::process::once::name;
use crate::text::error::{Class, OrRaise};

/// `PyBUF_FULL_RO`: shape, strides, format, suboffsets; accepts read-only memory.
const FULL: c_int = ffi::PyBUF_FULL_RO;

/// The object's buffer as an array of host memory without a copy; `None` if it has none. The buffer
/// is held while the memory is used, so that a `bytearray` does not move meanwhile.
pub(crate) fn import<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Array>>> {
    let py = object.py();
    // SAFETY: an object.
    if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 0 {
        return Ok(None);
    }
    let held_buffer = match HeldBuffer::with_flags(object, FULL) {
        Ok(buffer) => buffer,
        Err(error) if error.is_instance_of::<PyTypeError>(py) => return Ok(None),
        Err(error) => return Err(error),
    };
    let raw = held_buffer.raw();
    let ndim = usize::try_from(raw.ndim).unwrap_or(usize::MAX);
    if ndim > MAX_DIMS {
        return Err(
            Class::Interface.error(format!("ndim: {} dimensions, at most {MAX_DIMS} are read", raw.ndim))
        );
    }
    let axes = |pointer: *mut isize| -> Option<Vec<i64>> {
        // SAFETY: the protocol promises `ndim` entries behind a non-NULL pointer.
        (!pointer.is_null())
            .then(|| unsafe { std::slice::from_raw_parts(pointer, ndim) }.iter().map(|n| *n as i64).collect())
    };
    let (shape, strides, suboffsets) = (axes(raw.shape), axes(raw.strides), axes(raw.suboffsets));
    let shape = if ndim == 0 { Some(Vec::new()) } else { shape };
    let strides = if ndim == 0 { None } else { strides };
    let format = if raw.format.is_null() {
        None
    } else {
        // SAFETY: the protocol promises a terminated string that lives while the buffer is held.
        let text = unsafe { CStr::from_ptr(raw.format) };
        Some(text.to_str().map_err(|_| Class::Interface.error("format: not UTF-8"))?)
    };
    let fields = RawBuffer {
        format,
        itemsize: raw.itemsize as i64,
        shape: shape.as_deref(),
        strides: strides.as_deref(),
        suboffsets: suboffsets.is_some_and(|values| values.iter().any(|value| *value >= 0)),
        address: raw.buf as u64,
        len: raw.len as i64,
        readonly: raw.readonly != 0,
    };
    let mut table = vec![Field::EMPTY; if simple(format) { 1 } else { MAX_FIELDS }];
    let buffer = fields.validate::<MAX_DIMS>(padding(object)?, &Policy::default(), &mut table).or_raise()?;
    let layout = *buffer.layout();
    let descr = match buffer.structure() {
        Some(_) => {
            let interface = buffer.to_interface(Protocol::Array, &Target::default()).or_raise()?;
            Some(descr(py, &interface)?)
        }
        None => None,
    };
    let readonly = buffer.readonly();
    let stream = Arc::clone(runtime::host_stream()?);
    let (view, extent) = (View { descr, ..View::of_layout(&layout) }, layout.extent());
    if extent.low == extent.high {
        return adoption::empty(py, stream, AllocKind::Host, view, readonly).map(Some);
    }
    let address = raw.buf as u64;
    let owner = Owner { object: Some(object.clone().unbind()), keeper: Keeper::Buffer(held_buffer) };
    // SAFETY: plain memory is host memory of the host's context. The exporter keeps these bytes
    // alive and in place while the buffer is held.
    unsafe {
        adoption::adopt(py, owner, stream, AllocKind::Host, address, (view, extent), readonly).map(Some)
    }
}

/// Whether a format is one element without members: an optional byte order and one or two letters.
fn simple(format: Option<&str>) -> bool {
    format.is_none_or(|format| format.len() <= 3)
}

/// ctypes omits all C padding from its formats, NumPy the trailing padding; ours contain all of it.
fn padding(object: &Bound<'_, PyAny>) -> PyResult<Padding> {
    // A view has its base object's properties.
    let owner = match object.cast::<PyMemoryView>() {
        Ok(view) => view.getattr(name!(object.py(), "obj"))?,
        Err(_) => object.clone(),
    };
    if owner.is_instance_of::<Array>() {
        return Ok(Padding::C);
    }
    let metaclass = owner.get_type().get_type();
    let ctypes = metaclass.getattr("__module__")?.extract::<String>().is_ok_and(|module| module == "_ctypes");
    Ok(if ctypes { Padding::Natural } else { Padding::Trailing })
}

/// The members as the text of a `descr`.
fn descr(py: Python<'_>, interface: &usm_interface::Interface<'_, '_, MAX_DIMS>) -> PyResult<Arc<Members>> {
    let mut text = String::new();
    interface
        .write(&mut text, Spelling::Python)
        .map_err(|_| Class::Interface.error("format: the members cannot be spelled"))?;
    let dict = py.import("ast")?.getattr("literal_eval")?.call1((text,))?;
    Ok(Arc::new(dict.get_item("descr")?.repr()?.to_str()?.into()))
}
