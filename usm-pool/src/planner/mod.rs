//! The planners behind one entry point.

pub mod best_fit;
mod graph_plan;
pub mod greedy;
mod offset_list;
pub mod order;
pub mod pareto;
pub mod pool_rules;
pub mod reorder;
pub mod search;
mod valley;
pub mod whole_buffer;

use alloc::vec::Vec;
use core::fmt;

use crate::bound;
use crate::dependency::Queue;
use crate::plan::{Certificate, Plan};
use crate::problem::Problem;
use crate::{Buffer, ConflictGraph, Error};

pub use graph_plan::{plan_graph, plan_graph_with};
pub use offset_list::Fit;
pub use search::Progress;

/// How a plan is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strategy {
    /// Every simple strategy, then the search, until the bound is reached or the budget is spent.
    #[default]
    Auto,
    /// Descending size, each at the lowest offset that is free.
    GreedyBySize,
    /// Each in the smallest gap that fits; the better of descending size and order of begin.
    BestFit,
    /// Whole buffers are used again, never parts of them: what OpenVINO's pool does.
    WholeBuffer,
    /// The search, from the greedy plan.
    Search,
}

impl Strategy {
    /// All strategies, in the order of the documentation.
    pub const ALL: [Self; 5] =
        [Self::Auto, Self::GreedyBySize, Self::BestFit, Self::WholeBuffer, Self::Search];

    /// The name used on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::GreedyBySize => "greedy-by-size",
            Self::BestFit => "best-fit",
            Self::WholeBuffer => "whole-buffer",
            Self::Search => "search",
        }
    }

    /// The strategy of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name)
    }
}

/// What is wanted of a plan. Sizes in bytes.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Options<'a> {
    /// How the plan is made.
    pub strategy: Strategy,
    /// The queue of a graph; problems know theirs.
    pub queue: Queue,
    /// Ordering edges (events) that an out-of-order plan of a graph may add, at most.
    pub ordering_edges: usize,
    /// Only ordering edges that leave the critical path as it is.
    pub keep_critical_path: bool,
    /// Decide whether the plan fits in so many bytes; the search stops when it does.
    pub capacity: Option<u64>,
    /// Search nodes at most. Counting nodes keeps plans the same on every machine.
    pub nodes: u64,
    /// Asked now and then; `true` ends the search with the best plan so far. This is how a time limit works without a clock.
    pub stop: Option<&'a (dyn Fn() -> bool + Sync)>,
    /// Told about every better plan and every better bound that the search finds.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("strategy", &self.strategy)
            .field("queue", &self.queue)
            .field("ordering_edges", &self.ordering_edges)
            .field("keep_critical_path", &self.keep_critical_path)
            .field("capacity", &self.capacity)
            .field("nodes", &self.nodes)
            .field("stop", &self.stop.is_some())
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            strategy: Strategy::Auto,
            queue: Queue::InOrder,
            ordering_edges: 0,
            keep_critical_path: false,
            capacity: None,
            nodes: 1 << 16,
            stop: None,
            progress: None,
        }
    }
}

/// Buffers and who may not share, as the planners see them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instance<'a> {
    pub(crate) buffers: &'a [Buffer],
    pub(crate) conflicts: Option<&'a ConflictGraph>,
}

impl<'a> Instance<'a> {
    pub(crate) fn of(problem: &'a Problem) -> Self {
        Self { buffers: problem.buffers(), conflicts: problem.conflicts() }
    }

    /// Whether a buffer needs bytes at all. An explicit relation stands above the lives.
    pub(crate) fn occupies(&self, buffer: usize) -> bool {
        let buffer = &self.buffers[buffer];
        buffer.size > 0 && (self.conflicts.is_some() || !buffer.lifetime().is_empty())
    }

    pub(crate) fn peak(&self, offsets: &[u64]) -> u64 {
        self.buffers.iter().zip(offsets).map(|(buffer, &offset)| offset + buffer.size).max().unwrap_or(0)
    }

    /// Highest end of a buffer that needs bytes; a life without an instant counts in [`Self::peak`], but no placement lowers it.
    fn occupied_peak(&self, offsets: &[u64]) -> u64 {
        let ends =
            (0..offsets.len()).filter(|&i| self.occupies(i)).map(|i| offsets[i] + self.buffers[i].size);
        ends.max().unwrap_or(0)
    }
}

/// A lower bound with its certificate.
pub(crate) type Proof = (u64, Certificate);

/// The best bound that needs no search.
fn prove(problem: &Problem) -> Result<Proof, Error> {
    let buffers = problem.buffers();
    let ids = |set: &mut dyn Iterator<Item = usize>| set.map(|i| buffers[i].id).collect::<Vec<_>>();
    if let (Some(conflicts), Queue::OutOfOrder) = (problem.conflicts(), problem.queue()) {
        let (bytes, set) = bound::antichain(buffers, conflicts)?;
        return Ok((bytes, Certificate::Antichain { buffers: ids(&mut set.into_iter()) }));
    }
    if problem.conflicts().is_some() {
        // Lives with gaps: a cut through the hulls would count what is not needed, so it goes through the pieces.
        let pieces = problem.pieces();
        let cut = bound::time_cut(pieces);
        let live = pieces.iter().filter(|p| p.lower <= cut.time && cut.time < p.upper && p.size > 0);
        let buffers = ids(&mut live.map(|piece| piece.id as usize));
        return Ok((cut.bytes, Certificate::TimeCut { time: cut.time, buffers }));
    }
    let cut = bound::time_cut(buffers);
    let live =
        |&i: &usize| buffers[i].lower <= cut.time && cut.time < buffers[i].upper && buffers[i].size > 0;
    let buffers = ids(&mut (0..buffers.len()).filter(live));
    Ok((cut.bytes, Certificate::TimeCut { time: cut.time, buffers }))
}

/// Makes a plan for a problem.
///
/// # Errors
/// [`Error::OutOfMemory`] when the planner's tables do not fit.
pub fn plan(problem: &Problem, options: &Options<'_>) -> Result<Plan, Error> {
    let (bound, certificate) = prove(problem)?;
    let instance = Instance::of(problem);
    let (strategy, offsets, outcome) = solve(instance, options, bound);
    let proof = match outcome.infeasible {
        Some(capacity) if capacity >= bound => {
            (capacity.saturating_add(1), Certificate::Search { nodes: outcome.nodes, capacity })
        }
        _ => (bound, certificate),
    };
    let mut plan = Plan::new(problem, offsets, strategy, proof);
    plan.capacity = options.capacity;
    plan.nodes = outcome.nodes;
    Ok(plan)
}

/// Runs the strategy that was asked for; answers the one that won, the offsets, and what the search did.
fn solve(instance: Instance<'_>, options: &Options<'_>, bound: u64) -> (Strategy, Vec<u64>, search::Outcome) {
    let (strategy, offsets) = match options.strategy {
        Strategy::GreedyBySize => (Strategy::GreedyBySize, greedy::by_size(instance)),
        Strategy::BestFit => (Strategy::BestFit, best_fit::best_fit(instance)),
        Strategy::WholeBuffer => (Strategy::WholeBuffer, whole_buffer::whole_buffer(instance)),
        Strategy::Search | Strategy::Auto => simple(instance, options.capacity.unwrap_or(0).max(bound)),
    };
    if !matches!(options.strategy, Strategy::Search | Strategy::Auto) {
        return (strategy, offsets, search::Outcome::default());
    }
    let mut outcome = search::search(instance, options, bound, instance.occupied_peak(&offsets));
    match outcome.offsets.take() {
        Some(offsets) => (Strategy::Search, offsets, outcome),
        None => (strategy, offsets, outcome),
    }
}

/// Buffers above which the strategies that compare buffers in pairs would take minutes: only the skyline is filled.
const LARGE: usize = 1 << 15;

/// The best of the simple strategies; stops at the first that reaches `target`.
fn simple(instance: Instance<'_>, target: u64) -> (Strategy, Vec<u64>) {
    type Attempt = fn(Instance<'_>) -> Vec<u64>;
    let attempts: [(Strategy, Attempt); 5] = [
        (Strategy::GreedyBySize, greedy::by_size),
        (Strategy::GreedyBySize, greedy::by_area),
        (Strategy::GreedyBySize, greedy::by_duration),
        (Strategy::BestFit, best_fit::best_fit),
        (Strategy::WholeBuffer, whole_buffer::whole_buffer),
    ];
    if instance.buffers.len() > LARGE
        && let Some(offsets) = valley::fill(instance)
    {
        return (Strategy::Search, offsets);
    }
    let mut best: Option<(u64, Strategy, Vec<u64>)> = None;
    for (strategy, attempt) in attempts {
        let offsets = attempt(instance);
        let peak = instance.peak(&offsets);
        if best.as_ref().is_none_or(|(least, ..)| peak < *least) {
            best = Some((peak, strategy, offsets));
        }
        if best.as_ref().is_some_and(|(least, ..)| *least <= target) {
            break;
        }
    }
    best.map_or((Strategy::GreedyBySize, Vec::new()), |(_, strategy, offsets)| (strategy, offsets))
}
