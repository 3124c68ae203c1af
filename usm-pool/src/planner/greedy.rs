//! First fit in a fixed order. Descending size is optimal on most real networks.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Instance;
use super::offset_list::{Fit, OffsetList};
use crate::Buffer;

/// Places the buffers in the given order; answers one offset for each buffer.
pub(crate) fn in_order(instance: Instance<'_>, order: &[u32], fit: Fit) -> Vec<u64> {
    let mut offsets = alloc::vec![0; instance.buffers.len()];
    let mut placed = OffsetList::new(instance);
    for &buffer in order {
        offsets[buffer as usize] = placed.place(buffer as usize, fit);
    }
    offsets
}

/// Buffer indices sorted by a key; equal keys stay in the order of the problem, so plans are the same everywhere.
pub(crate) fn sorted<K: Ord>(instance: Instance<'_>, key: impl Fn(&Buffer) -> K) -> Vec<u32> {
    let mut order: Vec<u32> = (0..instance.buffers.len() as u32).collect();
    order.sort_by_key(|&i| key(&instance.buffers[i as usize]));
    order
}

/// First fit in descending size; of equals the longer life first.
pub(crate) fn by_size(instance: Instance<'_>) -> Vec<u64> {
    let order = sorted(instance, |b| (Reverse(b.size), Reverse(b.lifetime().len()), b.lower));
    in_order(instance, &order, Fit::First)
}

/// First fit in descending size times duration.
pub(crate) fn by_area(instance: Instance<'_>) -> Vec<u64> {
    let order = sorted(instance, |b| (Reverse(u128::from(b.size) * u128::from(b.lifetime().len())), b.lower));
    in_order(instance, &order, Fit::First)
}

/// First fit in descending duration; of equals the larger first.
pub(crate) fn by_duration(instance: Instance<'_>) -> Vec<u64> {
    let order = sorted(instance, |b| (Reverse(b.lifetime().len()), Reverse(b.size), b.lower));
    in_order(instance, &order, Fit::First)
}
