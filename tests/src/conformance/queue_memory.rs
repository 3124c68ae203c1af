//! Memory from a queue: allocated and freed in queue order where the runtime supports that, and
//! used in the same way elsewhere.

use usm_core::history::{Operation, Record};
use usm_core::{
    AllocKind, Allocation, Backend, Device, ErrorKind, Fallback, Host, MemorySource, MemoryType, Queue,
    QueueOrder, Request, Shared, UsmVec,
};
use usm_pool::arena::Arena;
use usm_pool::{Buffer, Options, Problem, plan};

use super::accounting::books;
use crate::Fixture;

const LEN: usize = 1024;
const ORDERS: [QueueOrder; 2] = [QueueOrder::InOrder, QueueOrder::OutOfOrder];

fn queue<B: Backend>(fixture: &Fixture<'_, B>, order: QueueOrder) -> Queue<B> {
    fixture.context.queue(order).expect("a queue")
}

fn bytes<B: Backend>(queue: &Queue<B>, size: usize) -> Allocation<B> {
    MemorySource::allocate(queue, &Request::new(AllocKind::Device, size)).expect("memory")
}

/// An array of the queue, filled on the queue.
fn filled<B: Backend>(queue: &Queue<B>, value: u32) -> UsmVec<u32, Device, B> {
    let mut array = UsmVec::zeroed_in(queue, queue, LEN).expect("an array");
    let _ = queue.fill(&mut array, value).expect("a fill");
    array
}

/// Any pointer into it is known, and none after its free.
pub fn memory_of_a_queue_is_device_memory<B: Backend>(fixture: &Fixture<'_, B>) {
    for order in ORDERS {
        let queue = queue(fixture, order);
        for alignment in [1, 64, 4096] {
            let request = Request::new(AllocKind::Device, 1000).aligned_to(alignment);
            let memory = MemorySource::allocate(&queue, &request).expect("memory");
            assert_eq!(
                (memory.kind(), memory.size(), memory.as_ptr().addr() % alignment),
                (AllocKind::Device, 1000, 0)
            );
            assert_eq!(memory.context().id(), fixture.context.id());
            let base = memory.as_ptr();
            for inside in [0, 1, 999] {
                let info = fixture.context.query(base.wrapping_add(inside)).expect("an answer");
                assert_eq!((info.kind, info.base, info.size), (AllocKind::Device, base.addr(), 1000));
                assert_eq!(info.device, Some(fixture.context.info().ordinal));
            }
            let behind = fixture.context.query(base.wrapping_add(1000)).expect("an answer");
            assert_ne!(behind.base, base.addr());
            drop(memory);
            queue.wait().expect("idle");
            assert_eq!(fixture.context.query(base).expect("an answer").kind, AllocKind::Unknown);
        }
    }
}

/// Used without a wait and without an explicit event.
pub fn memory_of_a_queue_is_used_at_once<B: Backend>(fixture: &Fixture<'_, B>) {
    for order in ORDERS {
        let queue = queue(fixture, order);
        let mut one = filled(&queue, 1);
        let two = filled(&queue, 2);
        let _ = queue.copy(&mut one, &two).expect("a copy");
        drop(two);
        assert_eq!(one.to_vec(&queue).expect("the content"), [2; LEN]);
    }
}

/// Each round may reuse the memory of the previous one, whose work is in flight.
pub fn memory_freed_in_flight_serves_the_next<B: Backend>(fixture: &Fixture<'_, B>) {
    for order in ORDERS {
        let queue = queue(fixture, order);
        let mut results = Vec::new();
        for round in 0..20_u32 {
            let mut result = UsmVec::<u32, Host, B>::zeroed(&queue, LEN).expect("an array");
            let scratch = filled(&queue, round);
            let _ = queue.copy(&mut result, &scratch).expect("a copy");
            results.push(result);
        }
        for (round, result) in (0_u32..).zip(&results) {
            assert_eq!(result.read().expect("a view")[..], [round; LEN]);
        }
    }
}

/// The first use on another queue waits for the allocation, and the free waits for the last use.
pub fn another_queue_uses_memory_of_a_queue<B: Backend>(fixture: &Fixture<'_, B>) {
    for (own, others) in ORDERS.into_iter().flat_map(|own| ORDERS.map(|others| (own, others))) {
        let (own, other) = (queue(fixture, own), queue(fixture, others));
        let mut results = Vec::new();
        for round in 1..=10_u32 {
            // Only the allocation is submitted to its own queue.
            let mut memory = bytes(&own, 4 * LEN);
            let _ = other.fill_bytes(&mut memory, 0, 4 * LEN, &round.to_ne_bytes()).expect("a fill");
            let mut result =
                fixture.context.allocate(&Request::new(AllocKind::Host, 4 * LEN)).expect("memory");
            let _ = other.copy_bytes(&mut result, 0, &memory, 0, 4 * LEN).expect("a copy");
            drop(memory);
            // The other queue's copy does not see the own queue's next use of the memory.
            drop(filled(&own, u32::MAX));
            results.push(result);
        }
        for (round, result) in (1_u32..).zip(results) {
            // SAFETY: the copy wrote every element.
            let result = unsafe { UsmVec::<u32, Host, B>::from_allocation(result, LEN) };
            let result = result.map_err(|(_, error)| error).expect("an array");
            assert_eq!(result.read().expect("a view")[..], [round; LEN]);
        }
    }
}

/// Work and memory outlive the queue, and the free is still ordered.
pub fn memory_of_a_queue_outlives_its_queue<B: Backend>(fixture: &Fixture<'_, B>) {
    for order in ORDERS {
        let (gone, other) = (queue(fixture, order), queue(fixture, order));
        let mut array = filled(&gone, 5);
        drop(gone);
        let copy = {
            let mut copy = filled(&other, 0);
            let _ = other.copy(&mut copy, &array).expect("a copy");
            copy
        };
        let _ = other.fill(&mut array, 6).expect("a fill");
        drop(array);
        assert_eq!(copy.to_vec(&other).expect("the content"), [5; LEN]);
    }
}

/// Only device memory follows the queue's order. Other kinds, and requests that do not fit, are the
/// context's memory.
pub fn other_kinds_from_a_queue_are_memory_of_its_context<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    for kind in [AllocKind::Host, AllocKind::Shared] {
        let memory = MemorySource::allocate(&queue, &Request::new(kind, 100)).expect("memory");
        assert_eq!((memory.kind(), memory.is_of_queue()), (kind, false));
        let guard = memory.wait_for_host(usm_core::Access::Write).expect("the host may");
        drop(guard);
    }
    let mut views = UsmVec::<u32, Host, B>::zeroed_in(&queue, &queue, 8).expect("an array");
    views.write().expect("a view")[7] = 1;
    let over = usize::try_from(fixture.context.info().global_mem_size).unwrap_or(usize::MAX);
    let stats = fixture.context.stats();
    for (size, kind) in
        [(0, AllocKind::Device), (over.saturating_add(1), AllocKind::Device), (8, AllocKind::Unknown)]
    {
        let refused = MemorySource::allocate(&queue, &Request::new(kind, size)).expect_err("refused").kind;
        let plain = fixture.context.allocate(&Request::new(kind, size)).expect_err("refused").kind;
        assert_eq!(refused, plain);
    }
    let bad = Request::new(AllocKind::Device, 8).aligned_to(3).or(Fallback::Host);
    let refused = MemorySource::allocate(&queue, &bad).expect_err("refused").kind;
    assert_eq!(refused, ErrorKind::BadAlignment { alignment: 3 });
    assert_eq!(fixture.context.stats(), stats);
}

/// The text that [`memory_of_a_queue_has_the_same_books`] produces on every backend: history, then
/// statistics.
const BOOKS: &str = "\
GPU_Debug: Allocate 100 bytes of usm_device allocation type (current=100; max=100)
GPU_Debug: Allocate 4096 bytes of usm_device allocation type (current=4196; max=4196)
GPU_Debug: Free 100 bytes of usm_device allocation type (current=4096; max=4196)
GPU_Debug: Free 4096 bytes of usm_device allocation type (current=0; max=4196)
GPU_Debug: Allocate 4096 bytes of usm_device allocation type (current=4096; max=4196)
usm_device: current=4096 peak=4196 total=8292 live=1 count=3
sum: current=4096 peak=4196 total=8292 live=1 count=3 leaked=0
";

/// A dropped block leaves the statistics at once, in flight or not, so the numbers do not depend on
/// timing.
pub fn memory_of_a_queue_has_the_same_books<B: Backend>(fixture: &Fixture<'_, B>) {
    let (context, queue) = (fixture.context, queue(fixture, QueueOrder::InOrder));
    for history in [true, false] {
        let before = context.stats();
        context.keep_history(if history { 100 } else { 0 });
        let idle = bytes(&queue, 100);
        let mut in_flight = bytes(&queue, 4096);
        let _ = queue.fill_bytes(&mut in_flight, 0, 4096, &[1]).expect("a fill");
        drop(idle);
        drop(in_flight);
        let last = bytes(&queue, 4096);
        if history {
            let named = |record: &Record| record.operation == Operation::Allocate || record.address != 0;
            assert!(context.history().iter().all(named));
            assert_eq!(books(context, &[MemoryType::UsmDevice]), BOOKS);
        } else {
            assert_eq!(context.stats().sum.current, before.sum.current + 4096);
            assert_eq!(context.stats().sum.count, before.sum.count + 3);
        }
        drop(last);
        assert_eq!(context.stats().sum.live, before.sum.live);
        context.synchronize(core::time::Duration::from_secs(20)).expect("idle");
        assert_eq!((context.stats().sum.live, context.deferred_frees()), (before.sum.live, 0));
    }
}

/// Another process cannot follow the order, so every runtime refuses, with or without handles.
pub fn memory_of_a_queue_is_not_shared_with_other_processes<B: Backend + 'static>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let refused = bytes(&queue, 4096).export_ipc().expect_err("refused").kind;
    assert!(matches!(refused, ErrorKind::Unsupported { .. }), "{refused}");
    // The same for a part of it, and for a part of a part.
    let plan = {
        let problem = Problem::from_buffers(vec![Buffer::new(1, 0, 1, 4096).aligned(64)]).expect("a problem");
        plan(&problem, &Options::default()).expect("a plan")
    };
    let arena = Arena::new(&plan, &queue, AllocKind::Device).expect("an arena");
    let part = arena.tensor(1).expect("a part");
    let within = Arena::new(&plan, &part, AllocKind::Device).expect("an arena in a part");
    let part = within.tensor(1).expect("a part").allocation().expect("memory");
    assert_eq!(part.is_of_queue(), bytes(&queue, 4096).is_of_queue());
    assert_eq!(part.export_ipc().expect_err("refused").kind, refused);
    // Parts of other memory are shared like the memory itself.
    let arena = Arena::new(&plan, fixture.context, AllocKind::Device).expect("an arena");
    let part = arena.tensor(1).expect("a part").allocation().expect("memory");
    assert!(!part.is_of_queue());
    let whole = fixture.context.allocate(&Request::new(AllocKind::Device, 4096)).expect("memory");
    assert_eq!(part.export_ipc().is_ok(), whole.export_ipc().is_ok());
}

/// Parts are used like parts of other memory.
pub fn an_arena_in_memory_of_a_queue<B: Backend + 'static>(fixture: &Fixture<'_, B>) {
    let (own, other) = (queue(fixture, QueueOrder::InOrder), queue(fixture, QueueOrder::OutOfOrder));
    let buffer = |id, from, to| Buffer::new(id, from, to, 4 * LEN as u64).aligned(64);
    let problem =
        Problem::from_buffers(vec![buffer(1, 0, 2), buffer(2, 1, 3), buffer(3, 2, 4)]).expect("a problem");
    let plan = plan(&problem, &Options::default()).expect("a plan");
    for round in 1..=10_u32 {
        let arena = Arena::new(&plan, &own, AllocKind::Device).expect("an arena");
        let array = |id| {
            let part = arena.tensor(id).expect("a part");
            UsmVec::<u32, Device, B>::zeroed_in(&other, &part, LEN).expect("an array")
        };
        let (mut one, mut two) = (array(1), array(2));
        let _ = other.fill(&mut one, round).expect("a fill");
        let _ = other.copy(&mut two, &one).expect("a copy");
        drop(one);
        let three = array(3);
        assert_eq!(two.to_vec(&other).expect("the content"), [round; LEN]);
        assert_eq!(three.to_vec(&other).expect("the content"), [0; LEN]);
    }
}

/// Reuse needs more than one round. Each operation of a late driver switches threads twice, and
/// valgrind runs one thread at a time.
const ROUNDS: u32 = if cfg!(usm_valgrind) { 3 } else { 10 };

/// One queue allocates for several threads, each of which works on its own queue.
pub fn threads_take_memory_of_one_queue<B: Backend>(fixture: &Fixture<'_, B>) {
    let own = queue(fixture, QueueOrder::InOrder);
    let work = |thread: u32| {
        let other = queue(fixture, ORDERS[thread as usize % 2]);
        let round = |round: u32| {
            let mut array = filled(&own, 1);
            let _ = other.fill(&mut array, 100 * thread + round).expect("a fill");
            let mut copy = filled(&own, 0);
            let _ = other.copy(&mut copy, &array).expect("a copy");
            (100 * thread + round, copy)
        };
        (0..ROUNDS).map(round).collect::<Vec<_>>()
    };
    let copies = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    // One thread checks all: on some devices a host view excludes other threads' work.
    for (expected, copy) in copies {
        assert_eq!(copy.to_vec(&own).expect("the content"), [expected; LEN]);
    }
}

/// Without concurrent access the device starts nothing during a host view. Memory and statistics
/// stay correct.
pub fn a_host_view_lives_across_memory_of_a_queue<B: Backend>(fixture: &Fixture<'_, B>) {
    for order in ORDERS {
        let queue = queue(fixture, order);
        let seen = UsmVec::<u32, Shared, B>::from_slice(&queue, &[7; LEN]).expect("an array");
        let (before, mut kept) = (bytes(&queue, 4 * LEN), bytes(&queue, 4 * LEN));
        let _ = queue.fill_bytes(&mut kept, 0, 4 * LEN, &[1]).expect("a fill");
        let live = fixture.context.stats().sum.live;
        let view = seen.read().expect("a view");
        let look = || assert_eq!(view[..], [7; LEN]);
        look();
        drop(before);
        look();
        let (short, mut long) = (bytes(&queue, 4 * LEN), bytes(&queue, 4 * LEN));
        look();
        assert_eq!(fixture.context.stats().sum.live, live + 1);
        drop(short);
        look();
        drop(kept);
        look();
        assert_eq!(fixture.context.stats().sum.live, live - 1);
        drop(view);
        // Memory allocated during the view is used like any other.
        let _ = queue.fill_bytes(&mut long, 0, 4 * LEN, &3_u32.to_ne_bytes()).expect("a fill");
        let mut copy = UsmVec::<u32, Host, B>::zeroed(&queue, LEN).expect("an array").into_allocation();
        let _ = queue.copy_bytes(&mut copy, 0, &long, 0, 4 * LEN).expect("a copy");
        drop(long);
        // SAFETY: zeroed, then copied to.
        let copy = unsafe { UsmVec::<u32, Host, B>::from_allocation(copy, LEN) };
        assert_eq!(copy.map_err(|(_, error)| error).expect("an array").read().expect("a view")[..], [3; LEN]);
        drop(seen);
        queue.wait().expect("idle");
        fixture.context.collect();
        let stats = fixture.context.stats();
        assert_eq!((stats.sum.live, stats.leaked, fixture.context.deferred_frees()), (0, 0, 0));
    }
}
