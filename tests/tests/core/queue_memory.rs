//! Memory from a queue, on a driver that reuses memory in the order of queues and reports accesses
//! that come too early or too late.

use core::alloc::Layout;
use core::time::Duration;

use usm_core::backend::QueueOps;
use usm_core::backend::mock::{Fault, Mock, MockEvent, Operation, Progress};
use usm_core::backend::{Block, QueueMemory};
use usm_core::{
    AllocKind, Allocation, Context, Error, ErrorKind, Event, EventStatus, MemorySource, MemoryType, Queue,
    QueueOrder, Request, Shared, UsmVec,
};

mod programs;

const BYTES: usize = 256;

fn bytes(queue: &Queue<Mock>) -> Allocation<Mock> {
    try_bytes(queue).expect("memory")
}

fn try_bytes(queue: &Queue<Mock>) -> usm_core::Result<Allocation<Mock>> {
    MemorySource::allocate(queue, &Request::new(AllocKind::Device, BYTES))
}

fn fill(queue: &Queue<Mock>, memory: &mut Allocation<Mock>, value: u8) -> Event<Mock> {
    queue.fill_bytes(memory, 0, BYTES, &[value]).expect("a fill")
}

fn two_queues(context: &Context<Mock>) -> (Queue<Mock>, Queue<Mock>) {
    let queue = || context.queue(QueueOrder::InOrder).expect("a queue");
    (queue(), queue())
}

/// The events that the calls of an operation waited for.
fn waits(mock: &Mock, operation: Operation) -> Vec<usize> {
    mock.calls().iter().filter(|call| call.operation == operation).map(|call| call.after).collect()
}

fn fault(operation: Operation, late: bool, kind: ErrorKind) -> Fault {
    Fault { operation, skip: 0, error: Error::from(kind).with_native(-5), late }
}

#[test]
fn an_address_comes_back_in_the_order_of_its_queue_before_anything_has_run() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let (own, other) = two_queues(&context);
    let mut first = bytes(&own);
    let address = first.as_ptr();
    let _ = fill(&own, &mut first, 1);
    drop(first);
    assert_eq!((mock.live_blocks(), context.deferred_frees()), (0, 0));
    // Another queue may be at another point of its order: it must wait until the free has run.
    assert_ne!(bytes(&other).as_ptr(), address);
    let mut second = bytes(&own);
    assert_eq!(second.as_ptr(), address);
    let _ = fill(&own, &mut second, 2);
    assert_eq!(context.query(address).expect("an answer").base, address.addr());
    drop(second);
    assert_eq!(context.query(address).expect("an answer").kind, AllocKind::Unknown);
    assert_eq!(mock.queued(), 8, "nothing has run");
    mock.finish();
    let taken = [bytes(&other), bytes(&other)];
    assert!(taken.iter().any(|memory| memory.as_ptr() == address), "the free has run");
    assert_eq!(mock.violations(), []);
}

#[test]
fn only_what_another_queue_does_is_waited_for() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let (own, other) = two_queues(&context);
    let mut memory = bytes(&own);
    let _ = fill(&own, &mut memory, 1);
    drop(memory);
    assert_eq!((waits(&mock, Operation::Fill), waits(&mock, Operation::FreeInOrder)), (vec![0], vec![0]));
    let mut memory = bytes(&own);
    let _ = fill(&other, &mut memory, 2);
    drop(memory);
    assert_eq!(waits(&mock, Operation::Fill), [0, 1], "the fill waits for the allocation");
    assert_eq!(waits(&mock, Operation::FreeInOrder), [0, 1], "the free waits for the fill");
}

/// It must not wait for later work of that queue, which may take long or wait for the other queue.
#[test]
fn the_first_use_on_another_queue_waits_for_the_allocation_only() {
    let comes_first = (0..50).any(|seed| {
        let mock = Mock::new(Progress::Manual);
        mock.seed(seed);
        let context = mock.context();
        let (own, other) = two_queues(&context);
        let mut memory = bytes(&own);
        let later = own.barrier(&[]).expect("a barrier");
        let filled = fill(&other, &mut memory, 1);
        while filled.status().expect("a state") == EventStatus::Pending {
            assert!(mock.step(), "something may run");
        }
        let comes_first = later.status().expect("a state") == EventStatus::Pending;
        mock.finish();
        assert_eq!(mock.violations(), []);
        comes_first
    });
    assert!(comes_first);
}

/// On an out-of-order queue events order everything.
#[test]
fn an_out_of_order_queue_orders_by_events() {
    for seed in 0..200 {
        let mock = Mock::new(Progress::Manual);
        mock.seed(seed);
        let context = mock.context();
        let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
        let mut memory = bytes(&queue);
        let _ = fill(&queue, &mut memory, 1);
        drop(memory);
        drop(bytes(&queue));
        assert_eq!(
            (waits(&mock, Operation::Fill), waits(&mock, Operation::FreeInOrder)),
            (vec![1], vec![1, 1])
        );
        mock.finish();
        assert_eq!((mock.violations(), mock.queued()), (vec![], 0));
    }
}

/// The driver without usm-core: it reports the accesses that usm-core must prevent.
#[test]
fn work_outside_of_the_time_of_its_memory_is_found() {
    type Submit = fn(&Queue<Mock>, &Queue<Mock>);
    fn allocate(queue: &Queue<Mock>) -> (Block, MockEvent) {
        let layout = Layout::from_size_align(BYTES, 64).expect("a layout");
        let (pointer, event) = <Mock as QueueMemory<Mock>>::allocate(queue.raw(), layout).expect("memory");
        (Block { pointer, size: BYTES, alignment: 64, kind: AllocKind::Device }, event)
    }
    fn touch(queue: &Queue<Mock>, block: &Block, after: &[MockEvent]) -> MockEvent {
        // SAFETY: this driver's memory keeps its place until the driver is dropped.
        unsafe { queue.raw().fill(block.pointer.as_ptr(), &[1], BYTES, after) }.expect("a fill")
    }
    fn free(queue: &Queue<Mock>, block: &Block, after: &[MockEvent]) {
        // SAFETY: as above; the driver reports the misuse.
        unsafe { <Mock as QueueMemory<Mock>>::free(queue.raw(), block, after) }.expect("a free");
    }
    let right: Submit = |own, other| {
        let (block, allocated) = allocate(own);
        let used = touch(other, &block, &[allocated]);
        free(own, &block, &[used]);
    };
    let too_early: Submit = |own, other| {
        let (block, _) = allocate(own);
        let used = touch(other, &block, &[]);
        free(own, &block, &[used]);
    };
    let too_late: Submit = |own, other| {
        let (block, allocated) = allocate(own);
        let _ = touch(other, &block, &[allocated]);
        free(own, &block, &[]);
    };
    let after_the_free: Submit = |own, _| {
        let (block, _) = allocate(own);
        free(own, &block, &[]);
        let _ = touch(own, &block, &[]);
    };
    let twice: Submit = |own, _| {
        let (block, _) = allocate(own);
        free(own, &block, &[]);
        free(own, &block, &[]);
    };
    let found = |submit: Submit| {
        (0..50).any(|seed| {
            let mock = Mock::new(Progress::Manual);
            mock.seed(seed);
            let context = mock.context();
            let (own, other) = two_queues(&context);
            submit(&own, &other);
            mock.finish();
            !mock.violations().is_empty()
        })
    };
    assert!(!found(right));
    assert_eq!([too_early, too_late, after_the_free, twice].map(found), [true; 4]);
}

#[test]
fn a_free_that_is_refused_waits_for_the_uses_in_the_list() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let (own, other) = two_queues(&context);
    let mut memory = bytes(&own);
    let address = memory.as_ptr();
    let _ = fill(&other, &mut memory, 1);
    mock.inject(fault(Operation::FreeInOrder, false, ErrorKind::Native { operation: "the driver's call" }));
    drop(memory);
    // Outside the statistics, like all memory of a dropped queue array, and still allocated.
    assert_eq!((context.stats().sum.live, context.deferred_frees(), mock.live_blocks()), (0, 1, 1));
    drop(own);
    context.collect();
    assert_eq!(context.deferred_frees(), 1);
    mock.finish();
    context.collect();
    assert_eq!((context.deferred_frees(), mock.live_blocks(), mock.violations()), (0, 0, vec![]));
    // The block returned to the pool of queue memory.
    assert_eq!(bytes(&other).as_ptr(), address);
}

#[test]
fn a_free_that_fails_as_it_runs_gives_the_memory_to_nobody() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let (own, other) = two_queues(&context);
    let memory = bytes(&own);
    let address = memory.as_ptr();
    mock.inject(fault(Operation::FreeInOrder, true, ErrorKind::Native { operation: "the driver's call" }));
    drop(memory);
    let last = own.barrier(&[]).expect("a barrier");
    mock.finish();
    assert_eq!(last.status().expect_err("later work fails too").native, Some(-5));
    assert_ne!(bytes(&own).as_ptr(), address);
    assert_ne!(bytes(&other).as_ptr(), address);
    assert_eq!((context.stats().sum.live, mock.violations()), (0, vec![]));
}

#[test]
fn an_allocation_that_fails_as_it_runs_fails_what_uses_it() {
    let mock = Mock::new(Progress::OnWait);
    let context = mock.context();
    let (own, other) = two_queues(&context);
    mock.inject(fault(
        Operation::AllocateInOrder,
        true,
        ErrorKind::Native { operation: "the driver's call" },
    ));
    let mut memory = bytes(&own);
    let filled = fill(&other, &mut memory, 1);
    assert_eq!(filled.wait().expect_err("no memory").native, Some(-5));
    context.set_wait_limit(Duration::from_millis(5));
    drop((memory, own, other));
    drop(context);
    assert_eq!(mock.violations(), []);
}

#[test]
fn a_refused_allocation_leaves_no_trace() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let (own, _) = two_queues(&context);
    let requested = BYTES as u64;
    let full = ErrorKind::OutOfMemory { memory_type: MemoryType::UsmDevice, requested };
    mock.inject(fault(Operation::AllocateInOrder, false, full));
    let refused = try_bytes(&own).expect_err("full");
    assert_eq!((refused.kind, refused.native), (full, Some(-5)));
    assert_eq!((context.stats().sum.count, mock.live_blocks()), (0, 0));
    // The whole memory is free again.
    let half = Request::new(AllocKind::Device, 1 << 29);
    let halves = [(); 2].map(|()| own.context().allocate(&half).expect("memory"));
    let refused = try_bytes(&own).expect_err("no room").kind;
    assert!(matches!(refused, ErrorKind::OverMemory { .. }), "{refused}");
    drop(halves);
    drop(bytes(&own));
}

/// For any memory: the device gets no work.
#[test]
fn a_host_view_keeps_allocations_and_frees_from_the_device() {
    for history in [0, 100] {
        let mock = Mock::new(Progress::OnWait).without_concurrent_access();
        let context = mock.context();
        context.keep_history(history);
        let (own, other) = two_queues(&context);
        let shared = UsmVec::<u32, Shared, Mock>::from_slice(&own, &[1, 2, 3]).expect("an array");
        let mut before = bytes(&own);
        let _ = fill(&other, &mut before, 1);
        let view = shared.read().expect("a view");
        let submitted = waits(&mock, Operation::AllocateInOrder).len();
        let during = bytes(&own);
        assert!(during.is_of_queue());
        drop((before, bytes(&own)));
        assert_eq!((mock.queued(), waits(&mock, Operation::FreeInOrder).len()), (0, 0));
        assert_eq!(waits(&mock, Operation::AllocateInOrder).len(), submitted);
        // The view waited for all work, so freed memory is available at once.
        assert_eq!((context.stats().sum.live, context.deferred_frees(), mock.live_blocks()), (2, 0, 2));
        drop(view);
        drop((during, bytes(&own)));
        assert_eq!(
            waits(&mock, Operation::FreeInOrder).len(),
            1,
            "queue memory is freed in queue order again"
        );
        own.wait().expect("done");
        assert_eq!((context.stats().sum.live, mock.live_blocks(), mock.violations()), (1, 1, vec![]));
    }
}

/// While a view waits for work, the free is delayed too, because the work uses the block.
#[test]
fn a_free_beside_a_view_that_waits_goes_to_the_list() {
    let mock = Mock::new(Progress::Manual).without_concurrent_access();
    let context = mock.context();
    let own = context.queue(QueueOrder::InOrder).expect("a queue");
    let shared = UsmVec::<u32, Shared, Mock>::zeroed(&own, 4).expect("an array");
    mock.finish();
    let mut memory = bytes(&own);
    let _ = fill(&own, &mut memory, 1);
    std::thread::scope(|scope| {
        let viewing = scope.spawn(|| drop(shared.read().expect("a view")));
        while own.barrier(&[]).is_ok() {
            std::thread::yield_now();
        }
        drop(memory);
        assert_eq!((context.stats().sum.live, context.deferred_frees(), mock.live_blocks()), (1, 1, 2));
        mock.finish();
        viewing.join().expect("no panic");
    });
    context.collect();
    assert_eq!((context.deferred_frees(), mock.live_blocks(), mock.violations()), (0, 1, vec![]));
    assert_eq!(waits(&mock, Operation::FreeInOrder), [0; 0]);
}

#[test]
fn a_driver_that_has_it_and_refuses_gives_plain_memory() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let (own, _) = two_queues(&context);
    mock.inject(fault(Operation::AllocateInOrder, false, ErrorKind::Unsupported { operation: "this size" }));
    let mut memory = bytes(&own);
    let _ = fill(&own, &mut memory, 1);
    drop(memory);
    assert_eq!((context.stats().sum.live, context.deferred_frees(), mock.live_blocks()), (0, 1, 1));
    mock.finish();
    context.collect();
    assert_eq!((context.deferred_frees(), mock.live_blocks()), (0, 0));
    assert_eq!(waits(&mock, Operation::FreeInOrder), [0; 0]);
}

/// Not in the statistics, but counted against the memory's size until the runtime has it back.
#[test]
fn bytes_count_until_the_runtime_has_them() {
    let small = |info: &mut usm_core::DeviceInfo| info.global_mem_size = 3 * BYTES as u64 / 2;
    let plain = Mock::new(Progress::Manual).with_device(small).without_queue_memory();
    let refusing = Mock::new(Progress::Manual).with_device(small);
    for mock in [&plain, &refusing] {
        let context = mock.context();
        let (own, _) = two_queues(&context);
        let mut memory = bytes(&own);
        let _ = fill(&own, &mut memory, 1);
        mock.inject(fault(
            Operation::FreeInOrder,
            false,
            ErrorKind::Native { operation: "the driver's call" },
        ));
        drop(memory);
        let refused = try_bytes(&own).expect_err("the first is in use").kind;
        assert!(matches!(refused, ErrorKind::OverMemory { .. }), "{refused}");
        mock.finish();
        drop(bytes(&own));
    }
    // On an in-order queue it is available at once.
    let mock = Mock::new(Progress::Manual).with_device(small);
    let context = mock.context();
    let (own, _) = two_queues(&context);
    for _ in 0..3 {
        let mut memory = bytes(&own);
        let _ = fill(&own, &mut memory, 1);
    }
    assert_eq!(mock.queued(), 9, "nothing has run");
}

#[test]
fn a_lost_device_keeps_the_memory_and_reports_it() {
    let mock = Mock::new(Progress::OnWait);
    let context = mock.context();
    let (own, _) = two_queues(&context);
    let mut memory = bytes(&own);
    let _ = fill(&own, &mut memory, 1);
    mock.lose_device();
    assert_eq!(try_bytes(&own).expect_err("lost").kind, ErrorKind::DeviceLost);
    drop((memory, own));
    assert_eq!((context.stats().sum.live, context.deferred_frees()), (0, 1));
    drop(context);
    assert_eq!((mock.live_blocks(), mock.violations()), (1, vec![]));
}

/// The event of the allocation was dropped, forgotten, or never used: the list of uses contains it.
#[test]
fn forgotten_handles_change_nothing() {
    for seed in 0..100 {
        let mock = Mock::new(Progress::Manual);
        mock.seed(seed);
        let context = mock.context();
        let (own, other) = two_queues(&context);
        let mut memory = bytes(&own);
        core::mem::forget(own);
        core::mem::forget(fill(&other, &mut memory, 1));
        let mut copy = bytes(&other);
        let _ = other.copy_bytes(&mut copy, 0, &memory, 0, BYTES).expect("a copy");
        drop(memory);
        core::mem::forget(copy);
        mock.finish();
        assert_eq!((mock.violations(), mock.queued()), (vec![], 0));
    }
}
