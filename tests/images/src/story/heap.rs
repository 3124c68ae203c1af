//! The part with a heap: heap-backed host memory, a plan made in the image, a run-time pool, and a
//! pruned module.

extern crate alloc;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use usm_core::backend::host::HostHeap;
use usm_core::{AllocKind, Device, ErrorKind, MemorySource, QueueOrder, Request, Shared, UsmVec};
use usm_kernel::sample::{reverse, reverse_plain};
use usm_kernel::{Launch, NdRange};
use usm_pool::arena::Arena;
use usm_pool::{Graph, Op, Options, Plan, Pool, PoolOptions, Queue, Tensor, plan_graph, verify};
use usm_prune::prune_llvm;

use super::{Narrator, Refusal, check};

/// The reverse kernel on memory and local memory from the heap.
pub(super) fn memory_and_kernel(narrator: &mut Narrator<'_>) -> Result<(), Refusal> {
    let context = HostHeap::new().context();
    let queue = context.queue(QueueOrder::OutOfOrder)?;
    let ramp: Vec<f32> = (0_u16..500).map(f32::from).collect();
    let mut device = UsmVec::<f32, Device, _>::from_slice(&queue, &ramp)?;
    let event = Launch::new(&queue, NdRange::new([500], [50])?).run(reverse, (&mut device,))?;
    event.wait()?;
    let mut expected = ramp;
    reverse_plain(&mut expected, 50);
    check(device.to_vec(&queue)? == expected, "reverse on the heap")?;
    narrator.say(format_args!("reverse 500 elements in groups of 50"))
}

/// Tensors of the graph in bytes; the first is handed in, the last is the result.
const SIZES: [u64; 5] = [4096, 4096, 2048, 4096, 1024];

/// Plans a small graph for both kinds of queue, checks the plans, and runs a kernel on every tensor
/// in its planned bytes.
pub(super) fn plan(narrator: &mut Narrator<'_>) -> Result<(), Refusal> {
    let mut builder = Graph::builder();
    for (id, size) in (0..).zip(SIZES) {
        builder = builder.tensor(Tensor::new(id, size));
    }
    let graph = builder
        .op(Op::new("convolution").inputs([0]).outputs([1]))
        .op(Op::new("pooling").inputs([1]).outputs([2]))
        .op(Op::new("relu").inputs([2]).outputs([3]))
        .op(Op::new("softmax").inputs([3]).outputs([4]))
        .output(4)
        .build()?;
    for order in [Queue::OutOfOrder, Queue::InOrder] {
        let mut options = Options::default();
        options.queue = order;
        let (problem, plan) = plan_graph(&graph, &options)?;
        plan.verify(&problem)?;
        verify::graph(&graph, order, &[], &plan.rows)?;
        narrator.say(format_args!(
            "{order:?} plan: naive {}, peak {}, lower bound {}",
            plan.naive, plan.peak, plan.lower_bound
        ))?;
        run(&plan)?;
    }
    Ok(())
}

/// Takes the tensors one after another from an arena of the plan, two at a time as an operator
/// would, and checks each.
fn run(plan: &Plan) -> Result<(), Refusal> {
    let context = HostHeap::new().context();
    let queue = context.queue(QueueOrder::InOrder)?;
    let arena = Arena::new(plan, &context, AllocKind::Device)?;
    check(arena.bytes() == plan.peak, "bytes of the arena")?;
    let mut input = None;
    for (id, size) in (0..).zip(SIZES).skip(1) {
        let elements = size / 4;
        let mut output = UsmVec::<f32, Device, _>::zeroed_in(&queue, &arena.tensor(id)?, elements as usize)?;
        queue.fill(&mut output, 1.5)?.wait()?;
        let event = Launch::new(&queue, NdRange::new([elements], [16])?).run(reverse, (&mut output,))?;
        event.wait()?;
        check(output.to_vec(&queue)?.iter().all(|value| *value == 3.0), "a tensor in the arena")?;
        // The operator's input is released only now, after its output was written.
        drop(input.replace(output));
    }
    Ok(())
}

/// Memory from a run-time pool: reused, refused at the limit, and returned.
pub(super) fn pool(narrator: &mut Narrator<'_>) -> Result<(), Refusal> {
    let context = HostHeap::new().context();
    let queue = context.queue(QueueOrder::InOrder)?;
    let mut options = PoolOptions::default();
    (options.segment, options.limit) = (1 << 15, Some(1 << 16));
    let pool = Pool::with(&context, AllocKind::Shared, options);
    let array = || UsmVec::<u32, Shared, _>::zeroed_in(&queue, &pool.on(&queue), 1000);
    let mut first = array()?;
    queue.fill(&mut first, 7)?.wait()?;
    let address = first.as_ptr();
    let held = pool.tagged("held").allocate(&Request::new(AllocKind::Shared, 20_000))?;
    check(first.read()?.iter().all(|value| *value == 7), "an array of the pool")?;
    drop(first);
    let second = array()?;
    check(second.as_ptr() == address && second.read()?.iter().all(|value| *value == 0), "a reused block")?;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    pool.on_exhausted(move |_| counted.fetch_add(1, Ordering::Relaxed) < 9);
    let refused = pool.allocate(&Request::new(AllocKind::Shared, 40_000));
    let is_exhausted = refused.is_err_and(|it| matches!(it.kind, ErrorKind::PoolExhausted { .. }));
    let calls = calls.load(Ordering::Relaxed);
    check(is_exhausted && calls == 3, "a request above the limit")?;
    pool.check();
    let stats = pool.stats();
    drop((second, held));
    check(pool.stats().live == 0 && pool.trim(0) == stats.reserved, "the memory goes back")?;
    narrator.say(format_args!("pool: {} bytes live, {} reserved", stats.live, stats.reserved))
}

/// A reference that both ways out of a branch give back: usm-nrt's compiler side, without usm-nrt.
const MODULE: &str = "\
define void @f(ptr %a, i1 %c) {
h:
  call void @NRT_incref(ptr %a)
  br i1 %c, label %l, label %r
l:
  call void @NRT_decref(ptr %a)
  ret void
r:
  call void @NRT_decref(ptr %a)
  ret void
}
";

/// Removes reference operations that cancel out from the text of a compiler's module.
pub(super) fn prune(narrator: &mut Narrator<'_>) -> Result<(), Refusal> {
    let pruned = prune_llvm(MODULE, &usm_prune::Options::default())?;
    let removed: usize = pruned.functions.iter().map(|(_, stats)| stats.total()).sum();
    let left = pruned.text.matches("call void @NRT_").count();
    check(left == 0, "calls left in the pruned module")?;
    narrator.say(format_args!("pruned {removed} reference operations, {left} calls left"))
}
