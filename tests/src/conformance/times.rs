//! When a device worked on an operation.

use std::time::Duration;

use usm_core::{Backend, Device, ErrorKind, Queue, QueueOrder, UsmVec};

use crate::{Fixture, skip};

const LEN: usize = 1 << 16;

/// A timed queue, unless the runtime measures no times.
fn timed<B: Backend>(fixture: &Fixture<'_, B>, order: QueueOrder) -> Option<Queue<B>> {
    match fixture.context.timed_queue(order) {
        Ok(queue) => Some(queue),
        Err(error) => {
            assert!(matches!(error.kind, ErrorKind::Unsupported { .. }), "{error}");
            skip::limit(fixture.context.info().backend, "no times of events");
            None
        }
    }
}

/// Each operation of an in-order queue begins after the one before has ended.
pub fn operations_of_a_timed_queue_follow_each_other<B: Backend>(fixture: &Fixture<'_, B>) {
    let Some(queue) = timed(fixture, QueueOrder::InOrder) else { return };
    let source = UsmVec::<u64, Device, B>::zeroed(&queue, LEN).expect("an array");
    let mut target = UsmVec::<u64, Device, B>::zeroed(&queue, LEN).expect("an array");
    let events: Vec<_> = (0..5).map(|_| queue.copy(&mut target, &source).expect("a copy")).collect();
    // The last one is asked first, while the others may be pending.
    let mut times: Vec<_> = events.iter().rev().map(|event| event.times().expect("its times")).collect();
    times.reverse();
    for pair in times.windows(2) {
        assert!(pair[0].started <= pair[0].ended, "{pair:?}");
        // CUDA gives both in single precision.
        assert!(pair[0].ended <= pair[1].started + Duration::from_micros(5), "{pair:?}");
    }
    assert!(times.iter().any(|times| !times.elapsed().is_zero()), "{times:?}");
    // The times of an event stay what they are.
    assert_eq!(events[4].clone().times().expect("its times"), times[4]);
}

/// All operations lie between the first and the last call, out of order too.
pub fn operations_of_a_timed_queue_lie_between_its_first_and_last<B: Backend>(fixture: &Fixture<'_, B>) {
    let Some(queue) = timed(fixture, QueueOrder::OutOfOrder) else { return };
    let mut array = UsmVec::<u64, Device, B>::zeroed(&queue, LEN).expect("an array");
    let first = queue.fill(&mut array, 1).expect("a fill").times().expect("its times");
    let between = queue.fill(&mut array, 2).expect("a fill");
    let last = queue.fill(&mut array, 3).expect("a fill");
    let (between, last) = (between.times().expect("its times"), last.times().expect("its times"));
    let slack = Duration::from_micros(5);
    assert!(first.ended <= between.started + slack && between.ended <= last.started + slack);
    assert_eq!(array.to_vec(&queue).expect("the content"), [3; LEN]);
}

/// An event of another queue says that it has no times.
pub fn an_event_of_a_plain_queue_has_no_times<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = fixture.context.queue(QueueOrder::InOrder).expect("a queue");
    let mut array = UsmVec::<u64, Device, B>::zeroed(&queue, LEN).expect("an array");
    let event = queue.fill(&mut array, 1).expect("a fill");
    let error = event.times().expect_err("no times");
    assert!(matches!(error.kind, ErrorKind::Unsupported { .. }), "{error}");
    event.wait().expect("the event works as before");
}
