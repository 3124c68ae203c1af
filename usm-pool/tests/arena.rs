//! Arenas on backends: random graphs run in one allocation, on the host and on an asynchronous
//! queue, with memory poisoned at last use.

#![cfg(feature = "alloc")]

mod common;

use common::executor::{Random, data_predecessors};
use common::random_graph::graphs;
use proptest::prelude::*;
use usm_core::backend::host::HostHeap;
use usm_core::backend::mock::{Mock, Progress};
use usm_core::{
    AllocKind, Allocation, Backend, Context, Device, ErrorKind, MemorySource, QueueOrder, Request, UsmVec,
};
use usm_pool::arena::{Arena, ArenaError};
use usm_pool::{Buffer, Graph, Op, Options, Plan, Problem, Queue, Tensor, TensorKind, plan, plan_graph};

const POISON: u8 = 0xDB;

fn options(queue: Queue) -> Options<'static> {
    let mut options = Options::default();
    options.queue = queue;
    options.nodes = 200;
    options
}

/// The content of a tensor: a byte value of its own.
fn stamp(tensor: usize) -> u8 {
    (tensor % 200) as u8 + 1
}

/// Runs a graph without views or in-place permits. Tensors are claimed when their producer is
/// submitted, and dropped and poisoned through the queue after their last user. Every read is a
/// real copy through the queue into a probe, which is checked at the end.
fn run<B: Backend + 'static>(
    graph: &Graph,
    plan: &Plan,
    context: &Context<B>,
    order: QueueOrder,
    schedule: &[usize],
) {
    let queue = context.queue(order).expect("queue");
    let arena = Arena::new(plan, context, AllocKind::Device).expect("arena");
    let mut held: Vec<Option<Allocation<B>>> = graph.tensors().iter().map(|_| None).collect();
    let mut left: Vec<usize> =
        graph.tensors().iter().map(|t| t.users.len() + usize::from(t.is_output)).collect();
    let mut probes: Vec<(usize, UsmVec<u8, Device, B>)> = Vec::new();
    let claim = |tensor: usize, held: &mut Vec<Option<Allocation<B>>>| {
        let node = &graph.tensors()[tensor];
        if node.kind == TensorKind::Activation && node.size > 0 {
            let claim = arena.tensor(node.id).expect("free by plan");
            let mut allocation = claim.allocation().expect("allocation");
            let bytes = allocation.size();
            let _ = queue.fill_bytes(&mut allocation, 0, bytes, &[stamp(tensor)]).expect("fill");
            held[tensor] = Some(allocation);
        }
    };
    for (tensor, node) in graph.tensors().iter().enumerate() {
        if node.producer.is_none() && left[tensor] > 0 {
            claim(tensor, &mut held);
        }
    }
    let let_go = |tensor: usize, held: &mut Vec<Option<Allocation<B>>>| {
        if let Some(mut allocation) = held[tensor].take() {
            let bytes = allocation.size();
            let _ = queue.fill_bytes(&mut allocation, 0, bytes, &[POISON]).expect("poison");
        }
    };
    for &op in schedule {
        let node = &graph.ops()[op];
        for &output in &node.outputs {
            claim(output, &mut held);
        }
        let mut inputs = node.inputs.clone();
        inputs.sort_unstable();
        inputs.dedup();
        for input in inputs {
            if let Some(allocation) = &held[input] {
                let bytes = allocation.size();
                let mut probe = UsmVec::<u8, Device, B>::zeroed(&queue, bytes).expect("probe");
                // SAFETY: each tensor was filled when it was claimed, and the memory keeps its
                // place.
                let memory = unsafe { probe.allocation_mut() };
                let _ = queue.copy_bytes(memory, 0, allocation, 0, bytes).expect("read");
                probes.push((input, probe));
            }
            left[input] -= 1;
            if left[input] == 0 {
                let_go(input, &mut held);
            }
        }
        for &output in &node.outputs {
            if left[output] == 0 {
                let_go(output, &mut held);
            }
        }
    }
    for (tensor, probe) in &probes {
        let bytes = probe.to_vec(&queue).expect("probe");
        assert!(bytes.iter().all(|&byte| byte == stamp(*tensor)), "tensor {tensor}: {bytes:?}");
    }
    for &output in graph.outputs() {
        if let Some(allocation) = &held[output] {
            let bytes = allocation.size();
            let mut probe = UsmVec::<u8, Device, B>::zeroed(&queue, bytes).expect("probe");
            // SAFETY: each tensor was filled when it was claimed, and the memory keeps its place.
            let memory = unsafe { probe.allocation_mut() };
            let _ = queue.copy_bytes(memory, 0, allocation, 0, bytes).expect("read");
            let found = probe.to_vec(&queue).expect("probe");
            assert!(found.iter().all(|&byte| byte == stamp(output)), "output {output}");
        }
    }
}

/// A random order that the data dependencies allow.
fn shuffled(graph: &Graph, random: &mut Random) -> Vec<usize> {
    let n = graph.ops().len();
    let before: Vec<Vec<usize>> = (0..n).map(|op| data_predecessors(graph, op)).collect();
    let mut order: Vec<usize> = Vec::new();
    while order.len() < n {
        let ready: Vec<usize> = (0..n)
            .filter(|op| !order.contains(op) && before[*op].iter().all(|b| order.contains(b)))
            .collect();
        order.push(ready[random.below(ready.len() as u64) as usize]);
    }
    order
}

/// The same graph without views and permits, for an executor with one owner for each tensor.
fn plain(graph: &Graph) -> Graph {
    let mut builder = Graph::builder().default_alignment(1);
    for tensor in graph.tensors() {
        let kind = if tensor.producer.is_some() { TensorKind::Activation } else { tensor.kind };
        builder = builder.tensor(Tensor::new(tensor.id, tensor.size).alignment(tensor.alignment).kind(kind));
    }
    let ids = |all: &[usize]| all.iter().map(|&tensor| graph.tensors()[tensor].id).collect::<Vec<_>>();
    for op in graph.ops() {
        builder = builder.op(Op::new("").inputs(ids(&op.inputs)).outputs(ids(&op.outputs)));
    }
    for id in ids(graph.outputs()) {
        builder = builder.output(id);
    }
    builder.build().expect("graph")
}

proptest! {
    #![proptest_config(common::config())]

    #[test]
    fn random_graphs_run_in_their_arena(graph in graphs(14), seed in any::<u64>()) {
        let graph = plain(&graph);
        let context = HostHeap::new().context();
        let (_, plan) = plan_graph(&graph, &options(Queue::InOrder)).expect("plan");
        let in_order: Vec<usize> = (0..graph.ops().len()).collect();
        run(&graph, &plan, &context, QueueOrder::InOrder, &in_order);
        let mock = Mock::new(Progress::OnWait);
        run(&graph, &plan, &mock.context(), QueueOrder::InOrder, &in_order);
        prop_assert_eq!(mock.violations(), vec![]);
        let (_, plan) = plan_graph(&graph, &options(Queue::OutOfOrder)).expect("plan");
        let mut random = Random(seed);
        for round in 0..3 {
            let schedule = shuffled(&graph, &mut random);
            run(&graph, &plan, &context, QueueOrder::OutOfOrder, &schedule);
            // Work that runs during waits, in any order that the events allow.
            mock.seed(seed.wrapping_add(round));
            run(&graph, &plan, &mock.context(), QueueOrder::OutOfOrder, &schedule);
            prop_assert_eq!(mock.violations(), vec![]);
        }
        mock.finish();
    }
}

fn two_sharing() -> (Problem, Plan) {
    let buffers = vec![
        Buffer::new(1, 0, 1, 256).aligned(64),
        Buffer::new(2, 1, 2, 128).aligned(64),
        Buffer::new(3, 0, 2, 0),
    ];
    let problem = Problem::from_buffers(buffers).expect("problem");
    let plan = plan(&problem, &Options::default()).expect("plan");
    (problem, plan)
}

#[test]
fn bytes_are_given_to_one_owner_at_a_time() {
    let (_, plan) = two_sharing();
    let context = HostHeap::new().context();
    let arena = Arena::new(&plan, &context, AllocKind::Shared).expect("arena");
    let first = arena.tensor(1).expect("free");
    assert_eq!(arena.tensor(1).unwrap_err(), ArenaError::InUse { id: 1, held_by: 1 });
    assert_eq!(arena.tensor(2).unwrap_err(), ArenaError::InUse { id: 2, held_by: 1 });
    let allocation = first.allocation().expect("once");
    assert!(first.allocation().is_err(), "a claim serves once");
    drop(first);
    assert_eq!(
        arena.tensor(2).unwrap_err(),
        ArenaError::InUse { id: 2, held_by: 1 },
        "the allocation holds on"
    );
    drop(allocation);
    assert!(arena.tensor(2).is_ok());
    assert_eq!(arena.tensor(3).unwrap_err(), ArenaError::Empty { id: 3 });
    assert_eq!(arena.tensor(4).unwrap_err(), ArenaError::Unknown { id: 4 });
}

/// A source that names another context than its memory's.
struct Mislabelled {
    memory: Context<Mock>,
    named: Context<Mock>,
}

impl MemorySource<Mock> for Mislabelled {
    fn allocate(&self, request: &Request) -> usm_core::Result<Allocation<Mock>> {
        self.memory.allocate(request)
    }

    fn context(&self) -> &Context<Mock> {
        &self.named
    }
}

#[test]
fn parts_belong_to_the_context_of_their_memory() {
    let (_, plan) = two_sharing();
    let mock = Mock::new(Progress::OnWait);
    let source = Mislabelled { memory: mock.context(), named: mock.context() };
    let arena = Arena::new(&plan, &source, AllocKind::Shared).expect("arena");
    let mut part = arena.tensor(1).expect("free").allocation().expect("allocation");
    assert_eq!(part.context().id(), source.memory.id());
    let queue = source.named.queue(QueueOrder::InOrder).expect("a queue");
    let refused = queue.fill_bytes(&mut part, 0, 8, &[0]).expect_err("memory of another context").kind;
    assert_eq!(refused, ErrorKind::WrongContext { expected: source.named.id(), found: source.memory.id() });
}

#[test]
fn the_memory_outlives_the_arena_and_is_freed_with_the_last_part() {
    let (_, plan) = two_sharing();
    let context = HostHeap::new().context();
    let arena = Arena::new(&plan, &context, AllocKind::Device).expect("arena");
    let part = arena.tensor(1).expect("free").allocation().expect("allocation");
    assert_eq!(context.stats().of(usm_core::MemoryType::UsmDevice).current, 256);
    drop(arena);
    assert_eq!(context.stats().of(usm_core::MemoryType::UsmDevice).current, 256);
    drop(part);
    assert_eq!(context.stats().of(usm_core::MemoryType::UsmDevice).current, 0);
}

#[test]
fn a_forgotten_part_keeps_its_bytes_for_good() {
    let (_, plan) = two_sharing();
    let context = HostHeap::new().context();
    let arena = Arena::new(&plan, &context, AllocKind::Device).expect("arena");
    core::mem::forget(arena.tensor(1).expect("free").allocation().expect("allocation"));
    assert_eq!(arena.tensor(2).unwrap_err(), ArenaError::InUse { id: 2, held_by: 1 });
}
