//! The layout of an array in its memory: bytes of an element, shape, strides and offset.

use std::ops::Range;

use usm_core::{Strided, bytemuck};

use crate::axes::Axes;
use crate::error::{Error, Result};

/// NumPy's and the buffer protocol's maximum number of dimensions.
pub const MAX_DIMS: usize = 64;

/// Strides and offset in bytes. All elements lie between byte 0 and `isize::MAX` of the memory;
/// operations only narrow that range, so they need no check. Each access to memory compares the
/// range with the size of the memory.
///
/// Strides that no element takes are in a normal form, so that a layout has the same strides by
/// whatever way it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    item: usize,
    pub(crate) shape: Axes,
    pub(crate) strides: Axes,
    pub(crate) offset: usize,
}

impl Layout {
    /// A layout of elements of `item` bytes. The element with all indices 0 starts at byte
    /// `offset`.
    ///
    /// # Errors
    /// [`Error::Core`] as of [`Strided::new`], for extents and strides of different number and for
    /// elements below byte 0 or beyond `isize::MAX`; [`Error::Axis`] for more than [`MAX_DIMS`]
    /// dimensions.
    pub fn new(item: usize, shape: &[usize], strides: &[isize], offset: usize) -> Result<Self> {
        Self::check_shape(item, shape)?;
        Strided::new(offset, item, shape, strides)?;
        let shape = shape.iter().map(|extent| *extent as isize).collect();
        Ok(Self::of_checked(item, shape, strides.into(), offset))
    }

    /// Elements of `item` bytes in C order from byte 0 on, without gaps.
    ///
    /// # Errors
    /// [`Error::Core`] with `SizeOverflow` for more than `isize::MAX` bytes, [`Error::Axis`] for
    /// more than [`MAX_DIMS`] dimensions.
    pub fn contiguous(item: usize, shape: &[usize]) -> Result<Self> {
        Self::check_shape(item, shape)?;
        let shape: Axes = shape.iter().map(|extent| *extent as isize).collect();
        let strides =
            if shape.contains(&0) { Axes::filled(shape.len(), 0) } else { shape.packed_strides(item) };
        Ok(Self::of_checked(item, shape, strides, 0))
    }

    /// Refuses shapes for which a product of extents does not fit a word; also where another
    /// extent is 0.
    fn check_shape(item: usize, shape: &[usize]) -> Result<()> {
        if shape.len() > MAX_DIMS {
            return Err(Error::Axis { axis: shape.len() - 1, ndim: MAX_DIMS });
        }
        let product = |size: usize, extent: &usize| size.checked_mul((*extent).max(1));
        let size = shape.iter().try_fold(item.max(1), product);
        match size.filter(|size| isize::try_from(*size).is_ok()) {
            Some(_) => Ok(()),
            None => Err(usm_core::ErrorKind::SizeOverflow.into()),
        }
    }

    /// [`new`](Self::new) without its checks, for a layout that a codec checked: no extent is
    /// negative, and all elements lie between byte 0 and `isize::MAX`. A wrong one may panic and
    /// never reaches other memory.
    #[inline]
    #[must_use]
    pub fn of_checked(item: usize, shape: Axes, strides: Axes, offset: usize) -> Self {
        let mut layout = Self { item, shape, strides, offset };
        if layout.shape.iter().any(|extent| *extent <= 1) {
            layout.strides = layout.normal_strides();
        }
        layout
    }

    /// [`of_checked`](Self::of_checked) for strides that are in their normal form.
    #[inline]
    #[must_use]
    pub const fn of_normal(item: usize, shape: Axes, strides: Axes, offset: usize) -> Self {
        Self { item, shape, strides, offset }
    }

    /// The strides, where those that no element takes are computed: all of an array without bytes,
    /// which are those of a contiguous one, and that of an axis without a second element, which
    /// steps over the axis behind it. Producers give them any value, and consumers that compare
    /// strides accept no other for a contiguous array. The order is Fortran's if the array is
    /// contiguous in that order only.
    fn normal_strides(&self) -> Axes {
        let (mut strides, mut step) = (self.strides.clone(), self.item as isize);
        let is_empty = self.nbytes() == 0;
        let mut normalise = |axis: usize| {
            let extent = self.shape[axis];
            if is_empty || extent == 1 {
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

    /// Extents in elements; none is negative.
    #[inline]
    #[must_use]
    pub const fn shape(&self) -> &Axes {
        &self.shape
    }

    /// Strides in bytes.
    #[inline]
    #[must_use]
    pub const fn strides(&self) -> &Axes {
        &self.strides
    }

    /// Bytes from the start of the memory to the element with all indices 0.
    #[inline]
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes of an element.
    #[inline]
    #[must_use]
    pub const fn itemsize(&self) -> usize {
        self.item
    }

    /// Number of dimensions.
    #[inline]
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements.
    #[inline]
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "an array of elements, as NumPy's")]
    pub fn len(&self) -> usize {
        self.shape.iter().product::<isize>().unsigned_abs()
    }

    /// Bytes of all elements, without gaps.
    #[inline]
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.len() * self.item
    }

    /// The bytes from the lowest to past the highest element; empty, at the offset, without
    /// elements.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        if self.nbytes() == 0 {
            return self.offset..self.offset;
        }
        let reach = |sign: isize| -> usize {
            let steps = self.shape.iter().zip(&self.strides).map(|(extent, stride)| (extent - 1) * stride);
            steps.filter(|step| step.signum() == sign).map(isize::unsigned_abs).sum()
        };
        self.offset - reach(-1)..self.offset + reach(1) + self.item
    }

    /// Whether two elements may share bytes: a stride of 0, or one shorter than what it steps over.
    #[must_use]
    pub fn may_overlap_itself(&self) -> bool {
        let axes = self.shape.iter().zip(&self.strides).filter(|(extent, _)| **extent > 1);
        let mut axes: Vec<(usize, usize)> =
            axes.map(|(extent, stride)| (stride.unsigned_abs(), extent.unsigned_abs())).collect();
        axes.sort_unstable();
        let mut reach = self.item;
        for (stride, extent) in axes {
            if stride < reach {
                return true;
            }
            reach = reach.saturating_add(stride.saturating_mul(extent - 1));
        }
        false
    }

    /// Calls `call` with the layout in the form for copies.
    ///
    /// # Errors
    /// As of [`Strided::new`], and those of `call`.
    pub fn strided<R, E: From<usm_core::Error>>(
        &self,
        call: impl FnOnce(&Strided<'_>) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        let shape: Vec<usize> = self.shape.iter().map(|extent| extent.unsigned_abs()).collect();
        call(&Strided::new(self.offset, self.item, &shape, &self.strides)?)
    }

    fn is_packed<'a>(&'a self, dims: impl Iterator<Item = (&'a isize, &'a isize)>) -> bool {
        if self.nbytes() == 0 {
            return true;
        }
        let mut expected = self.item as isize;
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

    /// Whether the elements lie in C order without gaps.
    #[must_use]
    pub fn is_c_contiguous(&self) -> bool {
        self.is_packed(self.shape.iter().zip(&self.strides).rev())
    }

    /// Whether the elements lie in Fortran order without gaps.
    #[must_use]
    pub fn is_f_contiguous(&self) -> bool {
        self.is_packed(self.shape.iter().zip(&self.strides))
    }

    /// Strides in elements, in their normal form, if they are whole numbers.
    #[must_use]
    pub fn element_strides(&self) -> Option<Axes> {
        let item = (self.item as isize).max(1);
        let whole = |stride: &isize| (stride % item == 0).then_some(stride / item);
        self.normal_strides().iter().map(whole).collect()
    }

    /// The same layout with its first element at another byte. As [`of_checked`](Self::of_checked),
    /// the caller knows that the elements fit there.
    #[must_use]
    pub fn moved_to(&self, offset: usize) -> Self {
        Self { offset, ..self.clone() }
    }

    /// The elements in C order from byte 0 on.
    #[must_use]
    pub fn packed(&self) -> Self {
        let strides = self.shape.packed_strides(self.item);
        Self { item: self.item, shape: self.shape.clone(), strides, offset: 0 }
    }

    /// One element everywhere: the element at byte 0.
    #[must_use]
    pub(crate) fn repeated(&self) -> Self {
        let strides = Axes::filled(self.ndim(), 0);
        Self { item: self.item, shape: self.shape.clone(), strides, offset: 0 }
    }

    /// One element of 0 dimensions.
    #[inline]
    #[must_use]
    pub const fn element(item: usize, offset: usize) -> Self {
        Self { item, shape: Axes::new(), strides: Axes::new(), offset }
    }

    /// The offset of the element with these indices.
    ///
    /// # Errors
    /// [`Error::Index`] for an index that its axis does not have, [`Error::Axis`] for another
    /// number of indices than of dimensions.
    pub fn offset_of(&self, indices: &[usize]) -> Result<usize> {
        let ndim = self.ndim();
        if indices.len() != ndim {
            return Err(Error::Axis { axis: indices.len(), ndim });
        }
        let mut offset = self.offset;
        for (axis, (index, (extent, stride))) in
            indices.iter().zip(self.shape.iter().zip(&self.strides)).enumerate()
        {
            let extent = extent.unsigned_abs();
            if *index >= extent {
                let index = isize::try_from(*index).unwrap_or(isize::MAX);
                return Err(Error::Index { axis, index, extent });
            }
            // Inside of the range of the elements.
            offset = offset.wrapping_add_signed(*index as isize * stride);
        }
        Ok(offset)
    }

    /// The offset of an entry of the first axis, which must exist.
    #[inline]
    #[must_use]
    pub fn offset_of_row(&self, index: usize) -> usize {
        // Without elements there is no place to move to.
        let step = if self.nbytes() == 0 { 0 } else { index as isize * self.strides[0] };
        self.offset.wrapping_add_signed(step)
    }

    /// An entry of the first axis; it must exist.
    #[inline]
    #[must_use]
    pub fn row(&self, index: usize) -> Self {
        let (shape, strides) = (self.shape.tail(), self.strides.tail());
        Self { item: self.item, shape, strides, offset: self.offset_of_row(index) }
    }

    /// `count` elements of an axis from `start` on; the axis and they must exist.
    #[must_use]
    pub fn part_of_axis(&self, axis: usize, start: usize, count: usize) -> Self {
        let mut part = self.clone();
        part.shape[axis] = count as isize;
        if count > 0 && self.nbytes() > 0 {
            part.offset = part.offset.wrapping_add_signed(start as isize * part.strides[axis]);
        }
        part
    }

    /// The axes in another order, each once.
    ///
    /// # Errors
    /// [`Error::Axis`] for an axis that is not there, or is named twice or not at all.
    pub fn permuted(&self, axes: &[usize]) -> Result<Self> {
        let ndim = self.ndim();
        let (mut shape, mut strides) = (Axes::new(), Axes::new());
        for (place, axis) in axes.iter().enumerate() {
            if *axis >= ndim || axes[..place].contains(axis) {
                return Err(Error::Axis { axis: *axis, ndim });
            }
            shape.push(self.shape[*axis]);
            strides.push(self.strides[*axis]);
        }
        if axes.len() != ndim {
            return Err(Error::Axis { axis: axes.len(), ndim });
        }
        Ok(Self { item: self.item, shape, strides, offset: self.offset })
    }

    /// The axes in reverse order.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let mut layout = self.clone();
        layout.shape.reverse();
        layout.strides.reverse();
        layout
    }

    /// The layout broadcast to `shape`: missing axes in front, extents of 1 repeated.
    ///
    /// # Errors
    /// [`Error::Broadcast`], also for a shape that no array has.
    pub fn broadcast_to(&self, shape: &[isize]) -> Result<Self> {
        let broadcast_error = || Error::Broadcast { from: self.shape.clone(), to: shape.into() };
        let new_axes = shape.len().checked_sub(self.ndim()).ok_or_else(broadcast_error)?;
        // An extent below 0 is one that is too large here.
        Self::check_shape(self.item, bytemuck::cast_slice(shape)).map_err(|_| broadcast_error())?;
        let mut strides = Axes::filled(shape.len(), 0);
        for (axis, (extent, stride)) in self.shape.iter().zip(&self.strides).enumerate() {
            let target = shape[new_axes + axis];
            if *extent == target {
                strides[new_axes + axis] = *stride;
            } else if *extent != 1 {
                return Err(broadcast_error());
            }
        }
        Ok(Self { item: self.item, shape: shape.into(), strides, offset: self.offset })
    }

    /// Writes packed elements in C order to their places in `target`, which starts at byte `start`
    /// of the memory. If elements share bytes, the last one stays.
    pub(crate) fn scatter(&self, target: &mut [u8], start: usize, source: &[u8]) {
        for (number, element) in source.chunks_exact(self.item.max(1)).enumerate() {
            let (mut rest, mut to) = (number, self.offset - start);
            for (extent, stride) in self.shape.iter().zip(&self.strides).rev() {
                let index = rest % extent.unsigned_abs();
                rest /= extent.unsigned_abs();
                to = to.wrapping_add_signed(stride * index as isize);
            }
            target[to..to + self.item].copy_from_slice(element);
        }
    }
}
