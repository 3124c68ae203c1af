//! Imports NumPy arrays by their C structure, as compiled extensions read it.
//!
//! That takes a twentieth of the time of a protocol: NumPy makes no dictionary, capsule or tuple.
//! Only for `numpy.ndarray` itself, because a subclass may add meaning, and only for numbers in
//! native byte order. The protocols serve all others.

use std::ffi::{c_char, c_int, c_long, c_uint};
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyType};
use usm_interface::{Dtype, Kind, Layout};

use crate::array::Array;
use crate::array::content::{Keeper, Owner};
use crate::array::view::{FEW_DIMS, View};
use crate::exchange::adoption;
use crate::process::once::name;
use crate::text::error::OrRaise;

/// The head of NumPy's `PyArrayObject_fields`.
#[repr(C)]
struct Fields {
    object: ffi::PyObject,
    data: *mut u8,
    ndim: c_int,
    shape: *const isize,
    strides: *const isize,
    base: *mut ffi::PyObject,
    descr: *const Descr,
    flags: c_int,
}

/// The head of NumPy's `PyArray_Descr`, the same in NumPy 1 and 2.
#[repr(C)]
struct Descr {
    object: ffi::PyObject,
    class: *mut ffi::PyTypeObject,
    kind: c_char,
    letter: c_char,
    order: c_char,
    former_flags: c_char,
    number: c_int,
}

const WRITEABLE: c_int = 0x400;
/// The versions of the structures, as `PyArray_GetNDArrayCVersion` says them: of NumPy 1 and 2.
const VERSIONS: [c_uint; 2] = [0x0100_0009, 0x0200_0000];

/// The array; `None` for every object except a NumPy array of few dimensions with native numbers as
/// elements.
#[inline]
pub(crate) fn import<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Array>>> {
    if is_ndarray(object) { read(object, false) } else { Ok(None) }
}

/// [`import`], if DLPack could describe the array.
#[inline]
pub(crate) fn import_tensor<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Array>>> {
    if is_ndarray(object) { read(object, true) } else { Ok(None) }
}

/// The class of arrays, once a NumPy with known structures was seen.
static CLASS: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());

/// Whether the object is exactly a `numpy.ndarray` with known structures. Does not import NumPy.
#[inline]
pub(crate) fn is_ndarray(object: &Bound<'_, PyAny>) -> bool {
    let class = CLASS.load(Ordering::Relaxed);
    if !class.is_null() {
        return object.get_type_ptr() == class;
    }
    // Until the first NumPy array, only classes made in C are worth a lookup.
    is_static(object.get_type_ptr()) && is_first(object)
}

fn is_static(class: *mut ffi::PyTypeObject) -> bool {
    // SAFETY: the class of a live object.
    unsafe { ffi::PyType_GetFlags(class) & ffi::Py_TPFLAGS_HEAPTYPE == 0 }
}

#[cold]
fn is_first(object: &Bound<'_, PyAny>) -> bool {
    let Some(class) = find(object.py()).filter(|class| is_static(class.as_type_ptr())) else { return false };
    if object.get_type_ptr() != class.as_type_ptr() || !is_known(object.py()).unwrap_or(false) {
        return false;
    }
    // The class belongs to a module that cannot be unloaded, but is kept for ever anyway.
    CLASS.store(class.into_ptr().cast(), Ordering::Relaxed);
    true
}

fn find(py: Python<'_>) -> Option<Bound<'_, PyType>> {
    let modules = py.import(name!(py, "sys")).ok()?.getattr(name!(py, "modules")).ok()?;
    let module = modules.cast::<PyDict>().ok()?.get_item(name!(py, "numpy")).ok()??;
    module.getattr(name!(py, "ndarray")).ok()?.cast_into().ok()
}

/// Whether NumPy has the structures of this file, asked as an extension does when it is imported.
fn is_known(py: Python<'_>) -> PyResult<bool> {
    let module = py.import("numpy._core._multiarray_umath");
    let module = module.or_else(|_| py.import("numpy.core._multiarray_umath"))?;
    let table = module.getattr("_ARRAY_API")?.cast_into::<PyCapsule>()?.pointer_checked(None)?;
    // SAFETY: NumPy's table of functions, of which the first is this one in every version.
    let version = unsafe { table.cast::<Option<unsafe extern "C" fn() -> c_uint>>().read() };
    // SAFETY: the function has no parameters and no preconditions.
    Ok(version.is_some_and(|version| VERSIONS.contains(&unsafe { version() })))
}

/// `tensor`: only what DLPack can describe.
fn read<'py>(object: &Bound<'py, PyAny>, tensor: bool) -> PyResult<Option<Bound<'py, Array>>> {
    let fields = object.as_ptr().cast::<Fields>();
    // SAFETY: a live object of the class with these fields; the interpreter is attached, so none of
    // them changes meanwhile.
    let Fields { data, ndim, shape, strides, descr, flags, .. } = unsafe { fields.read() };
    // SAFETY: every array has a description, which it keeps alive.
    let Some(dtype) = dtype(&unsafe { descr.read() }) else { return Ok(None) };
    let few = usize::try_from(ndim).ok().filter(|ndim| *ndim <= FEW_DIMS);
    let Some(ndim) = few else { return Ok(None) };
    let (mut extents, mut steps) = ([0; FEW_DIMS], [0; FEW_DIMS]);
    let itemsize = i64::from(dtype.itemsize());
    for axis in 0..ndim {
        // SAFETY: NumPy keeps an entry for each dimension.
        extents[axis] = unsafe { shape.wrapping_add(axis).read() } as i64;
        // SAFETY: as above.
        steps[axis] = unsafe { strides.wrapping_add(axis).read() } as i64;
        // DLPack counts elements.
        if tensor && steps[axis] % itemsize != 0 {
            return Ok(None);
        }
    }
    let layout = Layout::<FEW_DIMS>::new(dtype, &extents[..ndim], Some(&steps[..ndim]), 0).or_raise()?;
    let keeper = Keeper::Object(object.clone().unbind());
    let owner = Owner { object: Some(object.clone().unbind()), keeper };
    let (address, readonly) = (data.addr() as u64, flags & WRITEABLE == 0);
    let place = (View::of_layout(&layout), layout.extent());
    // SAFETY: NumPy guarantees that the bytes belong to its array, which is kept alive.
    unsafe { adoption::adopt_host(object.py(), owner, address, place, readonly).map(Some) }
}

/// Whether a NumPy array is no longer the one of this address and shape that was read before.
/// NumPy's `resize(refcheck=False)` replaces an array's memory while others use it. False for all
/// other objects.
pub(crate) fn is_moved(object: &Bound<'_, PyAny>, address: usize, shape: &[isize]) -> bool {
    if !is_ndarray(object) {
        return false;
    }
    // SAFETY: as in `read`.
    let Fields { data, ndim, shape: extents, .. } = unsafe { object.as_ptr().cast::<Fields>().read() };
    // SAFETY: as in `read`: NumPy keeps an entry for each dimension.
    let is_extent = |(axis, extent): (usize, &isize)| unsafe { extents.wrapping_add(axis).read() } == *extent;
    data.addr() != address || ndim as usize != shape.len() || !shape.iter().enumerate().all(is_extent)
}

/// The type of elements; `None` for all but native numbers.
fn dtype(descr: &Descr) -> Option<Dtype> {
    const LONG: u32 = size_of::<c_long>() as u32;
    let native = if cfg!(target_endian = "little") { b'<' } else { b'>' };
    if ![b'=', b'|', native].contains(&(descr.order as u8)) {
        return None;
    }
    // The numbers of types, `NPY_TYPES`. Those of C's `long double` have padding.
    let (kind, size) = match descr.number {
        0 => (Kind::Bool, 1),
        1 => (Kind::Int, 1),
        2 => (Kind::Uint, 1),
        3 => (Kind::Int, 2),
        4 => (Kind::Uint, 2),
        5 => (Kind::Int, 4),
        6 => (Kind::Uint, 4),
        7 => (Kind::Int, LONG),
        8 => (Kind::Uint, LONG),
        9 => (Kind::Int, 8),
        10 => (Kind::Uint, 8),
        11 => (Kind::Float, 4),
        12 => (Kind::Float, 8),
        14 => (Kind::Complex, 8),
        15 => (Kind::Complex, 16),
        23 => (Kind::Float, 2),
        _ => return None,
    };
    Dtype::number(kind, size)
}
