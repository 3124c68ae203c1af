//! The memory plan of a real network: the activations of GPT-2 small (12 layers, width 768, 12
//! heads), a batch of 1024 tokens, 32-bit floats.
//!
//! `cargo run --release -p usm-pool --example real_plan`

use usm_pool::{Graph, Op, Options, Queue, Tensor, plan_graph};

const LAYERS: u64 = 12;
const WIDTH: u64 = 768;
const HEADS: u64 = 12;
const TOKENS: u64 = 1024;

/// Operators in processing order, each with one result.
struct Net {
    tensors: Vec<u64>,
    ops: Vec<(String, Vec<u64>, u64)>,
}

impl Net {
    fn op(&mut self, name: String, inputs: &[u64], floats: u64) -> u64 {
        let result = self.tensors.len() as u64;
        self.tensors.push(floats * 4);
        self.ops.push((name, inputs.to_vec(), result));
        result
    }
}

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let mut net = Net { tensors: Vec::new(), ops: Vec::new() };
    let mut x = net.op("embed".into(), &[], TOKENS * WIDTH);
    for layer in 0..LAYERS {
        let name = |what: &str| format!("{layer}.{what}");
        let norm = net.op(name("norm1"), &[x], TOKENS * WIDTH);
        let qkv = net.op(name("qkv"), &[norm], TOKENS * WIDTH * 3);
        let scores = net.op(name("scores"), &[qkv], HEADS * TOKENS * TOKENS);
        let weights = net.op(name("softmax"), &[scores], HEADS * TOKENS * TOKENS);
        let mixed = net.op(name("mix"), &[weights, qkv], TOKENS * WIDTH);
        let projected = net.op(name("project"), &[mixed], TOKENS * WIDTH);
        let sum = net.op(name("add1"), &[x, projected], TOKENS * WIDTH);
        let norm = net.op(name("norm2"), &[sum], TOKENS * WIDTH);
        let wide = net.op(name("widen"), &[norm], TOKENS * WIDTH * 4);
        let gelu = net.op(name("gelu"), &[wide], TOKENS * WIDTH * 4);
        let narrow = net.op(name("narrow"), &[gelu], TOKENS * WIDTH);
        x = net.op(name("add2"), &[sum, narrow], TOKENS * WIDTH);
    }
    let mut builder = Graph::builder().default_alignment(64).output(x);
    for (id, bytes) in (0..).zip(&net.tensors) {
        builder = builder.tensor(Tensor::new(id, *bytes));
    }
    for (name, inputs, output) in net.ops {
        builder = builder.op(Op::new(name).inputs(inputs).outputs([output]));
    }
    let graph = builder.build()?;

    for queue in [Queue::InOrder, Queue::OutOfOrder] {
        let mut options = Options::default();
        options.queue = queue;
        let (problem, plan) = plan_graph(&graph, &options)?;
        // The checker shares no code with the planners.
        plan.verify(&problem)?;
        println!(
            "{queue:?}: {} buffers, {} MiB without a plan, {} MiB with, at least {} MiB{}",
            plan.buffers(),
            plan.naive >> 20,
            plan.peak >> 20,
            plan.lower_bound >> 20,
            if plan.optimal() { ": optimal" } else { "" },
        );
    }
    Ok(())
}
