//! Reading by masks and lists of integers, which NumPy selects.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PySlice, PyTuple};

use crate::array::Array;
use crate::array::construct;
use crate::array::operators::host_view;
use crate::array::scalar;
use crate::exchange::import;
use crate::process::attribute;
use crate::process::once::name;
use crate::storage::transfer::{self, Side};

/// Whether a key names elements by values: a list, a mask or an array of indices, alone or beside
/// others.
pub(crate) fn is_of_values(key: &Bound<'_, PyAny>) -> PyResult<bool> {
    // The usual keys, before an attribute is looked up.
    if key.is_exact_instance_of::<PyInt>() || key.is_exact_instance_of::<PySlice>() {
        return Ok(false);
    }
    if key.is_instance_of::<PyList>() {
        return Ok(true);
    }
    if let Ok(keys) = key.cast::<PyTuple>() {
        for key in keys.iter() {
            if !key.is_instance_of::<PyTuple>() && is_of_values(&key)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    if let Ok(array) = key.cast::<Array>() {
        return Ok(array.get().holding().view.ndim() > 0);
    }
    // An index of NumPy's is an element; its arrays have dimensions.
    match attribute::get(key, name!(key.py(), "ndim"))? {
        Some(ndim) => Ok(ndim.extract::<usize>().is_ok_and(|ndim| ndim > 0)),
        None => Ok(false),
    }
}

/// The selected elements in new memory of the same kind and device.
pub(crate) fn copy(array: &Bound<'_, Array>, key: &Bound<'_, PyAny>) -> PyResult<Side> {
    let py = array.py();
    let sign = "an index of values";
    let view = host_view(array, sign)?;
    let of_host = |key: Bound<'_, PyAny>| -> PyResult<Py<PyAny>> {
        if let Ok(array) = key.cast::<Array>() {
            return host_view(array, sign).map(Bound::unbind);
        }
        match key.cast::<PyList>() {
            // NumPy reads plain numbers. Of lists in lists a short text may stand for more values
            // than memory holds, which our walk refuses.
            Ok(list) if !list.is_empty() && !list.iter().all(|one| scalar::is_number_of_python(&one)) => {
                let values = Array::new(construct::of_values(list.as_any(), None)?).into_object(py)?;
                host_view(&values, sign).map(Bound::unbind)
            }
            _ => Ok(key.unbind()),
        }
    };
    let key = match key.cast::<PyTuple>() {
        Ok(keys) => {
            let keys = keys.iter().map(of_host).collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(py, keys)?.into_any().unbind()
        }
        Err(_) => of_host(key.clone())?,
    };
    let selection = py.import(name!(py, "numpy"))?.getattr("asarray")?.call1((view.get_item(key)?,))?;
    let side = import::require_side(&selection)?;
    let holding = array.get().holding();
    transfer::duplicate(py, &side, &holding.stream, holding.kind(), 0)
}
