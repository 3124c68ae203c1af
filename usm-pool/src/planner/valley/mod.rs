//! Fills the valleys of the skyline: for instances of any size, a million buffers in a second.
//!
//! The skyline is the height of the occupied memory at every instant. A valley is a period between
//! higher neighbours. Of the buffers whose whole life lies in a valley, one of the first class is
//! placed on its floor. If there is none, the floor rises to the lower edge. No buffer is ever
//! placed below the skyline.
//!
//! A life lies in at most one valley, so the order of valleys does not matter. The nearest one is
//! filled first, so that its tables stay in the cache.

mod candidates;
mod ends;
mod skyline;

use alloc::vec::Vec;

use self::candidates::Candidates;
use self::skyline::Skyline;
use super::Instance;
use super::greedy::Until;
use crate::lifetime::align_up;
use crate::ranks::Ranks;

/// The buffers that go into a valley first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// Those with the largest size times length of life, within a factor of two.
    Area,
    /// Those with the longest life, within a factor of two.
    Long,
    /// Those that are larger than a 64th of the bound, then the longest.
    Tall,
}

impl First {
    /// All rules, those that are best on most instances first.
    pub(super) const ALL: [Self; 3] = [Self::Area, Self::Long, Self::Tall];

    /// The class of a buffer whose life has this many ranks: higher classes go first.
    fn class(self, length: u32, size: u64, bound: u64) -> usize {
        let class = match self {
            Self::Area => (u128::from(length) * u128::from(size)).ilog2(),
            Self::Tall if size > bound / 64 => u32::BITS,
            Self::Long | Self::Tall => length.ilog2(),
        };
        class as usize
    }
}

/// Offsets for all buffers; `None` for an abandoned attempt, and for instances with a conflict
/// graph, which have no time. `bound` is a lower bound on the peak.
pub(super) fn fill(instance: Instance<'_>, first: First, bound: u64, until: Until<'_>) -> Option<Vec<u64>> {
    if instance.conflicts.is_some() {
        return None;
    }
    let buffers = instance.buffers;
    let ranks = Ranks::of(buffers)?;
    let mut candidates = Candidates::new(buffers, &ranks, |length, size| first.class(length, size, bound));
    let mut skyline = Skyline::new(ranks.count.saturating_sub(1));
    let mut offsets = alloc::vec![0; buffers.len()];
    let mut count = 0;
    loop {
        let valley = skyline.descend_to_valley();
        match candidates.take(valley.begin, valley.end) {
            Some(item) => {
                let alignment = 1 << item.shift;
                // Problems are checked so that no sum of sizes overflows.
                let offset = align_up(valley.floor, alignment).unwrap_or(u64::MAX);
                let end = offset.saturating_add(item.size);
                if end > until.limit {
                    return None;
                }
                offsets[item.buffer as usize] = offset;
                skyline.raise(item.lower, item.upper, end);
                // A first plan is made to its end: a million buffers take a second, and those that
                // are put on top would make it many times as high.
                if !until.on_top && until.is_out_of_time(count) {
                    return None;
                }
                count += 1;
            }
            None if valley.edge.is_none() => break,
            None => skyline.close(),
        }
    }
    Some(offsets)
}
