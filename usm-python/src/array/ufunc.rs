//! NumPy's elementwise functions on memory that the host can access.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::array::Array;
use crate::array::operators::host_view;
use crate::process::once::name;

/// Whether the class has elementwise functions of its own, neither NumPy's nor ours.
fn has_own(operand: &Bound<'_, PyAny>, plain: &Bound<'_, PyAny>) -> PyResult<bool> {
    if operand.is_instance_of::<Array>() {
        return Ok(false);
    }
    let own = operand.get_type().getattr_opt(name!(operand.py(), "__array_ufunc__"))?;
    Ok(own.is_some_and(|own| !own.is(plain)))
}

/// The ndarray over an array's memory; other objects are left as they are.
fn of_host<'py>(value: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    value.cast::<Array>().map_or_else(|_| Ok(value.clone()), |array| host_view(array, name))
}

/// The result of `__array_ufunc__`: arrays given as `out`, otherwise NumPy's. `NotImplemented` if
/// another operand has functions of its own.
pub(crate) fn call<'py>(
    ufunc: &Bound<'py, PyAny>,
    method: &Bound<'py, PyString>,
    inputs: &Bound<'py, PyTuple>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = ufunc.py();
    let plain = py.import(name!(py, "numpy"))?.getattr("ndarray")?.getattr("__array_ufunc__")?;
    let out = keywords.map(|keywords| keywords.get_item("out")).transpose()?.flatten();
    let out = out.as_ref().and_then(|out| out.cast::<PyTuple>().ok());
    for operand in inputs.iter().chain(out.iter().flat_map(|out| out.iter())) {
        if has_own(&operand, &plain)? {
            return Ok(py.NotImplemented().into_bound(py));
        }
    }
    let name = ufunc.getattr("__name__")?.to_string();
    let views = |values: &Bound<'py, PyTuple>| -> PyResult<Bound<'py, PyTuple>> {
        let values = values.iter().map(|value| of_host(&value, &name)).collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, values)
    };
    let options = PyDict::new(py);
    for (key, value) in keywords.iter().flat_map(|keywords| keywords.iter()) {
        let value = match value.cast::<PyTuple>() {
            Ok(values) => views(values)?.into_any(),
            Err(_) => of_host(&value, &name)?,
        };
        options.set_item(key, value)?;
    }
    let answer = ufunc.getattr(method)?.call(views(inputs)?, Some(&options))?;
    let Some(out) = out else { return Ok(answer) };
    let result = |(place, answer): (usize, Bound<'py, PyAny>)| match out.get_item(place) {
        Ok(output) if output.is_instance_of::<Array>() => output,
        _ => answer,
    };
    match answer.cast::<PyTuple>() {
        Ok(answers) => Ok(PyTuple::new(py, answers.iter().enumerate().map(result))?.into_any()),
        Err(_) => Ok(result((0, answer))),
    }
}
