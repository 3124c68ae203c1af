//! Sets of blocks that are cleared often. A mark holds the round in which it was made, so clearing
//! takes constant time.

use alloc::vec::Vec;

/// A set of blocks.
pub(crate) struct Marks {
    /// The round in which each block was last added.
    list: Vec<u32>,
    round: u32,
}

impl Marks {
    /// An empty set for `blocks` blocks.
    pub(crate) fn new(blocks: usize) -> Self {
        Self { list: alloc::vec![0; blocks], round: 1 }
    }

    /// Removes all blocks.
    pub(crate) fn clear(&mut self) {
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.list.fill(0);
            self.round = 1;
        }
    }

    /// Adds a block; false if it is already in the set.
    #[inline]
    pub(crate) fn insert(&mut self, block: u32) -> bool {
        core::mem::replace(&mut self.list[block as usize], self.round) != self.round
    }

    /// Whether a block is in the set.
    #[inline]
    pub(crate) fn contains(&self, block: u32) -> bool {
        self.list[block as usize] == self.round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_rounds_are_forgotten_also_when_their_numbers_come_again() {
        let mut marks = Marks::new(3);
        assert!(marks.insert(1) && !marks.insert(1) && marks.contains(1) && !marks.contains(0));
        marks.round = u32::MAX;
        assert!(marks.insert(2) && !marks.contains(1));
        marks.clear();
        assert!((0..3).all(|block| !marks.contains(block)));
        assert!(marks.insert(1));
    }
}
