//! The search: exhaustive placement at a capacity, restarted from many orders, until it meets the
//! bound or spends the budget.
//!
//! - A *decision* places buffers depth first in ascending offset, each on top of conflicting ones,
//!   so that every compacted placement occurs once (Moffitt, MiniMalloc, ASPLOS 2023). It prunes if
//!   a clique can no longer end below the capacity, if another buffer would fit entirely below, and
//!   among interchangeable buffers. With lives, an instant that no unplaced buffer spans splits the
//!   rest into parts that are solved one by one.
//! - *Restarts*: most successful searches need few dives; the others are stuck in a corner of the
//!   tree. So each try gets few nodes, and the next one starts from another disturbed order. This
//!   helps more than any single rule: the published instances A-K take 10^4 to 10^6 nodes in total,
//!   none more than half a second.
//! - *Repair* alternates with them (module `eject`): buffers that end above the next capacity are
//!   removed from the best plan and placed elsewhere. It is better where holes can be used, the
//!   exhaustive search where every byte counts. Beyond 32,768 buffers it works alone.
//! - *Minimisation* alternates between the bound and fractions of the gap below the best peak as
//!   targets.
//!
//! Everything follows from the instance and the node budget: no clock, no floating point, fixed
//! seeds. The budget only cuts the sequence of tries short, so more nodes are never worse. Threads
//! try ahead of the sequence (module `parallel`), so that their number changes nothing but the
//! time.

mod decide;
mod eject;
mod log;
mod minimise;
mod model;
mod order;
#[cfg(feature = "threads")]
mod parallel;
mod prove;
mod rows;
mod schedule;
mod state;
mod timeline;

use alloc::vec::Vec;

pub(super) use self::log::Line;
pub(super) use self::prove::refute;

use self::minimise::{Goal, minimise, repair};
use self::model::Model;
use self::timeline::Timeline;
use super::portfolio::is_large;
use super::{Instance, Options};

/// The progress of a search.
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

/// The result of a search, relative to its initial plan.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Offset of each buffer, if lower than the initial plan.
    pub(super) offsets: Option<Vec<u64>>,
    /// Nodes visited.
    pub(super) nodes: u64,
    /// No plan has a peak at or below this many bytes: the search was exhaustive.
    pub(super) infeasible: Option<u64>,
}

/// Searches a plan below that of `offsets`; `bound` is a proven lower bound.
pub(super) fn search(instance: Instance<'_>, options: &Options<'_>, bound: u64, offsets: &[u64]) -> Outcome {
    let peak = instance.occupied_peak(offsets);
    if peak <= bound.max(options.capacity.unwrap_or(0)) || options.nodes == 0 || options.must_stop() {
        return Outcome::default();
    }
    let goal = Goal {
        nodes: options.nodes,
        capacity: options.capacity,
        stop: &|| options.stop.is_some_and(|stop| stop()),
        progress: &|progress| {
            if let Some(report) = options.progress {
                report(progress);
            }
        },
        threads: options.threads,
    };
    let pick = |buffers: &mut dyn Iterator<Item = usize>| buffers.map(|i| offsets[i]).collect::<Vec<u64>>();
    let model = if is_large(instance) { None } else { Model::new(instance) };
    let (result, buffers): (_, Vec<usize>) = match model {
        Some(model) => {
            let buffers: Vec<usize> = model.items.iter().map(|item| item.buffer).collect();
            (minimise(&model, bound, pick(&mut buffers.iter().copied()), &goal), buffers)
        }
        None => {
            let Some(timeline) = Timeline::new(instance) else { return Outcome::default() };
            let buffers: Vec<usize> = timeline.buffers.iter().map(|&i| i as usize).collect();
            (repair(&timeline, bound, pick(&mut buffers.iter().copied()), &goal), buffers)
        }
    };
    let offsets = result.offsets.map(|item_offsets| {
        let mut offsets = alloc::vec![0; instance.buffers.len()];
        for (buffer, offset) in buffers.into_iter().zip(item_offsets) {
            offsets[buffer] = offset;
        }
        offsets
    });
    Outcome { offsets, nodes: result.nodes, infeasible: result.infeasible }
}
