//! Memory from a queue: the driver's calls, their order, and the fallback if a call is refused or
//! missing.

use core::time::Duration;

use usm_core::{Allocation, ErrorKind, MemoryType};

use super::*;
use crate::driver::{calls_with_streams, count};

const SIZE: usize = 4096;

fn bytes(queue: &Queue<Cuda>) -> Allocation<Cuda> {
    MemorySource::allocate(queue, &Request::new(AllocKind::Device, SIZE)).unwrap()
}

fn queue(context: &Context<Cuda>) -> Queue<Cuda> {
    context.queue(QueueOrder::InOrder).unwrap()
}

/// The calls with the context current, after the reusable events exist.
fn calls_in<R>(context: &Context<Cuda>, work: impl FnOnce() -> R) -> Vec<String> {
    raw::with_current(context.raw(), || calls_of(work).1).unwrap()
}

#[test]
fn an_allocation_and_its_free_are_a_call_each_and_an_event() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    assert!(context.info().queue_memory);
    let queue = queue(&context);
    drop([bytes(&queue), bytes(&queue)]);
    for _ in 0..100 {
        let made = calls_in(&context, || drop(bytes(&queue)));
        assert_eq!(made, ["cuMemAllocFromPoolAsync", "cuEventRecord", "cuMemFreeAsync"]);
    }
}

#[test]
fn what_its_own_queue_does_is_waited_for_by_nobody() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let queue = queue(&context);
    let mut warm = bytes(&queue);
    let _ = queue.fill_bytes(&mut warm, 0, SIZE, &[1]).unwrap();
    set("hold");
    let made = calls_in(&context, || {
        let mut memory = bytes(&queue);
        let copied = queue.copy_bytes(&mut memory, 0, &warm, 0, SIZE).unwrap();
        drop((memory, copied));
    });
    assert_eq!(times(&made, "cuStreamWaitEvent"), 0, "{made:?}");
    assert_eq!(made.last().unwrap(), "cuMemFreeAsync");
    assert_eq!((context.deferred_frees(), context.stats().sum.live), (0, 1));
    set("");
}

#[test]
fn another_stream_waits_for_the_allocation_and_the_free_for_that_stream() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let (own, other) = (queue(&context), queue(&context));
    let source = bytes(&other);
    drop([bytes(&own), bytes(&own)]);
    set("hold");
    let work = || {
        let mut memory = bytes(&own);
        let _ = other.copy_bytes(&mut memory, 0, &source, 0, SIZE).unwrap();
        // The copy's event follows the allocation's, so only the copy's is waited for.
        drop(memory);
    };
    let (_, made) = raw::with_current(context.raw(), || calls_with_streams(work)).unwrap();
    let names = made.iter().filter_map(|call| call.split(' ').next());
    let order: Vec<_> = names.filter(|call| !call.starts_with("cuCtx")).collect();
    let expected = [
        "cuMemAllocFromPoolAsync",
        "cuEventRecord",
        "cuEventQuery",
        "cuStreamWaitEvent",
        "cuMemcpyAsync",
        "cuEventRecord",
        "cuEventQuery",
        "cuStreamWaitEvent",
        "cuMemFreeAsync",
    ];
    assert_eq!(order, expected);
    // The stream of each call.
    let [first, second] = [&own, &other].map(|queue| format!("{:?}", queue.raw().as_raw()));
    let last: Vec<_> = made.iter().filter(|call| !call.starts_with("cuCtx")).rev().take(2).collect();
    assert_eq!(last, [&format!("cuMemFreeAsync {first}"), &format!("cuStreamWaitEvent {first} {second}")]);
    set("");
}

#[test]
fn a_free_that_is_refused_waits_for_its_events_and_goes_by_the_plain_call() {
    let Some(driver) = Driver::find() else { return };
    let live = || driver.live("allocations");
    let context = driver.context();
    let queue = queue(&context);
    // Above the driver's alignment, after another block, so that the block is placed inside a
    // larger one.
    let _first = bytes(&queue);
    let request = Request::new(AllocKind::Device, SIZE).aligned_to(1 << 20);
    let mut memory = MemorySource::allocate(&queue, &request).unwrap();
    // The first, misaligned allocation has been freed.
    queue.wait().unwrap();
    set("hold");
    let _ = queue.fill_bytes(&mut memory, 0, SIZE, &[1]).unwrap();
    let address = memory.as_ptr();
    let before = live();
    fail("cuMemFreeAsync=1");
    let made = calls_in(&context, || drop(memory));
    fail("");
    assert_eq!((times(&made, "cuMemFreeAsync"), times(&made, "cuMemFree_v2")), (1, 0));
    assert_eq!((context.deferred_frees(), live(), context.stats().sum.live), (1, before, 1));
    // No live block contains it.
    assert_eq!(context.query(address).unwrap().kind, AllocKind::Unknown);
    context.collect();
    assert_eq!((context.deferred_frees(), live()), (1, before));
    set("");
    context.synchronize(Duration::from_secs(10)).unwrap();
    let made = calls_in(&context, || (0..3).for_each(|_| context.collect()));
    assert_eq!((context.deferred_frees(), live()), (0, before - 1));
    assert!(times(&made, "cuMemFree_v2") <= 1 && times(&made, "cuMemFreeAsync") == 0);
}

#[test]
fn the_driver_is_not_asked_about_memory_that_its_stream_frees() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let queue = queue(&context);
    for alignment in [64, 1 << 16] {
        let request = Request::new(AllocKind::Device, SIZE).aligned_to(alignment);
        let memory = MemorySource::allocate(&queue, &request).unwrap();
        let address = memory.as_ptr().wrapping_add(SIZE - 1);
        assert_eq!(context.query_runtime(address.addr()).unwrap().base, memory.as_ptr().addr());
        drop(memory);
        for context in [&context, &driver.context()] {
            let (answer, made) = calls_of(|| context.query(address).unwrap());
            assert_eq!((answer.kind, made), (AllocKind::Unknown, vec![]));
        }
    }
}

#[test]
fn refused_allocations_are_typed_and_a_driver_without_it_gives_plain_memory() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let queue = queue(&context);
    let request = Request::new(AllocKind::Device, SIZE);
    // Without an event no memory is allocated.
    fail("cuEventCreate=700");
    let (refused, made) = calls_of(|| MemorySource::allocate(&queue, &request).unwrap_err());
    assert_eq!((refused.kind, refused.native), (ErrorKind::Native { operation: "cuEventCreate" }, Some(700)));
    assert_eq!(times(&made, "cuMemAllocFromPoolAsync"), 0, "{made:?}");
    fail("cuMemAllocFromPoolAsync=2");
    let (memory_type, requested) = (MemoryType::UsmDevice, SIZE as u64);
    let refused = MemorySource::allocate(&queue, &request).unwrap_err();
    assert_eq!((refused.kind, refused.native), (ErrorKind::OutOfMemory { memory_type, requested }, Some(2)));
    fail("cuMemAllocFromPoolAsync=700");
    let refused = MemorySource::allocate(&queue, &request).unwrap_err();
    assert_eq!(
        (refused.kind, refused.native),
        (ErrorKind::Native { operation: "cuMemAllocFromPoolAsync" }, Some(700))
    );
    assert_eq!(context.stats().sum.count, 0);
    // A driver that reports pools but refuses to allocate from one.
    fail("cuMemAllocFromPoolAsync=801");
    let memory = bytes(&queue);
    let made = calls_in(&context, || drop(memory));
    assert_eq!((times(&made, "cuMemFreeAsync"), times(&made, "cuMemFree_v2")), (0, 1));
    assert!(MemorySource::allocate(&queue, &request).unwrap().export_ipc().is_err());
}

#[test]
fn a_driver_older_than_pools_opens_and_has_plain_memory() {
    let Some(driver) = Driver::lacking(&["cuMemAllocFromPoolAsync"]) else { return };
    let context = driver.context();
    assert!(!context.info().queue_memory);
    let queue = queue(&context);
    let array = UsmVec::<f32, Device, Cuda>::zeroed_in(&queue, &queue, 64).unwrap();
    assert!(array.allocation().is_of_queue());
    assert_eq!(array.to_vec(&queue).unwrap(), [0.0; 64]);
    assert_eq!(context.stats().sum.live, 1);
    drop(array);
    assert_eq!(context.stats().sum.live, 0);
}

/// Its free is in no list of usm-core, and the driver destroys a context's allocations with it.
#[test]
fn a_context_is_not_released_before_the_work_of_such_memory() {
    let Some(driver) = Driver::find() else { return };
    let leave_work = |limit: Duration, ends: bool, faults: &str| {
        let context = driver.context();
        context.set_wait_limit(limit);
        let queue = queue(&context);
        let mut memory = bytes(&queue);
        set("hold");
        let _ = queue.fill_bytes(&mut memory, 0, SIZE, &[1]).unwrap();
        drop(memory);
        fail(faults);
        drop(queue);
        fail("");
        if ends {
            set("");
        }
        calls_of(|| drop(context)).1
    };
    let released = |calls: &[String]| times(calls, "cuDevicePrimaryCtxRelease_v2");
    let calls = leave_work(Duration::from_secs(10), true, "");
    assert_eq!(released(&calls), 1);
    let asked = calls.iter().rposition(|call| call == "cuEventQuery");
    let first = |name| calls.iter().position(|call| call == name);
    let [pool, release] = ["cuMemPoolDestroy", "cuDevicePrimaryCtxRelease_v2"].map(first);
    assert!(asked.is_some() && asked < pool && pool < release, "{calls:?}");
    // Endless work is given up with its context and the pool. So is work without a recorded event,
    // at once.
    for (limit, faults) in
        [(Duration::from_millis(20), ""), (Duration::from_secs(3600), "cuEventRecord=46,cuEventCreate=46")]
    {
        let calls = leave_work(limit, false, faults);
        assert_eq!((released(&calls), times(&calls, "cuMemPoolDestroy")), (0, 0), "{faults}");
        set("");
    }
}

/// The error names the queue's fault, not memory or size.
#[test]
fn a_lost_queue_refuses_allocations() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let queue = queue(&context);
    let mut memory = bytes(&queue);
    fail("cuEventRecord=46");
    let _ = queue.fill_bytes(&mut memory, 0, SIZE, &[1]).unwrap();
    fail("");
    let copy = queue.fill_bytes(&mut memory, 0, SIZE, &[1]).unwrap_err();
    let (refused, made) =
        calls_of(|| MemorySource::allocate(&queue, &Request::new(AllocKind::Device, SIZE)).unwrap_err());
    assert_eq!((refused.kind, refused.native), (copy.kind, copy.native));
    assert_eq!((refused.native, made), (Some(46), vec![]));
    context.set_wait_limit(Duration::from_millis(5));
}

/// Memory that only the context allocates does not keep the queue: the stream ends with the last
/// handle.
#[test]
fn plain_memory_of_a_queue_keeps_no_stream() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let queue = queue(&context);
    fail("cuMemAllocFromPoolAsync=801");
    let memory = bytes(&queue);
    fail("");
    let before = count("streams");
    drop(queue);
    assert_eq!(count("streams"), before - 1);
    drop(memory);
}
