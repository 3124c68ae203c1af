//! Devices that must not access shared memory at the same time as the host.

use super::*;
use usm_core::backend::QueueOps;
use usm_core::backend::mock::{MockEvent, MockQueue};

#[test]
fn a_view_waits_for_all_work_and_launches_wait_for_no_view() {
    let mock = Mock::new(Progress::Manual).without_concurrent_access();
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut busy = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    let other = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    let _ = queue.fill(&mut busy, 1).expect("a fill");

    // The view is of another array, and still waits: the device must be idle.
    let (start, device) = (Instant::now(), finish_later(&mock));
    let view = other.read().expect("a view");
    assert!(start.elapsed() >= DELAY, "the view did not wait");
    device.join().expect("the device's thread");

    let refused = queue.fill(&mut busy, 2).expect_err("a view lives").kind;
    assert_eq!(refused, ErrorKind::HostViewLive { views: 1 });
    drop(view);
    let _ = queue.fill(&mut busy, 2).expect("no view lives");
    mock.finish();
}

#[test]
fn a_view_keeps_all_contexts_of_its_device_away_and_no_other() {
    let mock = Mock::new(Progress::OnWait).without_concurrent_access().with_devices(2);
    let mut devices = Vec::new();
    mock.for_each_device(&mut |device| devices.push(device)).expect("devices");
    let context = |device: usize| Context::new(&mock, &devices[device]).expect("a context");
    let (one, two, far) = (context(0), context(0), context(1));
    let array = |context: &Context<Mock>| {
        let queue = context.queue(QueueOrder::InOrder).expect("a queue");
        let array = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
        (queue, array)
    };
    let ((_, viewed), (second, mut theirs), (third, mut distant)) = (array(&one), array(&two), array(&far));
    let fill = second.fill(&mut theirs, 1).expect("a fill");
    let view = viewed.read().expect("a view");
    assert_eq!(fill.status().expect("no failure"), EventStatus::Complete);
    let refused = second.fill(&mut theirs, 2).expect_err("a view lives").kind;
    assert_eq!(refused, ErrorKind::HostViewLive { views: 1 });
    let _ = third.fill(&mut distant, 2).expect("another device");
    drop(view);
    let _ = second.fill(&mut theirs, 2).expect("no view lives");
}

#[test]
fn the_guard_of_a_wait_forbids_launches() {
    let mock = Mock::new(Progress::OnWait).without_concurrent_access();
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut array = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    let other = context.allocate(&Request::new(AllocKind::Shared, 64)).expect("memory");
    let guard = other.wait_for_host(Access::Read).expect("the host may");
    let refused = queue.fill(&mut array, 1).expect_err("the host may look").kind;
    assert_eq!(refused, ErrorKind::HostViewLive { views: 1 });
    drop(guard);
    let _ = queue.fill(&mut array, 1).expect("no view");
}

#[test]
fn work_that_a_context_left_behind_is_waited_for_until_it_is_done() {
    let mock = Mock::new(Progress::Manual).without_concurrent_access();
    let (context, gone) = (mock.context(), mock.context());
    let limit = Duration::from_millis(10);
    context.set_wait_limit(limit);
    gone.set_wait_limit(limit);
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let array = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    {
        let queue = gone.queue(QueueOrder::InOrder).expect("a queue");
        let mut left = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
        let _ = queue.fill(&mut left, 1).expect("a fill");
    }
    drop(gone);
    assert_eq!((mock.contexts(), mock.queued()), (1, 1));
    assert_eq!(array.read().expect_err("it runs").kind, ErrorKind::Timeout { limit_ms: 10 });
    mock.finish();
    assert_eq!(array.read().expect("it is done")[..], [0; 4]);
}

#[test]
fn a_forgotten_view_forbids_launches_for_ever() {
    let mock = Mock::new(Progress::OnWait).without_concurrent_access();
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut array = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    core::mem::forget(array.write().expect("a view"));
    let refused = queue.fill(&mut array, 2).expect_err("a view lives").kind;
    assert_eq!(refused, ErrorKind::HostViewLive { views: 1 });
    assert_eq!(array.read().expect("the host may")[..], [0; 4]);
}

#[test]
fn a_view_gives_up_at_its_limit_while_a_submission_is_under_way() {
    let mock = Mock::new(Progress::OnWait).without_concurrent_access();
    let context = mock.context();
    context.set_wait_limit(Duration::from_millis(10));
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let array = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    let submission = |queue: &MockQueue, after: &[MockEvent]| {
        assert_eq!(array.read().expect_err("under way").kind, ErrorKind::Timeout { limit_ms: 10 });
        // SAFETY: events of the queue's context.
        unsafe { queue.barrier(after) }
    };
    // SAFETY: a barrier touches no memory.
    let _ = unsafe { queue.submit(&[], &[], submission) }.expect("a barrier");
}

#[test]
fn a_view_that_times_out_opens_the_gate_again() {
    let mock = Mock::new(Progress::Manual).without_concurrent_access();
    let context = mock.context();
    context.set_wait_limit(Duration::from_millis(10));
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut array = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    let other = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    let _ = queue.fill(&mut array, 1).expect("a fill");
    assert_eq!(other.read().expect_err("busy").kind, ErrorKind::Timeout { limit_ms: 10 });
    let _ = queue.fill(&mut array, 2).expect("the gate is open");
    mock.finish();
}
