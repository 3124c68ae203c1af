//! The part with a heap: heap-backed host memory, and a plan made in the image.

extern crate alloc;

use alloc::vec::Vec;

use usm_core::backend::host::HostHeap;
use usm_core::{Device, QueueOrder, UsmVec};
use usm_kernel::sample::{Reverse, reverse_plain};
use usm_kernel::{Launch, NdRange};
use usm_pool::{Graph, Op, Options, Queue, Tensor, plan_graph, verify};

use super::{Narrator, Refusal, check};

/// The reverse kernel on memory and local memory from the heap.
pub(super) fn memory_and_kernel(narrator: &mut Narrator<'_>) -> Result<(), Refusal> {
    let context = HostHeap::new().context();
    let queue = context.queue(QueueOrder::OutOfOrder)?;
    let ramp: Vec<f32> = (0_u16..500).map(f32::from).collect();
    let mut device = UsmVec::<f32, Device, _>::from_slice(&queue, &ramp)?;
    let event = Launch::new(&queue, NdRange::new([500], [50])?).run(Reverse, (&mut device,))?;
    event.wait()?;
    let mut expected = ramp;
    reverse_plain(&mut expected, 50);
    check(device.to_vec(&queue)? == expected, "reverse on the heap")?;
    narrator.say(format_args!("reverse 500 elements in groups of 50"))
}

/// Plans a small graph for both kinds of queue, checks the plans.
pub(super) fn plan(narrator: &mut Narrator<'_>) -> Result<(), Refusal> {
    let graph = Graph::builder()
        .tensor(Tensor::new(0, 4096))
        .tensor(Tensor::new(1, 4096))
        .tensor(Tensor::new(2, 2048))
        .tensor(Tensor::new(3, 4096))
        .tensor(Tensor::new(4, 1024))
        .op(Op::new("convolution").inputs([0]).outputs([1]))
        .op(Op::new("pooling").inputs([1]).outputs([2]))
        .op(Op::new("relu").inputs([2]).outputs([3]))
        .op(Op::new("softmax").inputs([3]).outputs([4]))
        .output(4)
        .build()?;
    for queue in [Queue::InOrder, Queue::OutOfOrder] {
        let options = Options { queue, ..Options::default() };
        let (problem, plan) = plan_graph(&graph, &options)?;
        plan.verify(&problem)?;
        verify::graph(&graph, queue, &[], &plan.rows)?;
        narrator.say(format_args!(
            "{queue:?} plan: naive {}, peak {}, lower bound {}",
            plan.naive, plan.peak, plan.lower_bound
        ))?;
    }
    Ok(())
}
