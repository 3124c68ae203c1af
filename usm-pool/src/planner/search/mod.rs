//! The search: exhaustive placement at a capacity, restarted from many orders, until the bound is met or the budget is spent.
//!
//! - A *decision* places buffers depth first in ascending offset, each on top of what it conflicts with, so that every compacted
//!   placement is met once (Moffitt, MiniMalloc, ASPLOS 2023). It is cut when a clique can no longer end below the capacity, when
//!   another buffer would fit entirely below, and among buffers that can take each other's place. With lives, an instant that no
//!   unplaced buffer spans cuts the rest into parts that are solved one by one.
//! - *Restarts*: searches that succeed mostly do so within a few dives; the others are lost in a corner of the tree. So each try gets
//!   few nodes, and the next one begins from another disturbed order. This is worth more than any single rule: the published
//!   instances A-K take 10^4 to 10^6 nodes in sum over all tries, none more than half a second.
//! - *Minimisation* aims at the bound in turn with shares of the gap below the best peak.
//!
//! Everything follows from the instance and the node budget: no clock, no floating point, fixed seeds. The budget only cuts the
//! sequence of tries short, so more nodes are never worse.

mod decide;
mod minimise;
mod model;
mod order;
mod rows;
mod state;

use alloc::vec::Vec;

use self::minimise::{Goal, minimise};
use self::model::Model;
use super::{Instance, Options};

/// How far a search has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Least peak so far in bytes.
    pub peak: u64,
    /// Greatest proven lower bound in bytes.
    pub bound: u64,
    /// Search nodes visited.
    pub nodes: u64,
}

/// What a search adds to the plan it began with.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Offset of each buffer, when lower than the plan to beat.
    pub(super) offsets: Option<Vec<u64>>,
    /// Nodes visited.
    pub(super) nodes: u64,
    /// No plan has a peak at or below this many bytes: everything was tried.
    pub(super) infeasible: Option<u64>,
}

/// Looks for a plan below `peak`; `bound` is a proven lower bound.
pub(super) fn search(instance: Instance<'_>, options: &Options<'_>, bound: u64, peak: u64) -> Outcome {
    if peak <= bound || options.nodes == 0 {
        return Outcome::default();
    }
    let Some(model) = Model::new(instance) else { return Outcome::default() };
    let goal = Goal {
        nodes: options.nodes,
        capacity: options.capacity,
        stop: &mut || options.stop.is_some_and(|stop| stop()),
        progress: &mut |progress| {
            if let Some(report) = options.progress {
                report(progress);
            }
        },
    };
    let found = minimise(&model, bound, peak, goal);
    let offsets = found.offsets.map(|placed| {
        let mut offsets = alloc::vec![0; instance.buffers.len()];
        for (item, offset) in model.items.iter().zip(placed) {
            offsets[item.buffer] = offset;
        }
        offsets
    });
    Outcome { offsets, nodes: found.nodes, infeasible: found.infeasible }
}
