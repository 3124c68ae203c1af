//! The plan of a count of nodes is the same for every number of threads.

#![cfg(feature = "threads")]

use usm_pool::{Buffer, ConflictGraph, Options, Plan, Problem, Strategy, plan};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A full rectangle cut into blocks: the optimum leaves no byte free, so the search has work.
fn packed(random: &mut Random, count: usize) -> Vec<Buffer> {
    let mut blocks = vec![(0, 400, 400 * (1 + random.below(3)))];
    while blocks.len() < count {
        let at = random.below(blocks.len() as u64) as usize;
        let (lower, upper, size) = blocks[at];
        if random.below(2) == 0 && upper - lower > 1 {
            let cut = lower + 1 + random.below(upper - lower - 1);
            blocks[at] = (lower, cut, size);
            blocks.push((cut, upper, size));
        } else if size > 1 {
            let cut = 1 + random.below(size - 1);
            blocks[at] = (lower, upper, cut);
            blocks.push((lower, upper, size - cut));
        }
    }
    (0..).zip(blocks).map(|(id, (lower, upper, size))| Buffer::new(id, lower, upper, size)).collect()
}

fn loose(random: &mut Random, count: usize) -> Vec<Buffer> {
    let mut buffer = |id| {
        let lower = random.below(20);
        Buffer::new(id, lower, lower + 1 + random.below(8), 1 + random.below(40))
            .aligned(1 << random.below(4))
    };
    (0..count as u64).map(&mut buffer).collect()
}

fn problem(random: &mut Random, case: u64) -> Problem {
    let count = 4 + random.below(70) as usize;
    match case % 4 {
        0 | 1 => Problem::from_buffers(packed(random, count)),
        2 => Problem::from_buffers(loose(random, count)),
        _ => {
            let buffers = loose(random, count.min(40));
            let mut conflicts = ConflictGraph::new(buffers.len()).expect("relation");
            for i in 0..buffers.len() {
                for j in 0..i {
                    if random.below(3) > 0 {
                        conflicts.insert(i, j);
                    }
                }
            }
            Problem::from_conflicts(buffers, conflicts)
        }
    }
    .expect("problem")
}

fn planned(problem: &Problem, nodes: u64, capacity: Option<u64>, threads: usize) -> Plan {
    let mut options = Options::default();
    options.strategy = Strategy::Search;
    options.nodes = nodes;
    options.capacity = capacity;
    options.threads = threads;
    let plan = plan(problem, &options).expect("plan");
    plan.verify(problem).expect("verified");
    plan
}

/// `USM_CASES` asks for more.
#[test]
fn the_plan_is_the_same_for_every_number_of_threads() {
    let cases = skip::cases("USM_CASES", 120);
    let mut random = Random(7);
    let (mut searched, mut better, mut proven) = (0, 0, 0);
    for case in 0..cases {
        let problem = problem(&mut random, case);
        let nodes = 1 + random.below(40_000);
        let begun = planned(&problem, 0, None, 1);
        let between = begun.lower_bound + random.below(1 + begun.peak - begun.lower_bound);
        let capacity = (random.below(4) == 0).then_some(between);
        let one = planned(&problem, nodes, capacity, 1);
        searched += u32::from(one.nodes > 1000);
        better += u32::from(one.peak < begun.peak);
        proven += u32::from(one.certificate.is_claim());
        for threads in [0, 2, 4, 8] {
            let several = planned(&problem, nodes, capacity, threads);
            assert_eq!(several.offsets, one.offsets, "case {case}, {threads} threads");
            assert_eq!(several, one, "case {case}, {threads} threads");
        }
    }
    // The search worked in most cases, and the tries begun ahead were wrong in many.
    assert!(
        searched * 4 > cases as u32 && better * 8 > cases as u32 && proven > 0,
        "{searched} {better} {proven}"
    );
}
