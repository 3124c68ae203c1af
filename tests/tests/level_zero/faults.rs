//! A driver that fails: every failure is an error with its code, and nothing is lost or freed too early.

use std::time::Duration;

use usm_core::backend::level_zero::LevelZero;
use usm_core::{
    AllocKind, Device, Error, ErrorKind, EventStatus, MemAdvice, MemorySource, MemoryType, PointerInfo,
    Queue, QueueOrder, Request, Shared, Strided, UsmVec,
};

use crate::Case;
use crate::driver::{count, failing, objects};
use crate::suite::first;

const REFUSED: i64 = 0x7fff_fffe;
const LOST: i64 = 0x7000_0001;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        ("out_of_memory_is_an_error_with_its_code", out_of_memory_is_an_error_with_its_code),
        ("an_unknown_memory_type_is_unknown_memory", an_unknown_memory_type_is_unknown_memory),
        ("no_device_is_an_answer", no_device_is_an_answer),
        ("alignments_that_are_not_honoured_are_made", alignments_that_are_not_honoured_are_made),
        ("each_call_that_fails_is_named", each_call_that_fails_is_named),
        (
            "a_round_trip_with_a_fault_anywhere_loses_nothing",
            a_round_trip_with_a_fault_anywhere_loses_nothing,
        ),
        ("rows_that_the_driver_has_no_call_for_are_copied", rows_that_the_driver_has_no_call_for_are_copied),
        ("a_hint_whose_end_is_lost_never_completes", a_hint_whose_end_is_lost_never_completes),
        ("a_refused_hint_leaves_the_queue_usable", a_refused_hint_leaves_the_queue_usable),
        ("a_lost_device_is_an_error_everywhere", a_lost_device_is_an_error_everywhere),
        ("what_never_finishes_is_leaked_and_counted", what_never_finishes_is_leaked_and_counted),
    ]
}

fn queue(order: QueueOrder) -> Queue<LevelZero> {
    first().queue(order).expect("a queue")
}

fn out_of_memory_is_an_error_with_its_code() -> Result<(), String> {
    let context = first();
    for (kind, function, code) in [
        (AllocKind::Host, "zeMemAllocHost", 0x7000_0002),
        (AllocKind::Device, "zeMemAllocDevice", 0x7000_0003),
        (AllocKind::Shared, "zeMemAllocShared", 0x7000_0002),
    ] {
        let refused = failing(&format!("{function}={code}"), || context.allocate(&Request::new(kind, 100)));
        let error = refused.expect_err("no memory");
        let memory_type = MemoryType::try_from(kind).expect("a kind");
        assert_eq!(error.kind, ErrorKind::OutOfMemory { memory_type, requested: 100 });
        assert_eq!(error.native, Some(code));
        assert!(error.to_string().starts_with("level_zero: out of memory: 100 bytes of usm_"), "{error}");
    }
    assert_eq!(context.stats().sum.count, 0, "a failed allocation leaves no trace");
    Ok(())
}

/// Also a type that later headers have: memory of others, imported.
fn an_unknown_memory_type_is_unknown_memory() -> Result<(), String> {
    let context = first();
    let memory = context.allocate(&Request::new(AllocKind::Device, 64)).expect("memory");
    for kind in ["4", "77", "0xffffffff"] {
        failing(&format!("memory-type={kind}"), || {
            let runtime = context.query_runtime(memory.as_ptr() as usize).expect("an answer");
            assert_eq!(runtime, PointerInfo::UNKNOWN);
            let ours = context.query(memory.as_ptr()).expect("an answer");
            assert_eq!((ours.kind, ours.size), (AllocKind::Device, 64), "the books know better");
        });
    }
    Ok(())
}

fn no_device_is_an_answer() -> Result<(), String> {
    let context = first();
    let memory = context.allocate(&Request::new(AllocKind::Shared, 64)).expect("memory");
    let found = failing("null-device", || context.query_runtime(memory.as_ptr() as usize + 63));
    let found = found.expect("an answer");
    assert_eq!((found.kind, found.size, found.device), (AllocKind::Shared, 64, None));
    Ok(())
}

/// Some drivers answer success and do not align, others refuse.
fn alignments_that_are_not_honoured_are_made() -> Result<(), String> {
    let context = first();
    let before = count("allocations");
    for fault in ["ignore-alignment=8192", "refuse-alignment=8192"] {
        failing(fault, || {
            for kind in AllocKind::ALL {
                let request = Request::new(kind, 1000).aligned_to(1 << 16);
                let memory = context.allocate(&request).expect("memory");
                let address = memory.as_ptr() as usize;
                assert_eq!(address % (1 << 16), 0, "{fault}");
                let found = context.query_runtime(address + 999).expect("an answer");
                assert_eq!((found.kind, found.base, found.size), (kind, address, 1000), "{fault}");
                let beyond = context.query_runtime(address + 1000).expect("an answer");
                assert_eq!(beyond, PointerInfo::UNKNOWN, "{fault}");
            }
        });
        assert_eq!(count("allocations"), before, "{fault}");
    }
    Ok(())
}

/// The error names the call and has its code; the call after it goes well.
fn each_call_that_fails_is_named() -> Result<(), String> {
    type Step = fn(&Queue<LevelZero>, &mut UsmVec<u32, Shared, LevelZero>) -> Result<(), Error>;
    let steps: [(&'static str, Step); 10] = [
        ("zeCommandListAppendMemoryFill", |queue, array| queue.fill(array, 1).map(drop)),
        ("zeCommandListAppendMemoryCopy", |queue, array| {
            // SAFETY: every byte has a value.
            let memory = unsafe { array.allocation_mut() };
            queue.copy_within(memory, 0, 64, 32).map(drop)
        }),
        ("zeCommandListAppendMemoryCopyRegion", copy_rows),
        ("zeCommandListAppendMemoryPrefetch", |queue, array| queue.prefetch(array.allocation()).map(drop)),
        ("zeCommandListAppendMemAdvise", |queue, array| {
            queue.advise(array.allocation(), MemAdvice::ReadMostly).map(drop)
        }),
        ("zeCommandListAppendBarrier", |queue, _| queue.barrier(&[]).map(drop)),
        ("zeMemGetAllocProperties", |queue, _| queue.context().query_runtime(77).map(drop)),
        ("zeMemGetAddressRange", |queue, array| {
            queue.context().query_runtime(array.as_ptr() as usize).map(drop)
        }),
        ("zeCommandListCreateImmediate", |queue, _| queue.context().queue(QueueOrder::InOrder).map(drop)),
        ("zeEventQueryStatus", |queue, array| queue.fill(array, 2)?.status().map(drop)),
    ];
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        let queue = queue(order);
        let mut array = UsmVec::<u32, Shared, _>::zeroed(&queue, 64).expect("an array");
        for (function, step) in steps {
            let fault = format!("{function}={REFUSED}");
            let error = failing(&fault, || step(&queue, &mut array)).expect_err(function);
            assert_eq!(
                (error.kind, error.native),
                (ErrorKind::Native { operation: function }, Some(REFUSED))
            );
            step(&queue, &mut array).expect("no fault any more");
        }
        let _ = queue.fill(&mut array, 5).expect("a fill");
        assert_eq!(array.read().expect("a view")[..], [5; 64]);
    }
    let backend = LevelZero::load().expect("the library");
    let device = crate::suite::devices(&backend)[0];
    let context =
        failing(&format!("zeContextCreate={REFUSED}"), || usm_core::Context::new(&backend, &device));
    assert_eq!(context.expect_err("a fault").kind, ErrorKind::Native { operation: "zeContextCreate" });
    Ok(())
}

/// The upper halves of elements 0 to 19 become those of elements 32 to 51.
fn copy_rows(queue: &Queue<LevelZero>, array: &mut UsmVec<u32, Shared, LevelZero>) -> Result<(), Error> {
    let to = Strided::new(2, 2, &[20], &[4])?;
    let from = Strided::new(130, 2, &[20], &[4])?;
    // SAFETY: every byte has a value, and the memory stays in its place.
    let memory = unsafe { array.allocation_mut() };
    queue.copy_strided_within(memory, &to, &from).map(drop)
}

/// One by one, with the same result.
fn rows_that_the_driver_has_no_call_for_are_copied() -> Result<(), String> {
    let values: Vec<u32> = (0..64).map(|index| index << 16 | index).collect();
    let expected = |index: u32| if index < 20 { (index + 32) << 16 | index } else { index << 16 | index };
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        for fault in ["", "zeCommandListAppendMemoryCopyRegion=0x78000003"] {
            let queue = queue(order);
            let mut array = UsmVec::<u32, Shared, _>::from_slice(&queue, &values).expect("an array");
            failing(fault, || copy_rows(&queue, &mut array)).expect("a copy");
            let expected: Vec<u32> = (0..64).map(expected).collect();
            assert_eq!(array.read().expect("a view")[..], expected);
        }
    }
    Ok(())
}

/// The first, second, ... call of each sort fails: the result is right or an error, and everything goes in the end.
fn a_round_trip_with_a_fault_anywhere_loses_nothing() -> Result<(), String> {
    let functions = [
        "zeMemAllocDevice",
        "zeMemAllocShared",
        "zeMemAllocHost",
        "zeEventPoolCreate",
        "zeEventCreate",
        "zeEventHostReset",
        "zeCommandListCreateImmediate",
        "zeCommandListAppendMemoryCopy",
        "zeCommandListAppendMemoryFill",
        "zeCommandListAppendBarrier",
    ];
    let before = objects();
    for (function, first_failing) in functions.iter().flat_map(|name| (1..5).map(move |call| (name, call))) {
        for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
            let context = first();
            let outcome = failing(&format!("{function}={REFUSED}@{first_failing}"), || {
                let queue = context.queue(order)?;
                let other = context.queue(QueueOrder::OutOfOrder)?;
                let input = UsmVec::<u32, Shared, _>::from_slice(&queue, &[1, 2, 3])?;
                let mut device = UsmVec::<u32, Device, _>::zeroed(&other, 3)?;
                let _ = queue.copy(&mut device, &input)?;
                drop(input);
                device.to_vec(&other)
            });
            match outcome {
                Ok(values) => assert_eq!(values, [1, 2, 3]),
                Err(error) => assert_eq!(error.native, Some(REFUSED), "{function} {first_failing}: {error}"),
            }
            assert_eq!(context.stats().leaked, 0);
            drop(context);
            assert_eq!(objects(), before, "{function} {first_failing} {order:?}");
        }
    }
    assert_eq!(count("misuses"), 0);
    Ok(())
}

/// It may still run, so what it touches is never freed.
fn a_hint_whose_end_is_lost_never_completes() -> Result<(), String> {
    let queue = queue(QueueOrder::InOrder);
    let context = queue.context().clone();
    context.set_wait_limit(Duration::from_millis(10));
    let mut array = UsmVec::<u32, Shared, _>::zeroed(&queue, 64).expect("an array");
    queue.wait().expect("idle");
    let event =
        failing(&format!("zeCommandListAppendBarrier={REFUSED}"), || queue.prefetch(array.allocation()));
    let event = event.expect("the hint is under way");
    assert_eq!(event.status().expect_err("its end is lost").native, Some(REFUSED));
    assert_eq!(queue.fill(&mut array, 1).expect_err("what follows fails too").native, Some(REFUSED));
    let address = array.as_ptr() as usize;
    drop(array);
    assert_eq!(context.deferred_frees(), 1);
    assert_eq!(context.query_runtime(address).expect("an answer").kind, AllocKind::Shared);
    Ok(())
}

fn a_refused_hint_leaves_the_queue_usable() -> Result<(), String> {
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        let queue = queue(order);
        let mut array = UsmVec::<u32, Shared, _>::zeroed(&queue, 64).expect("an array");
        for (fault, unsupported) in [("0x78000003", true), ("0x7ffffffe", false)] {
            let _ = queue.fill(&mut array, 3).expect("a fill");
            let hint = failing(&format!("zeCommandListAppendMemoryPrefetch={fault}"), || {
                queue.prefetch(array.allocation())
            });
            let error = hint.expect_err("refused");
            assert_eq!(matches!(error.kind, ErrorKind::Unsupported { .. }), unsupported, "{error}");
        }
        let _ = queue.fill(&mut array, 4).expect("a fill");
        assert_eq!(array.read().expect("a view")[..], [4; 64]);
    }
    assert_eq!(count("misuses"), 0);
    Ok(())
}

fn a_lost_device_is_an_error_everywhere() -> Result<(), String> {
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        let queue = queue(order);
        let context = queue.context().clone();
        let mut array = UsmVec::<u32, Shared, _>::zeroed(&queue, 64).expect("an array");
        let event = queue.fill(&mut array, 1).expect("a fill");
        failing("device-lost", || {
            let lost = |error: Error| {
                assert_eq!((error.kind, error.native), (ErrorKind::DeviceLost, Some(LOST)));
                assert!(error.to_string().contains("the device is lost"), "{error}");
            };
            lost(event.status().expect_err("lost"));
            lost(event.wait_for(Duration::from_secs(20)).expect_err("lost"));
            lost(queue.barrier(&[]).expect_err("lost"));
            lost(array.read().map(drop).expect_err("lost"));
            lost(queue.wait().expect_err("lost"));
            lost(context.synchronize(Duration::from_secs(20)).expect_err("lost"));
            lost(context.allocate(&Request::new(AllocKind::Device, 8)).expect_err("lost"));
            drop((array, queue, event));
            assert_eq!(context.deferred_frees(), 1, "whether the fill still runs is unknown");
            drop(context);
        });
    }
    Ok(())
}

/// A context that goes while a wait has no end: memory, list and native context stay.
fn what_never_finishes_is_leaked_and_counted() -> Result<(), String> {
    let queue = queue(QueueOrder::InOrder);
    let context = queue.context().clone();
    context.set_wait_limit(Duration::from_millis(10));
    let mut array = UsmVec::<u32, Shared, _>::zeroed(&queue, 64).expect("an array");
    let event = queue.fill(&mut array, 1).expect("a fill");
    let before = objects();
    failing(&format!("zeEventQueryStatus={}", 1), || {
        // NOT_READY, for ever: as in capture mode.
        assert_eq!(event.status(), Ok(EventStatus::Pending));
        let late = event.wait_for(Duration::from_millis(5)).expect_err("never").kind;
        assert_eq!(late, ErrorKind::Timeout { limit_ms: 5 });
        drop((array, queue, event, context));
    });
    let after = objects();
    assert_eq!((before[0], before[1], before[3]), (after[0], after[1], after[3]));
    assert_eq!(count("misuses"), 0);
    Ok(())
}
