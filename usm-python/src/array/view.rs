//! The layout of an array in its storage with the type of its elements.

use std::ops::Deref;
use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PySlice, PyTuple};
use usm_array::Axes;
pub(crate) use usm_array::MAX_DIMS;
use usm_interface::{Dtype, Extent, Layout};

use crate::array::members::Members;
use crate::text::argument;
use crate::text::error::{Class, OrRaise};

/// The number of dimensions that nearly all arrays have: a layout with room for these has a tenth
/// of the size.
pub(crate) const FEW_DIMS: usize = 4;

/// Every element lies inside the view's storage: constructors prove it, and indexing only narrows.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) dtype: Dtype,
    /// The members of a structured type, as a `descr` that the codec accepted.
    pub(crate) descr: Option<Arc<Members>>,
    pub(crate) layout: usm_array::Layout,
}

impl Deref for View {
    type Target = usm_array::Layout;

    #[inline]
    fn deref(&self) -> &usm_array::Layout {
        &self.layout
    }
}

impl View {
    /// A C-contiguous view from the start of a storage.
    pub(crate) fn contiguous(dtype: Dtype, shape: &[i64]) -> PyResult<Self> {
        let whole = i64::from(dtype.itemsize());
        let fits = shape.iter().all(|extent| *extent > 0)
            && shape.iter().try_fold(whole, |size, extent| size.checked_mul(*extent)).is_some();
        // Nothing is left to check or to normalise.
        if fits && shape.len() <= FEW_DIMS {
            let shape: Axes = shape.iter().map(|extent| *extent as isize).collect();
            let strides = shape.packed_strides(whole as usize);
            return Ok(Self::of(dtype, usm_array::Layout::of_normal(whole as usize, shape, strides, 0)));
        }
        // The shape is an argument here, no part of a dictionary.
        let request_error = |error: usm_interface::Error| Class::Request.error(error.to_string());
        if shape.len() <= FEW_DIMS {
            return Ok(Self::of_layout(
                &Layout::<FEW_DIMS>::new(dtype, shape, None, 0).map_err(request_error)?,
            ));
        }
        Ok(Self::of_layout(&Layout::<MAX_DIMS>::new(dtype, shape, None, 0).map_err(request_error)?))
    }

    /// A checked layout on a storage that starts at its lowest byte.
    #[inline]
    pub(crate) fn of_layout<const N: usize>(layout: &Layout<N>) -> Self {
        let wide = |values: &[i64]| values.iter().map(|value| *value as isize).collect();
        let Extent { low, high } = layout.extent();
        // The lowest byte is at most the offset, and their distance does not overflow. An array
        // without bytes is never accessed, so its offset may have any value.
        let offset = if low == high { 0 } else { layout.offset().wrapping_sub(low) as usize };
        Self::imported(layout.dtype(), wide(layout.shape()), wide(layout.strides()), offset)
    }

    /// A view of a checked layout. Every way in ends here, so that an array has the same strides by
    /// each.
    #[inline]
    pub(crate) fn imported(dtype: Dtype, shape: Axes, strides: Axes, offset: usize) -> Self {
        Self::of(dtype, usm_array::Layout::of_checked(dtype.itemsize() as usize, shape, strides, offset))
    }

    #[inline]
    const fn of(dtype: Dtype, layout: usm_array::Layout) -> Self {
        Self { dtype, descr: None, layout }
    }

    /// Another layout of the same elements.
    #[inline]
    pub(crate) fn with(&self, layout: usm_array::Layout) -> Self {
        Self { dtype: self.dtype, descr: self.descr.clone(), layout }
    }

    /// The same layout with its first element at another byte of the storage, where it fits.
    pub(crate) fn moved_to(&self, offset: usize) -> Self {
        self.with(self.layout.moved_to(offset))
    }

    /// `count` elements of an axis from `start` on; the axis and they must exist.
    pub(crate) fn part_of_axis(&self, axis: usize, start: usize, count: usize) -> Self {
        self.with(self.layout.part_of_axis(axis, start, count))
    }

    /// One element of 0 dimensions, without members.
    pub(crate) fn element(dtype: Dtype, offset: usize) -> Self {
        Self::of(dtype, usm_array::Layout::element(dtype.itemsize() as usize, offset))
    }

    /// Whether the entries of the first axis are elements without members.
    pub(crate) fn has_elements(&self) -> bool {
        self.ndim() == 1 && self.descr.is_none()
    }

    /// An entry of the first axis; it must exist.
    #[inline]
    pub(crate) fn row(&self, index: usize) -> Self {
        self.with(self.layout.row(index))
    }

    /// The same storage with axes reversed.
    pub(crate) fn transposed(&self) -> Self {
        self.with(self.layout.transposed())
    }

    /// The same storage with axes in another order; `None` unless each is named once.
    pub(crate) fn permuted(&self, axes: &[usize]) -> Option<Self> {
        self.layout.permuted(axes).ok().map(|layout| self.with(layout))
    }

    /// The same elements with another shape, if that needs no copy.
    pub(crate) fn reshaped(&self, shape: Axes) -> PyResult<Self> {
        Ok(self.with(self.layout.reshaped(shape).or_raise()?))
    }

    /// The offset of the element that a plain integer names, or a tuple with one for each axis.
    /// `None` for other keys, and for elements with members.
    #[inline]
    pub(crate) fn offset_of_element(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        if key.is_exact_instance_of::<PyInt>() {
            return match self.has_elements() {
                true => Ok(Some(self.offset_of_row(self.position(0, key)?.unsigned_abs()))),
                false => Ok(None),
            };
        }
        let Ok(keys) = key.cast_exact::<PyTuple>() else { return Ok(None) };
        let are_integers = || keys.iter_borrowed().all(|key| key.is_exact_instance_of::<PyInt>());
        let has_keys = keys.len() == self.ndim() && are_integers();
        if !has_keys || self.descr.is_some() || self.nbytes() == 0 {
            return Ok(None);
        }
        let mut offset = self.offset() as isize;
        for (axis, key) in keys.iter_borrowed().enumerate() {
            offset += self.position(axis, &key)? * self.strides()[axis];
        }
        Ok(Some(offset.unsigned_abs()))
    }

    /// The elements of a Python index: integers, slices, an ellipsis, `None`.
    pub(crate) fn indexed(&self, key: &Bound<'_, PyAny>) -> PyResult<Self> {
        match key.cast::<PyTuple>() {
            Ok(keys) => self.indexed_by(|| keys.iter_borrowed()),
            Err(_) => self.indexed_by(|| std::iter::once(key.as_borrowed())),
        }
    }

    /// [`indexed`](Self::indexed) by the keys that `keys` lists, each time it is called.
    fn indexed_by<'a, 'py: 'a, I>(&self, keys: impl Fn() -> I) -> PyResult<Self>
    where
        I: Iterator<Item = Borrowed<'a, 'py, PyAny>>,
    {
        let index_count = keys().filter(|key| !key.is_none() && !key.is_instance_of::<PyEllipsis>()).count();
        if index_count > self.ndim() {
            let message = format!("{index_count} indices for an array of {} dimensions", self.ndim());
            return Err(PyIndexError::new_err(message));
        }
        let mut selection = self.select();
        let mut ellipsis = false;
        for key in keys() {
            if key.is_none() {
                selection.new_axis();
            } else if key.is_instance_of::<PyEllipsis>() {
                if ellipsis {
                    return Err(PyIndexError::new_err("an index has only one ellipsis"));
                }
                ellipsis = true;
                selection.all(self.ndim() - index_count).or_raise()?;
            } else if let Ok(slice) = key.cast::<PySlice>() {
                let extent = selection.extent().unwrap_or_default() as isize;
                let indices = slice.indices(extent)?;
                selection.range(indices.start, indices.step, indices.slicelength).or_raise()?;
            } else {
                let position = self.position(self.ndim() - selection.remaining(), &key)?;
                selection.index(position).or_raise()?;
            }
        }
        let layout = selection.finish().map_err(|_| PyIndexError::new_err("more than 64 dimensions"))?;
        Ok(self.with(layout))
    }

    /// The position along an axis that an integer names.
    fn position(&self, axis: usize, key: &Bound<'_, PyAny>) -> PyResult<isize> {
        let wrong = || PyTypeError::new_err("an index is an integer, a slice, an ellipsis or None");
        // True is a mask where masks are allowed, and never the second element.
        if key.is_instance_of::<PyBool>() {
            return Err(wrong());
        }
        let index: isize = key.extract().map_err(|error: PyErr| {
            let (py, extent) = (key.py(), self.shape()[axis]);
            match error.is_instance_of::<PyOverflowError>(py) {
                // The text of a long integer may be an error of its own.
                true => PyIndexError::new_err(format!(
                    "an index of more than 64 bits is out of bounds for axis {axis} of {extent} elements"
                )),
                false => argument::conversion_error(py, error, wrong),
            }
        })?;
        let position = self.layout.position(axis, index);
        position.map(usize::cast_signed).map_err(|error| PyIndexError::new_err(error.to_string()))
    }

    /// The view broadcast to `shape`: missing axes in front, extents of 1 repeated.
    pub(crate) fn broadcast_to(&self, shape: &[isize]) -> PyResult<Self> {
        Ok(self.with(self.layout.broadcast_to(shape).or_raise()?))
    }
}
