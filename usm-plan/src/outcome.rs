//! Makes a checked plan from an input.

use std::path::Path;
use std::time::{Duration, Instant};

use usm_pool::alias::InPlace;
use usm_pool::placement::{Limits, plan_graph_within, plan_within};
use usm_pool::planner::pareto::Tradeoff;
use usm_pool::planner::reorder::{Effort, Reordered, reorder_within};
use usm_pool::report::Compared;
use usm_pool::verify::Violation;
use usm_pool::{Graph, Options, OrderBound, Plan, Problem, Queue, Strategy, verify};

use crate::clock::{Clock, Stopped};
use crate::error::{Error, Result};
use crate::input::{Input, Model};
use crate::proof::Proven;

/// The request for a plan.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "a caller says all of it")]
pub struct Wanted {
    /// The queue that will run the plan.
    pub queue: Queue,
    /// The planning strategy.
    pub strategy: Strategy,
    /// Decides whether a plan fits in this many bytes.
    pub capacity: Option<u64>,
    /// Time limit for everything. Without it [`Strategy::Auto`] has
    /// [`AUTO_LIMIT`](crate::clock::AUTO_LIMIT), and a count of nodes limits the others.
    pub time_limit: Option<Duration>,
    /// Threads that search, at least 1 and at most [`MOST_THREADS`].
    pub threads: usize,
}

/// More threads than any machine has a use for.
pub const MOST_THREADS: usize = 1024;

impl Wanted {
    /// A clock that runs since `start`.
    #[must_use]
    pub fn clock(&self, start: Instant) -> Clock<'static> {
        Clock::new(start, self.time_limit, self.strategy)
    }

    /// The planner's options. The planner calls `stop` regularly; true ends the search.
    #[must_use]
    pub fn options<'a>(&self, clock: &Clock<'_>, stop: &'a (dyn Fn() -> bool + Sync)) -> Options<'a> {
        let mut options = Options::default();
        options.strategy = self.strategy;
        options.queue = self.queue;
        options.capacity = self.capacity;
        options.threads = self.threads;
        options.stop = Some(stop);
        clock.rule(&mut options);
        options
    }
}

/// A plan, its problem, and the planning time.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The graph; `None` for a table of buffers.
    pub graph: Option<Graph>,
    /// The solved problem.
    pub problem: Problem,
    /// The plan.
    pub plan: Plan,
    /// Seconds of planning.
    pub seconds: f64,
    /// The reason of an early stop, from the caller's clock.
    pub stopped: Option<Stopped>,
    /// The result of a search for another order, if requested.
    pub reordered: Option<Reordered>,
    /// A bound on the peak of every order of the operators, if one was searched for.
    pub every_order: Option<OrderBound>,
    /// The place of an operator without a cost in the input, if others have one.
    pub missing_cost: Option<String>,
    /// Peak against edges, if requested.
    pub curve: Option<Vec<Tradeoff>>,
    /// Every strategy, if requested.
    pub compared: Option<Vec<Compared>>,
    /// The bound whose proof was written, if requested.
    pub proven: Option<Proven>,
}

/// Plans an input. With `again` it looks for an order with a lower peak, unless the reader chose
/// one. `file` is the name in errors.
///
/// # Errors
/// Sizes that no plan can hold, and tables that do not match.
pub fn make(
    input: Input,
    options: &Options<'_>,
    limits: &Limits,
    again: bool,
    file: &Path,
) -> Result<Outcome> {
    let start = Instant::now();
    let named = |error| Error::bad(error).in_file(file);
    let (mut reordered, mut every_order, mut missing_cost) = (None, None, None);
    let (graph, problem, plan) = match input {
        Input::Buffers(problem) => {
            let plan = plan_within(&problem, options, limits).map_err(named)?;
            (None, problem, plan)
        }
        Input::Graph(Model { graph, planned: Some(planned), .. }) => {
            let refused =
                |field| Err(Error::bad("the plans of the file say all").in_field(field).in_file(file));
            if again {
                return refused("--reorder");
            }
            if *limits != Limits::default() {
                return refused("--device-memory, --max-alloc");
            }
            let (problem, plan) = planned.plan(&graph, options).map_err(|error| error.in_file(file))?;
            (Some(graph), problem, plan)
        }
        Input::Graph(model) => {
            let ordered = ordered(model, again, options, file)?;
            (reordered, every_order) = (ordered.reordered, ordered.every_order);
            missing_cost = ordered.missing_cost;
            let graph = ordered.graph;
            let (problem, plan) = plan_graph_within(&graph, options, limits).map_err(named)?;
            (Some(graph), problem, plan)
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    let (stopped, curve, compared, proven) = (None, None, None, None);
    Ok(Outcome {
        graph,
        problem,
        plan,
        seconds,
        stopped,
        reordered,
        every_order,
        missing_cost,
        curve,
        compared,
        proven,
    })
}

/// The model in the order for planning.
pub(crate) fn ordered(model: Model, again: bool, options: &Options<'_>, file: &Path) -> Result<Model> {
    if !again || model.reordered.is_some() || options.queue == Queue::OutOfOrder {
        return Ok(model);
    }
    let stop = || options.stop.is_some_and(|stop| stop());
    let effort = Effort::new(options.order_sets, &stop);
    let found = reorder_within(&model.graph, InPlace::SameSize, &effort);
    let mut found = found.map_err(|error| Error::bad(error).in_file(file))?;
    let every_order = found.every_order.take();
    let graph = model.graph.reordered(&found.order).map_err(Error::unable)?;
    Ok(Model { reordered: Some(found), every_order, missing_cost: model.missing_cost, ..Model::from(graph) })
}

impl Outcome {
    /// Whether the lower bound is a claim of the search, without a proof that was replayed.
    #[must_use]
    pub fn is_claim(&self) -> bool {
        let bound = self.plan.lower_bound;
        self.plan.certificate.is_claim() && self.proven.is_none_or(|proven| proven.bound < bound)
    }

    /// Whether no other order of the operators has a plan with a lower peak. False if no order was
    /// searched for.
    #[must_use]
    pub fn is_best_order(&self) -> bool {
        let Self { plan, every_order, .. } = self;
        plan.feasible() && every_order.as_ref().is_some_and(|bound| bound.bytes == plan.peak)
    }

    /// Checks the plan against its problem and graph, and the bound on every order. The checker
    /// shares no code with the planners.
    ///
    /// # Errors
    /// A fault of the plan, which would be a defect of the planner.
    pub fn check(&self) -> Result<()> {
        let Self { graph, problem, plan, every_order, .. } = self;
        plan.verify(problem).map_err(wrong_plan)?;
        if let Some(graph) = graph {
            verify::graph(graph, plan.queue, &plan.ordering_edges, &plan.rows).map_err(wrong_plan)?;
            if let Some(bound) = every_order {
                verify::order_bound(graph, bound).map_err(wrong_plan)?;
                if bound.bytes > plan.peak {
                    return Err(wrong_plan(Violation::OrderBelow { limit: plan.peak }));
                }
            }
        }
        Ok(())
    }
}

fn wrong_plan(violation: Violation) -> Error {
    Error::unable(format!("the planner made a wrong plan, please report it: {violation}"))
}
