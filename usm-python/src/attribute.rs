//! Attributes that may be missing, without the exception: an import asks for several, and raising one `AttributeError`
//! takes as long as the rest of it.

use std::ffi::c_int;
use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// `(object, name, &mut result)`: 1 found, 0 missing, -1 with an exception set.
type Lookup = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject, *mut *mut ffi::PyObject) -> c_int;

/// `PyObject_GetOptionalAttr`, in the stable ABI since Python 3.13. Python 3.11 and 3.12 export the same function under
/// its private name; the wheel is one for all, so the interpreter is asked for it.
fn lookup() -> Option<Lookup> {
    static FOUND: OnceLock<Option<Lookup>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        #[cfg(unix)]
        for name in [b"PyObject_GetOptionalAttr\0".as_slice(), b"_PyObject_LookupAttr\0".as_slice()] {
            let process = libloading::os::unix::Library::this();
            // SAFETY: under either name the function has had this signature in every release that has it.
            if let Ok(found) = unsafe { process.get::<Lookup>(name) } {
                return Some(*found);
            }
        }
        None
    })
}

/// The attribute; `None` when the object has none of this name.
///
/// # Errors
/// What the attribute's getter raises, but for `AttributeError`.
#[inline]
pub(crate) fn get<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    let Some(lookup) = lookup() else { return object.getattr_opt(name) };
    let mut result = std::ptr::null_mut();
    // SAFETY: two objects and room for the answer; the interpreter is attached.
    match unsafe { lookup(object.as_ptr(), name.as_ptr(), &raw mut result) } {
        // SAFETY: the answer is a new reference, or NULL when there is no such attribute.
        0 | 1 => Ok(unsafe { Bound::from_owned_ptr_or_opt(py, result) }),
        _ => Err(PyErr::fetch(py)),
    }
}
