//! Walks that more than one pass needs, with marks that are not cleared between walks.

use alloc::vec::Vec;

use super::cfg::Index;

/// Scratch space for walks over one graph.
pub(crate) struct Walker {
    /// In which walk a block was seen last.
    seen: Vec<u32>,
    /// In which walk a block was a tail last.
    tail: Vec<u32>,
    walk: u32,
    stack: Vec<u32>,
}

impl Walker {
    pub(crate) fn new(blocks: usize) -> Self {
        Self { seen: alloc::vec![0; blocks], tail: alloc::vec![0; blocks], walk: 0, stack: Vec::new() }
    }

    /// How many walks there were.
    #[cfg(test)]
    pub(super) fn walks(&self) -> u32 {
        self.walk
    }

    fn begin(&mut self) {
        self.stack.clear();
        self.walk = self.walk.wrapping_add(1);
        if self.walk == 0 {
            self.seen.fill(0);
            self.tail.fill(0);
            self.walk = 1;
        }
    }

    /// Whether every path that comes to a tail comes from `head` and through no other tail: then each tail
    /// runs at most once for each run of the head, and never without it. `raises`: blocks where
    /// paths from the head end by raising; when given, what comes to a tail that raises is not looked at.
    pub(crate) fn tails_follow_head(
        &mut self,
        index: &Index<'_>,
        head: u32,
        tails: &[u32],
        raises: &[u32],
    ) -> bool {
        self.begin();
        for &tail in tails.iter().chain(raises) {
            self.tail[tail as usize] = self.walk;
        }
        for &tail in tails {
            self.stack.push(tail);
            while let Some(block) = self.stack.pop() {
                if core::mem::replace(&mut self.seen[block as usize], self.walk) == self.walk {
                    continue;
                }
                if !raises.is_empty() && index.cfg.is_raising(super::BlockId(block)) {
                    continue;
                }
                if block == 0 {
                    return false;
                }
                for &before in index.cfg.pred().of(block) {
                    if before == head {
                        continue;
                    }
                    if self.tail[before as usize] == self.walk {
                        return false;
                    }
                    self.stack.push(before);
                }
            }
        }
        true
    }

    /// Whether a block from `head` on, up to and without `tail`, gives any reference back.
    pub(crate) fn has_dec_between(&mut self, index: &Index<'_>, head: u32, tail: u32) -> bool {
        self.begin();
        self.stack.push(head);
        while let Some(block) = self.stack.pop() {
            if block == tail || core::mem::replace(&mut self.seen[block as usize], self.walk) == self.walk {
                continue;
            }
            if index.has_dec(block) {
                return true;
            }
            self.stack.extend(index.cfg.succ().of(block));
        }
        false
    }
}
