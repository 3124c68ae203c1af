//! One interpreter a process: what is found once, such as classes, names and the objects behind
//! queues, is kept in statics.

use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Id of the interpreter that imported the module first; none has this one.
static FIRST: AtomicI64 = AtomicI64::new(-1);

/// Refuses an interpreter beside the first one: it would be given objects of that, which go when it
/// ends. Later Pythons refuse it themselves.
pub(crate) fn claim(py: Python<'_>) -> PyResult<()> {
    // SAFETY: the interpreter is attached.
    let state = unsafe { ffi::PyInterpreterState_Get() };
    // SAFETY: the state of the interpreter that is attached.
    let id = unsafe { ffi::PyInterpreterState_GetID(state) };
    if id < 0 {
        return Err(PyErr::fetch(py));
    }
    match FIRST.compare_exchange(-1, id, Ordering::Relaxed, Ordering::Relaxed) {
        Err(first) if first != id => Err(PyImportError::new_err(format!(
            "usm is in use by interpreter {first} of this process and serves one only, this is interpreter {id}"
        ))),
        _ => Ok(()),
    }
}
