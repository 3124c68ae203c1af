//! Counts of byte values: each group counts in local memory and adds its counts to the result once.

use crate::argument::{Read, Write};
use crate::barrier::FenceSpace;
use crate::error::ArgumentError;
use crate::group::Group;
use crate::kernel::{Kernel, Values};
use crate::local::Zeroed;
use crate::order::Order;
use crate::range::NdRange;

/// `counts[v]` += how often `v` occurs in `values`; `per_item` values a work-item, fewer where the
/// array ends.
#[derive(Clone, Copy, Debug)]
pub struct Histogram {
    pub(super) per_item: usize,
}

impl Histogram {
    /// Number of different values.
    pub const BINS: usize = 256;

    /// Values a work-item that keep the final additions small beside the counting.
    pub const PER_ITEM: usize = 256;

    /// A histogram with `per_item` values a work-item, at least 1.
    #[must_use]
    pub const fn new(per_item: usize) -> Self {
        Self { per_item: if per_item == 0 { 1 } else { per_item } }
    }

    /// Groups of `group` items that `len` values take.
    #[must_use]
    pub const fn groups(&self, len: usize, group: usize) -> usize {
        len.div_ceil(match self.per_item.saturating_mul(group) {
            0 => 1,
            part => part,
        })
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new(Self::PER_ITEM)
    }
}

impl Kernel<1> for Histogram {
    const NAME: &'static str = "histogram";
    type Arguments = (Read<u8>, Write<u32>);
    type Local = (Zeroed<u32>,);

    fn local(&self, _: &NdRange<1>, _: &Values<Self::Arguments>) -> [usize; 1] {
        [Self::BINS]
    }

    fn check(
        &self,
        _: &NdRange<1>,
        lengths: &[usize],
        _: &Values<Self::Arguments>,
    ) -> Result<(), ArgumentError> {
        ArgumentError::at_least(lengths, 1, Self::BINS as u64)
    }

    #[inline]
    fn group<O: Order>(
        &self,
        group: &Group<'_, Self, 1, O>,
        (values, counts): (&[u8], &mut [u32]),
        (bins,): (&mut [u32],),
    ) {
        let size = group.size();
        let bins = &mut bins[..Self::BINS];
        let part = group.chunk(values, size.saturating_mul(self.per_item));
        for item in group.items() {
            // Consecutive values: the items of a group run in turn, so this is where the cache line
            // is.
            let start = item.local().saturating_mul(self.per_item).min(part.len());
            let end = start.saturating_add(self.per_item).min(part.len());
            for value in &part[start..end] {
                let bin = &mut bins[usize::from(*value)];
                *bin = bin.wrapping_add(1);
            }
        }
        group.barrier(FenceSpace::LOCAL);
        let counts = &mut counts[..Self::BINS];
        // A row of bins at a time, one item a bin.
        for (counts, bins) in counts.chunks_mut(size).zip(bins.chunks(size)) {
            for item in group.first(counts.len()) {
                let count = &mut counts[item.local()];
                *count = count.wrapping_add(bins[item.local()]);
            }
        }
    }
}

/// The plain loop.
pub fn histogram_plain(values: &[u8], counts: &mut [u32; Histogram::BINS]) {
    for value in values {
        let count = &mut counts[usize::from(*value)];
        *count = count.wrapping_add(1);
    }
}
