//! Imports foreign objects as memory, without a copy if their protocol allows it.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use usm_interface::{Policy, Protocol, SyclObject};

use crate::array::Array;
use crate::array::dtype;
use crate::exchange::adoption::{adopt_host, dictionary_of, owner};
use crate::exchange::array_method::{self, Offer};
use crate::exchange::arrow;
use crate::exchange::cuda;
use crate::exchange::dictionary::{self, CheckedArray};
use crate::exchange::dlpack;
use crate::exchange::ndarray;
use crate::exchange::pep3118;
use crate::exchange::sycl;
use crate::process::attribute;
use crate::process::once::name;
use crate::storage::side::Side;
use crate::text::error::Class;

/// Runs `read`, which asks a producer for its memory, as one level of the interpreter's recursion.
/// A producer may import another array while it answers, even itself. Too many levels are then a
/// `RecursionError` instead of a stack overflow.
///
/// # Errors
/// The errors of `read`, and `RecursionError`.
#[inline]
pub(crate) fn with_recursion_guard<T>(py: Python<'_>, read: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    struct RecursionGuard;
    impl Drop for RecursionGuard {
        fn drop(&mut self) {
            // SAFETY: the same thread entered one recursive call for this value.
            unsafe { ffi::Py_LeaveRecursiveCall() };
        }
    }
    // SAFETY: the interpreter is attached, and the text ends with NUL.
    if unsafe { ffi::Py_EnterRecursiveCall(c" while an array is imported".as_ptr()) } != 0 {
        return Err(PyErr::fetch(py));
    }
    let _entered = RecursionGuard;
    read()
}

/// SYCL memory of another object. `ignore_flag` ignores its read-only flag, as `dpctl.memory` does.
pub(crate) fn sycl_memory<'py>(
    object: &Bound<'py, PyAny>,
    ignore_flag: bool,
) -> PyResult<Option<Bound<'py, Array>>> {
    with_recursion_guard(object.py(), || of_sycl(object, ignore_flag))
}

fn of_sycl<'py>(object: &Bound<'py, PyAny>, ignore_flag: bool) -> PyResult<Option<Bound<'py, Array>>> {
    let name = name!(object.py(), "__sycl_usm_array_interface__");
    let Some(dict) = dictionary_of(object, name)? else { return Ok(None) };
    sycl::import(object, dict, ignore_flag).map(Some)
}

/// Reads a dictionary. The object's attribute `dtype` names a type that the dictionary cannot name.
#[inline]
fn read<'py>(
    object: &Bound<'py, PyAny>,
    dict: &Bound<'py, PyDict>,
    protocol: Protocol,
) -> PyResult<CheckedArray<'py>> {
    let read = |hint| {
        let policy = Policy { hint, ..Policy::default() };
        dictionary::read(object, dict, protocol, &policy, |_| SyclObject::Unknown)
    };
    match read(None) {
        Err(error) if is_ambiguous(dict, &error)? => match dtype::hint(object)? {
            None => Err(error),
            hint => read(hint),
        },
        read => read,
    }
}

/// Whether a dictionary was refused because its type string has no meaning by itself.
#[cold]
fn is_ambiguous(dict: &Bound<'_, PyDict>, error: &PyErr) -> PyResult<bool> {
    Ok(Class::Interface.is_of(error, dict.py()) && dictionary::is_ambiguous(dict)?)
}

/// Host memory behind `__array_interface__`. The address cannot be checked; as NumPy does, we trust
/// the producer to own the memory.
#[inline]
fn host_memory<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Array>>> {
    let name = name!(object.py(), "__array_interface__");
    let Some(dict) = dictionary_of(object, name)? else { return Ok(None) };
    let array = match read(object, &dict, Protocol::Array) {
        // DLPack names types that the text cannot name, NumPy's not.
        Err(error) if is_ambiguous(&dict, &error)? && !ndarray::is_ndarray(object) => {
            let tensor = attribute::get(object, name!(object.py(), "__dlpack__"))?;
            return tensor.map_or(Err(error), |_| Ok(None));
        }
        result => result?,
    };
    let CheckedArray { view, extent, address, readonly, buffer, .. } = array;
    let owner = owner(object, dict, buffer);
    // SAFETY: the producer owns the bytes and is kept alive.
    unsafe { adopt_host(object.py(), owner, address, (view, extent), readonly).map(Some) }
}

/// Only checks the dictionary of the first protocol that an object has.
pub(crate) fn validate(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    with_recursion_guard(object.py(), || bytes_of_first(object))
}

fn bytes_of_first(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = object.py();
    let protocols = [
        (name!(py, "__sycl_usm_array_interface__"), Protocol::Sycl),
        (name!(py, "__array_interface__"), Protocol::Array),
        (name!(py, "__cuda_array_interface__"), Protocol::Cuda),
    ];
    for (name, protocol) in protocols {
        let Some(dict) = dictionary_of(object, name)? else { continue };
        return Ok(read(object, &dict, protocol)?.view.nbytes() as u64);
    }
    Err(no_protocol(object))
}

#[cold]
fn no_protocol(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    Class::Interface.error(format!(
        "an object of type {name} exposes none of __sycl_usm_array_interface__, __array_interface__, \
         __cuda_array_interface__, __dlpack__, __arrow_c_array__ and the buffer protocol"
    ))
}

/// Imports an object if that is possible without a copy.
#[inline]
pub(crate) fn without_copy<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Array>>> {
    Ok(match find(object)? {
        Offer::Shared(array) => Some(array),
        Offer::Copied(_) | Offer::Nothing => None,
    })
}

/// As [`without_copy`], but an object that can only copy is asked for no further copy.
pub(crate) fn find<'py>(object: &Bound<'py, PyAny>) -> PyResult<Offer<'py>> {
    with_recursion_guard(object.py(), || {
        if let Some(array) = first_of_all(object)? {
            return Ok(Offer::Shared(array));
        }
        Ok(match array_method::find(object, without_copy)? {
            Offer::Shared(array) => Offer::Shared(array),
            other => arrow::import(object)?.map_or(other, Offer::Shared),
        })
    })
}

/// The array of the first protocol that the object has, without those that may copy.
#[inline]
fn first_of_all<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Array>>> {
    if let Some(array) = ndarray::import(object)? {
        return Ok(Some(array));
    }
    if let Some(array) = of_sycl(object, false)? {
        return Ok(Some(array));
    }
    if let Some(array) = host_memory(object)? {
        return Ok(Some(array));
    }
    // DLPack comes before CUDA's dictionary, which has no words for bfloat16 and float8, and whose
    // producers do not say that values are conjugated. The attribute is read first, because the
    // call of a missing method costs an exception.
    if attribute::get(object, name!(object.py(), "__dlpack__"))?.is_some() {
        let is_writable = |address| cuda::is_stated_writable(object, address);
        match dlpack::import(object, dlpack::Request::default(), is_writable) {
            Ok(None) => {}
            Ok(Some(array)) => {
                // Tensors of pyarrow.
                if array.get().side().view.ndim() > 1 {
                    arrow::check_entries(object)?;
                }
                return Ok(Some(array));
            }
            Err(refusal) => {
                return match cuda::import_beyond_dlpack(object, refusal) {
                    Ok(array) => Ok(Some(array)),
                    Err(refusal) => arrow::import_beyond_dlpack(object, refusal),
                };
            }
        }
    }
    if let Some(array) = cuda::import(object)? {
        return Ok(Some(array));
    }
    pep3118::import(object)
}

/// [`without_copy`], or an error that names the protocols.
pub(crate) fn require_side(object: &Bound<'_, PyAny>) -> PyResult<Side> {
    without_copy(object)?.map(|array| array.get().side()).ok_or_else(|| no_protocol(object))
}
