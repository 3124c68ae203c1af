//! Plans of graphs with many views and permits, run byte by byte. Checks also which plans of other
//! origin the verifier accepts.

#![cfg(feature = "alloc")]

mod common;

use common::executor::{self, Random};
use common::views;
use usm_pool::alias::InPlace;
use usm_pool::verify::{self, Violation};
use usm_pool::{Graph, Op, Options, Plan, Problem, Queue, Row, Strategy, Tensor, plan, plan_graph};

/// Graphs of one test; `USM_VIEW_GRAPHS` sets another number.
fn count() -> u64 {
    let default = if cfg!(debug_assertions) { 100 } else { 500 };
    std::env::var("USM_VIEW_GRAPHS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Runs the rows in an order that the queue allows.
fn runs(
    graph: &Graph,
    queue: Queue,
    edges: &[(usize, usize)],
    rows: &[Row],
    random: &mut Random,
) -> Result<(), String> {
    executor::in_order(graph, rows).or_else(|wrong| match queue {
        // Edges may go against the processing order; then no run follows it.
        Queue::OutOfOrder if !edges.is_empty() => Ok(()),
        _ => Err(wrong),
    })?;
    if queue == Queue::OutOfOrder {
        for _ in 0..6 {
            executor::out_of_order(graph, edges, rows, random)?;
        }
    }
    Ok(())
}

/// All plans of a graph on a queue: each strategy, each use of permits, ordering edges.
fn plans(graph: &Graph, queue: Queue) -> Vec<(Problem, Plan)> {
    let mut found = Vec::new();
    for strategy in Strategy::ALL {
        let mut options = Options::default();
        options.strategy = strategy;
        options.queue = queue;
        options.nodes = 64;
        for choice in [InPlace::Never, InPlace::SameSize, InPlace::Always] {
            let problem = Problem::from_graph(graph, queue, choice).expect("problem");
            let plan = plan(&problem, &options).expect("plan");
            found.push((problem, plan));
        }
        options.ordering_edges = if queue == Queue::OutOfOrder { 3 } else { 0 };
        found.push(plan_graph(graph, &options).expect("plan"));
    }
    found
}

#[test]
fn every_plan_of_a_graph_of_views_runs_right() {
    let mut random = Random(15);
    let (mut ran, mut shared) = (0_u64, 0_u64);
    for round in 0..count() {
        let graph = views::graph(&mut random, 12);
        for queue in [Queue::InOrder, Queue::OutOfOrder] {
            for (problem, plan) in plans(&graph, queue) {
                let what = || format!("round {round}, {queue:?}, {plan}: {}", described(&graph, &plan.rows));
                plan.verify(&problem).unwrap_or_else(|wrong| panic!("{wrong}: {}", what()));
                verify::graph(&graph, queue, &plan.ordering_edges, &plan.rows)
                    .unwrap_or_else(|wrong| panic!("{wrong}: {}", what()));
                runs(&graph, queue, &plan.ordering_edges, &plan.rows, &mut random)
                    .unwrap_or_else(|wrong| panic!("{wrong}: {}", what()));
                ran += 1;
                let roots = graph.tensors().iter().filter(|node| node.alias.is_none()).count();
                shared += u64::from(problem.buffers().len() < roots);
            }
        }
    }
    println!("{} graphs, {ran} plans, all bytes right; permits used in {shared}", count());
    assert!(shared > ran / 10, "permits were used in {shared} of {ran} plans only");
}

/// A graph and the places of its tensors, in few lines.
fn described(graph: &Graph, rows: &[Row]) -> String {
    let mut text = String::new();
    for (index, node) in graph.tensors().iter().enumerate() {
        let at = rows.iter().find(|row| row.id == node.id).map(|row| (row.offset, row.memory));
        let usm_pool::graph::TensorNode { size, alias, is_output, .. } = node;
        text += &format!("\n  tensor {index}: {size} bytes at {at:?}, view {alias:?}, output {is_output}");
    }
    for (index, op) in graph.ops().iter().enumerate() {
        text += &format!("\n  op {index}: {:?} -> {:?}, permits {:?}", op.inputs, op.outputs, op.in_place);
    }
    text
}

/// Families of tensors at random places, often over an input of their operator. Every plan that the
/// verifier accepts must run correctly.
#[test]
fn whatever_the_verifier_accepts_runs_right() {
    let mut random = Random(51);
    let (mut accepted, mut wrong) = (0_u64, 0_u64);
    for round in 0..count() * 4 {
        let graph = views::graph(&mut random, 5);
        let queue = if round % 2 == 0 { Queue::InOrder } else { Queue::OutOfOrder };
        let mut options = Options::default();
        options.queue = queue;
        options.strategy = Strategy::GreedyBySize;
        let (_, plan) = plan_graph(&graph, &options).expect("plan");
        for _ in 0..8 {
            let mut rows = plan.rows.clone();
            for _ in 0..1 + random.below(2) {
                misplace(&graph, &mut rows, &mut random);
            }
            let ran = runs(&graph, queue, &[], &rows, &mut random);
            match verify::graph(&graph, queue, &[], &rows) {
                Ok(()) => {
                    ran.unwrap_or_else(|wrong| {
                        panic!("round {round}, {queue:?}, {wrong}: {}", described(&graph, &rows))
                    });
                    accepted += 1;
                }
                Err(_) => wrong += u64::from(ran.is_err()),
            }
        }
    }
    println!("{accepted} accepted, all right; {wrong} refused that run wrong");
    assert!(accepted > count() && wrong > count());
}

/// Moves a root with its views: to another tensor's place, or anywhere.
fn misplace(graph: &Graph, rows: &mut [Row], random: &mut Random) {
    if rows.is_empty() {
        return;
    }
    let pick = |random: &mut Random| random.below(rows.len() as u64) as usize;
    let (from, onto) = (pick(random), pick(random));
    let node = |row: &Row| &graph.tensors()[graph.tensor_index(row.id).expect("tensor")];
    let root = node(&rows[from]).root;
    let target = if random.below(4) == 0 { random.below(128) } else { rows[onto].offset };
    let base = target & !(graph.tensors()[root].alignment - 1);
    for row in rows.iter_mut() {
        let node = &graph.tensors()[graph.tensor_index(row.id).expect("tensor")];
        if node.root == root {
            row.offset = base + node.root_offset;
        }
    }
}

/// An addition of a table and its first row, which broadcasts: the permit for the table does not
/// cover the row.
fn addition(row_of_table: (u64, u64), permits: &[(u64, u64)]) -> Graph {
    let (offset, size) = row_of_table;
    let mut add = Op::new("add").inputs([0, 1]).outputs([2]);
    for &(input, output) in permits {
        add = add.in_place(input, output);
    }
    Graph::builder()
        .tensor(Tensor::new(0, 4096))
        .tensor(Tensor::new(1, size).alias_of(0, offset))
        .tensor(Tensor::new(2, 4096))
        .op(Op::new("fill").outputs([0]))
        .op(add)
        .output(2)
        .build()
        .expect("graph")
}

fn peak(graph: &Graph, queue: Queue) -> u64 {
    let mut options = Options::default();
    options.queue = queue;
    plan_graph(graph, &options).expect("plan").1.peak
}

#[test]
fn a_permit_names_one_input_and_no_view_of_its_bytes() {
    for queue in [Queue::InOrder, Queue::OutOfOrder] {
        for row in [(0, 64), (0, 4096), (64, 64), (4032, 64)] {
            assert_eq!(peak(&addition(row, &[(0, 2)]), queue), 8192, "{row:?}");
        }
        // The permit for the row alone is useless: the result is larger.
        assert_eq!(peak(&addition((0, 64), &[(1, 2)]), queue), 8192);
        assert_eq!(peak(&addition((0, 64), &[(0, 2), (1, 2)]), queue), 8192);
        // Both have a permit.
        assert_eq!(peak(&addition((0, 4096), &[(0, 2), (1, 2)]), queue), 4096);
        // A view without bytes is not read.
        assert_eq!(peak(&addition((0, 0), &[(0, 2)]), queue), 4096);
    }
}

/// Frameworks name each view that a program makes, used or not.
#[test]
fn a_view_that_nobody_reads_makes_its_root_no_older() {
    let chain = |view: bool, output: bool| {
        let mut builder = Graph::builder().default_alignment(1);
        for id in 0..4 {
            builder = builder.tensor(Tensor::new(id, 100));
        }
        for id in 0..4 {
            let input = (id > 0).then(|| id - 1);
            builder = builder.op(Op::new("").inputs(input).outputs([id]));
        }
        if view {
            builder = builder.tensor(Tensor::new(4, 50).alias_of(2, 50));
        }
        builder.output(if output { 4 } else { 3 }).build().expect("a right graph")
    };
    let lives = |graph: &Graph| Problem::from_graph(graph, Queue::InOrder, InPlace::Always).unwrap();
    let (bare, named) = (chain(false, false), chain(true, false));
    assert_eq!(lives(&named).buffers(), lives(&bare).buffers());
    assert_eq!(peak(&named, Queue::InOrder), 200);
    // The caller reads it after the run: its bytes stay from the write of the root.
    let kept = lives(&chain(true, true)).buffers()[2];
    assert_eq!((kept.lower, kept.upper), (2, 4));
    assert_eq!(peak(&chain(true, true), Queue::InOrder), 200);
}

#[test]
fn the_verifier_refuses_a_result_over_a_view_without_permit() {
    for queue in [Queue::InOrder, Queue::OutOfOrder] {
        let rows = |graph: &Graph| {
            let mut options = Options::default();
            options.queue = queue;
            let mut rows = plan_graph(graph, &options).expect("plan").1.rows;
            // The result overlaps the table.
            rows[2].offset = rows[0].offset;
            rows
        };
        for row in [(0, 64), (0, 4096), (64, 64)] {
            for permits in [&[(0, 2)][..], &[(1, 2)], &[]] {
                let graph = addition(row, permits);
                let found = verify::graph(&graph, queue, &[], &rows(&graph));
                assert!(
                    matches!(found, Err(Violation::Overwritten { .. } | Violation::Overlap { .. })),
                    "{row:?} {permits:?}: {found:?}"
                );
                assert!(executor::in_order(&graph, &rows(&graph)).is_err());
            }
        }
        let graph = addition((0, 4096), &[(0, 2), (1, 2)]);
        assert_eq!(verify::graph(&graph, queue, &[], &rows(&graph)), Ok(()));
    }
}

/// A result that another operator completes must wait for the input that it overlaps, even if
/// nothing orders the two.
#[test]
fn the_rest_of_a_result_waits_for_the_end_of_its_input() {
    let graph = Graph::builder()
        .tensor(Tensor::new(0, 128))
        .tensor(Tensor::new(1, 128))
        .tensor(Tensor::new(2, 64).alias_of(1, 0))
        .tensor(Tensor::new(3, 64).alias_of(1, 64))
        .op(Op::new("fill").outputs([0]))
        .op(Op::new("first").inputs([0]).outputs([2]).in_place(0, 2))
        .op(Op::new("second").outputs([3]))
        .output(1)
        .build()
        .expect("graph");
    assert_eq!(peak(&graph, Queue::OutOfOrder), 256);
    let both = Graph::builder()
        .tensor(Tensor::new(0, 128))
        .tensor(Tensor::new(1, 128))
        .tensor(Tensor::new(2, 64).alias_of(1, 0))
        .tensor(Tensor::new(3, 64).alias_of(1, 64))
        .op(Op::new("fill").outputs([0]))
        .op(Op::new("split").inputs([0]).outputs([2, 3]).in_place(0, 2))
        .output(1)
        .build()
        .expect("graph");
    for queue in [Queue::InOrder, Queue::OutOfOrder] {
        assert_eq!(peak(&both, queue), 256, "the second half has no permit");
    }
}

/// A clock that runs out before the start only costs quality.
#[test]
fn a_plan_that_is_stopped_early_is_right() {
    let mut random = Random(9);
    for _ in 0..count() / 4 {
        let graph = views::graph(&mut random, 12);
        for queue in [Queue::InOrder, Queue::OutOfOrder] {
            let asked = core::sync::atomic::AtomicU64::new(random.below(6));
            // Runs out after a few calls.
            let stop = || asked.fetch_sub(1, core::sync::atomic::Ordering::Relaxed) as i64 <= 0;
            let mut options = Options::default();
            options.queue = queue;
            options.ordering_edges = if queue == Queue::OutOfOrder { 3 } else { 0 };
            options.stop = Some(&stop);
            options.stop_early = true;
            let (problem, plan) = plan_graph(&graph, &options).expect("plan");
            plan.verify(&problem).expect("verified");
            verify::graph(&graph, queue, &plan.ordering_edges, &plan.rows)
                .expect("verified against the graph");
            runs(&graph, queue, &plan.ordering_edges, &plan.rows, &mut random).expect("runs");
        }
    }
}

/// A loop rewrites all of a view in each iteration, over bytes from before the run.
#[test]
fn a_view_that_each_round_writes_anew_needs_nothing_of_the_round_before() {
    let graph = Graph::builder()
        .default_alignment(1)
        .tensor(Tensor::new(0, 64).kind(usm_pool::TensorKind::Activation))
        .tensor(Tensor::new(1, 64).alias_of(0, 0))
        .tensor(Tensor::new(2, 8))
        .tensor(Tensor::new(3, 8))
        .tensor(Tensor::new(4, 64))
        .op(Op::new("").inputs([0]).outputs([2]))
        .op(Op::new("").inputs([2]).outputs([1]))
        .op(Op::new("").inputs([1]).outputs([3]))
        .op(Op::new("").inputs([3]).outputs([4]))
        .loop_body(1, 3)
        .build()
        .expect("a graph");
    let (problem, plan) = plan_graph(&graph, &Options::default()).expect("a plan");
    let at = |id: u64| plan.row(id).map(|row| row.offset);
    assert_eq!(at(0), at(4), "the last tensor lies over the first");
    plan.verify(&problem).expect("a right plan");
    verify::graph(&graph, Queue::InOrder, &[], &plan.rows).expect("a right plan of this graph");
}
