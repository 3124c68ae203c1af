//! Graphs with memories of their own: places, pins, costs, and the checker.

#![cfg(feature = "alloc")]

mod common;

use common::executor::{self, Random};
use usm_core::QueueOrder;
use usm_core::backend::host::HostHeap;
use usm_pool::execute::Network;
use usm_pool::verify::{self, Violation};
use usm_pool::{
    Error, Graph, GraphError, Memory, Op, Options, Plan, Problem, Queue, Space, Tensor, TensorKind,
    plan_graph,
};

const DRAM: u64 = 1 << 20;

fn options(queue: Queue) -> Options<'static> {
    let mut options = Options::default();
    (options.queue, options.nodes) = (queue, 200);
    options
}

/// Operators that read recent tensors, some with views, permits, workspace, pins and outputs.
fn random(random: &mut Random, most: u64) -> Graph {
    let memories = 1 + random.below(3) as usize;
    let mut builder = Graph::builder().default_alignment(1 << random.below(7));
    for memory in 0..memories {
        let mut space = Space::new(format!("m{memory}"), 1 + random.below(900), random.below(9));
        if random.below(4) == 0 {
            space = space.chunk(100 + random.below(400));
        }
        builder = builder.memory(space);
    }
    builder = builder.memory(Space::new("rest", DRAM, 5 + random.below(9)));
    let mut sizes: Vec<u64> = Vec::new();
    for _ in 0..1 + random.below(most) {
        let mut op = Op::new("").workspace(random.below(4) / 3 * random.below(200));
        let mut first = None;
        for _ in 0..random.below(3).min(sizes.len() as u64) {
            let input = sizes.len() as u64 - 1 - random.below(4.min(sizes.len() as u64));
            first = first.or(Some(input));
            op = op.inputs([input]);
        }
        for _ in 0..1 + random.below(2) {
            let id = sizes.len() as u64;
            let mut size = 1 + random.below(300);
            let mut tensor = Tensor::new(id, size);
            match (random.below(6), first) {
                (0, Some(of)) => {
                    size = sizes[of as usize];
                    tensor = Tensor::new(id, size).alias_of(of, 0);
                }
                (1, Some(of)) => {
                    size = sizes[of as usize];
                    tensor = Tensor::new(id, size);
                    op = op.in_place(of, id);
                }
                (2, _) => tensor = tensor.memory(memories),
                _ => {}
            }
            if random.below(6) == 0 {
                builder = builder.output(id);
            }
            builder = builder.tensor(tensor);
            op = op.outputs([id]);
            sizes.push(size);
        }
        builder = builder.op(op);
    }
    builder.build().expect("a graph")
}

fn check(graph: &Graph, problem: &Problem, plan: &Plan) -> Result<(), Violation> {
    plan.verify(problem)?;
    verify::memories(graph, problem, plan)?;
    verify::graph(graph, plan.queue, &plan.ordering_edges, &plan.rows)
}

/// `USM_CASES` or `USM_EFFORT` try more graphs.
#[test]
fn random_graphs_run_in_their_memories() {
    let (mut spread, mut proven, mut several) = (0, 0, 0);
    let cases = skip::cases("USM_CASES", 300);
    for case in 0..cases {
        let graph = random(&mut Random(case), 12);
        for queue in [Queue::InOrder, Queue::OutOfOrder] {
            let (problem, plan) = match plan_graph(&graph, &options(queue)) {
                Ok(made) => made,
                Err(error) => panic!("case {case}: {error}"),
            };
            check(&graph, &problem, &plan).unwrap_or_else(|wrong| panic!("case {case}: {wrong}"));
            executor::in_order(&graph, &plan.rows).unwrap_or_else(|wrong| panic!("case {case}: {wrong}"));
            let placed = plan.memory_plan.as_ref().expect("memories");
            spread += usize::from(plan.is_spread());
            proven += usize::from(placed.cost == placed.cost_bound);
            several += 1;
        }
    }
    assert!(2 * spread > several && 2 * proven > several, "{spread}, {proven} of {several}");
}

/// The least cost of all choices of memories whose buffers have room by their lives.
fn least_cost(graph: &Graph, problem: &Problem) -> u128 {
    let (spaces, buffers) = (graph.memories(), problem.buffers());
    let traffic = |buffer: usize| -> u128 {
        let here = problem.members().iter().filter(|member| member.buffer == buffer);
        let nodes = here.map(|member| &graph.tensors()[graph.tensor_index(member.tensor.id).expect("known")]);
        nodes.map(|node| u128::from(node.size) * (node.users.len() + 1) as u128).sum()
    };
    let choices = spaces.len().pow(buffers.len() as u32);
    let mut least = u128::MAX;
    for choice in 0..choices {
        let memory = |buffer: usize| choice / spaces.len().pow(buffer as u32) % spaces.len();
        let load = |time: u64, of: usize| -> u64 {
            let live = |i: &usize| buffers[*i].lower <= time && time < buffers[*i].upper;
            (0..buffers.len()).filter(live).filter(|&i| memory(i) == of).map(|i| buffers[i].size).sum()
        };
        let has_room =
            |of: usize| (0..graph.ops().len() as u64).all(|time| load(time, of) <= spaces[of].capacity);
        if (0..spaces.len()).all(has_room) {
            let cost = |i: usize| traffic(i) * u128::from(spaces[memory(i)].cost);
            least = least.min((0..buffers.len()).map(cost).sum());
        }
    }
    least
}

#[test]
fn few_buffers_cost_the_least() {
    let mut exact = 0;
    let cases = skip::cases("USM_CASES", 60);
    for case in 0..cases {
        let mut random = Random(case);
        let mut builder = Graph::builder().default_alignment(1);
        for (name, cost) in [("fast", 1 + random.below(3)), ("near", 4), ("far", 9)] {
            let capacity = if name == "far" { DRAM } else { 100 + random.below(400) };
            builder = builder.memory(Space::new(name, capacity, cost));
        }
        for id in 0..7_u64 {
            builder = builder.tensor(Tensor::new(id, 16 * (1 + random.below(16))));
            let op = Op::new("").inputs((0..random.below(3).min(id)).map(|back| id - 1 - back));
            builder = builder.op(op.outputs([id]));
        }
        let graph = builder.build().expect("a graph");
        let (problem, plan) = plan_graph(&graph, &options(Queue::InOrder)).expect("a plan");
        let (placed, least) = (plan.memory_plan.expect("memories"), least_cost(&graph, &problem));
        assert!(u128::from(placed.cost_bound) <= least, "case {case}");
        assert!(u128::from(placed.cost) >= least, "case {case}");
        exact += u64::from(u128::from(placed.cost) == least);
    }
    // Where the choice of least cost has room by its lives, its offsets may still have none.
    assert!(100 * exact >= 98 * cases, "{exact} of {cases}");
}

/// A tensor of each memory's worth, and one more.
fn two() -> Graph {
    Graph::builder()
        .default_alignment(1)
        .memory(Space::new("sram", 256, 1))
        .memory(Space::new("dram", 4096, 10).chunk(512))
        .tensor(Tensor::new(0, 200))
        .tensor(Tensor::new(1, 150))
        .tensor(Tensor::new(2, 400))
        .tensor(Tensor::new(3, 100).memory(1))
        .op(Op::new("a").outputs([0]))
        .op(Op::new("b").inputs([0]).outputs([1]))
        .op(Op::new("c").inputs([0, 1]).outputs([2]))
        .op(Op::new("d").inputs([0, 2]).outputs([3]))
        .output(3)
        .build()
        .expect("a graph")
}

#[test]
fn the_busiest_tensor_lies_in_the_cheap_memory_and_none_across_chunks() {
    let graph = two();
    let (problem, plan) = plan_graph(&graph, &options(Queue::InOrder)).expect("a plan");
    check(&graph, &problem, &plan).expect("a right plan");
    let rows: Vec<(u64, Memory, u64)> =
        plan.rows.iter().map(|row| (row.id, row.memory, row.offset / 512)).collect();
    assert_eq!(rows[0], (0, Memory::Own(0), 0));
    assert_ne!((rows[1].1, rows[1].2), (rows[2].1, rows[2].2), "550 bytes are more than a chunk");
    assert_eq!(rows[3].1, Memory::Own(1));
    let placed = plan.memory_plan.as_ref().expect("memories");
    assert_eq!(placed.cost, 200 * 4 + 10 * (150 * 2 + 400 * 2 + 100));
    assert_eq!(placed.cost_bound, placed.cost);
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).expect("a queue");
    let network = Network::new(&graph, &problem, &plan, &queue).expect("a network");
    let ran = network.stream(&queue, 0).expect("a stream").run().expect("a run");
    assert_eq!((ran.reads, ran.wrong), (6, 0));
}

#[test]
fn the_checker_refuses_wrong_memories() {
    let graph = two();
    let (problem, plan) = plan_graph(&graph, &options(Queue::InOrder)).expect("a plan");
    let wrong = |what: &str, change: &dyn Fn(&mut Plan)| {
        let mut mutant = plan.clone();
        change(&mut mutant);
        assert_ne!(mutant, plan, "{what}");
        check(&graph, &problem, &mutant).expect_err(what)
    };
    let placed = |plan: &mut Plan| plan.memory_plan.clone().expect("memories");
    wrong("no memories", &|plan| plan.memory_plan = None);
    wrong("a memory less", &|plan| {
        let mut less = placed(plan);
        less.bounds.pop();
        plan.memory_plan = Some(less);
    });
    wrong("a lower cost", &|plan| plan.memory_plan.as_mut().expect("memories").cost -= 1);
    wrong("a higher bound of the cost", &|plan| plan.memory_plan.as_mut().expect("memories").cost_bound += 1);
    wrong("an instant less", &|plan| plan.memory_plan.as_mut().expect("memories").times.clear());
    wrong("an instant twice", &|plan| {
        let times = &mut plan.memory_plan.as_mut().expect("memories").times;
        *times = [&times[..], &times[..]].concat();
        plan.memory_plan.as_mut().expect("memories").cost_bound += 1;
    });
    for at in 0..2 {
        wrong("a higher bound of a memory", &|plan| {
            plan.memory_plan.as_mut().expect("memories").bounds[at].0 += 1
        });
        wrong("the certificate of the other memory", &|plan| {
            let bounds = &mut plan.memory_plan.as_mut().expect("memories").bounds;
            bounds[at] = bounds[1 - at].clone();
        });
    }
    for buffer in 0..4 {
        wrong("another memory", &|plan| {
            let other = if plan.placement[buffer] == Memory::Own(0) { 1 } else { 0 };
            plan.placement[buffer] = Memory::Own(other);
            plan.rows[buffer].memory = Memory::Own(other);
        });
        wrong("no such memory", &|plan| {
            plan.placement[buffer] = Memory::Own(2);
            plan.rows[buffer].memory = Memory::Own(2);
        });
        wrong("beyond the memory", &|plan| {
            plan.offsets[buffer] += 5000;
            plan.rows[buffer].offset += 5000;
        });
        wrong("across chunks, or beyond", &|plan| {
            plan.offsets[buffer] = 500;
            plan.rows[buffer].offset = 500;
        });
    }
}

#[test]
fn memories_that_hold_too_little_are_told() {
    let graph = |capacity: u64, size: u64| {
        let builder = Graph::builder().default_alignment(1).memory(Space::new("a", capacity, 0));
        let builder = builder.tensor(Tensor::new(7, size)).tensor(Tensor::new(8, 60));
        builder.op(Op::new("").outputs([7, 8])).build().expect("a graph")
    };
    let refused = |graph: &Graph| plan_graph(graph, &Options::default()).expect_err("too little");
    assert_eq!(refused(&graph(99, 100)), Error::ExceedsMemories { id: 7, size: 100, most: 99 });
    assert_eq!(refused(&graph(159, 100)), Error::MemoriesFull { needed: 160, room: 159 });
    assert!(plan_graph(&graph(160, 100), &Options::default()).is_ok());
}

#[test]
fn what_every_plan_needs_counts_an_output_in_place_once() {
    for queue in [Queue::InOrder, Queue::OutOfOrder] {
        let planned = |capacity: u64| {
            let builder = Graph::builder().default_alignment(1).memory(Space::new("a", capacity, 0));
            let builder = (0..3).fold(builder, |builder, id| builder.tensor(Tensor::new(id, 100)));
            let builder = builder.op(Op::new("").outputs([0]));
            let replace = Op::new("").inputs([0]).outputs([1, 2]).in_place(0, 1);
            plan_graph(&builder.op(replace).build().expect("a graph"), &options(queue))
                .map(|(_, plan)| plan.peak)
        };
        assert_eq!(planned(199), Err(Error::MemoriesFull { needed: 200, room: 199 }));
        assert_eq!(planned(200), Ok(200));
    }
}

#[test]
fn bad_memories_and_pins_are_refused_with_their_place() {
    let space = |name: &str, capacity: u64| Space::new(name, capacity, 1);
    let graph =
        || Graph::builder().memory(space("a", 8)).tensor(Tensor::new(0, 8)).op(Op::new("").outputs([0]));
    let view = Tensor::new(1, 8).alias_of(0, 0);
    let refusals = [
        (graph().memory(space("b", 0)), GraphError::EmptyMemory { memory: 1 }),
        (graph().memory(space("b", 8).chunk(0)), GraphError::EmptyMemory { memory: 1 }),
        (graph().memory(space("a", 8)), GraphError::SameMemory { memory: 1, first: 0 }),
        (
            graph().memory(space("b", u64::MAX).chunk(1)),
            GraphError::SmallChunk { memory: 1, chunk: 1, most: 64 },
        ),
        (
            (0..64).fold(graph(), |graph, at| graph.memory(space(&at.to_string(), 8))),
            GraphError::TooManyMemories { count: 65, most: 64 },
        ),
        (
            graph().tensor(Tensor::new(1, 8).memory(1)).op(Op::new("").outputs([1])),
            GraphError::UnknownMemory { tensor: 1, memory: 1, count: 1 },
        ),
        (graph().tensor(view.memory(0)), GraphError::PinnedView { tensor: 1, of: 0 }),
        (
            graph().tensor(Tensor::new(1, 8).memory(0).kind(TensorKind::Input)),
            GraphError::PinnedElsewhere { tensor: 1, kind: TensorKind::Input },
        ),
    ];
    for (builder, refusal) in refusals {
        assert_eq!(builder.build().map(drop), Err(refusal), "{refusal}");
    }
}
