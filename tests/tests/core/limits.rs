//! The limits of the device, and their enforcement.

use core::alloc::Layout;
use std::sync::Barrier;

use usm_core::backend::host::HostHeap;
use usm_core::backend::mock::{Mock, Progress};
use usm_core::backend::{ContextOps, QueueMemory};
use usm_core::{
    AllocKind, Backend, Context, ErrorKind, Fallback, MemorySource, MemoryType, QueueOrder, Request,
};

const MEMORY: u64 = 10_000;

fn small() -> (Mock, Context<Mock>) {
    let mock = Mock::new(Progress::OnWait).with_device(|info| {
        info.global_mem_size = MEMORY;
        info.max_alloc_size = 6_000;
    });
    let context = mock.context();
    (mock, context)
}

/// A backend's functions are safe, so a program may call them with arguments that usm-core never
/// passes.
#[test]
fn no_backend_of_ours_allocates_no_bytes() {
    let nothing = Layout::new::<()>();
    let (mock, host) = (Mock::new(Progress::OnWait).context(), HostHeap::new().context());
    let queue = mock.queue(QueueOrder::InOrder).expect("a queue");
    for kind in AllocKind::ALL {
        assert_eq!(host.raw().allocate(kind, nothing).expect_err("none").kind, ErrorKind::ZeroSize);
        assert_eq!(mock.raw().allocate(kind, nothing).expect_err("none").kind, ErrorKind::ZeroSize);
    }
    let of_queue = <Mock as QueueMemory<Mock>>::allocate(queue.raw(), nothing);
    assert_eq!(of_queue.map(drop).expect_err("none").kind, ErrorKind::ZeroSize);
}

#[test]
fn a_sum_above_the_memory_is_refused_with_both_numbers() {
    let (_mock, context) = small();
    let first = context.allocate(&Request::new(AllocKind::Device, 6_000)).expect("fits");
    let refused = context.allocate(&Request::new(AllocKind::Shared, 5_000)).expect_err("too much");
    assert_eq!(refused.kind, ErrorKind::OverMemory { requested: 5_000, in_use: 6_000, limit: MEMORY });
    assert_eq!(refused.to_string(), "mock: requested 5000 bytes; 6000 of 10000 are in use");
    drop(first);
    drop(context.allocate(&Request::new(AllocKind::Shared, 5_000)).expect("fits now"));
}

#[test]
fn memory_that_only_waits_to_be_freed_refuses_nobody() {
    let mock = Mock::new(Progress::Manual).with_device(|info| {
        info.global_mem_size = MEMORY;
        info.max_alloc_size = 6_000;
    });
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut block = context.allocate(&Request::new(AllocKind::Device, 6_000)).expect("fits");
    let _ = queue.fill_bytes(&mut block, 0, 6_000, &[1]).expect("a fill");
    drop(block);
    // Memory in flight counts, and host memory is not substituted silently.
    let again = || context.allocate(&Request::new(AllocKind::Device, 6_000));
    assert!(matches!(again().expect_err("in flight").kind, ErrorKind::OverMemory { in_use: 6_000, .. }));
    mock.finish();
    let block = again().expect("done, so it makes room");
    assert_eq!(block.kind(), AllocKind::Device);
    assert_eq!(mock.violations(), []);
}

#[test]
fn contexts_of_one_device_share_its_memory() {
    let (mock, one) = small();
    let two = mock.context();
    let request = Request::new(AllocKind::Device, 6_000);
    let first = one.allocate(&request).expect("fits");
    let refused = two.allocate(&request).expect_err("too much together").kind;
    assert_eq!(refused, ErrorKind::OverMemory { requested: 6_000, in_use: 6_000, limit: MEMORY });
    // Each context has its own statistics.
    assert_eq!((one.stats().sum.current, two.stats().sum.current), (6_000, 0));
    assert_eq!(one.device_stats(), two.device_stats());
    drop(first);
    let second = two.allocate(&request).expect("fits now");
    let host = one.allocate(&Request::new(AllocKind::Host, 500)).expect("memory");
    drop((second, host, two));
    // The counts of a dropped context are kept.
    let device = one.device_stats();
    assert_eq!((device.sum.current, device.sum.peak, device.sum.total), (0, 6_500, 12_500));
    assert_eq!((device.of(MemoryType::UsmDevice).peak, device.of(MemoryType::UsmDevice).count), (6_000, 2));
    assert_eq!(one.stats().sum.peak, 6_000);
}

#[test]
fn statistics_of_a_device_outlive_its_first_context() {
    let (mock, one) = small();
    drop(one.allocate(&Request::new(AllocKind::Shared, 3_000)).expect("memory"));
    assert_eq!(one.device_stats(), one.stats());
    drop(one);
    let two = mock.context();
    drop(two.allocate(&Request::new(AllocKind::Shared, 1_000)).expect("memory"));
    let device = two.device_stats();
    assert_eq!((device.sum.peak, device.sum.total, device.sum.live), (3_000, 4_000, 0));
    assert_eq!(two.stats().sum.peak, 1_000);
}

#[test]
fn peaks_start_anew_for_a_context_and_its_device() {
    let (mock, one) = small();
    let two = mock.context();
    let other = two.allocate(&Request::new(AllocKind::Shared, 500)).expect("memory");
    let kept = one.allocate(&Request::new(AllocKind::Device, 1_000)).expect("memory");
    drop(one.allocate(&Request::new(AllocKind::Device, 3_000)).expect("memory"));
    assert_eq!((one.stats().sum.peak, one.device_stats().sum.peak), (4_000, 4_500));
    one.reset_peak();
    let (own, device) = (one.stats(), one.device_stats());
    assert_eq!((own.sum.peak, own.of(MemoryType::UsmDevice).peak), (1_000, 1_000));
    assert_eq!((device.sum.peak, device.of(MemoryType::UsmShared).peak), (1_500, 500));
    // Counts stay, and so do the peaks of other contexts.
    assert_eq!((own.sum.total, own.sum.count, two.stats().sum.peak), (4_000, 2, 500));
    drop(one.allocate(&Request::new(AllocKind::Device, 200)).expect("memory"));
    assert_eq!((one.stats().sum.peak, one.device_stats().sum.peak), (1_200, 1_700));
    drop((kept, other));
}

#[test]
fn devices_have_memory_of_their_own() {
    let mock = Mock::default().with_devices(2).with_device(|info| {
        info.global_mem_size = MEMORY;
        info.max_alloc_size = MEMORY;
    });
    let mut devices = Vec::new();
    mock.for_each_device(&mut |device| devices.push(device)).expect("devices");
    let contexts: Vec<_> =
        devices.iter().map(|device| Context::new(&mock, device).expect("a context")).collect();
    let request = Request::new(AllocKind::Device, MEMORY as usize);
    let blocks: Vec<_> = contexts.iter().map(|context| context.allocate(&request).expect("fits")).collect();
    assert!(contexts.iter().all(|context| context.device_stats().sum.current == blocks[0].size()));
}

#[test]
fn a_caller_may_allow_host_memory() {
    let (_mock, context) = small();
    let _first = context.allocate(&Request::new(AllocKind::Device, 6_000)).expect("fits");
    let request = Request::new(AllocKind::Device, 5_000).or(Fallback::Host);
    let second = context.allocate(&request).expect("host memory");
    assert_eq!(second.kind(), AllocKind::Host);
    assert_eq!(context.stats().of(MemoryType::UsmHost).current, 5_000);
    let opaque = context.allocate_memory(MemoryType::Buffer, 5_000, 0, Fallback::Host).expect("host memory");
    assert_eq!(opaque.memory_type(), MemoryType::UsmHost);
    // A single allocation above the device's limit cannot be placed elsewhere.
    let refused =
        context.allocate(&Request::new(AllocKind::Device, 6_001).or(Fallback::Host)).expect_err("too large");
    assert_eq!(refused.kind, ErrorKind::OverMaxAlloc { requested: 6_001, limit: 6_000 });
}

#[test]
fn a_launch_is_checked_against_the_memory_of_its_distinct_arguments() {
    let (_mock, context) = small();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let allocate = |size| {
        context.allocate(&Request::new(AllocKind::Host, size)).expect("host memory is not the device's")
    };
    let (mut target, source) = (allocate(5_000), allocate(5_001));
    let refused = queue.copy_bytes(&mut target, 0, &source, 0, 8).expect_err("too much for one launch").kind;
    assert_eq!(refused, ErrorKind::OverLaunchMemory { total: 10_001, limit: MEMORY });
    // An allocation that is named twice counts once.
    let _ = queue.copy_within(&mut target, 0, 100, 8).expect("5000 bytes");
}

#[test]
fn threads_cannot_pass_the_limit_together() {
    for _ in 0..50 {
        let (_mock, context) = small();
        let barrier = Barrier::new(4);
        let served: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        context
                            .allocate(&Request::new(AllocKind::Device, 4_000))
                            .map(std::mem::forget)
                            .is_ok()
                    })
                })
                .collect();
            threads
                .into_iter()
                .filter(|_| true)
                .map(|thread| usize::from(thread.join().expect("a thread")))
                .sum()
        });
        assert_eq!(served, 2);
        assert!(context.stats().sum.peak as u64 <= MEMORY);
    }
}

#[test]
fn the_host_has_the_limit_it_was_given() {
    let context = HostHeap::with_memory(1_000).context();
    let refused = context.allocate(&Request::new(AllocKind::Host, 1_001)).expect_err("too large").kind;
    assert_eq!(refused, ErrorKind::OverMaxAlloc { requested: 1_001, limit: 1_000 });
    let _first = context.allocate(&Request::new(AllocKind::Device, 800)).expect("fits");
    let refused = context.allocate(&Request::new(AllocKind::Device, 300)).expect_err("too much").kind;
    assert_eq!(refused, ErrorKind::OverMemory { requested: 300, in_use: 800, limit: 1_000 });
}
