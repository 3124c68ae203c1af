//! One end of an order: what may run next from it, and the descents and sets of a search.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::key_set::{KeySet, hash};
use super::lists::Key;
use super::lives::Lives;
use super::parts::Parts;
use super::reach::Budget;
use super::walk::{Walk, work_of};

/// Longest chain that is tried as a descent.
const CHAIN: usize = 96;
/// Most ready operators from which a chain is tried in one state.
const TRIES: usize = 48;
/// Most parts of a descent that are compared with it.
const PARTS: usize = 2048;

pub(super) enum Outcome {
    Goal(Vec<u32>),
    Descent(Vec<u32>),
    /// Every way on needs at least so many bytes.
    Blocked(u64),
    Unknown,
}

/// One end of the order, with the descents taken from it.
pub(super) struct Side<'l> {
    pub(super) walk: Walk<'l>,
    /// Operators that the other side has not taken.
    pub(super) open: Vec<bool>,
    pub(super) descents: Vec<Vec<u32>>,
    /// Whether states below the begin are still looked for.
    looks: bool,
    /// For each operator the last walk over targets that met it, and the number of this walk.
    stamps: Vec<u32>,
    stamp: u32,
}

impl<'l> Side<'l> {
    pub(super) fn new(lives: &'l Lives) -> Self {
        let (open, stamps) = (alloc::vec![true; lives.len()], alloc::vec![0; lives.len()]);
        Self { walk: Walk::new(lives), open, descents: Vec::new(), looks: true, stamps, stamp: 0 }
    }

    /// Takes back what was taken, and returns it.
    pub(super) fn give_back(&mut self, other: &mut Side<'_>) -> Vec<Vec<u32>> {
        self.looks = true;
        let descents = core::mem::take(&mut self.descents);
        for &op in descents.iter().rev().flat_map(|list| list.iter().rev()) {
            self.walk.take_back(op);
            other.open[op as usize] = true;
        }
        descents
    }

    /// The operators that would run for `op`: those that waited for it, and itself; `None` if it
    /// must wait for others.
    fn step_to(&mut self, op: u32) -> Option<Step> {
        if !self.open[op as usize] {
            return None;
        }
        if self.walk.is_ready(op) {
            return Some(Step::One(op));
        }
        // All of them would be a part of the step.
        if self.walk.predecessors_left(op) as usize > CHAIN {
            return None;
        }
        let mut step = Vec::new();
        let mut open = alloc::vec![(op, false)];
        while let Some((op, complete)) = open.pop() {
            if complete {
                if !step.contains(&op) {
                    step.push(op);
                }
                continue;
            }
            if !self.open[op as usize] {
                return None;
            }
            open.push((op, true));
            if !self.walk.is_ready(op) {
                let before = &self.walk.lives.before[op as usize];
                self.walk.steps += work_of(before.len());
                for &earlier in before {
                    if self.walk.is_done(earlier) || step.contains(&earlier) {
                        continue;
                    }
                    if !self.waits(earlier) || open.len() > CHAIN {
                        return None;
                    }
                    open.push((earlier, false));
                }
            }
        }
        Some(Step::Several(step))
    }

    /// Whether the operator is a part of its successor's move.
    fn waits(&self, op: u32) -> bool {
        let after = &self.walk.lives.after[op as usize];
        self.walk.lives.ends_nothing[op as usize]
            && after.iter().any(|&successor| self.open[successor as usize])
    }

    /// Adds the operators that a step from here may lead to, from one that is ready on.
    fn add_targets(&mut self, op: u32, targets: &mut Vec<u32>) {
        if !self.open[op as usize] {
            return;
        }
        let mut open = alloc::vec![op];
        while let Some(op) = open.pop() {
            if !self.waits(op) {
                targets.push(op);
                continue;
            }
            for &successor in &self.walk.lives.after[op as usize] {
                if self.open[successor as usize] && self.stamps[successor as usize] != self.stamp {
                    self.stamps[successor as usize] = self.stamp;
                    open.push(successor);
                }
            }
        }
    }

    /// The operators that steps from here may lead to, in ascending order.
    fn targets(&mut self) -> Vec<u32> {
        self.stamp += 1;
        let mut targets = Vec::with_capacity(self.walk.ready().len());
        for at in 0..self.walk.ready().len() {
            self.add_targets(self.walk.ready()[at], &mut targets);
        }
        targets.sort_unstable();
        targets
    }

    /// Takes chains while there are any: from one operator after the other, round and round.
    pub(super) fn take_chains(&mut self, limit: u64, other: &mut Side<'_>, budget: &mut Budget<'_>) {
        // Keys as in the lists, so that the code of such sets is there once.
        let key = |op: u32| -> Key { (0, 0, op) };
        let mut targets: BTreeSet<Key> = self.targets().into_iter().map(key).collect();
        budget.steps = budget.steps.saturating_sub(targets.len() as u64);
        let mut next = 0;
        let mut failures = 0;
        let mut fresh = Vec::new();
        while failures < targets.len() && budget.steps > 0 && !(budget.stop)() {
            let next_target = targets.range(key(next)..).next();
            let Some(&(.., op)) = next_target.or_else(|| targets.first()) else { break };
            let before = self.walk.steps;
            let chain = self.step_to(op).and_then(|step| self.chain_from(step, limit));
            budget.steps = budget.steps.saturating_sub(1 + self.walk.steps - before);
            let Some(chain) = chain else {
                (failures, next) = (failures + 1, op + 1);
                continue;
            };
            self.stamp += 1;
            for &op in &chain {
                self.walk.run(op);
                other.open[op as usize] = false;
                targets.remove(&key(op));
            }
            for &op in &chain {
                for &successor in &self.walk.lives.after[op as usize] {
                    if self.walk.is_ready(successor) {
                        self.add_targets(successor, &mut fresh);
                    }
                }
            }
            targets.extend(fresh.drain(..).map(key));
            self.descents.push(chain);
            (failures, next) = (0, op);
        }
    }

    /// A descent that begins with a step, in which every operator needs the one before it, apart
    /// from those that waited. So its predecessor-closed parts are its beginnings, with some of the
    /// latter, which only add bytes.
    fn chain_from(&mut self, step: Step, limit: u64) -> Option<Vec<u32>> {
        let mut chain: Vec<u32> = Vec::new();
        let (mut least, mut slack) = (self.walk.level, 0);
        let mut step = step;
        let mut is_descent = false;
        'steps: loop {
            for &op in step.ops() {
                if self.walk.cost(op) > limit || chain.len() >= CHAIN {
                    break 'steps;
                }
                slack = slack.max(self.walk.slack_ended_by(op));
                self.walk.run(op);
                chain.push(op);
            }
            if self.walk.level + slack <= least {
                is_descent = true;
                break;
            }
            least = least.min(self.walk.level);
            let Some(&op) = step.ops().last() else { break };
            let after = &self.walk.lives.after[op as usize];
            self.walk.steps += work_of(after.len());
            // The first of those that leave the fewest bytes.
            let mut best: Option<(u64, Step)> = None;
            for &op in after {
                let Some(next) = self.step_to(op) else { continue };
                let level = match &next {
                    Step::One(op) => self.walk.level_after(*op),
                    Step::Several(_) => u64::MAX,
                };
                if best.as_ref().is_none_or(|(least, _)| level < *least) {
                    best = Some((level, next));
                }
            }
            let Some((_, next)) = best else { break };
            step = next;
        }
        for &op in chain.iter().rev() {
            self.walk.take_back(op);
        }
        is_descent.then_some(chain)
    }

    /// Explores every state within the limit until one has all `goal` operators or is a descent.
    pub(super) fn explore(&mut self, goal: usize, limit: u64, budget: &mut Budget<'_>) -> Outcome {
        let mut states = KeySet::default();
        let begin = self.walk.level;
        let mut least_cost = u64::MAX;
        let mut path: Vec<u32> = Vec::new();
        let mut key = 0;
        let Some(first) = self.moves(limit, &mut least_cost, budget.steps) else { return Outcome::Unknown };
        let mut frames = alloc::vec![Frame { moves: first, next: 0, ran: 0 }];
        let mut outcome = Outcome::Blocked(0);
        let mut ticks = 0_u32;
        while let Some(frame) = frames.last_mut() {
            let Some(step) = frame.moves.get(frame.next) else {
                let ran = frame.ran;
                frames.pop();
                for op in path.split_off(path.len() - ran).into_iter().rev() {
                    self.walk.take_back(op);
                    key ^= hash(op);
                }
                continue;
            };
            frame.next += 1;
            for &op in step.ops() {
                self.walk.run(op);
                path.push(op);
                key ^= hash(op);
            }
            let ran = step.ops().len();
            budget.steps = budget.steps.saturating_sub(1 + ran as u64);
            ticks = ticks.wrapping_add(1);
            if self.walk.count == goal {
                outcome = Outcome::Goal(path.clone());
                break;
            }
            if budget.sets == 0 || budget.steps == 0 || (ticks % 1024 == 0 && (budget.stop)()) {
                outcome = Outcome::Unknown;
                break;
            }
            if !states.insert(key) {
                for op in path.split_off(path.len() - ran).into_iter().rev() {
                    self.walk.take_back(op);
                    key ^= hash(op);
                }
                continue;
            }
            budget.sets -= 1;
            if self.looks && self.walk.level <= begin {
                let before = self.walk.steps;
                let descent = self.descent(&path, begin, limit);
                budget.steps = budget.steps.saturating_sub(self.walk.steps - before);
                if let Some(descent) = descent {
                    outcome = Outcome::Descent(descent);
                    break;
                }
            }
            let before = self.walk.steps;
            let Some(moves) = self.moves(limit, &mut least_cost, budget.steps) else {
                outcome = Outcome::Unknown;
                break;
            };
            let ready = self.walk.ready().len() as u64;
            budget.steps = budget.steps.saturating_sub(self.walk.steps - before + ready);
            frames.push(Frame { moves, next: 0, ran });
        }
        for &op in path.iter().rev() {
            self.walk.take_back(op);
        }
        match outcome {
            Outcome::Blocked(_) => Outcome::Blocked(least_cost),
            outcome => outcome,
        }
    }

    /// The moves from here: a chain alone, or every step, the best first. `None` if finding them
    /// takes more than so many steps.
    fn moves(&mut self, limit: u64, least_cost: &mut u64, most: u64) -> Option<Vec<Step>> {
        let most = self.walk.steps.saturating_add(most);
        let targets = self.targets();
        let mut steps = Vec::with_capacity(targets.len());
        for op in targets {
            if self.walk.steps > most {
                return None;
            }
            let Some(step) = self.step_to(op) else { continue };
            if steps.len() < TRIES
                && let Some(chain) = self.chain_from(step.clone(), limit)
            {
                return Some(alloc::vec![Step::Several(chain)]);
            }
            steps.push(step);
        }
        let mut within: Vec<(u64, Step)> = Vec::with_capacity(steps.len());
        for step in steps {
            let [before @ .., last] = step.ops() else { continue };
            if self.walk.steps > most {
                return None;
            }
            let (mut ran, mut level) = (0, None);
            for &op in before {
                if self.walk.cost(op) > limit {
                    break;
                }
                self.walk.run(op);
                ran += 1;
            }
            let cost = self.walk.cost(step.ops()[ran]);
            if cost > limit {
                *least_cost = (*least_cost).min(cost);
            } else {
                level = Some(self.walk.level_after(*last));
            }
            before[..ran].iter().rev().for_each(|&op| self.walk.take_back(op));
            if let Some(level) = level {
                within.push((level, step));
            }
        }
        within.sort_unstable_by(|(level, step), (other, another)| {
            (level, another.ops()).cmp(&(other, step.ops()))
        });
        Some(within.into_iter().map(|(_, step)| step).collect())
    }

    /// The descent inside of a path that ends with few live bytes: up to the state with the fewest
    /// of all its predecessor-closed parts, of equals the largest.
    fn descent(&mut self, path: &[u32], begin: u64, limit: u64) -> Option<Vec<u32>> {
        for &op in path.iter().rev() {
            self.walk.take_back(op);
        }
        let mut parts =
            Parts { path, best: (begin, Reverse(0)), set: Vec::new(), second: u64::MAX, left: PARTS };
        let complete = parts.compare(&mut self.walk);
        let mut descent = None;
        if complete && !parts.set.is_empty() {
            let list: Vec<u32> =
                path.iter().zip(&parts.set).filter(|(_, is_in)| **is_in).map(|(&op, _)| op).collect();
            descent = self.is_descent(&list, limit).then_some(list);
        }
        if !complete {
            // Longer paths have more parts.
            self.looks = false;
        }
        for &op in path {
            self.walk.run(op);
        }
        descent
    }

    /// Whether the list keeps within the limit and ends at or below its parts, slack included.
    fn is_descent(&mut self, list: &[u32], limit: u64) -> bool {
        let (mut ran, mut slack) = (0, 0);
        for &op in list {
            if !self.walk.is_ready(op) || self.walk.cost(op) > limit {
                break;
            }
            slack = slack.max(self.walk.slack_ended_by(op));
            self.walk.run(op);
            ran += 1;
        }
        let end = self.walk.level;
        for &op in list[..ran].iter().rev() {
            self.walk.take_back(op);
        }
        if ran < list.len() {
            return false;
        }
        let mut parts = Parts {
            path: list,
            best: (u64::MAX, Reverse(0)),
            set: Vec::new(),
            second: u64::MAX,
            left: PARTS,
        };
        parts.compare(&mut self.walk) && end + slack <= parts.second
    }
}

/// The operators that run for one, which is the last of them.
#[derive(Clone, Debug)]
enum Step {
    One(u32),
    Several(Vec<u32>),
}

impl Step {
    fn ops(&self) -> &[u32] {
        match self {
            Self::One(op) => core::slice::from_ref(op),
            Self::Several(ops) => ops,
        }
    }
}

struct Frame {
    moves: Vec<Step>,
    next: usize,
    /// Operators that led here from the frame below.
    ran: usize,
}
