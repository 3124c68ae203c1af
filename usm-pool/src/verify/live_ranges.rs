//! Ranges whose content may still be read, found by address: a write is compared only with ranges
//! that it overlaps.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::graph::Range;
use crate::plan::Memory;

/// Tensors and their ranges.
#[derive(Default)]
pub(super) struct LiveRanges {
    /// Ends by (memory, low, tensor), in classes by the binary logarithm of the length. In a class,
    /// a range that begins more than the longest length below an address does not reach it. Ranges
    /// may overlap.
    classes: Vec<BTreeMap<(Memory, u64, usize), u64>>,
    /// For each held tensor, the last operator that needs it.
    until: BTreeMap<usize, usize>,
    /// (last operator, tensor), for removal in order.
    ends: alloc::collections::BTreeSet<(usize, usize)>,
}

impl LiveRanges {
    /// Holds a tensor until the operator `until`, included. A held tensor stays unchanged; an empty
    /// range overlaps nothing.
    pub(super) fn insert(&mut self, tensor: usize, range: Range, until: usize) {
        if range.low >= range.high || self.until.contains_key(&tensor) {
            return;
        }
        let class = (range.high - range.low).ilog2() as usize;
        while self.classes.len() <= class {
            self.classes.push(BTreeMap::new());
        }
        self.classes[class].insert((range.memory, range.low, tensor), range.high);
        self.until.insert(tensor, until);
        self.ends.insert((until, tensor));
    }

    /// Removes tensors that no operator from `op` on needs.
    pub(super) fn forget_before(&mut self, op: usize, ranges: &[Option<Range>]) {
        while let Some(&(until, tensor)) = self.ends.first().filter(|&&(until, _)| until < op) {
            self.ends.remove(&(until, tensor));
            self.until.remove(&tensor);
            let Some(range) = ranges[tensor] else { continue };
            let class = (range.high - range.low).ilog2() as usize;
            self.classes[class].remove(&(range.memory, range.low, tensor));
        }
    }

    /// The tensors with a byte of the range.
    pub(super) fn overlapping(&self, range: Range) -> impl Iterator<Item = usize> + '_ {
        let Range { memory, low, high } = range;
        let classes = self.classes.iter().enumerate().filter(move |_| low < high);
        classes.flat_map(move |(class, ranges)| {
            let longest = u64::MAX >> (u64::BITS - 1 - class as u32);
            let from = low.saturating_sub(longest);
            let window = ranges.range((memory, from, 0)..(memory, high, 0));
            window.filter(move |&(_, &end)| end > low).map(|(&(_, _, tensor), _)| tensor)
        })
    }
}
