//! Executes a plan: a graph runs in one block of memory with overlapping tensors, and every read
//! finds the value written for it.

use usm_core::{AllocKind, Allocation, Backend, Device, Queue, QueueOrder, UsmVec};
use usm_pool::arena::Arena;
use usm_pool::{Graph, Op, Options, Plan, Queue as PlanQueue, Tensor, plan_graph};

use crate::Fixture;

/// A value that no read may find.
const POISON: u8 = 0xDB;

/// Branches, a join, a result with two readers, one without readers, and one that is read again at
/// the end.
fn graph() -> Graph {
    let sizes = [4096, 1024, 4096, 1024, 2048, 512, 8192, 256, 64, 2048];
    let mut builder = Graph::builder();
    for (id, size) in (0..).zip(sizes) {
        builder = builder.tensor(Tensor::new(id, size).alignment(64));
    }
    let ops: [(&[u64], &[u64]); 9] = [
        (&[], &[0]),
        (&[0], &[1]),
        (&[], &[2]),
        (&[2, 2], &[3]),
        (&[1, 3], &[4, 5]),
        (&[4], &[6]),
        (&[6, 1], &[7]),
        (&[4, 7], &[8]),
        (&[8, 5], &[9]),
    ];
    for (inputs, outputs) in ops {
        builder = builder.op(Op::new("").inputs(inputs.iter().copied()).outputs(outputs.iter().copied()));
    }
    builder.output(9).build().expect("a graph")
}

/// A content that identifies the tensor.
fn stamp(tensor: usize) -> u8 {
    tensor as u8 + 1
}

/// A run of a graph: the held tensors, the remaining reads, and copies of everything read.
struct Run<'r, B: Backend> {
    graph: &'r Graph,
    arena: Arena<B>,
    queue: &'r Queue<B>,
    held: Vec<Option<Allocation<B>>>,
    reads_left: Vec<usize>,
    read: Vec<(usize, UsmVec<u8, Device, B>)>,
}

impl<B: Backend + 'static> Run<'_, B> {
    fn step(&mut self, op: usize) {
        let node = &self.graph.ops()[op];
        for &output in &node.outputs {
            let tensor = self.arena.tensor(self.graph.tensors()[output].id).expect("free by the plan");
            let mut memory = tensor.allocation().expect("a part");
            self.fill(&mut memory, stamp(output));
            self.held[output] = Some(memory);
        }
        let mut inputs = node.inputs.clone();
        inputs.dedup();
        for input in inputs {
            self.copy(input);
            self.reads_left[input] -= 1;
        }
        for &tensor in node.inputs.iter().chain(&node.outputs) {
            if self.reads_left[tensor] == 0 {
                if let Some(mut memory) = self.held[tensor].take() {
                    self.fill(&mut memory, POISON);
                }
            }
        }
    }

    fn fill(&self, memory: &mut Allocation<B>, value: u8) {
        let bytes = memory.size();
        let _ = self.queue.fill_bytes(memory, 0, bytes, &[value]).expect("a fill");
    }

    /// No wait: the copy is a reader like any kernel.
    fn copy(&mut self, tensor: usize) {
        let source = self.held[tensor].as_ref().expect("held until its last read");
        let bytes = source.size();
        let mut copy = UsmVec::<u8, Device, B>::zeroed(self.queue, bytes).expect("an array");
        // SAFETY: the memory keeps its place and is initialised before and after the copy.
        let memory = unsafe { copy.allocation_mut() };
        let _ = self.queue.copy_bytes(memory, 0, source, 0, bytes).expect("a copy");
        self.read.push((tensor, copy));
    }

    fn check(mut self) {
        for &output in self.graph.outputs() {
            self.copy(output);
        }
        assert_eq!(self.read.len(), 12, "reads, and the output");
        for (tensor, copy) in &self.read {
            let bytes = copy.to_vec(self.queue).expect("the content");
            let expected = vec![stamp(*tensor); bytes.len()];
            assert!(bytes == expected, "tensor {tensor} was overwritten: {bytes:?}");
        }
    }
}

fn run<B: Backend + 'static>(fixture: &Fixture<'_, B>, order: QueueOrder, plan: &Plan, schedule: &[usize]) {
    let graph = graph();
    let queue = fixture.context.queue(order).expect("a queue");
    let readers = graph.tensors().iter().map(|tensor| tensor.users.len() + usize::from(tensor.is_output));
    let mut run = Run {
        graph: &graph,
        arena: Arena::new(plan, fixture.context, AllocKind::Device).expect("an arena"),
        queue: &queue,
        held: graph.tensors().iter().map(|_| None).collect(),
        reads_left: readers.collect(),
        read: Vec::new(),
    };
    for &op in schedule {
        run.step(op);
    }
    run.check();
}

fn plan(queue: PlanQueue, edges: usize) -> Plan {
    let mut options = Options::default();
    options.queue = queue;
    options.ordering_edges = edges;
    plan_graph(&graph(), &options).expect("a plan").1
}

/// In processing order, with tensors of different times in the same bytes.
pub fn a_graph_runs_in_the_arena_of_its_plan<B: Backend + 'static>(fixture: &Fixture<'_, B>) {
    let plan = plan(PlanQueue::InOrder, 0);
    assert!(plan.peak < plan.naive, "tensors share");
    run(fixture, QueueOrder::InOrder, &plan, &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
    run(fixture, QueueOrder::OutOfOrder, &plan, &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
}

/// An out-of-order plan holds for every order that data dependencies and ordering edges allow.
pub fn an_out_of_order_plan_holds_in_every_order<B: Backend + 'static>(fixture: &Fixture<'_, B>) {
    let free = plan(PlanQueue::OutOfOrder, 0);
    for schedule in [[0, 1, 2, 3, 4, 5, 6, 7, 8], [2, 3, 0, 1, 4, 5, 6, 7, 8], [2, 0, 3, 1, 4, 5, 6, 7, 8]] {
        run(fixture, QueueOrder::OutOfOrder, &free, &schedule);
    }
    let ordered = plan(PlanQueue::OutOfOrder, 3);
    let position = |schedule: &[usize], op: usize| schedule.iter().position(|&other| other == op);
    for schedule in [[0, 1, 2, 3, 4, 5, 6, 7, 8], [2, 3, 0, 1, 4, 5, 6, 7, 8]] {
        let kept = |&(u, v): &(usize, usize)| position(&schedule, u) < position(&schedule, v);
        if ordered.ordering_edges.iter().all(kept) {
            run(fixture, QueueOrder::OutOfOrder, &ordered, &schedule);
        }
    }
}
