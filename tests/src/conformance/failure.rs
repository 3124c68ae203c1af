//! A failed operation fails the operations that depend on it, and no others.

use std::time::Duration;

use usm_core::backend::QueueOps;
use usm_core::{
    Backend, BackendKind, Error, ErrorKind, Event, EventStatus, Queue, QueueOrder, Result, Shared, Usage,
    UsmVec,
};

use crate::{Failing, Fixture, skip};

const LEN: usize = 64;
/// Longer than any failure takes to be reported.
const LONG: Duration = Duration::from_secs(60);

fn queue<B: Backend>(fixture: &Fixture<'_, B>, order: QueueOrder) -> Queue<B> {
    fixture.context.queue(order).expect("a queue")
}

fn shared<B: Backend>(queue: &Queue<B>, value: u64) -> UsmVec<u64, Shared, B> {
    UsmVec::from_slice(queue, &[value; LEN]).expect("an array")
}

fn failing<'f, B: Backend>(fixture: &Fixture<'f, B>) -> Option<&'f Failing<B>> {
    if fixture.failing.is_none() {
        let backend = fixture.context.info().backend;
        let reason = if B::SYNCHRONOUS { "is done when its call returns" } else { "fails alone" };
        let no = if B::SYNCHRONOUS { "every" } else { "no" };
        skip::limit(backend, format_args!("failures of operations: {no} operation {reason}"));
    }
    fixture.failing
}

/// An error of the runtime, not a timeout. It has a native code, except from SYCL's C library.
fn is_failure(error: Error) {
    assert!(matches!(error.kind, ErrorKind::Native { .. }), "{error}");
    let tells = error.backend != Some(BackendKind::Sycl);
    assert!(error.native.map_or(!tells, |code| code != 0), "{error}");
}

/// The outcome of an operation after the failed one: refused and never started, or failed too.
enum Outcome {
    Refused,
    Failed,
}

fn outcome<B: Backend>(behind: Result<Event<B>>) -> Outcome {
    match behind {
        Err(error) => {
            is_failure(error);
            Outcome::Refused
        }
        Ok(event) => {
            is_failure(event.wait_for(LONG).expect_err("what it follows failed"));
            is_failure(event.status().expect_err("what it follows failed"));
            Outcome::Failed
        }
    }
}

/// Memory that was to be written has its old value, or none.
fn unwritten<B: Backend>(array: &UsmVec<u64, Shared, B>, outcome: &Outcome, old: u64) {
    match outcome {
        Outcome::Refused => assert_eq!(array.read().expect("nothing touched it")[..], [old; LEN]),
        Outcome::Failed => is_failure(array.read().map(drop).expect_err("nobody knows what is in it")),
    }
}

/// A fill of the whole array that waits for `after`.
fn fill_after<B: Backend>(
    queue: &Queue<B>,
    array: &UsmVec<u64, Shared, B>,
    value: u64,
    after: &Event<B>,
) -> Result<Event<B>> {
    let (pointer, bytes) = (array.allocation().as_ptr(), 8 * LEN);
    // SAFETY: only the caller has the array, which has that many bytes.
    unsafe {
        queue.submit(&[Usage::write(array.allocation())], core::slice::from_ref(after), |queue, events| {
            queue.fill(pointer, &value.to_ne_bytes(), bytes, events)
        })
    }
}

/// The event reports the failure to every caller, at once and every time.
pub fn a_failed_event_fails_every_wait<B: Backend>(fixture: &Fixture<'_, B>) {
    if failing(fixture).is_none() {
        return;
    }
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        fails_every_wait(fixture, order);
    }
}

/// The same on one kind of queue.
pub fn fails_every_wait<B: Backend>(fixture: &Fixture<'_, B>, order: QueueOrder) {
    let Some(failing) = failing(fixture) else { return };
    let queue = queue(fixture, order);
    let (event, fail) = failing(&queue);
    // Pending or failed, but never complete.
    assert_ne!(event.status(), Ok(EventStatus::Complete));
    match event.wait_for(Duration::from_millis(1)) {
        Err(Error { kind: ErrorKind::Timeout { limit_ms }, .. }) => assert_eq!(limit_ms, 1),
        early => is_failure(early.expect_err("it fails")),
    }
    fail();
    is_failure(event.wait_for(LONG).expect_err("failed"));
    is_failure(event.status().expect_err("failed"));
    is_failure(event.clone().wait().expect_err("failed"));
}

/// The next operation of the queue fails, whatever memory it uses, and whether it was submitted
/// before or after the failure.
pub fn a_failure_takes_the_rest_of_an_in_order_queue<B: Backend>(fixture: &Fixture<'_, B>) {
    let Some(failing) = failing(fixture) else { return };
    for failed_before in [false, true] {
        let queue = queue(fixture, QueueOrder::InOrder);
        let (mut first, mut second) = (shared(&queue, 1), shared(&queue, 2));
        let (event, fail) = failing(&queue);
        let mut fail = Some(fail);
        if failed_before {
            if let Some(fail) = fail.take() {
                fail();
            }
            is_failure(event.wait_for(LONG).expect_err("failed"));
        }
        let behind = queue.fill(&mut first, 11);
        let further = queue.fill(&mut second, 22);
        if let Some(fail) = fail {
            fail();
        }
        let (behind, further) = (outcome(behind), outcome(further));
        unwritten(&first, &behind, 1);
        unwritten(&second, &further, 2);
        is_failure(queue.wait().expect_err("a failed operation is not finished"));
        outcome(queue.barrier(&[]));
    }
}

/// Dependence by event, then by array. Independent work of the same queue is not affected.
pub fn a_failure_takes_its_dependants_out_of_order<B: Backend>(fixture: &Fixture<'_, B>) {
    let Some(failing) = failing(fixture) else { return };
    let queue = queue(fixture, QueueOrder::OutOfOrder);
    let (one, mut two, mut apart) = (shared(&queue, 1), shared(&queue, 2), shared(&queue, 3));
    let (event, fail) = failing(&queue);
    let by_event = fill_after(&queue, &one, 11, &event);
    let by_array = queue.copy(&mut two, &one);
    let independent = queue.fill(&mut apart, 33).expect("a fill");
    fail();
    let by_event = outcome(by_event);
    unwritten(&one, &by_event, 1);
    match by_event {
        // The first never started, so the copy does not depend on a failed operation.
        Outcome::Refused => assert_eq!(two.read().expect("a view")[..], [1; LEN], "{by_array:?}"),
        Outcome::Failed => unwritten(&two, &outcome(by_array), 2),
    }
    independent.wait_for(LONG).expect("not touched by the failure");
    assert_eq!(apart.read().expect("a view")[..], [33; LEN]);
    outcome(queue.barrier(&[event]));
}

/// Dependence by event and by array.
pub fn a_failure_crosses_queues<B: Backend>(fixture: &Fixture<'_, B>) {
    if failing(fixture).is_none() {
        return;
    }
    for orders in [
        [QueueOrder::InOrder, QueueOrder::InOrder],
        [QueueOrder::InOrder, QueueOrder::OutOfOrder],
        [QueueOrder::OutOfOrder, QueueOrder::InOrder],
    ] {
        crosses_queues(fixture, orders);
    }
}

/// The same from one kind of queue to another.
pub fn crosses_queues<B: Backend>(fixture: &Fixture<'_, B>, orders: [QueueOrder; 2]) {
    let Some(failing) = failing(fixture) else { return };
    let [here, there] = orders.map(|order| queue(fixture, order));
    let (one, mut two, mut three) = (shared(&there, 1), shared(&there, 2), shared(&there, 3));
    let before = there.fill(&mut three, 33).expect("a fill");
    let (event, fail) = failing(&here);
    let by_event = fill_after(&here, &one, 11, &event);
    let across = there.copy(&mut two, &one);
    fail();
    match outcome(by_event) {
        Outcome::Refused => assert_eq!(two.read().expect("a view")[..], [1; LEN], "{across:?}"),
        Outcome::Failed => unwritten(&two, &outcome(across), 2),
    }
    before.wait_for(LONG).expect("submitted before, to another queue");
    assert_eq!(three.read().expect("a view")[..], [33; LEN]);
    outcome(there.barrier(core::slice::from_ref(&event)));
    // New arrays and queues are not affected.
    let fresh = queue(fixture, orders[0]);
    let mut array = shared(&fresh, 4);
    fresh.fill(&mut array, 44).expect("a fill").wait_for(LONG).expect("done");
    assert_eq!(array.read().expect("a view")[..], [44; LEN]);
}

/// A context reports a dropped queue's failure at most once, and a live queue's failure as long as
/// the queue lives. An event reports its failure to everyone that has it.
pub fn the_failure_of_a_dropped_queue_is_reported_once<B: Backend>(fixture: &Fixture<'_, B>) {
    let Some(failing) = failing(fixture) else { return };
    let context = fixture.context;
    let queue = queue(fixture, QueueOrder::InOrder);
    let (event, fail) = failing(&queue);
    fail();
    is_failure(event.wait_for(LONG).expect_err("failed"));
    let told = || context.synchronize(LONG).map_err(is_failure).is_err();
    // An operation that is known to have ended is in no queue: a failed operation of the simulated
    // driver, or one whose event CUDA lost. `failures` of `tests/cuda_on_host` shows the same
    // promise for a CUDA queue whose last event is refused while it works.
    let stands = !matches!(context.info().backend, BackendKind::Mock | BackendKind::Cuda | BackendKind::Hip);
    let while_it_lives = [told(), told()];
    drop(queue);
    assert_eq!((while_it_lives, told()), ([stands; 2], stands));
    for _ in 0..2 {
        context.synchronize(LONG).expect("what failed was told, and nothing came since");
        let pending = context.pending(LONG).expect("what is in flight");
        pending.wait(LONG).expect("as above");
    }
    is_failure(event.status().expect_err("failed"));
    // A new failure is reported again.
    let next = context.queue(QueueOrder::InOrder).expect("a queue");
    let (event, fail) = failing(&next);
    fail();
    is_failure(event.wait_for(LONG).expect_err("failed"));
    drop((next, event));
    assert_eq!([told(), told()], [stands, false]);
}

/// Event and arrays are dropped before the failure; the context stays usable.
pub fn what_fails_may_be_dropped_before<B: Backend>(fixture: &Fixture<'_, B>) {
    if failing(fixture).is_none() {
        return;
    }
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        may_be_dropped_before(fixture, order);
    }
}

/// The same on one kind of queue.
pub fn may_be_dropped_before<B: Backend>(fixture: &Fixture<'_, B>, order: QueueOrder) {
    let Some(failing) = failing(fixture) else { return };
    let queue = queue(fixture, order);
    let (one, mut two) = (shared(&queue, 1), shared(&queue, 2));
    let (event, fail) = failing(&queue);
    let submitted = [fill_after(&queue, &one, 11, &event), queue.copy(&mut two, &one)];
    drop((submitted, event, one, two));
    fail();
    // Not earlier: at the end of the process, Intel's CPU runtime never returns if the last marker
    // of an out-of-order queue was pending when an operation before it failed.
    drop(queue);
    // All work has ended. Without concurrent access the next view would report the same failure.
    if let Err(error) = fixture.context.synchronize(LONG) {
        is_failure(error);
    }
    let fresh = fixture.context.queue(order).expect("a queue");
    let mut array = shared(&fresh, 5);
    fixture.context.collect();
    // The block is freed, or leaked because it may still be in use. The statistics say which.
    let (live, kept) = (fixture.context.stats().sum.live, fixture.context.deferred_frees());
    assert_eq!(live, kept + 1);
    fresh.fill(&mut array, 55).expect("a fill").wait_for(LONG).expect("done");
    assert_eq!(array.read().expect("a view")[..], [55; LEN]);
}
