//! Files that are wrong in every way: typed errors that name the place, never a panic.

#![cfg(feature = "alloc")]

mod common;

use proptest::prelude::*;
use usm_pool::alias::{Blocks, InPlace};
use usm_pool::dependency::Reachability;
use usm_pool::{
    Buffer, Error, Graph, GraphError, Op, Options, Problem, Queue, Tensor, TensorKind, plan, plan_graph,
    verify,
};

/// Numbers around every limit.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..8, Just(64), Just(u64::MAX), Just(u64::MAX - 1), Just(1 << 63), any::<u64>()]
}

fn tensor() -> impl Strategy<Value = Tensor> {
    let kind = prop_oneof![
        Just(None),
        Just(Some(TensorKind::Activation)),
        Just(Some(TensorKind::Constant)),
        Just(Some(TensorKind::State)),
        Just(Some(TensorKind::Input)),
    ];
    (0_u64..8, number(), prop::option::of(number()), prop::option::of((0_u64..8, number())), number(), kind)
        .prop_map(|(id, size, alignment, alias, padding, kind)| {
            let mut tensor = Tensor::new(id, size);
            if let Some(alignment) = alignment {
                tensor = tensor.alignment(alignment);
            }
            if let Some((of, offset)) = alias {
                tensor = tensor.alias_of(of, offset);
            }
            if padding < 64 {
                tensor = tensor.padding(padding);
            }
            if let Some(kind) = kind {
                tensor = tensor.kind(kind);
            }
            tensor
        })
}

fn op() -> impl Strategy<Value = Op> {
    let ids = || prop::collection::vec(0_u64..9, 0..3);
    (ids(), ids(), prop::collection::vec((0_u64..9, 0_u64..9), 0..2), number()).prop_map(
        |(inputs, outputs, permits, cost)| {
            let mut op = Op::new("same name").inputs(inputs).outputs(outputs).cost(cost);
            for (from, to) in permits {
                op = op.in_place(from, to);
            }
            op
        },
    )
}

proptest! {
    #![proptest_config(common::config())]

    #[test]
    fn any_graph_is_refused_or_planned(
        tensors in prop::collection::vec(tensor(), 0..8),
        ops in prop::collection::vec(op(), 0..6),
        outputs in prop::collection::vec(0_u64..9, 0..3),
        loops in prop::collection::vec((0_usize..7, 0_usize..7), 0..2),
    ) {
        let mut builder = Graph::builder();
        for tensor in tensors {
            builder = builder.tensor(tensor);
        }
        for op in ops {
            builder = builder.op(op);
        }
        for id in outputs {
            builder = builder.output(id);
        }
        for (first, last) in loops {
            builder = builder.loop_body(first, last);
        }
        match builder.build() {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok(graph) => {
                for queue in [Queue::InOrder, Queue::OutOfOrder] {
                    let mut options = Options::default();
                    options.queue = queue;
                    options.ordering_edges = 3;
                    options.nodes = 200;
                    match plan_graph(&graph, &options) {
                        Err(error) => prop_assert!(!error.to_string().is_empty()),
                        Ok((problem, plan)) => {
                            plan.verify(&problem).expect("verified");
                            verify::graph(&graph, queue, &plan.ordering_edges, &plan.rows).expect("verified against the graph");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn any_table_is_refused_or_planned(
        rows in prop::collection::vec((0_u64..6, number(), number(), number(), number()), 0..8),
        gaps in prop::collection::vec((0_usize..9, number(), number()), 0..4),
        offsets in prop::collection::vec(number(), 0..8),
    ) {
        let buffers: Vec<Buffer> =
            rows.into_iter().map(|(id, lower, upper, size, alignment)| Buffer { id, lower, upper, size, alignment }).collect();
        // The checkers accept any input.
        let _ = verify::intervals(&buffers, &offsets, u64::MAX);
        let _ = verify::sweep(&buffers, &offsets, u64::MAX);
        for problem in [Problem::from_buffers(buffers.clone()), Problem::with_gaps(buffers, &gaps)] {
            match problem {
                Err(error) => prop_assert!(!error.to_string().is_empty()),
                Ok(problem) => {
                    let mut options = Options::default();
                    options.nodes = 200;
                    let plan = plan(&problem, &options).expect("plan");
                    plan.verify(&problem).expect("verified");
                }
            }
        }
    }
}

#[test]
fn errors_name_the_place_and_the_numbers() {
    let build = |tensors: &[Tensor], ops: &[Op]| {
        let mut builder = Graph::builder();
        for tensor in tensors {
            builder = builder.tensor(tensor.clone());
        }
        for op in ops {
            builder = builder.op(op.clone());
        }
        builder.build().map_err(|error| error.to_string())
    };
    let two = [Tensor::new(1, 64), Tensor::new(2, 64)];
    let text = build(&two, &[Op::new("").inputs([7])]).unwrap_err();
    assert_eq!(text, "op 0: input 7 is not a tensor");
    let text = build(&two, &[Op::new("").inputs([1]), Op::new("").outputs([1])]).unwrap_err();
    assert_eq!(text, "op 0: reads tensor 1, which op 1 has not written yet");
    let text = build(&[Tensor::new(1, 64), Tensor::new(2, 60).alias_of(1, 8)], &[]).unwrap_err();
    assert_eq!(text, "tensor 2: alias_offset 8 + size 60 reaches beyond the 64 bytes of tensor 1");
    let text =
        build(&[Tensor::new(1, 64).alias_of(2, 0), Tensor::new(2, 64).alias_of(1, 0)], &[]).unwrap_err();
    assert_eq!(text, "tensor 1: alias_of leads back to itself");
    let text = build(&[Tensor::new(1, 64).alignment(48)], &[]).unwrap_err();
    assert_eq!(text, "tensor 1: alignment 48 is not a power of two");
    let error = Problem::from_buffers(vec![Buffer::new(1, 5, 4, 8)]).unwrap_err();
    assert_eq!(error, Error::ReversedLifetime { id: 1, lower: 5, upper: 4 });
    let cycle = build(&two, &[Op::new("a"), Op::new("b")])
        .map(|graph| Reachability::new(&graph, &[(0, 1), (1, 0)]).map(drop));
    assert!(matches!(cycle, Ok(Err(Error::OrderingEdge { .. }))));
    let duplicate = Graph::builder().tensor(Tensor::new(3, 1)).tensor(Tensor::new(3, 1)).build();
    assert_eq!(duplicate.unwrap_err(), GraphError::DuplicateTensor { tensor: 3 });
}

/// Chains as long as the graph, without recursion: views of views, and in-place results of in-place
/// results.
#[test]
fn depth_of_the_input_is_no_depth_of_the_stack() {
    let n = 20_000_u64;
    let mut builder = Graph::builder().tensor(Tensor::new(0, 64)).op(Op::new("").outputs([0]));
    for id in 1..n {
        builder = builder.tensor(Tensor::new(id, 64).alias_of(id - 1, 0));
    }
    let graph = builder.build().expect("graph");
    assert_eq!(graph.family(0).len(), 20_000);
    let mut builder = Graph::builder().tensor(Tensor::new(0, 64)).op(Op::new("").outputs([0]));
    for id in 1..5000 {
        builder = builder
            .tensor(Tensor::new(id, 64))
            .op(Op::new("").inputs([id - 1]).outputs([id]).in_place(id - 1, id));
    }
    let graph = builder.build().expect("graph");
    let blocks = Blocks::new(&graph, InPlace::SameSize, None).expect("blocks");
    assert_eq!(blocks.blocks().len(), 1);
    let (_, plan) = plan_graph(&graph, &Options::default()).expect("plan");
    assert_eq!((plan.peak, plan.lower_bound, plan.naive), (64, 64, 5000 * 64));
}
