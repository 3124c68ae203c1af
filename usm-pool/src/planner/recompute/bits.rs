//! Rows of bits: for each root the stages.

use alloc::vec::Vec;

#[derive(Clone, Debug)]
pub(super) struct Bits {
    words: Vec<u64>,
    row: usize,
}

impl Bits {
    pub(super) fn new(rows: usize, columns: usize) -> Self {
        let row = columns.div_ceil(64);
        Self { words: alloc::vec![0; rows * row], row }
    }

    pub(super) fn get(&self, row: u32, column: usize) -> bool {
        self.words[row as usize * self.row + column / 64] >> (column % 64) & 1 == 1
    }

    pub(super) fn set(&mut self, row: u32, column: usize, bit: bool) {
        let word = &mut self.words[row as usize * self.row + column / 64];
        let mask = 1 << (column % 64);
        *word = if bit { *word | mask } else { *word & !mask };
    }

    /// The greatest column below `end` whose bit is set.
    pub(super) fn last_below(&self, row: u32, end: usize) -> Option<usize> {
        let words = &self.words[row as usize * self.row..][..self.row];
        let mut at = end / 64;
        let mut word = words.get(at).map_or(0, |word| word & ((1 << (end % 64)) - 1));
        loop {
            if word != 0 {
                return Some(at * 64 + 63 - word.leading_zeros() as usize);
            }
            at = at.checked_sub(1)?;
            word = words[at];
        }
    }

    /// The least column from `begin` on whose bit is set.
    pub(super) fn first_from(&self, row: u32, begin: usize) -> Option<usize> {
        let words = &self.words[row as usize * self.row..][..self.row];
        let mut at = begin / 64;
        let mut word = words.get(at)? & (u64::MAX << (begin % 64));
        loop {
            if word != 0 {
                return Some(at * 64 + word.trailing_zeros() as usize);
            }
            at += 1;
            word = *words.get(at)?;
        }
    }
}
