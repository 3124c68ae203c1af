//! Conversion of element types: `astype`, and stores into an array of another type. Code of the
//! device converts numbers in its memory, NumPy on the host everything else.

use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use usm_interface::Kind;

use crate::array::Array;
use crate::array::construct;
use crate::array::dtype::{PyDtype, numpy};
use crate::exchange::import;
use crate::process::once::name;
use crate::storage::side::Side;
use crate::storage::transfer;
use crate::text::error::Class;

/// Elements of `source` as an ndarray of another type.
fn converted<'py>(source: &Bound<'py, PyAny>, dtype: &PyDtype, casting: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = source.py();
    let no_numpy = |error: PyErr| match error.is_instance_of::<PyImportError>(py) {
        true => Class::Request.error("NumPy converts elements, and it is not installed"),
        false => error,
    };
    let values = construct::to_numpy(source).map_err(no_numpy)?;
    let options = PyDict::new(py);
    options.set_item(name!(py, "casting"), casting)?;
    values.call_method(name!(py, "astype"), (dtype.dtype(py)?,), Some(&options))
}

/// Raises and warns as NumPy does for a conversion, whatever the values are. Without NumPy only
/// `unsafe` conversions are known to be allowed.
fn announce(py: Python<'_>, own: &PyDtype, target: &PyDtype, casting: &str) -> PyResult<()> {
    let loses_parts = own.dtype.kind() == Kind::Complex && target.dtype.kind() != Kind::Complex;
    if casting == "unsafe" && !loses_parts {
        return Ok(());
    }
    let Some(numpy) = numpy(py)? else {
        return match casting {
            "unsafe" => Ok(()),
            _ => Err(Class::Request
                .error("NumPy knows which conversions its rules allow, and it is not installed")),
        };
    };
    let none = numpy.call_method1(name!(py, "empty"), (0, own.dtype(py)?))?;
    let options = PyDict::new(py);
    options.set_item(name!(py, "casting"), casting)?;
    none.call_method(name!(py, "astype"), (target.dtype(py)?,), Some(&options)).map(drop)
}

/// The elements of memory that the host can access, converted by NumPy straight into new memory
/// beside it. `None` for what NumPy does only while it makes an array of its own.
fn converted_beside<'py>(
    array: &Bound<'py, Array>,
    target: &PyDtype,
    casting: &str,
) -> PyResult<Option<Bound<'py, Array>>> {
    let py = array.py();
    let source = array.get().side();
    let own = PyDtype::of_view(&source.view);
    let is_number = |of: &PyDtype| {
        of.descr.is_none() && matches!(of.dtype.kind(), Kind::Bool | Kind::Int | Kind::Uint | Kind::Float)
    };
    if !source.storage.is_host_accessible()
        || casting == "same_value"
        || !is_number(&own)
        || !is_number(target)
    {
        return Ok(None);
    }
    let Some(numpy) = numpy(py)? else { return Ok(None) };
    announce(py, &own, target, casting)?;
    let copy = Array::new(transfer::empty_beside(py, &source, target)?).into_object(py)?;
    let options = PyDict::new(py);
    options.set_item(name!(py, "casting"), casting)?;
    let ends = (construct::to_numpy(copy.as_any())?, construct::to_numpy(array.as_any())?);
    numpy.call_method(name!(py, "copyto"), ends, Some(&options))?;
    Ok(Some(copy))
}

/// Copies `source`, the memory of `value`, to `target`, and converts elements where NumPy's rule
/// `same_kind` allows it.
pub(crate) fn store(py: Python<'_>, target: &Side, value: &Bound<'_, PyAny>, source: &Side) -> PyResult<()> {
    let (target_type, from) = (PyDtype::of_view(&target.view), PyDtype::of_view(&source.view));
    if target_type == from || target_type.descr.is_some() || from.descr.is_some() {
        return transfer::copy(py, target, source);
    }
    let type_error = |error: PyErr| {
        match error.is_instance_of::<PyTypeError>(py) {
        true => Class::Request.error(format!(
            "elements of type {from} do not convert to {target_type} without loss of their kind; array.astype({:?}) converts them",
            target_type.text()
        )),
        false => error,
    }
    };
    if transfer::may_convert(source, &target_type) {
        announce(py, &from, &target_type, "same_kind").map_err(type_error)?;
        if transfer::convert(py, target, source)? {
            return Ok(());
        }
    }
    let values = converted(value, &target_type, "same_kind").map_err(type_error)?;
    transfer::copy(py, target, &import::require_side(&values)?)
}

/// `Array.astype`.
pub(crate) fn astype<'py>(
    array: &Bound<'py, Array>,
    dtype: &Bound<'py, PyAny>,
    casting: &str,
    copy: bool,
) -> PyResult<Bound<'py, Array>> {
    let py = array.py();
    let (target, content) = (PyDtype::of(dtype)?, array.get().holding());
    if target == PyDtype::of_view(&content.view) {
        return match copy {
            true => {
                let side = transfer::duplicate(py, &array.get().side(), &content.stream, content.kind(), 0)?;
                Array::new(side).into_object(py)
            }
            false => Ok(array.clone()),
        };
    }
    let source = array.get().side();
    // By the rule `same_value` the values decide.
    if casting != "same_value" && transfer::may_convert(&source, &target) {
        announce(py, &PyDtype::of_view(&source.view), &target, casting)?;
        if let Some(side) = transfer::converted(py, &source, &target)? {
            return Array::new(side).into_object(py);
        }
    }
    if let Some(new_array) = converted_beside(array, &target, casting)? {
        return Ok(new_array);
    }
    let values = converted(array.as_any(), &target, casting)?;
    let side = import::require_side(&values)?;
    Array::new(transfer::duplicate(py, &side, &content.stream, content.kind(), 0)?).into_object(py)
}
