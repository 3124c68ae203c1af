//! The search: exhaustive placement at a capacity, restarted from many orders, until the bound is
//! met or the budget is spent.
//!
//! - A *decision* places buffers depth first in ascending offset, each on top of what it conflicts
//!   with, so that every compacted placement is met once (Moffitt, MiniMalloc, ASPLOS 2023). It is
//!   cut when a clique can no longer end below the capacity, when another buffer would fit entirely
//!   below, and among buffers that can take each other's place. With lives, an instant that no
//!   unplaced buffer spans cuts the rest into parts that are solved one by one.
//! - *Restarts*: searches that succeed mostly do so within a few dives; the others are lost in a
//!   corner of the tree. So each try gets few nodes, and the next one begins from another disturbed
//!   order. This is worth more than any single rule: the published instances A-K take 10^4 to 10^6
//!   nodes in sum over all tries, none more than half a second.
//! - *Repair* takes turns with them (see [`eject`]): what ends above the next capacity is taken out
//!   of the best plan and put back elsewhere. It wins where there are holes to use, the exhaustive
//!   search where every byte counts. Beyond 32,768 buffers it works alone.
//! - *Minimisation* aims at the bound in turn with shares of the gap below the best peak.
//!
//! Everything follows from the instance and the node budget: no clock, no floating point, fixed
//! seeds. The budget only cuts the sequence of tries short, so more nodes are never worse.

mod decide;
mod eject;
mod minimise;
mod model;
mod order;
mod rows;
mod state;
mod timeline;

use alloc::vec::Vec;

use self::minimise::{Goal, minimise, repair};
use self::model::Model;
use self::timeline::Timeline;
use super::portfolio::is_large;
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

/// Looks for a plan below that of `offsets`; `bound` is a proven lower bound.
pub(super) fn search(instance: Instance<'_>, options: &Options<'_>, bound: u64, offsets: &[u64]) -> Outcome {
    let peak = instance.occupied_peak(offsets);
    if peak <= bound.max(options.capacity.unwrap_or(0)) || options.nodes == 0 || options.must_stop() {
        return Outcome::default();
    }
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
    let pick = |buffers: &mut dyn Iterator<Item = usize>| buffers.map(|i| offsets[i]).collect::<Vec<u64>>();
    let model = if is_large(instance) { None } else { Model::new(instance) };
    let (found, buffers): (_, Vec<usize>) = match model {
        Some(model) => {
            let buffers: Vec<usize> = model.items.iter().map(|item| item.buffer).collect();
            (minimise(&model, bound, pick(&mut buffers.iter().copied()), goal), buffers)
        }
        None => {
            let Some(timeline) = Timeline::new(instance) else { return Outcome::default() };
            let buffers: Vec<usize> = timeline.buffers.iter().map(|&i| i as usize).collect();
            (repair(&timeline, bound, pick(&mut buffers.iter().copied()), goal), buffers)
        }
    };
    let offsets = found.offsets.map(|placed| {
        let mut offsets = alloc::vec![0; instance.buffers.len()];
        for (buffer, offset) in buffers.into_iter().zip(placed) {
            offsets[buffer] = offset;
        }
        offsets
    });
    Outcome { offsets, nodes: found.nodes, infeasible: found.infeasible }
}
