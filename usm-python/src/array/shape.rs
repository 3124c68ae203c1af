//! The same elements in another shape.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::array::axes::Axes;
use crate::array::{Array, create};
use crate::storage::transfer;

#[pymethods]
impl Array {
    /// A view of the same memory with the axes reversed.
    #[getter(T)]
    fn transposed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Self>> {
        self.with_view(self.view().transposed()).into_object(py)
    }

    /// A view of the same memory with another shape. One extent may be -1. :class:`ValueError` if
    /// the shape does not fit.
    ///
    /// >>> usm.zeros(6, device="host").reshape(2, -1).shape
    /// (2, 3)
    #[pyo3(signature = (*shape))]
    fn reshape<'py>(&self, shape: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, Self>> {
        let given = match shape.get_item(0) {
            Ok(first) if shape.len() == 1 => first,
            _ => shape.clone().into_any(),
        };
        let extents = create::shape(&given)?.iter().map(|extent| *extent as isize).collect();
        self.with_view(self.view().reshaped(extents)?).into_object(shape.py())
    }

    /// The elements with one dimension: a view of the same memory, or a copy if they do not lie in
    /// the order of the indices.
    ///
    /// >>> usm.zeros((2, 3), device="host").ravel().shape
    /// (6,)
    fn ravel<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Self>> {
        let mut shape = Axes::new();
        shape.push(self.view().len() as isize);
        if let Ok(view) = self.view().reshaped(shape.clone()) {
            return self.with_view(view).into_object(py);
        }
        let holding = self.holding();
        let stream = Arc::clone(&holding.stream);
        let mut copy = transfer::duplicate(py, &self.side(), &stream, holding.kind(), 0)?;
        copy.view = copy.view.reshaped(shape)?;
        Self::new(copy).into_object(py)
    }
}
