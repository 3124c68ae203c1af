//! Allocations of sizes that a program chooses. A size from an array may be any number, so every
//! request here can be refused; the library's own containers would end the process.

use std::ptr::{self, NonNull};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList};

pub(crate) use usm_array::reserved;

use crate::text::error::{Failure, OrRaise};

/// The result of an allocation by the interpreter. NULL becomes our own error, and the exception is
/// replaced.
///
/// # Safety
/// `object` is NULL with an exception set, or a new reference.
unsafe fn owned(py: Python<'_>, object: *mut ffi::PyObject, size: usize) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: the caller's promise.
    match unsafe { Bound::from_owned_ptr_or_err(py, object) } {
        Ok(object) => Ok(object),
        Err(_) => Err(Failure::NoMemory(size)).or_raise(),
    }
}

/// A `bytes` object.
pub(crate) fn bytes<'py>(py: Python<'py>, content: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let (pointer, len) = (content.as_ptr().cast(), content.len());
    // SAFETY: that many readable bytes; no slice has more than `isize::MAX`.
    let object = unsafe { ffi::PyBytes_FromStringAndSize(pointer, len as isize) };
    // SAFETY: the result of a function that makes an object.
    Ok(unsafe { owned(py, object, len) }?.cast_into()?)
}

/// A `bytes` object with content that nobody has written, and that no other code knows yet.
pub(crate) struct Blank {
    object: Py<PyBytes>,
    content: NonNull<u8>,
    len: usize,
}

// SAFETY: the object is the interpreter's, and the pointer is to bytes that only this value knows.
unsafe impl Send for Blank {}

impl Blank {
    pub(crate) fn new(py: Python<'_>, len: usize) -> PyResult<Self> {
        let size = isize::try_from(len).map_err(|_| Failure::NoMemory(len)).or_raise()?;
        // SAFETY: the size is not negative; without a source the content is left open.
        let object = unsafe { ffi::PyBytes_FromStringAndSize(ptr::null(), size) };
        // SAFETY: the result of a function that makes an object.
        let object = unsafe { owned(py, object, len) }?.cast_into::<PyBytes>()?;
        // SAFETY: a `bytes` object.
        let content = NonNull::new(unsafe { ffi::PyBytes_AsString(object.as_ptr()) }.cast::<u8>());
        // The objects of one byte and of none are the interpreter's, which everybody knows.
        let content = content.filter(|_| len > 1).ok_or(Failure::NoMemory(len)).or_raise()?;
        Ok(Self { object: object.unbind(), content, len })
    }

    /// The bytes, which live as long as this value.
    pub(crate) fn room(&self) -> (*mut u8, usize) {
        (self.content.as_ptr(), self.len)
    }

    /// # Safety
    /// All bytes are written.
    pub(crate) unsafe fn into_bytes(self, py: Python<'_>) -> Bound<'_, PyBytes> {
        self.object.into_bound(py)
    }
}

/// A `bytearray`.
pub(crate) fn bytearray<'py>(py: Python<'py>, content: &[u8]) -> PyResult<Bound<'py, PyByteArray>> {
    let (pointer, len) = (content.as_ptr().cast(), content.len());
    // SAFETY: that many readable bytes; no slice has more than `isize::MAX`.
    let object = unsafe { ffi::PyByteArray_FromStringAndSize(pointer, len as isize) };
    // SAFETY: the result of a function that makes an object.
    Ok(unsafe { owned(py, object, len) }?.cast_into()?)
}

/// A list of `item(index)` for each of `len` indices.
pub(crate) fn list<'py>(
    py: Python<'py>,
    len: usize,
    mut item: impl FnMut(usize) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let size = len.saturating_mul(size_of::<*mut ffi::PyObject>());
    let count = isize::try_from(len).map_err(|_| Failure::NoMemory(size)).or_raise()?;
    // SAFETY: a non-negative number.
    let object = unsafe { ffi::PyList_New(count) };
    // SAFETY: the result of a function that makes an object.
    let list = unsafe { owned(py, object, size) }?;
    for index in 0..len {
        let value = item(index)?.into_ptr();
        // SAFETY: an index below the length. The list takes the reference, and no other code has
        // seen the list.
        unsafe { ffi::PyList_SetItem(list.as_ptr(), index as isize, value) };
    }
    Ok(list.cast_into()?)
}
