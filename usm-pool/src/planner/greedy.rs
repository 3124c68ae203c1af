//! First fit and best fit in a fixed order. Descending size with first fit is optimal on most real
//! networks.

use alloc::collections::BinaryHeap;
use alloc::collections::binary_heap::PeekMut;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Instance;
use super::offset_list::{Fit, OffsetList};
use super::time_tree::TimeTree;
use crate::Buffer;
use crate::lifetime::align_up;
use crate::sort;

/// When to abandon an attempt.
#[derive(Clone, Copy)]
pub(crate) struct Until<'a> {
    /// Highest useful end in bytes.
    pub(crate) limit: u64,
    /// Maximum number of steps in total, on an instance of [`MANY`] buffers or more.
    pub(crate) work: u64,
    /// Called regularly; `true` ends the attempt.
    pub(crate) stop: &'a dyn Fn() -> bool,
    /// Whether a stopped attempt still returns a plan, with the remaining buffers on top, one after
    /// the other.
    pub(crate) on_top: bool,
}

impl Until<'_> {
    /// Whether the attempt ends after this many buffers, because of its work or its time.
    pub(crate) fn is_exhausted(&self, count: usize, work: u64) -> bool {
        work > self.work || self.is_out_of_time(count)
    }

    /// Whether time has run out after this many buffers.
    pub(crate) fn is_out_of_time(&self, count: usize) -> bool {
        count % ASK == ASK - 1 && (self.stop)()
    }
}

/// Number of buffers between two calls of `stop`: some hundredths of a second with lists of 65,536.
const ASK: usize = 256;

/// From this many buffers on, a tree over time is worth its memory. Below that, reading all placed
/// buffers is fast.
pub(crate) const MANY: usize = 4096;

/// Places the buffers in the given order. Returns one offset for each buffer, or `None` if the
/// attempt was abandoned.
pub(crate) fn in_order(
    instance: Instance<'_>,
    order: &[u32],
    fit: Fit,
    until: Until<'_>,
) -> Option<Vec<u64>> {
    if instance.buffers.len() >= MANY {
        if let Some(mut tree) = TimeTree::new(instance) {
            return run(instance, order, until, |buffer| (tree.place(buffer, fit), tree.work));
        }
    }
    let mut list = OffsetList::new(instance);
    run(instance, order, until, |buffer| (list.place(buffer, fit), 0))
}

/// `place` returns the offset of a buffer and the work so far.
fn run(
    instance: Instance<'_>,
    order: &[u32],
    until: Until<'_>,
    mut place: impl FnMut(usize) -> (u64, u64),
) -> Option<Vec<u64>> {
    let mut offsets = alloc::vec![0; instance.buffers.len()];
    for (at, &buffer) in order.iter().enumerate() {
        let (offset, work) = place(buffer as usize);
        let end = offset.saturating_add(instance.buffers[buffer as usize].size);
        if end > until.limit {
            return None;
        }
        offsets[buffer as usize] = offset;
        if until.is_exhausted(at, work) {
            if !until.on_top {
                return None;
            }
            stack(instance, &order[at + 1..], &mut offsets);
            break;
        }
    }
    Some(offsets)
}

/// Places the remaining buffers on top of all others: in order of begin, in blocks that are used
/// again when their lives are over. Checked problems ensure that even a block for each fits.
fn stack(instance: Instance<'_>, rest: &[u32], offsets: &mut [u64]) {
    let mut top = instance.peak(offsets);
    let mut rest: Vec<u32> = rest.iter().copied().filter(|&i| instance.occupies(i as usize)).collect();
    sort::by_key(&mut rest, |i| instance.buffers[i as usize].lower);
    // Free blocks (offset and size), by the power of two of their sizes.
    let mut free: Vec<Vec<(u64, u64)>> = alloc::vec![Vec::new(); u64::BITS as usize];
    let mut used = BinaryHeap::new();
    for buffer in rest {
        let item = &instance.buffers[buffer as usize];
        // Without lives nothing is over.
        while instance.conflicts.is_none() {
            let free_block = used
                .peek_mut()
                .filter(|block: &PeekMut<'_, Reverse<(u64, u64, u64)>>| block.0.0 <= item.lower);
            let Some(Reverse((_, offset, size))) = free_block.map(PeekMut::pop) else { break };
            free[size.ilog2() as usize].push((offset, size));
        }
        let fits = |&&(offset, size): &&(u64, u64)| size >= item.size && offset % item.alignment == 0;
        let class = item.size.ilog2() as usize;
        let bin = free[class..].iter_mut().take(2).find(|blocks| blocks.last().filter(fits).is_some());
        let (offset, size) = bin.and_then(Vec::pop).unwrap_or_else(|| {
            let offset = align_up(top, item.alignment).unwrap_or(u64::MAX);
            top = offset.saturating_add(item.size);
            (offset, item.size)
        });
        offsets[buffer as usize] = offset;
        used.push(Reverse((item.upper, offset, size)));
    }
}

/// Buffer indices sorted by a key; equal keys stay in the order of the problem, so plans are the
/// same everywhere.
pub(crate) fn order_by(instance: Instance<'_>, key: impl Fn(&Buffer) -> Key) -> Vec<u32> {
    let mut order: Vec<(Key, u32)> = instance.buffers.iter().map(key).zip(0..).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, i)| i).collect()
}

/// What buffers are sorted by. All orders have this type, because the code of a sort is large: an
/// ascending number `n` in the place of a descending one is `Reverse(u64::MAX - n)`.
pub(crate) type Key = (Reverse<u64>, Reverse<u64>, u64);

pub(super) fn size_key(buffer: &Buffer) -> Key {
    (Reverse(buffer.size), Reverse(buffer.lifetime().len()), buffer.lower)
}

pub(super) fn area_key(buffer: &Buffer) -> Key {
    let area = u128::from(buffer.size) * u128::from(buffer.lifetime().len());
    (Reverse((area >> u64::BITS) as u64), Reverse(area as u64), buffer.lower)
}

/// Descending size; of equals the longer life first.
pub(crate) fn by_size(instance: Instance<'_>) -> Vec<u32> {
    order_by(instance, size_key)
}

/// Descending size times duration.
pub(crate) fn by_area(instance: Instance<'_>) -> Vec<u32> {
    order_by(instance, area_key)
}

/// Descending duration; of equals the larger first.
pub(crate) fn by_duration(instance: Instance<'_>) -> Vec<u32> {
    order_by(instance, |b| (Reverse(b.lifetime().len()), Reverse(b.size), b.lower))
}

/// In order of begin; of equals the larger first.
pub(crate) fn by_begin(instance: Instance<'_>) -> Vec<u32> {
    order_by(instance, |b| (Reverse(u64::MAX - b.lower), Reverse(b.size), b.upper))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

        #[test]
        fn list_and_tree_give_the_same_offsets(
            lives in prop::collection::vec((0_u64..200, 0_u64..90, 0_u64..40, 0_u32..5), 0..600),
            seed in any::<u64>(),
            least in 0_u32..4,
            // Many lives end in one leaf of the tree.
            last in prop::option::of(60_u64..90),
        ) {
            let buffer = |(id, (lower, length, size, shift)): (u64, (u64, u64, u64, u32))| {
                let (lower, upper) = match last {
                    Some(last) if length % 8 > 0 => (lower % last, last),
                    _ => (lower, lower + length),
                };
                Buffer::new(id, lower, upper, size).aligned(1 << shift.max(least))
            };
            let buffers: Vec<Buffer> = (0..).zip(lives).map(buffer).collect();
            let instance = Instance { buffers: &buffers, conflicts: None };
            let shuffled = order_by(instance, |b| {
                (Reverse(b.id.wrapping_add(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)), Reverse(0), 0)
            });
            for fit in [Fit::First, Fit::Best] {
                for order in [by_size(instance), by_area(instance), by_begin(instance), shuffled.clone()] {
                    let mut all = OffsetList::new(instance);
                    let mut tree = TimeTree::new(instance).expect("lives");
                    for buffer in order {
                        prop_assert_eq!(all.place(buffer as usize, fit), tree.place(buffer as usize, fit));
                    }
                }
            }
        }
    }
}
