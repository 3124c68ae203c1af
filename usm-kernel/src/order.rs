//! The order in which the items of a phase, and the groups of a launch, are run.
//!
//! No kernel may depend on it. Runs with [`ReverseOrder`] and [`ShuffledOrder`] show such a
//! dependency: both also fill local memory with noise before each group, as on a device.

use core::fmt::Debug;

mod sealed {
    pub trait Sealed {}
}

/// An order of work-items and work-groups; sealed.
pub trait Order: sealed::Sealed + Copy + Debug + Send + Sync + 'static {
    /// Whether local memory without initial values gets noise before each group.
    const NOISE: bool;

    /// Index of the item, of `count`, that runs at `step`: a permutation of `0..count`.
    #[must_use]
    fn place(self, step: u64, count: u64) -> u64;
}

/// First to last: the order of a plain loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct InOrder;

/// Last to first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ReverseOrder;

/// A permutation chosen by the number inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ShuffledOrder(pub u64);

impl sealed::Sealed for InOrder {}
impl sealed::Sealed for ReverseOrder {}
impl sealed::Sealed for ShuffledOrder {}

impl Order for InOrder {
    const NOISE: bool = false;

    #[inline]
    fn place(self, step: u64, _: u64) -> u64 {
        step
    }
}

impl Order for ReverseOrder {
    const NOISE: bool = true;

    #[inline]
    fn place(self, step: u64, count: u64) -> u64 {
        count - 1 - step
    }
}

impl Order for ShuffledOrder {
    const NOISE: bool = true;

    /// A Feistel network over the next power of four, walked until it lands inside: a permutation
    /// without a table.
    fn place(self, step: u64, count: u64) -> u64 {
        let half = (u64::BITS - (count - 1).leading_zeros()).div_ceil(2).max(1);
        let mask = (1 << half) - 1;
        let mut place = step;
        loop {
            let (mut left, mut right) = (place >> half, place & mask);
            for round in 1..=4 {
                (left, right) = (right, left ^ (mix(right ^ mix(self.0.wrapping_add(round))) & mask));
            }
            place = (left << half) | right;
            if place < count {
                return place;
            }
        }
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
