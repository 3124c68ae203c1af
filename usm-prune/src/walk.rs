//! The walk back from tails to their head, with marks that are not cleared between walks.

use alloc::vec::Vec;

use crate::BlockId;
use crate::cfg::Cfg;
use crate::index::Index;
use crate::marks::Marks;

/// Scratch space for walks over one graph.
pub(crate) struct Walker {
    marks: Marks,
    /// Tails, and blocks that raise.
    ends: Marks,
    /// Blocks between head and tails, tails included.
    between: Marks,
    stack: Vec<u32>,
    /// Blocks reachable from the entry, and those reachable before any block raises.
    is_reached: Vec<bool>,
    reached_unraised: Vec<bool>,
}

impl Walker {
    pub(crate) fn new(cfg: &Cfg) -> Self {
        let blocks = cfg.len();
        Self {
            marks: Marks::new(blocks),
            ends: Marks::new(blocks),
            between: Marks::new(blocks),
            stack: Vec::new(),
            is_reached: reached(cfg, |_| true),
            reached_unraised: reached(cfg, |block| !cfg.is_raising(BlockId(block))),
        }
    }

    /// The blocks reachable from the entry.
    pub(crate) fn reached(&self) -> &[bool] {
        &self.is_reached
    }

    fn begin(&mut self) {
        self.stack.clear();
        self.marks.clear();
        self.ends.clear();
        self.between.clear();
    }

    /// Whether every path to a tail comes from `head` and passes no other tail: each tail then runs
    /// at most once for each run of the head, and never without it. `raises` has the blocks where
    /// paths from the head end by raising; with it, paths to a raising tail are ignored. `inner`,
    /// if given, has all other blocks on the paths from the head to tails and raises; the walk is
    /// then no larger than these sets.
    pub(crate) fn tails_follow_head(
        &mut self,
        index: &Index<'_>,
        head: u32,
        tails: &[u32],
        raises: &[u32],
        inner: Option<&[u32]>,
    ) -> bool {
        self.begin();
        for &tail in tails.iter().chain(raises) {
            self.ends.insert(tail);
        }
        for &block in tails.iter().chain(inner.unwrap_or_default()) {
            self.between.insert(block);
        }
        for &tail in tails {
            self.stack.push(tail);
            while let Some(block) = self.stack.pop() {
                if !self.marks.insert(block) {
                    continue;
                }
                index.step();
                let has_raises = !raises.is_empty();
                if has_raises && index.cfg.is_raising(BlockId(block)) {
                    continue;
                }
                // Unreachable blocks lead to no reachable block.
                if self.is_reached[head as usize] && !self.is_reached[block as usize] {
                    continue;
                }
                // The entry reaches a block that is not inner, without the head or behind a tail.
                let flags = if has_raises { &self.reached_unraised } else { &self.is_reached };
                let outside = inner.is_some() && !self.between.contains(block);
                if block == 0 || outside && flags[block as usize] {
                    return false;
                }
                for &before in index.cfg.pred().of(block) {
                    if before == head {
                        continue;
                    }
                    if self.ends.contains(before) {
                        return false;
                    }
                    self.stack.push(before);
                }
            }
        }
        true
    }
}

/// The blocks that the entry reaches through blocks that continue.
fn reached(cfg: &Cfg, goes_on: impl Fn(u32) -> bool) -> Vec<bool> {
    let mut is_reached = alloc::vec![false; cfg.len()];
    let mut stack = alloc::vec![0];
    while let Some(block) = stack.pop() {
        if !core::mem::replace(&mut is_reached[block as usize], true) && goes_on(block) {
            stack.extend(cfg.succ().of(block));
        }
    }
    is_reached
}
