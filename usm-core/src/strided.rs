//! The layout of an array's elements in an allocation, and the runs of a copy between two such
//! layouts.

use core::ops::Range;

use crate::backend::StridedAxis as Axis;
use crate::error::{ErrorKind, Result};

/// A layout inside an allocation: the offset of the first element, the bytes of an element, extents
/// and strides. Strides are in bytes and may be negative or zero.
///
/// ```
/// use usm_core::Strided;
///
/// // The columns of a 2 x 3 array of 4 bytes an element, last one first.
/// let layout = Strided::new(8, 4, &[3, 2], &[-4, 12])?;
/// assert_eq!((layout.elements(), layout.range()), (6, 0..24));
/// # Ok::<(), usm_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strided<'s> {
    offset: usize,
    item: usize,
    shape: &'s [usize],
    strides: &'s [isize],
    elements: usize,
    low: usize,
    high: usize,
}

impl<'s> Strided<'s> {
    /// A layout whose first element starts `offset` bytes into the allocation.
    ///
    /// # Errors
    /// [`ErrorKind::ZeroSize`] for elements of 0 bytes, [`ErrorKind::LengthMismatch`] when extents
    /// and strides are not as many, [`ErrorKind::SizeOverflow`] when an element would start below
    /// the allocation or end beyond any address.
    pub fn new(offset: usize, item: usize, shape: &'s [usize], strides: &'s [isize]) -> Result<Self> {
        if item == 0 {
            return Err(ErrorKind::ZeroSize.into());
        }
        if shape.len() != strides.len() {
            let (expected, found) = (shape.len(), strides.len());
            return Err(ErrorKind::LengthMismatch { expected, found }.into());
        }
        if shape.contains(&0) {
            let layout = Self { offset, item, shape, strides, elements: 0, low: offset, high: offset };
            return Ok(layout);
        }
        let overflow = ErrorKind::SizeOverflow;
        let (mut low, mut last, mut elements) = (offset, offset, 1_usize);
        for (extent, stride) in shape.iter().zip(strides) {
            let reach = stride.unsigned_abs().checked_mul(extent - 1).ok_or(overflow)?;
            if *stride < 0 {
                low = low.checked_sub(reach).ok_or(overflow)?;
            } else {
                last = last.checked_add(reach).ok_or(overflow)?;
            }
            elements = elements.checked_mul(*extent).ok_or(overflow)?;
        }
        let high = last.checked_add(item).filter(|high| *high <= isize::MAX as usize).ok_or(overflow)?;
        elements.checked_mul(item).ok_or(overflow)?;
        Ok(Self { offset, item, shape, strides, elements, low, high })
    }

    /// Bytes of an element.
    #[must_use]
    pub const fn item(&self) -> usize {
        self.item
    }

    /// Number of axes.
    pub(crate) const fn axes(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements.
    #[must_use]
    pub const fn elements(&self) -> usize {
        self.elements
    }

    /// Bytes from the lowest to past the highest element; empty without elements.
    #[must_use]
    pub const fn range(&self) -> Range<usize> {
        self.low..self.high
    }
}

impl Strided<'_> {
    /// Whether the elements follow each other in C order, without gaps.
    pub(crate) fn is_dense(&self) -> bool {
        let mut step = self.item;
        self.shape.iter().zip(self.strides).rev().all(|(extent, stride)| {
            let is_next = *extent == 1 || *stride == step as isize;
            // Inside the range that `Strided::new` checked.
            step *= extent;
            is_next
        })
    }

    /// Whether the other layout has the same elements at the same distances.
    pub(crate) fn has_places_of(&self, other: &Self) -> bool {
        self.item == other.item && self.shape == other.shape && self.strides == other.strides
    }

    /// Calls `call` with the layout of the same shape without gaps, from byte 0, in C order of the
    /// axes.
    pub(crate) fn with_dense_layout<R>(&self, call: impl FnOnce(&Strided<'_>) -> Result<R>) -> Result<R> {
        // More axes than any array library has, so that no heap is needed.
        const MOST: usize = 64;
        let mut strides = [0_isize; MOST];
        let axes = self.shape.len();
        let room = strides.get_mut(..axes).ok_or(ErrorKind::SizeOverflow)?;
        let mut step = self.item;
        for (stride, extent) in room.iter_mut().zip(self.shape).rev() {
            *stride = step as isize;
            step *= extent;
        }
        call(&Strided::new(0, self.item, self.shape, room)?)
    }
}

/// Maximum number of axes of a copy without the trivial ones: each at least doubles the
/// destination's bytes, and no address space has more than 2^48 bytes.
const AXES: usize = 48;

/// A copy as runs of bytes: an odometer over few axes, all in positive order of the destination,
/// outermost first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    axes: [Axis; AXES],
    len: usize,
    /// Bytes of a run.
    pub(crate) run: usize,
    /// Start of the first run: offsets into the two allocations.
    pub(crate) to: usize,
    pub(crate) from: usize,
    pub(crate) to_range: (usize, usize),
    pub(crate) from_range: (usize, usize),
}

/// Elements of an axis that is worth dividing.
#[cfg(feature = "threads")]
const LONG: usize = 8;
/// Elements along the side of a tile.
#[cfg(feature = "threads")]
const TILE: usize = 64;

/// Parts of a copy: so many, each of some elements of an axis, or of some bytes of the one run.
#[cfg(feature = "threads")]
#[derive(Debug)]
pub(crate) struct Parts {
    axis: Option<usize>,
    step: usize,
    pub(crate) count: usize,
}

impl Plan {
    /// One run of `len` bytes, from the first byte of both.
    #[cfg(feature = "threads")]
    pub(crate) fn of_run(len: usize) -> Self {
        let (axes, range) = ([Axis::default(); AXES], (0, len));
        Self { axes, len: 0, run: len, to: 0, from: 0, to_range: range, from_range: range }
    }

    /// `None` when there is nothing to copy.
    pub(crate) fn new(to: &Strided<'_>, from: &Strided<'_>) -> Result<Option<Self>> {
        same_shape(to, from)?;
        if to.item != from.item {
            let (axis, expected, found) = (to.shape.len(), to.item, from.item);
            return Err(ErrorKind::ShapeMismatch { axis, expected, found }.into());
        }
        let plan = Self::with_axes(to, from)?;
        Ok(plan.map(Self::with_dense_runs))
    }

    /// The same, but a run is one element, which may have other sizes at both ends.
    pub(crate) fn of_conversion(to: &Strided<'_>, from: &Strided<'_>) -> Result<Option<Self>> {
        same_shape(to, from)?;
        Self::with_axes(to, from)
    }

    fn with_axes(to: &Strided<'_>, from: &Strided<'_>) -> Result<Option<Self>> {
        if to.elements == 0 {
            return Ok(None);
        }
        let mut plan = Self {
            axes: [Axis::default(); AXES],
            len: 0,
            run: to.item,
            to: to.low,
            from: from.offset,
            to_range: (to.low, to.high),
            from_range: (from.low, from.high),
        };
        let strides = to.strides.iter().zip(from.strides);
        for (axis, (extent, (to, from))) in to.shape.iter().zip(strides).enumerate() {
            if *extent == 1 {
                continue;
            }
            if *to == 0 {
                return Err(ErrorKind::DestinationAliases { axis, stride: 0, least: plan.run }.into());
            }
            let mut from = *from;
            if *to < 0 {
                // Reversing both sides is the same copy. Inside the range that `Strided::new`
                // checked.
                plan.from = plan.from.wrapping_add_signed(from.wrapping_mul((extent - 1) as isize));
                from = from.wrapping_neg();
            }
            plan.insert(Axis { extent: *extent, to: to.unsigned_abs(), from })?;
        }
        plan.refuse_aliases()?;
        plan.merge();
        Ok(Some(plan))
    }

    /// Keeps the axes in descending order of the destination's stride.
    fn insert(&mut self, axis: Axis) -> Result<()> {
        if self.len == AXES {
            return Err(ErrorKind::SizeOverflow.into());
        }
        let place = self.axes[..self.len].partition_point(|outer_axis| outer_axis.to >= axis.to);
        self.axes.copy_within(place..self.len, place + 1);
        self.axes[place] = axis;
        self.len += 1;
        Ok(())
    }

    /// Each axis of the destination must step over everything that the axes below it cover.
    fn refuse_aliases(&self) -> Result<()> {
        let mut span = self.run;
        for (axis, Axis { extent, to, .. }) in self.axes[..self.len].iter().enumerate().rev() {
            if *to < span {
                let stride = *to;
                return Err(ErrorKind::DestinationAliases { axis, stride, least: span }.into());
            }
            // Inside the range that `Strided::new` checked.
            span += to * (extent - 1);
        }
        Ok(())
    }

    /// Merges axes that continue each other on both sides.
    fn merge(&mut self) {
        let mut count = 0_usize;
        for index in 0..self.len {
            let inner = self.axes[index];
            let outer = count.checked_sub(1).filter(|outer| {
                let outer = self.axes[*outer];
                let extent = inner.extent as isize;
                outer.to == inner.to * inner.extent && Some(outer.from) == inner.from.checked_mul(extent)
            });
            match outer {
                Some(outer) => {
                    self.axes[outer] = Axis { extent: self.axes[outer].extent * inner.extent, ..inner }
                }
                None => {
                    self.axes[count] = inner;
                    count += 1;
                }
            }
        }
        self.len = count;
    }

    /// Makes the innermost axis the run if it is dense.
    fn with_dense_runs(mut self) -> Self {
        if let Some(inner) = self.axes[..self.len].last().copied() {
            if inner.to == self.run && inner.from == self.run as isize {
                self.run *= inner.extent;
                self.len -= 1;
            }
        }
        self
    }

    /// The same copy with the axis along which the source is densest right outside of the innermost
    /// one, for tiles; `None` if the source is densest along the innermost one.
    pub(crate) fn with_tiles(&self) -> Option<Self> {
        let (inner, outer) = self.axes().split_last()?;
        let (place, dense) = outer.iter().enumerate().min_by_key(|(_, axis)| axis.from.unsigned_abs())?;
        // A source that is repeated needs no tiles.
        if dense.from == 0 || dense.from.unsigned_abs() >= inner.from.unsigned_abs() {
            return None;
        }
        let mut tiled_plan = *self;
        tiled_plan.axes[place..outer.len()].rotate_left(1);
        Some(tiled_plan)
    }

    /// Parts of about `bytes` along the outermost long axis or, of one run, of bytes; `None` if
    /// there is no long axis.
    #[cfg(feature = "threads")]
    pub(crate) fn parts(&self, bytes: usize) -> Option<Parts> {
        if self.len == 0 {
            return Some(Parts { axis: None, step: bytes, count: self.run.div_ceil(bytes) });
        }
        let axis = self.axes().iter().position(|axis| axis.extent >= LONG)?;
        let extent = self.axes[axis].extent;
        let index = self.runs() / extent * self.run;
        // Whole tiles, and enough parts.
        let step = bytes.div_ceil(index).next_multiple_of(TILE).min(extent.div_ceil(LONG));
        Some(Parts { axis: Some(axis), step, count: extent.div_ceil(step) })
    }

    /// The copy of some parts.
    #[cfg(feature = "threads")]
    pub(crate) fn part(&self, parts: &Parts, range: core::ops::Range<usize>) -> Self {
        let mut part = *self;
        let (start, end) = (range.start * parts.step, range.end * parts.step);
        match parts.axis {
            None => {
                part.run = end.min(self.run) - start;
                (part.to, part.from) = (self.to + start, self.from + start);
            }
            Some(axis) => {
                let Axis { extent, to, from } = self.axes[axis];
                part.axes[axis].extent = end.min(extent) - start;
                // Inside the ranges that `Strided::new` checked.
                part.to = self.to + start * to;
                part.from = self.from.wrapping_add_signed(from.wrapping_mul(start as isize));
            }
        }
        part
    }

    pub(crate) fn axes(&self) -> &[Axis] {
        &self.axes[..self.len]
    }

    pub(crate) fn runs(&self) -> usize {
        self.axes().iter().map(|axis| axis.extent).product()
    }

    /// Whether the copy writes every byte of the destination's range.
    pub(crate) fn is_dense(&self) -> bool {
        self.runs() * self.run == self.to_range.1 - self.to_range.0
    }

    /// Calls `visit` with the offsets of destination and source for each run or, without the
    /// innermost `inner` axes, for the first run of each group. Stops at the first error.
    pub(crate) fn visit(
        &self,
        inner: usize,
        mut visit: impl FnMut(usize, usize) -> Result<()>,
    ) -> Result<()> {
        let axes = &self.axes[..self.len - inner];
        let mut index = [0_usize; AXES];
        let (mut to, mut from) = (self.to, self.from);
        loop {
            visit(to, from)?;
            let mut axis = axes.len();
            loop {
                let Some(next) = axis.checked_sub(1) else { return Ok(()) };
                axis = next;
                let Axis { extent, to: to_stride, from: from_stride } = axes[axis];
                index[axis] += 1;
                // Every step is inside the ranges that `Strided::new` checked.
                if index[axis] < extent {
                    to += to_stride;
                    from = from.wrapping_add_signed(from_stride);
                    break;
                }
                index[axis] = 0;
                to -= to_stride * (extent - 1);
                from = from.wrapping_sub((from_stride as usize).wrapping_mul(extent - 1));
            }
        }
    }
}

fn same_shape(to: &Strided<'_>, from: &Strided<'_>) -> Result<()> {
    let mismatch = |axis, expected, found| Err(ErrorKind::ShapeMismatch { axis, expected, found }.into());
    if to.shape.len() != from.shape.len() {
        let (expected, found) = (to.shape.len(), from.shape.len());
        return Err(ErrorKind::LengthMismatch { expected, found }.into());
    }
    let differs = to.shape.iter().zip(from.shape).position(|(to, from)| to != from);
    match differs {
        Some(axis) => mismatch(axis, to.shape[axis], from.shape[axis]),
        None => Ok(()),
    }
}
