//! First fit and best fit in a fixed order. Descending size with first fit is optimal on most real networks.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Instance;
use super::offset_list::{Fit, OffsetList};
use crate::Buffer;

/// When an attempt is not worth going on with.
#[derive(Clone, Copy)]
pub(crate) struct Until<'a> {
    /// Highest end in bytes that is still of use.
    pub(crate) limit: u64,
    /// `true` ends the attempt; asked now and then.
    pub(crate) stop: &'a dyn Fn() -> bool,
}

impl Until<'_> {
    /// Whether the attempt ends after so many buffers.
    pub(crate) fn over(&self, placed: usize) -> bool {
        placed % 1024 == 1023 && (self.stop)()
    }
}

/// Places the buffers in the given order; answers one offset for each buffer, or `None` as soon as that is left.
pub(crate) fn in_order(
    instance: Instance<'_>,
    order: &[u32],
    fit: Fit,
    until: Until<'_>,
) -> Option<Vec<u64>> {
    let mut offsets = alloc::vec![0; instance.buffers.len()];
    let mut placed = OffsetList::new(instance);
    for (at, &buffer) in order.iter().enumerate() {
        let offset = placed.place(buffer as usize, fit);
        if offset.saturating_add(instance.buffers[buffer as usize].size) > until.limit || until.over(at) {
            return None;
        }
        offsets[buffer as usize] = offset;
    }
    Some(offsets)
}

/// Buffer indices sorted by a key; equal keys stay in the order of the problem, so plans are the same everywhere.
pub(crate) fn sorted<K: Ord>(instance: Instance<'_>, key: impl Fn(&Buffer) -> K) -> Vec<u32> {
    let mut order: Vec<u32> = (0..instance.buffers.len() as u32).collect();
    order.sort_by_cached_key(|&i| key(&instance.buffers[i as usize]));
    order
}

/// Descending size; of equals the longer life first.
pub(crate) fn by_size(instance: Instance<'_>) -> Vec<u32> {
    sorted(instance, |b| (Reverse(b.size), Reverse(b.lifetime().len()), b.lower))
}

/// Descending size times duration.
pub(crate) fn by_area(instance: Instance<'_>) -> Vec<u32> {
    sorted(instance, |b| (Reverse(u128::from(b.size) * u128::from(b.lifetime().len())), b.lower))
}

/// Descending duration; of equals the larger first.
pub(crate) fn by_duration(instance: Instance<'_>) -> Vec<u32> {
    sorted(instance, |b| (Reverse(b.lifetime().len()), Reverse(b.size), b.lower))
}

/// In order of begin; of equals the larger first.
pub(crate) fn by_begin(instance: Instance<'_>) -> Vec<u32> {
    sorted(instance, |b| (b.lower, Reverse(b.size), b.upper))
}
