//! A failing driver: the cases of all test drivers, and those of Level Zero alone.

use std::time::Duration;

use usm_core::{
    AllocKind, Context, Error, ErrorKind, EventStatus, MemorySource, PointerInfo, Queue, QueueOrder, Request,
    Shared, UsmVec,
};
use usm_level_zero::LevelZero;
use usm_tests::faults::{self, FailingDriver, Step, every_call_reports_the_failure, step};

use crate::Case;
use crate::driver::{count, failing, objects};
use crate::suite::{devices, first};

const REFUSED: i64 = 0x7fff_fffe;
const LOST: i64 = 0x7000_0001;

/// The driver of this process.
struct Driver;

impl FailingDriver for Driver {
    type Backend = LevelZero;

    const NO_MEMORY: [(AllocKind, &'static str, i64); 3] = [
        (AllocKind::Host, "zeMemAllocHost", 0x7000_0002),
        (AllocKind::Device, "zeMemAllocDevice", 0x7000_0003),
        (AllocKind::Shared, "zeMemAllocShared", 0x7000_0002),
    ];
    const UNKNOWN_TYPES: [&'static str; 3] = ["4", "77", "0xffffffff"];
    const REFUSED: i64 = REFUSED;
    const STEPS: &'static [(&'static str, &'static str, Step<Self>)] = &[
        ("zeCommandListAppendMemoryFill", "zeCommandListAppendMemoryFill", step::fill),
        ("zeCommandListAppendMemoryCopy", "zeCommandListAppendMemoryCopy", step::copy_within),
        // The copy that is left where the device's code cannot be built.
        (
            "zeModuleCreate=0x78000003,zeCommandListAppendMemoryCopyRegion",
            "zeCommandListAppendMemoryCopyRegion",
            step::copy_rows,
        ),
        ("zeCommandListAppendMemoryPrefetch", "zeCommandListAppendMemoryPrefetch", step::prefetch),
        ("zeCommandListAppendMemAdvise", "zeCommandListAppendMemAdvise", step::advise),
        ("zeCommandListAppendBarrier", "zeCommandListAppendBarrier", step::barrier),
        ("zeMemGetAllocProperties", "zeMemGetAllocProperties", step::query_nothing),
        ("zeMemGetAddressRange", "zeMemGetAddressRange", step::query),
        ("zeCommandListCreateImmediate", "zeCommandListCreateImmediate", step::new_queue),
        ("zeEventQueryStatus", "zeEventQueryStatus", step::status),
        ("zeContextCreate", "zeContextCreate", step::new_context),
    ];
    const ROUND_TRIP: &'static [&'static str] = &[
        "zeContextCreate",
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
    const OF_POOLS: &'static [&'static str] = &["zeMemFree", "zeMemFreeExt", "zeEventQueryStatus"];
    const COUNTS_KEPT: bool = true;
    const KEPT_WITHOUT: &'static [&'static str] = &[];

    fn context(&self) -> usm_core::Result<Context<LevelZero>> {
        let backend = LevelZero::load()?;
        Context::new(&backend, &devices(&backend)[0])
    }

    fn failing<T>(&self, faults: &str, body: impl FnOnce() -> T) -> T {
        failing(faults, body)
    }

    fn held<T>(&self, body: impl FnOnce() -> T) -> T {
        // NOT_READY, as in capture mode.
        failing("zeEventQueryStatus=1", body)
    }

    fn objects(&self) -> Vec<u64> {
        objects().to_vec()
    }

    fn misuses(&self) -> u64 {
        count("misuses")
    }
}

macro_rules! rows {
    ($($case:ident)*) => {
        vec![$((stringify!($case), || { faults::$case(&Driver); Ok(()) })),*]
    };
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = usm_tests::fault_cases!(rows);
    cases.extend(crate::cases![
        a_pool_with_a_fault_anywhere_says_what_it_holds,
        no_device_is_an_answer,
        alignments_that_are_not_honoured_are_made,
        rows_that_the_driver_has_no_call_for_are_copied,
        a_hint_whose_end_is_lost_never_completes,
        a_refused_hint_leaves_the_queue_usable,
        a_lost_device_is_an_error_everywhere,
        what_never_finishes_is_leaked_and_counted,
    ]);
    cases
}

fn queue(order: QueueOrder) -> Queue<LevelZero> {
    first().queue(order).expect("a queue")
}

fn a_pool_with_a_fault_anywhere_says_what_it_holds() -> Result<(), String> {
    faults::a_pool_with_a_fault_anywhere_says_what_it_holds(&Driver);
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

/// Some drivers report success without aligning, others refuse.
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

/// Copied row by row, with the same result.
fn rows_that_the_driver_has_no_call_for_are_copied() -> Result<(), String> {
    let values: Vec<u32> = (0..64).map(|index| index << 16 | index).collect();
    let expected = |index: u32| if index < 20 { (index + 32) << 16 | index } else { index << 16 | index };
    for order in faults::ORDERS {
        let no_code = "zeModuleCreate=0x78000003";
        let no_region = &format!("{no_code},zeCommandListAppendMemoryCopyRegion=0x78000003");
        for fault in ["", no_code, no_region] {
            let queue = queue(order);
            let mut array = UsmVec::<u32, Shared, _>::from_slice(&queue, &values).expect("an array");
            failing(fault, || step::copy_rows(&Driver, &queue, &mut array)).expect("a copy");
            let expected: Vec<u32> = (0..64).map(expected).collect();
            assert_eq!(array.read().expect("a view")[..], expected);
        }
    }
    Ok(())
}

/// The hint may still run, so its memory is never freed.
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
    assert_eq!(queue.fill(&mut array, 1).expect_err("later work fails too").native, Some(REFUSED));
    let address = array.as_ptr() as usize;
    drop(array);
    assert_eq!(context.deferred_frees(), 1);
    assert_eq!(context.query_runtime(address).expect("an answer").kind, AllocKind::Shared);
    Ok(())
}

fn a_refused_hint_leaves_the_queue_usable() -> Result<(), String> {
    for order in faults::ORDERS {
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
    for order in faults::ORDERS {
        let queue = queue(order);
        let mut array = UsmVec::<u32, Shared, _>::zeroed(&queue, 64).expect("an array");
        let mut other = UsmVec::<u32, Shared, _>::zeroed(&queue, 64).expect("an array");
        let event = queue.fill(&mut array, 1).expect("a fill");
        failing("device-lost", || {
            every_call_reports_the_failure(&queue, event, array, &mut other, |error: Error| {
                assert_eq!((error.kind, error.native), (ErrorKind::DeviceLost, Some(LOST)));
                assert!(error.to_string().contains("the device is lost"), "{error}");
            });
            // The context is dropped while the fill may still run.
            drop((other, queue));
        });
    }
    Ok(())
}

/// The context is dropped while a wait cannot end: memory, list and native context are leaked.
fn what_never_finishes_is_leaked_and_counted() -> Result<(), String> {
    let queue = queue(QueueOrder::InOrder);
    let context = queue.context().clone();
    context.set_wait_limit(Duration::from_millis(10));
    let mut array = UsmVec::<u32, Shared, _>::zeroed(&queue, 64).expect("an array");
    let event = queue.fill(&mut array, 1).expect("a fill");
    let before = objects();
    Driver.held(|| {
        assert_eq!(event.status(), Ok(EventStatus::Pending));
        drop((array, queue, event, context));
    });
    let after = objects();
    assert_eq!((before[0], before[1], before[3]), (after[0], after[1], after[3]));
    assert_eq!(count("misuses"), 0);
    Ok(())
}
