//! The free blocks of one order, in lists by size. A search looks at a bounded number of blocks
//! first, and at all that may fit only before the pool grows or refuses.

use super::super::table::{Block, NONE, Table};
use super::{Key, Travel, UNIT};

/// Blocks of a list that are looked at for the best fit.
const LOOKS: usize = 16;

/// Free blocks by size: a list for each number of units up to 64, then 32 for each power of two. A
/// list has the blocks from its size up to the next list's.
#[derive(Debug, Default)]
pub(super) struct Free {
    /// The first block of each list, up to the last list that was ever used.
    heads: alloc::vec::Vec<u32>,
    /// A bit for each list that has blocks.
    full: alloc::vec::Vec<u64>,
    /// A bit for each number in `full` that is not 0.
    words: u64,
    pub(super) bytes: u64,
    pub(super) blocks: usize,
}

/// The list of blocks of this size.
fn list_of(size: u64) -> usize {
    let units = size / UNIT;
    if units <= 32 {
        return units.saturating_sub(1) as usize;
    }
    let octave = units.ilog2() - 5;
    ((octave as usize) << 5) + (units >> octave) as usize - 1
}

impl Free {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks == 0
    }

    /// Puts a block first in its list.
    pub(super) fn push<U: Travel>(&mut self, table: &Table<U>, slot: u32, block: &Block) {
        let size = block.size.get();
        let list = list_of(size);
        if list >= self.heads.len() {
            self.heads.resize((list + 1).next_multiple_of(64), NONE);
            self.full.resize(self.heads.len() / 64, 0);
        }
        let head = core::mem::replace(&mut self.heads[list], slot);
        block.next.set(head);
        block.previous().set(NONE);
        if let Some(second) = table.get(head) {
            second.previous().set(slot);
        }
        self.full[list / 64] |= 1 << (list % 64);
        self.words |= 1 << (list / 64);
        self.bytes += size;
        self.blocks += 1;
    }

    /// Takes a block of these lists out.
    pub(super) fn remove<U: Travel>(&mut self, table: &Table<U>, block: &Block) {
        let size = block.size.get();
        let (previous, next) = (block.previous().get(), block.next.get());
        if let Some(after) = table.get(next) {
            after.previous().set(previous);
        }
        match table.get(previous) {
            Some(before) => before.next.set(next),
            None => self.set_head(list_of(size), next),
        }
        self.bytes -= size;
        self.blocks -= 1;
    }

    fn set_head(&mut self, list: usize, slot: u32) {
        self.heads[list] = slot;
        if slot == NONE {
            let word = &mut self.full[list / 64];
            *word &= !(1 << (list % 64));
            if *word == 0 {
                self.words &= !(1 << (list / 64));
            }
        }
    }

    /// The first list from this one on that has blocks.
    fn next_full(&self, from: usize) -> Option<usize> {
        let (word, bit) = (from / 64, from % 64);
        let rest = self.full.get(word)? & (u64::MAX << bit);
        if rest != 0 {
            return Some(word * 64 + rest.trailing_zeros() as usize);
        }
        let words = self.words & u64::MAX.checked_shl(word as u32 + 1).unwrap_or(0);
        let word = words.trailing_zeros() as usize;
        Some(word * 64 + self.full.get(word)?.trailing_zeros() as usize)
    }

    /// The blocks of a list, the last one that came first.
    fn list<'t, U: Travel>(&self, table: &'t Table<U>, list: usize) -> impl Iterator<Item = Key> + 't {
        let mut slot = self.heads.get(list).copied().unwrap_or(NONE);
        core::iter::from_fn(move || {
            let (block, number) = (table.get(slot)?, slot);
            slot = block.next.get();
            Some((block.size.get(), block.address.get(), number))
        })
    }

    /// All blocks.
    pub(super) fn all<'t, U: Travel>(&'t self, table: &'t Table<U>) -> impl Iterator<Item = Key> + 't {
        (0..self.heads.len()).flat_map(|list| self.list(table, list))
    }

    /// The smallest block for a request, at its lowest address, of those that are looked at. Any
    /// that fits is found: a list is searched whole where the first looks find none.
    pub(super) fn fit<U: Travel>(&self, table: &Table<U>, size: u64, alignment: u64) -> Option<Key> {
        if self.is_empty() {
            return None;
        }
        let holds = |key: &Key| {
            let start = key.1.checked_next_multiple_of(alignment);
            let end = start.and_then(|start| start.checked_add(size));
            end.is_some_and(|end| end <= key.1 + key.0)
        };
        let first = list_of(size);
        let mut list = self.next_full(first)?;
        for _ in 0..2 {
            if let Some(fit) = self.list(table, list).take(LOOKS).filter(holds).min() {
                return Some(fit);
            }
            match self.next_full(list + 1) {
                Some(next) => list = next,
                None => break,
            }
        }
        let any = size.checked_add(alignment.max(UNIT) - UNIT)?;
        let sure = list_of(any);
        let larger = self.next_full(sure + 1).and_then(|list| self.list(table, list).take(LOOKS).min());
        let fits_anywhere = larger.or_else(|| self.list(table, sure).filter(|key| key.0 >= any).min());
        // Before the pool grows or refuses: a block that happens to begin at the right place.
        fits_anywhere.or_else(|| {
            let all = || (first..=sure).flat_map(|list| self.list(table, list));
            (alignment > UNIT).then(all)?.filter(holds).min()
        })
    }

    /// The bytes of the largest block.
    pub(super) fn largest<U: Travel>(&self, table: &Table<U>) -> u64 {
        let Some(word) = self.words.checked_ilog2() else { return 0 };
        let Some(bit) = self.full[word as usize].checked_ilog2() else { return 0 };
        self.list(table, (word * 64 + bit) as usize).map(|key| key.0).max().unwrap_or(0)
    }
}
