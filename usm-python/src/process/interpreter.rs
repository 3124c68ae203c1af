//! One interpreter for each process: classes, names and the objects behind queues are found once
//! and kept in statics.

use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Id of the interpreter that first imported the module.
static FIRST: AtomicI64 = AtomicI64::new(-1);

/// Refuses a second interpreter: it would receive objects of the first, which die with that one.
/// Later Pythons refuse it themselves.
pub(crate) fn claim(py: Python<'_>) -> PyResult<()> {
    // SAFETY: the interpreter is attached.
    let state = unsafe { ffi::PyInterpreterState_Get() };
    // SAFETY: the state of the attached interpreter.
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
