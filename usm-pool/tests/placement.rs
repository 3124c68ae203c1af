//! Device memory first, host memory for the rest; constants; plans without a heap; reports.

#![cfg(feature = "alloc")]

mod common;

use common::executor;
use common::random_graph::graphs;
use proptest::prelude::*;
use usm_core::backend::host::HostHeap;
use usm_core::backend::mock::{Fault, Mock, Operation, Progress};
use usm_core::{AllocKind, ErrorKind, QueueOrder};
use usm_pool::arena::Arena;
use usm_pool::constant::{self, ConstantBuilder, Readers};
use usm_pool::dependency::{conflicts, lists, lists_text};
use usm_pool::placement::{Limits, plan_graph_within, plan_within};
use usm_pool::report::{self, Sharing};
use usm_pool::{
    Buffer, ConflictGraph, Graph, Memory, Op, Options, Problem, Queue, Tensor, TensorKind, fixed, plan,
    plan_graph, verify,
};

fn options(queue: Queue) -> Options<'static> {
    let mut options = Options::default();
    options.queue = queue;
    options.nodes = 200;
    options
}

/// `load -> a -> b -> c`, each tensor of 256 bytes, the last one read by the caller.
fn chain() -> Graph {
    let mut builder = Graph::builder();
    for id in 0..4 {
        builder = builder.tensor(Tensor::new(id, 256));
    }
    builder
        .op(Op::new("load").outputs([0]))
        .op(Op::new("a").inputs([0]).outputs([1]))
        .op(Op::new("b").inputs([1]).outputs([2]))
        .op(Op::new("c").inputs([2]).outputs([3]))
        .output(3)
        .build()
        .expect("graph")
}

proptest! {
    #![proptest_config(common::config())]

    #[test]
    fn limits_are_kept_and_plans_stay_safe(graph in graphs(12), device in 0_u64..2000, object in 1_u64..600) {
        for queue in [Queue::InOrder, Queue::OutOfOrder] {
            let limits = Limits::new(Some(device), Some(object));
            let (problem, plan) = plan_graph_within(&graph, &options(queue), &limits).expect("plan");
            plan.verify(&problem).expect("verified");
            verify::graph(&graph, queue, &[], &plan.rows).expect("verified against the graph");
            executor::in_order(&graph, &plan.rows).expect("runs");
            let used = plan.memories.iter().find(|used| used.memory == Memory::Device).map_or(0, |used| used.peak);
            prop_assert!(used <= device.min(object), "device part {used}");
            prop_assert_eq!(plan.peak, plan.memories.iter().map(|used| used.peak).sum::<u64>());
            prop_assert!(plan.lower_bound <= plan.peak);
            for buffer in problem.buffers() {
                let row = plan.row(buffer.id).expect("row");
                prop_assert_eq!(plan.spilled.contains(&buffer.id), row.memory == Memory::Host);
            }
        }
    }

    #[test]
    fn a_plan_that_fits_does_not_change(graph in graphs(12)) {
        let (_, free) = plan_graph(&graph, &options(Queue::InOrder)).expect("plan");
        let (_, within) = plan_graph_within(&graph, &options(Queue::InOrder), &Limits::new(Some(free.peak), None)).expect("plan");
        prop_assert_eq!(within.rows, free.rows);
    }

    #[test]
    fn plans_without_a_heap_verify(lives in prop::collection::vec((0_u64..20, 0_u64..8, 0_u64..300, 0_u32..8), 9)) {
        let mut buffers = [Buffer::new(0, 0, 0, 0); 9];
        for (id, (buffer, (lower, length, size, shift))) in buffers.iter_mut().zip(lives).enumerate() {
            *buffer = Buffer::new(id as u64, lower, lower + length, size).aligned(1 << shift);
        }
        let plan = fixed::plan(&buffers).expect("plan");
        prop_assert_eq!(verify::intervals(&buffers, &plan.offsets, plan.peak), Ok(plan.peak));
        let relation = ConflictGraph::from_lifetimes(&buffers).expect("bits");
        let same = fixed::plan_with_conflicts(&buffers, &relation.view()).expect("plan");
        prop_assert_eq!(same, plan);
    }
}

#[test]
fn hostile_tables_are_refused_without_a_heap() {
    use usm_pool::Error;
    let refuse = |buffer: Buffer| fixed::plan(&[Buffer::new(1, 0, 9, 8), buffer]).unwrap_err();
    assert_eq!(refuse(Buffer::new(7, 3, 2, 1)), Error::ReversedLifetime { id: 7, lower: 3, upper: 2 });
    assert_eq!(refuse(Buffer::new(7, 0, 2, 1).aligned(3)), Error::BadAlignment { id: 7, alignment: 3 });
    assert_eq!(refuse(Buffer::new(7, 0, 2, u64::MAX)), Error::SizeOverflow { id: 7, size: u64::MAX, sum: 8 });
    let all = Problem::from_buffers(vec![Buffer::new(1, 0, 9, 8), Buffer::new(7, 0, 2, u64::MAX)]);
    assert_eq!(all.unwrap_err(), Error::SizeOverflow { id: 7, size: u64::MAX, sum: 8 });
}

#[test]
fn the_smallest_buffer_that_suffices_goes_to_host_memory() {
    let buffers = vec![Buffer::new(1, 0, 2, 600), Buffer::new(2, 0, 2, 300), Buffer::new(3, 0, 2, 200)];
    let problem = Problem::from_buffers(buffers).expect("problem");
    let plan = plan_within(&problem, &Options::default(), &Limits::new(Some(900), None)).expect("plan");
    assert_eq!((plan.spilled.as_slice(), plan.peak), ([3].as_slice(), 1100));
    let plan = plan_within(&problem, &Options::default(), &Limits::new(None, Some(500))).expect("plan");
    assert_eq!(plan.spilled, [1], "above the largest object");
}

#[test]
fn an_arena_spans_both_memories() {
    let (_, plan) =
        plan_graph_within(&chain(), &options(Queue::InOrder), &Limits::new(Some(300), None)).expect("plan");
    assert_eq!(plan.memories.len(), 2);
    let context = HostHeap::new().context();
    let arena = Arena::new(&plan, &context, AllocKind::Device).expect("arena");
    let kinds: Vec<AllocKind> =
        (0..4).map(|id| arena.tensor(id).expect("claim").allocation().expect("allocation").kind()).collect();
    for (row, kind) in plan.rows.iter().zip(kinds) {
        let expected = if row.memory == Memory::Host { AllocKind::Host } else { AllocKind::Device };
        assert_eq!(kind, expected, "tensor {}", row.id);
    }
}

#[test]
fn constants_move_when_only_the_device_reads_them_and_are_shared() {
    let context = HostHeap::new().context();
    let queue = context.queue(QueueOrder::InOrder).expect("queue");
    let mut builder = ConstantBuilder::new();
    for id in 0..3_u64 {
        builder.insert(&queue, &context, id, &[id as u8 + 1; 100]).expect("insert");
    }
    assert!(builder.insert(&queue, &context, 9, &[]).is_err());
    let readers = |id: u64| if id == 1 { Readers::Host } else { Readers::Device };
    let (constants, report) = builder.transfer(&queue, &context, readers).expect("transfer");
    assert_eq!((report.moved, report.bytes, report.kept, report.refused), (2, 200, 1, 0));
    assert_eq!(constants.kind(0), Some(AllocKind::Device));
    assert_eq!(constants.kind(1), Some(AllocKind::Host));
    let stream = constants.clone();
    for id in 0..3_u64 {
        assert_eq!(stream.get(id).expect("constant").to_vec(&queue).expect("bytes"), [id as u8 + 1; 100]);
    }
    assert!(constants.get(9).is_none());
    // Moved constants leave nothing in host memory.
    let stats = context.stats();
    assert_eq!(stats.of(usm_core::MemoryType::UsmDevice).current, 200);
    assert_eq!(stats.of(usm_core::MemoryType::UsmHost).current, 100);
}

#[test]
fn a_constant_that_device_memory_refuses_stays_in_host_memory() {
    let mock = Mock::new(Progress::OnWait);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("queue");
    let mut builder = ConstantBuilder::new();
    builder.insert(&queue, &context, 5, &[7; 64]).expect("insert");
    let error = ErrorKind::OverMaxAlloc { requested: 64, limit: 0 }.into();
    mock.inject(Fault { operation: Operation::Allocate, skip: 0, error, late: false });
    let (constants, report) = builder.transfer(&queue, &context, |_| Readers::Device).expect("transfer");
    assert_eq!((report.moved, report.refused), (0, 1));
    assert_eq!(constants.kind(5), Some(AllocKind::Host));
}

#[test]
fn constants_of_a_graph_are_listed_and_not_placed() {
    let graph = Graph::builder()
        .tensor(Tensor::new(0, 64))
        .tensor(Tensor::new(1, 640).kind(TensorKind::Constant))
        .tensor(Tensor::new(2, 64))
        .op(Op::new("multiply").inputs([0, 1]).outputs([2]))
        .output(2)
        .build()
        .expect("graph");
    assert_eq!(constant::of_graph(&graph).collect::<Vec<_>>(), [(1, 640)]);
    let (_, plan) = plan_graph(&graph, &Options::default()).expect("plan");
    assert_eq!(plan.rows.iter().map(|row| row.id).collect::<Vec<_>>(), [2]);
}

#[test]
fn lists_have_every_operator_also_the_first() {
    let graph = chain();
    let found = lists(&graph, Queue::InOrder).expect("lists");
    assert_eq!(found, [vec![0, 1], vec![0, 1, 2], vec![1, 2, 3], vec![2, 3]]);
    let text = lists_text(&graph, Queue::InOrder).expect("lists");
    assert!(text.starts_with("load: restricted by a\na: restricted by load, b\n"), "{text}");
    // Real graphs: symmetric, and exactly the conflicts of the blocks.
    let Some(shared) = common::shared() else { return };
    for name in ["mp_pose_detection", "jax_gpt2s_fwd_L12"] {
        let graph = common::graph(&shared, name);
        let blocks =
            usm_pool::alias::Blocks::new(&graph, usm_pool::alias::InPlace::Never, None).expect("blocks");
        for queue in [Queue::InOrder, Queue::OutOfOrder] {
            let found = lists(&graph, queue).expect("lists");
            for (op, list) in found.iter().enumerate() {
                assert!(list.iter().all(|&other| found[other].contains(&op)), "{name}: {op}");
            }
            let pairs: usize = found.iter().map(|list| list.len() - 1).sum();
            assert_eq!(
                pairs as u64 / 2,
                conflicts(&graph, &blocks, queue).expect("conflicts").pairs(),
                "{name}"
            );
        }
    }
}

#[test]
fn reports_name_the_reason() {
    let graph = chain();
    let (problem, plan) = plan_graph(&graph, &Options::default()).expect("plan");
    assert_eq!(report::sharing(&problem, &plan, 0, 2), Sharing::Shared { bytes: 256 });
    assert_eq!(report::sharing(&problem, &plan, 0, 1), Sharing::LiveTogether { lower: 1, upper: 2 });
    assert_eq!(report::sharing(&problem, &plan, 1, 1), Sharing::Trivial);
    let table = report::sharing_table(&problem, &plan);
    assert_eq!(table.lines().count(), 5);
    assert!(table.lines().nth(1).is_some_and(|line| line.ends_with("2 | 1")), "{table}");
    let dump = report::pool_dump_csv(&plan, Some(&graph));
    let mut lines = dump.lines();
    assert_eq!(
        lines.next(),
        Some("pool_type,layout,mem_ptr,mem_type,mem_pool_size,prim_id,unique_id,mem_size")
    );
    assert_eq!(lines.next(), Some("non_padded_pool,bytes:256,0x0,usm_device,256,load,0,256"));
    assert_eq!(lines.clone().count(), 3);
    let compared = report::compare(&problem, &Options::default()).expect("compare");
    assert!(compared.iter().all(|row| row.peak >= compared[0].peak));
    let table = report::comparison_table(&compared, Queue::InOrder, plan.lower_bound);
    assert!(table.contains("whole-buffer"), "{table}");
}

/// The table says of every buffer what the pairs say, on both kinds of problems.
#[test]
fn the_table_of_sharing_agrees_with_the_pairs() {
    let mut seed = 7_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut more = 0;
    for round in 0..60 {
        let buffers: Vec<Buffer> = (0..1 + random(60))
            .map(|id| {
                let lower = random(30);
                // Some buffers have no bytes, some are never live.
                Buffer::new(1000 - id, lower, lower + random(12), 16 * random(5))
            })
            .collect();
        let relation = ConflictGraph::from_lifetimes(&buffers).expect("small");
        let problem = match round % 2 {
            0 => Problem::from_buffers(buffers),
            _ => Problem::from_conflicts(buffers, relation),
        };
        let problem = problem.expect("problem");
        let mut plan = plan(&problem, &Options::default()).expect("plan");
        plan.placement.iter_mut().filter(|_| random(4) == 0).for_each(|place| *place = Memory::Host);
        let table = report::sharing_table(&problem, &plan);
        assert_eq!(table.lines().count(), 1 + problem.buffers().len());
        for (i, line) in table.lines().skip(1).enumerate() {
            let (mut shared, mut apart) = (Vec::new(), Vec::new());
            for (j, other) in problem.buffers().iter().enumerate() {
                match report::sharing(&problem, &plan, i, j) {
                    Sharing::Shared { .. } => shared.push((plan.offsets[j], other.lower, j, other.id)),
                    Sharing::LiveTogether { .. } => apart.push((other.lower, other.lower, j, other.id)),
                    Sharing::Unordered => panic!("lives order all conflicts"),
                    _ => {}
                }
            }
            let mut name = |mut found: Vec<(u64, u64, usize, u64)>, by_begin: bool| {
                found.sort_unstable_by_key(|&(begin, _, j, _)| (if by_begin { begin } else { 0 }, j));
                let first: Vec<String> = found.iter().take(8).map(|found| found.3.to_string()).collect();
                more += usize::from(found.len() > 8);
                match found.len() {
                    0 => "-".into(),
                    1..=8 => first.join(" "),
                    len => format!("{} and {} more", first.join(" "), len - 8),
                }
            };
            let wanted = format!("  {} | {}", name(shared, true), name(apart, round % 2 == 0));
            assert!(line.ends_with(&wanted), "round {round}, buffer {i}: {line}\nwanted {wanted}");
        }
    }
    assert!(more > 100, "{more} long lists");
}

/// Each of these buffers is live with all others: a table of pairs would take a day.
#[test]
fn the_table_of_sharing_of_many_buffers_is_short() {
    const COUNT: u64 = 300_000;
    let buffers = (0..COUNT).map(|id| Buffer::new(id, id % 2, COUNT - id % 3, 1)).collect();
    let problem = Problem::from_buffers(buffers).expect("problem");
    let one = Problem::from_buffers(vec![Buffer::new(0, 0, 1, 1)]).expect("problem");
    let mut plan = plan(&one, &Options::default()).expect("plan");
    plan.offsets = (0..COUNT).collect();
    plan.placement = vec![Memory::Device; plan.offsets.len()];
    let table = report::sharing_table(&problem, &plan);
    let last = table.lines().last().expect("lines");
    assert!(last.ends_with(&format!("- | 0 2 4 6 8 10 12 14 and {} more", COUNT - 9)), "{last}");
}

#[test]
fn an_unordered_pair_is_called_so() {
    let graph = Graph::builder()
        .tensor(Tensor::new(0, 64))
        .tensor(Tensor::new(1, 64))
        .op(Op::new("left").outputs([0]))
        .op(Op::new("right").outputs([1]))
        .build()
        .expect("graph");
    let (problem, plan) = plan_graph(&graph, &options(Queue::OutOfOrder)).expect("plan");
    assert_eq!(report::sharing(&problem, &plan, 0, 1), Sharing::Unordered);
    let (problem, plan) = plan_graph(&graph, &options(Queue::InOrder)).expect("plan");
    assert_eq!(report::sharing(&problem, &plan, 0, 1), Sharing::Shared { bytes: 64 });
}
