//! Ordering edges: safe plans, a falling curve, and an unchanged critical path on request.

#![cfg(feature = "alloc")]

mod common;

use std::time::Instant;

use common::executor::{self, Random};
use common::random_graph::graphs;
use proptest::prelude::*;
use usm_pool::alias::InPlace;
use usm_pool::dependency::Reachability;
use usm_pool::planner::order::{Lever, critical_path, critical_path_bound, ordering_edges};
use usm_pool::{Options, Problem, Queue, bound, plan, verify};

proptest! {
    #![proptest_config(common::config())]

    #[test]
    fn edges_buy_memory_and_stay_safe(graph in graphs(14), limit in 0_usize..12, keep in any::<bool>(), seed in any::<u64>()) {
        let in_order = Problem::from_graph(&graph, Queue::InOrder, InPlace::Never).expect("problem");
        let least = bound::time_cut(in_order.buffers()).bytes;
        let mut lever = Lever::new(limit, least);
        lever.keep_critical_path = keep;
        let found = ordering_edges(&graph, &lever).expect("edges");
        prop_assert!(found.edges.len() <= limit);
        for pair in found.curve.windows(2) {
            // Alignments up to 128 blur a bound by the bytes above the topmost buffer.
            prop_assert!(pair[0].edges < pair[1].edges && pair[1].bound <= pair[0].bound + 128);
        }
        if keep {
            prop_assert_eq!(critical_path(&graph, &found.edges), critical_path(&graph, &[]));
        }
        let reach = Reachability::new(&graph, &found.edges).expect("closure");
        let problem = Problem::with_reachability(&graph, &reach, InPlace::Never).expect("problem");
        let mut options = Options::default();
        options.nodes = 500;
        let plan = plan(&problem, &options).expect("plan");
        if found.edges.iter().all(|&(u, v)| u < v) {
            prop_assert!(plan.lower_bound + 128 >= least, "the processing order obeys these edges");
        }
        // The search may prove more than the antichain.
        prop_assert!(found.curve.last().is_some_and(|point| point.bound <= plan.lower_bound));
        verify::graph(&graph, Queue::OutOfOrder, &found.edges, &plan.rows).expect("verified against the graph");
        let mut random = Random(seed);
        for _ in 0..4 {
            executor::out_of_order(&graph, &found.edges, &plan.rows, &mut random).expect("out of order");
        }
    }
}

#[test]
fn real_graphs_come_down_to_the_in_order_bound_with_the_critical_path_unchanged() {
    let Some(shared) = common::shared() else { return };
    println!(
        "{:40} {:>7} {:>7} {:>7} {:>6} {:>6} s",
        "edges with the critical path kept", "free", "final", "peak", "edges", "rounds"
    );
    for name in common::graph_names(&shared) {
        let graph = common::graph(&shared, &name);
        let in_order = Problem::from_graph(&graph, Queue::InOrder, InPlace::Never).expect("problem");
        let least = bound::time_cut(in_order.buffers()).bytes;
        let start = Instant::now();
        let lever = Lever::new(2000, least).keeping_critical_path();
        let found = ordering_edges(&graph, &lever).expect("edges");
        let seconds = start.elapsed().as_secs_f64();
        assert_eq!(critical_path(&graph, &found.edges), critical_path(&graph, &[]), "{name}");
        let reach = Reachability::new(&graph, &found.edges).expect("closure");
        let problem = Problem::with_reachability(&graph, &reach, InPlace::Never).expect("problem");
        let mut options = Options::default();
        options.nodes = 500;
        let plan = plan(&problem, &options).expect("plan");
        verify::graph(&graph, Queue::OutOfOrder, &found.edges, &plan.rows)
            .expect("verified against the graph");
        let ratio = |bytes: u64| bytes as f64 / least as f64;
        if name.contains("resnet50_fwd") {
            assert!(ratio(plan.peak) <= 1.10, "{name}: {} of the in-order bound {least}", plan.peak);
        }
        assert!(plan.peak <= found.curve[0].bound.max(plan.lower_bound), "{name}: edges never cost memory");
        println!(
            "{name:40} {:.3} {:6.3}x {:6.3}x {:6.3}x {:6} {:6} {seconds:.2}",
            ratio(critical_path_bound(&graph, InPlace::Never).expect("bound").bytes),
            ratio(found.curve[0].bound),
            ratio(plan.lower_bound),
            ratio(plan.peak),
            found.edges.len(),
            found.curve.len(),
        );
    }
}
