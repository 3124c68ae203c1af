//! In-order graphs in a better order: still the same graph, never a higher bound.

#![cfg(feature = "alloc")]

mod common;

use common::executor;
use common::random_graph::graphs;
use proptest::prelude::*;
use usm_pool::alias::InPlace;
use usm_pool::planner::reorder::reorder;
use usm_pool::{GraphError, Options, plan_graph, verify};

proptest! {
    #![proptest_config(common::config())]

    #[test]
    fn another_order_is_the_same_graph_and_never_worse(graph in graphs(14)) {
        let found = reorder(&graph, InPlace::Never).expect("order");
        prop_assert!(found.peak <= found.peak_before);
        let reordered = graph.reordered(&found.order).expect("topological");
        let mut options = Options::default();
        options.nodes = 200;
        let (problem, plan) = plan_graph(&reordered, &options).expect("plan");
        plan.verify(&problem).expect("verified");
        verify::graph(&reordered, usm_pool::Queue::InOrder, &[], &plan.rows).expect("verified against the graph");
        executor::in_order(&reordered, &plan.rows).expect("runs");
        // Back again is the graph itself.
        let mut back = vec![0; found.order.len()];
        for (at, &op) in found.order.iter().enumerate() {
            back[op] = at;
        }
        prop_assert_eq!(reordered.reordered(&back).expect("topological"), graph);
    }

    #[test]
    fn orders_that_are_none_are_refused(graph in graphs(8), order in prop::collection::vec(0_usize..10, 0..10)) {
        match graph.reordered(&order) {
            Ok(other) => prop_assert_eq!(other.ops().len(), graph.ops().len()),
            Err(error) => {
                let named = matches!(error, GraphError::BadLoop { .. } | GraphError::ReadBeforeWrite { .. });
                prop_assert!(named);
            }
        }
    }
}

#[test]
fn real_graphs_gain_from_a_better_order() {
    let Some(shared) = common::shared() else { return };
    let mut gained = 0;
    for name in common::graph_names(&shared) {
        let graph = common::graph(&shared, &name);
        let begin = std::time::Instant::now();
        let found = reorder(&graph, InPlace::Never).expect("order");
        let searched = begin.elapsed();
        let bound = found.every_order.expect("no loops");
        let ordered = graph.reordered(&found.order).expect("an order");
        verify::order_bound(&ordered, &bound).expect("a proof");
        assert!(bound.bytes <= found.peak);
        println!(
            "{name:40} {:>5} {:>12} -> {:>12}  {:.3}, least {:.4}  {searched:.2?} {:.2?}",
            graph.ops().len(),
            found.peak_before,
            found.peak,
            found.peak as f64 / found.peak_before as f64,
            bound.bytes as f64 / found.peak as f64,
            begin.elapsed() - searched,
        );
        gained += usize::from(found.peak < found.peak_before);
    }
    assert!(gained > 0, "some order of some real graph is better than the given one");
}
