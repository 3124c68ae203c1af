//! The planners behind one entry point.

mod begins;
mod graph_plan;
mod greedy;
mod merge;
mod offset_list;
pub mod order;
pub mod pareto;
mod peak_first;
pub mod pool_rules;
mod portfolio;
mod prove;
pub mod recompute;
pub mod reorder;
pub mod search;
mod time_tree;
mod valley;
mod whole_buffer;

use alloc::vec::Vec;
use core::fmt;

use self::merge::Merge;
use crate::bound;
use crate::dependency::Queue;
use crate::plan::{Certificate, Plan};
use crate::problem::Problem;
use crate::{Buffer, ConflictGraph, Error};

pub use graph_plan::{plan_graph, plan_graph_with};
pub use offset_list::Fit;
pub use prove::prove_bound;
pub use search::Progress;

/// How a plan is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strategy {
    /// Every simple strategy, then the search, until it reaches the bound or spends the budget.
    #[default]
    Auto,
    /// Descending size, each at the lowest offset that is free.
    GreedyBySize,
    /// Each in the smallest gap that fits; takes the better of descending size and order of begin.
    BestFit,
    /// Reuses only whole buffers, never parts, like OpenVINO's pool.
    WholeBuffer,
    /// The search, from the greedy plan.
    Search,
    /// The order of a plan for every value of some dimensions, from [`given`].
    Range,
}

impl Strategy {
    /// All strategies that a user can select, in the documentation's order.
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
            Self::Range => "range",
        }
    }

    /// The strategy of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name)
    }
}

/// Options of a plan. Sizes in bytes.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Options<'a> {
    /// How the plan is made.
    pub strategy: Strategy,
    /// The queue of a graph; a problem has its own.
    pub queue: Queue,
    /// Maximum number of ordering edges (events) that an out-of-order plan of a graph may add.
    pub ordering_edges: usize,
    /// Only ordering edges that do not lengthen the critical path.
    pub keep_critical_path: bool,
    /// Decides whether a plan fits in this many bytes: the search stops at the first that does.
    pub capacity: Option<u64>,
    /// Maximum number of search nodes. Counting nodes gives the same plans on every machine. On
    /// instances of more than about a thousand buffers a node counts as several, so that a budget
    /// takes about equal time: the default takes a second or two unless the search meets the bound
    /// earlier. A plan of [`Strategy::Auto`] is never above that of another strategy in three
    /// cases: up to 32,768 buffers with every budget; above that with 64 or more nodes for each
    /// buffer; and up to 262,144 buffers with every budget, as long as the other strategy takes at
    /// most 2^24 steps before it is worse. A step reads one list of placed buffers.
    pub nodes: u64,
    /// Maximum number of sets of operators in a search for another order, for callers that make one
    /// beside the plan; see [`reorder::Effort`].
    pub order_sets: u64,
    /// Called regularly; `true` ends the search with the best plan so far. With it the caller sets
    /// a time limit, so the planner needs no clock.
    pub stop: Option<&'a (dyn Fn() -> bool + Sync)>,
    /// Whether `stop` is also called before the search, during conflicts, bounds, ordering edges
    /// and simple plans. If it ends these, the result is worse but still correct: no shared bytes,
    /// the bound of one buffer, fewer edges, and the first simple plan with the remaining buffers
    /// on top.
    pub stop_early: bool,
    /// Threads that search, the caller's included; 0 is 1. A count of nodes ends the search with
    /// the same plan for every number of threads. One thread searches without the feature
    /// `threads`, and in instances of more than 32,768 buffers.
    pub threads: usize,
    /// Called with every better plan and every better bound that the search finds.
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
            .field("order_sets", &self.order_sets)
            .field("stop", &self.stop.is_some())
            .field("stop_early", &self.stop_early)
            .field("threads", &self.threads)
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
            nodes: 1 << 21,
            order_sets: reorder::Effort::USUAL,
            stop: None,
            stop_early: false,
            threads: 1,
            progress: None,
        }
    }
}

impl Options<'_> {
    /// Whether the steps before the search must end too.
    pub(crate) fn must_stop(&self) -> bool {
        self.stop_early && self.stop.is_some_and(|stop| stop())
    }
}

/// Buffers and their conflicts, as the planners see them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instance<'a> {
    pub(crate) buffers: &'a [Buffer],
    pub(crate) conflicts: Option<&'a ConflictGraph>,
}

impl<'a> Instance<'a> {
    pub(crate) fn of(problem: &'a Problem) -> Self {
        Self { buffers: problem.buffers(), conflicts: problem.conflicts() }
    }

    /// Whether a buffer needs bytes. An explicit relation overrides the lives.
    pub(crate) fn occupies(&self, buffer: usize) -> bool {
        let buffer = &self.buffers[buffer];
        buffer.size > 0 && (self.conflicts.is_some() || !buffer.lifetime().is_empty())
    }

    pub(crate) fn peak(&self, offsets: &[u64]) -> u64 {
        self.buffers.iter().zip(offsets).map(|(buffer, &offset)| offset + buffer.size).max().unwrap_or(0)
    }

    /// Highest end of the buffers that need bytes. A life without an instant counts in
    /// [`Self::peak`], but no placement lowers it.
    fn occupied_peak(&self, offsets: &[u64]) -> u64 {
        let ends =
            (0..offsets.len()).filter(|&i| self.occupies(i)).map(|i| offsets[i] + self.buffers[i].size);
        ends.max().unwrap_or(0)
    }
}

/// The best bound without a search, and its buffers.
struct Heaviest {
    bytes: u64,
    /// The instant, if the bound is a cut.
    time: Option<u64>,
    /// Indices of the buffers.
    buffers: Vec<usize>,
}

impl Heaviest {
    fn of(problem: &Problem, stop: &dyn Fn() -> bool) -> Result<Self, Error> {
        let buffers = problem.buffers();
        if !problem.is_exact() {
            return Ok(Self::of_largest(buffers));
        }
        if let (Some(conflicts), Queue::OutOfOrder) = (problem.conflicts(), problem.queue()) {
            let (bytes, set) = bound::antichain_until(buffers, conflicts, stop)?;
            let heaviest = Self { bytes, time: None, buffers: set };
            // A bound that was stopped early may be below the one from the lives.
            let quick = stop().then(|| Self::in_given_order(buffers, conflicts));
            return Ok(quick.filter(|quick| quick.bytes > bytes).unwrap_or(heaviest));
        }
        // For lives with gaps the cut goes through the pieces, because a cut through the hulls
        // would count the gaps.
        let pieces = problem.pieces();
        let lives = if problem.conflicts().is_some() { pieces } else { buffers };
        let cut = bound::time_cut(lives);
        let live = |b: &Buffer| b.lower <= cut.time && cut.time < b.upper && b.size > 0;
        let live = lives.iter().enumerate().filter(|(_, life)| live(life));
        let index =
            |(i, life): (usize, &Buffer)| if problem.conflicts().is_some() { life.id as usize } else { i };
        Ok(Self { bytes: cut.bytes, time: Some(cut.time), buffers: live.map(index).collect() })
    }

    /// The largest buffer: a bound for any conflicts.
    fn of_largest(buffers: &[Buffer]) -> Self {
        let largest = (0..buffers.len()).max_by_key(|&i| buffers[i].size);
        let bytes = largest.map_or(0, |i| buffers[i].size);
        Self { bytes, time: None, buffers: largest.into_iter().collect() }
    }

    /// The buffers live at the heaviest instant in the given order, as far as all of them conflict
    /// in every order.
    fn in_given_order(buffers: &[Buffer], conflicts: &ConflictGraph) -> Self {
        let time = bound::time_cut(buffers).time;
        let mut members = alloc::vec![0_u64; conflicts.len().div_ceil(64)];
        let mut set = Vec::new();
        for (i, buffer) in buffers.iter().enumerate() {
            let live = buffer.lower <= time && time < buffer.upper && buffer.size > 0;
            if live && members.iter().zip(conflicts.row(i)).all(|(bits, row)| bits & !row == 0) {
                members[i / 64] |= 1 << (i % 64);
                set.push(i);
            }
        }
        let bytes = bound::stacked(set.iter().map(|&i| &buffers[i])).unwrap_or(0);
        Self { bytes, time: None, buffers: set }
    }

    fn certificate(&self, problem: &Problem) -> Certificate {
        let buffers = self.buffers.iter().map(|&i| problem.buffers()[i].id).collect();
        match self.time {
            Some(time) => Certificate::TimeCut { time, buffers },
            None => Certificate::Antichain { buffers },
        }
    }
}

/// The best bound in bytes without a search, and its certificate.
pub(crate) fn bound(problem: &Problem, options: &Options<'_>) -> Result<(u64, Certificate), Error> {
    let heaviest = Heaviest::of(problem, &|| options.must_stop())?;
    Ok((heaviest.bytes, heaviest.certificate(problem)))
}

/// Makes a plan for a problem.
///
/// # Errors
/// [`Error::OutOfMemory`] when the planner's tables do not fit.
pub fn plan(problem: &Problem, options: &Options<'_>) -> Result<Plan, Error> {
    let (early_plan, heaviest) = bound_with_early_plan(problem, options)?;
    let bound = heaviest.bytes;
    let (strategy, offsets, outcome) = solve(Instance::of(problem), options, &heaviest, early_plan);
    let proof = match outcome.infeasible {
        Some(capacity) if capacity >= bound && problem.is_exact() => {
            (capacity.saturating_add(1), Certificate::Search { nodes: outcome.nodes, capacity })
        }
        _ => (bound, heaviest.certificate(problem)),
    };
    let mut plan = Plan::new(problem, offsets, strategy, proof);
    plan.capacity = options.capacity;
    plan.nodes = outcome.nodes;
    Ok(plan)
}

/// The plan with these offsets in bytes, one for each buffer, and the bound without a search.
/// [`Plan::verify`] tells whether it is correct.
///
/// # Errors
/// [`Error::LengthMismatch`], [`Error::OutOfMemory`].
pub fn given(problem: &Problem, offsets: Vec<u64>, options: &Options<'_>) -> Result<Plan, Error> {
    let (buffers, other) = (problem.buffers().len(), offsets.len());
    if buffers != other {
        return Err(Error::LengthMismatch { buffers, other });
    }
    let mut plan = Plan::new(problem, offsets, Strategy::Range, bound(problem, options)?);
    plan.capacity = options.capacity;
    Ok(plan)
}

/// The bound. For many buffers on an out-of-order queue it may take all available time, so a plan
/// comes first. If that plan meets the bound of the given order, the heaviest antichain of all
/// orders is not searched.
fn bound_with_early_plan(
    problem: &Problem,
    options: &Options<'_>,
) -> Result<(Option<Vec<u64>>, Heaviest), Error> {
    let must_stop = || options.must_stop();
    let (buffers, instance) = (problem.buffers(), Instance::of(problem));
    let many = problem.queue() == Queue::OutOfOrder && buffers.len() >= greedy::MANY;
    let Some(conflicts) = problem.conflicts().filter(|_| many && problem.is_exact()) else {
        return Ok((None, Heaviest::of(problem, &must_stop)?));
    };
    let offsets = portfolio::plan_by_strategy(instance, options.strategy, &must_stop)
        .or_else(|| portfolio::plan_by_strategy(instance, Strategy::GreedyBySize, &must_stop))
        .unwrap_or_default();
    let quick = Heaviest::in_given_order(buffers, conflicts);
    let is_tight = instance.peak(&offsets) <= quick.bytes;
    Ok((Some(offsets), if is_tight { quick } else { Heaviest::of(problem, &must_stop)? }))
}

/// Most nodes of a search for joined buffers, some tenths of a second: what they leave open, the
/// repair of the others closes.
const JOINED_NODES: u64 = 1 << 17;

/// A plan of joined buffers, if half of them or more join, and the nodes that it took.
fn plan_merged(
    instance: Instance<'_>,
    options: &Options<'_>,
    heaviest: &Heaviest,
) -> Option<((Strategy, Vec<u64>), u64)> {
    let merge = Merge::new(instance)?;
    let buffers = merge.buffers();
    let joined_instance = Instance { buffers, conflicts: None };
    let live =
        |&i: &usize| heaviest.time.is_some_and(|time| (buffers[i].lower..buffers[i].upper).contains(&time));
    let heaviest = Heaviest { buffers: (0..buffers.len()).filter(live).collect(), ..*heaviest };
    // A few buffers are planned to the end even when time is over: that decides how high all lie.
    let stop = options.stop.filter(|_| buffers.len() >= greedy::MANY);
    // A bound of joined buffers is none of the others.
    let options = Options { nodes: options.nodes.min(JOINED_NODES), stop, progress: None, ..*options };
    let (strategy, offsets, outcome) = solve(joined_instance, &options, &heaviest, None);
    Some(((strategy, merge.expand(&offsets)), outcome.nodes))
}

/// From this many nodes for each buffer, the simple strategies also run on a large instance.
const NODES_PER_BUFFER: u64 = 64;

/// Runs the requested strategy. Returns the winning one, the offsets, and the outcome of the
/// search.
fn solve(
    instance: Instance<'_>,
    options: &Options<'_>,
    heaviest: &Heaviest,
    early_plan: Option<Vec<u64>>,
) -> (Strategy, Vec<u64>, search::Outcome) {
    let must_stop = || options.must_stop();
    let searches = matches!(options.strategy, Strategy::Auto | Strategy::Search);
    let early_plan = match early_plan {
        Some(offsets) if !searches => return (options.strategy, offsets, search::Outcome::default()),
        offsets => offsets,
    };
    if let Some(offsets) = portfolio::plan_by_strategy(instance, options.strategy, &must_stop) {
        return (options.strategy, offsets, search::Outcome::default());
    }
    let target = options.capacity.unwrap_or(0).max(heaviest.bytes);
    // Joined buffers take less time than a skyline, and make the better plan where they make one.
    let merged_plan =
        if portfolio::is_large(instance) { plan_merged(instance, options, heaviest) } else { None };
    let used = merged_plan.as_ref().map_or(0, |(_, nodes)| *nodes);
    // A skyline rarely improves a plan within a tenth of the target.
    let is_close = |offsets: &[u64]| instance.peak(offsets) / 11 <= target / 10;
    let (strategy, offsets) = match merged_plan {
        Some((plan, _)) if is_close(&plan.1) => plan,
        merged_plan => {
            let early_plan = early_plan.map(|offsets| (Strategy::GreedyBySize, offsets));
            let first_plan = merged_plan.map(|(plan, _)| plan).or(early_plan);
            portfolio::simple(instance, &heaviest.buffers, target, &must_stop, first_plan)
        }
    };
    let rest = Options { nodes: options.nodes.saturating_sub(used), ..*options };
    let mut outcome = search::search(instance, &rest, heaviest.bytes, &offsets);
    outcome.nodes += used;
    let (strategy, offsets) = match outcome.offsets.take() {
        Some(offsets) => (Strategy::Search, offsets),
        None => (strategy, offsets),
    };
    let (peak, count) = (instance.peak(&offsets), instance.buffers.len() as u64);
    let may_improve =
        portfolio::is_large(instance) && peak > target && options.nodes / NODES_PER_BUFFER >= count;
    let stop = || options.stop.is_some_and(|stop| stop());
    match may_improve.then(|| portfolio::simple_plan_below(instance, target, peak, &stop)).flatten() {
        Some((strategy, offsets)) => (strategy, offsets, outcome),
        None => (strategy, offsets, outcome),
    }
}
