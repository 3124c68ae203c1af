//! The transitive closure at the size of the largest networks.

#![cfg(feature = "alloc")]

mod common;

use std::time::Instant;

use common::executor::Random;
use usm_pool::dependency::Reachability;
use usm_pool::{Graph, Op, Tensor};

/// 20,000 operators in a random graph: the closure agrees with walks along the edges. The test
/// prints its time.
#[test]
fn the_closure_of_twenty_thousand_operators_is_what_walking_finds() {
    let n = 20_000_u64;
    let mut random = Random(7);
    let mut builder = Graph::builder();
    for op in 0..n {
        // Recent and old inputs: residual connections and shared embeddings.
        let mut inputs: Vec<u64> = Vec::new();
        for reach in [2, 30, 5000] {
            if op > 0 && random.below(3) != 0 {
                inputs.push(op - 1 - random.below(op.min(reach)));
            }
        }
        builder = builder.tensor(Tensor::new(op, 64)).op(Op::new("").inputs(inputs).outputs([op]));
    }
    let graph = builder.build().expect("graph");
    let start = Instant::now();
    let reach = Reachability::new(&graph, &[]).expect("closure");
    println!("closure of {n} operators: {:.3} s", start.elapsed().as_secs_f64());
    for _ in 0..20 {
        let from = random.below(n) as usize;
        let mut walked = vec![false; graph.ops().len()];
        for op in from + 1..graph.ops().len() {
            walked[op] = graph.ops()[op].inputs.iter().any(|&input| input == from || walked[input]);
        }
        for (op, &walked) in walked.iter().enumerate() {
            assert_eq!(reach.precedes(from, op), walked, "{from} to {op}");
        }
    }
}
