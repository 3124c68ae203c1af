//! The checked layout: the place of every element, and the proof that the bounds do not overflow.

mod few;

use core::fmt;

use crate::dtype::{Dtype, Extended, Kind};
use crate::error::{Error, Key, LayoutError, LimitError, MemoryError, Result};

pub(crate) use few::{FEW, Few};

/// Bytes from `data[0]`: `low` inclusive, `high` exclusive. `[0, 0)` if the array has no bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub struct Extent {
    /// Lowest byte; negative with negative strides.
    pub low: i64,
    /// One past the highest byte.
    pub high: i64,
}

impl Extent {
    /// Proves that the bytes lie in `allocation` if `data[0]` is `address`. An empty range passes
    /// everywhere.
    ///
    /// # Errors
    /// [`MemoryError::OutsideAllocation`] with the bytes relative to the allocation.
    ///
    /// ```
    /// use usm_interface::{Allocation, Extent};
    /// let extent = Extent { low: -4, high: 8 };
    /// assert!(extent.check_inside(4100, Allocation { base: 4096, len: 12 }).is_ok());
    /// assert!(extent.check_inside(4096, Allocation { base: 4096, len: 12 }).is_err());
    /// ```
    pub fn check_inside(self, address: u64, allocation: Allocation) -> Result<()> {
        if self.low == self.high {
            return Ok(());
        }
        let start = i128::from(address).saturating_sub(i128::from(allocation.base));
        let low = start.saturating_add(i128::from(self.low));
        let high = start.saturating_add(i128::from(self.high));
        if low < 0 || high > i128::from(allocation.len) {
            return Err(Key::Data.error(outside_allocation(low, high, allocation.len)));
        }
        Ok(())
    }
}

/// A block of memory that an array must lie in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Allocation {
    /// Address of the first byte.
    pub base: u64,
    /// Bytes.
    pub len: u64,
}

/// Shape, strides and bounds of an array of at most `N` dimensions.
///
/// Every value of this type is checked: no extent is negative, the size in bytes fits 63 bits, and
/// the lowest and highest byte were computed without overflow. Strides are in bytes; the offset is
/// in bytes from `data[0]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout<const N: usize = 8> {
    dtype: Dtype,
    ndim: u16,
    strides_given: bool,
    /// Entries behind the last dimension are 0, here and in `strides`.
    shape: [i64; N],
    strides: [i64; N],
    offset: i64,
    nbytes: i64,
    extent: Extent,
}

impl<const N: usize> fmt::Debug for Layout<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layout")
            .field("dtype", &self.dtype)
            .field("shape", &self.shape())
            .field("strides", &self.strides())
            .field("strides_given", &self.strides_given)
            .field("offset", &self.offset)
            .field("extent", &self.extent)
            .finish()
    }
}

impl<const N: usize> Layout<N> {
    /// Checks shape (elements), strides (bytes) and offset (bytes). Without strides the array is
    /// C-contiguous.
    ///
    /// # Errors
    /// [`LayoutError::NegativeExtent`], [`LimitError::TooManyDims`], [`LayoutError::StrideCount`],
    /// [`LayoutError::SizeOverflow`], [`LayoutError::ExtentOverflow`],
    /// [`LayoutError::NegativeOffset`].
    ///
    /// ```
    /// use usm_interface::{Dtype, Extent, Kind, Layout};
    /// let f4 = Dtype::number(Kind::Float, 4).unwrap();
    /// let reversed = Layout::<2>::new(f4, &[2, 3], Some(&[12, -4]), 8).unwrap();
    /// assert_eq!(reversed.extent(), Extent { low: 0, high: 24 });
    /// ```
    #[inline]
    pub fn new(dtype: Dtype, shape: &[i64], strides: Option<&[i64]>, offset: i64) -> Result<Self> {
        Self::scaled(dtype, shape, strides, offset, 1)
    }

    /// [`Layout::new`] with strides and offset in units of `unit` bytes.
    #[inline]
    pub(crate) fn scaled(
        dtype: Dtype,
        shape: &[i64],
        strides: Option<&[i64]>,
        offset: i64,
        unit: i64,
    ) -> Result<Self> {
        let mut layout = Self::empty(dtype);
        layout.set(dtype, shape, strides, offset, unit)?;
        Ok(layout)
    }

    /// A layout without dimensions and bytes, to be set in place.
    #[inline(always)]
    pub(crate) const fn empty(dtype: Dtype) -> Self {
        Self {
            dtype,
            ndim: 0,
            strides_given: false,
            shape: [0; N],
            strides: [0; N],
            offset: 0,
            nbytes: 0,
            extent: Extent { low: 0, high: 0 },
        }
    }

    /// A layout of few dimensions without an offset. `None` if they do not fit.
    #[inline(always)]
    pub(crate) fn of_few(dtype: Dtype, few: Few, strides_given: bool) -> Option<Self> {
        if N < FEW && usize::from(few.ndim) > N {
            return None;
        }
        Some(Self {
            dtype,
            ndim: few.ndim,
            strides_given,
            shape: Few::widen(few.shape),
            strides: Few::widen(few.strides),
            offset: 0,
            nbytes: few.nbytes,
            extent: few.extent,
        })
    }

    /// [`Layout::scaled`] into an empty layout. A layout has hundreds of bytes, which are best
    /// written in their final place. After an error the content is meaningless.
    #[inline]
    pub(crate) fn set(
        &mut self,
        dtype: Dtype,
        shape: &[i64],
        strides: Option<&[i64]>,
        offset: i64,
        unit: i64,
    ) -> Result<()> {
        let too_many = || Key::Shape.error(LimitError::TooManyDims { limit: N });
        self.ndim = u16::try_from(shape.len()).map_err(|_| too_many())?;
        let own_shape = self.shape.get_mut(..shape.len()).ok_or_else(too_many)?;
        let own_strides = self.strides.get_mut(..shape.len()).ok_or_else(too_many)?;
        if let Some(strides) = strides
            && strides.len() != shape.len()
        {
            let kind = LayoutError::StrideCount { strides: strides.len(), shape: shape.len() };
            return Err(Key::Strides.error(kind));
        }
        if offset < 0 {
            return Err(Key::Offset.error(LayoutError::NegativeOffset { offset }));
        }
        let Some(offset) = offset.checked_mul(unit) else {
            return Err(Key::Offset.error(LayoutError::ExtentOverflow));
        };
        self.dtype = dtype;
        self.offset = offset;
        self.strides_given = strides.is_some();

        // From the last dimension to the first: the size without extents of zero, which NumPy
        // computes and checks.
        let itemsize = i64::from(dtype.itemsize());
        let mut size = itemsize;
        let mut empty = itemsize == 0;
        // Lowest and highest byte over all strides. The lowest only falls and the highest only
        // grows, so the order of the dimensions does not decide on an overflow. The overflow counts
        // only if there are bytes.
        let mut reach = Reach { low: offset, high: offset, overflow: false };
        let dims = own_shape.iter_mut().zip(own_strides).zip(shape).enumerate().rev();
        for (index, ((own_extent, own_stride), &extent)) in dims {
            if extent < 0 {
                return Err(Error::new(LayoutError::NegativeExtent { extent }, Key::Shape.at(index)));
            }
            *own_extent = extent;
            match strides.and_then(|strides| strides.get(index)) {
                None => *own_stride = size,
                Some(&stride) => {
                    let Some(stride) = stride.checked_mul(unit) else {
                        return Err(Error::new(LayoutError::ExtentOverflow, Key::Strides.at(index)));
                    };
                    *own_stride = stride;
                    reach.add(stride, extent);
                }
            }
            if extent == 0 {
                empty = true;
            } else {
                size = size.checked_mul(extent).ok_or_else(|| Key::Shape.error(LayoutError::SizeOverflow))?;
            }
        }
        if itemsize == 0 {
            // Elements without bytes: their number must still fit.
            count(shape).ok_or_else(|| Key::Shape.error(LayoutError::SizeOverflow))?;
        }
        if empty {
            return Ok(());
        }
        self.nbytes = size;
        let (span, key) = if strides.is_some() { (itemsize, Key::Strides) } else { (size, Key::Offset) };
        let Some(high) = reach.high.checked_add(span).filter(|_| !reach.overflow) else {
            return Err(key.error(LayoutError::ExtentOverflow));
        };
        self.extent = Extent { low: reach.low, high };
        Ok(())
    }

    /// The element type.
    #[must_use]
    pub const fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The element type from the producer's hint.
    #[must_use]
    pub const fn extended(&self) -> Option<Extended> {
        match self.dtype.kind() {
            Kind::Extended(kind) => Some(kind),
            _ => None,
        }
    }

    /// Bytes of one element.
    #[must_use]
    pub const fn itemsize(&self) -> u32 {
        self.dtype.itemsize()
    }

    /// Number of dimensions.
    #[must_use]
    pub fn ndim(&self) -> usize {
        usize::from(self.ndim)
    }

    /// Extents in elements, none negative.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        self.shape.get(..self.ndim()).unwrap_or_default()
    }

    /// Strides in bytes, also if the producer gave none.
    #[must_use]
    pub fn strides(&self) -> &[i64] {
        self.strides.get(..self.ndim()).unwrap_or_default()
    }

    /// Whether the producer gave strides. It may do so for a C-contiguous array too.
    #[must_use]
    pub const fn strides_given(&self) -> bool {
        self.strides_given
    }

    /// Bytes from `data[0]` to the element with all indices 0.
    #[must_use]
    pub const fn offset(&self) -> i64 {
        self.offset
    }

    /// Number of elements times itemsize, in bytes. Strides do not count.
    #[must_use]
    pub const fn nbytes(&self) -> u64 {
        self.nbytes.unsigned_abs()
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> u64 {
        count(self.shape()).unwrap_or(0).unsigned_abs()
    }

    /// Whether the array has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shape().contains(&0)
    }

    /// Lowest and highest byte from `data[0]`, offset included.
    #[must_use]
    pub const fn extent(&self) -> Extent {
        self.extent
    }

    /// Whether the elements lie in C order without gaps. Dimensions of extent 1 may have any
    /// stride; an empty array is contiguous.
    #[must_use]
    pub fn is_c_contiguous(&self) -> bool {
        self.contiguous(self.shape().iter().zip(self.strides()).rev())
    }

    /// Whether the elements lie in Fortran order without gaps.
    #[must_use]
    pub fn is_f_contiguous(&self) -> bool {
        self.contiguous(self.shape().iter().zip(self.strides()))
    }

    fn contiguous<'s>(&self, dims: impl Iterator<Item = (&'s i64, &'s i64)>) -> bool {
        if self.nbytes == 0 {
            return true;
        }
        let mut expected = i64::from(self.itemsize());
        for (&extent, &stride) in dims {
            if extent != 1 {
                if stride != expected {
                    return false;
                }
                // At most nbytes, which fits.
                expected = expected.saturating_mul(extent);
            }
        }
        true
    }

    /// Whether no two elements share a byte. `false` also if the test cannot decide.
    ///
    /// Zero strides and overlapping windows may be read, but must not become mutable slices.
    #[must_use]
    pub fn is_disjoint(&self) -> bool {
        let mut span = i128::from(self.itemsize());
        let mut count_done = 0u64;
        if self.nbytes == 0 {
            return true;
        }
        // Selection by growing |stride|: each step must be larger than the extent of all smaller
        // ones.
        for _ in 0..self.ndim() {
            let mut best: Option<(usize, i128, i128)> = None;
            for (index, (&extent, &stride)) in self.shape().iter().zip(self.strides()).enumerate() {
                let bit = 1u64.checked_shl(u32::try_from(index).unwrap_or(u32::MAX)).unwrap_or(0);
                if extent == 1 || bit == 0 || count_done & bit != 0 {
                    // Beyond 64 dimensions the test cannot decide.
                    if bit == 0 && extent != 1 {
                        return false;
                    }
                    continue;
                }
                let stride = i128::from(stride).saturating_abs();
                if best.is_none_or(|(_, smallest, _)| stride < smallest) {
                    best = Some((index, stride, i128::from(extent)));
                }
            }
            let Some((index, stride, extent)) = best else {
                break;
            };
            if stride < span {
                return false;
            }
            span = span.saturating_add(stride.saturating_mul(extent.saturating_sub(1)));
            count_done |= 1u64.checked_shl(u32::try_from(index).unwrap_or(u32::MAX)).unwrap_or(0);
        }
        true
    }

    /// Proves that the array lies in `allocation` if `data[0]` is `address`. An array without bytes
    /// passes everywhere.
    ///
    /// # Errors
    /// [`MemoryError::OutsideAllocation`] with the bytes relative to the allocation.
    pub fn check_inside(&self, address: u64, allocation: Allocation) -> Result<()> {
        self.extent.check_inside(address, allocation)
    }

    /// Proves that address plus extent stays inside the 64-bit address space.
    pub(crate) fn check_address(&self, address: u64) -> Result<()> {
        let low = i128::from(address).saturating_add(i128::from(self.extent.low));
        let high = i128::from(address).saturating_add(i128::from(self.extent.high));
        if low < 0 || high > i128::from(u64::MAX) {
            return Err(Key::Data.error(MemoryError::AddressOverflow { address }));
        }
        Ok(())
    }
}

/// The refusal, with its numbers saturated to 64 bits.
#[cold]
pub(crate) fn outside_allocation(low: i128, high: i128, len: u64) -> MemoryError {
    let clamp = |n: i128| i64::try_from(n).unwrap_or(if n < 0 { i64::MIN } else { i64::MAX });
    MemoryError::OutsideAllocation { low: clamp(low), high: clamp(high), len }
}

/// First bytes of the lowest and the highest element.
struct Reach {
    low: i64,
    high: i64,
    overflow: bool,
}

impl Reach {
    /// Adds a dimension.
    #[inline]
    fn add(&mut self, stride: i64, extent: i64) {
        let (reach, wide) = stride.overflowing_mul(extent.wrapping_sub(1));
        let (low, below) = self.low.overflowing_add(reach.min(0));
        let (high, above) = self.high.overflowing_add(reach.max(0));
        self.overflow |= wide | below | above;
        (self.low, self.high) = (low, high);
    }
}

fn count(shape: &[i64]) -> Option<i64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1i64, |n, &extent| n.checked_mul(extent))
}
