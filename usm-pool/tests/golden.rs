//! The same input gives the same plan on every platform: compares checksums of stored plans. A
//! platform that passes the test proves it for itself.
//!
//! No decision depends on a float, a hash order, an address, a clock or the machine's word size,
//! and unstable sorts have keys without equals. A change of the planners changes the numbers: print
//! the new ones with `--nocapture` and give the reason in the commit.

#![cfg(feature = "alloc")]

use usm_pool::{
    Buffer, ConflictGraph, Graph, Op, Options, Plan, Problem, Queue, Strategy, Tensor, plan, plan_graph,
};

/// A small generator with 64-bit state (Knuth's multiplier), upper bits only.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// FNV-1a over offsets and peak, byte by byte from the lowest.
fn checksum(plan: &Plan) -> u64 {
    let numbers = plan.offsets.iter().copied().chain([plan.peak, plan.lower_bound]);
    let edges = plan.ordering_edges.iter().flat_map(|&(from, to)| [from as u64, to as u64]);
    let bytes = numbers.chain(edges).flat_map(u64::to_le_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn buffers(count: u64, seed: u64) -> Vec<Buffer> {
    let mut random = Random(seed);
    let one = |id| {
        let (lower, octave) = (random.below(2 * count), random.below(7));
        let length = (1 + random.below(4)) << octave;
        let size = (1 + random.below(64)) << random.below(9);
        Buffer::new(id, lower, lower + length, size).aligned(1 << random.below(7))
    };
    (0..count).map(one).collect()
}

/// Times up to 2^62, so that they are numbered by sorting, and sizes above 2^32.
fn wide(count: u64, seed: u64) -> Vec<Buffer> {
    let far =
        |b: &Buffer| Buffer::new(b.id, b.lower << 40, b.upper << 40, b.size << 33).aligned(b.alignment << 20);
    buffers(count, seed).iter().map(far).collect()
}

fn graph(count: u64, seed: u64) -> Graph {
    let mut random = Random(seed);
    let mut builder = Graph::builder();
    for id in 0..count {
        builder = builder.tensor(Tensor::new(id, (1 + random.below(64)) << random.below(9)));
        let mut op = Op::new(format!("op{id}")).outputs([id]);
        for _ in 0..random.below(3).min(id) {
            op = op.inputs([id - 1 - random.below(id.min(12))]);
        }
        builder = builder.op(op);
    }
    builder.output(count - 1).build().expect("a graph")
}

fn options(strategy: Strategy, nodes: u64) -> Options<'static> {
    let mut options = Options::default();
    options.strategy = strategy;
    options.nodes = nodes;
    options
}

/// All checksums at once, so that a change shows them all.
fn compare(found: &[u64], expected: &[u64]) {
    let list: Vec<String> = found.iter().map(|sum| format!("0x{sum:016x}")).collect();
    println!("[{}]", list.join(", "));
    assert_eq!(found, expected);
}

fn all_strategies(problem: &Problem, nodes: u64) -> Vec<u64> {
    let sum = |strategy| {
        let plan = plan(problem, &options(strategy, nodes)).expect("plan");
        plan.verify(problem).expect("verified");
        checksum(&plan)
    };
    Strategy::ALL.into_iter().map(sum).collect()
}

#[test]
fn in_order_plans_are_the_same_everywhere() {
    let mut found = Vec::new();
    for (count, nodes) in [(12, 2_000), (80, 4_000), (400, 4_000)] {
        found.extend(all_strategies(&Problem::from_buffers(buffers(count, count)).expect("problem"), nodes));
    }
    found.extend(all_strategies(&Problem::from_buffers(wide(60, 7)).expect("problem"), 2_000));
    compare(&found, &IN_ORDER);
}

#[test]
fn large_plans_are_the_same_everywhere() {
    // Crowded, so that the repair has work.
    let crowd =
        |b: Buffer| Buffer { lower: b.lower % 30_000, upper: b.lower % 30_000 + b.upper - b.lower, ..b };
    let problem =
        Problem::from_buffers(buffers(33_000, 1).into_iter().map(crowd).collect()).expect("problem");
    let sum = |nodes| checksum(&plan(&problem, &options(Strategy::Auto, nodes)).expect("plan"));
    compare(&[sum(0), sum(5_000)], &LARGE);
}

#[test]
fn plans_from_conflicts_are_the_same_everywhere() {
    let mut found = Vec::new();
    for count in [12, 60, 200] {
        let (buffers, mut random) = (buffers(count, count), Random(count));
        let mut conflicts = ConflictGraph::new(buffers.len()).expect("graph");
        for _ in 0..count * 6 {
            conflicts.insert(random.below(count) as usize, random.below(count) as usize);
        }
        found.extend(all_strategies(&Problem::from_conflicts(buffers, conflicts).expect("problem"), 2_000));
    }
    compare(&found, &CONFLICTS);
}

#[test]
fn plans_of_graphs_are_the_same_everywhere() {
    let mut found = Vec::new();
    for count in [15, 70] {
        let graph = graph(count, count);
        for queue in [Queue::InOrder, Queue::OutOfOrder] {
            for (edges, keep) in [(0, false), (6, false), (6, true)] {
                let mut options = options(Strategy::Auto, 1_000);
                (options.queue, options.ordering_edges, options.keep_critical_path) = (queue, edges, keep);
                found.push(checksum(&plan_graph(&graph, &options).expect("plan").1));
            }
        }
    }
    compare(&found, &GRAPHS);
}

const IN_ORDER: [u64; 20] = [
    0x793c_7c0d_d499_06e3,
    0xc7f5_a4b6_c30f_9eca,
    0xc7f5_a4b6_c30f_9eca,
    0x5de2_24fa_5f61_6bda,
    0x793c_7c0d_d499_06e3,
    0x3458_911a_3242_1b14,
    0xba10_de84_b265_eb0d,
    0x39f6_6a1b_e9e2_1548,
    0xd8bd_667d_0a8c_fbe4,
    0x3458_911a_3242_1b14,
    0xdca4_7edc_3a2c_5caa,
    0x1715_29ab_52f1_0417,
    0x69ce_a770_071a_a443,
    0x2a8f_7e0d_330f_b6a5,
    0xdca4_7edc_3a2c_5caa,
    0x806a_6452_d020_8d80,
    0x07f8_4393_61fb_b133,
    0x804b_202e_e484_93df,
    0x0a01_b4d1_0a73_b940,
    0x806a_6452_d020_8d80,
];

const LARGE: [u64; 2] = [0x8ce6_62a3_d858_44f8, 0x8ce6_62a3_d858_44f8];

const CONFLICTS: [u64; 15] = [
    0x0df5_f6d7_8fc6_8ef9,
    0x39fe_40fb_7b78_e48d,
    0x39fe_40fb_7b78_e48d,
    0x350f_412f_a0bc_e331,
    0x0df5_f6d7_8fc6_8ef9,
    0xd20e_1218_dae3_3198,
    0xc36a_6733_b4f8_9073,
    0x60e6_a4bc_45cb_bea4,
    0x537a_540c_514c_d59c,
    0xd20e_1218_dae3_3198,
    0x4aa6_74a3_32d6_d10f,
    0xe53b_4ded_7370_3b7e,
    0x5ef8_86d4_dcb5_9e42,
    0x5060_3f3a_c81e_d761,
    0x4aa6_74a3_32d6_d10f,
];

const GRAPHS: [u64; 12] = [
    0xbc03_8e7d_a9fe_72dd,
    0xbc03_8e7d_a9fe_72dd,
    0xbc03_8e7d_a9fe_72dd,
    0xd08b_b498_9459_ccf4,
    0xa349_30f1_f371_a65d,
    0xa349_30f1_f371_a65d,
    0x9e25_ffb4_a593_6b6e,
    0x9e25_ffb4_a593_6b6e,
    0x9e25_ffb4_a593_6b6e,
    0x741e_a2e3_fb24_605f,
    0xfe48_f253_a99c_c0f4,
    0xfe48_f253_a99c_c0f4,
];
