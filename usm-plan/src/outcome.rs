//! Plans of inputs, and their checks.

use std::fmt;
use std::path::Path;
use std::time::Instant;

use usm_pool::alias::InPlace;
use usm_pool::placement::{Limits, plan_graph_within, plan_within};
use usm_pool::planner::pareto::Tradeoff;
use usm_pool::planner::reorder::{Effort, Reordered, reorder_within};
use usm_pool::report::ComparisonRow;
use usm_pool::verify::Violation;
use usm_pool::{Graph, Options, OrderBound, Plan, Problem, Queue, verify};

use crate::clock::StopReason;
use crate::error::{Error, Result};
use crate::field::Field;
use crate::model::{Input, Model};
use crate::proof::ProvenBound;

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
    pub stop_reason: Option<StopReason>,
    /// The result of a search for another order, if requested.
    pub reorder: Option<Reordered>,
    /// A bound on the peak of every order of the operators, if one was searched for.
    pub every_order: Option<OrderBound>,
    /// The place of an operator without a cost in the input, if others have one.
    pub missing_cost: Option<String>,
    /// Peak against edges, if requested.
    pub curve: Option<Vec<Tradeoff>>,
    /// Every strategy, if requested.
    pub comparison: Option<Vec<ComparisonRow>>,
    /// The proof of a bound as text, and the bound that it proves, if requested.
    pub proof: Option<(String, ProvenBound)>,
}

/// Plans an input. With `reorders` it looks for an order with a lower peak, unless the reader chose
/// one. `file` is the name in errors.
///
/// # Errors
/// Sizes that no plan can hold, and tables that do not match.
pub(crate) fn make(
    input: Input,
    options: &Options<'_>,
    limits: &Limits,
    reorders: bool,
    file: &Path,
) -> Result<Outcome> {
    let start = Instant::now();
    let in_file = |error| failed(error).in_file(file);
    let (mut reorder, mut every_order, mut missing_cost) = (None, None, None);
    let (graph, problem, plan) = match input {
        Input::Buffers(problem) => {
            let plan = plan_within(&problem, options, limits).map_err(in_file)?;
            (None, problem, plan)
        }
        Input::Graph(Model { graph, planned: Some(plan_set), .. }) => {
            let refusal =
                |field| Err(Error::bad("the plans of the file say all").in_option(field).in_file(file));
            if reorders {
                return refusal(Field::Reorder);
            }
            if *limits != Limits::default() {
                let device = limits.device_memory.is_some();
                return refusal(if device { Field::DeviceMemory } else { Field::MaxAlloc });
            }
            let (problem, plan) = plan_set.plan(&graph, options).map_err(|error| error.in_file(file))?;
            (Some(graph), problem, plan)
        }
        Input::Graph(model) => {
            let reordered_model = ordered(model, reorders, options, file)?;
            (reorder, every_order) = (reordered_model.reordered, reordered_model.every_order);
            missing_cost = reordered_model.missing_cost;
            let graph = reordered_model.graph;
            let (problem, plan) = plan_graph_within(&graph, options, limits).map_err(in_file)?;
            (Some(graph), problem, plan)
        }
    };
    if plan.is_spread() {
        // It is about one memory, where a tensor may need rounding.
        every_order = None;
    }
    let seconds = start.elapsed().as_secs_f64();
    let (stop_reason, curve, comparison, proof) = (None, None, None, None);
    Ok(Outcome {
        graph,
        problem,
        plan,
        seconds,
        stop_reason,
        reorder,
        every_order,
        missing_cost,
        curve,
        comparison,
        proof,
    })
}

/// Why there is no plan: a request that the memories of a graph cannot fulfil, or a bad input.
fn failed(error: usm_pool::Error) -> Error {
    match error {
        usm_pool::Error::MemoriesFull { .. } | usm_pool::Error::ExceedsMemories { .. } => {
            Error::unable(error)
        }
        error => Error::bad(error),
    }
}

/// The model in the order for planning.
pub(crate) fn ordered(model: Model, reorders: bool, options: &Options<'_>, file: &Path) -> Result<Model> {
    if !reorders || model.reordered.is_some() || options.queue == Queue::OutOfOrder {
        return Ok(model);
    }
    let stop = || options.stop.is_some_and(|stop| stop());
    let effort = Effort::new(options.order_sets, &stop);
    let result = reorder_within(&model.graph, InPlace::SameSize, &effort);
    let mut reorder = result.map_err(|error| Error::bad(error).in_file(file))?;
    let every_order = reorder.every_order.take();
    let graph = model.graph.reordered(&reorder.order).map_err(Error::unable)?;
    Ok(Model {
        reordered: Some(reorder),
        every_order,
        missing_cost: model.missing_cost,
        ..Model::from(graph)
    })
}

impl fmt::Display for Outcome {
    /// One line for people: the plan, and whether its order is proven or a heuristic.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.plan)?;
        self.order_optimality().map_or(Ok(()), |word| write!(f, ", order: {word}"))
    }
}

impl Outcome {
    /// Whether the lower bound is a claim of the search, without a proof that was replayed.
    #[must_use]
    pub fn is_claim(&self) -> bool {
        let bound = self.plan.lower_bound;
        self.plan.certificate.is_claim()
            && self.proof.as_ref().is_none_or(|(_, bound_proof)| bound_proof.bound < bound)
    }

    /// Whether no other order of the operators has a plan with a lower peak. False if no order was
    /// searched for.
    #[must_use]
    pub fn is_best_order(&self) -> bool {
        let Self { plan, every_order, .. } = self;
        plan.feasible() && every_order.as_ref().is_some_and(|bound| bound.bytes == plan.peak)
    }

    /// "proven" if no other order has a lower peak, "heuristic" if that is not shown, also where
    /// the bound on all orders is below the peak of the only one. `None` if no order was searched
    /// for.
    #[must_use]
    pub fn order_optimality(&self) -> Option<&'static str> {
        self.reorder.as_ref().map(|_| if self.is_best_order() { "proven" } else { "heuristic" })
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
            verify::memories(graph, problem, plan).map_err(wrong_plan)?;
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
