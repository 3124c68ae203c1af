//! Removes an increment and a decrement of the same value in two blocks that always run together.
//!
//! A pair is removable under four conditions: the increment's block dominates the decrement's; the
//! decrement's block post-dominates the increment's; no path returns to the tail without the head;
//! and no reference is released between them. Of all blocks that post-dominate a head, only the
//! nearest one with a busy span can be its tail: before that block nothing is released, and that
//! block itself releases. So increments wait at that block, sorted by value, and move up with it.
//! An increment is checked again when something changed for it, in the order of passes over all
//! increments.
//!
//! The extended method also accepts a fan near that block in place of its decrement.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::cfg::{OpKind, Value};
use crate::dominance::DominatorTree;
use crate::index::{Index, Pick};
use crate::loops::Loops;
use crate::near_fan::NearFan;
use crate::spans::Spans;
use crate::walk::Walker;

/// The increments that wait for a decrement.
pub(crate) struct Diamonds {
    down: DominatorTree,
    loops: Loops,
    /// The state of the extended method.
    extension: Option<Extension>,
    spans: Spans,
    /// At each block, the increments whose nearest busy span begins there: value and position in
    /// function order.
    candidates: Vec<BTreeSet<(Value, u32)>>,
    /// Those increments that no decrement of the block can match.
    refused_heads: Vec<Vec<u32>>,
    /// Increments to check, in function order.
    pending: BTreeSet<u32>,
    /// Blocks whose spans ceased to be busy, and the blocks that their increments move to.
    idle: Vec<(u32, u32)>,
    /// Number of cleared blocks that are processed.
    cleared_count: usize,
    /// Blocks that together release the increments waiting at the current block.
    tails: Vec<u32>,
}

/// Extends the reference: a tail may be a fan, and a head must not repeat before its tail.
struct Extension {
    /// Loops as seen from the exits.
    back: Loops,
    fan: NearFan,
    /// At each block, the blocks whose fan contains it.
    fans: Vec<Vec<u32>>,
}

impl Diamonds {
    /// Finds more pairs than the reference.
    pub(crate) fn extended(index: &Index<'_>) -> Self {
        let extension = Extension {
            back: Loops::backward(index.cfg),
            fan: NearFan::new(index.cfg.len()),
            fans: alloc::vec![Vec::new(); index.cfg.len()],
        };
        // Increments wait at their own blocks, which may have fans.
        let at_home = index.cfg.blocks().map(|block| (block, block));
        let mut diamonds = Self::new(index);
        diamonds.idle.splice(0..0, at_home);
        diamonds.extension = Some(extension);
        diamonds
    }

    /// Finds the reference's pairs.
    pub(crate) fn new(index: &Index<'_>) -> Self {
        let mut idle = Vec::new();
        let spans = Spans::new(index, &DominatorTree::backward(index.cfg), &mut idle);
        let mut candidates = alloc::vec![BTreeSet::new(); index.cfg.len()];
        for (place, &(head, inc)) in (0u32..).zip(index.increments()) {
            if !index.is_removed(inc) {
                candidates[head as usize].insert((inc.value, place));
            }
        }
        Self {
            down: DominatorTree::forward(index.cfg),
            loops: Loops::forward(index.cfg),
            extension: None,
            spans,
            candidates,
            refused_heads: alloc::vec![Vec::new(); index.cfg.len()],
            pending: BTreeSet::new(),
            idle,
            cleared_count: index.cleared().len(),
            tails: Vec::new(),
        }
    }

    /// One pass in function order. Returns the number of removed operations.
    pub(crate) fn prune(&mut self, index: &mut Index<'_>, walker: &mut Walker) -> usize {
        let mut removed_count = 0;
        let mut next = 0;
        self.follow(index, walker, next);
        while let Some(&place) = self.pending.range(next..).next() {
            self.pending.remove(&place);
            index.step();
            next = place + 1;
            let removed_ops = self.remove(index, walker, place);
            if removed_ops > 0 {
                removed_count += removed_ops;
                self.follow(index, walker, next);
            }
            self.schedule_next(index, walker, place, next);
        }
        removed_count
    }

    /// Repeats passes until nothing changes.
    pub(crate) fn prune_all(&mut self, index: &mut Index<'_>, walker: &mut Walker) -> usize {
        let mut removed_count = 0;
        loop {
            match self.prune(index, walker) {
                0 => return removed_count,
                more => removed_count += more,
            }
        }
    }

    /// Removes an increment with its decrement, or with those of a fan, if they exist now. Returns
    /// the number of removed operations.
    fn remove(&mut self, index: &mut Index<'_>, walker: &mut Walker, place: u32) -> usize {
        let (head, inc) = index.increments()[place as usize];
        let busy = self.spans.busy(head);
        if !self.candidates[busy as usize].contains(&(inc.value, place)) {
            return 0;
        }
        if index.is_removed(inc) {
            self.candidates[busy as usize].remove(&(inc.value, place));
            return 0;
        }
        self.find_tails(index, walker, busy);
        if !all_release(index, &self.tails, inc.value) {
            return 0;
        }
        let repeats = |extension: &Extension| extension.back.returns_through(busy, head) != Some(true);
        let is_dominated = self.down.dominates(head, busy) && !self.extension.as_ref().is_some_and(repeats);
        let run_together = if head == busy {
            // The pass over single blocks leaves a block's own decrements alone.
            self.tails.first() != Some(&busy)
        } else {
            let is_repeated = self.loops.returns_through(head, busy);
            is_dominated
                && is_repeated.unwrap_or_else(|| walker.tails_follow_head(index, head, &[busy], &[], None))
        };
        self.candidates[busy as usize].remove(&(inc.value, place));
        if run_together {
            index.remove(OpKind::Inc, head, inc.value, Pick::Id(inc.id));
            for &tail in &self.tails {
                index.remove(OpKind::Dec, tail, inc.value, Pick::First);
            }
            return 1 + self.tails.len();
        }
        if is_dominated {
            self.refused_heads[busy as usize].push(place);
        }
        // If a head does not dominate a tail, it dominates no later block either: a path past the
        // head to the tail continues there, and would have to return through the head to the tail
        // again. If a head repeats before a tail, it also repeats before every later block.
        0
    }

    /// Finds the blocks that together release the increments waiting at `busy`: the block itself,
    /// or those of its fan.
    fn find_tails(&mut self, index: &Index<'_>, walker: &mut Walker, busy: u32) {
        self.tails.clear();
        if index.has_dec(busy) {
            self.tails.push(busy);
        } else if let Some(extension) = &mut self.extension {
            if extension.fan.is_at(index, walker, busy) {
                self.tails.extend(extension.fan.tails());
            }
        }
    }

    /// Schedules the next increment, behind `place` in this pass, that waits for a decrement of the
    /// same value.
    fn schedule_next(&mut self, index: &Index<'_>, walker: &mut Walker, place: u32, next: u32) {
        let (head, inc) = index.increments()[place as usize];
        let busy = self.spans.busy(head);
        self.find_tails(index, walker, busy);
        if all_release(index, &self.tails, inc.value) {
            self.ask(busy, inc.value, next, u32::MAX);
        }
    }

    /// Schedules the first increment of `value` that waits at `tail` with a position in a range.
    fn ask(&mut self, tail: u32, value: Value, from: u32, to: u32) {
        if let Some(&(_, place)) = self.candidates[tail as usize].range((value, from)..=(value, to)).next() {
            self.pending.insert(place);
        }
    }

    /// Moves increments up behind cleared blocks; the pass will next check `next`.
    fn follow(&mut self, index: &Index<'_>, walker: &mut Walker, next: u32) {
        let mut changed_blocks = Vec::new();
        while let Some(&block) = index.cleared().get(self.cleared_count) {
            self.cleared_count += 1;
            self.spans.clear(block, &mut self.idle);
            if let Some(extension) = &mut self.extension {
                changed_blocks.append(&mut extension.fans[block as usize]);
                changed_blocks.push(block);
            }
        }
        let mut idle = core::mem::take(&mut self.idle);
        for (block, busy) in idle.drain(..) {
            index.step();
            self.move_up(index, walker, block, busy, next);
        }
        self.idle = idle;
        // A block occurs once for each time that its fan was checked.
        changed_blocks.sort_unstable();
        changed_blocks.dedup();
        for block in changed_blocks {
            // If a block's fan changed, the increments that wait there arrive anew.
            if self.spans.busy(block) == block {
                self.move_up(index, walker, block, block, next);
            }
        }
    }

    fn move_up(&mut self, index: &Index<'_>, walker: &mut Walker, block: u32, busy: u32, next: u32) {
        let mut new = core::mem::take(&mut self.candidates[block as usize]);
        for place in core::mem::take(&mut self.refused_heads[block as usize]) {
            index.step();
            new.insert((index.increments()[place as usize].1.value, place));
        }
        if new.is_empty() {
            return;
        }
        let values = self.values(index, walker, busy, &new);
        let candidates_of_block = &mut self.candidates[busy as usize];
        if candidates_of_block.len() < new.len() {
            core::mem::swap(candidates_of_block, &mut new);
        }
        index.steps(new.len() + values.len());
        candidates_of_block.extend(new);
        for value in values {
            self.ask(busy, value, next, u32::MAX);
            // Increments that the pass has already passed are for the next one.
            if next > 0 {
                self.ask(busy, value, 0, next - 1);
            }
        }
    }

    /// The values of increments that reach `busy` and are released there.
    fn values(
        &mut self,
        index: &Index<'_>,
        walker: &mut Walker,
        busy: u32,
        new: &BTreeSet<(Value, u32)>,
    ) -> Vec<Value> {
        self.find_tails(index, walker, busy);
        if let (false, Some(Extension { fan, fans, .. })) = (index.has_dec(busy), &mut self.extension) {
            fan.tails().iter().for_each(|&tail| fans[tail as usize].push(busy));
        }
        let mut values = Vec::new();
        let Some(&tail) = self.tails.first() else { return values };
        if index.is_longer(tail, new.len()) {
            let mut last = None;
            for &(value, _) in new {
                if last.replace(value) != Some(value) && all_release(index, &self.tails, value) {
                    values.push(value);
                }
            }
        } else {
            let decremented_values = index.live(tail, OpKind::Dec).map(|op| op.value);
            values.extend(decremented_values.filter(|&value| {
                new.range((value, 0)..=(value, u32::MAX)).next().is_some()
                    && all_release(index, &self.tails, value)
            }));
        }
        values
    }
}

/// Whether there are tails, and all of them release `value`.
fn all_release(index: &Index<'_>, tails: &[u32], value: Value) -> bool {
    !tails.is_empty() && tails.iter().all(|&tail| index.has(OpKind::Dec, tail, value))
}
