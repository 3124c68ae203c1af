//! The order of substitute operators, and which of their outputs they write.

use alloc::vec::Vec;

use super::pattern::mix;
use crate::dependency::Queue;
use crate::graph::{Graph, TensorKind};
use crate::plan::Plan;

/// One step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Gives a tensor the content that it has before a loop begins.
    Fill(usize),
    /// The operator begins to write.
    Start(usize),
    /// The operator has read everything.
    Finish(usize),
}

/// The steps of a run; `seed` chooses one where the queue allows several.
pub(super) fn steps(graph: &Graph, plan: &Plan, seed: u64) -> Vec<Step> {
    let mut steps = Vec::new();
    match plan.queue {
        Queue::InOrder => in_order(graph, 0, graph.ops().len(), None, &mut steps),
        Queue::OutOfOrder => overlapping(graph, plan, seed, &mut steps),
    }
    steps
}

/// Operators `first..end`, which are the body of the loop `of`, if any.
fn in_order(graph: &Graph, first: usize, end: usize, of: Option<usize>, steps: &mut Vec<Step>) {
    let mut op = first;
    while op < end {
        let loops = graph.loops().iter().enumerate();
        // The outermost loop that begins here and is inside of this one; of equal ones the first.
        let inner = loops.filter(|&(at, &(begin, last))| {
            let body = of.map_or((0, usize::MAX), |of| graph.loops()[of]);
            let smaller = (begin, last) != body || of.is_none_or(|of| at > of);
            begin == op && last < end && smaller
        });
        match inner.max_by_key(|&(at, &(_, last))| (last, core::cmp::Reverse(at))) {
            Some((at, &(begin, last))) => {
                steps.extend(read_before_written(graph, begin, last).map(Step::Fill));
                in_order(graph, begin, last + 1, Some(at), steps);
                in_order(graph, begin, last + 1, Some(at), steps);
                op = last + 1;
            }
            None => {
                steps.extend([Step::Start(op), Step::Finish(op)]);
                op += 1;
            }
        }
    }
}

/// Tensors that the body of a loop reads before it writes them.
fn read_before_written(graph: &Graph, first: usize, last: usize) -> impl Iterator<Item = usize> + '_ {
    let body = first..=last;
    graph.tensors().iter().enumerate().filter_map(move |(tensor, node)| {
        let writer = node.producer.filter(|writer| body.contains(writer))?;
        node.users.iter().any(|op| body.contains(op) && *op <= writer).then_some(tensor)
    })
}

/// Operators that overlap at random, as data and ordering edges allow.
fn overlapping(graph: &Graph, plan: &Plan, seed: u64, steps: &mut Vec<Step>) {
    let count = graph.ops().len();
    let mut waits = alloc::vec![0_usize; count];
    let mut after: Vec<Vec<usize>> = (0..count).map(|_| Vec::new()).collect();
    let data = (0..count).flat_map(|op| graph.predecessors(op).into_iter().map(move |before| (before, op)));
    for (before, op) in data.chain(plan.ordering_edges.iter().copied()) {
        waits[op] += 1;
        after[before].push(op);
    }
    let mut ready: Vec<usize> = (0..count).filter(|&op| waits[op] == 0).collect();
    let (mut running, mut random) = (Vec::new(), seed);
    let mut below = |bound: usize| {
        random = random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        (mix(random) % bound.max(1) as u64) as usize
    };
    while !ready.is_empty() || !running.is_empty() {
        if !ready.is_empty() && (running.is_empty() || below(2) == 0) {
            let op = ready.swap_remove(below(ready.len()));
            steps.push(Step::Start(op));
            running.push(op);
        } else {
            let op = running.swap_remove(below(running.len()));
            steps.push(Step::Finish(op));
            for &next in &after[op] {
                waits[next] -= 1;
                if waits[next] == 0 {
                    ready.push(next);
                }
            }
        }
    }
}

/// Placed tensors whose bytes somebody filled before the run: nothing writes them before they are
/// read.
pub(super) fn filled_before_the_run(graph: &Graph) -> impl Iterator<Item = usize> + '_ {
    (0..graph.tensors().len()).filter(|&tensor| {
        let node = &graph.tensors()[tensor];
        let family = || graph.family(node.root).iter().map(|&member| &graph.tensors()[member]);
        let written = family().filter_map(|member| member.producer).min();
        let read = family().filter_map(|member| member.users.first().copied()).min();
        let early = match (written, read) {
            (None, _) => true,
            (Some(written), Some(read)) => read <= written && graph.tensors()[node.root].producer.is_none(),
            (Some(_), None) => false,
        };
        early && node.kind == TensorKind::Activation
    })
}

/// The inputs of an operator, each once.
pub(super) fn inputs(graph: &Graph, op: usize) -> Vec<usize> {
    let mut inputs = graph.ops()[op].inputs.clone();
    inputs.sort_unstable();
    inputs.dedup();
    inputs
}
