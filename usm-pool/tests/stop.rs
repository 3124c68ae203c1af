//! A planner that is stopped at any call of `stop` returns a correct plan.

#![cfg(feature = "alloc")]

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use usm_pool::alias::InPlace;
use usm_pool::planner::plan_graph;
use usm_pool::{Buffer, Graph, Op, Options, Problem, Queue, Strategy, Tensor, TensorKind, verify};

/// Deterministic numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Operators that read two of the last `reach` tensors and may write over one of them; every
/// seventh has another alignment.
fn graph(ops: u64, reach: u64) -> Graph {
    let mut random = Random(ops + reach);
    let mut builder = Graph::builder().tensor(Tensor::new(0, 64).kind(TensorKind::Input));
    for op in 0..ops {
        let near = |random: &mut Random| op - random.below(reach.min(op + 1));
        let (a, b) = (near(&mut random), near(&mut random));
        let tensor = Tensor::new(op + 1, 1 + random.below(4096));
        builder = builder.tensor(if op % 7 == 0 { tensor.alignment(256) } else { tensor });
        let node = Op::new("op").inputs(if a == b { vec![a] } else { vec![a, b] }).outputs([op + 1]);
        builder = builder.op(if a > 0 { node.in_place(a, op + 1) } else { node });
    }
    builder.output(ops).build().expect("a graph")
}

/// Runs with a `stop` that returns true from its `first` call on. Returns the number of calls.
fn stopped<T>(options: &Options<'_>, first: u64, run: impl FnOnce(&Options<'_>) -> T) -> (T, u64) {
    stopped_in(options, first..u64::MAX, run)
}

/// As [`stopped`], true at these calls.
fn stopped_in<T>(options: &Options<'_>, at: Range<u64>, run: impl FnOnce(&Options<'_>) -> T) -> (T, u64) {
    let asked = AtomicU64::new(0);
    let stop = || at.contains(&asked.fetch_add(1, Ordering::Relaxed));
    let mut options = *options;
    options.stop = Some(&stop);
    options.stop_early = true;
    options.nodes = 1 << 6;
    let found = run(&options);
    (found, asked.load(Ordering::Relaxed))
}

#[test]
fn a_plan_that_is_stopped_at_any_question_is_right() {
    let graphs = [graph(300, 20)];
    for (graph, queue) in
        graphs.iter().flat_map(|graph| [Queue::InOrder, Queue::OutOfOrder].map(|queue| (graph, queue)))
    {
        for strategy in Strategy::ALL {
            let mut options = Options::default();
            (options.queue, options.strategy) = (queue, strategy);
            let mut first = 0;
            loop {
                let ((problem, plan), asked) =
                    stopped(&options, first, |options| plan_graph(graph, options).expect("a plan"));
                plan.verify(&problem).expect("right");
                verify::graph(graph, queue, &plan.ordering_edges, &plan.rows).expect("right");
                if asked <= first {
                    break;
                }
                // Each of the first calls, then fewer and fewer.
                first += 1 + first * 2;
            }
        }
    }
}

/// An unfinished relation is correct for a plan and proves nothing about the graph.
#[test]
fn a_bound_that_is_stopped_at_any_question_holds() {
    // With and without permits, and with a tensor that most operators read.
    let star = || {
        let mut builder = Graph::builder().tensor(Tensor::new(0, 64)).op(Op::new("hub").outputs([0]));
        for op in 1..100 {
            let inputs = if op % 10 == 0 { vec![0] } else { vec![0, op - 1] };
            builder = builder.tensor(Tensor::new(op, 64 + op)).op(Op::new("op").inputs(inputs).outputs([op]));
        }
        builder.output(99).build().expect("a graph")
    };
    for graph in [graph(100, 6), star()] {
        let mut options = Options::default();
        options.queue = Queue::OutOfOrder;
        let ((_, whole), all) =
            stopped(&options, u64::MAX, |options| plan_graph(&graph, options).expect("a plan"));
        let mut worst = 0;
        // Permanently, and for one call only: another part of the work has another clock.
        let times = (0..all.min(600)).step_by(7).flat_map(|first| [first..u64::MAX, first..first + 1]);
        for times in times {
            let ((problem, plan), _) =
                stopped_in(&options, times.clone(), |options| plan_graph(&graph, options).expect("a plan"));
            plan.verify(&problem).expect("right");
            verify::graph(&graph, Queue::OutOfOrder, &plan.ordering_edges, &plan.rows).expect("right");
            assert!(plan.lower_bound <= whole.peak, "{times:?}: {plan}, and there is {whole}");
            worst = worst.max(plan.peak);
        }
        assert!(worst > whole.peak, "{worst}: was nothing stopped?");
    }
}

#[test]
fn what_was_not_placed_in_time_lies_on_top() {
    let graph = graph(560, 560);
    let problem = Problem::from_graph(&graph, Queue::InOrder, InPlace::Never).expect("a problem");
    for strategy in [Strategy::GreedyBySize, Strategy::BestFit, Strategy::WholeBuffer] {
        let mut options = Options::default();
        options.strategy = strategy;
        let peak = |first| {
            let (plan, _) = stopped(&options, first, |options| {
                usm_pool::planner::plan(&problem, options).expect("a plan")
            });
            plan.verify(&problem).expect("right");
            plan.peak
        };
        assert!(peak(0) > peak(u64::MAX), "{}", strategy.name());
    }
}

/// The heaviest antichain of so many takes minutes. The plan comes first, and meets the bound from
/// the lives.
#[test]
fn a_long_chain_out_of_order_is_planned_before_its_bound() {
    let mut builder = Graph::builder();
    for op in 0..5_000_u64 {
        let node = Op::new("op").outputs([op]);
        builder = builder.tensor(Tensor::new(op, 64 + op % 4096)).op(if op > 0 {
            node.inputs([op - 1])
        } else {
            node
        });
    }
    let graph = builder.output(4_999).build().expect("a graph");
    for strategy in [Strategy::Auto, Strategy::Search, Strategy::GreedyBySize, Strategy::BestFit] {
        let mut options = Options::default();
        (options.queue, options.strategy) = (Queue::OutOfOrder, strategy);
        // A call for each operator, each tensor's begin and each end but the last. Then enough to
        // place the tensors, and not enough for the antichain.
        let relation = 5_000 + 5_000 + 4_999;
        let ((problem, plan), asked) =
            stopped(&options, relation + 64, |options| plan_graph(&graph, options).expect("a plan"));
        plan.verify(&problem).expect("right");
        verify::graph(&graph, Queue::OutOfOrder, &plan.ordering_edges, &plan.rows).expect("right");
        assert!(plan.optimal() && (relation..relation + 64).contains(&asked), "{plan}: {asked} questions");
        // Without time for a plan, the lives still prove that bound.
        let ((problem, late), _) =
            stopped(&options, relation, |options| plan_graph(&graph, options).expect("a plan"));
        late.verify(&problem).expect("right");
        assert!(late.peak > plan.peak && late.lower_bound == plan.lower_bound, "{late}");
    }
}

/// The skyline comes first from 4,096 buffers on. It is never left unfinished.
#[test]
fn a_skyline_that_is_stopped_is_the_plan() {
    let mut random = Random(7);
    let buffer = |id| {
        let lower = random.below(2_000);
        Buffer::new(id, lower, lower + 1 + random.below(40), 1 + random.below(4096)).aligned(1 << (id % 4))
    };
    let problem = Problem::from_buffers((0..6_000).map(buffer).collect()).expect("a problem");
    for first in [0, 4, 8] {
        let (plan, asked) = stopped(&Options::default(), first, |options| {
            usm_pool::planner::plan(&problem, options).expect("a plan")
        });
        plan.verify(&problem).expect("right");
        assert!(plan.peak * 10 < plan.lower_bound * 13, "{first}: {plan}");
        assert!(asked < first + 8, "{first}: {asked}");
    }
}
