//! The sets of operators that were met, kept whole: no two are taken for the same.

use alloc::vec::Vec;

use super::table::State;

/// Sets of some operators, one bit each.
#[derive(Debug)]
pub(super) struct Sets {
    /// The operators that differ between the sets.
    ops: Vec<usize>,
    /// The sets one after the other.
    words: Vec<u64>,
    /// One more than the number of a set, by its hash; 0 is an empty place.
    places: Vec<u32>,
    count: usize,
}

impl Sets {
    pub(super) fn new(is_open: &[bool]) -> Self {
        let ops = (0..is_open.len()).filter(|&op| is_open[op]).collect();
        Self { ops, words: Vec::new(), places: alloc::vec![0; 64], count: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Adds the set of operators that ran; false if it was met before.
    pub(super) fn insert(&mut self, state: &State<'_>) -> bool {
        let width = self.ops.len().div_ceil(64);
        let new = self.words.len();
        for ops in self.ops.chunks(64) {
            let bits = ops.iter().enumerate().map(|(bit, &op)| u64::from(state.ran[op]) << bit);
            self.words.push(bits.sum());
        }
        let place = self.find(new, width);
        if self.places[place] != 0 {
            self.words.truncate(new);
            return false;
        }
        self.count += 1;
        self.places[place] = self.count as u32;
        if self.count * 2 > self.places.len() {
            let larger = self.places.len() * 2;
            self.places.clear();
            self.places.resize(larger, 0);
            for set in 0..self.count {
                let place = self.find(set * width, width);
                self.places[place] = set as u32 + 1;
            }
        }
        true
    }

    /// The place of the set with these words, or the empty one where it belongs.
    fn find(&self, at: usize, width: usize) -> usize {
        let key = &self.words[at..at + width];
        let hash = key
            .iter()
            .fold(0_u64, |hash, word| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95));
        let mask = self.places.len() - 1;
        let mut place = (hash >> 20) as usize & mask;
        while let Some(set) = (self.places[place] as usize).checked_sub(1) {
            if &self.words[set * width..(set + 1) * width] == key {
                break;
            }
            place = (place + 1) & mask;
        }
        place
    }
}
