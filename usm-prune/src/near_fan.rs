//! Finds the blocks near a head that release a reference exactly once on every path from it. Seen
//! from an earlier block they act like one decrement behind the head.

use alloc::vec::Vec;

use crate::index::Index;
use crate::marks::Marks;
use crate::walk::Walker;

/// Maximum number of blocks from a head to its tails, tails included.
const MAX_BLOCKS: usize = 64;

/// The search, with marks that are not cleared between searches.
pub(crate) struct NearFan {
    marks: Marks,
    tails: Vec<u32>,
    inner: Vec<u32>,
}

impl NearFan {
    pub(crate) fn new(blocks: usize) -> Self {
        Self { marks: Marks::new(blocks), tails: Vec::new(), inner: Vec::new() }
    }

    /// Whether `head`, which releases nothing itself, has a fan. The answer changes only when
    /// `head` or one of the found tails stops releasing.
    pub(crate) fn is_at(&mut self, index: &Index<'_>, walker: &mut Walker, head: u32) -> bool {
        if index.has_dec(head) || !self.search(index, head) {
            self.tails.clear();
        }
        !self.tails.is_empty() && walker.tails_follow_head(index, head, &self.tails, &[], Some(&self.inner))
    }

    /// The tails of the last fan, or the blocks that prevented it.
    pub(crate) fn tails(&self) -> &[u32] {
        &self.tails
    }

    /// Whether every path from `head` reaches a releasing block before it reaches `head` again or
    /// ends.
    fn search(&mut self, index: &Index<'_>, head: u32) -> bool {
        self.marks.clear();
        self.tails.clear();
        self.inner.clear();
        let mut end = 0;
        let mut block = head;
        loop {
            let next = index.cfg.succ().of(block);
            if next.is_empty() || next.len() > MAX_BLOCKS {
                return false;
            }
            for &to in next {
                index.step();
                if to == head || self.tails.len() + self.inner.len() > MAX_BLOCKS {
                    return false;
                }
                if self.marks.insert(to) {
                    if index.has_dec(to) { self.tails.push(to) } else { self.inner.push(to) }
                }
            }
            match self.inner.get(end) {
                None => return true,
                Some(&inner) => block = inner,
            }
            end += 1;
        }
    }
}
