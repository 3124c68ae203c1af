//! The search: at the heaviest stage it lets go of the root that gains most for its time, until no
//! stage exceeds the limit; then it takes back what was not needed.

use alloc::vec::Vec;

use super::stages::{Change, Item, Stages};

/// Evaluations of one step after the first useful one.
const LOOKS: usize = 12;

/// Random numbers that are equal on every machine.
#[derive(Clone, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

/// A way to let go of a root, and its worth.
#[derive(Clone, Debug)]
struct Move {
    changes: Vec<Change>,
    store: Option<u32>,
    worth: f64,
}

/// What the last look at a root said.
#[derive(Clone, Copy, Debug)]
struct Score {
    first: usize,
    worth: f64,
}

impl Stages<'_> {
    /// The stages that a root is held into around this one without being used.
    fn gap(&self, root: u32, at: usize) -> Option<Change> {
        let n = self.model.ops.len();
        let facts = &self.model.roots[root as usize];
        if facts.producer.is_none() || !self.resident.get(root, at) || self.accesses.get(root, at) {
            return None;
        }
        let before = self.accesses.last_below(root, at)?;
        let last = match self.accesses.first_from(root, at + 1) {
            Some(next) if next <= n => next,
            _ if facts.last as usize == n => n,
            _ => (at..=n).take_while(|&stage| self.resident.get(root, stage)).last()?,
        };
        Some(Change { root, first: before + 1, last, hold: false })
    }

    /// The same gap, with the inputs of the producer held until its end.
    fn with_inputs(&self, gap: Change) -> Option<Vec<Change>> {
        let op = self.model.roots[gap.root as usize].producer?;
        let mut changes = alloc::vec![gap];
        for &input in &self.model.ops[op as usize].uses {
            if !self.resident.get(input, gap.last) {
                self.model.roots[input as usize].producer?;
                let before = self.accesses.last_below(input, gap.last)?;
                changes.push(Change { root: input, first: before + 1, last: gap.last, hold: true });
            }
        }
        (changes.len() > 1).then_some(changes)
    }

    /// The best way to let go of a root in a gap.
    fn best_move(&mut self, gap: Change) -> Option<Move> {
        let facts = &self.model.roots[gap.root as usize];
        let mut ways = alloc::vec![(alloc::vec![gap], None)];
        if !self.is_stored[gap.root as usize] {
            ways.extend(facts.copy.map(|_| (alloc::vec![gap], Some(gap.root))));
            ways.extend(self.with_inputs(gap).map(|changes| (changes, None)));
        }
        let (excess, cost) = (self.excess, self.cost);
        let mut best: Option<Move> = None;
        for (changes, store) in ways {
            let Some(undo) = self.apply(&changes, store) else { continue };
            let gain = excess.saturating_sub(self.excess);
            // A change that costs nothing comes first.
            let time = self.cost.saturating_sub(cost) as f64 + 1e-3;
            self.undo(undo);
            let worth = gain as f64 / time;
            if gain > 0 && best.as_ref().is_none_or(|best| worth > best.worth) {
                best = Some(Move { changes, store, worth });
            }
        }
        best
    }

    /// Lets go of roots until no stage exceeds the limit. False if it found no way.
    pub(super) fn descend(
        &mut self,
        limit: u64,
        mut noise: Option<&mut Random>,
        stop: &dyn Fn() -> bool,
    ) -> bool {
        self.set_limit(limit);
        let initial = Score { first: usize::MAX, worth: f64::INFINITY };
        let mut scores = alloc::vec![initial; self.model.roots.len()];
        let mut steps = 0_u64;
        while self.excess > 0 {
            steps += 1;
            if steps % 16 == 0 && stop() {
                return false;
            }
            let Some(at) = (0..self.stages.len()).max_by_key(|&at| self.stages[at].peak) else { return true };
            let mut gaps: Vec<(f64, Change)> = Vec::new();
            for root in 0..self.model.roots.len() as u32 {
                if let Some(gap) = self.gap(root, at) {
                    let score = scores[root as usize];
                    let worth = if score.first == gap.first { score.worth } else { f64::INFINITY };
                    if worth > 0.0 {
                        gaps.push((worth, gap));
                    }
                }
            }
            gaps.sort_by(|(a, _), (b, _)| b.total_cmp(a));
            let (mut best, mut best_worth): (Option<Move>, f64) = (None, 0.0);
            let mut looks = 0;
            for &(worth, gap) in &gaps {
                if best.is_some() && worth.is_finite() {
                    looks += 1;
                    if best_worth >= worth || looks > LOOKS {
                        break;
                    }
                }
                let candidate = self.best_move(gap);
                let mut worth = candidate.as_ref().map_or(0.0, |step| step.worth);
                scores[gap.root as usize] = Score { first: gap.first, worth };
                if let Some(random) = noise.as_deref_mut() {
                    worth *= 0.5 + random.below(1000) as f64 / 1000.0;
                }
                if worth > best_worth {
                    (best, best_worth) = (candidate, worth);
                }
            }
            let Some(best) = best else { return false };
            let ends: Vec<usize> = best.changes.iter().map(|change| change.last).collect();
            if self.apply(&best.changes, best.store).is_none() {
                return false;
            }
            // What these stages use has other gaps now.
            for at in ends {
                for &root in &self.stages[at].roots {
                    scores[root as usize] = initial;
                }
            }
        }
        true
    }

    /// Holds again what the limit leaves room for, the dearest first.
    pub(super) fn take_back(&mut self) {
        let mut all: Vec<(u64, usize, u32)> = Vec::new();
        for (at, stage) in self.stages.iter().enumerate() {
            let roots = stage.roots.iter().filter(|&&root| self.is_brought_back(root, at));
            all.extend(roots.map(|&root| (self.time_to_bring_back(root), at, root)));
        }
        all.sort_unstable_by(|a, b| b.cmp(a));
        for (_, at, root) in all {
            if self.is_brought_back(root, at) {
                self.hold_until(root, at, true);
            }
        }
        for root in 0..self.is_stored.len() as u32 {
            self.forget_copy(root);
        }
    }

    fn time_to_bring_back(&self, root: u32) -> u64 {
        let facts = &self.model.roots[root as usize];
        match (self.is_stored[root as usize], facts.copy, facts.producer) {
            (true, Some(copy), _) => copy,
            (_, _, Some(op)) => self.model.ops[op as usize].cost,
            _ => 0,
        }
    }

    fn is_brought_back(&self, root: u32, at: usize) -> bool {
        self.accesses.get(root, at)
            && !self.resident.get(root, at)
            && self.model.roots[root as usize].producer.is_some_and(|op| op as usize != at)
    }

    /// Holds a root from its last use until a stage that brings it back. With `only_if_better`, not
    /// where that exceeds the limit or saves nothing.
    fn hold_until(&mut self, root: u32, at: usize, only_if_better: bool) {
        let Some(before) = self.accesses.last_below(root, at) else { return };
        let (excess, cost) = (self.excess, self.cost);
        let change = Change { root, first: before + 1, last: at, hold: true };
        if let Some(undo) = self.apply(&[change], None) {
            if only_if_better && (self.excess > excess || self.cost >= cost) {
                self.undo(undo);
            }
        }
    }

    /// Takes a copy to the other memory back that nobody fetches.
    fn forget_copy(&mut self, root: u32) {
        let fetches = |stage: &super::stages::Stage| stage.items.contains(&Item::Fetch(root));
        if self.is_stored[root as usize] && !self.stages.iter().any(fetches) {
            self.is_stored[root as usize] = false;
            self.cost -= u128::from(self.model.roots[root as usize].copy.unwrap_or(0));
        }
    }

    /// A change with less time under the same limit: holds again all that some stages bring back,
    /// and descends anew.
    pub(super) fn improve(
        &mut self,
        limit: u64,
        rounds: usize,
        random: &mut Random,
        stop: &dyn Fn() -> bool,
    ) {
        let stages = self.stages.len();
        for round in 0..rounds {
            if self.cost == 0 || stop() {
                return;
            }
            let mut other = self.clone();
            let width = 1 + random.below((stages / 2).max(1));
            let begin = random.below(stages);
            for at in begin..(begin + width).min(stages) {
                let roots: Vec<u32> = other.stages[at].roots.clone();
                for root in roots {
                    if other.is_brought_back(root, at) && random.below(4) > 0 {
                        other.hold_until(root, at, false);
                    }
                }
            }
            let noise = if round % 3 == 0 { None } else { Some(&mut *random) };
            if other.descend(limit, noise, stop) {
                other.take_back();
                if other.excess == 0 && other.cost < self.cost {
                    *self = other;
                }
            }
        }
    }
}
