//! Which rows of a plan are held, and who holds bytes of a range.
//!
//! The rows of a plan are known, so they have places in the order of their first bytes, and a set
//! of places says which are held. Held rows are disjoint: of those that begin before a range ends,
//! the last one also ends last, and is the only one to compare. It is found in a step for each
//! level of the set, of which 4,096 rows have two, however many are held.

use alloc::vec;
use alloc::vec::Vec;

use crate::plan::Row;

/// A set of numbers below a bound. Level 0 has a bit for each number; each level above has a bit
/// for each word of the one below that is not zero.
#[derive(Debug)]
struct Set(Vec<Vec<u64>>);

impl Set {
    /// Numbers below `bound`, which is the greatest end of a search.
    fn new(bound: usize) -> Self {
        let mut levels = vec![vec![0; bound / 64 + 1]];
        while let Some(words) = levels.last().map(Vec::len).filter(|words| *words > 1) {
            levels.push(vec![0; words.div_ceil(64)]);
        }
        Self(levels)
    }

    fn insert(&mut self, mut number: usize) {
        for level in &mut self.0 {
            level[number / 64] |= 1 << (number % 64);
            number /= 64;
        }
    }

    fn remove(&mut self, mut number: usize) {
        for level in &mut self.0 {
            let word = &mut level[number / 64];
            *word &= !(1 << (number % 64));
            if *word != 0 {
                return;
            }
            number /= 64;
        }
    }

    /// The greatest number below `end`.
    fn last_below(&self, mut end: usize) -> Option<usize> {
        for (height, level) in self.0.iter().enumerate() {
            let below = level[end / 64] & ((1 << (end % 64)) - 1);
            if below != 0 {
                let mut number = end / 64 * 64 + below.ilog2() as usize;
                for level in self.0[..height].iter().rev() {
                    number = number * 64 + level[number].ilog2() as usize;
                }
                return Some(number);
            }
            end /= 64;
        }
        None
    }
}

/// Where a row is in the order of first bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    own: usize,
    /// The first place whose row begins at the row's end, or later.
    end: usize,
}

/// The order of a plan's rows, which never changes.
#[derive(Debug)]
pub(super) struct Places {
    /// By index of the row.
    places: Vec<Place>,
    /// The index of the row at each place.
    rows: Vec<usize>,
}

impl Places {
    pub(super) fn new(rows: &[Row]) -> Self {
        let begin = |index: usize| (rows[index].memory, rows[index].offset);
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_unstable_by_key(|index| begin(*index));
        let mut places = vec![Place::default(); rows.len()];
        for (own, index) in order.iter().enumerate() {
            let row = &rows[*index];
            let end = (row.memory, row.offset.saturating_add(row.size));
            places[*index] = Place { own, end: order.partition_point(|other| begin(*other) < end) };
        }
        Self { places, rows: order }
    }
}

/// The rows that are held.
#[derive(Debug)]
pub(super) struct Claims(Set);

impl Claims {
    pub(super) fn new(places: &Places) -> Self {
        Self(Set::new(places.rows.len()))
    }

    /// Holds the row of this index. Fails with the index of the first row that holds bytes of it.
    pub(super) fn insert(&mut self, rows: &[Row], places: &Places, index: usize) -> Result<(), usize> {
        let (row, Place { own, end }) = (&rows[index], places.places[index]);
        let holder_before = |end: usize| {
            let place = self.0.last_below(end)?;
            let other = &rows[places.rows[place]];
            let meets = other.memory == row.memory && other.offset.saturating_add(other.size) > row.offset;
            meets.then_some(place)
        };
        let Some(mut first) = holder_before(end) else {
            self.0.insert(own);
            return Ok(());
        };
        while let Some(earlier) = holder_before(first) {
            first = earlier;
        }
        Err(places.rows[first])
    }

    pub(super) fn remove(&mut self, places: &Places, index: usize) {
        self.0.remove(places.places[index].own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn a_set_finds_what_a_tree_finds() {
        for bound in [1_usize, 63, 64, 65, 4096, 4097, 300_000] {
            let (mut set, mut tree, mut random) = (Set::new(bound), BTreeSet::new(), 1_u64);
            for _ in 0..20_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let number = (random >> 33) as usize % bound;
                if random >> 62 & 1 == 0 && tree.remove(&number) {
                    set.remove(number);
                } else if tree.insert(number) {
                    set.insert(number);
                }
                let end = (random >> 20) as usize % (bound + 1);
                assert_eq!(set.last_below(end), tree.range(..end).next_back().copied(), "{bound}: {end}");
            }
        }
    }
}
