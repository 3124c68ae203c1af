//! Fast access to attributes and methods of other objects: without an exception for a missing
//! attribute, and without an object for a called method. An import looks up several, and each
//! exception or object would take as long as the rest of the import.

use std::ffi::c_int;
use std::sync::OnceLock;

use pyo3::exceptions::PyAttributeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::process::{exit, symbol};

/// `(object, name, &mut result)`: 1 found, 0 missing, -1 with an exception set.
type Lookup =
    unsafe extern "C-unwind" fn(*mut ffi::PyObject, *mut ffi::PyObject, *mut *mut ffi::PyObject) -> c_int;
/// `(name, [object, arguments], number of positional ones with the object, names of the others or
/// NULL)`.
type Call = unsafe extern "C-unwind" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    usize,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// `PyObject_GetOptionalAttr`, in the stable ABI since Python 3.13. Python 3.11 and 3.12 export the
/// same function under a private name.
fn lookup() -> Option<Lookup> {
    static FOUND: OnceLock<Option<Lookup>> = OnceLock::new();
    // SAFETY: both names have this type.
    *FOUND
        .get_or_init(|| unsafe { symbol::function(&[c"PyObject_GetOptionalAttr", c"_PyObject_LookupAttr"]) })
}

/// `PyObject_VectorcallMethod`, public since Python 3.9 and in the stable ABI since 3.12.
fn method_call() -> Option<Call> {
    static FOUND: OnceLock<Option<Call>> = OnceLock::new();
    // SAFETY: the name has this type.
    *FOUND.get_or_init(|| unsafe { symbol::function(&[c"PyObject_VectorcallMethod"]) })
}

/// Finds the functions during the import. A child that was forked while another thread was in the
/// system's loader must not enter it.
pub(crate) fn prepare() {
    let _ = (lookup(), method_call());
}

/// The attribute; `None` if the object has no such attribute.
///
/// # Errors
/// Exceptions of the attribute's getter, except `AttributeError`.
#[inline]
pub(crate) fn get<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    let Some(lookup) = lookup() else { return object.getattr_opt(name) };
    let mut result = std::ptr::null_mut();
    // SAFETY: two objects and room for the result; the interpreter is attached.
    match exit::guard(|| unsafe { lookup(object.as_ptr(), name.as_ptr(), &raw mut result) }) {
        // SAFETY: the result is a new reference, or NULL if there is no such attribute.
        0 | 1 => Ok(unsafe { Bound::from_owned_ptr_or_opt(py, result) }),
        _ => Err(PyErr::fetch(py)),
    }
}

/// Calls the method with no argument or with one named argument, for which `names` is a tuple of
/// its name. `None` if the object has no such method.
///
/// # Errors
/// Exceptions of the method.
pub(crate) fn call<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
    keywords: Option<(&Bound<'py, PyTuple>, &Bound<'py, PyAny>)>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    let Some(function) = method_call() else {
        let Some(method) = get(object, name)? else { return Ok(None) };
        let Some((names, value)) = keywords else { return method.call0().map(Some) };
        let arguments = PyDict::new(py);
        arguments.set_item(names.get_item(0)?, value)?;
        return method.call((), Some(&arguments)).map(Some);
    };
    let (names, value) = match keywords {
        Some((names, value)) => (names.as_ptr(), value.as_ptr()),
        None => (std::ptr::null_mut(), std::ptr::null_mut()),
    };
    let arguments = [object.as_ptr(), value];
    // SAFETY: the objects live until the call returns: one positional, and one for the name if
    // there is one.
    let answer = exit::guard(|| unsafe { function(name.as_ptr(), arguments.as_ptr(), 1, names) });
    // SAFETY: a new reference, or NULL with an exception set.
    match unsafe { Bound::from_owned_ptr_or_err(py, answer) } {
        Err(error) if error.is_instance_of::<PyAttributeError>(py) && get(object, name)?.is_none() => {
            Ok(None)
        }
        other => other.map(Some),
    }
}
