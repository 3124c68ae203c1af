//! The orders in which a queue may run a graph.

use std::collections::HashMap;

use usm_pool::Row;
use usm_pool::graph::Graph;

use crate::common::executor::Random;
use crate::executor::{Executor, is_read};

enum Step {
    Enter(usize, usize),
    Run(usize),
}

/// Runs in processing order, with a number of iterations for each loop.
pub(crate) fn in_order(graph: &Graph, rows: &[Row], writes_views: bool, rounds: usize) -> Result<(), String> {
    let mut steps = Vec::new();
    push_steps(graph, 0..graph.ops().len(), &mut Vec::new(), rounds, &mut steps);
    let mut executor = Executor::new(graph, rows, writes_views);
    let outcome = steps.iter().try_for_each(|step| match *step {
        Step::Enter(first, last) => {
            executor.enter_loop(first, last);
            Ok(())
        }
        Step::Run(op) => executor.start(op).and_then(|()| executor.finish(op)),
    });
    executor.end(outcome)
}

/// The steps of these operators, inside the entered loops.
fn push_steps(
    graph: &Graph,
    ops: core::ops::Range<usize>,
    entered: &mut Vec<usize>,
    rounds: usize,
    steps: &mut Vec<Step>,
) {
    let mut op = ops.start;
    while op < ops.end {
        let begins = |&(number, &(first, last)): &(usize, &(usize, usize))| {
            first == op && last < ops.end && !entered.contains(&number)
        };
        let outermost = graph.loops().iter().enumerate().filter(begins).max_by_key(|(_, body)| body.1);
        let Some((number, &(first, last))) = outermost else {
            steps.push(Step::Run(op));
            op += 1;
            continue;
        };
        steps.push(Step::Enter(first, last));
        entered.push(number);
        for _ in 0..rounds {
            push_steps(graph, first..last + 1, entered, rounds, steps);
        }
        entered.pop();
        op = last + 1;
    }
}

/// Runs with operators overlapping at random, as the data dependencies and `edges` allow. Omits
/// graphs with loops in loops, or with tensors that a loop carries.
pub(crate) fn out_of_order(
    graph: &Graph,
    rows: &[Row],
    edges: &[(usize, usize)],
    writes_views: bool,
    random: &mut Random,
) -> Result<(), String> {
    if graph.loops().len() > 1 || graph.loops().iter().any(|&body| carries(graph, body)) {
        return Ok(());
    }
    let (instances, waits) = instances(graph, edges);
    let mut executor = Executor::new(graph, rows, writes_views);
    let mut done = vec![false; instances.len()];
    let mut pending: Vec<usize> = (0..instances.len()).collect();
    let mut running: Vec<usize> = Vec::new();
    let mut run = || {
        while !pending.is_empty() || !running.is_empty() {
            let is_ready = |&place: &usize| waits[pending[place]].iter().all(|&before| done[before]);
            let ready: Vec<usize> = (0..pending.len()).filter(is_ready).collect();
            if !ready.is_empty() && (running.is_empty() || random.below(2) == 0) {
                let next = pending.swap_remove(ready[random.below(ready.len() as u64) as usize]);
                executor.start(instances[next].0)?;
                running.push(next);
            } else if running.is_empty() {
                // The edges form a cycle, so no run exists.
                return Ok(false);
            } else {
                let next = running.swap_remove(random.below(running.len() as u64) as usize);
                executor.finish(instances[next].0)?;
                done[next] = true;
            }
        }
        Ok(true)
    };
    match run() {
        Ok(false) => Ok(()),
        outcome => executor.end(outcome.map(drop)),
    }
}

fn carries(graph: &Graph, (first, last): (usize, usize)) -> bool {
    graph.tensors().iter().any(|tensor| {
        let read_before = |writer| tensor.users.iter().any(|user| (first..=writer).contains(user));
        tensor.producer.is_some_and(|writer| (first..=last).contains(&writer) && read_before(writer))
    })
}

/// Operators with their iteration, and for each the operators it waits for. A loop's operators run
/// twice, and no iteration begins before the previous one has ended.
fn instances(graph: &Graph, edges: &[(usize, usize)]) -> (Vec<(usize, usize)>, Vec<Vec<usize>>) {
    let is_inside = |op: usize| graph.loops().iter().any(|&(first, last)| (first..=last).contains(&op));
    let rounds = |op: usize| if is_inside(op) { 2 } else { 1 };
    let instances: Vec<(usize, usize)> =
        (0..graph.ops().len()).flat_map(|op| (0..rounds(op)).map(move |round| (op, round))).collect();
    let places: HashMap<_, _> =
        instances.iter().enumerate().map(|(place, &instance)| (instance, place)).collect();
    let waits = instances.iter().map(|&(op, round)| {
        let mut before = predecessors(graph, op);
        before.retain(|&earlier| earlier < op);
        before.extend(edges.iter().filter(|edge| edge.1 == op).map(|edge| edge.0));
        let at = |earlier| {
            if is_inside(earlier) && is_inside(op) { round } else { rounds(earlier) - 1 }
        };
        let mut waits: Vec<usize> = before.iter().map(|&earlier| places[&(earlier, at(earlier))]).collect();
        if round > 0 {
            let body = graph.loops().iter().flat_map(|&(first, last)| first..=last);
            waits.extend(body.map(|earlier| places[&(earlier, round - 1)]));
        }
        waits
    });
    let waits = waits.collect();
    (instances, waits)
}

/// The operators that an operator has to wait for: the writers of its inputs, and earlier accesses
/// to bytes that one of both writes.
fn predecessors(graph: &Graph, op: usize) -> Vec<usize> {
    let tensors = graph.tensors();
    let node = &graph.ops()[op];
    let mut found: Vec<usize> = node.inputs.iter().filter_map(|&input| tensors[input].producer).collect();
    let meets = |one: usize, other: usize| {
        let (one, other) = (&tensors[one], &tensors[other]);
        let low = one.root_offset.max(other.root_offset);
        one.root == other.root && low < (one.root_offset + one.size).min(other.root_offset + other.size)
    };
    for earlier in 0..op {
        let before = &graph.ops()[earlier];
        let written = |of: &usize| !is_read(graph, earlier, *of);
        let after = before
            .outputs
            .iter()
            .filter(|of| written(of))
            .any(|&of| node.inputs.iter().chain(&node.outputs).any(|&mine| meets(of, mine)));
        let over = node
            .outputs
            .iter()
            .filter(|of| !is_read(graph, op, **of))
            .any(|&mine| before.inputs.iter().chain(&before.outputs).any(|&of| meets(of, mine)));
        found.extend((after || over).then_some(earlier));
    }
    found
}
