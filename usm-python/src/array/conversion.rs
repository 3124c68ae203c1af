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
use crate::storage::transfer::{self, Side};
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
fn announce(py: Python<'_>, here: &PyDtype, wanted: &PyDtype, casting: &str) -> PyResult<()> {
    let loses_parts = here.dtype.kind() == Kind::Complex && wanted.dtype.kind() != Kind::Complex;
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
    let none = numpy.call_method1(name!(py, "empty"), (0, here.dtype(py)?))?;
    let options = PyDict::new(py);
    options.set_item(name!(py, "casting"), casting)?;
    none.call_method(name!(py, "astype"), (wanted.dtype(py)?,), Some(&options)).map(drop)
}

/// The elements of memory that the host can access, converted by NumPy straight into new memory
/// beside it. `None` for what NumPy does only while it makes an array of its own.
fn converted_beside<'py>(
    array: &Bound<'py, Array>,
    wanted: &PyDtype,
    casting: &str,
) -> PyResult<Option<Bound<'py, Array>>> {
    let py = array.py();
    let source = array.get().side();
    let here = PyDtype::of_view(&source.view);
    let is_number = |of: &PyDtype| {
        of.descr.is_none() && matches!(of.dtype.kind(), Kind::Bool | Kind::Int | Kind::Uint | Kind::Float)
    };
    if !source.storage.is_host_accessible()
        || casting == "same_value"
        || !is_number(&here)
        || !is_number(wanted)
    {
        return Ok(None);
    }
    let Some(numpy) = numpy(py)? else { return Ok(None) };
    announce(py, &here, wanted, casting)?;
    let made = Array::new(transfer::empty_beside(py, &source, wanted)?).into_object(py)?;
    let options = PyDict::new(py);
    options.set_item(name!(py, "casting"), casting)?;
    let ends = (construct::to_numpy(made.as_any())?, construct::to_numpy(array.as_any())?);
    numpy.call_method(name!(py, "copyto"), ends, Some(&options))?;
    Ok(Some(made))
}

/// Copies `source`, the memory of `value`, to `target`, and converts elements where NumPy's rule
/// `same_kind` allows it.
pub(crate) fn store(py: Python<'_>, target: &Side, value: &Bound<'_, PyAny>, source: &Side) -> PyResult<()> {
    let (wanted, here) = (PyDtype::of_view(&target.view), PyDtype::of_view(&source.view));
    if wanted == here || wanted.descr.is_some() || here.descr.is_some() {
        return transfer::copy(py, target, source);
    }
    let refused = |error: PyErr| {
        match error.is_instance_of::<PyTypeError>(py) {
        true => Class::Request.error(format!(
            "elements of type {here} do not convert to {wanted} without loss of their kind; array.astype({:?}) converts them",
            wanted.text()
        )),
        false => error,
    }
    };
    if transfer::may_convert(source, &wanted) {
        announce(py, &here, &wanted, "same_kind").map_err(refused)?;
        if transfer::convert(py, target, source)? {
            return Ok(());
        }
    }
    let values = converted(value, &wanted, "same_kind").map_err(refused)?;
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
    let (wanted, holding) = (PyDtype::of(dtype)?, array.get().holding());
    if wanted == PyDtype::of_view(&holding.view) {
        return match copy {
            true => {
                let side = transfer::duplicate(py, &array.get().side(), &holding.stream, holding.kind(), 0)?;
                Array::new(side).into_object(py)
            }
            false => Ok(array.clone()),
        };
    }
    let source = array.get().side();
    // By the rule `same_value` the values decide.
    if casting != "same_value" && transfer::may_convert(&source, &wanted) {
        announce(py, &PyDtype::of_view(&source.view), &wanted, casting)?;
        if let Some(side) = transfer::converted(py, &source, &wanted)? {
            return Array::new(side).into_object(py);
        }
    }
    if let Some(made) = converted_beside(array, &wanted, casting)? {
        return Ok(made);
    }
    let values = converted(array.as_any(), &wanted, casting)?;
    let side = import::require_side(&values)?;
    Array::new(transfer::duplicate(py, &side, &holding.stream, holding.kind(), 0)?).into_object(py)
}
