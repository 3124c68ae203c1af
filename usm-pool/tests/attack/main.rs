//! Compares planners, `Plan::verify` and `verify::graph` with an executor that runs plans byte by
//! byte, on random graphs with many views, permits and loops. Rows are tampered with too.
//! `USM_ATTACK_GRAPHS` is the number of graphs, `USM_ATTACK_SEED` the seed.

#![cfg(feature = "alloc")]

extern crate alloc;

#[path = "../common/mod.rs"]
mod common;
mod executor;
mod generate;
mod schedule;

use alloc::collections::BTreeMap;
use core::fmt::Write as _;

use common::executor::Random;
use usm_pool::alias::InPlace;
use usm_pool::graph::Graph;
use usm_pool::planner::reorder;
use usm_pool::verify;
use usm_pool::{Options, Plan, Problem, Queue, Row, Strategy, plan, plan_graph};

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// For each sort of fault, the number of cases and the shortest one.
#[derive(Default)]
struct Faults(BTreeMap<String, (u64, String)>);

impl Faults {
    fn note(&mut self, sort: String, case: String) {
        let (count, shortest) = self.0.entry(sort).or_default();
        if *count == 0 || case.len() < shortest.len() {
            *shortest = case;
        }
        *count += 1;
    }
}

#[derive(Debug, Default)]
struct Counts {
    graphs: u64,
    plans: u64,
    accepted: u64,
    refused: u64,
}

struct Attack {
    random: Random,
    faults: Faults,
    counts: Counts,
}

#[test]
fn plans_and_checkers_agree_with_an_executor() {
    let (graphs, seed) = (number("USM_ATTACK_GRAPHS", 300), number("USM_ATTACK_SEED", 1));
    let mut attack = Attack { random: Random(seed), faults: Faults::default(), counts: Counts::default() };
    for _ in 0..graphs {
        if let Some(graph) = generate::graph(&mut attack.random) {
            attack.graph(&graph);
        }
    }
    let counts = attack.counts;
    for (sort, (count, case)) in &attack.faults.0 {
        println!("== {sort}: {count}\n{case}");
    }
    let enough = counts.graphs > graphs / 2 && counts.accepted > graphs && counts.refused > graphs;
    assert!(enough, "too few of {graphs} graphs say anything: {counts:?}");
    assert!(attack.faults.0.is_empty(), "{} sorts of faults", attack.faults.0.len());
}

impl Attack {
    fn graph(&mut self, graph: &Graph) {
        self.counts.graphs += 1;
        for queue in [Queue::InOrder, Queue::OutOfOrder] {
            for (graph, problem, plan) in self.plans(graph, queue) {
                self.counts.plans += 1;
                self.own(&graph, queue, &problem, &plan);
                if !plan.rows.is_empty() {
                    for _ in 0..4 {
                        self.tampered(&graph, queue, &plan.rows);
                    }
                }
            }
        }
    }

    /// Plans of a graph: each use of permits, ordering edges, another order of the operators.
    fn plans(&mut self, graph: &Graph, queue: Queue) -> Vec<(Graph, Problem, Plan)> {
        let mut options = Options::default();
        (options.queue, options.nodes) = (queue, 64);
        let mut plans = Vec::new();
        for choice in [InPlace::Never, InPlace::SameSize, InPlace::Always] {
            let problem = Problem::from_graph(graph, queue, choice).expect("a valid graph");
            options.strategy = Strategy::ALL[self.random.below(5) as usize];
            let plan = plan(&problem, &options).expect("no limit of memory");
            plans.push((graph.clone(), problem, plan));
        }
        if queue == Queue::OutOfOrder {
            options.ordering_edges = self.random.below(4) as usize;
        }
        let (problem, plan) = plan_graph(graph, &options).expect("no limit of memory");
        plans.push((graph.clone(), problem, plan));
        if queue == Queue::InOrder && self.random.below(2) == 0 {
            let order = reorder::reorder(graph, InPlace::Always).expect("a valid graph").order;
            if let Ok(graph) = graph.reordered(&order) {
                let (problem, plan) = plan_graph(&graph, &options).expect("no limit of memory");
                plans.push((graph, problem, plan));
            }
        }
        plans
    }

    /// A plan of the planners must pass both checkers and run correctly.
    fn own(&mut self, graph: &Graph, queue: Queue, problem: &Problem, plan: &Plan) {
        let edges = &plan.ordering_edges;
        if let Err(error) = plan.verify(problem) {
            self.faults.note(
                "own plan refused by Plan::verify".into(),
                case(&error, graph, queue, edges, &plan.rows),
            );
        }
        let verdict = verify::graph(graph, queue, edges, &plan.rows);
        let run = self.runs(graph, queue, edges, &plan.rows);
        let (sort, error) = match (verdict, run) {
            (Ok(()), Ok(())) => return,
            (Err(error), Ok(())) => ("own plan refused by verify::graph, runs right", error.to_string()),
            (Err(error), Err(wrong)) => {
                ("own plan WRONG, refused by verify::graph", format!("{error} | {wrong}"))
            }
            (Ok(()), Err(wrong)) => ("own plan WRONG, accepted", wrong),
        };
        self.faults.note(format!("{sort} {queue:?}"), case(&error, graph, queue, edges, &plan.rows));
    }

    /// Rows that `verify::graph` accepts must run correctly, whatever their origin.
    fn tampered(&mut self, graph: &Graph, queue: Queue, rows: &[Row]) {
        let mut rows = rows.to_vec();
        for _ in 0..=self.random.below(2) {
            self.move_a_block(graph, &mut rows);
        }
        let mut edges = Vec::new();
        if queue == Queue::OutOfOrder {
            let ops = graph.ops().len() as u64;
            for _ in 0..self.random.below(4) {
                edges.push((self.random.below(ops) as usize, self.random.below(ops) as usize));
            }
            edges.retain(|(before, after)| before < after);
        }
        if verify::graph(graph, queue, &edges, &rows).is_err() {
            self.counts.refused += 1;
            return;
        }
        self.counts.accepted += 1;
        if let Err(wrong) = self.runs(graph, queue, &edges, &rows) {
            let sort = format!("tampered rows WRONG, accepted {queue:?}");
            self.faults.note(sort, case(&wrong, graph, queue, &edges, &rows));
        }
    }

    /// Moves a block with all its views, mostly to another one's place.
    fn move_a_block(&mut self, graph: &Graph, rows: &mut [Row]) {
        let tensors = graph.tensors();
        let of = |row: &Row| &tensors[graph.tensor_index(row.id).expect("a row is of a tensor")];
        let [moved, other] = [(); 2].map(|()| rows[self.random.below(rows.len() as u64) as usize]);
        let to = match self.random.below(12) {
            0..4 => self.random.below(64),
            4..6 => other.offset + self.random.below(other.size + 1),
            _ => other.offset,
        };
        let (root, alignment) = (of(&moved).root, tensors[of(&moved).root].alignment);
        let base = to.saturating_sub(of(&moved).root_offset) / alignment * alignment;
        for row in rows {
            if of(row).root == root {
                row.offset = base + of(row).root_offset;
            }
        }
    }

    /// Runs the rows in an order that the queue allows. Operators either write the views that they
    /// make or not.
    fn runs(
        &mut self,
        graph: &Graph,
        queue: Queue,
        edges: &[(usize, usize)],
        rows: &[Row],
    ) -> Result<(), String> {
        for writes_views in [false, true] {
            let report = |wrong, how: &str| format!("{wrong} ({how}, views written: {writes_views})");
            if edges.iter().all(|(before, after)| before < after) {
                let most = if graph.loops().is_empty() { 1 } else { 3 };
                for rounds in 1..=most {
                    schedule::in_order(graph, rows, writes_views, rounds)
                        .map_err(|wrong| report(wrong, &format!("in order, {rounds} rounds")))?;
                }
            }
            if queue == Queue::OutOfOrder {
                for _ in 0..5 {
                    schedule::out_of_order(graph, rows, edges, writes_views, &mut self.random)
                        .map_err(|wrong| report(wrong, "out of order"))?;
                }
            }
        }
        Ok(())
    }
}

/// A fault with everything needed to reproduce it.
fn case(
    error: &dyn core::fmt::Display,
    graph: &Graph,
    queue: Queue,
    edges: &[(usize, usize)],
    rows: &[Row],
) -> String {
    let mut text = format!("{error} {queue:?} edges {edges:?} loops {:?}", graph.loops());
    for (index, tensor) in graph.tensors().iter().enumerate() {
        let row = rows.iter().find(|row| row.id == tensor.id).map(|row| (row.offset, row.buffer));
        let _ = write!(text, "\n {index}: {tensor:?} row {row:?}");
    }
    for (index, op) in graph.ops().iter().enumerate() {
        let (inputs, outputs, permits) = (&op.inputs, &op.outputs, &op.in_place);
        let _ = write!(text, "\n op {index}: {inputs:?} -> {outputs:?} permits {permits:?}");
    }
    text
}
