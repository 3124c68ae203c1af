//! Mutants of plans: a plan against its problem, a certificate against its bound, the rows of a
//! graph's tensors, and proofs of bounds.

mod graphs;
mod mutations;
mod proofs;

use usm_pool::placement::{Limits, plan_graph_within};
use usm_pool::{
    Buffer, Certificate, ConflictGraph, Graph, Options, Plan, Problem, Queue, Strategy, plan, plan_graph,
    verify,
};

use crate::Checker;
use mutations::Mutation;
pub(crate) use proofs::proofs;

/// A problem and a right plan for it.
struct Case {
    name: &'static str,
    problem: Problem,
    plan: Plan,
}

/// `Plan::verify` beside the certificates: places, rows, sums, queue, edges.
pub(crate) fn plan_verify() -> Checker {
    against("Plan::verify", &mutations::PLAN)
}

/// The certificates, as `Plan::verify` checks them.
pub(crate) fn certificates() -> Checker {
    against("certificates", &mutations::CERTIFICATE)
}

fn against(name: &'static str, mutations: &[Mutation]) -> Checker {
    let mut checker = Checker::new(name);
    for Case { name, problem, plan } in cases() {
        checker.right(name, || plan.verify(&problem));
        for (what, mutate) in mutations {
            let mut mutant = plan.clone();
            mutate(&mut mutant, &problem);
            // Not every plan has the part that a mutation changes.
            if mutant != plan {
                checker.wrong(&format!("{name}: {what}"), || mutant.verify(&problem));
            }
        }
    }
    checker
}

/// `verify::graph`: rows that a run corrupts, graphs that need more than the rows give, and invalid
/// edges.
pub(crate) fn graph() -> Checker {
    let mut checker = Checker::new("verify::graph");
    for (name, graph, queue) in graphs::all() {
        let (_, plan) = plan_graph(&graph, &options(queue)).expect("a plan of a small graph");
        let check = |graph: &Graph, queue, edges: &[(usize, usize)], rows: &[usm_pool::Row]| {
            verify::graph(graph, queue, edges, rows)
        };
        checker.right(name, || check(&graph, queue, &plan.ordering_edges, &plan.rows));
        for (what, rows) in graphs::wrong_rows(&graph, queue, &plan.rows) {
            checker.wrong(&format!("{name}: {what}"), || check(&graph, queue, &plan.ordering_edges, &rows));
        }
        for (what, asking) in graphs::asking_more(&graph, queue, &plan.ordering_edges, &plan.rows) {
            checker.wrong(&format!("{name}: {what}"), || {
                check(&asking, queue, &plan.ordering_edges, &plan.rows)
            });
        }
        for (what, edges) in graphs::wrong_edges(&graph, &plan.ordering_edges) {
            checker.wrong(&format!("{name}: {what}"), || check(&graph, queue, &edges, &plan.rows));
        }
    }
    graphs::pairs(&mut checker);
    graphs::random(&mut checker);
    checker
}

/// The graph itself: within an iteration nobody reads a state that was overwritten.
pub(crate) fn ends_of_iterations() -> Checker {
    let mut checker = Checker::new("GraphBuilder::build");
    for (what, right, builder) in graphs::ends_of_iterations() {
        if right {
            checker.right(&what, || builder.build());
        } else {
            checker.wrong(&what, || builder.build());
        }
    }
    checker
}

/// Permits that no plan can take: rows that take them, and bounds that count them.
pub(crate) fn void_permits() -> Checker {
    let mut checker = Checker::new("void permits");
    for (what, graph, queues) in graphs::void_permits() {
        for queue in queues {
            // An edge may order the readers.
            let mut options = options(queue);
            options.ordering_edges = 0;
            let (_, plan) = plan_graph(&graph, &options).expect("a plan of a small graph");
            let name = format!("{what}, {}", queue.name());
            checker.right(&name, || verify::graph(&graph, queue, &[], &plan.rows));
            checker.right(&name, || {
                let found = (plan.lower_bound, plan.peak);
                if found == (512, 512) { Ok(()) } else { Err(format!("bound and peak {found:?}, not 512")) }
            });
            checker.wrong(&name, || verify::graph(&graph, queue, &[], &graphs::taken(&graph, &plan.rows)));
        }
    }
    checker
}

fn options(queue: Queue) -> Options<'static> {
    let mut options = Options::default();
    options.queue = queue;
    options.nodes = 1000;
    options.ordering_edges = if queue == Queue::OutOfOrder { 2 } else { 0 };
    options
}

/// Plans of every kind: tables, lifetimes with gaps, any relation, graphs on both queues, edges,
/// two memories, a search's claim.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut table = |name, problem: Problem| {
        let plan = plan(&problem, &options(Queue::InOrder)).expect("a plan of a small table");
        cases.push(Case { name, problem, plan });
    };
    let buffers = |count: u64, alignment: u64| -> Vec<Buffer> {
        let buffer = |i: u64| {
            let (lower, length, size) = (i * 7 % 19, 1 + i * 5 % 8, 1 + i * 37 % 200);
            Buffer::new(100 + i, lower, lower + length, size).aligned(1 << (i * alignment % 7))
        };
        (0..count).map(buffer).collect()
    };
    table("table", Problem::from_buffers(buffers(24, 0)).expect("table"));
    table("aligned table", Problem::from_buffers(buffers(24, 3)).expect("table"));
    let gaps = [(0, 0, 1), (4, 10, 11), (9, 7, 9)];
    let gapped: Vec<Buffer> =
        buffers(12, 0).into_iter().map(|b| Buffer { upper: b.upper + 4, ..b }).collect();
    table("lives with gaps", Problem::with_gaps(gapped, &gaps).expect("gaps"));
    let mut relation = ConflictGraph::new(16).expect("bits");
    for (i, j) in (0..16).flat_map(|i| (0..i).map(move |j| (i, j))).filter(|(i, j)| (i * 3 + j * 5) % 4 < 2) {
        relation.insert(i, j);
    }
    table("relation", Problem::from_conflicts(buffers(16, 2), relation).expect("relation"));
    for (name, graph, queue) in graphs::all() {
        let (problem, plan) = plan_graph(&graph, &options(queue)).expect("a plan of a small graph");
        cases.push(Case { name, problem, plan });
    }
    let residual = graphs::residual();
    let free = plan_graph(&residual, &options(Queue::InOrder)).expect("plan").1.peak;
    let limits = Limits::new(Some(free * 3 / 4), None);
    let (problem, plan) =
        plan_graph_within(&residual, &options(Queue::InOrder), &limits).expect("a plan in two memories");
    assert_eq!(plan.memories.len(), 2);
    cases.push(Case { name: "two memories", problem, plan });
    cases.push(claim());
    cases
}

/// A small table whose optimum exceeds every cut, so that only a search proves it.
fn claim() -> Case {
    let mut state = 7_u64;
    loop {
        let mut next = |bound: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        let buffers = (0..8).map(|id| {
            let (lower, length, size) = (next(8), 1 + next(5), 1 + next(12));
            Buffer::new(id, lower, lower + length, size)
        });
        let problem = Problem::from_buffers(buffers.collect()).expect("table");
        let mut options = options(Queue::InOrder);
        options.strategy = Strategy::Search;
        options.nodes = 1 << 20;
        let plan = plan(&problem, &options).expect("plan");
        if matches!(plan.certificate, Certificate::Search { .. }) {
            return Case { name: "claim of a search", problem, plan };
        }
    }
}
