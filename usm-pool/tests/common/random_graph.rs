//! Random operator graphs for property tests: several consumers, repeated inputs, several outputs,
//! views, in-place permits.

use proptest::prelude::*;
use usm_pool::{Graph, Op, Tensor, TensorKind};

/// One operator, by the tensors that exist before it.
#[derive(Clone, Debug)]
pub(crate) struct RandomOp {
    inputs: Vec<prop::sample::Index>,
    outputs: Vec<(u16, u8, Flavour)>,
}

/// The role of an output.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Flavour {
    Plain,
    /// A view of the first input.
    View,
    /// May be written over the first input.
    InPlace,
    /// Is read by the caller.
    GraphOutput,
}

fn flavour() -> impl Strategy<Value = Flavour> {
    prop_oneof![
        6 => Just(Flavour::Plain),
        1 => Just(Flavour::View),
        3 => Just(Flavour::InPlace),
        1 => Just(Flavour::GraphOutput),
    ]
}

fn op() -> impl Strategy<Value = RandomOp> {
    let output = (0_u16..300, 0_u8..8, flavour());
    (prop::collection::vec(any::<prop::sample::Index>(), 0..4), prop::collection::vec(output, 0..3))
        .prop_map(|(inputs, outputs)| RandomOp { inputs, outputs })
}

/// Graphs of up to `ops` operators.
pub(crate) fn graphs(ops: usize) -> impl Strategy<Value = Graph> {
    (prop::collection::vec(op(), 1..=ops), 0_usize..3).prop_map(|(ops, given)| build(&ops, given))
}

fn build(ops: &[RandomOp], given: usize) -> Graph {
    let mut builder = Graph::builder().default_alignment(1);
    let mut sizes: Vec<u64> = Vec::new();
    for k in 0..given {
        let kind = if k == 0 { TensorKind::Activation } else { TensorKind::Input };
        builder = builder.tensor(Tensor::new(sizes.len() as u64, 64).kind(kind));
        sizes.push(64);
    }
    for random in ops {
        let mut inputs: Vec<u64> = Vec::new();
        if !sizes.is_empty() {
            // Mostly recent tensors, so that lives end.
            let window = sizes.len().min(6);
            inputs.extend(random.inputs.iter().map(|at| (sizes.len() - 1 - at.index(window)) as u64));
        }
        let mut op = Op::new("").inputs(inputs.iter().copied());
        for &(size, shift, flavour) in &random.outputs {
            let id = sizes.len() as u64;
            let first = inputs.first().copied();
            let mut size = u64::from(size);
            match (flavour, first) {
                (Flavour::View, Some(of)) => {
                    let whole = sizes[of as usize];
                    size = size.min(whole);
                    let offset = (whole - size) * u64::from(shift) / 8;
                    builder = builder.tensor(Tensor::new(id, size).alias_of(of, offset));
                }
                (Flavour::InPlace, Some(of)) => {
                    size = if shift < 4 { sizes[of as usize] } else { size.min(sizes[of as usize]) };
                    builder = builder.tensor(Tensor::new(id, size));
                    op = op.in_place(of, id);
                }
                _ => builder = builder.tensor(Tensor::new(id, size).alignment(1 << shift)),
            }
            if matches!(flavour, Flavour::GraphOutput) {
                builder = builder.output(id);
            }
            op = op.outputs([id]);
            sizes.push(size);
        }
        builder = builder.op(op);
    }
    builder.build().expect("a well-formed random graph")
}
