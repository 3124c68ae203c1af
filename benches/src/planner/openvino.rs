//! The networks of the memory-pool tests of OpenVINO's GPU plugin
//! (`intel_gpu/tests/unit/module_tests/memory_test.cpp`), planned here.

use usm_pool::{Graph, Op, Options, Queue, Tensor, plan_graph};

use crate::row::Row;

/// A network: name of the test, bytes of the input, and the most bytes that the test expects on the
/// device. Operators in order: name, inputs and bytes of the result; operator 0 reads the input,
/// which is number 0.
struct Network {
    test: &'static str,
    input: u64,
    expected: u64,
    ops: &'static [(&'static [u64], u64)],
}

/// One tensor of `1 x 4 x 4 x 4` 32-bit floats.
const MAP: u64 = 256;

/// The result of operator `i` has number `i + 1`.
const NETWORKS: [Network; 4] = [
    Network {
        test: "basic_non_padded_relu_pipe",
        input: 16,
        expected: 64,
        ops: &[(&[0], 16), (&[1], 16), (&[2], 16), (&[3], 16), (&[4], 16), (&[5], 16)],
    },
    Network {
        test: "basic_non_padded_relu_and_pooling_pipe",
        input: MAP,
        expected: 896,
        ops: &[(&[0], MAP), (&[1], MAP), (&[2], 64), (&[3], 64), (&[4], 64), (&[5], 64), (&[6], 64)],
    },
    Network {
        test: "multi_outputs_network",
        input: MAP,
        expected: 1536,
        // Two branches from the input; the first ends after three operators.
        ops: &[
            (&[0], MAP),
            (&[1], MAP),
            (&[0], MAP),
            (&[3], MAP),
            (&[2], MAP),
            (&[4], MAP),
            (&[6], MAP),
            (&[7], MAP),
        ],
    },
    Network {
        test: "oooq",
        input: MAP,
        expected: 2560,
        ops: &[
            (&[0], MAP),
            (&[0], MAP),
            (&[0], MAP),
            (&[1, 2], 2 * MAP),
            (&[4], 2 * MAP),
            (&[3], MAP),
            (&[5, 6], 3 * MAP),
            (&[7], 3 * MAP),
        ],
    },
];

/// Bytes on the device: the arena and the input, which the caller holds.
fn bytes(network: &Network, queue: Queue) -> u64 {
    // The tests count the bytes of the buffers, without alignment.
    let mut builder = Graph::builder().default_alignment(1).tensor(Tensor::new(0, network.input));
    for (result, (inputs, size)) in (1..).zip(network.ops) {
        builder = builder.tensor(Tensor::new(result, *size));
        builder = builder.op(Op::new(format!("op{result}")).inputs(inputs.iter().copied()).outputs([result]));
    }
    // Results that nothing reads are the outputs.
    let read = |result: u64| network.ops.iter().any(|(inputs, _)| inputs.contains(&result));
    for result in (1..=network.ops.len() as u64).filter(|&result| !read(result)) {
        builder = builder.output(result);
    }
    let graph = builder.build().expect("the networks are right");
    let mut options = Options::default();
    options.queue = queue;
    let (problem, plan) = plan_graph(&graph, &options).expect("the networks have plans");
    plan.verify(&problem).expect("every plan verifies");
    network.input + plan.peak
}

pub(super) const PEER: &str = "OpenVINO's pool";

pub(super) fn rows() -> Vec<Row> {
    let row = |network: &Network, queue, order| {
        let name = format!("OpenVINO's {}, {order}", network.test);
        Row::new(&name, PEER, "bytes", bytes(network, queue) as f64, network.expected as f64)
    };
    let both =
        |network| [row(network, Queue::InOrder, "in order"), row(network, Queue::OutOfOrder, "out of order")];
    NETWORKS.iter().flat_map(both).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_network_needs_fewer_bytes_than_its_test_expects() {
        let ours = |queue| NETWORKS.each_ref().map(|network| bytes(network, queue));
        assert_eq!(ours(Queue::InOrder), [48, 768, 1024, 1792]);
        assert_eq!(ours(Queue::OutOfOrder), [48, 768, 1280, 1792]);
        assert_eq!(NETWORKS.each_ref().map(|network| network.expected), [64, 896, 1536, 2560]);
    }
}
