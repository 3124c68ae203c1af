//! The iterator over an array.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;

use crate::array::Array;

/// Iterates over an array's first axis. Makes each element when it is requested.
#[pyclass(frozen, module = "usm", name = "Rows")]
pub(crate) struct Rows {
    array: Py<Array>,
    len: usize,
    next: AtomicUsize,
}

impl Rows {
    pub(crate) fn new(array: &Bound<'_, Array>, len: usize) -> Self {
        Self { array: array.clone().unbind(), len, next: AtomicUsize::new(0) }
    }
}

#[pymethods]
impl Rows {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, Array>>> {
        let step = |next: usize| (next < self.len).then_some(next + 1);
        let Ok(index) = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step) else {
            return Ok(None);
        };
        let array = self.array.bind(py);
        let row = match array.get().view() {
            view if view.has_elements() => Array::element(array, view.offset_of_row(index)),
            view => array.get().with_view(view.row(index)).into_object(py),
        };
        row.map(Some)
    }

    fn __length_hint__(&self) -> usize {
        self.len - self.next.load(Ordering::Relaxed)
    }
}
