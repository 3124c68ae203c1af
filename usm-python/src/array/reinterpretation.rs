//! `Array.view`: the same bytes as elements of another type.

use pyo3::prelude::*;

use crate::array::Array;
use crate::array::dtype::PyDtype;
use crate::array::view::View;
use crate::text::error::Class;

#[pymethods]
impl Array {
    /// A view of the same memory, whose bytes are read as elements of another type. If the size of
    /// an element changes, the last axis has more or fewer elements; it must be without gaps, and
    /// its bytes a whole number of new elements. :class:`usm.RequestError` otherwise.
    ///
    /// >>> usm.asarray(bytes([1, 0, 2, 0])).view("<u2").tolist()
    /// [1, 2]
    #[pyo3(name = "view")]
    fn reinterpret<'py>(&self, dtype: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        self.with_view(self.view().reinterpreted(PyDtype::of(dtype)?)?).into_object(dtype.py())
    }
}

impl View {
    /// The same bytes as elements of another type, by NumPy's rules: the last axis takes the change
    /// of size.
    fn reinterpreted(&self, element: PyDtype) -> PyResult<Self> {
        let view_error = |reason: &str| {
            let (own, shape) = (PyDtype::of_view(self), self.shape());
            Class::Request.error(format!("view of {own} with shape {shape:?} as {element}: {reason}"))
        };
        let (old, new) = (self.dtype.itemsize() as isize, element.dtype.itemsize() as isize);
        let (mut shape, mut strides) = (self.shape().clone(), self.strides().clone());
        if old != new {
            let Some(last) = self.ndim().checked_sub(1) else {
                return Err(view_error("an array of 0 dimensions keeps the size of its element"));
            };
            if self.nbytes() > 0 && shape[last] != 1 && strides[last] != old {
                return Err(view_error("the last axis has gaps; copy it first"));
            }
            let bytes = shape[last].checked_mul(old).ok_or_else(|| view_error("too many elements"))?;
            if new == 0 || bytes % new != 0 || (new < old && old % new != 0) {
                let whole = format!("the {bytes} bytes of the last axis are no whole number of {new} bytes");
                return Err(view_error(&match new < old && new != 0 {
                    true => format!("{new} bytes do not divide {old}"),
                    false => whole,
                }));
            }
            (shape[last], strides[last]) = (bytes / new, new);
        }
        // The bytes are those of before, so every element lies inside of the storage.
        let view = Self::imported(element.dtype, shape, strides, self.offset());
        Ok(Self { descr: element.descr, ..view })
    }
}
