//! Masks and lists of integers as indices: whole rows of memory of the process here, all others by
//! NumPy.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PySlice, PyString, PyTuple};
use usm_interface::Kind;

use crate::array::Array;
use crate::array::construct;
use crate::array::dtype::PyDtype;
use crate::array::operators::{self, host_view};
use crate::array::scalar;
use crate::array::view::View;
use crate::exchange::{import, ndarray};
use crate::process::attribute;
use crate::process::once::name;
use crate::storage::reserve;
use crate::storage::side::Side;
use crate::storage::transfer;
use crate::text::error::OrRaise;

/// Copies of so many bytes leave the interpreter to other threads.
const LONG_COPY: usize = 1 << 16;

/// Whether a key names elements by values: a list, a mask or an array of indices, alone or beside
/// others.
pub(crate) fn is_of_values(key: &Bound<'_, PyAny>) -> PyResult<bool> {
    // The usual keys, before an attribute is looked up.
    if key.is_exact_instance_of::<PyInt>()
        || key.is_exact_instance_of::<PySlice>()
        || key.is_exact_instance_of::<PyString>()
    {
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
        return Ok(!array.get().is_element());
    }
    // An index of NumPy's is an element; its arrays have dimensions.
    match attribute::get(key, name!(key.py(), "ndim"))? {
        Some(ndim) => Ok(ndim.extract::<usize>().is_ok_and(|ndim| ndim > 0)),
        None => Ok(false),
    }
}

/// The positions along the first axis that a plain list of integers or a mask of NumPy's names.
/// `None` for other keys, and for one with a position outside: NumPy's errors are the usual ones.
fn positions(view: &View, key: &Bound<'_, PyAny>) -> PyResult<Option<Vec<usize>>> {
    let Some(extent) = view.shape().first().copied() else { return Ok(None) };
    if let Ok(list) = key.cast_exact::<PyList>() {
        let mut all = reserve::reserved(list.len()).or_raise()?;
        for index in list.iter() {
            let Ok(index) = index.cast_exact::<PyInt>().map(|index| index.extract::<isize>()) else {
                return Ok(None);
            };
            let Ok(index) = index else { return Ok(None) };
            let position = if index < 0 { index.checked_add(extent) } else { Some(index) };
            let Some(position) = position.filter(|position| (0..extent).contains(position)) else {
                return Ok(None);
            };
            // Another thread may make the list longer meanwhile.
            if all.len() == all.capacity() {
                return Ok(None);
            }
            all.push(position.unsigned_abs());
        }
        // NumPy takes an empty list for one of floats.
        return Ok(Some(all).filter(|all| !all.is_empty()));
    }
    let Some(mask) = ndarray::import(key)? else { return Ok(None) };
    let content = mask.get().holding();
    let is_mask = content.view.dtype.kind() == Kind::Bool
        && content.view.shape()[..] == [extent]
        && content.view.is_c_contiguous();
    let mut bits = usm_array::zeroed(if is_mask { extent.unsigned_abs() } else { 0 }).or_raise()?;
    if !is_mask || !content.storage().read_at_once(content.view.offset(), &mut bits) {
        return Ok(None);
    }
    let count = bits.iter().filter(|bit| **bit != 0).count();
    let mut all = reserve::reserved(count).or_raise()?;
    all.extend((0..bits.len()).filter(|position| bits[*position] != 0));
    Ok(Some(all))
}

/// The rows that the key names, where they lie without gaps in memory of the process.
fn rows(array: &Array, key: &Bound<'_, PyAny>) -> PyResult<Option<Side>> {
    let (py, content) = (key.py(), array.holding());
    let view = &content.view;
    if !content.stream.is_host() || view.ndim() == 0 || view.nbytes() == 0 {
        return Ok(None);
    }
    let row = view.row(0);
    if !row.is_c_contiguous() {
        return Ok(None);
    }
    let Some(positions) = positions(view, key)? else { return Ok(None) };
    let mut shape = view.shape().clone();
    shape[0] = positions.len() as isize;
    let dtype = PyDtype::of_view(view);
    let side = transfer::empty_of(py, &content.stream, content.kind(), &dtype, &shape)?;
    let mut offsets = reserve::reserved(positions.len()).or_raise()?;
    offsets.extend(positions.iter().map(|position| view.offset_of_row(*position)));
    let (source, size) = (content.storage(), row.nbytes());
    let gather = || source.gather_at_once(&offsets, size, &side.storage);
    let is_copied = match side.view.nbytes() < LONG_COPY {
        true => gather(),
        false => py.detach(gather),
    };
    Ok(is_copied.then_some(side))
}

/// Stores a value, or the elements of an array, in the selected elements of memory of the host.
pub(crate) fn store(
    array: &Bound<'_, Array>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let sign = "a store at an index of values";
    let view = host_view(array, sign)?;
    let value = match value.cast::<Array>() {
        Ok(value) => host_view(value, sign)?,
        Err(_) => value.clone(),
    };
    view.set_item(of_host(key, sign)?, value)
}

/// A key with arrays of NumPy's in the place of ours.
fn of_host(key: &Bound<'_, PyAny>, sign: &str) -> PyResult<Py<PyAny>> {
    let py = key.py();
    if let Ok(keys) = key.cast::<PyTuple>() {
        let keys = keys.iter().map(|key| one_of_host(key, sign)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyTuple::new(py, keys)?.into_any().unbind());
    }
    one_of_host(key.clone(), sign)
}

fn one_of_host(key: Bound<'_, PyAny>, sign: &str) -> PyResult<Py<PyAny>> {
    if let Ok(array) = key.cast::<Array>() {
        return host_view(array, sign).map(Bound::unbind);
    }
    match key.cast::<PyList>() {
        // NumPy reads plain numbers. Of lists in lists a short text may stand for more values than
        // memory holds, which our walk refuses.
        Ok(list) if !list.is_empty() && !list.iter().all(|one| scalar::is_number_of_python(&one)) => {
            let values = Array::new(construct::of_values(list.as_any(), None)?).into_object(key.py())?;
            host_view(&values, sign).map(Bound::unbind)
        }
        _ => Ok(key.unbind()),
    }
}

/// The selected elements in new memory of the same kind and device.
pub(crate) fn copy(array: &Bound<'_, Array>, key: &Bound<'_, PyAny>) -> PyResult<Side> {
    if let Some(side) = rows(array.get(), key)? {
        return Ok(side);
    }
    let py = array.py();
    let sign = operators::INDEX;
    let view = host_view(array, sign)?;
    let key = of_host(key, sign)?;
    let selection = py.import(name!(py, "numpy"))?.getattr("asarray")?.call1((view.get_item(key)?,))?;
    let side = import::require_side(&selection)?;
    let content = array.get().holding();
    transfer::duplicate(py, &side, &content.stream, content.kind(), 0)
}
