//! The order of substitute operators, and which of their outputs they write.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;

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

/// An operator in one iteration of each loop around it.
#[derive(Clone, Debug, Default)]
struct Instance {
    op: usize,
    iterations: Vec<Iteration>,
    /// The instances of earlier iterations of these loops.
    after: Vec<Range<usize>>,
}

/// One iteration of a loop.
#[derive(Clone, Copy, Debug)]
struct Iteration {
    body: usize,
    /// Both iterations of a loop have it; a loop in a loop begins again.
    run: usize,
    second: bool,
}

impl Instance {
    /// Whether both are in the same iteration of each loop around both.
    fn is_beside(&self, other: &Self) -> bool {
        self.iterations.iter().all(|mine| {
            let theirs = other.iterations.iter().filter(|theirs| theirs.body == mine.body);
            theirs.into_iter().all(|theirs| (theirs.run, theirs.second) == (mine.run, mine.second))
        })
    }
}

/// The steps of a run; `seed` chooses one where the queue allows several.
pub(super) fn steps(graph: &Graph, plan: &Plan, seed: u64) -> Vec<Step> {
    let mut instances = Vec::new();
    unroll(graph, 0..graph.ops().len(), &Instance::default(), &mut 0, &mut instances);
    let mut steps = Steps { graph, steps: Vec::new(), started_runs: BTreeSet::new() };
    match plan.queue {
        Queue::InOrder => {
            for instance in &instances {
                steps.start(instance);
                steps.steps.push(Step::Finish(instance.op));
            }
        }
        Queue::OutOfOrder => overlapping(plan, seed, &instances, &mut steps),
    }
    steps.steps
}

/// The operators of a range inside of some loops, in order. Each loop runs twice.
fn unroll(
    graph: &Graph,
    ops: Range<usize>,
    inside: &Instance,
    runs: &mut usize,
    instances: &mut Vec<Instance>,
) {
    let mut op = ops.start;
    while op < ops.end {
        let is_entered = |at: usize| inside.iterations.iter().any(|iteration| iteration.body == at);
        let loops = graph.loops().iter().enumerate();
        // The outermost loop that begins here and was not entered; of equal ones the first.
        let next = loops.filter(|&(at, &(begin, last))| begin == op && last < ops.end && !is_entered(at));
        let Some((body, &(begin, last))) = next.max_by_key(|&(at, &(_, last))| (last, Reverse(at))) else {
            instances.push(Instance { op, ..inside.clone() });
            op += 1;
            continue;
        };
        *runs += 1;
        let run = *runs;
        let mut iteration = inside.clone();
        for second in [false, true] {
            let start = instances.len();
            let mut inner = iteration.clone();
            inner.iterations.push(Iteration { body, run, second });
            unroll(graph, begin..last + 1, &inner, runs, instances);
            iteration.after.push(start..instances.len());
        }
        op = last + 1;
    }
}

/// Steps, with the content that loops find.
struct Steps<'g> {
    graph: &'g Graph,
    steps: Vec<Step>,
    /// Runs of loops that have begun.
    started_runs: BTreeSet<usize>,
}

impl Steps<'_> {
    fn start(&mut self, instance: &Instance) {
        for iteration in &instance.iterations {
            if self.started_runs.insert(iteration.run) {
                let (begin, last) = self.graph.loops()[iteration.body];
                self.steps.extend(read_before_written(self.graph, begin, last).map(Step::Fill));
            }
        }
        self.steps.push(Step::Start(instance.op));
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

/// Operators that overlap at random, as data and ordering edges allow. An iteration follows the one
/// before.
fn overlapping(plan: &Plan, seed: u64, instances: &[Instance], steps: &mut Steps<'_>) {
    let graph = steps.graph;
    let mut of: Vec<Vec<usize>> = (0..graph.ops().len()).map(|_| Vec::new()).collect();
    for (at, instance) in instances.iter().enumerate() {
        of[instance.op].push(at);
    }
    let mut waits = alloc::vec![0_usize; instances.len()];
    let mut after: Vec<Vec<usize>> = (0..instances.len()).map(|_| Vec::new()).collect();
    let data = (0..of.len()).flat_map(|op| {
        let before = graph.predecessors(op).into_iter().filter(move |&before| before < op);
        before.map(move |before| (before, op))
    });
    for (before, op) in data.chain(plan.ordering_edges.iter().copied()) {
        for &successor in &of[op] {
            for &earlier in of[before].iter().filter(|&&at| instances[at].is_beside(&instances[successor])) {
                waits[successor] += 1;
                after[earlier].push(successor);
            }
        }
    }
    for (successor, instance) in instances.iter().enumerate() {
        for earlier in instance.after.iter().cloned().flatten() {
            waits[successor] += 1;
            after[earlier].push(successor);
        }
    }
    let mut ready: Vec<usize> = (0..instances.len()).filter(|&at| waits[at] == 0).collect();
    let (mut active, mut random) = (Vec::new(), seed);
    let mut below = |bound: usize| {
        random = random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        (mix(random) % bound.max(1) as u64) as usize
    };
    while !ready.is_empty() || !active.is_empty() {
        if !ready.is_empty() && (active.is_empty() || below(2) == 0) {
            let at = ready.swap_remove(below(ready.len()));
            steps.start(&instances[at]);
            active.push(at);
        } else {
            let at = active.swap_remove(below(active.len()));
            steps.steps.push(Step::Finish(instances[at].op));
            for &next in &after[at] {
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
        let first_write = family().filter_map(|member| member.producer).min();
        let read = family().filter_map(|member| member.users.first().copied()).min();
        let is_filled = match (first_write, read) {
            (None, _) => true,
            (Some(write), Some(read)) => read <= write && graph.tensors()[node.root].producer.is_none(),
            (Some(_), None) => false,
        };
        is_filled && node.kind == TensorKind::Activation
    })
}

/// The inputs of an operator, each once.
pub(super) fn inputs(graph: &Graph, op: usize) -> Vec<usize> {
    let mut inputs = graph.ops()[op].inputs.clone();
    inputs.sort_unstable();
    inputs.dedup();
    inputs
}
