//! Reads pickles: content that no pickle of this package has is an `InterfaceError`.

use pyo3::prelude::*;

use crate::text::argument;
use crate::text::error::Class;

/// Runs `rebuild`, the counterpart of a `__reduce__`, for an object of the class `what`. An
/// exception that says of a part that it does not fit becomes a [`Class::Interface`].
pub(crate) fn read<T>(py: Python<'_>, what: &str, rebuild: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    rebuild().map_err(|error| {
        let text = format!("pickle of {what}: {}", error.value(py));
        argument::conversion_error(py, error, || Class::Interface.error(text))
    })
}

/// A part of a pickle that is a text.
pub(crate) fn text<'a>(name: &str, value: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    argument::text(name, value, "a text")
}
