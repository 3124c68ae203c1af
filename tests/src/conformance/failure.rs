//! Failure: an operation that fails takes along what depends on it, and nothing else.

use std::time::Duration;

use usm_core::backend::QueueOps;
use usm_core::{
    Backend, BackendKind, Error, ErrorKind, Event, EventStatus, Queue, QueueOrder, Result, Shared, Usage,
    UsmVec,
};

use crate::{Failing, Fixture, skip};

const LEN: usize = 64;
/// Longer than any failure takes to be known.
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

/// An error of the runtime, not of a wait that gave up; with its code, which the C library of SYCL
/// does not tell.
fn is_failure(error: Error) {
    assert!(matches!(error.kind, ErrorKind::Native { .. }), "{error}");
    let tells = error.backend != Some(BackendKind::Sycl);
    assert!(error.native.map_or(!tells, |code| code != 0), "{error}");
}

/// What became of an operation behind the failed one: refused, then it never started, or it fails
/// too.
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

/// What was to be written has its old value, or none.
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
    // SAFETY: the array is the caller's alone, and has that many bytes.
    unsafe {
        queue.submit(&[Usage::write(array.allocation())], core::slice::from_ref(after), |queue, events| {
            queue.fill(pointer, &value.to_ne_bytes(), bytes, events)
        })
    }
}

/// The event says so to everybody who asks, at once and every time.
pub fn a_failed_event_fails_every_wait<B: Backend>(fixture: &Fixture<'_, B>) {
    if failing(fixture).is_none() {
        return;
    }
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        fails_every_wait(fixture, order);
    }
}

/// That on one kind of queue.
pub fn fails_every_wait<B: Backend>(fixture: &Fixture<'_, B>, order: QueueOrder) {
    let Some(failing) = failing(fixture) else { return };
    let queue = queue(fixture, order);
    let (event, fail) = failing(&queue);
    // Not yet, or already; but never complete.
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

/// The next operation of the queue, whatever memory it uses; submitted before the failure and after
/// it.
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

/// By event, then by array; work of the same queue that does not depend on it is untouched.
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
        // The first never started, so the copy depends on nothing that failed.
        Outcome::Refused => assert_eq!(two.read().expect("a view")[..], [1; LEN], "{by_array:?}"),
        Outcome::Failed => unwritten(&two, &outcome(by_array), 2),
    }
    independent.wait_for(LONG).expect("not touched by the failure");
    assert_eq!(apart.read().expect("a view")[..], [33; LEN]);
    outcome(queue.barrier(&[event]));
}

/// By event and by array.
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

/// That from one kind of queue to another.
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
    // What is new knows nothing of it.
    let fresh = queue(fixture, orders[0]);
    let mut array = shared(&fresh, 4);
    fresh.fill(&mut array, 44).expect("a fill").wait_for(LONG).expect("done");
    assert_eq!(array.read().expect("a view")[..], [44; LEN]);
}

/// The context speaks of a queue that is gone once at most, of one that lives as long as it does,
/// and the event to whoever has it.
pub fn the_failure_of_a_dropped_queue_is_reported_once<B: Backend>(fixture: &Fixture<'_, B>) {
    let Some(failing) = failing(fixture) else { return };
    let context = fixture.context;
    let queue = queue(fixture, QueueOrder::InOrder);
    let (event, fail) = failing(&queue);
    fail();
    is_failure(event.wait_for(LONG).expect_err("failed"));
    let told = || context.synchronize(LONG).map_err(is_failure).is_err();
    // What is known to have ended is in no queue: an operation of the simulated driver that failed,
    // and one whose event CUDA lost. Where the last event of a queue of CUDA is refused while it
    // works, `failures` of `tests/cuda_on_host` shows the same promise.
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
    // What is new is told anew.
    let next = context.queue(QueueOrder::InOrder).expect("a queue");
    let (event, fail) = failing(&next);
    fail();
    is_failure(event.wait_for(LONG).expect_err("failed"));
    drop((next, event));
    assert_eq!([told(), told()], [stands, false]);
}

/// Event and arrays are gone before anything failed; the context goes on.
pub fn what_fails_may_be_dropped_before<B: Backend>(fixture: &Fixture<'_, B>) {
    if failing(fixture).is_none() {
        return;
    }
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        may_be_dropped_before(fixture, order);
    }
}

/// That on one kind of queue.
pub fn may_be_dropped_before<B: Backend>(fixture: &Fixture<'_, B>, order: QueueOrder) {
    let Some(failing) = failing(fixture) else { return };
    let queue = queue(fixture, order);
    let (one, mut two) = (shared(&queue, 1), shared(&queue, 2));
    let (event, fail) = failing(&queue);
    let submitted = [fill_after(&queue, &one, 11, &event), queue.copy(&mut two, &one)];
    drop((submitted, event, one, two));
    fail();
    // Not before: at the end of the process, Intel's CPU runtime waits for ever for an out-of-order
    // queue whose last marker was pending when something before it failed.
    drop(queue);
    // Everything has ended, one way or the other. Where host and device must not meet, the next
    // view would ask the same.
    if let Err(error) = fixture.context.synchronize(LONG) {
        is_failure(error);
    }
    let fresh = fixture.context.queue(order).expect("a queue");
    let mut array = shared(&fresh, 5);
    fixture.context.collect();
    // Freed, or kept because nobody knows whether it is still used: the books know which.
    let (live, kept) = (fixture.context.stats().sum.live, fixture.context.deferred_frees());
    assert_eq!(live, kept + 1);
    fresh.fill(&mut array, 55).expect("a fill").wait_for(LONG).expect("done");
    assert_eq!(array.read().expect("a view")[..], [55; LEN]);
}
