//! A failing driver: every failure is an error with its code, and no memory is lost or freed twice.

use usm_core::backend::mock::{Fault, Mock, Operation, Progress};
use usm_core::{
    AllocKind, Context, Device, Error, ErrorKind, EventStatus, Host, MemorySource, MemoryType, QueueOrder,
    Request, Shared, UsmVec,
};

fn fault(operation: Operation, late: bool) -> Fault {
    let error = Error::from(ErrorKind::Native { operation: "the driver's call" }).with_native(-5);
    Fault { operation, skip: 0, error, late }
}

#[test]
fn every_call_passes_the_native_code_on() {
    let mock = Mock::new(Progress::OnWait);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut array = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");

    mock.inject(fault(Operation::Allocate, false));
    let error = context.allocate(&Request::new(AllocKind::Host, 8)).expect_err("injected");
    assert_eq!(error.to_string(), "mock: the driver's call failed (native code -5)");
    mock.inject(fault(Operation::Fill, false));
    assert_eq!(queue.fill(&mut array, 1).expect_err("injected").native, Some(-5));
    mock.inject(fault(Operation::Query, false));
    assert_eq!(context.query_runtime(1).expect_err("injected").native, Some(-5));
    mock.inject(fault(Operation::CreateQueue, false));
    assert!(context.queue(QueueOrder::InOrder).is_err());

    let _ = queue.fill(&mut array, 3).expect("the fault was for one call");
    assert_eq!(array.read().expect("a view")[..], [3; 4]);
}

/// The first, second, ... call of each kind fails. The array then has its old or its intended
/// content.
#[test]
fn a_round_trip_with_a_fault_anywhere_loses_nothing() {
    for operation in [Operation::Allocate, Operation::Copy, Operation::Fill] {
        for (skip, late) in (0..4).flat_map(|skip| [(skip, false), (skip, true)]) {
            let mock = Mock::new(Progress::OnWait);
            let context = mock.context();
            let queue = context.queue(QueueOrder::InOrder).expect("a queue");
            mock.inject(Fault { skip, ..fault(operation, late) });
            let outcome = (|| -> usm_core::Result<Vec<u32>> {
                let input = UsmVec::<u32, Host, Mock>::from_slice(&queue, &[1, 2, 3])?;
                let mut device = UsmVec::<u32, Device, Mock>::zeroed(&queue, 3)?;
                let _ = queue.copy(&mut device, &input)?;
                device.to_vec(&queue)
            })();
            match outcome {
                Ok(values) => assert_eq!(values, [1, 2, 3]),
                Err(error) => assert_eq!(error.native, Some(-5), "{operation:?} {skip} {late}"),
            }
            drop(queue);
            drop(context);
            assert_eq!(mock.violations(), []);
        }
    }
}

#[test]
fn work_that_fails_late_fails_its_event_and_what_depends_on_it() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    let mut source = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    let mut target = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    mock.inject(fault(Operation::Fill, true));
    let filled = queue.fill(&mut source, 1).expect("submitted");
    let copied = queue.copy(&mut target, &source).expect("submitted");
    assert_eq!(filled.status().expect("not yet"), EventStatus::Pending);
    mock.finish();
    assert_eq!(filled.status().expect_err("it failed").native, Some(-5));
    assert_eq!(copied.wait().expect_err("poisoned").native, Some(-5));
    assert_eq!(target.read().expect_err("the content is unknown").native, Some(-5));
}

#[test]
fn a_lost_device_ends_every_wait() {
    let mock = Mock::new(Progress::OnWait);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut array = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    let event = queue.fill(&mut array, 1).expect("submitted");
    mock.lose_device();
    assert_eq!(event.wait().expect_err("lost").kind, ErrorKind::DeviceLost);
    assert_eq!(array.read().expect_err("lost").kind, ErrorKind::DeviceLost);
    assert_eq!(queue.fill(&mut array, 2).expect_err("lost").kind, ErrorKind::DeviceLost);
    assert_eq!(queue.wait().expect_err("lost").kind, ErrorKind::DeviceLost);
    // The device may still access the memory, so it is leaked, not freed.
    drop((array, queue));
    assert_eq!(context.deferred_frees(), 1);
    drop(context);
    assert_eq!((mock.live_blocks(), mock.violations()), (1, vec![]));
}

#[test]
fn a_context_that_cannot_be_made_is_an_error() {
    let mock = Mock::default();
    mock.inject(fault(Operation::CreateContext, false));
    let mut first = None;
    usm_core::Backend::for_each_device(&mock, &mut |device| first = Some(device)).expect("devices");
    let device = first.expect("one device");
    assert_eq!(Context::new(&mock, &device).expect_err("injected").native, Some(-5));
    assert_eq!(Context::new(&mock, &device).expect("once").stats().of(MemoryType::UsmHost).count, 0);
}
