//! The unchanged conformance suite, and checks of the driver's counters.

use std::sync::OnceLock;
use std::time::Duration;

use usm_core::backend::Dyn;
use usm_core::{
    AllocKind, Backend, Context, Event, MemorySource, Queue, QueueOrder, Request, Shared, UsmVec,
};
use usm_level_zero::{LevelZero, LevelZeroDevice};
use usm_tests::{Failing, Fixture, Provider, conformance_table};

use crate::kernels::{
    a_kernel_is_destroyed_after_its_launches, refusals_have_the_drivers_words,
    without_groups_the_driver_chooses_them,
};
use crate::{Case, driver};

/// The suite's wait limit, if it differs from the default.
pub(crate) static WAIT_LIMIT: OnceLock<Duration> = OnceLock::new();

/// Contexts over the first device, behind the erased backend as in Python and the command line. Its
/// calls are those of `LevelZero`.
pub(crate) struct First;

impl Provider for First {
    type Backend = Dyn;

    fn with(case: impl FnOnce(Fixture<'_, Dyn>)) -> Result<(), String> {
        let native = LevelZero::load().map_err(|error| error.to_string())?;
        let devices = Dyn::new(native).devices().map_err(|error| error.to_string())?;
        let device = devices.first().ok_or("no device")?;
        let context = || device.context().map(limited).map_err(|error| error.to_string());
        let failing = driver::is_test_driver().then_some(&fail_by_a_lost_end as &Failing<Dyn>);
        case(Fixture { context: &context()?, other: &context()?, separate: true, failing });
        Ok(())
    }
}

/// A hint whose event the driver refuses to signal. No other Level Zero operation can fail alone.
fn fail_by_a_lost_end<B: Backend>(queue: &Queue<B>) -> (Event<B>, Box<dyn FnOnce()>) {
    let memory = queue.context().allocate(&Request::new(AllocKind::Shared, 64)).expect("memory");
    queue.wait().expect("idle");
    let lost = driver::failing("zeCommandListAppendBarrier=0x7ffffffe", || queue.prefetch(&memory));
    (lost.expect("the hint is under way"), Box::new(|| ()))
}

pub(crate) fn devices(backend: &LevelZero) -> Vec<LevelZeroDevice> {
    let mut devices = Vec::new();
    backend.for_each_device(&mut |device| devices.push(device)).expect("devices");
    devices
}

pub(crate) fn context(backend: &LevelZero, device: &LevelZeroDevice) -> Context<LevelZero> {
    limited(Context::new(backend, device).expect("a context"))
}

/// The context with the suite's wait limit.
fn limited<B: Backend>(context: Context<B>) -> Context<B> {
    if let Some(limit) = WAIT_LIMIT.get() {
        context.set_wait_limit(*limit);
    }
    context
}

/// A context over the first device.
pub(crate) fn first() -> Context<LevelZero> {
    let backend = LevelZero::load().expect("the library");
    context(&backend, &devices(&backend)[0])
}

/// The whole suite on the executing driver, then the driver's counters.
pub(crate) fn executing() -> Vec<Case> {
    let mut cases = conformance_table!(First);
    cases.extend(crate::cases![
        twenty_thousand_pairs_leave_nothing_behind,
        events_are_used_again,
        an_event_is_kept_for_those_who_wait_for_it,
        everything_goes_with_the_last_handle,
        refusals_have_the_drivers_words,
        without_groups_the_driver_chooses_them,
        a_kernel_is_destroyed_after_its_launches,
    ]);
    // Runs last: no case destroyed, freed or reset an object that a command in flight referred to.
    cases.push(("nothing_was_misused", || {
        assert_eq!(driver::count("misuses"), 0);
        Ok(())
    }));
    cases
}

/// The suite on the machine's runtime.
pub(crate) fn machine() -> Vec<Case> {
    conformance_table!(First)
}

/// Whether the machine has a Level Zero device, or the reason why not.
pub(crate) fn of_machine() -> Result<(), String> {
    let backend = LevelZero::load().map_err(|error| error.to_string())?;
    if devices(&backend).is_empty() { Err("no device".to_owned()) } else { Ok(()) }
}

/// The driver counts, not the context's ledger.
fn twenty_thousand_pairs_leave_nothing_behind() -> Result<(), String> {
    let context = first();
    let before = driver::objects();
    for index in 0..20_000 {
        let kind = AllocKind::ALL[index % 3];
        drop(context.allocate(&Request::new(kind, 256)).expect("memory"));
    }
    assert_eq!(driver::objects(), before);
    Ok(())
}

/// A thousand operations in a row use no more events than are in flight, and the search for
/// completed ones takes place.
fn events_are_used_again() -> Result<(), String> {
    let context = first();
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        let queue = context.queue(order).expect("a queue");
        let mut array = UsmVec::<u32, Shared, _>::zeroed(&queue, 64).expect("an array");
        let mut most = 0;
        for round in 0..1000 {
            queue.fill(&mut array, round).expect("a fill").wait().expect("done");
            most = most.max(driver::count("events"));
        }
        assert!(most < 200, "{most} events");
        let events = driver::count("events");
        for round in 0..50 {
            queue.fill(&mut array, round).expect("a fill").wait().expect("done");
        }
        assert_eq!(driver::count("events"), events, "no event is made for an operation any more");
    }
    Ok(())
}

/// Complete and without a handle, but a command of another queue has not checked it yet.
fn an_event_is_kept_for_those_who_wait_for_it() -> Result<(), String> {
    let context = first();
    let one = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    let two = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    let mut array = UsmVec::<u32, Shared, _>::zeroed(&one, 64).expect("an array");
    let mut other = UsmVec::<u32, Shared, _>::zeroed(&one, 64).expect("an array");
    context.synchronize(Duration::from_secs(20)).expect("idle");
    let event = one.fill(&mut array, 1).expect("a fill");
    let barrier = two.barrier(core::slice::from_ref(&event)).expect("a barrier");
    event.wait().expect("done");
    drop((event, array));
    // A driver that runs one command for each query runs the first queue's.
    for round in 0..300 {
        one.fill(&mut other, round).expect("a fill").wait().expect("done");
    }
    barrier.wait().expect("done");
    assert_eq!(driver::count("misuses"), 0);
    Ok(())
}

/// Also if queue and array are dropped before their work runs.
fn everything_goes_with_the_last_handle() -> Result<(), String> {
    let before = driver::objects();
    let context = first();
    let other = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    let mut event = None;
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        let queue = context.queue(order).expect("a queue");
        let mut array = UsmVec::<u32, Shared, _>::zeroed(&queue, 1000).expect("an array");
        let source = UsmVec::<u32, Shared, _>::from_slice(&other, &[1; 1000]).expect("an array");
        for _ in 0..100 {
            let _ = queue.copy(&mut array, &source).expect("a copy");
        }
        event = Some(queue.fill(&mut array, 7).expect("a fill"));
    }
    drop((context, other));
    // The event outlives its context, whose native objects live as long.
    drop(event);
    assert_eq!(driver::objects(), before);
    Ok(())
}
