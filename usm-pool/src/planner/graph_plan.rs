//! Plans of graphs: uses in-place permits that help and allowed ordering edges, with one bound for
//! all choices.

use super::order::{Lever, Ordering, ordering_edges_until};
use super::{Options, plan};
use crate::Error;
use crate::alias::InPlace;
use crate::bound;
use crate::dependency::{Queue, Reachability};
use crate::graph::Graph;
use crate::placement::{plan_in_memories, shared_bound};
use crate::plan::{Certificate, Plan};
use crate::problem::Problem;

/// Makes a plan for the activations of a graph on the queue of the options. Returns the problem and
/// its plan.
///
/// If the graph has memories, each buffer lies in one of them, where its traffic costs least.
/// In-place permits are used in up to three ways (equal sizes, all that are legal, none) and the
/// lowest peak wins. On an out-of-order queue at most `options.ordering_edges` edges are added, as
/// long as they lower the bound; the executor must enforce them.
///
/// # Errors
/// Sizes whose sum exceeds 64 bits, tables that do not fit in memory, and no plan within the
/// memories of the graph.
pub fn plan_graph(graph: &Graph, options: &Options<'_>) -> Result<(Problem, Plan), Error> {
    match options.queue {
        Queue::OutOfOrder if options.ordering_edges > 0 => {
            plan_graph_with(graph, options, &ordering(graph, options)?.edges)
        }
        _ => plan_graph_with(graph, options, &[]),
    }
}

/// As [`plan_graph`], with given ordering edges (operators by index, the earlier one first) instead
/// of a search for them. A plan for an in-order queue needs none, and has none.
///
/// # Errors
/// As [`plan_graph`], and [`Error::OrderingEdge`] for an edge outside of the graph or one that
/// closes a cycle.
pub fn plan_graph_with(
    graph: &Graph,
    options: &Options<'_>,
    edges: &[(usize, usize)],
) -> Result<(Problem, Plan), Error> {
    let permits = graph.ops().iter().any(|op| !op.in_place.is_empty());
    let choices: &[InPlace] =
        if permits { &[InPlace::SameSize, InPlace::Always, InPlace::Never] } else { &[InPlace::Never] };
    let reach = match options.queue {
        Queue::OutOfOrder => Some(Reachability::until(graph, edges, &|| options.must_stop())?),
        Queue::InOrder => None,
    };
    // In order the common bound is cheap, so it may end the choices.
    let may_end = permits && reach.is_none() && graph.memories().is_empty();
    let mut common = None;
    let mut best: Option<(Problem, Plan)> = None;
    for &choice in choices {
        if best.is_some() && options.must_stop() {
            break;
        }
        let problem = match &reach {
            Some(reach) => Problem::with_reachability_until(graph, reach, choice, &|| options.must_stop())?,
            None => Problem::from_graph(graph, Queue::InOrder, choice)?,
        };
        let plan = match graph.memories() {
            [] => plan(&problem, options)?,
            _ => match plan_in_memories(graph, &problem, options) {
                Ok(plan) => plan,
                // Without permits, buffers are smaller and have fewer pins.
                Err(_) if choice != InPlace::Never => continue,
                Err(_) if best.is_some() => continue,
                // What buffers without permits need is no bound for plans that take some.
                Err(Error::MemoriesFull { room, .. }) if permits => {
                    let (needed, _) = common_bound(graph, reach.as_ref(), options, &problem, true)?;
                    return Err(Error::MemoriesFull { needed, room });
                }
                Err(error) => return Err(error),
            },
        };
        let key = |plan: &Plan| (plan.memory_plan.as_ref().map(|memory_plan| memory_plan.cost), plan.peak);
        if best.as_ref().is_none_or(|(_, least)| key(&plan) < key(least)) {
            best = Some((problem, plan));
        }
        let Some((problem, plan)) = best.as_ref().filter(|_| may_end) else { continue };
        if common.is_none() {
            common = Some(common_bound(graph, None, options, problem, plan.is_spread())?);
        }
        if common.as_ref().is_some_and(|(bytes, _)| plan.peak <= *bytes) {
            break;
        }
    }
    // `choices` is never empty.
    let (problem, mut plan) = best.ok_or(Error::OutOfMemory { bytes: 0 })?;
    if permits {
        // A bound for one choice of permits proves nothing for the others.
        let (bytes, certificate) = match common {
            Some(common) => common,
            None => common_bound(graph, reach.as_ref(), options, &problem, plan.is_spread())?,
        };
        plan.lower_bound = bytes;
        plan.certificate = certificate;
    }
    Ok((problem, plan))
}

/// Edges that lower the bound to the in-order bound, for the most common choice of permits.
pub(super) fn ordering(graph: &Graph, options: &Options<'_>) -> Result<Ordering, Error> {
    let in_order = Problem::from_graph(graph, Queue::InOrder, InPlace::SameSize)?;
    let target = options.capacity.unwrap_or(0).max(bound::time_cut(in_order.buffers()).bytes);
    let mut lever = Lever::new(options.ordering_edges, target);
    lever.keep_critical_path = options.keep_critical_path;
    lever.in_place = InPlace::SameSize;
    ordering_edges_until(graph, &lever, &|| options.must_stop())
}

/// A bound for every choice of permits: an output that may replace its input is not counted in
/// addition to it.
fn common_bound(
    graph: &Graph,
    reach: Option<&Reachability>,
    options: &Options<'_>,
    problem: &Problem,
    is_spread: bool,
) -> Result<(u64, Certificate), Error> {
    // Without time for a relation, the largest tensor is a bound, with and without permits.
    let largest = || {
        let roots = problem.members().iter().filter(|member| !member.view);
        let largest = roots.map(|member| &member.tensor).max_by_key(|tensor| tensor.size);
        let buffers = largest.map(|tensor| tensor.id).into_iter().collect();
        (largest.map_or(0, |tensor| tensor.size), Certificate::Antichain { buffers })
    };
    if options.must_stop() {
        return Ok(largest());
    }
    let relaxation = Problem::relaxed_until(graph, reach, &|| options.must_stop())?;
    match relaxation.is_exact() {
        true if is_spread => shared_bound(&relaxation),
        true => super::bound(&relaxation, options),
        false => Ok(largest()),
    }
}
