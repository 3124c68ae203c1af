//! A log of a decision that finds no placement: the lines of a bound proof.

use alloc::vec::Vec;

use super::model::Model;
use super::state::{Reason, State, UNPLACED};

/// Receives every step. Steps before a mark that [`Self::undo_to`] restores refute nothing.
pub(super) trait Log {
    /// A mark for [`Self::undo_to`].
    fn mark(&self) -> usize;
    fn undo_to(&mut self, mark: usize);
    /// The decision is limited to these items.
    fn limit_to(&mut self, model: &Model, items: &[u32]);
    /// The item is the lowest one.
    fn place(&mut self, model: &Model, item: u32);
    /// Items of this state end above the capacity.
    fn too_high(&mut self, model: &Model, state: &State<'_>);
    /// Every item that may be the lowest one was tried.
    fn done(&mut self);
}

/// Ignores every step, and takes no time.
pub(super) struct NoLog;

impl Log for NoLog {
    fn mark(&self) -> usize {
        0
    }
    fn undo_to(&mut self, _: usize) {}
    fn limit_to(&mut self, _: &Model, _: &[u32]) {}
    fn place(&mut self, _: &Model, _: u32) {}
    fn too_high(&mut self, _: &Model, _: &State<'_>) {}
    fn done(&mut self) {}
}

/// One line of a proof. Buffers by index.
#[derive(Clone, Debug)]
pub(in super::super) enum Line {
    Part(u64, u64),
    Place(u32),
    /// The instant at which the buffers are live.
    Cut(u64),
    Over(Vec<u32>),
    Tall(u32),
    Done,
}

/// Keeps the lines.
#[derive(Debug, Default)]
pub(super) struct Lines(pub(super) Vec<Line>);

impl Log for Lines {
    fn mark(&self) -> usize {
        self.0.len()
    }

    fn undo_to(&mut self, mark: usize) {
        self.0.truncate(mark);
    }

    fn limit_to(&mut self, model: &Model, items: &[u32]) {
        if model.chain {
            let lives = || items.iter().map(|&i| model.items[i as usize].life);
            let (begin, end) = (lives().map(|life| life.0).min(), lives().map(|life| life.1).max());
            self.0.push(Line::Part(begin.unwrap_or(0), end.unwrap_or(0)));
        }
    }

    fn place(&mut self, model: &Model, item: u32) {
        self.0.push(Line::Place(model.items[item as usize].buffer as u32));
    }

    fn too_high(&mut self, model: &Model, state: &State<'_>) {
        let buffer = |i: u32| model.items[i as usize].buffer as u32;
        let members = |clique: u32| model.cliques.row(clique as usize).iter().copied();
        self.0.push(match state.reason {
            Reason::Tall(item) => Line::Tall(buffer(item)),
            // All members are live when the last one begins.
            Reason::Clique(clique) if model.chain => {
                Line::Cut(members(clique).map(|i| model.items[i as usize].life.0).max().unwrap_or(0))
            }
            Reason::Clique(clique) => {
                let left = members(clique).filter(|&i| state.offset[i as usize] == UNPLACED);
                Line::Over(left.map(buffer).collect())
            }
        });
    }

    fn done(&mut self) {
        self.0.push(Line::Done);
    }
}
