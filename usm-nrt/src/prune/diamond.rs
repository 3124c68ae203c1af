//! An increment and a decrement of the same value in two blocks that always run together.
//!
//! A pair goes when the increment's block dominates the decrement's, which post-dominates the increment's, no way leads back
//! to the tail without the head, and nothing is given back on the way. Of all blocks that post-dominate a head, only the
//! nearest with a busy span can be its tail: before it nothing is given back, and itself it gives back. So increments wait where that block
//! is, sorted by value, and move up with it; one is looked at when something changed for it, in the order in which passes over all
//! increments would have come to it.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::cfg::{Index, OpKind, Pick, Value};
use super::dominance::DominatorTree;
use super::loops::Loops;
use super::spans::Spans;
use super::walk::Walker;

/// The increments that wait for a decrement.
pub(crate) struct Diamonds {
    down: DominatorTree,
    loops: Loops,
    spans: Spans,
    /// At each block, the increments whose nearest busy span begins there: value and place in function order.
    waiting: Vec<BTreeSet<(Value, u32)>>,
    /// Those of them that no decrement of that block can be for.
    refused: Vec<Vec<u32>>,
    /// Increments to look at, in function order.
    pending: BTreeSet<u32>,
    /// Blocks whose spans ceased to be busy, with where their increments go.
    idle: Vec<(u32, u32)>,
    /// How many of the cleared blocks are accounted for.
    cleared: usize,
}

impl Diamonds {
    pub(crate) fn new(index: &Index<'_>) -> Self {
        let mut idle = Vec::new();
        let spans = Spans::new(index, &DominatorTree::backward(index.cfg), &mut idle);
        let mut waiting = alloc::vec![BTreeSet::new(); index.cfg.len()];
        for (place, &(head, inc)) in (0u32..).zip(index.increments()) {
            if !index.is_removed(inc) {
                waiting[head as usize].insert((inc.value, place));
            }
        }
        Self {
            down: DominatorTree::forward(index.cfg),
            loops: Loops::new(index.cfg),
            spans,
            waiting,
            refused: alloc::vec![Vec::new(); index.cfg.len()],
            pending: BTreeSet::new(),
            idle,
            cleared: index.cleared().len(),
        }
    }

    /// One pass in function order. Returns how many operations were removed.
    pub(crate) fn prune(&mut self, index: &mut Index<'_>, walker: &mut Walker) -> usize {
        let mut removed = 0;
        let mut next = 0;
        self.follow(index, next);
        while let Some(&place) = self.pending.range(next..).next() {
            self.pending.remove(&place);
            index.step();
            next = place + 1;
            if self.remove(index, walker, place) {
                removed += 2;
                self.follow(index, next);
            }
            self.ask_again(index, place, next);
        }
        removed
    }

    /// Removes an increment with its decrement, if it has one now.
    fn remove(&mut self, index: &mut Index<'_>, walker: &mut Walker, place: u32) -> bool {
        let (head, inc) = index.increments()[place as usize];
        let tail = self.spans.busy(head);
        let waiting = &mut self.waiting[tail as usize];
        if !waiting.contains(&(inc.value, place)) || !index.has(OpKind::Dec, tail, inc.value) {
            return false;
        }
        if index.is_removed(inc) {
            waiting.remove(&(inc.value, place));
            return false;
        }
        let dominated = self.down.dominates(head, tail);
        let together = tail != head
            && dominated
            && self
                .loops
                .returns_over(head, tail)
                .unwrap_or_else(|| walker.tails_follow_head(index, head, &[tail], &[], None));
        waiting.remove(&(inc.value, place));
        if together {
            index.remove(OpKind::Inc, head, inc.value, Pick::Id(inc.id));
            index.remove(OpKind::Dec, tail, inc.value, Pick::First);
        } else if dominated {
            self.refused[tail as usize].push(place);
        }
        // A head that does not dominate a tail does not dominate what comes behind it either: a path past the head to
        // the tail goes on to there, and would have to come back over the head and so to the tail again.
        together
    }

    /// Asks the next increment that waits for a decrement of the same value, behind `place` in this pass.
    fn ask_again(&mut self, index: &Index<'_>, place: u32, next: u32) {
        let (head, inc) = index.increments()[place as usize];
        let tail = self.spans.busy(head);
        if index.has(OpKind::Dec, tail, inc.value) {
            self.ask(tail, inc.value, next, u32::MAX);
        }
    }

    /// Asks the first increment of `value` that waits at `tail` with a place in a range.
    fn ask(&mut self, tail: u32, value: Value, from: u32, to: u32) {
        if let Some(&(_, place)) = self.waiting[tail as usize].range((value, from)..=(value, to)).next() {
            self.pending.insert(place);
        }
    }

    /// Moves increments up behind blocks that were cleared, when the pass will next look at `next`.
    fn follow(&mut self, index: &Index<'_>, next: u32) {
        while let Some(&block) = index.cleared().get(self.cleared) {
            self.cleared += 1;
            self.spans.clear(block, &mut self.idle);
        }
        let mut idle = core::mem::take(&mut self.idle);
        for (block, busy) in idle.drain(..) {
            index.step();
            self.move_up(index, block, busy, next);
        }
        self.idle = idle;
    }

    fn move_up(&mut self, index: &Index<'_>, block: u32, busy: u32, next: u32) {
        let mut new = core::mem::take(&mut self.waiting[block as usize]);
        for place in core::mem::take(&mut self.refused[block as usize]) {
            index.step();
            new.insert((index.increments()[place as usize].1.value, place));
        }
        // Values that came and that the block gives back.
        let mut values = Vec::new();
        if index.is_longer(busy, new.len()) {
            let mut last = None;
            for &(value, _) in &new {
                if last.replace(value) != Some(value) && index.has(OpKind::Dec, busy, value) {
                    values.push(value);
                }
            }
        } else {
            let given = index.live(busy, OpKind::Dec).map(|op| op.value);
            values.extend(given.filter(|&value| new.range((value, 0)..=(value, u32::MAX)).next().is_some()));
        }
        let here = &mut self.waiting[busy as usize];
        if here.len() < new.len() {
            core::mem::swap(here, &mut new);
        }
        index.steps(new.len() + values.len());
        here.extend(new);
        for value in values {
            self.ask(busy, value, next, u32::MAX);
            // What the pass has gone past is for the next one.
            if next > 0 {
                self.ask(busy, value, 0, next - 1);
            }
        }
    }
}
