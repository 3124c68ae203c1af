//! Guarantees of every plan, on random problems and random graphs.

#![cfg(feature = "alloc")]

mod common;

use common::executor::{self, Random};
use common::random_graph::graphs;
use proptest::prelude::*;
use usm_pool::alias::{Blocks, InPlace};
use usm_pool::dependency::{Reachability, basic, conflicts, skipped_branch};
use usm_pool::{
    Buffer, ConflictGraph, Options, Problem, Queue, Strategy as PlanStrategy, bound, plan, plan_graph, verify,
};

fn buffers(count: usize) -> impl Strategy<Value = Vec<Buffer>> {
    let one = (0_u64..40, 0_u64..12, prop_oneof![Just(0), 1_u64..50, Just(64), 100_u64..1000], 0_u32..8);
    prop::collection::vec(one, 0..count).prop_map(|all| {
        all.into_iter()
            .enumerate()
            .map(|(id, (lower, length, size, shift))| {
                Buffer::new(id as u64, lower, lower + length, size).aligned(1 << shift)
            })
            .collect()
    })
}

fn all_plans(problem: &Problem) -> Vec<usm_pool::Plan> {
    PlanStrategy::ALL
        .into_iter()
        .map(|strategy| {
            let mut options = Options::default();
            options.strategy = strategy;
            options.nodes = 200;
            plan(problem, &options).expect("plan")
        })
        .collect()
}

proptest! {
    #![proptest_config(common::config())]

    #[test]
    fn every_strategy_verifies_and_stays_above_its_bound(buffers in buffers(40)) {
        let problem = Problem::from_buffers(buffers.clone()).expect("problem");
        let plans = all_plans(&problem);
        for plan in &plans {
            let peak = verify::intervals(&buffers, &plan.offsets, u64::MAX).expect("no overlap");
            prop_assert_eq!(peak, plan.peak);
            prop_assert_eq!(verify::sweep(&buffers, &plan.offsets, u64::MAX), Ok(peak));
            // The room that the plan needs, and one byte less.
            for checker in [verify::intervals, verify::sweep] {
                prop_assert_eq!(checker(&buffers, &plan.offsets, peak), Ok(peak));
                if let Some(less) = peak.checked_sub(1) {
                    let refusal = checker(&buffers, &plan.offsets, less);
                    prop_assert!(
                        matches!(refusal, Err(verify::Violation::Outside { capacity, .. }) if capacity == less),
                        "{refusal:?}"
                    );
                }
            }
            prop_assert!(plan.lower_bound <= plan.peak);
        }
        // The portfolio is never worse than its parts.
        prop_assert!(plans.iter().all(|plan| plans[0].peak <= plan.peak));
    }

    #[test]
    fn the_time_cut_is_the_best_instant(buffers in buffers(30)) {
        let cut = bound::time_cut(&buffers);
        let best = (0..60).map(|time| bound::at_time(&buffers, time).expect("small")).max().expect("instants");
        prop_assert_eq!(cut.bytes, best);
        if cut.bytes > 0 {
            prop_assert_eq!(bound::at_time(&buffers, cut.time), Some(best));
        }
    }

    #[test]
    fn the_two_checkers_agree_on_any_offsets(
        buffers in buffers(12),
        offsets in prop::collection::vec(0_u64..1500, 12),
    ) {
        let offsets: Vec<u64> = buffers.iter().zip(offsets).map(|(b, offset)| offset & !(b.alignment - 1)).collect();
        let pairs = verify::intervals(&buffers, &offsets, u64::MAX);
        prop_assert_eq!(pairs.is_ok(), verify::sweep(&buffers, &offsets, u64::MAX).is_ok());
        let graph = ConflictGraph::from_lifetimes(&buffers).expect("bits");
        prop_assert_eq!(pairs, verify::conflicts(&buffers, &offsets, graph.view(), u64::MAX));
    }

    #[test]
    fn an_interval_order_has_its_time_cut_as_antichain(buffers in buffers(40)) {
        let buffers: Vec<Buffer> = buffers.into_iter().map(|b| b.aligned(1)).filter(Buffer::occupies).collect();
        let graph = ConflictGraph::from_lifetimes(&buffers).expect("bits");
        let (bytes, set) = bound::antichain(&buffers, &graph).expect("antichain");
        prop_assert_eq!(bytes, bound::time_cut(&buffers).bytes);
        prop_assert_eq!(verify::load_of(&buffers, graph.view(), &set), Some(bytes));
    }

    #[test]
    fn explicit_conflicts_are_planned_safely(
        buffers in buffers(25),
        pairs in prop::collection::vec((0_usize..25, 0_usize..25), 0..80),
    ) {
        let mut graph = ConflictGraph::new(buffers.len()).expect("bits");
        for (i, j) in pairs {
            if i < buffers.len() && j < buffers.len() {
                graph.insert(i, j);
            }
        }
        let problem = Problem::from_conflicts(buffers.clone(), graph.clone()).expect("problem");
        for plan in all_plans(&problem) {
            let peak = verify::conflicts(&buffers, &plan.offsets, graph.view(), u64::MAX).expect("no overlap");
            prop_assert_eq!(peak, plan.peak);
            // For any relation the bound may be weak, never wrong.
            prop_assert!(plan.lower_bound <= peak);
        }
    }

    #[test]
    fn gaps_lend_the_bytes_to_others(buffers in buffers(20), cuts in prop::collection::vec((0_u64..12, 0_u64..12), 20)) {
        let mut gaps = Vec::new();
        for (i, (buffer, (from, length))) in buffers.iter().zip(cuts).enumerate() {
            let (lower, upper) = (buffer.lower + from, (buffer.lower + from + length).min(buffer.upper));
            if lower < upper {
                gaps.push((i, lower, upper));
            }
        }
        let problem = Problem::with_gaps(buffers.clone(), &gaps).expect("problem");
        let live = |i: usize, time: u64| {
            let (buffer, gap) = (&buffers[i], gaps.iter().find(|gap| gap.0 == i));
            buffer.lower <= time && time < buffer.upper && !gap.is_some_and(|gap| gap.1 <= time && time < gap.2)
        };
        for plan in all_plans(&problem) {
            for i in 0..buffers.len() {
                for j in 0..i {
                    let (a, b) = (plan.offsets[i], plan.offsets[j]);
                    let share = a < b + buffers[j].size && b < a + buffers[i].size && buffers[i].size > 0 && buffers[j].size > 0;
                    prop_assert!(!share || (0..60).all(|time| !(live(i, time) && live(j, time))), "{} and {}", i, j);
                }
            }
            let load = |time: u64| (0..buffers.len()).filter(|&i| live(i, time)).map(|i| buffers[i].size).sum::<u64>();
            let heaviest = (0..60).map(load).max().expect("instants");
            prop_assert!(heaviest <= plan.lower_bound && plan.lower_bound <= plan.peak);
        }
    }

    #[test]
    fn graphs_run_in_their_plans(graph in graphs(14), seed in any::<u64>()) {
        for queue in [Queue::InOrder, Queue::OutOfOrder] {
            for choice in [InPlace::Never, InPlace::SameSize, InPlace::Always] {
                let problem = Problem::from_graph(&graph, queue, choice).expect("problem");
                for plan in all_plans(&problem) {
                    plan.verify(&problem).expect("verified");
                    verify::graph(&graph, queue, &[], &plan.rows).expect("verified against the graph");
                    executor::in_order(&graph, &plan.rows).expect("in order");
                    if queue == Queue::OutOfOrder {
                        let mut random = Random(seed);
                        for _ in 0..4 {
                            executor::out_of_order(&graph, &[], &plan.rows, &mut random).expect("out of order");
                        }
                    }
                }
            }
            let mut options = Options::default();
            options.queue = queue;
            options.nodes = 200;
            let (problem, plan) = plan_graph(&graph, &options).expect("plan");
            plan.verify(&problem).expect("verified");
            verify::graph(&graph, queue, &[], &plan.rows).expect("verified against the graph");
            prop_assert!(plan.lower_bound <= plan.peak);
        }
    }

    #[test]
    fn in_order_dependencies_are_the_overlap_of_lives(graph in graphs(14)) {
        for choice in [InPlace::Never, InPlace::SameSize, InPlace::Always] {
            let blocks = Blocks::new(&graph, choice, None).expect("blocks");
            let mut both = basic(&graph, &blocks).expect("basic");
            both.merge(&skipped_branch(&graph, &blocks).expect("skipped branch"));
            let problem = Problem::from_graph(&graph, Queue::InOrder, choice).expect("problem");
            prop_assert_eq!(&both, &ConflictGraph::from_lifetimes(problem.buffers()).expect("lives"));
            // An out-of-order queue has at least the in-order conflicts.
            if choice == InPlace::Never {
                let reach = Reachability::new(&graph, &[]).expect("closure");
                let free = Blocks::new(&graph, choice, Some(&reach)).expect("blocks");
                let wide = conflicts(&graph, &free, Queue::OutOfOrder).expect("conflicts");
                for i in 0..both.len() {
                    for j in both.neighbours(i) {
                        prop_assert!(wide.contains(i, j));
                    }
                }
            }
        }
    }
}
