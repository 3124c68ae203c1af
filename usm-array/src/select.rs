//! Parts of a layout by an index for each axis.

use crate::axes::Axes;
use crate::error::{Error, Result};
use crate::layout::{Layout, MAX_DIMS};

/// The choice of elements, axis by axis, as the keys of `a[1, ::2, None]`. Axes without a key keep
/// all elements.
///
/// ```
/// use usm_array::Layout;
///
/// let layout = Layout::contiguous(4, &[3, 4])?;
/// let mut selection = layout.select();
/// selection.index(-1)?;
/// selection.range(3, -1, 4)?;
/// let row = selection.finish()?;
/// assert_eq!((&row.shape()[..], &row.strides()[..], row.offset()), (&[4][..], &[-4][..], 44));
/// # Ok::<(), usm_array::Error>(())
/// ```
#[derive(Debug)]
pub struct Selection<'l> {
    of: &'l Layout,
    axis: usize,
    shape: Axes,
    strides: Axes,
    offset: usize,
}

impl Layout {
    /// Begins a choice of elements.
    #[inline]
    #[must_use]
    pub fn select(&self) -> Selection<'_> {
        Selection { of: self, axis: 0, shape: Axes::new(), strides: Axes::new(), offset: self.offset }
    }

    /// The position along an axis of an index that may count from the end.
    ///
    /// # Errors
    /// [`Error::Index`], [`Error::Axis`].
    #[inline]
    pub fn position(&self, axis: usize, index: isize) -> Result<usize> {
        let extent = *self.shape.get(axis).ok_or(Error::Axis { axis, ndim: self.ndim() })?;
        let from_start = if index < 0 { index.checked_add(extent) } else { Some(index) };
        let position = from_start.filter(|position| (0..extent).contains(position));
        let extent = extent.unsigned_abs();
        position.map(isize::unsigned_abs).ok_or(Error::Index { axis, index, extent })
    }
}

impl Selection<'_> {
    /// Number of axes without a key yet.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.of.ndim() - self.axis
    }

    /// Elements of the next axis; `None` behind the last one.
    #[inline]
    #[must_use]
    pub fn extent(&self) -> Option<usize> {
        self.of.shape.get(self.axis).map(|extent| extent.unsigned_abs())
    }

    fn next(&self) -> Result<(isize, isize)> {
        let (axis, ndim) = (self.axis, self.of.ndim());
        let extent = *self.of.shape.get(axis).ok_or(Error::Axis { axis, ndim })?;
        Ok((extent, self.of.strides[axis]))
    }

    /// One element of the next axis, which goes. A negative index counts from the end.
    ///
    /// # Errors
    /// [`Error::Index`], [`Error::Axis`] behind the last axis.
    #[inline]
    pub fn index(&mut self, index: isize) -> Result<()> {
        let position = self.of.position(self.axis, index)? as isize;
        // Inside of the range of the elements, or of no use without any.
        self.offset = self.offset.wrapping_add_signed(position.wrapping_mul(self.of.strides[self.axis]));
        self.axis += 1;
        Ok(())
    }

    /// `count` elements of the next axis from `start` on, `step` apart.
    ///
    /// # Errors
    /// [`Error::Index`] if the axis lacks the first or the last of them, [`Error::Step`] for a step
    /// of 0, [`Error::Axis`] behind the last axis.
    #[inline]
    pub fn range(&mut self, start: isize, step: isize, count: usize) -> Result<()> {
        let (extent, stride) = self.next()?;
        let axis = self.axis;
        let check = |index: Option<isize>| match index.filter(|index| (0..extent).contains(index)) {
            Some(_) => Ok(()),
            None => {
                let (index, extent) = (index.unwrap_or(isize::MAX), extent.unsigned_abs());
                Err(Error::Index { axis, index, extent })
            }
        };
        // A range of at most one element takes no step; the product could overflow.
        let mut step_bytes = stride;
        if count > 0 {
            check(Some(start))?;
            self.offset = self.offset.wrapping_add_signed(start.wrapping_mul(stride));
        }
        if count > 1 && step == 0 {
            return Err(Error::Step { axis, count });
        }
        if count > 1 {
            let reach = isize::try_from(count - 1).ok().and_then(|steps| steps.checked_mul(step));
            check(reach.and_then(|reach| reach.checked_add(start)))?;
            step_bytes = step.wrapping_mul(stride);
        }
        self.shape.push(isize::try_from(count).unwrap_or(0));
        self.strides.push(step_bytes);
        self.axis += 1;
        Ok(())
    }

    /// All elements of the next `count` axes.
    ///
    /// # Errors
    /// [`Error::Axis`] for more axes than remain.
    #[inline]
    pub fn all(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            let (extent, stride) = self.next()?;
            self.shape.push(extent);
            self.strides.push(stride);
            self.axis += 1;
        }
        Ok(())
    }

    /// A new axis of one element.
    #[inline]
    pub fn new_axis(&mut self) {
        self.shape.push(1);
        self.strides.push(0);
    }

    /// The layout of the chosen elements.
    ///
    /// # Errors
    /// [`Error::Axis`] for more than [`MAX_DIMS`] dimensions.
    #[inline]
    pub fn finish(mut self) -> Result<Layout> {
        self.all(self.remaining())?;
        if self.shape.len() > MAX_DIMS {
            return Err(Error::Axis { axis: self.shape.len() - 1, ndim: MAX_DIMS });
        }
        // Without elements there is no place to move to.
        let offset = if self.of.nbytes() == 0 { self.of.offset } else { self.offset };
        Ok(Layout::of_normal(self.of.itemsize(), self.shape, self.strides, offset))
    }
}
