//! Work that is submitted and recorded between the submission and the recording of another
//! operation: the actions of two threads, in a known order on one thread.

use core::time::Duration;

use usm_core::backend::QueueOps;
use usm_core::backend::mock::{Mock, Progress};
use usm_core::backend::mock::{MockEvent, MockQueue};
use usm_core::{Context, Queue, QueueOrder, Shared, Usage, UsmVec};

type Array = UsmVec<u8, Shared, Mock>;

fn array(queue: &Queue<Mock>) -> Array {
    UsmVec::zeroed(queue, 64).expect("memory")
}

/// Submits a barrier that names `usages`, makes the device run it, and copies `source` by `reading`
/// before the barrier is recorded.
fn copy_meanwhile(
    mock: &Mock,
    naming: &Queue<Mock>,
    usages: &[Usage<'_, Mock>],
    reading: &Queue<Mock>,
    source: &Array,
) {
    let mut to = array(reading);
    // SAFETY: `submit` gives events of the queue's context.
    let barrier = |queue: &MockQueue, after: &[MockEvent]| unsafe { queue.barrier(after) };
    // SAFETY: a barrier touches no memory.
    let named = unsafe {
        naming.submit(usages, &[], |queue, after| {
            let event = barrier(queue, after)?;
            assert!(mock.step());
            let _ = reading.copy(&mut to, source)?;
            Ok(event)
        })
    };
    drop(named.expect("a barrier"));
    // The destination is forgotten, so no wait for it finds the copy.
    core::mem::forget(to);
}

/// The last handle is dropped while the copy is queued, which must have been recorded.
fn expect_in_flight(mock: &Mock, context: &Context<Mock>, source: Array) {
    assert_eq!(mock.queued(), 1);
    drop(source);
    context.collect();
    assert_eq!((mock.violations(), context.deferred_frees()), (vec![], 1));
    mock.finish();
    context.collect();
    assert_eq!((mock.violations(), context.deferred_frees()), (vec![], 0));
}

#[test]
fn a_read_that_is_noted_late_does_not_replace_a_later_one_of_the_same_queue() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    context.set_wait_limit(Duration::ZERO);
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let source = array(&queue);
    copy_meanwhile(&mock, &queue, &[Usage::read(source.allocation())], &queue, &source);
    expect_in_flight(&mock, &context, source);
}

#[test]
fn a_write_that_is_noted_late_does_not_replace_a_read_that_came_meanwhile() {
    for usages in [1, 8, 9] {
        let mock = Mock::new(Progress::Manual);
        let context = mock.context();
        context.set_wait_limit(Duration::ZERO);
        let queue = || context.queue(QueueOrder::OutOfOrder).expect("a queue");
        let (naming, reading) = (queue(), queue());
        let source = array(&naming);
        let named = vec![Usage::write(source.allocation()); usages];
        copy_meanwhile(&mock, &naming, &named, &reading, &source);
        expect_in_flight(&mock, &context, source);
    }
}

#[test]
fn each_later_use_still_replaces_the_earlier_ones() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let other = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    for arrays in [1, 9] {
        let mut arrays: Vec<_> = (0..arrays).map(|_| array(&queue)).collect();
        for _ in 0..3 {
            let named: Vec<_> = arrays.iter().map(|array| Usage::read(array.allocation())).collect();
            let _ = queue.barrier_with_usages(&named, &[]).expect("a barrier");
        }
        for array in &mut arrays {
            let _ = other.fill(array, 1).expect("a fill");
            assert_eq!(mock.calls().last().expect("the fill").after, 1);
        }
        mock.finish();
    }
}
