//! The best order of series-parallel graphs, against all sets of operators and at any size.

#![cfg(feature = "alloc")]

mod common;

use common::executor::Random;
use usm_pool::alias::InPlace;
use usm_pool::planner::reorder::{Effort, reorder_within};
use usm_pool::verify::Violation;
use usm_pool::{Graph, Op, OrderBound, OrderCertificate, Tensor, verify};

/// What the results of a graph are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Results {
    /// One for each reader.
    Apart,
    /// One for all readers.
    Shared,
    /// Either.
    Mixed,
}

/// Edges of a random series-parallel graph of so many operators, numbered in an order.
fn edges(random: &mut Random, ops: u64, wide: u64) -> Vec<(u64, u64)> {
    let mut edges = vec![(0_usize, 1_usize)];
    for new in 2..ops as usize {
        let at = random.below(edges.len() as u64) as usize;
        let (from, to) = edges[at];
        // Beside the edge or in it.
        if random.below(10) < wide {
            edges.push((from, new));
        } else {
            edges[at] = (from, new);
        }
        edges.push((new, to));
    }
    // Positions in a random order that the edges allow.
    let mut waits = vec![0; ops as usize];
    edges.iter().for_each(|&(_, to)| waits[to] += 1);
    let mut after = vec![Vec::new(); ops as usize];
    edges.iter().for_each(|&(from, to)| after[from].push(to));
    let mut ready = vec![0];
    let mut position = vec![0; ops as usize];
    let mut count = 0;
    while !ready.is_empty() {
        let op = ready.swap_remove(random.below(ready.len() as u64) as usize);
        position[op] = count;
        count += 1;
        for &to in &after[op] {
            waits[to] -= 1;
            if waits[to] == 0 {
                ready.push(to);
            }
        }
    }
    edges.into_iter().map(|(from, to)| (position[from], position[to])).collect()
}

fn random_graph(random: &mut Random, ops: u64, wide: u64, results: Results, alignment: u64) -> Graph {
    let mut edges = edges(random, ops, wide);
    edges.sort_unstable();
    edges.dedup();
    let size = |random: &mut Random| match random.below(4) {
        0 => 1 + random.below(3),
        1 => 1 + random.below(1000),
        _ => 1 + random.below(100),
    };
    let mut builder = Graph::builder().default_alignment(alignment);
    let mut inputs: Vec<Vec<u64>> = vec![Vec::new(); ops as usize];
    let mut next = 0;
    for op in 0..ops {
        let readers: Vec<u64> = edges.iter().filter(|edge| edge.0 == op).map(|edge| edge.1).collect();
        let is_shared = match results {
            Results::Apart => false,
            Results::Shared => true,
            Results::Mixed => random.below(2) == 0,
        };
        let mut outputs = Vec::new();
        let groups: Vec<Vec<u64>> =
            if is_shared { vec![readers] } else { readers.into_iter().map(|reader| vec![reader]).collect() };
        for group in groups {
            builder = builder.tensor(Tensor::new(next, size(random)));
            if group.is_empty() || random.below(12) == 0 {
                builder = builder.output(next);
            }
            group.iter().for_each(|&reader| inputs[reader as usize].push(next));
            outputs.push(next);
            next += 1;
        }
        let reads = inputs[op as usize].clone();
        let described = Op::new("").inputs(reads).outputs(outputs);
        let workspace = if random.below(6) == 0 { random.below(300) } else { 0 };
        builder = builder.op(described.workspace(workspace));
    }
    builder.build().expect("graph")
}

/// The least peak of all orders: over all sets of operators. Knows only who makes and reads what.
fn least_peak(graph: &Graph) -> u64 {
    let n = graph.ops().len();
    let mask = |ops: &[usize]| ops.iter().fold(0_u32, |mask, &op| mask | 1 << op);
    let tensors: Vec<(u64, u32, u32, bool)> = graph
        .tensors()
        .iter()
        .map(|t| (t.size, mask(&t.producer.into_iter().collect::<Vec<_>>()), mask(&t.users), t.is_output))
        .collect();
    let mut before = vec![0_u32; n];
    for &(_, producer, users, _) in &tensors {
        (0..n).filter(|op| users >> op & 1 == 1).for_each(|op| before[op] |= producer);
    }
    let mut least = vec![u64::MAX; 1 << n];
    least[0] = 0;
    for done in 0..1_u32 << n {
        if least[done as usize] == u64::MAX {
            continue;
        }
        for op in (0..n).filter(|&op| done >> op & 1 == 0 && before[op] & !done == 0) {
            let with = done | 1 << op;
            let live = |&&(_, producer, users, is_output): &&(u64, u32, u32, bool)| {
                producer & with != 0 && (producer >> op & 1 == 1 || is_output || users & !done != 0)
            };
            let sum = tensors.iter().filter(live).map(|&(size, ..)| size).sum();
            let most = least[done as usize].max(sum);
            least[with as usize] = least[with as usize].min(most);
        }
    }
    least[(1 << n) - 1]
}

/// One result that two or three chains read, which an operator joins, in a random order that the
/// chains allow.
fn fork(random: &mut Random) -> Graph {
    let chains: Vec<u64> = (0..2 + random.below(2)).map(|_| 1 + random.below(4)).collect();
    let mut builder = Graph::builder().default_alignment(1).tensor(Tensor::new(0, 1 + random.below(11)));
    builder = builder.op(Op::new("").outputs([0]));
    let (mut next, mut last) = (1, vec![0; chains.len()]);
    let mut left = chains;
    while left.iter().any(|&left| left > 0) {
        let chain = random.below(left.len() as u64) as usize;
        if left[chain] == 0 {
            continue;
        }
        left[chain] -= 1;
        builder = builder.tensor(Tensor::new(next, 1 + random.below(12)));
        if random.below(5) == 0 {
            builder = builder.output(next);
        }
        let workspace = if random.below(3) == 0 { random.below(12) } else { 0 };
        builder = builder.op(Op::new("").inputs([last[chain]]).outputs([next]).workspace(workspace));
        last[chain] = next;
        next += 1;
    }
    builder.op(Op::new("").inputs(last)).build().expect("graph")
}

/// A stop behind the highest peak on the way there may need a higher one on the way on.
#[test]
fn chains_that_read_one_result_have_the_least_peak() {
    let mut random = Random(11);
    for case in 0..10 * skip::cases("USM_CASES", 200) {
        let graph = fork(&mut random);
        let least = least_peak(&graph);
        let found = reorder_within(&graph, InPlace::Never, &without_search()).expect("order");
        let bound = found.every_order.expect("no loops");
        assert_eq!((found.peak, bound.bytes), (least, least), "{case}: {bound:?} {graph:?}");
        let ordered = graph.reordered(&found.order).expect("an order");
        verify::order_bound(&ordered, &bound).expect("a proof");
        let above = OrderBound::new(least + 1, OrderCertificate::SeriesParallel);
        assert!(verify::order_bound(&ordered, &above).is_err(), "{case}");
    }
}

/// Without a search: only the simple orders and the one for series-parallel graphs.
fn without_search<'a>() -> Effort<'a> {
    Effort::new(0, &|| false)
}

#[test]
fn small_graphs_have_the_least_peak_without_a_search() {
    let mut random = Random(7);
    for results in [Results::Apart, Results::Shared, Results::Mixed] {
        let (mut proven, mut direct, mut least_met) = (0, 0, 0);
        let cases = skip::cases("USM_CASES", 200);
        for case in 0..cases {
            let (ops, wide) = (4 + random.below(11), 3 + random.below(5));
            let graph = random_graph(&mut random, ops, wide, results, 1);
            let least = least_peak(&graph);
            let found = reorder_within(&graph, InPlace::Never, &without_search()).expect("order");
            let bound = found.every_order.expect("no loops");
            assert!(
                bound.bytes <= least && least <= found.peak,
                "{case} {results:?}: {bound:?} {least} {graph:?}"
            );
            let ordered = graph.reordered(&found.order).expect("an order");
            verify::order_bound(&ordered, &bound).expect("a proof");
            // One byte more is refused.
            let above = OrderBound::new(least + 1, OrderCertificate::SeriesParallel);
            let refused = verify::order_bound(&ordered, &above);
            assert!(matches!(refused, Err(Violation::Field { .. })), "{case}: {refused:?}");
            proven += usize::from(bound.bytes == found.peak);
            least_met += usize::from(least == found.peak);
            direct += usize::from(bound.certificate == OrderCertificate::SeriesParallel);
            if results == Results::Apart {
                assert_eq!((found.peak, bound.bytes), (least, least), "{case} {graph:?}");
            }
        }
        println!("{results:?}: {cases} graphs, {least_met} least, {proven} proven, {direct} directly");
    }
}

#[test]
fn large_graphs_are_proven_in_time() {
    for (ops, results) in
        [(500, Results::Apart), (500, Results::Shared), (5_000, Results::Apart), (5_000, Results::Shared)]
    {
        let mut random = Random(ops);
        let graph = random_graph(&mut random, ops, 4, results, 64);
        let start = std::time::Instant::now();
        let found = reorder_within(&graph, InPlace::Never, &without_search()).expect("order");
        let (searched, bound) = (start.elapsed(), found.every_order.expect("no loops"));
        let ordered = graph.reordered(&found.order).expect("an order");
        verify::order_bound(&ordered, &bound).expect("a proof");
        if results == Results::Apart {
            assert_eq!(found.peak, bound.bytes, "{ops}");
        }
        println!(
            "{ops} {results:?}: {} -> {}, bound {}, {searched:.2?} {:.2?}",
            found.peak_before,
            found.peak,
            bound.bytes,
            start.elapsed() - searched
        );
    }
}

/// Ten branches that read the same result: which of them begins last, all of them decide.
#[test]
fn a_result_of_many_branches_ends_with_the_last_of_them() {
    let mut builder =
        Graph::builder().default_alignment(1).tensor(Tensor::new(0, 60)).op(Op::new("").outputs([0]));
    for branch in 0..10 {
        let (wide, narrow) = (1 + 2 * branch, 2 + 2 * branch);
        builder = builder
            .tensor(Tensor::new(wide, 100 + 30 * branch))
            .tensor(Tensor::new(narrow, 5 + branch))
            .op(Op::new("").inputs([0]).outputs([wide]))
            .op(Op::new("").inputs([wide]).outputs([narrow]));
    }
    let last = Op::new("").inputs((0..10).map(|branch| 2 + 2 * branch)).outputs([99]);
    let graph = builder.tensor(Tensor::new(99, 1)).op(last).output(99).build().expect("graph");
    let found = reorder_within(&graph, InPlace::Never, &without_search()).expect("order");
    let bound = found.every_order.expect("no loops");
    let ordered = graph.reordered(&found.order).expect("an order");
    assert_eq!((found.peak, verify::order_bound(&ordered, &bound)), (bound.bytes, Ok(())));
    // The widest branch needs the shared result, its own two, and nothing else before it.
    assert_eq!(bound.bytes, 60 + 370 + 14);
}

#[test]
fn a_graph_that_is_not_series_parallel_is_told() {
    // `d` reads what `a` and `b` write, `c` only what `a` writes.
    let diagonal = |permit: bool| {
        let mut builder = Graph::builder();
        for id in 0..4 {
            builder = builder.tensor(Tensor::new(id, 64));
        }
        let last = Op::new("d").inputs([0, 1]).outputs([3]);
        let builder = builder
            .op(Op::new("a").outputs([0]))
            .op(Op::new("b").outputs([1]))
            .op(Op::new("c").inputs([if permit { 1 } else { 0 }]).outputs([2]))
            .op(if permit { Op::new("d").inputs([0]).outputs([3]).in_place(0, 3) } else { last });
        builder.output(2).output(3).build().expect("graph")
    };
    for permit in [false, true] {
        let bound = OrderBound::new(1, OrderCertificate::SeriesParallel);
        assert_eq!(verify::order_bound(&diagonal(permit), &bound), Err(Violation::OrderNotSeriesParallel));
    }
}
