//! Real graphs: lives, dependencies, plans of every strategy, bounds; the figures are printed with
//! `--nocapture`.

#![cfg(feature = "alloc")]

mod common;

use std::time::Instant;

use usm_pool::alias::{Blocks, InPlace};
use usm_pool::dependency::{Reachability, basic, skipped_branch};
use usm_pool::{Certificate, ConflictGraph, Options, Problem, Queue, Strategy, plan, verify};

fn options(strategy: Strategy) -> Options<'static> {
    let mut options = Options::default();
    options.strategy = strategy;
    options
}

#[test]
fn lives_of_the_graph_are_those_of_the_table() {
    let Some(shared) = common::shared() else {
        return;
    };
    for name in common::graph_names(&shared) {
        let graph = common::graph(&shared, &name);
        for buffer in common::buffers(&shared.join(format!("data/planner/{name}.csv"))) {
            let tensor = graph.tensor_index(buffer.id).expect("tensor");
            assert_eq!(graph.lifetime(tensor), buffer.lifetime(), "{name}: tensor {}", buffer.id);
        }
    }
}

#[test]
fn basic_and_skipped_branch_are_exactly_the_overlap_of_lives() {
    let Some(shared) = common::shared() else {
        return;
    };
    for name in common::graph_names(&shared) {
        let graph = common::graph(&shared, &name);
        let blocks = Blocks::new(&graph, InPlace::Never, None).expect("blocks");
        let mut both = basic(&graph, &blocks).expect("basic");
        both.merge(&skipped_branch(&graph, &blocks).expect("skipped branch"));
        let problem = Problem::from_graph(&graph, Queue::InOrder, InPlace::Never).expect("problem");
        let lives = ConflictGraph::from_lifetimes(problem.buffers()).expect("lives");
        assert!(both == lives, "{name}: {} pairs, lives overlap in {}", both.pairs(), lives.pairs());
    }
}

#[test]
fn every_strategy_makes_a_plan_that_verifies() {
    let Some(shared) = common::shared() else {
        return;
    };
    let mut log_sum = 0.0;
    let mut count = 0;
    println!(
        "{:40} {:>5} {:>12} {:>6} {:>6} {:>6} {:>6}",
        "in order", "n", "bound", "auto", "size", "best", "whole"
    );
    for name in common::graph_names(&shared) {
        let graph = common::graph(&shared, &name);
        let problem = Problem::from_graph(&graph, Queue::InOrder, InPlace::Never).expect("problem");
        let mut peaks = Vec::new();
        for strategy in [Strategy::Auto, Strategy::GreedyBySize, Strategy::BestFit, Strategy::WholeBuffer] {
            let plan = plan(&problem, &options(strategy)).expect("plan");
            assert_eq!(plan.verify(&problem).expect("verified")[0], plan.peak, "{name} {}", strategy.name());
            verify::graph(&graph, Queue::InOrder, &[], &plan.rows).expect("verified against the graph");
            let Certificate::TimeCut { time, .. } = plan.certificate else { panic!("time cut") };
            assert!(verify::load_at(problem.buffers(), time) <= Some(plan.lower_bound));
            assert!(plan.lower_bound <= plan.peak);
            peaks.push(plan.peak as f64 / plan.lower_bound as f64);
        }
        let bound = plan(&problem, &options(Strategy::GreedyBySize)).expect("plan").lower_bound;
        println!(
            "{name:40} {:5} {bound:12} {:.4} {:.4} {:.4} {:.4}",
            problem.buffers().len(),
            peaks[0],
            peaks[1],
            peaks[2],
            peaks[3]
        );
        assert!(peaks[0] <= peaks[3], "{name}: above the whole-buffer pool");
        assert!(
            (peaks[0] - 1.0).abs() < f64::EPSILON,
            "{name}: the optimum is the bound, and the portfolio finds it"
        );
        log_sum += (peaks[0] / peaks[3]).ln();
        count += 1;
    }
    let mean = (log_sum / f64::from(count)).exp();
    println!("geometric mean against the whole-buffer pool: {mean:.4}");
    assert!(mean <= 0.864, "geometric mean {mean} against the whole-buffer pool");
}

#[test]
fn out_of_order_plans_verify_and_come_close_to_the_antichain() {
    let Some(shared) = common::shared() else {
        return;
    };
    println!(
        "{:40} {:>5} {:>12} {:>7} {:>9} {:>6} {:>6} s",
        "out of order", "n", "antichain", "ratio", "pairs", "auto", "whole"
    );
    for name in common::graph_names(&shared) {
        let graph = common::graph(&shared, &name);
        let start = Instant::now();
        let reach = Reachability::new(&graph, &[]).expect("closure");
        let closed = start.elapsed();
        let problem = Problem::with_reachability(&graph, &reach, InPlace::Never).expect("problem");
        let in_order = Problem::from_graph(&graph, Queue::InOrder, InPlace::Never).expect("problem");
        let built = start.elapsed();
        let auto = plan(&problem, &options(Strategy::Auto)).expect("plan");
        let planned = start.elapsed();
        let whole = plan(&problem, &options(Strategy::WholeBuffer)).expect("plan");
        for plan in [&auto, &whole] {
            assert_eq!(plan.verify(&problem).expect("verified")[0], plan.peak, "{name}");
            verify::graph(&graph, Queue::OutOfOrder, &[], &plan.rows).expect("verified against the graph");
            verify::graph(&graph, Queue::InOrder, &[], &plan.rows).expect("safe in order too");
        }
        let Certificate::Antichain { buffers } = &auto.certificate else { panic!("antichain") };
        let at = |id: &u64| problem.buffers().iter().position(|buffer| buffer.id == *id).expect("id");
        let set: Vec<usize> = buffers.iter().map(at).collect();
        let view = problem.conflicts().expect("conflicts").view();
        assert_eq!(
            verify::load_of(problem.buffers(), view, &set),
            Some(auto.lower_bound),
            "{name}: sizes are multiples of 64"
        );
        assert!(
            auto.peak as f64 <= 1.01 * auto.lower_bound as f64,
            "{name}: {} above {}",
            auto.peak,
            auto.lower_bound
        );
        let base = usm_pool::bound::time_cut(in_order.buffers()).bytes;
        assert!(auto.lower_bound >= base, "{name}: out-of-order bound below the in-order one");
        println!(
            "{name:40} {:5} {:12} {:6.3}x {:9} {:.4} {:.4} closure {:.3} problem {:.3} plan {:.3}",
            problem.buffers().len(),
            auto.lower_bound,
            auto.lower_bound as f64 / base as f64,
            problem.conflicts().expect("conflicts").pairs(),
            auto.peak as f64 / auto.lower_bound as f64,
            whole.peak as f64 / whole.lower_bound as f64,
            closed.as_secs_f64(),
            built.as_secs_f64(),
            planned.as_secs_f64()
        );
    }
}
