//! Plans run with substitute operators: right plans have no wrong read, planted wrong ones do.

#![cfg(feature = "alloc")]

mod common;

use common::random_graph::graphs;
use proptest::prelude::*;
use usm_core::backend::host::HostHeap;
use usm_core::backend::mock::{Mock, Progress};
use usm_core::{Backend, Context, QueueOrder};
use usm_pool::execute::{ConstantStats, Network, Pool, ReadCounts};
use usm_pool::planner::pool_rules;
use usm_pool::{
    Graph, GraphBuilder, Op, Options, Plan, Problem, Queue, Strategy as PlanStrategy, Tensor, TensorKind,
    plan_graph,
};

fn made(graph: &Graph, queue: Queue) -> (Problem, Plan) {
    let mut options = Options::default();
    options.queue = queue;
    options.nodes = 200;
    plan_graph(graph, &options).expect("plan")
}

fn run_on<B: Backend + 'static>(context: &Context<B>, graph: &Graph, made: &(Problem, Plan)) -> ReadCounts {
    let order = if made.1.queue == Queue::InOrder { QueueOrder::InOrder } else { QueueOrder::OutOfOrder };
    let queue = context.queue(order).expect("queue");
    let network = Network::new(graph, &made.0, &made.1, &queue).expect("network");
    let mut stream = network.stream(&queue, 0).expect("stream");
    stream.run().expect("run")
}

fn run(graph: &Graph, made: &(Problem, Plan)) -> ReadCounts {
    run_on(&HostHeap::new().context(), graph, made)
}

/// Two constants, of which one has no reader, a chain of four tensors, and a view of the third.
fn net() -> Graph {
    let chain = (2..6).map(|id| Tensor::new(id, 256));
    let ops = (3..6).map(|id| Op::new(format!("op{id}")).inputs([id - 1, 0]).outputs([id]));
    let mut builder = Graph::builder()
        .tensor(Tensor::new(0, 1000).kind(TensorKind::Constant))
        .tensor(Tensor::new(1, 24).kind(TensorKind::Constant))
        .tensor(Tensor::new(7, 64).kind(TensorKind::Input))
        .tensor(Tensor::new(8, 100).alias_of(4, 13))
        .tensor(Tensor::new(9, 64))
        .op(Op::new("first").inputs([7]).outputs([2]));
    builder = chain.fold(builder, GraphBuilder::tensor);
    builder = ops.fold(builder, GraphBuilder::op);
    builder.op(Op::new("last").inputs([5, 8]).outputs([9])).output(9).build().expect("graph")
}

#[test]
fn constants_move_once_and_streams_share_them() {
    let (graph, context) = (net(), HostHeap::new().context());
    let (problem, plan) = made(&graph, Queue::InOrder);
    let queue = context.queue(QueueOrder::InOrder).expect("queue");
    let network = Network::new(&graph, &problem, &plan, &queue).expect("network");
    let ConstantStats { count, transfers, host_bytes_before, host_bytes_after, device_bytes, .. } =
        network.constant_stats();
    assert_eq!((count, transfers), (2, 1), "nobody reads the second");
    assert_eq!((host_bytes_before, host_bytes_after, device_bytes), (1024, 24, 1000));
    let mut streams = [0, 1].map(|number| network.stream(&queue, number).expect("stream"));
    for stream in &mut streams {
        assert_eq!(stream.pool().bytes, plan.peak);
    }
    for _ in 0..2 {
        for stream in &mut streams {
            let checked = stream.run().expect("run");
            assert_eq!((checked.reads, checked.wrong), (1 + 3 * 2 + 2 + 1, 0));
        }
    }
}

/// Both iterations run on both queues, each with content of its own.
#[test]
fn a_loop_hands_its_values_on() {
    let tensors = |count: u64| (0..count).fold(Graph::builder(), |all, id| all.tensor(Tensor::new(id, 64)));
    // 1 is replaced by way of its view 9.
    let replaced = tensors(4)
        .tensor(Tensor::new(9, 64).alias_of(1, 0))
        .op(Op::new("make").outputs([0]))
        .op(Op::new("enter").inputs([0]).outputs([1]))
        .op(Op::new("body").inputs([1]).outputs([2]))
        .op(Op::new("next").inputs([2]).outputs([9]))
        .op(Op::new("leave").inputs([1]).outputs([3]))
        .loop_body(2, 3)
        .output(3);
    // The next iteration reads 1.
    let carried = tensors(2)
        .op(Op::new("body").inputs([1]).outputs([0]))
        .op(Op::new("next").inputs([0]).outputs([1]))
        .loop_body(0, 1)
        .output(1);
    for (graph, reads, pair) in [(replaced, 7, (2, 1)), (carried, 5, (0, 1))] {
        let graph = graph.build().expect("graph");
        for queue in [Queue::InOrder, Queue::OutOfOrder] {
            let right = made(&graph, queue);
            let ReadCounts { reads: found, wrong, .. } = run(&graph, &right);
            assert_eq!((found, wrong), (reads, 0), "{queue:?}");
            let mut planted = right.clone();
            let place = |id| planted.1.rows.iter().position(|row| row.id == id).expect("row");
            let (onto, of) = (planted.1.rows[place(pair.1)].offset, place(pair.0));
            planted.1.rows[of].offset = onto;
            assert!(run(&graph, &planted).wrong > 0, "{queue:?}");
        }
    }
}

#[test]
fn a_planted_overlap_is_counted_at_each_read_that_finds_it() {
    let graph = net();
    let right = made(&graph, Queue::InOrder);
    assert_eq!(run(&graph, &right).wrong, 0);
    let planted = |places: &[(u64, u64)]| {
        let mut wrong = right.clone();
        for &(id, offset) in places {
            wrong.1.rows.iter_mut().find(|row| row.id == id).expect("row").offset = offset;
        }
        run(&graph, &wrong).wrong
    };
    let places = [(2, 0), (3, 256), (4, 0), (8, 13), (5, 256), (9, 512)];
    assert_eq!(planted(&places), 0);
    // The result over an input of the last operator, and over the view that it reads too.
    assert_eq!(planted(&[&places[..], &[(9, 256)]].concat()), 1);
    // Tensor 3 begins in the last bytes of 2, which its operator reads, and ends before those of 4.
    assert_eq!(planted(&[&places[..], &[(2, 192), (3, 256), (4, 0), (8, 13)]].concat()), 1);
}

#[test]
fn openvino_rules_decide_in_whole_buffers() {
    // One after the other in life: 1000 bytes, then 300.
    let graph = |second: Tensor| {
        Graph::builder()
            .tensor(Tensor::new(0, 1000))
            .tensor(Tensor::new(1, 8))
            .tensor(second)
            .op(Op::new("a").outputs([0]))
            .op(Op::new("b").inputs([0]).outputs([1]))
            .op(Op::new("c").inputs([1]).outputs([2]))
            .output(2)
            .build()
            .expect("graph")
    };
    let pool = |graph: &Graph| -> (Pool, u64) {
        let (problem, plan) = pool_rules::plan_graph(graph, &Options::default()).expect("plan");
        plan.verify(&problem).expect("right");
        let context = HostHeap::new().context();
        let queue = context.queue(QueueOrder::InOrder).expect("queue");
        let network = Network::new(graph, &problem, &plan, &queue).expect("network");
        let mut stream = network.stream(&queue, 0).expect("stream");
        assert_eq!(stream.run().expect("run").wrong, 0);
        (stream.pool(), plan.peak)
    };
    let (plain, bytes) = pool(&graph(Tensor::new(2, 300)));
    assert_eq!((plain.padded, plain.non_padded, plain.dynamic, plain.bytes), (0, 2, 0, bytes));
    let (dynamic, more) = pool(&graph(Tensor::new(2, 300).dynamic(true)));
    assert_eq!((dynamic.padded, dynamic.non_padded, dynamic.dynamic), (0, 3, 1), "300 are not half of 1000");
    assert!(more > bytes);
    let (fits, _) = pool(&graph(Tensor::new(2, 600).dynamic(true)));
    assert_eq!((fits.non_padded, fits.dynamic), (2, 1));
    let (padded, _) = pool(&graph(Tensor::new(2, 300).padding(12)));
    assert_eq!((padded.padded, padded.non_padded), (1, 2));
}

proptest! {
    #![proptest_config(common::config())]

    #[test]
    fn right_plans_have_no_wrong_read(graph in graphs(14)) {
        for queue in [Queue::InOrder, Queue::OutOfOrder] {
            let made = made(&graph, queue);
            prop_assert_eq!(run(&graph, &made).wrong, 0);
            let mock = Mock::new(Progress::OnWait).context();
            prop_assert_eq!(run_on(&mock, &graph, &made).wrong, 0);
        }
        let mut options = Options::default();
        options.strategy = PlanStrategy::WholeBuffer;
        let made = pool_rules::plan_graph(&graph, &options).expect("plan");
        prop_assert_eq!(run(&graph, &made).wrong, 0);
    }

    /// In most plans that the checker refuses because tensors share bytes, a read finds wrong
    /// content. In plans that it accepts, no read does.
    #[test]
    fn reads_agree_with_the_verifier(graph in graphs(14), row in 0_usize..64, offset in 0_u64..512) {
        let (problem, mut plan) = made(&graph, Queue::InOrder);
        prop_assume!(!plan.rows.is_empty());
        let row = row % plan.rows.len();
        plan.rows[row].offset = offset.min(plan.peak.saturating_sub(plan.rows[row].size));
        if usm_pool::verify::graph(&graph, Queue::InOrder, &[], &plan.rows).is_ok() {
            prop_assert_eq!(run(&graph, &(problem, plan)).wrong, 0);
        }
    }
}
