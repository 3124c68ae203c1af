//! Out-of-order conflicts against brute force: every state that an execution of a small random
//! graph can reach.

#![cfg(feature = "alloc")]

mod common;

use common::executor::Random;
use usm_pool::alias::{Blocks, InPlace};
use usm_pool::dependency::{Queue, Reachability, conflicts};
use usm_pool::{Graph, Op, Tensor};

/// A random graph of `n` operators, each with one output; each reads each earlier output with
/// probability `percent`.
fn random_graph(random: &mut Random, n: usize, percent: u64) -> Graph {
    let mut builder = Graph::builder().default_alignment(1);
    for op in 0..n {
        let inputs: Vec<u64> = (0..op as u64).filter(|_| random.below(100) < percent).collect();
        builder =
            builder.tensor(Tensor::new(op as u64, 1)).op(Op::new("").inputs(inputs).outputs([op as u64]));
    }
    if random.below(2) == 0 {
        builder = builder.output(random.below(n as u64));
    }
    builder.build().expect("graph")
}

/// Pairs of tensors that are live together in some reachable state, as one bit mask for each
/// tensor.
///
/// A state is the set of finished operators; every ready operator may be running. A tensor is live
/// from the start of its producer to the end of its last user.
fn live_together(graph: &Graph) -> Vec<u64> {
    let n = graph.ops().len();
    let before: Vec<u64> =
        (0..n).map(|op| graph.ops()[op].inputs.iter().fold(0, |mask, &input| mask | 1 << input)).collect();
    let users: Vec<u64> =
        graph.tensors().iter().map(|t| t.users.iter().fold(0, |mask, &user| mask | 1 << user)).collect();
    let mut pairs = vec![0_u64; n];
    for done in 0..1_u64 << n {
        if (0..n).any(|op| done >> op & 1 == 1 && before[op] & !done != 0) {
            continue;
        }
        let mut live = 0_u64;
        for op in 0..n {
            let finished = done >> op & 1 == 1;
            let running = !finished && before[op] & !done == 0;
            let waited_for = users[op] & !done != 0 || graph.tensors()[op].is_output;
            if running || (finished && waited_for) {
                live |= 1 << op;
            }
        }
        for (op, mask) in pairs.iter_mut().enumerate() {
            if live >> op & 1 == 1 {
                *mask |= live & !(1 << op);
            }
        }
    }
    pairs
}

/// 20,000 graphs; `USM_DAGS` sets another number.
#[test]
fn conflicts_are_exactly_the_pairs_that_can_be_live_together() {
    let count = std::env::var("USM_DAGS").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000_u64);
    let mut random = Random(1);
    let mut pairs = 0_u64;
    for round in 0..count {
        let n = 1 + random.below(8) as usize;
        let percent = 10 + random.below(70);
        let graph = random_graph(&mut random, n, percent);
        let expected = live_together(&graph);
        let blocks = Blocks::new(&graph, InPlace::Never, None).expect("blocks");
        let found = conflicts(&graph, &blocks, Queue::OutOfOrder).expect("conflicts");
        for (i, &mask) in expected.iter().enumerate() {
            assert_eq!(found.row(i)[0], mask, "round {round}: tensor {i} of {graph:?}");
            pairs += u64::from(mask.count_ones());
        }
    }
    println!("{count} graphs, {} conflicting pairs, none missing and none too many", pairs / 2);
    assert!(pairs > 0);
}

/// Graphs of more operators than a word has bits, against the definition: all accesses to one of
/// the two before all accesses to the other.
#[test]
fn conflicts_of_long_graphs_are_what_the_paths_say() {
    let one = |inputs: &dyn Fn(u64) -> Vec<u64>| {
        let mut builder = Graph::builder().default_alignment(1).op(Op::new("makes nothing"));
        for op in 0..200 {
            builder = builder.tensor(Tensor::new(op, 1)).op(Op::new("").inputs(inputs(op)).outputs([op]));
        }
        builder.output(199).build().expect("graph")
    };
    let back = |op: u64, step: u64| op.checked_sub(step).into_iter().collect::<Vec<_>>();
    let star = |op: u64| if op == 0 { vec![] } else { vec![op * (op % 3) / 4] };
    let rooms: [&dyn Fn(u64) -> Vec<u64>; 5] =
        [&|op| back(op, 1), &|op| back(op, 3), &|op| back(op, 64), &star, &|op| {
            let (mut inputs, near) = (star(op), op / 2);
            inputs.extend((op > 0 && !inputs.contains(&near)).then_some(near));
            inputs
        }];
    for (number, inputs) in rooms.into_iter().enumerate() {
        let graph = one(inputs);
        let blocks = Blocks::new(&graph, InPlace::Never, None).expect("blocks");
        let found = conflicts(&graph, &blocks, Queue::OutOfOrder).expect("conflicts");
        let reach = Reachability::new(&graph, &[]).expect("paths");
        let blocks = blocks.blocks();
        let completes_before = |a: usize, b: usize| {
            let (a, b) = (&blocks[a], &blocks[b]);
            !a.to_end && a.ops.iter().all(|&x| b.ops.iter().all(|&y| reach.precedes(x, y)))
        };
        for a in 0..blocks.len() {
            for b in 0..blocks.len() {
                let expected = a != b && !completes_before(a, b) && !completes_before(b, a);
                assert_eq!(found.contains(a, b), expected, "graph {number}: {a} and {b}");
            }
        }
    }
}
