//! The problem whose bounds hold for every choice of in-place permits.

use alloc::vec::Vec;

use super::Problem;
use crate::Error;
use crate::alias::InPlace;
use crate::dependency::{Queue, Reachability};
use crate::graph::Graph;

impl Problem {
    /// The activations of a graph, each with bytes of its own, but without the conflict of an
    /// output with the input that it may replace. Every plan of the graph, whichever permits it
    /// uses, gives the tensors places that this problem allows, so a bound for this problem holds
    /// for all of them.
    ///
    /// # Errors
    /// As [`Self::from_graph`].
    pub fn relaxed(graph: &Graph, queue: Queue) -> Result<Self, Error> {
        let reach = match queue {
            Queue::InOrder => None,
            Queue::OutOfOrder => Some(Reachability::new(graph, &[])?),
        };
        Self::relaxed_until(graph, reach.as_ref(), &|| false)
    }

    /// As [`Self::relaxed`], with the known order of an out-of-order queue; with extra conflicts if
    /// `stop` returns true.
    pub(crate) fn relaxed_until(
        graph: &Graph,
        reach: Option<&Reachability>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        let mut problem = match reach {
            Some(reach) => Self::with_reachability_until(graph, reach, InPlace::Never, stop)?,
            None => Self::from_graph(graph, Queue::InOrder, InPlace::Never)?,
        };
        // Buffers have the id of their root; without permits each placed root has its own buffer.
        let mut buffer_of = alloc::vec![None; graph.tensors().len()];
        for (at, buffer) in problem.buffers.iter().enumerate() {
            if let Some(root) = graph.tensor_index(buffer.id) {
                buffer_of[root] = Some(at);
            }
        }
        let index = |tensor: usize| buffer_of[graph.tensors()[tensor].root];
        let permits = graph
            .ops()
            .iter()
            .enumerate()
            .flat_map(|(op, node)| node.in_place.iter().map(move |&pair| (op, pair)));
        // The conditions of a legal permit: enough size and, on an in-order queue, an input whose
        // life ends here.
        let usable = |&(op, (input, output)): &(usize, (usize, usize))| {
            let dies = graph.lifetime(input).upper == op as u64 + 1;
            graph.tensors()[output].size <= graph.tensors()[input].size && (dies || reach.is_some())
        };
        let pairs: Vec<(usize, usize)> = permits
            .filter(usable)
            .filter_map(|(_, (input, output))| Some((index(input)?, index(output)?)))
            .collect();
        match &mut problem.conflicts {
            Some(conflicts) => pairs.iter().for_each(|&(input, output)| conflicts.remove(input, output)),
            None => {
                // The output counts from the instant after its operator, when the input's life has
                // ended.
                let begins: Vec<u64> = problem.buffers.iter().map(|buffer| buffer.lower).collect();
                for (_, output) in pairs {
                    let buffer = &mut problem.buffers[output];
                    buffer.lower = buffer.upper.min(begins[output] + 1);
                }
            }
        }
        Ok(problem)
    }
}
