//! Bounds of graphs with in-place permits: a permit that no plan can take lowers none, and no bound
//! is above the peak of the best plan, which brute force finds.

#![cfg(feature = "alloc")]

mod common;

use common::executor::Random;
use usm_pool::{
    Graph, GraphBuilder, Memory, Op, Options, Plan, Queue, Row, Tensor, TensorKind, plan_graph, verify,
};

const QUEUES: [Queue; 2] = [Queue::InOrder, Queue::OutOfOrder];

fn planned(graph: &Graph, queue: Queue) -> Plan {
    let mut options = Options::default();
    options.queue = queue;
    let (problem, plan) = plan_graph(graph, &options).expect("a plan");
    plan.verify(&problem).expect("a right plan");
    verify::graph(graph, queue, &plan.ordering_edges, &plan.rows).expect("a right plan");
    plan
}

/// Operators: inputs, outputs, permits.
type Ops<'a> = &'a [(&'a [u64], &'a [u64], &'a [(u64, u64)])];

fn graph(tensors: &[Tensor], ops: Ops<'_>, outputs: &[u64]) -> Graph {
    let mut builder = Graph::builder().default_alignment(1);
    builder = tensors.iter().cloned().fold(builder, GraphBuilder::tensor);
    for &(inputs, made, permits) in ops {
        let op = Op::new("").inputs(inputs.iter().copied()).outputs(made.iter().copied());
        builder = builder.op(permits.iter().fold(op, |op, &(input, output)| op.in_place(input, output)));
    }
    outputs.iter().fold(builder, |builder, &id| builder.output(id)).build().expect("a graph")
}

fn tensors<const N: usize>(size: u64) -> [Tensor; N] {
    core::array::from_fn(|id| Tensor::new(id as u64, size))
}

#[test]
fn a_permit_that_no_plan_can_take_lowers_no_bound() {
    let both = &QUEUES[..];
    let view = [Tensor::new(0, 128), Tensor::new(1, 128), Tensor::new(2, 128).alias_of(0, 0)];
    let cases: [(&str, &[Queue], Graph, u64); 6] = [
        (
            "the input is an output of the graph",
            both,
            graph(&tensors::<2>(128), &[(&[], &[0], &[]), (&[0], &[1], &[(0, 1)])], &[0, 1]),
            256,
        ),
        (
            "a view of the input is an output of the graph",
            both,
            graph(&view, &[(&[], &[0], &[]), (&[0], &[2], &[]), (&[0], &[1], &[(0, 1)])], &[2, 1]),
            256,
        ),
        (
            "another operator reads the input later, or at any time",
            both,
            graph(&tensors::<3>(1024), &[(&[], &[0], &[]), (&[0], &[1], &[(0, 1)]), (&[0], &[], &[])], &[1]),
            2048,
        ),
        (
            "two operators without an order read the input",
            &QUEUES[1..],
            graph(
                &tensors::<4>(128),
                &[
                    (&[], &[0], &[]),
                    (&[0], &[1], &[(0, 1)]),
                    (&[0], &[2], &[(0, 2)]),
                    (&[1, 2], &[3], &[(1, 3), (2, 3)]),
                ],
                &[3],
            ),
            3 * 128,
        ),
        (
            "the operator reads the input once more through a view",
            both,
            graph(&view, &[(&[], &[0], &[]), (&[0], &[2], &[]), (&[0, 2], &[1], &[(0, 1)])], &[1]),
            256,
        ),
        (
            "the operator makes a view of the input too",
            both,
            graph(&view, &[(&[], &[0], &[]), (&[0], &[1, 2], &[(0, 1)])], &[1]),
            256,
        ),
    ];
    for (why, queues, graph, right) in cases {
        for &queue in queues {
            let plan = planned(&graph, queue);
            let found = (plan.peak, plan.lower_bound, plan.optimal());
            assert_eq!(found, (right, right, true), "{why}, {queue:?}");
        }
    }
}

/// Up to five blocks of 1 to 3 bytes: chains, several readers, views of whole tensors, permits.
fn random_graph(random: &mut Random) -> Graph {
    let mut builder = Graph::builder().default_alignment(1);
    let mut sizes: Vec<(u64, Option<u64>)> = Vec::new();
    let mut roots = 0;
    if random.below(6) == 0 {
        builder = builder.tensor(Tensor::new(0, 2).kind(TensorKind::Activation));
        sizes.push((2, None));
        roots += 1;
    }
    for at in 0..2 + random.below(4) {
        let mut op = Op::new("");
        let count = sizes.len() as u64;
        // Content from before the run is read.
        let mut inputs: Vec<u64> = (0..count).filter(|_| at == 0).collect();
        for _ in 0..random.below(3).min(count) {
            inputs.push(count - 1 - random.below(count.min(3)));
        }
        op = op.inputs(inputs.iter().copied());
        for _ in 0..1 + random.below(4) / 3 {
            let id = sizes.len() as u64;
            let of = inputs.first().copied().filter(|_| random.below(5) == 0);
            let size = match of {
                Some(of) => sizes[of as usize].0,
                None if !inputs.is_empty() && random.below(3) > 0 => sizes[inputs[0] as usize].0,
                None => 1 + random.below(3),
            };
            if of.is_none() && roots == 5 {
                continue;
            }
            roots += usize::from(of.is_none());
            let tensor = Tensor::new(id, size);
            builder = builder.tensor(of.map_or(tensor.clone(), |of| tensor.alias_of(of, 0)));
            sizes.push((size, of));
            op = op.outputs([id]);
            for &input in &inputs {
                if random.below(3) > 0 {
                    op = op.in_place(input, id);
                }
            }
        }
        builder = builder.op(op);
    }
    for id in 0..sizes.len() as u64 {
        if random.below(5) == 0 || id + 1 == sizes.len() as u64 {
            builder = builder.output(id);
        }
    }
    builder.build().expect("a graph")
}

/// The plans of a graph that the checker accepts, by brute force.
struct Force<'g> {
    graph: &'g Graph,
    queue: Queue,
    rows: &'g [Row],
    roots: Vec<usize>,
    /// Whether two roots may lie at these places while all others are far away.
    apart: Vec<Vec<Vec<Vec<bool>>>>,
}

impl<'g> Force<'g> {
    fn new(graph: &'g Graph, queue: Queue, rows: &'g [Row], most: u64) -> Self {
        let roots = graph.tensors().iter().enumerate();
        let roots = roots.filter(|(_, node)| node.alias.is_none() && node.kind == TensorKind::Activation);
        let roots: Vec<usize> = roots.map(|(root, _)| root).collect();
        let mut force = Self { graph, queue, rows, roots, apart: Vec::new() };
        let far = |at: usize| 1000 * (at as u64 + 1);
        force.apart = (0..force.roots.len())
            .map(|one| {
                (0..one)
                    .map(|other| {
                        let accepts = |a: u64, b: u64| {
                            let place = |at: usize| {
                                if at == one {
                                    a
                                } else if at == other {
                                    b
                                } else {
                                    far(at)
                                }
                            };
                            force.accepts(&place)
                        };
                        (0..most).map(|a| (0..most).map(|b| accepts(a, b)).collect()).collect()
                    })
                    .collect()
            })
            .collect();
        force
    }

    fn accepts(&self, place: &dyn Fn(usize) -> u64) -> bool {
        let mut rows = self.rows.to_vec();
        for row in &mut rows {
            let root = self.graph.tensors()[self.graph.tensor_index(row.id).expect("a tensor")].root;
            let at = self.roots.iter().position(|&of| of == root).expect("a root");
            (row.offset, row.memory) = (place(at), Memory::Device);
        }
        verify::graph(self.graph, self.queue, &[], &rows).is_ok()
    }

    /// Whether a plan needs no more bytes than these.
    fn fits(&self, bytes: u64, places: &mut Vec<u64>) -> bool {
        let at = places.len();
        if at == self.roots.len() {
            return self.accepts(&|at| places[at]);
        }
        let size = self.graph.tensors()[self.roots[at]].size;
        for place in 0..(bytes + 1).saturating_sub(size) {
            let free = places.iter().enumerate();
            let mut free = free.map(|(other, &of)| self.apart[at][other][place as usize][of as usize]);
            if free.all(|apart| apart) {
                places.push(place);
                if self.fits(bytes, places) {
                    return true;
                }
                places.pop();
            }
        }
        false
    }
}

/// 60 graphs on both queues; `USM_BOUND_GRAPHS` sets another number.
#[test]
fn no_bound_is_above_the_peak_of_the_best_plan() {
    let count = skip::cases("USM_BOUND_GRAPHS", 60);
    let mut random = Random(36);
    let (mut exact, mut best, mut all) = (0, 0, 0);
    for round in 0..count {
        let graph = random_graph(&mut random);
        for queue in QUEUES {
            let plan = planned(&graph, queue);
            let force = Force::new(&graph, queue, &plan.rows, plan.peak + 1);
            let least = (0..=plan.peak).find(|&bytes| force.fits(bytes, &mut Vec::new()));
            let least = least.expect("the plan itself is one");
            assert!(
                plan.lower_bound <= least,
                "round {round}, {queue:?}: {} above {least}: {graph:?}",
                plan.lower_bound
            );
            exact += u64::from(plan.lower_bound == least);
            best += u64::from(plan.peak == least);
            all += 1;
        }
    }
    println!("{all} plans: {best} are the best, {exact} bounds are the best plan's peak, none is above it");
    assert!(exact * 10 > all * 9 && best * 10 > all * 9, "{exact} and {best} of {all}");
}
