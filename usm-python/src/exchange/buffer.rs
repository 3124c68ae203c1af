//! The buffer protocol: import and export.

use std::ffi::{CStr, CString, c_int, c_void};
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};
use usm_array::{Axes, StableBytes};
use usm_interface::text::Lexer;
use usm_interface::value::Str;
use usm_interface::{
    ByteOrder, Dtype, Error, Key, Kind, MissingData, Policy, Protocol, Raw, TypeError, descr,
};

use crate::array::members::table;
use crate::array::view::View;
use crate::text::error::Class;

/// A held buffer of another object: one contiguous range of bytes.
pub(crate) struct HeldBuffer {
    /// On the heap, because exporters may keep a pointer to it.
    raw: Box<ffi::Py_buffer>,
}

impl HeldBuffer {
    /// The object's bytes.
    ///
    /// # Errors
    /// The exporter's error if it has no buffer, no contiguous one, or no writable one if that is
    /// required. [`Class::Interface`] for elements that are Python objects.
    pub(crate) fn new(object: &Bound<'_, PyAny>, writable: bool) -> PyResult<Self> {
        let plain = object.is_exact_instance_of::<PyBytes>() || object.is_exact_instance_of::<PyByteArray>();
        // A consumer that asks only for bytes does not learn their type.
        if !plain
            && let Ok(buffer) = Self::with_flags(object, ffi::PyBUF_FULL_RO)
            && buffer.has_objects()
        {
            return Err(crate::text::error::interface(Error::new(
                TypeError::ObjectPointer,
                Key::Format.path(),
            )));
        }
        Self::with_flags(object, if writable { ffi::PyBUF_WRITABLE } else { ffi::PyBUF_SIMPLE })
    }

    /// Whether an element or a member is a Python object: `O` in the format, outside of the names
    /// between colons.
    fn has_objects(&self) -> bool {
        let Some(format) = NonNull::new(self.raw.format) else { return false };
        // SAFETY: the exporter's text ends with NUL and lives while the buffer is held.
        let format = unsafe { CStr::from_ptr(format.as_ptr()) };
        format.to_bytes().split(|byte| *byte == b':').step_by(2).any(|code| code.contains(&b'O'))
    }

    /// [`new`](Self::new) with flags of the protocol. Only the plain ones promise one contiguous
    /// range.
    pub(crate) fn with_flags(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<Self> {
        let mut raw = Box::new(MaybeUninit::<ffi::Py_buffer>::zeroed());
        // SAFETY: an object, and room for the structure.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), raw.as_mut_ptr(), flags) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        // SAFETY: initialised by the call.
        Ok(Self { raw: unsafe { Box::from_raw(Box::into_raw(raw).cast()) } })
    }

    pub(crate) fn raw(&self) -> &ffi::Py_buffer {
        &self.raw
    }

    pub(crate) fn len(&self) -> usize {
        self.raw.len.unsigned_abs()
    }

    pub(crate) fn pointer(&self) -> *mut u8 {
        self.raw.buf.cast()
    }
}

impl fmt::Debug for HeldBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("address", &self.pointer()).field("bytes", &self.len()).finish()
    }
}

// SAFETY: the bytes are the exporter's, which stay while the buffer is held.
unsafe impl StableBytes for HeldBuffer {}

impl AsRef<[u8]> for HeldBuffer {
    /// The bytes. Other Python threads may change them meanwhile, as with any buffer.
    fn as_ref(&self) -> &[u8] {
        if self.len() == 0 {
            return &[];
        }
        // SAFETY: the exporter keeps them alive and in place while the buffer is held.
        unsafe { std::slice::from_raw_parts(self.pointer(), self.len()) }
    }
}

impl AsMut<[u8]> for HeldBuffer {
    /// The bytes if the buffer is writable.
    fn as_mut(&mut self) -> &mut [u8] {
        if self.len() == 0 || self.raw.readonly != 0 {
            return &mut [];
        }
        // SAFETY: as above, and the exporter declared the bytes writable.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(), self.len()) }
    }
}

// SAFETY: `drop` alone returns the structure to its exporter, with the interpreter attached.
unsafe impl Send for HeldBuffer {}
// SAFETY: shared access reads plain fields.
unsafe impl Sync for HeldBuffer {}

impl Drop for HeldBuffer {
    fn drop(&mut self) {
        // At the very end of the process there is no interpreter to return it to.
        // SAFETY: filled by `PyObject_GetBuffer`, and released once, with the interpreter attached.
        Python::try_attach(|_| unsafe { ffi::PyBuffer_Release(&mut *self.raw) });
    }
}

/// The format of an element with its members.
///
/// # Errors
/// Types without a PEP 3118 format: dates, titles of members.
fn format(view: &View) -> PyResult<CString> {
    let dtype = view.dtype;
    let text = match (&view.descr, dtype.kind(), dtype.itemsize()) {
        // Nearly all arrays, in CPython's own codes, which `memoryview` can read.
        (None, Kind::Int, 8) => with_byte_order(dtype, "q"),
        (None, Kind::Uint, 8) => with_byte_order(dtype, "Q"),
        // NumPy writes such bytes as padding, `7x`, and cannot read that back; without a buffer it
        // uses the dictionary. Types of ml_dtypes have no format.
        (None, Kind::Void | Kind::Extended(_), _) => {
            return Err(Class::Access.error(format!("elements of type {dtype} have no buffer format")));
        }
        _ => codec_format(view)?,
    };
    // The codec's names contain no NUL.
    CString::new(text).map_err(|_| Class::Access.error("a name of a member holds a NUL byte"))
}

fn with_byte_order(dtype: Dtype, code: &str) -> String {
    match dtype.byte_order() {
        ByteOrder::Big if !dtype.is_native() => format!(">{code}"),
        ByteOrder::Little if !dtype.is_native() => format!("<{code}"),
        _ => code.to_owned(),
    }
}

/// The codec's format for the element, through the dictionary that would describe it.
fn codec_format(view: &View) -> PyResult<String> {
    let layout_error = |error: usm_interface::Error| {
        Class::Access.error(format!("elements of type {} have no buffer format: {error}", view.dtype))
    };
    let typestr = view.dtype.to_string();
    let policy = Policy { missing_data: MissingData::Allow, ..Policy::default() };
    let mut table = view.descr.as_deref().map_or(Vec::new(), |members| table(members));
    let descr = match &view.descr {
        Some(text) => Some(descr::parse(Lexer::new(text), false, &policy, &mut table).map_err(layout_error)?),
        None => None,
    };
    let raw = Raw { shape: Some(&[]), typestr: Some(Str::new(&typestr)), descr, ..Raw::default() };
    let element = raw.validate::<1>(Protocol::Array, &policy).map_err(layout_error)?;
    let mut text = String::new();
    let buffer = element.to_buffer().map_err(layout_error)?;
    buffer.write_format(&mut text).map_err(|_| Class::Access.error("the format cannot be written"))?;
    Ok(text)
}

/// The strings and arrays that an exported structure points to, until its release.
struct Export {
    format: CString,
    shape: Axes,
    strides: Axes,
}

/// Fills a buffer for `owner`. The element with all indices 0 lies at `pointer`.
///
/// # Safety
/// `raw` is the argument of `__getbuffer__`. The view's elements lie in host memory that `owner`
/// keeps alive.
pub(crate) unsafe fn fill(
    raw: *mut ffi::Py_buffer,
    flags: c_int,
    owner: Bound<'_, PyAny>,
    pointer: *mut u8,
    view: &View,
    readonly: bool,
) -> PyResult<()> {
    if raw.is_null() {
        return Err(PyBufferError::new_err("no buffer to fill"));
    }
    // SAFETY: not null, and the caller's promise. The protocol demands `obj` NULL when an error is
    // raised.
    unsafe { (*raw).obj = std::ptr::null_mut() };
    let has_flag = |flag: c_int| flags & flag == flag;
    if readonly && has_flag(ffi::PyBUF_WRITABLE) {
        return Err(PyBufferError::new_err("the array is read-only"));
    }
    let contiguous = view.is_c_contiguous();
    let is_refused = (has_flag(ffi::PyBUF_C_CONTIGUOUS) && !contiguous)
        || (has_flag(ffi::PyBUF_F_CONTIGUOUS) && !view.is_f_contiguous())
        || (has_flag(ffi::PyBUF_ANY_CONTIGUOUS) && !contiguous && !view.is_f_contiguous())
        || (!has_flag(ffi::PyBUF_STRIDES) && !contiguous);
    if is_refused {
        return Err(PyBufferError::new_err("the array is not contiguous in the way that is asked for"));
    }
    // A consumer that does not request the format reads bytes, which every element has.
    let format = if has_flag(ffi::PyBUF_FORMAT) { format(view)? } else { CString::default() };
    let export = Export { format, shape: view.shape().clone(), strides: view.strides().clone() };
    let export_pointer = Box::into_raw(Box::new(export));
    // SAFETY: just made and not yet published.
    let export = unsafe { &*export_pointer };
    let with = |flag: c_int, array: &[isize]| {
        if has_flag(flag) { array.as_ptr().cast_mut() } else { std::ptr::null_mut() }
    };
    let format =
        if has_flag(ffi::PyBUF_FORMAT) { export.format.as_ptr().cast_mut() } else { std::ptr::null_mut() };
    let py_buffer = ffi::Py_buffer {
        buf: pointer.cast::<c_void>(),
        obj: owner.into_ptr(),
        len: view.nbytes() as isize,
        itemsize: view.itemsize() as isize,
        readonly: c_int::from(readonly),
        ndim: view.ndim() as c_int,
        format,
        shape: with(ffi::PyBUF_ND, &export.shape),
        strides: with(ffi::PyBUF_STRIDES, &export.strides),
        suboffsets: std::ptr::null_mut(),
        internal: export_pointer.cast(),
    };
    // SAFETY: the caller's promise. The structure points into `internal`, which lives until the
    // release.
    unsafe { raw.write(py_buffer) };
    Ok(())
}

/// Frees the data that `fill` stored.
///
/// # Safety
/// `raw` was filled by [`fill`] and is being released.
pub(crate) unsafe fn release(raw: *mut ffi::Py_buffer) {
    // SAFETY: the caller's promise.
    let internal = unsafe { (*raw).internal };
    // SAFETY: the box that `fill` made, freed once.
    drop(unsafe { Box::from_raw(internal.cast::<Export>()) });
}
