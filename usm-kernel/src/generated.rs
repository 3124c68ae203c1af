//! What generated code is made of.

use crate::range::NdRange;
pub use usm_core::IndexPlace as Place;

/// An element, checked unless `PROVEN`.
///
/// # Safety
/// Where `PROVEN`, the index is inside.
#[inline(always)]
pub unsafe fn element<'a, const PROVEN: bool, T>(array: &'a [T], index: u64, at: &'static Place) -> &'a T {
    if PROVEN {
        // SAFETY: the caller's promise.
        unsafe { array.get_unchecked(index as usize) }
    } else {
        match usize::try_from(index).ok().and_then(|index| array.get(index)) {
            Some(element) => element,
            None => outside(at, index, array.len()),
        }
    }
}

/// Writes an element, checked unless `PROVEN`.
///
/// # Safety
/// As [`element`].
#[inline(always)]
pub unsafe fn store<const PROVEN: bool, T>(array: &mut [T], index: u64, value: T, at: &'static Place) {
    if PROVEN {
        // SAFETY: the caller's promise.
        let element = unsafe { array.get_unchecked_mut(index as usize) };
        *element = value;
    } else {
        let len = array.len();
        match usize::try_from(index).ok().and_then(|index| array.get_mut(index)) {
            Some(element) => *element = value,
            None => outside(at, index, len),
        }
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn outside(at: &Place, index: u64, len: usize) -> ! {
    let Place { kernel, place, array } = at;
    panic!("kernel {kernel}, {place}: index {index} of `{array}`, which has {len} elements")
}

/// Arithmetic of proofs. It is reached through the range that the launch gives, so that no other
/// code can stand in for it, whatever the path of this crate is said to be.
#[doc(hidden)]
impl<const D: usize> NdRange<D> {
    /// The quotient, rounded down, of a number and one above zero.
    #[inline]
    #[must_use]
    pub fn quotient(&self, one: i64, two: i64) -> Option<i64> {
        (two > 0).then(|| one.div_euclid(two))
    }

    /// Whether digits, each a weight and how many values it has, are told apart by their sum and a
    /// shift from zero up to `shift`: in the order of their weights, each exceeds all that lies
    /// below it.
    #[inline]
    #[must_use]
    pub fn distinct(&self, digits: &mut [(i64, i64)], shift: i64) -> bool {
        digits.sort_unstable_by_key(|(weight, _)| weight.unsigned_abs());
        let mut below = shift;
        for (weight, extent) in digits {
            if *extent <= 1 {
                continue;
            }
            let Some(weight) = weight.checked_abs().filter(|weight| *weight > below) else { return false };
            let reach = weight.checked_mul(*extent - 1).and_then(|reach| reach.checked_add(below));
            let Some(reach) = reach else { return false };
            below = reach;
        }
        true
    }
}

/// Code for devices, where the crate is built with it.
#[cfg(feature = "alloc")]
#[doc(hidden)]
#[macro_export]
macro_rules! device_code {
    ($($code:tt)*) => { $($code)* };
}

/// Code for devices, where the crate is built with it.
#[cfg(not(feature = "alloc"))]
#[doc(hidden)]
#[macro_export]
macro_rules! device_code {
    ($($code:tt)*) => {};
}
