//! Lists and tuples of Python's own floats, or of its own integers: read in one pass, straight into
//! the memory of the array. Anything else is left to `construct`, which makes the errors too.

use std::ptr::NonNull;
use std::slice;

use pyo3::ffi;
use pyo3::prelude::*;
use usm_core::AllocKind;
use usm_interface::{Dtype, Kind};

use crate::array::view::{MAX_DIMS, View};
use crate::device::runtime;
use crate::storage::Storage;
use crate::storage::side::Side;

/// What all values are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Floats,
    Integers,
}

/// The values as `float64` or `int64` in host memory; `None` if they are not uniform, or of another
/// type than `target`.
pub(crate) fn of_numbers(obj: &Bound<'_, PyAny>, target: Option<Dtype>) -> PyResult<Option<Side>> {
    // SAFETY: the interpreter is attached, and `obj` keeps everything in it alive: no code of
    // Python runs here that could change a list.
    let Some((extents, values)) = (unsafe { announced(obj.as_ptr()) }) else { return Ok(None) };
    let kind = if values == Values::Floats { Kind::Float } else { Kind::Int };
    let Some(dtype) = Dtype::number(kind, 8) else { return Ok(None) };
    if target.is_some_and(|target_type| target_type != dtype) {
        return Ok(None);
    }
    let Ok(view) = View::contiguous(dtype, &extents) else { return Ok(None) };
    let stream = runtime::host_stream()?.clone();
    let Ok(storage) = Storage::allocate(&stream, AllocKind::Host, view.nbytes(), 0) else { return Ok(None) };
    let target: NonNull<u64> = storage.block().pointer.cast();
    // SAFETY: new memory of the host with this many elements, aligned for them, that no other code
    // knows; `u64` has no invalid bits, and nothing reads the slice before it is written.
    let words = unsafe { slice::from_raw_parts_mut(target.as_ptr().cast(), view.len()) };
    // SAFETY: as above.
    match unsafe { read(obj.as_ptr(), &extents, values, &mut words.iter_mut()) } {
        true => Ok(Some(Side { storage, stream, view })),
        false => Ok(None),
    }
}

type Words<'w> = slice::IterMut<'w, std::mem::MaybeUninit<u64>>;

/// The extents and values that the first sequences of each depth announce.
///
/// # Safety
/// A live object, with the interpreter attached.
unsafe fn announced(mut object: *mut ffi::PyObject) -> Option<(Vec<i64>, Values)> {
    let mut extents = Vec::new();
    loop {
        // SAFETY: a live object.
        if unsafe { ffi::PyFloat_CheckExact(object) } != 0 {
            return (!extents.is_empty()).then_some((extents, Values::Floats));
        }
        // SAFETY: as above.
        if unsafe { ffi::PyLong_CheckExact(object) } != 0 {
            return (!extents.is_empty()).then_some((extents, Values::Integers));
        }
        // SAFETY: as above.
        let sequence = unsafe { Sequence::of(object) }?;
        if sequence.len == 0 || extents.len() == MAX_DIMS {
            return None;
        }
        extents.push(sequence.len as i64);
        // SAFETY: the first of several items.
        object = unsafe { sequence.item(0) };
    }
}

/// Writes the values in C order. `false` if one is of another type or does not fit, or a sequence
/// has another length.
///
/// # Safety
/// As [`announced`].
unsafe fn read(object: *mut ffi::PyObject, extents: &[i64], values: Values, words: &mut Words<'_>) -> bool {
    // SAFETY: a live object.
    let Some(sequence) = (unsafe { Sequence::of(object) }) else { return false };
    let [extent, inner @ ..] = extents else { return false };
    if sequence.len as i64 != *extent {
        return false;
    }
    (0..sequence.len).all(|index| {
        // SAFETY: an index below the length; no code of Python changes the sequence meanwhile.
        let item = unsafe { sequence.item(index) };
        if !inner.is_empty() {
            // SAFETY: a live object.
            return unsafe { read(item, inner, values, words) };
        }
        // SAFETY: as above.
        match (unsafe { value(item, values) }, words.next()) {
            (Some(value), Some(word)) => {
                word.write(value);
                true
            }
            _ => false,
        }
    })
}

/// The bits of a value, if it is one of these.
///
/// # Safety
/// As [`announced`].
unsafe fn value(object: *mut ffi::PyObject, values: Values) -> Option<u64> {
    if values == Values::Floats {
        // SAFETY: a live object.
        if unsafe { ffi::PyFloat_CheckExact(object) } == 0 {
            return None;
        }
        // SAFETY: a float.
        return Some(unsafe { ffi::PyFloat_AsDouble(object) }.to_bits());
    }
    // SAFETY: a live object.
    if unsafe { ffi::PyLong_CheckExact(object) } == 0 {
        return None;
    }
    let mut overflow = 0;
    // SAFETY: an integer, and space for the flag.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(object, &raw mut overflow) };
    (overflow == 0).then_some(value as u64)
}

/// A list or tuple, not of a derived class.
struct Sequence {
    object: *mut ffi::PyObject,
    len: isize,
    is_list: bool,
}

impl Sequence {
    /// # Safety
    /// As [`announced`].
    unsafe fn of(object: *mut ffi::PyObject) -> Option<Self> {
        // SAFETY: a live object.
        if unsafe { ffi::PyList_CheckExact(object) } != 0 {
            // SAFETY: a list.
            let len = unsafe { ffi::PyList_Size(object) };
            return Some(Self { object, len, is_list: true });
        }
        // SAFETY: a live object.
        if unsafe { ffi::PyTuple_CheckExact(object) } != 0 {
            // SAFETY: a tuple.
            let len = unsafe { ffi::PyTuple_Size(object) };
            return Some(Self { object, len, is_list: false });
        }
        None
    }

    /// A borrowed reference.
    ///
    /// # Safety
    /// An index below the length, which has not changed.
    unsafe fn item(&self, index: isize) -> *mut ffi::PyObject {
        if self.is_list {
            // SAFETY: the caller's promise.
            return unsafe { ffi::PyList_GetItem(self.object, index) };
        }
        // SAFETY: as above.
        unsafe { ffi::PyTuple_GetItem(self.object, index) }
    }
}
