//! Structures from values of Python's: tuples, and lists of them, as NumPy reads them.

use pyo3::prelude::*;

use crate::array::dtype::PyDtype;
use crate::exchange::import;
use crate::process::once::name;
use crate::storage::side::Side;

/// Values as structures of a type with members, in host memory. Which values fit, NumPy decides.
pub(crate) fn of_values(value: &Bound<'_, PyAny>, element: &PyDtype) -> PyResult<Side> {
    let py = value.py();
    let numpy = py.import(name!(py, "numpy"))?;
    let array = numpy.call_method1(name!(py, "array"), (value, element.dtype(py)?))?;
    import::require_side(&array)
}
