//! A curve of peak against the time of operators that run again and of copies, for a plan.

use usm_pool::planner::recompute::{
    Curve, Effort, RecomputeError, Source, recompute_curve, recompute_within,
};
use usm_pool::{Graph, Options, Queue};

use super::Refusal;
use super::fields::{Field, Recompute};
use crate::Outcome;
use crate::error::Error;
use crate::graph_json;

/// A request that was checked for a plan.
#[derive(Clone, Copy, Debug)]
pub struct RecomputeJob<'g> {
    graph: &'g Graph,
    request: Recompute,
}

impl Recompute {
    /// Checks the request for the graph of a plan.
    ///
    /// # Errors
    /// [`Refusal`]: a table, a queue without order, an operator without a cost beside others that
    /// have one, a rate that is not above 0.
    pub fn check(self, outcome: &Outcome) -> Result<RecomputeJob<'_>, Refusal> {
        let of_input = |reason: String| Refusal::new(Field::Input, reason).of_input();
        let Some(graph) = &outcome.graph else {
            return Err(of_input("buffers have no operators; give a graph".to_owned()));
        };
        if outcome.plan.queue != Queue::InOrder {
            let reason = "operators run again in one order; an out-of-order queue has none";
            return Err(Refusal::new(Field::Queue, reason));
        }
        if let Some(place) = &outcome.missing_cost {
            return Err(of_input(format!("{place} is absent, but other operators have a cost")));
        }
        self.check_rate()?;
        Ok(RecomputeJob { graph, request: self })
    }

    pub(super) fn check_rate(self) -> Result<(), Refusal> {
        match self.bytes_per_cost.filter(|rate| !(*rate > 0.0 && rate.is_finite())) {
            Some(rate) => Err(Refusal::new(Field::BytesPerCost, format!("{rate} is not a number above 0"))),
            None => Ok(()),
        }
    }
}

impl RecomputeJob<'_> {
    /// Searches until `stop` is true, or to the end of its effort. Every point is checked.
    ///
    /// # Errors
    /// [`Error`]: no graph within the budget, a graph with loops, too many operators.
    pub fn run(&self, options: &Options<'_>, stop: &dyn Fn() -> bool) -> Result<Curve, Error> {
        let mut effort = Effort::default();
        (effort.rate, effort.stop) = (self.request.bytes_per_cost, stop);
        let mut options = *options;
        options.capacity = None;
        // Each point has a plan.
        options.nodes = options.nodes.min(1 << 16);
        let variant = match self.request.budget {
            Some(budget) => recompute_within(self.graph, budget, &options, &effort),
            None => recompute_curve(self.graph, &options, &effort),
        };
        variant.map_err(|error| match error {
            RecomputeError::Budget { .. } => Error::unable(error).in_option(Field::Budget),
            RecomputeError::Rate { .. } => Error::bad(error).in_option(Field::BytesPerCost),
            RecomputeError::Loop { .. } | RecomputeError::TooManyOps { .. } => Error::bad(error),
            _ => Error::unable(error),
        })
    }
}

/// What a point of a curve is, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a record of a report")]
pub struct PointFacts {
    /// The peak of its plan in bytes.
    pub peak: u64,
    /// Added time in the unit of cost.
    pub time: u64,
    /// Names of the operators that run again, in the point's graph.
    pub repeated: Vec<String>,
    /// Names of the copies in the point's graph.
    pub copies: Vec<String>,
}

impl From<&usm_pool::planner::recompute::Point> for PointFacts {
    fn from(point: &usm_pool::planner::recompute::Point) -> Self {
        let names = |is_wanted: &dyn Fn(Source) -> bool| {
            let ops = point.graph.ops().iter().zip(&point.sources);
            ops.filter(|(_, source)| is_wanted(**source)).map(|(op, _)| op.name.clone()).collect()
        };
        Self {
            peak: point.plan.peak,
            time: point.time,
            repeated: names(&|source| matches!(source, Source::Again(_))),
            copies: names(&|source| matches!(source, Source::Store | Source::Fetch)),
        }
    }
}

/// The graph of a point as graph.json.
///
/// # Errors
/// None known: every key is text.
pub fn text(point: &usm_pool::planner::recompute::Point) -> Result<String, Error> {
    graph_json::text(&point.graph)
}
