//! Whether some order keeps within a limit, from one set of done operators to another.
//!
//! A state is a predecessor-closed set of done operators. The states within the limit are explored
//! depth first, each once. Most of them need not be, because some moves are never wrong:
//!
//! A *descent* is a list of operators that keeps within the limit, and after which fewer or as many
//! bytes are live as after any predecessor-closed part of it. If an order within the limit leads
//! from here to the end, one that begins with the descent does too. The live bytes of a set are
//! submodular: with the descent done first, every other operator finds at most the bytes that it
//! found before. A permit that is lost that way is one whose target the descent has begun, and
//! those bytes were counted. With alignments the topmost buffer needs no rounding, so the descent
//! must also make up for the largest slack that it ends. The same holds with time backwards.
//!
//! An operator that ends no life waits until a successor is about to run: it is a part of the
//! successor's move. Until then the other operators find at most the bytes that they found before,
//! and the successor has at least the bytes of the one that waited.
//!
//! So descents are taken from both ends first: a chain of operators each of which needs the one
//! before it, and then the state with the fewest bytes that a search has found from here.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::lives::Lives;
use super::parts::Parts;
use super::seen::Seen;
use super::walk::Walk;

/// What limits a search.
pub(super) struct Budget<'b> {
    /// States that may still be visited.
    pub(super) sets: u64,
    /// Operators that may still be run.
    pub(super) steps: u64,
    pub(super) stop: &'b dyn Fn() -> bool,
}

/// The way to an end state.
#[derive(Clone, Debug)]
pub(super) enum Reach {
    /// An order within the limit, from the begin to the end.
    Order(Vec<u32>),
    /// None is, and none with fewer than `least` bytes.
    Blocked(Blocked),
    /// The budget was spent.
    Unknown,
}

/// Why no order is below some bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocked {
    pub(super) least: u64,
    /// Descents from the first operator on.
    pub(super) first: Vec<Vec<u32>>,
    /// Descents from the last operator backwards.
    pub(super) last: Vec<Vec<u32>>,
}

/// Longest chain that is tried as a descent.
const CHAIN: usize = 96;
/// Most ready operators from which a chain is tried in one state.
const TRIES: usize = 48;
/// Most parts of a descent that are compared with it.
const PARTS: usize = 2048;

/// The operators of an order that lie between two others.
#[derive(Clone, Copy)]
pub(super) struct Ends<'e> {
    pub(super) prefix: &'e [u32],
    /// From the last operator backwards.
    pub(super) suffix: &'e [u32],
}

pub(super) const WHOLE: Ends<'static> = Ends { prefix: &[], suffix: &[] };

/// Searches an order within `limit` bytes for the operators between the ends. `backwards` are the
/// reversed lives.
pub(super) fn reach(
    lives: &Lives,
    backwards: &Lives,
    ends: Ends<'_>,
    limit: u64,
    budget: &mut Budget<'_>,
) -> Reach {
    let mut front = Side::new(lives, ends.prefix);
    let mut back = Side::new(backwards, ends.suffix);
    for &op in ends.suffix {
        front.open[op as usize] = false;
    }
    for &op in ends.prefix {
        back.open[op as usize] = false;
    }
    front.take_chains(limit, &mut back, budget);
    back.take_chains(limit, &mut front, budget);
    let goal = lives.len() - back.walk.count;
    let result = loop {
        if front.walk.count == goal {
            break Reach::Order(Vec::new());
        }
        match front.explore(goal, limit, budget) {
            Explored::Descent(found) => {
                for &op in &found {
                    front.walk.run(op);
                    back.open[op as usize] = false;
                }
                front.taken.push(found);
                front.take_chains(limit, &mut back, budget);
            }
            Explored::Goal(path) => break Reach::Order(path),
            Explored::Blocked(least) => {
                let Side { taken: first, .. } = front;
                return Reach::Blocked(Blocked { least, first, last: back.taken });
            }
            Explored::Unknown => break Reach::Unknown,
        }
    };
    let Reach::Order(path) = result else { return result };
    let mut order: Vec<u32> = front.taken.concat();
    order.extend(path);
    order.extend(back.taken.concat().into_iter().rev());
    Reach::Order(order)
}

enum Explored {
    Goal(Vec<u32>),
    Descent(Vec<u32>),
    /// Every way on needs at least so many bytes.
    Blocked(u64),
    Unknown,
}

/// One end of the order, with the descents taken from it.
struct Side<'l> {
    walk: Walk<'l>,
    /// Operators that the other side has not taken.
    open: Vec<bool>,
    taken: Vec<Vec<u32>>,
    /// Whether states below the begin are still looked for.
    looks: bool,
}

impl<'l> Side<'l> {
    fn new(lives: &'l Lives, done: &[u32]) -> Self {
        let mut walk = Walk::new(lives);
        done.iter().for_each(|&op| walk.run(op));
        Self { walk, open: alloc::vec![true; lives.len()], taken: Vec::new(), looks: true }
    }

    /// Ready operators of this side, in ascending order.
    fn ready(&self) -> Vec<u32> {
        let all = self.walk.ready().iter().copied();
        let mut ready: Vec<u32> = all.filter(|&op| self.open[op as usize]).collect();
        ready.sort_unstable();
        ready
    }

    /// The operators that would run for `op`: those that waited for it, and itself; `None` if it
    /// must wait for others.
    fn step_to(&self, op: u32) -> Option<Vec<u32>> {
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
                for &earlier in &self.walk.lives.before[op as usize] {
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
        Some(step)
    }

    /// Whether the operator is a part of its successor's move.
    fn waits(&self, op: u32) -> bool {
        let after = &self.walk.lives.after[op as usize];
        self.walk.lives.ends_nothing[op as usize] && after.iter().any(|&later| self.open[later as usize])
    }

    /// The steps from here, each with the operators that waited for it.
    fn steps(&self) -> Vec<Vec<u32>> {
        let mut targets = Vec::new();
        let mut open = self.ready();
        let mut met = open.clone();
        while let Some(op) = open.pop() {
            if !self.waits(op) {
                targets.push(op);
                continue;
            }
            for &later in &self.walk.lives.after[op as usize] {
                if self.open[later as usize] && !met.contains(&later) {
                    met.push(later);
                    open.push(later);
                }
            }
        }
        targets.sort_unstable();
        targets.into_iter().filter_map(|op| self.step_to(op)).collect()
    }

    /// Takes chains while there are any.
    fn take_chains(&mut self, limit: u64, other: &mut Side<'_>, budget: &mut Budget<'_>) {
        let mut steps = self.steps();
        let mut at = 0;
        let mut failed = 0;
        while failed < steps.len() && budget.steps > 0 {
            at = if at < steps.len() { at } else { 0 };
            let before = self.walk.steps;
            let chain = self.chain_from(&steps[at], limit);
            budget.steps = budget.steps.saturating_sub(self.walk.steps - before);
            let Some(chain) = chain else {
                (failed, at) = (failed + 1, at + 1);
                continue;
            };
            for &op in &chain {
                self.walk.run(op);
                other.open[op as usize] = false;
            }
            self.taken.push(chain);
            steps = self.steps();
            budget.steps = budget.steps.saturating_sub(steps.len() as u64);
            failed = 0;
        }
    }

    /// A descent that begins with a step, in which every operator needs the one before it, apart
    /// from those that waited. So its predecessor-closed parts are its beginnings, with some of the
    /// latter, which only add bytes.
    fn chain_from(&mut self, step: &[u32], limit: u64) -> Option<Vec<u32>> {
        let mut chain: Vec<u32> = Vec::new();
        let (mut least, mut slack) = (self.walk.level, 0);
        let mut step = step.to_vec();
        let mut found = false;
        'steps: loop {
            for &op in &step {
                if self.walk.cost(op) > limit || chain.len() >= CHAIN {
                    break 'steps;
                }
                slack = slack.max(self.walk.slack_ended_by(op));
                self.walk.run(op);
                chain.push(op);
            }
            if self.walk.level + slack <= least {
                found = true;
                break;
            }
            least = least.min(self.walk.level);
            let Some(&op) = step.last() else { break };
            let after = self.walk.lives.after[op as usize].iter();
            let next = after.filter_map(|&op| self.step_to(op));
            let level = |step: &Vec<u32>| match step[..] {
                [op] => self.walk.level_after(op),
                _ => u64::MAX,
            };
            let Some(next) = next.min_by_key(level) else { break };
            step = next;
        }
        for &op in chain.iter().rev() {
            self.walk.take_back(op);
        }
        found.then_some(chain)
    }

    /// Explores every state within the limit until one has all `goal` operators or is a descent.
    fn explore(&mut self, goal: usize, limit: u64, budget: &mut Budget<'_>) -> Explored {
        let mut seen = Seen::default();
        let begin = self.walk.level;
        let mut blocked = u64::MAX;
        let mut path: Vec<u32> = Vec::new();
        let mut key = 0;
        let first = self.moves(limit, &mut blocked);
        let mut frames = alloc::vec![Frame { moves: first, next: 0, ran: 0 }];
        let mut found = Explored::Blocked(0);
        let mut asked = 0_u32;
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
            for &op in step {
                self.walk.run(op);
                path.push(op);
                key ^= hash(op);
            }
            let ran = step.len();
            budget.steps = budget.steps.saturating_sub(1 + ran as u64);
            asked = asked.wrapping_add(1);
            if self.walk.count == goal {
                found = Explored::Goal(path.clone());
                break;
            }
            if budget.sets == 0 || budget.steps == 0 || (asked % 1024 == 0 && (budget.stop)()) {
                found = Explored::Unknown;
                break;
            }
            if !seen.insert(key) {
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
                    found = Explored::Descent(descent);
                    break;
                }
            }
            let before = self.walk.steps;
            let moves = self.moves(limit, &mut blocked);
            let ready = self.walk.ready().len() as u64;
            budget.steps = budget.steps.saturating_sub(self.walk.steps - before + ready);
            frames.push(Frame { moves, next: 0, ran });
        }
        for &op in path.iter().rev() {
            self.walk.take_back(op);
        }
        match found {
            Explored::Blocked(_) => Explored::Blocked(blocked),
            found => found,
        }
    }

    /// The moves from here: a chain alone, or every step, the best first.
    fn moves(&mut self, limit: u64, blocked: &mut u64) -> Vec<Vec<u32>> {
        let steps = self.steps();
        for step in steps.iter().take(TRIES) {
            if let Some(chain) = self.chain_from(step, limit) {
                return alloc::vec![chain];
            }
        }
        let mut within: Vec<(u64, Vec<u32>)> = Vec::with_capacity(steps.len());
        for step in steps {
            let mut ran = 0;
            for &op in &step {
                let cost = self.walk.cost(op);
                if cost > limit {
                    *blocked = (*blocked).min(cost);
                    break;
                }
                self.walk.run(op);
                ran += 1;
            }
            let level = self.walk.level;
            step[..ran].iter().rev().for_each(|&op| self.walk.take_back(op));
            if ran == step.len() {
                within.push((level, step));
            }
        }
        within.sort_by(|(level, step), (other, another)| (level, another).cmp(&(other, step)));
        within.into_iter().map(|(_, step)| step).collect()
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
        let mut found = None;
        if complete && !parts.set.is_empty() {
            let list: Vec<u32> =
                path.iter().zip(&parts.set).filter(|(_, taken)| **taken).map(|(&op, _)| op).collect();
            found = self.is_descent(&list, limit).then_some(list);
        }
        if !complete {
            // Longer paths have more parts.
            self.looks = false;
        }
        for &op in path {
            self.walk.run(op);
        }
        found
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

struct Frame {
    moves: Vec<Vec<u32>>,
    next: usize,
    /// Operators that led here from the frame below.
    ran: usize,
}

/// 128 bits for each operator; a set of operators is their sum.
fn hash(op: u32) -> u128 {
    let mix = |mut x: u64| {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let op = u64::from(op) + 1;
    let high = mix(op.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    u128::from(high) << 64 | u128::from(mix(high ^ op.wrapping_mul(0xd1b5_4a32_d192_ed03)))
}
