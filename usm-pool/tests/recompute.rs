//! Graphs with operators that run again and copies: right by value, right in memory, on a curve
//! that falls, and never better than the best there is.

#![cfg(feature = "alloc")]

mod common;

extern crate alloc;

use alloc::collections::{BTreeMap, BinaryHeap};
use core::cmp::Reverse;

use common::random_graph::graphs;
use proptest::prelude::*;
use usm_pool::planner::recompute::{
    Curve, Effort, Point, RecomputeError, Source, recompute_curve, recompute_within,
};
use usm_pool::verify::{self, Violation};
use usm_pool::{Graph, GraphBuilder, Op, Options, Queue, Tensor, TensorKind};

fn options() -> Options<'static> {
    let mut options = Options::default();
    options.nodes = 200;
    options
}

fn effort(rate: Option<f64>) -> Effort<'static> {
    let mut effort = Effort::default();
    (effort.rate, effort.limits, effort.rounds) = (rate, 6, 4);
    effort
}

/// Everything that must hold of a curve.
fn check(graph: &Graph, curve: &Curve) -> Result<(), String> {
    for point in &curve.points {
        check_point(graph, point)?;
        if point.plan.peak < curve.bound {
            return Err(format!("peak {} below the bound {}", point.plan.peak, curve.bound));
        }
    }
    let falls = |pair: &[Point]| pair[0].plan.peak > pair[1].plan.peak && pair[0].time < pair[1].time;
    let numbers = || curve.points.iter().map(|point| (point.plan.peak, point.time)).collect::<Vec<_>>();
    if curve.points[0].time != 0 || !curve.points.windows(2).all(falls) {
        return Err(format!("no curve: {:?}", numbers()));
    }
    Ok(())
}

fn check_point(graph: &Graph, point: &Point) -> Result<(), String> {
    let Point { graph: changed, sources, problem, plan, time, .. } = point;
    let added = verify::recomputed(graph, changed, sources).map_err(|error| error.to_string())?;
    if added != *time {
        return Err(format!("time {time}, but the checker counts {added}"));
    }
    plan.verify(problem).map_err(|error| error.to_string())?;
    verify::graph(changed, Queue::InOrder, &[], &plan.rows).map_err(|error| error.to_string())?;
    common::executor::in_order(changed, &plan.rows)
}

fn repeats(curve: &Curve) -> [usize; 2] {
    let sources = || curve.points.iter().flat_map(|point| &point.sources);
    let again = sources().filter(|source| matches!(source, Source::Again(_))).count();
    [again, sources().filter(|source| matches!(source, Source::Fetch)).count()]
}

/// A forward and a backward pass: each layer's gradient reads its input and the gradient before.
fn training(layers: u64) -> Graph {
    let mut graph = Graph::builder().default_alignment(1);
    for id in 0..=2 * layers {
        graph = graph.tensor(Tensor::new(id, 100));
    }
    graph = graph.op(Op::new("load").outputs([0]).cost(50));
    for layer in 1..=layers {
        graph = graph.op(Op::new(format!("forward{layer}")).inputs([layer - 1]).outputs([layer]).cost(10));
    }
    for step in 1..=layers {
        let (layer, made) = (layers - step, layers + step);
        let op = Op::new(format!("backward{layer}")).inputs([made - 1, layer]).outputs([made]).cost(20);
        graph = graph.op(op);
    }
    graph.output(2 * layers).build().expect("graph")
}

#[test]
fn a_training_pass_has_a_curve_down_to_a_few_layers() {
    let graph = training(20);
    let curve = recompute_curve(&graph, &options(), &Effort::default()).expect("curve");
    check(&graph, &curve).expect("right");
    assert_eq!(curve.bound, 300);
    assert_eq!(curve.points[0].plan.peak, 2200);
    let least = curve.points.last().expect("a point");
    assert!(least.plan.peak <= 900, "{}", least.plan.peak);
    // Half of the memory costs less than one more forward pass.
    let half = curve.points.iter().find(|point| point.plan.peak <= 1200).expect("half");
    assert!(half.time <= 100, "{}", half.time);
    assert!(repeats(&curve)[0] > 20 && repeats(&curve)[1] == 0);
    // Copies are cheaper than running again at a high rate, and reach the bound.
    let copied = recompute_curve(&graph, &options(), &effort(Some(1e3))).expect("curve");
    check(&graph, &copied).expect("right");
    assert_eq!(copied.points.last().expect("a point").plan.peak, 300);
    assert!(repeats(&copied)[1] > 0);
}

#[test]
fn a_budget_has_one_graph_or_says_the_least() {
    let graph = training(12);
    let within = |budget| recompute_within(&graph, budget, &options(), &effort(None));
    let curve = within(800).expect("fits");
    assert_eq!(curve.points.len(), 1);
    check_point(&graph, &curve.points[0]).expect("right");
    assert!(curve.points[0].plan.peak <= 800 && curve.points[0].time > 0);
    assert_eq!(within(1400).expect("given").points[0].time, 0);
    let refused = within(299).expect_err("below the operator");
    let RecomputeError::Budget { budget: 299, least, bound: 300 } = refused else { panic!("{refused}") };
    assert!(within(least).is_ok());
    assert!(refused.to_string().contains(&least.to_string()), "{refused}");
}

#[test]
fn bad_input_is_refused() {
    let looped = Graph::builder().tensor(Tensor::new(0, 8)).op(Op::new("a").outputs([0])).loop_body(0, 0);
    let looped = looped.build().expect("graph");
    let failed = recompute_curve(&looped, &options(), &effort(None)).expect_err("a loop");
    assert_eq!(failed, RecomputeError::Loop { first: 0, last: 0 });
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let failed = recompute_curve(&training(2), &options(), &effort(Some(rate))).expect_err("a rate");
        assert!(matches!(failed, RecomputeError::Rate { .. }), "{failed}");
    }
    let many = (0..16_385).fold(Graph::builder(), |all, _| all.op(Op::new("")));
    let failed = recompute_curve(&many.build().expect("graph"), &options(), &effort(None)).expect_err("many");
    assert_eq!(failed, RecomputeError::TooManyOps { ops: 16_385 });
    // Nothing to do, and nothing to run.
    let none = Graph::builder().build().expect("graph");
    assert_eq!(recompute_curve(&none, &options(), &effort(None)).expect("curve").points.len(), 1);
}

/// What runs again must give the same: not what reads state that changes, and not what writes it.
#[test]
fn operators_with_an_effect_run_once() {
    let graph = |random: bool| {
        let mut random_op = Op::new("noise").outputs([0]).cost(1);
        if random {
            random_op = random_op.inputs([9]).outputs([10]);
        }
        let tensors = [(0, 1000), (1, 8), (2, 1000), (3, 8), (4, 8)];
        let graph = tensors
            .into_iter()
            .fold(Graph::builder().default_alignment(1), |all, (id, size)| all.tensor(Tensor::new(id, size)));
        graph
            .tensor(Tensor::new(9, 16).kind(TensorKind::State))
            .tensor(Tensor::new(10, 16).alias_of(9, 0))
            .op(random_op)
            .op(Op::new("b").inputs([0]).outputs([1]))
            .op(Op::new("c").inputs([1]).outputs([2]))
            .op(Op::new("d").inputs([2]).outputs([3]))
            .op(Op::new("e").inputs([0, 3]).outputs([4]))
            .output(4)
            .build()
            .expect("graph")
    };
    let points = |graph: &Graph, rate| {
        let curve = recompute_curve(graph, &options(), &effort(rate)).expect("curve");
        check(graph, &curve).expect("right");
        curve.points.iter().map(|point| (point.plan.peak, point.time)).collect::<Vec<_>>()
    };
    assert_eq!(points(&graph(false), None), [(2008, 0), (1016, 1)]);
    assert_eq!(points(&graph(true), None).len(), 1);
    // A copy needs no second run.
    assert_eq!(points(&graph(true), Some(100.0)), [(2008, 0), (1016, 20)]);
}

/// The same graph with one thing changed.
fn rebuilt(point: &Point, change: impl Fn(usize, &mut Vec<u64>, &mut Vec<u64>, &mut u64)) -> Graph {
    let graph = &point.graph;
    let ids = |tensors: &[usize]| tensors.iter().map(|&t| graph.tensors()[t].id).collect::<Vec<_>>();
    let mut builder = Graph::builder();
    for node in graph.tensors() {
        builder = builder.tensor(Tensor::new(node.id, node.size).alignment(node.alignment).kind(node.kind));
    }
    for (at, op) in graph.ops().iter().enumerate() {
        let (mut inputs, mut outputs, mut cost) = (ids(&op.inputs), ids(&op.outputs), op.cost);
        change(at, &mut inputs, &mut outputs, &mut cost);
        builder = builder.op(Op::new("").inputs(inputs).outputs(outputs).cost(cost));
    }
    ids(graph.outputs()).into_iter().fold(builder, GraphBuilder::output).build().expect("graph")
}

#[test]
fn the_checker_refuses_planted_faults() {
    let graph = training(6);
    let curve = recompute_curve(&graph, &options(), &effort(None)).expect("curve");
    let point = curve.points.last().expect("a point");
    let sources = &point.sources;
    let is_again = |source: &Source| matches!(source, Source::Again(_));
    let again = sources.iter().rposition(is_again).expect("runs again");
    let checked = |changed: &Graph, sources: &[Source]| verify::recomputed(&graph, changed, sources);
    let same = rebuilt(point, |_, _, _, _| ());
    assert_eq!(checked(&same, sources), Ok(point.time));
    // Another input, another cost.
    let of = |op: usize| match sources[op] {
        Source::First(of) | Source::Again(of) => of,
        _ => panic!("no copies"),
    };
    let (tensors, ops) = (point.graph.tensors(), point.graph.ops());
    let right = tensors[ops[again].inputs[0]].producer.expect("an operator");
    let mut planted = 0;
    for earlier in (0..again).filter(|&earlier| of(earlier) != of(right)) {
        let result = tensors[ops[earlier].outputs[0]].id;
        let other = rebuilt(point, |at, inputs, _, _| {
            if at == again {
                inputs[0] = result;
            }
        });
        let refused = checked(&other, sources);
        assert_eq!(refused, Err(Violation::ChangedInput { op: again, of: of(again) }));
        planted += 1;
    }
    assert!(planted > 3);
    let cheaper = rebuilt(point, |at, _, _, cost| *cost -= u64::from(at == again));
    assert_eq!(checked(&cheaper, sources), Err(Violation::ChangedOperator { op: again }));
    // A run that says it is of another operator, a first run twice, a run that is missing.
    let mut planted = sources.clone();
    planted[again] = Source::Again(0);
    assert!(checked(&point.graph, &planted).is_err());
    planted[again] = Source::First(of(again));
    assert_eq!(checked(&point.graph, &planted), Err(Violation::ChangedRuns { op: of(again), runs: 2 }));
    planted[again] = Source::Fetch;
    assert!(checked(&point.graph, &planted).is_err());
    let fewer = Err(Violation::LengthMismatch { buffers: sources.len(), other: sources.len() - 1 });
    assert_eq!(checked(&point.graph, &sources[1..]), fewer);
    // The result of another operator at the end, and another size.
    let outputs = |id| {
        let mut builder = GraphBuilder::from(&graph);
        builder = builder.output(id);
        builder.build().expect("graph")
    };
    let firsts: Vec<Source> = (0..graph.ops().len()).map(Source::First).collect();
    assert_eq!(checked(&graph, &firsts), Ok(0));
    assert_eq!(checked(&outputs(3), &firsts), Err(Violation::ChangedTensor { id: 3 }));
    let larger = graph.resized(&[(3, 101)]).expect("graph");
    assert_eq!(checked(&larger, &firsts), Err(Violation::ChangedTensor { id: 3 }));
}

/// One result an operator, read by later ones; all costs and sizes differ.
fn plain(seed: u64, ops: u64) -> Graph {
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut below = |end: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % end
    };
    let mut graph = Graph::builder().default_alignment(1);
    for op in 0..ops {
        graph = graph.tensor(Tensor::new(op, 1 + below(30)));
        let count = below(3).min(op);
        let mut inputs: Vec<u64> = (0..count).map(|_| below(op)).collect();
        if op > 0 {
            inputs.push(op - 1);
        }
        graph = graph.op(Op::new("").inputs(inputs).outputs([op]).cost(1 + below(9)));
    }
    graph.output(ops - 1).build().expect("graph")
}

/// The least time of a plain graph in a budget, over everything that may run again and be dropped.
fn least_time(graph: &Graph, budget: u64) -> Option<u64> {
    let n = graph.ops().len();
    let size = |op: usize| graph.tensors()[op].size;
    let bytes = |set: u32| (0..n).filter(|op| set >> op & 1 == 1).map(size).sum::<u64>();
    let mut best: BTreeMap<(usize, u32), u64> = BTreeMap::new();
    let mut open = BinaryHeap::from([Reverse((0, 0, 0))]);
    while let Some(Reverse((time, next, set))) = open.pop() {
        if best.get(&(next, set)).is_some_and(|&known| known <= time) {
            continue;
        }
        best.insert((next, set), time);
        if next == n && set >> (n - 1) & 1 == 1 {
            return Some(time);
        }
        for op in 0..n {
            if set >> op & 1 == 1 {
                open.push(Reverse((time, next, set & !(1 << op))));
            } else if op <= next && graph.ops()[op].inputs.iter().all(|&input| set >> input & 1 == 1) {
                let after = set | 1 << op;
                if bytes(after) <= budget {
                    let cost = if op == next { 0 } else { graph.ops()[op].cost };
                    open.push(Reverse((time + cost, next.max(op + usize::from(op == next)), after)));
                }
            }
        }
    }
    None
}

#[test]
fn no_point_beats_the_best_and_most_meet_it() {
    let (mut met, mut count, mut ratio) = (0, 0, 0.0);
    for seed in 0..60 {
        let graph = plain(seed, 9);
        let curve = recompute_curve(&graph, &options(), &Effort::default()).expect("curve");
        check(&graph, &curve).expect("right");
        for point in &curve.points[1..] {
            let best = least_time(&graph, point.plan.peak).expect("this point fits");
            assert!(point.time >= best, "seed {seed}: {} below {best}", point.time);
            count += 1;
            met += u32::from(point.time == best);
            ratio += point.time as f64 / best.max(1) as f64;
        }
    }
    assert!(count > 40 && met * 10 >= count * 8, "{met} of {count}");
    assert!(ratio / f64::from(count) < 1.1, "{}", ratio / f64::from(count));
}

proptest! {
    #![proptest_config(common::config())]

    #[test]
    fn every_point_is_right(graph in graphs(14), rate in prop::option::of(1.0..1e4)) {
        let curve = recompute_curve(&graph, &options(), &effort(rate)).expect("curve");
        prop_assert_eq!(check(&graph, &curve), Ok(()));
    }
}
