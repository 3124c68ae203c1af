//! The best order of a graph's operators, against brute force over all orders.

#![cfg(feature = "alloc")]

mod common;

use common::executor::Random;
use common::random_graph::graphs;
use proptest::prelude::*;
use usm_pool::alias::InPlace;
use usm_pool::planner::reorder::reorder;
use usm_pool::verify::Violation;
use usm_pool::{Graph, Op, Options, OrderBound, OrderCertificate, Tensor, plan_graph, verify};

/// A random graph of `n` operators: each reads one to three earlier results. Results that nobody
/// reads are outputs.
fn random_graph(random: &mut Random, n: u64, alignment: u64) -> Graph {
    let mut builder = Graph::builder().default_alignment(alignment);
    let mut read = vec![false; n as usize];
    for op in 0..n {
        let mut inputs: Vec<u64> = Vec::new();
        if op > 0 {
            for _ in 0..1 + random.below(3).min(op - 1) {
                inputs.push(random.below(op));
            }
        }
        inputs.iter().for_each(|&input| read[input as usize] = true);
        let size = 1 + random.below(300);
        builder = builder.tensor(Tensor::new(op, size)).op(Op::new("").inputs(inputs).outputs([op]));
    }
    for (id, _) in read.iter().enumerate().filter(|(_, read)| !**read) {
        builder = builder.output(id as u64);
    }
    builder.build().expect("graph")
}

/// The least heaviest cut of all orders: sums of sizes rounded up, less what the topmost leaves
/// free. Shares nothing with the planner: it only knows who reads what.
fn least_peak(graph: &Graph, alignment: u64) -> u64 {
    let n = graph.ops().len();
    let before: Vec<u32> =
        graph.ops().iter().map(|op| op.inputs.iter().fold(0, |mask, &input| mask | 1 << input)).collect();
    let users: Vec<u32> =
        graph.tensors().iter().map(|t| t.users.iter().fold(0, |mask, &user| mask | 1 << user)).collect();
    let mut least = vec![u64::MAX; 1 << n];
    least[0] = 0;
    for done in 0..1_u32 << n {
        if least[done as usize] == u64::MAX {
            continue;
        }
        for op in (0..n).filter(|&op| done >> op & 1 == 0 && before[op] & !done == 0) {
            let (mut sum, mut slack) = (0, 0);
            for (t, tensor) in graph.tensors().iter().enumerate() {
                let made = t == op || done >> t & 1 == 1;
                let needed = t == op || tensor.is_output || users[t] & !done != 0;
                if made && needed {
                    let room = tensor.size.next_multiple_of(alignment);
                    sum += room;
                    slack = slack.max(room - tensor.size);
                }
            }
            let next = (done | 1 << op) as usize;
            least[next] = least[next].min(least[done as usize].max(sum - slack));
        }
    }
    least[(1 << n) - 1]
}

#[test]
fn small_graphs_have_the_least_peak_with_a_proof() {
    let mut random = Random(1);
    let (mut by_sets, mut better) = (0, 0);
    for case in 0..400 {
        let alignment = [1, 1, 64][case % 3];
        let n = 8 + random.below(6);
        let graph = random_graph(&mut random, n, alignment);
        let least = least_peak(&graph, alignment);
        let start = std::time::Instant::now();
        let found = reorder(&graph, InPlace::Never).expect("order");
        let time = start.elapsed();
        let bound = found.every_order.expect("no loops");
        assert!(time.as_secs_f64() < 1.0, "{case}: {time:?}");
        assert_eq!((found.peak, bound.bytes), (least, least), "{case} {graph:?}");
        let ordered = graph.reordered(&found.order).expect("an order");
        verify::order_bound(&ordered, &bound).expect("a proof");
        by_sets += usize::from(matches!(bound.certificate, OrderCertificate::Sets { .. }));
        better += usize::from(found.peak < found.peak_before);
    }
    println!("{by_sets} by sets, {better} better");
}

/// Every graph of seven operators that each read one earlier result, with results of one or a
/// hundred bytes.
#[test]
fn trees_of_seven_operators_have_the_least_peak_with_a_proof() {
    let step = (97 / skip::cases("USM_ORDER_TREES", 1)).max(1);
    let mut graphs = 0;
    for number in (0..720 * 128).step_by(step as usize) {
        let (mut tree, sizes) = (number % 720, number / 720);
        let mut builder = Graph::builder().default_alignment(1);
        let mut read = [false; 7];
        for op in 0..7_u64 {
            let size = if sizes >> op & 1 == 1 { 100 } else { 1 };
            let mut described = Op::new("").outputs([op]);
            if op > 0 {
                let input = tree % op;
                tree /= op;
                read[input as usize] = true;
                described = described.inputs([input]);
            }
            builder = builder.tensor(Tensor::new(op, size)).op(described);
        }
        for op in (0..7).filter(|&op| !read[op as usize]) {
            builder = builder.output(op);
        }
        let graph = builder.build().expect("graph");
        let found = reorder(&graph, InPlace::Never).expect("order");
        let bound = found.every_order.expect("no loops");
        let least = least_peak(&graph, 1);
        assert_eq!((found.peak, bound.bytes), (least, least), "{graph:?}");
        verify::order_bound(&graph.reordered(&found.order).expect("an order"), &bound).expect("a proof");
        graphs += 1;
    }
    println!("{graphs} graphs");
}

/// The least peak of the plans of all orders: each order is tried.
fn least_planned(graph: &Graph) -> u64 {
    fn next(graph: &Graph, order: &mut Vec<usize>, least: &mut u64) {
        if order.len() == graph.ops().len() {
            let Ok(ordered) = graph.reordered(order) else { return };
            let mut options = Options::default();
            options.nodes = 50;
            let (_, plan) = plan_graph(&ordered, &options).expect("plan");
            *least = (*least).min(plan.peak);
            return;
        }
        for op in 0..graph.ops().len() {
            if !order.contains(&op) {
                order.push(op);
                next(graph, order, least);
                order.pop();
            }
        }
    }
    let mut least = u64::MAX;
    next(graph, &mut Vec::new(), &mut least);
    least
}

proptest! {
    #![proptest_config(common::config())]

    #[test]
    fn views_and_permits_count_in_every_order(graph in graphs(5)) {
        let found = reorder(&graph, InPlace::SameSize).expect("order");
        let bound = found.every_order.expect("no loops");
        let ordered = graph.reordered(&found.order).expect("an order");
        verify::order_bound(&ordered, &bound).expect("a proof");
        let least = least_planned(&graph);
        prop_assert!(bound.bytes <= least);
        // More than is proven, by either certificate, is refused.
        let above = OrderBound::new(least + 1, bound.certificate.clone());
        prop_assert!(verify::order_bound(&ordered, &above).is_err());
        let sets = OrderCertificate::Sets { first: Vec::new(), last: Vec::new() };
        prop_assert!(verify::order_bound(&ordered, &OrderBound::new(above.bytes, sets)).is_err());
    }
}

/// Two branches from one result: the wide one is shorter in memory when it runs first.
fn two_branches() -> Graph {
    let sizes = [1, 100, 289, 10];
    let tensors = sizes.into_iter().zip(0..);
    let mut builder = Graph::builder().default_alignment(1);
    for (size, id) in tensors {
        builder = builder.tensor(Tensor::new(id, size));
    }
    let builder = builder.op(Op::new("s").outputs([0]));
    let builder = builder.op(Op::new("b").inputs([0]).outputs([1]));
    let builder = builder.op(Op::new("a1").inputs([0]).outputs([2]));
    builder.op(Op::new("a2").inputs([2]).outputs([3])).output(1).output(3).build().expect("graph")
}

#[test]
fn a_wrong_bound_on_every_order_is_refused() {
    let graph = two_branches();
    let found = reorder(&graph, InPlace::Never).expect("order");
    let right = found.every_order.expect("no loops");
    assert_eq!((right.bytes, found.order), (300, vec![0, 2, 3, 1]));
    verify::order_bound(&graph.reordered(&[0, 2, 3, 1]).expect("an order"), &right).expect("a proof");
    // The numbers of the given order.
    let check = |bytes, first: &[&[usize]], last: &[&[usize]]| {
        let lists = |lists: &[&[usize]]| lists.iter().map(|list| list.to_vec()).collect();
        let certificate = OrderCertificate::Sets { first: lists(first), last: lists(last) };
        verify::order_bound(&graph, &OrderBound::new(bytes, certificate))
    };
    assert_eq!(check(300, &[], &[]), Ok(()));
    assert_eq!(check(301, &[], &[]), Err(Violation::OrderBelow { limit: 300 }));
    // Nothing makes `s` and `b` first lists: more is live after them.
    assert_eq!(check(300, &[&[0, 1]], &[]), Err(Violation::OrderList { op: 0 }));
    assert_eq!(check(399, &[&[0], &[1]], &[]), Err(Violation::OrderList { op: 0 }));
    // `b` leaves more than it finds, so that it need not be last. From the end, `a2` is no list:
    // its input is larger than its output.
    assert_eq!(check(399, &[], &[&[3]]), Err(Violation::OrderList { op: 3 }));
    for wrong in [&[4][..], &[2], &[0, 0], &[3]] {
        let refused = check(300, &[wrong], &[]);
        assert!(matches!(refused, Err(Violation::OrderOperator { .. })), "{wrong:?} {refused:?}");
    }
    let operator =
        |bytes, op| verify::order_bound(&graph, &OrderBound::new(bytes, OrderCertificate::Operator { op }));
    // `a2` needs its input and its output in every order.
    assert_eq!(operator(299, 3), Ok(()));
    let expected = Violation::Field { field: "order_bound", actual: 300, expected: 299 };
    assert_eq!(operator(300, 3), Err(expected));
    assert_eq!(operator(299, 4), Err(Violation::OrderOperator { op: 4 }));
}

/// What the caller reads is live after the run, whatever comes first.
#[test]
fn bytes_after_the_run_bound_every_order() {
    let mut builder =
        Graph::builder().default_alignment(64).tensor(Tensor::new(0, 1)).op(Op::new("").outputs([0]));
    for op in 1..200 {
        builder =
            builder.tensor(Tensor::new(op, 100)).op(Op::new("").inputs([op / 3]).outputs([op])).output(op);
    }
    let graph = builder.build().expect("graph");
    let best = reorder(&graph, InPlace::Never).expect("order");
    let bound = best.every_order.expect("no loops");
    // 199 of them, of which the topmost needs no rounding.
    assert_eq!((bound.bytes, best.peak), (199 * 128 - 28, 199 * 128 - 28));
    let none = OrderCertificate::Sets { first: Vec::new(), last: Vec::new() };
    assert_eq!(bound.certificate, none);
    let ordered = graph.reordered(&best.order).expect("an order");
    assert_eq!(verify::order_bound(&ordered, &bound), Ok(()));
    let wrong = OrderBound::new(bound.bytes + 1, none);
    assert_eq!(verify::order_bound(&ordered, &wrong), Err(Violation::OrderBelow { limit: bound.bytes }));
}

#[test]
fn a_workspace_is_live_during_its_operator_alone() {
    let graph = Graph::builder()
        .default_alignment(1)
        .tensor(Tensor::new(7, 10))
        .tensor(Tensor::new(8, 20))
        .op(Op::new("a").outputs([7]).workspace(100))
        .op(Op::new("").inputs([7]).outputs([8]).workspace(5))
        .output(8)
        .build()
        .expect("graph");
    let added: Vec<_> = graph.tensors()[2..].iter().map(|t| (t.id, t.size, t.name.as_deref())).collect();
    assert_eq!(added, [(9, 100, Some("a.workspace")), (10, 5, Some("op1.workspace"))]);
    let (_, plan) = plan_graph(&graph, &Options::default()).expect("plan");
    assert_eq!(plan.peak, 110);
    // Again from its own description, it is the same graph.
    assert_eq!(graph.resized(&[]).expect("graph"), graph);
}
