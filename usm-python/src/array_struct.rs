//! Imports NumPy arrays through `__array_struct__`, the array interface as a C structure.
//!
//! It has the content of `__array_interface__` in a tenth of the time, because NumPy makes no
//! dictionary and no eleven objects. Only for `numpy.ndarray` itself: a subclass may add meaning in
//! its dictionary.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyType};
use usm_interface::value::Str;
use usm_interface::{Data, Policy, Protocol, Raw};

use crate::array::Array;
use crate::error::OrRaise;
use crate::holding::{Keeper, Owner};
use crate::import;
use crate::view::{FEW_DIMS, View};

/// NumPy's `PyArrayInterface`.
#[repr(C)]
struct Interface {
    /// 2; any other value is another structure.
    two: c_int,
    ndim: c_int,
    kind: c_char,
    itemsize: c_int,
    flags: c_int,
    shape: *const isize,
    strides: *const isize,
    data: *mut c_void,
    descr: *mut ffi::PyObject,
}

const NATIVE: c_int = 0x200;
const WRITEABLE: c_int = 0x400;
const HAS_DESCR: c_int = 0x800;

/// The array; `None` for every object except a NumPy array of few dimensions with numbers as
/// elements. The dictionary serves all others.
#[inline]
pub(crate) fn import<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Array>>> {
    if is_ndarray(object) { read(object) } else { Ok(None) }
}

/// Whether the object is exactly a `numpy.ndarray`. Does not import NumPy.
#[inline]
pub(crate) fn is_ndarray(object: &Bound<'_, PyAny>) -> bool {
    static CLASS: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());
    let known = CLASS.load(Ordering::Relaxed);
    if !known.is_null() {
        return object.get_type_ptr() == known;
    }
    // Until the first NumPy array, only classes made in C are worth a lookup.
    if !is_static(object.get_type_ptr()) {
        return false;
    }
    let Some(class) = find(object.py()).filter(|class| is_static(class.as_type_ptr())) else { return false };
    // The class belongs to a module that cannot be unloaded, but is kept for ever anyway.
    CLASS.store(class.into_ptr().cast(), Ordering::Relaxed);
    object.get_type_ptr() == CLASS.load(Ordering::Relaxed)
}

fn is_static(class: *mut ffi::PyTypeObject) -> bool {
    // SAFETY: the class of a live object.
    unsafe { ffi::PyType_GetFlags(class) & ffi::Py_TPFLAGS_HEAPTYPE == 0 }
}

#[cold]
fn find(py: Python<'_>) -> Option<Bound<'_, PyType>> {
    let modules = py.import(intern!(py, "sys")).ok()?.getattr(intern!(py, "modules")).ok()?;
    let module = modules.cast::<PyDict>().ok()?.get_item(intern!(py, "numpy")).ok()??;
    module.getattr(intern!(py, "ndarray")).ok()?.cast_into().ok()
}

fn read<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Array>>> {
    let capsule = object.getattr(intern!(object.py(), "__array_struct__"))?;
    let Ok(capsule) = capsule.cast::<PyCapsule>() else { return Ok(None) };
    let pointer: NonNull<Interface> = capsule.pointer_checked(None)?.cast();
    // SAFETY: the capsule of NumPy's attribute holds this structure while it lives.
    let found = unsafe { pointer.as_ref() };
    let Some(typestr) = typestr(found) else { return Ok(None) };
    let few = usize::try_from(found.ndim).ok().filter(|ndim| *ndim <= FEW_DIMS && found.two == 2);
    let Some(ndim) = few else { return Ok(None) };
    let (mut shape, mut strides) = ([0; FEW_DIMS], [0; FEW_DIMS]);
    if ndim > 0 {
        // SAFETY: the structure promises this many entries.
        let extents = unsafe { std::slice::from_raw_parts(found.shape, ndim) };
        // SAFETY: as above.
        let steps = unsafe { std::slice::from_raw_parts(found.strides, ndim) };
        for axis in 0..ndim {
            (shape[axis], strides[axis]) = (extents[axis] as i64, steps[axis] as i64);
        }
    }
    let raw = Raw {
        shape: Some(&shape[..ndim]),
        strides: Some(&strides[..ndim]),
        typestr: std::str::from_utf8(&typestr).ok().map(|text| Str::new(text.trim_end_matches('\0'))),
        data: Data::Pointer { address: found.data as u64, flag: found.flags & WRITEABLE == 0 },
        version: Some(3),
        ..Raw::default()
    };
    let interface = raw.validate::<FEW_DIMS>(Protocol::Array, &Policy::default()).or_raise()?;
    let layout = interface.layout();
    let keeper = Keeper::Object(object.clone().unbind());
    let owner = Owner { object: Some(object.clone().unbind()), keeper };
    let (address, readonly) = (interface.address().unwrap_or(0), interface.readonly());
    let place = (View::of_layout(layout), layout.extent());
    // SAFETY: NumPy guarantees that the bytes belong to its array, which is kept alive.
    unsafe { import::adopt_host(object.py(), owner, address, place, readonly).map(Some) }
}

/// The type string of a number, filled up with zeros; `None` for other types.
fn typestr(found: &Interface) -> Option<[u8; 4]> {
    let kind = found.kind as u8;
    let is_number = b"biufc".contains(&kind) && (kind, found.itemsize) != (b'f', 1);
    if found.flags & HAS_DESCR != 0 || !is_number {
        return None;
    }
    let native = found.flags & NATIVE != 0;
    let order = match found.itemsize {
        1 => b'|',
        _ if native == cfg!(target_endian = "little") => b'<',
        _ => b'>',
    };
    match found.itemsize {
        size @ 1..=9 => Some([order, kind, b'0' + size as u8, 0]),
        size @ 10..=99 => Some([order, kind, b'0' + (size / 10) as u8, b'0' + (size % 10) as u8]),
        _ => None,
    }
}
