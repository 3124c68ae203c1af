//! What the arena must contain: for each range of a root the key of the content written there last.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

/// The keys by root, in ranges that do not overlap.
#[derive(Debug, Default)]
pub(super) struct Truth {
    roots: BTreeMap<usize, Vec<(Range<u64>, u64)>>,
}

impl Truth {
    /// Replaces the content of a range of a root.
    pub(super) fn write(&mut self, root: usize, range: Range<u64>, key: u64) {
        let old = self.roots.entry(root).or_default();
        let mut new = Vec::with_capacity(old.len() + 2);
        for (piece, key) in old.drain(..) {
            for part in [piece.start..piece.end.min(range.start), piece.start.max(range.end)..piece.end] {
                if part.start < part.end {
                    new.push((part, key));
                }
            }
        }
        new.push((range, key));
        new.sort_unstable_by_key(|(piece, _)| piece.start);
        *old = new;
    }

    /// The keys of a range of a root; `default_key` where nothing was written.
    pub(super) fn pieces(&self, root: usize, range: Range<u64>, default_key: u64) -> Vec<(Range<u64>, u64)> {
        let (mut pieces, mut at) = (Vec::new(), range.start);
        for (piece, key) in self.roots.get(&root).into_iter().flatten() {
            let part = piece.start.max(range.start)..piece.end.min(range.end);
            if part.start >= part.end {
                continue;
            }
            if at < part.start {
                pieces.push((at..part.start, default_key));
            }
            at = part.end;
            pieces.push((part, *key));
        }
        if at < range.end {
            pieces.push((at..range.end, default_key));
        }
        pieces
    }
}
