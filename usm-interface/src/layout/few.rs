//! The fast path: few dimensions of ordinary extents, computed in registers and written once.

use super::Extent;

/// Maximum number of dimensions of this path.
pub(crate) const FEW: usize = 4;

/// The parts of a layout of few dimensions, except its type. Entries behind the last dimension are
/// 0.
pub(crate) struct Few {
    pub(crate) ndim: u16,
    pub(crate) shape: [i64; FEW],
    pub(crate) strides: [i64; FEW],
    pub(crate) nbytes: i64,
    pub(crate) extent: Extent,
}

impl Few {
    /// Shape in elements, strides in units of `unit` bytes. `None` leaves the layout to
    /// [`Layout::set`](super::Layout::set): for arrays without elements or with many dimensions,
    /// and for every error.
    #[inline(always)]
    pub(crate) fn new(itemsize: u32, shape: &[i64], strides: Option<&[i64]>, unit: i64) -> Option<Self> {
        match shape.len() {
            1 => Self::of::<1>(itemsize, shape, strides, unit),
            2 => Self::of::<2>(itemsize, shape, strides, unit),
            3 => Self::of::<3>(itemsize, shape, strides, unit),
            4 => Self::of::<4>(itemsize, shape, strides, unit),
            _ => None,
        }
    }

    /// With a constant number of dimensions the compiler unrolls the loop and keeps its values in
    /// registers.
    #[inline(always)]
    fn of<const D: usize>(itemsize: u32, shape: &[i64], strides: Option<&[i64]>, unit: i64) -> Option<Self> {
        let shape = <&[i64; D]>::try_from(shape).ok()?;
        let itemsize = i64::from(itemsize);
        let mut few =
            Self { ndim: 0, shape: [0; FEW], strides: [0; FEW], nbytes: itemsize, extent: Extent::default() };
        let strides_in = match strides {
            None => None,
            Some(strides) => Some(<&[i64; D]>::try_from(strides).ok()?),
        };
        // From the last dimension to the first, as `set` does.
        let dims = few.shape.iter_mut().zip(&mut few.strides).take(D);
        let mut strides_rev = strides_in.map(|strides| strides.iter().rev());
        for ((own_extent, own_stride), &extent) in dims.rev().zip(shape.iter().rev()) {
            if extent <= 0 {
                return None;
            }
            *own_extent = extent;
            *own_stride = few.nbytes;
            if let Some(strides_rev) = &mut strides_rev {
                let stride = strides_rev.next()?.checked_mul(unit)?;
                *own_stride = stride;
                let reach = stride.checked_mul(extent.wrapping_sub(1))?;
                few.extent.low = few.extent.low.checked_add(reach.min(0))?;
                few.extent.high = few.extent.high.checked_add(reach.max(0))?;
            }
            few.nbytes = few.nbytes.checked_mul(extent)?;
        }
        // With strides the last byte is one element behind the start of the last element. Without
        // strides it is the size.
        let last = if strides_rev.is_some() { itemsize } else { few.nbytes };
        few.extent.high = few.extent.high.checked_add(last)?;
        few.ndim = u16::try_from(D).ok()?;
        Some(few)
    }

    /// Copies into room for `N` dimensions.
    #[inline(always)]
    pub(crate) fn widen<const N: usize>(values: [i64; FEW]) -> [i64; N] {
        let mut wide = [0; N];
        for (wide, value) in wide.iter_mut().zip(values) {
            *wide = value;
        }
        wide
    }
}
