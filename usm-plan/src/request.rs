//! What a caller may ask for beside a plan, checked once for the command and for Python.
//!
//! Each face names the fields as its options are called.

use core::fmt;

use usm_pool::planner::recompute::{
    Curve, Effort, RecomputeError, Source, recompute_curve, recompute_within,
};
use usm_pool::{Graph, Options, Queue};

use crate::Outcome;
use crate::error::Error;
use crate::graph_json;

/// A curve of peak against the time of operators that run again and of copies.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "a caller says all of it")]
pub struct Request {
    /// One graph within this many bytes, instead of the curve.
    pub budget: Option<u64>,
    /// Bytes that a copy to another memory, or back, moves in one unit of cost; none for no copies.
    pub bytes_per_cost: Option<f64>,
}

/// Why a request cannot be a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "two parts of a message")]
pub struct Refusal {
    /// The name of the field, as in [`Request`]; `input` for the graph.
    pub field: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

impl Refusal {
    fn new(field: &'static str, reason: impl fmt::Display) -> Self {
        Self { field, reason: reason.to_string() }
    }
}

/// A request that was checked for a graph.
#[derive(Clone, Copy, Debug)]
pub struct Job<'g> {
    graph: &'g Graph,
    request: Request,
}

impl Request {
    /// Checks the request for the graph of a plan.
    ///
    /// # Errors
    /// [`Refusal`]: a table, a queue without order, an operator without a cost beside others that
    /// have one, a rate that is not above 0.
    pub fn check(self, outcome: &Outcome) -> Result<Job<'_>, Refusal> {
        let Some(graph) = &outcome.graph else {
            return Err(Refusal::new("input", "buffers have no operators; give a graph"));
        };
        if outcome.plan.queue != Queue::InOrder {
            let reason = "operators run again in one order; an out-of-order queue has none";
            return Err(Refusal::new("queue", reason));
        }
        if let Some(place) = &outcome.missing_cost {
            let reason = format!("{place} is absent, but other operators have a cost");
            return Err(Refusal::new("input", reason));
        }
        if let Some(rate) = self.bytes_per_cost.filter(|rate| !(*rate > 0.0 && rate.is_finite())) {
            return Err(Refusal::new("bytes_per_cost", format!("{rate} is not a number above 0")));
        }
        Ok(Job { graph, request: self })
    }
}

impl Job<'_> {
    /// Searches until `stop` is true, or to the end of its effort. Every point is checked.
    ///
    /// # Errors
    /// [`Error`]: no graph within the budget, a graph with loops, too many operators. `name` gives a
    /// field its name in this face.
    pub fn run(
        &self,
        options: &Options<'_>,
        stop: &dyn Fn() -> bool,
        name: &dyn Fn(&'static str) -> String,
    ) -> Result<Curve, Error> {
        let mut effort = Effort::default();
        (effort.rate, effort.stop) = (self.request.bytes_per_cost, stop);
        let mut options = *options;
        options.capacity = None;
        // Each point has a plan.
        options.nodes = options.nodes.min(1 << 16);
        let found = match self.request.budget {
            Some(budget) => recompute_within(self.graph, budget, &options, &effort),
            None => recompute_curve(self.graph, &options, &effort),
        };
        found.map_err(|error| match error {
            RecomputeError::Budget { .. } => Error::unable(error).in_field(name("budget")),
            RecomputeError::Rate { .. } => Error::bad(error).in_field(name("bytes_per_cost")),
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
        let names = |wanted: &dyn Fn(Source) -> bool| {
            let ops = point.graph.ops().iter().zip(&point.sources);
            ops.filter(|(_, source)| wanted(**source)).map(|(op, _)| op.name.clone()).collect()
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
