//! The layout of an array in its storage: element type, shape, strides and offset, proven to stay
//! inside.

use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PySlice, PyTuple};
use usm_core::Strided;
use usm_interface::{Dtype, Extent, Layout};

use crate::array::axes::Axes;
use crate::array::members::Members;
use crate::text::argument;
use crate::text::error::Class;

/// NumPy's and the buffer protocol's maximum number of dimensions.
pub(crate) const MAX_DIMS: usize = 64;
/// The number of dimensions that nearly all arrays have: a layout with room for these has a tenth
/// of the size.
pub(crate) const FEW_DIMS: usize = 4;

/// Strides and offset in bytes. Every element lies inside the view's storage: constructors prove
/// it, and indexing only narrows.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) dtype: Dtype,
    /// The members of a structured type, as a `descr` that the codec accepted.
    pub(crate) descr: Option<Arc<Members>>,
    /// Shape in elements.
    pub(crate) shape: Axes,
    /// Strides in bytes.
    pub(crate) strides: Axes,
    /// Bytes from the start of the storage to the element with all indices 0.
    pub(crate) offset: usize,
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
            return Ok(Self { dtype, descr: None, shape, strides, offset: 0 });
        }
        // The shape is an argument here, no part of a dictionary.
        let refused = |error: usm_interface::Error| Class::Request.error(error.to_string());
        if shape.len() <= FEW_DIMS {
            return Ok(Self::of_layout(&Layout::<FEW_DIMS>::new(dtype, shape, None, 0).map_err(refused)?));
        }
        Ok(Self::of_layout(&Layout::<MAX_DIMS>::new(dtype, shape, None, 0).map_err(refused)?))
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

    /// A view with strides in their normal form. Every way in ends here, so that an array has the
    /// same strides by each.
    #[inline]
    pub(crate) fn imported(dtype: Dtype, shape: Axes, strides: Axes, offset: usize) -> Self {
        let mut view = Self { dtype, descr: None, shape, strides, offset };
        if view.shape.iter().any(|extent| *extent <= 1) {
            view.strides = view.normal_strides();
        }
        view
    }

    /// The strides, where those that no element takes are computed: all of an array without bytes,
    /// which are those of a contiguous one, and that of an axis without a second element, which
    /// steps over the axis behind it. Producers give them any value, and consumers that compare
    /// strides accept no other for a contiguous array. The order is Fortran's if the array is
    /// contiguous in that order only.
    fn normal_strides(&self) -> Axes {
        let (mut strides, mut step) = (self.strides.clone(), self.itemsize() as isize);
        let unused = self.nbytes() == 0;
        let mut normalise = |axis: usize| {
            let extent = self.shape[axis];
            if unused || extent == 1 {
                strides[axis] = step;
            }
            // A repeated axis lies in no bytes of its own.
            if strides[axis] != 0 {
                step = strides[axis].saturating_abs().saturating_mul(extent.max(1));
            }
        };
        if self.is_f_contiguous() && !self.is_c_contiguous() {
            (0..self.ndim()).for_each(&mut normalise);
        } else {
            (0..self.ndim()).rev().for_each(&mut normalise);
        }
        strides
    }

    pub(crate) fn itemsize(&self) -> usize {
        self.dtype.itemsize() as usize
    }

    pub(crate) fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product::<isize>().unsigned_abs()
    }

    /// Number of elements times itemsize, in bytes.
    pub(crate) fn nbytes(&self) -> usize {
        self.len() * self.itemsize()
    }

    /// The range of the storage from the lowest byte to one past the highest; an empty range at the
    /// offset if there are no elements.
    pub(crate) fn span(&self) -> std::ops::Range<usize> {
        if self.nbytes() == 0 {
            return self.offset..self.offset;
        }
        let reach = |sign: isize| -> usize {
            let steps = self.shape.iter().zip(&self.strides).map(|(extent, stride)| (extent - 1) * stride);
            steps.filter(|step| step.signum() == sign).map(isize::unsigned_abs).sum()
        };
        self.offset - reach(-1)..self.offset + reach(1) + self.itemsize()
    }

    /// `count` elements of an axis, from `start` on.
    pub(crate) fn part_of_axis(&self, axis: usize, start: usize, count: usize) -> Self {
        let mut part = self.clone();
        part.shape[axis] = count as isize;
        // Inside of the storage, as every element is.
        part.offset = part.offset.wrapping_add_signed(start as isize * part.strides[axis]);
        part
    }

    /// Whether two elements may share bytes: a stride of 0, or one shorter than what it steps over.
    pub(crate) fn may_overlap_itself(&self) -> bool {
        let axes = self.shape.iter().zip(&self.strides).filter(|(extent, _)| **extent > 1);
        let mut axes: Vec<(usize, usize)> =
            axes.map(|(extent, stride)| (stride.unsigned_abs(), extent.unsigned_abs())).collect();
        axes.sort_unstable();
        let mut reach = self.itemsize();
        for (stride, extent) in axes {
            if stride < reach {
                return true;
            }
            reach = reach.saturating_add(stride.saturating_mul(extent - 1));
        }
        false
    }

    /// Calls `call` with the layout in the form for copies.
    pub(crate) fn strided<R, E: From<usm_core::Error>>(
        &self,
        call: impl FnOnce(&Strided<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let shape: Vec<usize> = self.shape.iter().map(|extent| extent.unsigned_abs()).collect();
        call(&Strided::new(self.offset, self.itemsize(), &shape, &self.strides)?)
    }

    fn packed<'a>(&'a self, dims: impl Iterator<Item = (&'a isize, &'a isize)>) -> bool {
        if self.nbytes() == 0 {
            return true;
        }
        let mut expected = self.itemsize() as isize;
        for (extent, stride) in dims {
            if *extent != 1 {
                if *stride != expected {
                    return false;
                }
                expected *= extent;
            }
        }
        true
    }

    pub(crate) fn is_c_contiguous(&self) -> bool {
        self.packed(self.shape.iter().zip(&self.strides).rev())
    }

    pub(crate) fn is_f_contiguous(&self) -> bool {
        self.packed(self.shape.iter().zip(&self.strides))
    }

    /// Strides in elements, in their normal form, if they are whole numbers.
    pub(crate) fn element_strides(&self) -> Option<Axes> {
        let itemsize = (self.itemsize() as isize).max(1);
        let whole = |stride: &isize| (stride % itemsize == 0).then_some(stride / itemsize);
        self.normal_strides().iter().map(whole).collect()
    }

    /// `len` elements of the first axis from `start` on; they must exist.
    pub(crate) fn part(&self, start: usize, len: usize) -> Self {
        let mut view = self.clone();
        view.shape[0] = len as isize;
        if len > 0 && self.nbytes() > 0 {
            view.offset = view.offset.wrapping_add_signed(start as isize * view.strides[0]);
        }
        view
    }

    /// One element of 0 dimensions, without members.
    pub(crate) fn element(dtype: Dtype, offset: usize) -> Self {
        Self { dtype, descr: None, shape: Axes::new(), strides: Axes::new(), offset }
    }

    /// Whether the entries of the first axis are elements without members.
    pub(crate) fn has_elements(&self) -> bool {
        self.ndim() == 1 && self.descr.is_none()
    }

    /// The offset of an entry of the first axis, which must exist.
    #[inline]
    pub(crate) fn offset_of_row(&self, index: usize) -> usize {
        // Without elements there is no place to move to.
        let step = if self.nbytes() == 0 { 0 } else { index as isize * self.strides[0] };
        self.offset.wrapping_add_signed(step)
    }

    /// An entry of the first axis; it must exist.
    #[inline]
    pub(crate) fn row(&self, index: usize) -> Self {
        let (shape, strides) = (self.shape.tail(), self.strides.tail());
        let offset = self.offset_of_row(index);
        Self { dtype: self.dtype, descr: self.descr.clone(), shape, strides, offset }
    }

    /// The same storage with axes reversed.
    pub(crate) fn transposed(&self) -> Self {
        let mut view = self.clone();
        view.shape.reverse();
        view.strides.reverse();
        view
    }

    /// The same elements with another shape, if that needs no copy.
    pub(crate) fn reshaped(&self, mut shape: Axes) -> PyResult<Self> {
        let given = shape.clone();
        let refused = |reason: &str| {
            Class::Request.error(format!("cannot reshape {:?} to {given:?}: {reason}", self.shape))
        };
        let mut known = given.iter().filter(|extent| **extent != -1);
        let known = known.try_fold(
            1_isize,
            |product, extent| {
                if *extent < 0 { None } else { product.checked_mul(*extent) }
            },
        );
        let known = known.ok_or_else(|| refused("an extent is negative or too large"))?;
        let len = self.len() as isize;
        let mut guesses = shape.iter_mut().filter(|extent| **extent == -1);
        match (guesses.next(), guesses.next()) {
            (Some(guess), None) if known != 0 && len % known == 0 => *guess = len / known,
            (None, _) if known == len => {}
            (Some(_), Some(_)) => return Err(refused("more than one -1")),
            _ => return Err(refused("the number of elements differs")),
        }
        if shape.len() > MAX_DIMS {
            return Err(refused("more than 64 dimensions"));
        }
        if !self.is_c_contiguous() {
            let strides = self.strides_of(&shape);
            let strides = strides.ok_or_else(|| refused("the strides do not allow it; copy it first"))?;
            return Ok(Self { shape, strides: strides[..].into(), ..self.clone() });
        }
        if len == 0 {
            // The products of some extents may not fit a word.
            let extents: Vec<i64> = shape.iter().map(|extent| *extent as i64).collect();
            let view = Self::contiguous(self.dtype, &extents)?;
            return Ok(Self { offset: self.offset, descr: self.descr.clone(), ..view });
        }
        let strides = shape.packed_strides(self.itemsize());
        Ok(Self { dtype: self.dtype, descr: self.descr.clone(), shape, strides, offset: self.offset })
    }

    /// The strides of another shape with as many elements; `None` if no strides reach them in that
    /// order. There are elements: a view without any is contiguous.
    fn strides_of(&self, shape: &[isize]) -> Option<Vec<isize>> {
        let axes = self.shape.iter().zip(&self.strides).map(|(extent, stride)| (*extent, *stride));
        let axes: Vec<(isize, isize)> = axes.filter(|(extent, _)| *extent != 1).collect();
        let mut strides = vec![0; shape.len()];
        let (mut old, mut new) = (0, 0);
        // Each round takes the fewest axes of both with as many elements. The products stay below
        // the number of elements, and both reach it at the same time.
        while let (Some(&(extent, _)), Some(&wanted)) = (axes.get(old), shape.get(new)) {
            let (mut here, mut there, mut old_end, mut new_end) = (extent, wanted, old + 1, new + 1);
            while here != there {
                if here < there {
                    here *= axes.get(old_end)?.0;
                    old_end += 1;
                } else {
                    there *= shape.get(new_end)?;
                    new_end += 1;
                }
            }
            let run = &axes[old..old_end];
            if run.windows(2).any(|pair| pair[1].0.checked_mul(pair[1].1) != Some(pair[0].1)) {
                return None;
            }
            let mut stride = run[run.len() - 1].1;
            for axis in (new..new_end).rev() {
                strides[axis] = stride;
                // Behind the last axis with a second element the product is not used.
                stride = stride.wrapping_mul(shape[axis]);
            }
            (old, new) = (old_end, new_end);
        }
        Some(strides)
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
        let mut offset = self.offset as isize;
        for (axis, key) in keys.iter_borrowed().enumerate() {
            offset += self.position(axis, &key)? * self.strides[axis];
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
        let consuming = keys().filter(|key| !key.is_none() && !key.is_instance_of::<PyEllipsis>()).count();
        if consuming > self.ndim() {
            let message = format!("{consuming} indices for an array of {} dimensions", self.ndim());
            return Err(PyIndexError::new_err(message));
        }
        let (mut shape, mut strides) = (Axes::new(), Axes::new());
        let mut offset = self.offset as isize;
        let mut axis = 0;
        let mut ellipsis = false;
        for key in keys() {
            if key.is_none() {
                shape.push(1);
                strides.push(0);
            } else if key.is_instance_of::<PyEllipsis>() {
                if ellipsis {
                    return Err(PyIndexError::new_err("an index has only one ellipsis"));
                }
                ellipsis = true;
                for _ in 0..self.ndim() - consuming {
                    shape.push(self.shape[axis]);
                    strides.push(self.strides[axis]);
                    axis += 1;
                }
            } else if let Ok(slice) = key.cast::<PySlice>() {
                let indices = slice.indices(self.shape[axis])?;
                shape.push(indices.slicelength as isize);
                // A slice of at most one element takes no step; the product could overflow.
                strides.push(if indices.slicelength > 1 {
                    indices.step * self.strides[axis]
                } else {
                    self.strides[axis]
                });
                if indices.slicelength > 0 {
                    offset += indices.start * self.strides[axis];
                }
                axis += 1;
            } else {
                offset += self.position(axis, &key)? * self.strides[axis];
                axis += 1;
            }
        }
        for rest in axis..self.ndim() {
            shape.push(self.shape[rest]);
            strides.push(self.strides[rest]);
        }
        if shape.len() > MAX_DIMS {
            return Err(PyIndexError::new_err("more than 64 dimensions"));
        }
        // Without elements there is no place to move to.
        let offset = if self.nbytes() == 0 { self.offset } else { offset.unsigned_abs() };
        Ok(Self { dtype: self.dtype, descr: self.descr.clone(), shape, strides, offset })
    }

    /// The position along an axis that an integer names.
    fn position(&self, axis: usize, key: &Bound<'_, PyAny>) -> PyResult<isize> {
        let wrong = || PyTypeError::new_err("an index is an integer, a slice, an ellipsis or None");
        // True is a mask where masks are allowed, and never the second element.
        if key.is_instance_of::<PyBool>() {
            return Err(wrong());
        }
        let extent = self.shape[axis];
        let index: isize = key.extract().map_err(|error: PyErr| {
            let py = key.py();
            match error.is_instance_of::<PyOverflowError>(py) {
                // The text of a long integer may be an error of its own.
                true => PyIndexError::new_err(format!(
                    "an index of more than 64 bits is out of bounds for axis {axis} of {extent} elements"
                )),
                false => argument::conversion_error(py, error, wrong),
            }
        })?;
        let from_start = if index < 0 { index.checked_add(extent) } else { Some(index) };
        from_start.filter(|position| (0..extent).contains(position)).ok_or_else(|| {
            let message = format!("index {index} is out of bounds for axis {axis} of {extent} elements");
            PyIndexError::new_err(message)
        })
    }

    /// The view broadcast to `shape`: missing axes in front, extents of 1 repeated.
    pub(crate) fn broadcast_to(&self, shape: &[isize]) -> PyResult<Self> {
        let refused =
            || Class::Request.error(format!("shape {:?} cannot be broadcast to {shape:?}", self.shape));
        let missing = shape.len().checked_sub(self.ndim()).ok_or_else(refused)?;
        let mut strides = vec![0; shape.len()];
        for (axis, (extent, stride)) in self.shape.iter().zip(&self.strides).enumerate() {
            let wanted = shape[missing + axis];
            if *extent == wanted {
                strides[missing + axis] = *stride;
            } else if *extent != 1 {
                return Err(refused());
            }
        }
        let (descr, offset) = (self.descr.clone(), self.offset);
        Ok(Self { dtype: self.dtype, descr, shape: shape[..].into(), strides: strides[..].into(), offset })
    }
}

/// Writes packed elements in C order to the places of `view` in `target`, which starts at byte
/// `shift` of the view's storage. If elements share bytes, the last one stays.
pub(crate) fn scatter(target: &mut [u8], view: &View, shift: usize, packed: &[u8]) {
    let itemsize = view.itemsize();
    for (number, element) in packed.chunks_exact(itemsize.max(1)).enumerate() {
        let (mut rest, mut to) = (number, view.offset - shift);
        for (extent, stride) in view.shape.iter().zip(&view.strides).rev() {
            let index = rest % extent.unsigned_abs();
            rest /= extent.unsigned_abs();
            to = to.wrapping_add_signed(stride * index as isize);
        }
        target[to..to + itemsize].copy_from_slice(element);
    }
}
