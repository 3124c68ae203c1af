//! The problem whose bounds hold for every choice of in-place permits.

use alloc::vec::Vec;

use super::Problem;
use crate::Error;
use crate::alias::{Blocks, InPlace};
use crate::dependency::{Queue, Reachability};
use crate::graph::Graph;
use crate::permit::Permit;

impl Problem {
    /// The activations of a graph, each with bytes of its own, but without the conflict of an
    /// output with the input that it may replace, if a plan can take that permit. Every plan of the
    /// graph, whichever permits it uses, gives the tensors places that this problem allows, so a
    /// bound for this problem holds for all of them.
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
        // Without permits each placed root has its own block, and the buffers are in their order.
        let blocks = Blocks::new(graph, InPlace::Never, reach)?;
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for (op, node) in graph.ops().iter().enumerate() {
            for &(input, output) in &node.in_place {
                let (Some((from, at)), Some((to, 0))) = (blocks.place(input), blocks.place(output)) else {
                    continue;
                };
                let (source, target) = ((&blocks.blocks()[from], at), &blocks.blocks()[to]);
                if (Permit { op, input, output, source, target }).can_be_taken(graph, reach) {
                    pairs.push((from, to));
                }
            }
        }
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
