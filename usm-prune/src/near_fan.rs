//! The blocks near a block that give something back on every path from it, exactly once: together
//! they are to what comes before it like one decrement behind it.

use alloc::vec::Vec;

use crate::index::Index;
use crate::marks::Marks;
use crate::walk::Walker;

/// Blocks between a head and its tails, the tails included, that are looked at.
const MAX_BLOCKS: usize = 64;

/// The search for them, with marks that are not cleared between searches.
pub(crate) struct NearFan {
    seen: Marks,
    tails: Vec<u32>,
    inner: Vec<u32>,
}

impl NearFan {
    pub(crate) fn new(blocks: usize) -> Self {
        Self { seen: Marks::new(blocks), tails: Vec::new(), inner: Vec::new() }
    }

    /// Whether there is a fan at `head`, which gives nothing back itself. That changes only when
    /// `head` or one of the tails that were found gives nothing back any more.
    pub(crate) fn is_at(&mut self, index: &Index<'_>, walker: &mut Walker, head: u32) -> bool {
        if index.has_dec(head) || !self.search(index, head) {
            self.tails.clear();
        }
        !self.tails.is_empty() && walker.tails_follow_head(index, head, &self.tails, &[], Some(&self.inner))
    }

    /// The tails of the fan that was looked for last, or what kept it from being one.
    pub(crate) fn tails(&self) -> &[u32] {
        &self.tails
    }

    /// Whether every path from `head` comes to a block that gives something back, before `head`
    /// again and before it ends.
    fn search(&mut self, index: &Index<'_>, head: u32) -> bool {
        self.seen.clear();
        self.tails.clear();
        self.inner.clear();
        let mut done = 0;
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
                if self.seen.insert(to) {
                    if index.has_dec(to) { self.tails.push(to) } else { self.inner.push(to) }
                }
            }
            match self.inner.get(done) {
                None => return true,
                Some(&inner) => block = inner,
            }
            done += 1;
        }
    }
}
