//! The same elements in another shape.

use std::sync::Arc;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use usm_plan::escape::EscapedText;

use crate::array::{Array, create};
use crate::storage::transfer;
use crate::text::argument;
use crate::text::error::Class;
use usm_array::Axes;

#[pymethods]
impl Array {
    /// A view of the same memory with the axes reversed.
    #[getter(T)]
    fn transposed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Self>> {
        self.with_view(self.view().transposed()).into_object(py)
    }

    /// A view of the same memory with its axes in another order: all in reverse without arguments,
    /// else ``axes``, each once. :class:`ValueError` for others.
    ///
    /// >>> usm.zeros((2, 3, 4), device="host").transpose(0, 2, 1).shape
    /// (2, 4, 3)
    #[pyo3(signature = (*axes))]
    fn transpose<'py>(&self, axes: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, Self>> {
        let py = axes.py();
        let view = self.view();
        let axis_list = match axes.get_item(0) {
            Ok(first) if axes.len() == 1 && first.is_none() => None,
            Ok(first) if axes.len() == 1 => {
                // One more than an array has.
                let all = argument::items(&first, 65, |axis| Ok(axis.clone()));
                Some(all.or_else(|error| match error.is_instance_of::<PyTypeError>(py) {
                    true => Ok(vec![first]),
                    false => Err(error),
                })?)
            }
            Ok(_) => Some(axes.iter().collect()),
            Err(_) => None,
        };
        let Some(axis_list) = axis_list else { return self.transposed(py) };
        let ndim = view.ndim();
        let one = |axis: Bound<'py, PyAny>| {
            let wrong = || argument::type_error("axes", &axis, "the number of an axis");
            // Those outside are refused together.
            let axis: isize = match axis.extract() {
                Err(error) if PyErr::is_instance_of::<PyOverflowError>(&error, py) => return Ok(ndim),
                read => read.map_err(|error| argument::conversion_error(py, error, wrong))?,
            };
            let place = if axis < 0 { axis.checked_add_unsigned(ndim) } else { Some(axis) };
            Ok(place.and_then(|place| usize::try_from(place).ok()).unwrap_or(ndim))
        };
        let order = axis_list.into_iter().map(one).collect::<PyResult<Vec<usize>>>()?;
        let result = view.permuted(&order).ok_or_else(|| {
            PyValueError::new_err(format!(
                "transpose: the axes {} of an array of {ndim} dimensions: name each once, from 0 or from -1 down",
                EscapedText(&axes.to_string())
            ))
        })?;
        self.with_view(result).into_object(py)
    }

    /// A view of the same memory with another shape. One extent may be -1. :class:`ValueError` if
    /// the shape does not fit.
    ///
    /// >>> usm.zeros(6, device="host").reshape(2, -1).shape
    /// (2, 3)
    #[pyo3(signature = (*shape))]
    fn reshape<'py>(&self, shape: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, Self>> {
        let new_shape = match shape.get_item(0) {
            Ok(first) if shape.len() == 1 => first,
            _ => shape.clone().into_any(),
        };
        let extents = create::shape(&new_shape)?.iter().map(|extent| *extent as isize).collect();
        self.with_view(self.view().reshaped(extents)?).into_object(shape.py())
    }

    /// The elements with one dimension: a view of the same memory, or a copy if they do not lie in
    /// that order. `order` is NumPy's: ``"C"`` the last index fastest, ``"F"`` the first, ``"A"``
    /// as ``"F"`` for memory that lies in Fortran's order alone.
    ///
    /// >>> usm.asarray([[1, 2], [3, 4]], device="host").ravel("F").tolist()
    /// [1, 3, 2, 4]
    #[pyo3(signature = (order="C"))]
    fn ravel<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = argument::order)] order: &str,
    ) -> PyResult<Bound<'py, Self>> {
        let view = self.view();
        let source = match order {
            "C" | "c" => view.clone(),
            "F" | "f" => view.transposed(),
            "A" | "a" if view.is_f_contiguous() && !view.is_c_contiguous() => view.transposed(),
            "A" | "a" => view.clone(),
            _ => {
                return Err(Class::Request.error(format!("order: {} is none of C, F, A", EscapedText(order))));
            }
        };
        let mut shape = Axes::new();
        shape.push(view.len() as isize);
        if let Ok(view) = source.reshaped(shape.clone()) {
            return self.with_view(view).into_object(py);
        }
        let content = self.holding();
        let (stream, side) = (Arc::clone(&content.stream), content.with_view(source));
        let mut copy = transfer::duplicate(py, &side, &stream, content.kind(), 0)?;
        copy.view = copy.view.reshaped(shape)?;
        Self::new(copy).into_object(py)
    }
}
