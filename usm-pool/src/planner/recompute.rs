//! Peak against time: operators that run again, and copies to another memory, for a lower peak.
//!
//! The order of the operators stays. Between two uses a tensor may leave the memory: its operator
//! runs again before the next use, with the inputs that it then lacks, or its bytes lie in another
//! memory meanwhile. Each point of the curve is a graph of its own, with a plan.
//!
//! Operators run again only if their results depend on their inputs alone, as
//! [`recomputed`](crate::verify::recomputed) replays. State that an operator writes, bytes
//! that several operators write, and the operators that read or write them stay as they are.

mod bits;
mod build;
mod model;
mod search;
mod stages;

use alloc::vec::Vec;
use core::fmt;

use self::model::Model;
use self::search::Random;
use self::stages::Stages;
use super::{Options, plan_graph};
use crate::graph::Graph;
use crate::plan::Plan;
use crate::problem::Problem;
use crate::verify;

/// Where an operator of a changed graph comes from; operators of the given graph by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The operator itself, at its first run.
    First(usize),
    /// The operator runs again.
    Again(usize),
    /// A copy of a tensor to the other memory.
    Store,
    /// A copy back.
    Fetch,
}

/// One point of the curve.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Point {
    /// The graph with its repeated operators and copies. A tensor in the other memory has the kind
    /// [`State`](crate::TensorKind::State); a tensor without bytes orders its copies.
    pub graph: Graph,
    /// Where each operator of that graph comes from.
    pub sources: Vec<Source>,
    /// The problem of the plan.
    pub problem: Problem,
    /// A plan of the graph; its peak in bytes is that of the point.
    pub plan: Plan,
    /// Time that is added to that of the given graph, in its unit of cost.
    pub time: u64,
}

/// Peak against added time. Each point has a lower peak and more time than the one before. The
/// first is the given graph.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Curve {
    /// At least one point.
    pub points: Vec<Point>,
    /// No change of the graph in this order has a peak below this many bytes.
    pub bound: u64,
    /// The operator whose tensors have these bytes; the number of operators stands for the caller.
    pub bound_at: usize,
}

/// What the search may do.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Effort<'a> {
    /// Bytes that a copy to another memory, or back, moves in one unit of cost; none for no copies.
    pub rate: Option<f64>,
    /// Number of limits on the peak that are tried.
    pub limits: usize,
    /// Tries to save time at each limit.
    pub rounds: usize,
    /// Called regularly; `true` ends the search with the points so far.
    pub stop: &'a dyn Fn() -> bool,
}

impl fmt::Debug for Effort<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rate, limits, rounds, .. } = self;
        f.debug_struct("Effort")
            .field("rate", rate)
            .field("limits", limits)
            .field("rounds", rounds)
            .finish_non_exhaustive()
    }
}

impl Default for Effort<'_> {
    fn default() -> Self {
        Self { rate: None, limits: 16, rounds: 24, stop: &|| false }
    }
}

/// Tries between the least limit that was reached and the greatest that was not.
const HALVINGS: usize = 4;

/// Other choices where a limit was not reached.
const RETRIES: usize = 8;

/// Most operators of a graph whose curve is improved: its tables are kept for each point.
const ROUGH_OPS: usize = 4096;

/// Most operators of a graph that is changed.
pub const MOST_OPS: usize = 16_384;

/// Why a graph has no curve.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RecomputeError {
    /// A loop, whose body stays together.
    Loop {
        /// First operator of the body.
        first: usize,
        /// Last operator of the body.
        last: usize,
    },
    /// More operators than [`MOST_OPS`].
    TooManyOps {
        /// Number of operators.
        ops: usize,
    },
    /// A rate of copies that is no positive number.
    Rate {
        /// Bytes in one unit of cost.
        rate: f64,
    },
    /// No point within the budget was found.
    Budget {
        /// The budget in bytes.
        budget: u64,
        /// The least peak that was found, in bytes.
        least: u64,
        /// No change in this order is below this many bytes.
        bound: u64,
    },
    /// The plan of a point cannot be made.
    Plan(crate::Error),
    /// A defect of the search: a point that the checker refuses.
    Wrong(verify::Violation),
    /// A defect of the search: no graph.
    Graph(crate::GraphError),
}

impl fmt::Display for RecomputeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loop { first, last } => {
                write!(f, "loop [{first}, {last}]: a graph with loops has no operators that run again")
            }
            Self::TooManyOps { ops } => write!(f, "{ops} operators, but at most {MOST_OPS} are searched"),
            Self::Rate { rate } => write!(f, "{rate} bytes in one unit of cost are not above 0"),
            Self::Budget { budget, least, bound } if budget < bound => write!(
                f,
                "no graph fits in {budget} bytes: one operator needs {bound}; the least found is {least}"
            ),
            Self::Budget { budget, least, .. } => {
                write!(f, "no graph was found that fits in {budget} bytes; the least found is {least}")
            }
            Self::Plan(error) => error.fmt(f),
            Self::Wrong(violation) => {
                write!(f, "the planner made a wrong graph, please report it: {violation}")
            }
            Self::Graph(error) => write!(f, "the planner made a wrong graph, please report it: {error}"),
        }
    }
}

impl core::error::Error for RecomputeError {}

/// The curve of a graph in its order, from the peak that it has to the least that is found.
///
/// # Errors
/// [`RecomputeError`]; never `Budget`.
///
/// ```
/// use usm_pool::planner::recompute::{Effort, recompute_curve};
/// use usm_pool::{Graph, Op, Options, Tensor, verify};
///
/// // A large and cheap result that is read at the beginning and at the end.
/// let graph = [(0, 8), (1, 1024), (2, 512), (3, 1024), (4, 8)]
///     .into_iter()
///     .fold(Graph::builder().default_alignment(1), |all, (id, size)| all.tensor(Tensor::new(id, size)))
///     .op(Op::new("read").outputs([0]).cost(5))
///     .op(Op::new("grow").inputs([0]).outputs([1]).cost(2))
///     .op(Op::new("sum").inputs([1]).outputs([2]).cost(9))
///     .op(Op::new("wide").inputs([2]).outputs([3]).cost(9))
///     .op(Op::new("narrow").inputs([3]).outputs([4]).cost(9))
///     .op(Op::new("join").inputs([0, 1, 4]).cost(9))
///     .build()?;
/// let curve = recompute_curve(&graph, &Options::default(), &Effort::default())?;
/// let points: Vec<_> = curve.points.iter().map(|point| (point.plan.peak, point.time)).collect();
/// assert_eq!(points, [(2568, 0), (1544, 2), (1536, 7)]);
/// verify::recomputed(&graph, &curve.points[1].graph, &curve.points[1].sources)?;
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub fn recompute_curve(
    graph: &Graph,
    options: &Options<'_>,
    effort: &Effort<'_>,
) -> Result<Curve, RecomputeError> {
    Search::new(graph, effort)?.curve(options, effort)
}

/// The graph with the least added time that is found with a peak within a budget in bytes.
///
/// # Errors
/// [`RecomputeError`].
pub fn recompute_within(
    graph: &Graph,
    budget: u64,
    options: &Options<'_>,
    effort: &Effort<'_>,
) -> Result<Curve, RecomputeError> {
    let search = Search::new(graph, effort)?;
    let (bound, bound_at) = search.model.bound();
    let original = search.point(&search.without_changes(), options)?;
    if original.plan.peak <= budget {
        return Ok(Curve { points: alloc::vec![original], bound, bound_at });
    }
    let mut limit = budget;
    for _ in 0..4 {
        let Some(stages) = (bound <= limit).then(|| search.within(limit, effort)).flatten() else { break };
        let point = search.point(&stages, options)?;
        if point.plan.peak <= budget {
            return Ok(Curve { points: alloc::vec![point], bound, bound_at });
        }
        // Alignment and placement took more than the sum.
        limit = limit.saturating_sub(point.plan.peak - budget);
    }
    let curve = search.curve(options, effort)?;
    let fits = |point: &&Point| point.plan.peak <= budget;
    match curve.points.iter().find(fits) {
        Some(point) => Ok(Curve { points: alloc::vec![point.clone()], bound, bound_at }),
        None => {
            let least = curve.points.last().map_or(original.plan.peak, |point| point.plan.peak);
            Err(RecomputeError::Budget { budget, least, bound })
        }
    }
}

struct Search<'g> {
    graph: &'g Graph,
    model: Model,
}

impl<'g> Search<'g> {
    fn new(graph: &'g Graph, effort: &Effort<'_>) -> Result<Self, RecomputeError> {
        if let Some(&(first, last)) = graph.loops().first() {
            return Err(RecomputeError::Loop { first, last });
        }
        let ops = graph.ops().len();
        if ops > MOST_OPS {
            return Err(RecomputeError::TooManyOps { ops });
        }
        if let Some(rate) = effort.rate.filter(|rate| !(*rate > 0.0 && rate.is_finite())) {
            return Err(RecomputeError::Rate { rate });
        }
        Ok(Self { graph, model: Model::new(graph, effort.rate).map_err(RecomputeError::Plan)? })
    }

    fn without_changes(&self) -> Stages<'_> {
        Stages::new(&self.model)
    }

    /// Limits from above the bound down to it, evenly.
    fn limits(&self, peak: u64, to: u64, count: usize) -> Vec<u64> {
        let range = u128::from(peak.saturating_sub(to));
        let count = count.max(1) as u128;
        (1..=count).map(|step| peak - (range * step / count) as u64).collect()
    }

    /// A change within a limit: the best of one from the change before, and one from the beginning.
    fn next<'m>(
        &'m self,
        from: &Stages<'m>,
        limit: u64,
        random: &mut Random,
        effort: &Effort<'_>,
    ) -> (Stages<'m>, bool) {
        let mut tries = Vec::new();
        for mut stages in [from.clone(), self.without_changes()] {
            let within = stages.descend(limit, None, effort.stop);
            if within {
                stages.take_back();
            }
            tries.push((stages, within));
        }
        let (mut best, within) = tries
            .into_iter()
            .min_by_key(|(stages, within)| (!within, if *within { stages.cost } else { stages.excess }))
            .unwrap_or_else(|| (self.without_changes(), false));
        let mut within = within;
        for round in 0..effort.rounds.min(RETRIES) {
            if within || (effort.stop)() {
                break;
            }
            // Other choices, from either begin.
            let mut stages = if round % 2 == 0 { self.without_changes() } else { from.clone() };
            within = stages.descend(limit, Some(random), effort.stop);
            if within {
                stages.take_back();
                best = stages;
            }
        }
        (best, within)
    }

    fn within(&self, limit: u64, effort: &Effort<'_>) -> Option<Stages<'_>> {
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let mut stages = self.without_changes();
        for step in self.limits(stages.peak(), limit, 4) {
            let (candidate, within) = self.next(&stages, step, &mut random, effort);
            if !within {
                return None;
            }
            stages = candidate;
        }
        stages.improve(limit, effort.rounds.saturating_mul(4), &mut random, effort.stop);
        Some(stages)
    }

    fn curve(&self, options: &Options<'_>, effort: &Effort<'_>) -> Result<Curve, RecomputeError> {
        let (bound, bound_at) = self.model.bound();
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let mut stages = self.without_changes();
        let mut all = alloc::vec![self.point(&stages, options)?];
        // The whole curve comes first, in case that the time ends.
        let mut rough = Vec::new();
        let mut limits = self.limits(stages.peak(), bound, effort.limits).into_iter();
        let (mut failed_limit, mut halvings) = (None, 0);
        while !(effort.stop)() && halvings < HALVINGS {
            // Below a limit that was not reached there is no other, so the range is halved.
            let limit = match failed_limit {
                None => limits.next(),
                Some(low) => Some(u64::midpoint(stages.peak(), low)),
            };
            let Some(limit) = limit else { break };
            halvings += usize::from(failed_limit.is_some());
            if stages.peak() <= limit {
                continue;
            }
            let (candidate, within) = self.next(&stages, limit, &mut random, effort);
            if candidate.peak() < stages.peak() {
                if self.model.ops.len() <= ROUGH_OPS {
                    rough.push(candidate.clone());
                } else {
                    all.push(self.point(&candidate, options)?);
                }
                stages = candidate;
            }
            if !within {
                failed_limit = Some(limit);
            }
        }
        for mut stages in rough {
            stages.improve(stages.peak(), effort.rounds, &mut random, effort.stop);
            all.push(self.point(&stages, options)?);
        }
        all.sort_by_key(|point| (point.time, point.plan.peak));
        let mut points: Vec<Point> = Vec::new();
        for point in all {
            if points.last().is_none_or(|last| point.plan.peak < last.plan.peak) {
                points.push(point);
            }
        }
        Ok(Curve { points, bound, bound_at })
    }

    /// The graph of a change with its plan, checked.
    fn point(&self, stages: &Stages<'_>, options: &Options<'_>) -> Result<Point, RecomputeError> {
        let (graph, sources) = build::build(self.graph, stages).map_err(RecomputeError::Graph)?;
        verify::recomputed(self.graph, &graph, &sources).map_err(RecomputeError::Wrong)?;
        let (problem, plan) = plan_graph(&graph, options).map_err(RecomputeError::Plan)?;
        let time = u64::try_from(stages.cost).unwrap_or(u64::MAX);
        Ok(Point { graph, sources, problem, plan, time })
    }
}
