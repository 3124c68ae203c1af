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

use super::lives::Lives;
use super::side::{Outcome, Side};

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
    Blocked(Refutation),
    /// The budget was spent.
    Unknown,
}

/// Why no order is below some bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Refutation {
    pub(super) least: u64,
    /// Descents from the first operator on.
    pub(super) first: Vec<Vec<u32>>,
    /// Descents from the last operator backwards.
    pub(super) last: Vec<Vec<u32>>,
}

/// Searches an order within `limit` bytes for all operators. `reverse` are the reversed lives.
pub(super) fn reach(lives: &Lives, reverse: &Lives, limit: u64, budget: &mut Budget<'_>) -> Reach {
    let (mut front, mut back) = (Side::new(lives), Side::new(reverse));
    let outcome = search(&mut front, &mut back, limit, budget);
    result(outcome, front.descents, back.descents)
}

/// A part of an order whose operators may be ordered anew.
pub(super) struct Window<'l> {
    front: Side<'l>,
    back: Side<'l>,
    begin: usize,
    end: usize,
}

impl<'l> Window<'l> {
    /// The whole of an order.
    pub(super) fn new(lives: &'l Lives, reverse: &'l Lives) -> Self {
        let (front, back) = (Side::new(lives), Side::new(reverse));
        Self { front, back, begin: 0, end: lives.len() }
    }

    /// Moves to another part. The order outside of the present one is as it was.
    pub(super) fn place(&mut self, order: &[u32], begin: usize, end: usize) {
        for &op in order.get(self.begin..begin).unwrap_or(&[]) {
            self.front.walk.run(op);
            self.back.open[op as usize] = false;
        }
        for &op in order.get(begin..self.begin).unwrap_or(&[]).iter().rev() {
            self.front.walk.take_back(op);
            self.back.open[op as usize] = true;
        }
        for &op in order.get(end..self.end).unwrap_or(&[]).iter().rev() {
            self.back.walk.run(op);
            self.front.open[op as usize] = false;
        }
        for &op in order.get(self.end..end).unwrap_or(&[]) {
            self.back.walk.take_back(op);
            self.front.open[op as usize] = true;
        }
        (self.begin, self.end) = (begin, end);
    }

    /// Searches an order of the part within `limit` bytes.
    pub(super) fn reach(&mut self, limit: u64, budget: &mut Budget<'_>) -> Reach {
        let Self { front, back, .. } = self;
        let outcome = search(front, back, limit, budget);
        let (first, last) = (front.give_back(back), back.give_back(front));
        result(outcome, first, last)
    }

    /// The bytes at each operator of the part.
    pub(super) fn costs(&mut self, part: &[u32], costs: &mut [u64]) {
        for (&op, cost) in part.iter().zip(costs) {
            *cost = self.front.walk.cost(op);
            self.front.walk.run(op);
        }
        part.iter().rev().for_each(|&op| self.front.walk.take_back(op));
    }
}

/// Explores from both sides until their operators are all, or no way is left.
fn search(front: &mut Side<'_>, back: &mut Side<'_>, limit: u64, budget: &mut Budget<'_>) -> Outcome {
    front.take_chains(limit, back, budget);
    back.take_chains(limit, front, budget);
    let goal = front.walk.lives.len() - back.walk.count;
    loop {
        if front.walk.count == goal {
            return Outcome::Goal(Vec::new());
        }
        match front.explore(goal, limit, budget) {
            Outcome::Descent(descent) => {
                for &op in &descent {
                    front.walk.run(op);
                    back.open[op as usize] = false;
                }
                front.descents.push(descent);
                front.take_chains(limit, back, budget);
            }
            outcome => return outcome,
        }
    }
}

fn result(outcome: Outcome, first: Vec<Vec<u32>>, last: Vec<Vec<u32>>) -> Reach {
    match outcome {
        Outcome::Goal(path) => {
            let mut order: Vec<u32> = first.concat();
            order.extend(path);
            order.extend(last.concat().into_iter().rev());
            Reach::Order(order)
        }
        Outcome::Blocked(least) => Reach::Blocked(Refutation { least, first, last }),
        Outcome::Descent(_) | Outcome::Unknown => Reach::Unknown,
    }
}
