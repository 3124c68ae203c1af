//! Arguments of the wrong type: a `TypeError` that names the argument, what came, and what fits.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PySequence, PyString};
use usm_core::AllocKind;

use crate::import;

/// What an argument `queue` can be.
pub(crate) const QUEUE: &str =
    "a usm.Queue, usm.Context or usm.Device, a device selector (str), or a queue of dpctl's";
/// What an argument `device` can be.
pub(crate) const DEVICE: &str = "a usm.Device or a device selector (str)";

/// Has Python's class of sequences looked up now, where a failure is an error. At the first shape
/// that is neither list nor tuple it would be a panic, and a program can take the class away or
/// leave no room for a call.
pub(crate) fn know_sequences(py: Python<'_>) -> PyResult<()> {
    py.import("collections.abc")?.getattr("Sequence")?;
    let _ = py.get_type::<PySequence>();
    Ok(())
}

/// The error for a value that does not fit.
#[cold]
pub(crate) fn wrong(name: &str, value: &Bound<'_, PyAny>, fits: &str) -> PyErr {
    let class = value.get_type().name().map(|class| class.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!("{name}: an object of type {class} does not fit; {fits} does"))
}

/// The argument `kind`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind(pub(crate) AllocKind);

impl<'py> FromPyObject<'_, 'py> for Kind {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match value.cast::<PyString>() {
            Ok(word) => import::kind(word.to_str()?).map(Self),
            Err(_) => Err(wrong("kind", &value, "\"host\", \"device\" or \"shared\"")),
        }
    }
}
