//! The bytes that are live in a memory at each rank of time.

use alloc::vec::Vec;

use super::Item;

/// A tree of sums and maxima. Node 1 is the root, the children of `n` are `2n` and `2n + 1`.
pub(super) struct Load {
    leaves: usize,
    /// Bytes that cover the whole node.
    whole: Vec<u64>,
    /// The most bytes at any rank of the node, without those that cover a node above.
    most: Vec<u64>,
}

impl Load {
    pub(super) fn new(ranks: usize) -> Self {
        let leaves = ranks.max(1).next_power_of_two();
        Self { leaves, whole: alloc::vec![0; 2 * leaves], most: alloc::vec![0; 2 * leaves] }
    }

    /// Whether the item fits beside what lives with it.
    pub(super) fn holds(&self, item: &Item, bytes: u64) -> bool {
        let most = if item.life.0 < item.life.1 { self.most(1, 0, self.leaves, item.life) } else { 0 };
        // Sizes of one problem do not overflow.
        item.size + most <= bytes
    }

    /// Adds bytes during a life; a negated number, modulo 2^64, takes them away.
    pub(super) fn add(&mut self, life: (usize, usize), bytes: u64) {
        if life.0 < life.1 {
            self.add_below(1, 0, self.leaves, life, bytes);
        }
    }

    /// The most bytes at one instant.
    pub(super) fn largest(&self) -> u64 {
        self.most.get(1).copied().unwrap_or(0)
    }

    fn add_below(&mut self, node: usize, low: usize, high: usize, life: (usize, usize), bytes: u64) {
        if life.0 <= low && high <= life.1 {
            self.whole[node] = self.whole[node].wrapping_add(bytes);
            self.most[node] = self.most[node].wrapping_add(bytes);
            return;
        }
        let middle = usize::midpoint(low, high);
        if life.0 < middle {
            self.add_below(2 * node, low, middle, life, bytes);
        }
        if life.1 > middle {
            self.add_below(2 * node + 1, middle, high, life, bytes);
        }
        self.most[node] = self.whole[node] + self.most[2 * node].max(self.most[2 * node + 1]);
    }

    fn most(&self, node: usize, low: usize, high: usize, life: (usize, usize)) -> u64 {
        if life.0 <= low && high <= life.1 {
            return self.most[node];
        }
        let middle = usize::midpoint(low, high);
        let left = if life.0 < middle { self.most(2 * node, low, middle, life) } else { 0 };
        let right = if life.1 > middle { self.most(2 * node + 1, middle, high, life) } else { 0 };
        self.whole[node] + left.max(right)
    }
}
