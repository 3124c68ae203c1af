//! Peak against ordering edges: how each further edge of an out-of-order graph lowers the peak.

use alloc::vec::Vec;

use super::graph_plan::ordering;
use super::order::critical_path;
use super::{Options, plan_graph_with};
use crate::Error;
use crate::graph::Graph;

/// One point of the curve. No other point has both fewer edges and an equal or lower peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tradeoff {
    /// Number of ordering edges: the first ones of the plan with the most edges.
    pub edges: usize,
    /// Least possible peak with them in bytes (the heaviest antichain).
    pub bound: u64,
    /// Peak of the found plan, in bytes.
    pub peak: u64,
    /// Longest path in units of operator cost.
    pub critical_path: u64,
}

/// Plans an out-of-order graph with increasing numbers of ordering edges, from none to
/// `options.ordering_edges`. Makes at most `points` plans, spread over the numbers, which share the
/// node budget.
///
/// # Errors
/// As [`plan_graph`](super::plan_graph).
///
/// ```
/// use usm_pool::planner::pareto::pareto;
/// use usm_pool::{Graph, Op, Options, Queue, Tensor};
///
/// // Two branches of two operators each, joined at the end.
/// let mut graph = Graph::builder();
/// for id in 0..5 {
///     graph = graph.tensor(Tensor::new(id, 1024));
/// }
/// let graph = graph
///     .op(Op::new("a").outputs([0]))
///     .op(Op::new("b").inputs([0]).outputs([1]))
///     .op(Op::new("c").outputs([2]))
///     .op(Op::new("d").inputs([2]).outputs([3]))
///     .op(Op::new("join").inputs([1, 3]).outputs([4]))
///     .output(4)
///     .build()?;
/// let mut options = Options::default();
/// options.queue = Queue::OutOfOrder;
/// options.ordering_edges = 4;
/// let curve = pareto(&graph, &options, 8)?;
/// assert_eq!((curve[0].edges, curve[0].peak), (0, 4096));
/// assert!(curve.windows(2).all(|pair| pair[0].edges < pair[1].edges && pair[0].peak >
/// pair[1].peak));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub fn pareto(graph: &Graph, options: &Options<'_>, points: usize) -> Result<Vec<Tradeoff>, Error> {
    let ordering = ordering(graph, options)?;
    let rounds = evenly_spaced(ordering.curve.len(), points.max(2));
    let mut options = *options;
    options.nodes /= rounds.len().max(1) as u64;
    let mut curve: Vec<Tradeoff> = Vec::new();
    for round in rounds {
        let point = ordering.curve[round];
        let edges = &ordering.edges[..point.edges];
        let (_, plan) = plan_graph_with(graph, &options, edges)?;
        // With more edges the earlier plans stay valid, so a worse plan is not on the curve.
        if curve.last().is_none_or(|last| plan.peak < last.peak) {
            let (bound, peak) = (plan.lower_bound, plan.peak);
            curve.push(Tradeoff {
                edges: point.edges,
                bound,
                peak,
                critical_path: critical_path(graph, edges),
            });
        }
    }
    Ok(curve)
}

/// At most `most` numbers of `0..len`, evenly spread, including the first and the last.
fn evenly_spaced(len: usize, most: usize) -> Vec<usize> {
    let last = len.saturating_sub(1);
    if len <= most {
        return (0..len).collect();
    }
    (0..most).map(|k| (k as u64 * last as u64 / (most as u64 - 1)) as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::evenly_spaced;

    #[test]
    fn both_ends_are_among_the_points() {
        assert_eq!(evenly_spaced(0, 4), []);
        assert_eq!(evenly_spaced(3, 4), [0, 1, 2]);
        assert_eq!(evenly_spaced(100, 4), [0, 33, 66, 99]);
    }
}
