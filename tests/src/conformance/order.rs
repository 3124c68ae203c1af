//! Order: queues, events, and the waits of views and drops.

use std::time::Duration;

use usm_core::{Backend, Device, ErrorKind, EventStatus, Host, Queue, QueueOrder, Shared, UsmVec};

use crate::Fixture;

const LEN: usize = 4096;

fn queue<B: Backend>(fixture: &Fixture<'_, B>, order: QueueOrder) -> Queue<B> {
    fixture.context.queue(order).expect("a queue")
}

fn shared<B: Backend>(queue: &Queue<B>, value: u64) -> UsmVec<u64, Shared, B> {
    UsmVec::from_slice(queue, &[value; LEN]).expect("an array")
}

/// Pending or complete before the wait, complete after.
pub fn an_event_completes<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let mut array = shared(&queue, 0);
    let event = queue.fill(&mut array, 5).expect("a fill");
    event.wait_for(Duration::from_secs(20)).expect("done");
    assert_eq!(event.status().expect("a state"), EventStatus::Complete);
    assert_eq!(event.clone().status().expect("a state"), EventStatus::Complete);
}

fn chain<B: Backend>(fixture: &Fixture<'_, B>, order: QueueOrder) {
    let queue = queue(fixture, order);
    let mut arrays: Vec<_> =
        (0..6).map(|_| UsmVec::<u64, Device, B>::zeroed(&queue, LEN).expect("an array")).collect();
    for round in 1..=4_u64 {
        let _ = queue.fill(&mut arrays[0], round).expect("a fill");
        for index in 1..arrays.len() {
            let (before, from) = arrays.split_at_mut(index);
            let _ = queue.copy(&mut from[0], &before[index - 1]).expect("a copy");
        }
    }
    for array in &arrays {
        assert_eq!(array.to_vec(&queue).expect("the content"), [4; LEN]);
    }
}

/// Twenty dependent operations, without a wait in between.
pub fn an_in_order_queue_keeps_the_order<B: Backend>(fixture: &Fixture<'_, B>) {
    chain(fixture, QueueOrder::InOrder);
}

/// The arrays carry the dependencies, so the same program is correct on an out-of-order queue.
pub fn an_out_of_order_queue_keeps_dependencies<B: Backend>(fixture: &Fixture<'_, B>) {
    chain(fixture, QueueOrder::OutOfOrder);
}

/// Work on the same array from two queues runs in the order of the calls.
pub fn two_queues_are_ordered_by_the_arrays<B: Backend>(fixture: &Fixture<'_, B>) {
    let (one, two) = (queue(fixture, QueueOrder::InOrder), queue(fixture, QueueOrder::OutOfOrder));
    let (mut left, mut right) = (shared(&one, 0), shared(&one, 0));
    for round in 1..=5 {
        let _ = one.fill(&mut left, round).expect("a fill");
        let _ = two.copy(&mut right, &left).expect("a copy");
        let _ = one.copy(&mut left, &right).expect("a copy");
    }
    assert_eq!(left.read().expect("a view")[..], [5; LEN]);
}

/// Many readers, then a writer: no reader sees its writes.
pub fn readers_run_beside_each_other_and_before_the_next_writer<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::OutOfOrder);
    let mut source = shared(&queue, 1);
    let mut targets: Vec<_> = (0..8).map(|_| shared(&queue, 0)).collect();
    for target in &mut targets {
        let _ = queue.copy(target, &source).expect("a copy");
    }
    let _ = queue.fill(&mut source, 2).expect("a fill");
    for target in &targets {
        assert_eq!(target.read().expect("a view")[..], [1; LEN]);
    }
    assert_eq!(source.read().expect("a view")[..], [2; LEN]);
}

/// A barrier completes after its events.
pub fn a_barrier_follows_its_events<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::OutOfOrder);
    let (mut left, mut right) = (shared(&queue, 0), shared(&queue, 0));
    let events = [queue.fill(&mut left, 1).expect("a fill"), queue.fill(&mut right, 1).expect("a fill")];
    queue.barrier(&events).expect("a barrier").wait().expect("done");
    for event in events {
        assert_eq!(event.status().expect("a state"), EventStatus::Complete);
    }
}

/// After the wait every event of the queue is complete.
pub fn waiting_for_a_queue_finishes_its_work<B: Backend>(fixture: &Fixture<'_, B>) {
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        let queue = queue(fixture, order);
        let mut arrays: Vec<_> = (0..4).map(|_| shared(&queue, 0)).collect();
        let events: Vec<_> = arrays.iter_mut().map(|array| queue.fill(array, 3).expect("a fill")).collect();
        queue.wait().expect("idle");
        assert!(events.iter().all(|event| event.status() == Ok(EventStatus::Complete)));
    }
}

/// An event is valid only in its context.
pub fn an_event_of_another_context_is_refused<B: Backend>(fixture: &Fixture<'_, B>) {
    let ours = queue(fixture, QueueOrder::InOrder);
    let theirs = fixture.other.queue(QueueOrder::InOrder).expect("a queue");
    let event = theirs.barrier(&[]).expect("a barrier");
    let refused = ours.barrier(&[event]).expect_err("foreign").kind;
    let (expected, found) = (fixture.context.id(), fixture.other.id());
    assert_eq!(refused, ErrorKind::WrongContext { expected, found });
}

/// The program contains no explicit wait.
pub fn a_view_waits_for_the_copy_in_flight<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let source = shared(&queue, 9);
    let mut target = UsmVec::<u64, Host, B>::zeroed(&queue, LEN).expect("an array");
    let _ = queue.copy(&mut target, &source).expect("a copy");
    assert_eq!(target.read().expect("a view")[..], [9; LEN]);
    let _ = queue.copy(&mut target, &source).expect("a copy");
    target.write().expect("a view")[0] = 1;
    let _ = queue.fill(&mut target, 4).expect("a fill");
    assert_eq!(target.read().expect("a view")[..], [4; LEN]);
}

/// The memory keeps its order, not handles that a program may forget.
pub fn a_view_waits_after_forgetting_every_handle<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::OutOfOrder);
    let source = shared(&queue, 6);
    let mut target = shared(&queue, 0);
    core::mem::forget(queue.copy(&mut target, &source).expect("a copy"));
    core::mem::forget(source);
    core::mem::forget(queue);
    assert_eq!(target.read().expect("a view")[..], [6; LEN]);
}

/// A forgotten view has no further effect.
pub fn a_forgotten_view_keeps_the_array_usable<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let mut array = shared(&queue, 1);
    core::mem::forget(array.read().expect("a view"));
    core::mem::forget(array.write().expect("a view"));
    match queue.fill(&mut array, 2) {
        Ok(event) => {
            event.wait().expect("done");
            assert_eq!(array.read().expect("a view")[0], 2);
        }
        // Without concurrent access, a forgotten view forbids launches permanently.
        Err(error) => assert!(matches!(error.kind, ErrorKind::HostViewLive { .. }), "{error}"),
    }
}

/// Source and staging memory are dropped before the copy runs.
pub fn dropping_an_array_in_flight_is_ordered_after_its_use<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::OutOfOrder);
    let mut target = shared(&queue, 0);
    for round in 1..=8 {
        let source = shared(&queue, round);
        let _ = queue.copy(&mut target, &source).expect("a copy");
        drop(source);
        // A new allocation must not overlap memory that the copy still reads.
        drop(shared(&queue, 77));
    }
    assert_eq!(target.read().expect("a view")[..], [8; LEN]);
    queue.wait().expect("idle");
    drop(target);
    fixture.context.collect();
    assert_eq!(fixture.context.stats().sum.live, 0);
    assert_eq!(fixture.context.stats().leaked, 0);
}

/// The queue's work outlives its last handle.
pub fn dropping_a_queue_in_flight_loses_nothing<B: Backend>(fixture: &Fixture<'_, B>) {
    let first = queue(fixture, QueueOrder::InOrder);
    let source = shared(&first, 3);
    let mut target = shared(&first, 0);
    let second = queue(fixture, QueueOrder::InOrder);
    let event = second.copy(&mut target, &source).expect("a copy");
    drop(second);
    event.wait().expect("done");
    assert_eq!(target.read().expect("a view")[..], [3; LEN]);
}

/// The context waits for a dropped queue: there is enough work to be in flight, and only the
/// context waits.
pub fn a_context_waits_for_the_work_of_dropped_queues<B: Backend>(fixture: &Fixture<'_, B>) {
    let most = usize::try_from(fixture.context.info().max_alloc_size).unwrap_or(usize::MAX);
    let len = (most / 4).min(8 << 20) / size_of::<u64>();
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        let queue = queue(fixture, order);
        let mut array = UsmVec::<u64, Shared, B>::zeroed(&queue, len).expect("an array");
        let events: Vec<_> = (1..=24).map(|value| queue.fill(&mut array, value).expect("a fill")).collect();
        drop(queue);
        fixture.context.synchronize(Duration::from_secs(60)).expect("idle");
        // Before any query, because a runtime may run the work only then. SAFETY: live memory that
        // the host can access, and all work of the context has ended.
        let last = unsafe { array.as_ptr().add(len - 1).read_volatile() };
        let complete = events.iter().filter(|event| event.status() == Ok(EventStatus::Complete)).count();
        assert_eq!((last, complete), (24, events.len()), "{order:?}");
        assert_eq!(array.read().expect("a view")[len - 1], 24);
    }
}
