//! What a permit to work in place needs, for planners and for bounds.
//!
//! An operator may write its output over its input if the output is no larger, nobody needs the
//! input's block after the operator, nobody needs the output's block before it, and no other input
//! or output has the bytes. A permit that cannot be taken changes nothing: both tensors have bytes
//! of their own in every plan.

use alloc::vec::Vec;

use crate::alias::Block;
use crate::dependency::Reachability;
use crate::graph::Graph;

/// A permit of an operator, and where its tensors lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permit<'a> {
    pub(crate) op: usize,
    pub(crate) input: usize,
    pub(crate) output: usize,
    /// The input's block, and the input's offset in it in bytes.
    pub(crate) source: (&'a Block, u64),
    /// The block that begins with the output.
    pub(crate) target: &'a Block,
}

impl Permit<'_> {
    /// Whether a plan may take the permit: in processing order, or with `reach` in every order that
    /// the paths leave.
    pub(crate) fn can_be_taken(&self, graph: &Graph, reach: Option<&Reachability>) -> bool {
        let Self { op, source: (source, _), target, .. } = *self;
        let is_ordered = match reach {
            None => source.lifetime.upper == op as u64 + 1 && target.lifetime.lower == op as u64,
            Some(reach) => {
                let before = |&other: &usize| other == op || reach.precedes(other, op);
                let after = |&other: &usize| other == op || reach.precedes(op, other);
                // Iterations may overlap.
                let is_in_loop = graph.loops().iter().any(|&(first, last)| (first..=last).contains(&op));
                !is_in_loop && source.ops.iter().all(before) && target.ops.iter().all(after)
            }
        };
        !target.from_start && is_ordered && self.can_be_taken_in_some_order(graph)
    }

    /// What the order of the operators does not decide: whether a plan of some order may take the
    /// permit.
    pub(crate) fn can_be_taken_in_some_order(&self, graph: &Graph) -> bool {
        let Self { input, output, source: (source, _), target, .. } = *self;
        let fits = graph.tensors()[output].size <= graph.tensors()[input].size;
        let are_distinct = source.root != target.root;
        fits && are_distinct && !source.to_end && !self.overwrites(graph)
    }

    /// Whether the operator would overwrite an input that it may still read, or an output. A permit
    /// names one input: each other one that an output touches needs its own, also a view of the
    /// same bytes.
    fn overwrites(&self, graph: &Graph) -> bool {
        let Self { op, source: (source, delta), target, .. } = *self;
        let (node, size) = (&graph.ops()[op], |tensor: usize| graph.tensors()[tensor].size);
        let within = |tensors: &[usize], block: &Block| -> Vec<(usize, u64)> {
            let is_listed = |member: &&(usize, u64)| tensors.contains(&member.0);
            block.members.iter().filter(is_listed).copied().collect()
        };
        let (read, outputs) = (within(&node.inputs, source), within(&node.outputs, source));
        within(&node.outputs, target).iter().any(|&(output, at)| {
            // The output's block fits into the input, so no overflow.
            let low = at.saturating_add(delta);
            let high = low.saturating_add(size(output));
            let touches =
                |&(other, begin): &(usize, u64)| low.max(begin) < high.min(begin.saturating_add(size(other)));
            let is_permitted = |&(input, begin): &(usize, u64)| {
                node.in_place.contains(&(input, output)) && low == begin && size(output) <= size(input)
            };
            outputs.iter().any(touches) || read.iter().any(|input| touches(input) && !is_permitted(input))
        })
    }
}
