//! Intel's GPU driver in capture mode: real driver code, no GPU. It checks and records every call
//! and executes nothing, so events never signal. The cases of the suite that need no result must
//! pass; all others must end by their limit.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::time::{Duration, Instant};

use usm_core::backend::{DeviceOps, Dyn};
use usm_core::{
    AllocKind, Device, ErrorKind, EventStatus, MemAdvice, MemorySource, QueueOrder, Request, UsmVec,
};
use usm_kernel::sample::{add_carries, histogram, matmul, reduce, reverse, saxpy, scan};
use usm_kernel::{DeviceCode, Executable, Launch, NdRange, Shape};
use usm_level_zero::LevelZero;
use usm_tests::process::message;
use usm_tests::{Fixture, Provider, conformance_table};

use crate::suite::{First, WAIT_LIMIT, devices, first};
use crate::{Case, devices as many};

/// A wait in capture mode never succeeds.
const LIMIT: Duration = Duration::from_millis(10);

/// Cases with a time limit of their own.
const WAITING: [&str; 2] = ["a_context_waits_for_the_work_of_dropped_queues", "an_event_completes"];

/// Cases that depend on no result of work: they pass.
const CALL_LEVEL: [&str; 35] = [
    "each_kind_is_allocated_as_asked",
    "every_alignment_is_honoured",
    "zero_size_is_refused",
    "alignments_that_are_no_power_of_two_are_refused",
    "more_than_max_alloc_is_refused_with_both_numbers",
    "sizes_beyond_the_address_space_are_refused",
    "the_unknown_kind_is_refused",
    "live_blocks_are_disjoint",
    "freed_memory_is_given_out_again",
    "one_call_serves_all_four_types",
    "a_buffer_of_zero_bytes_is_refused",
    "interior_pointers_answer_with_base_and_size",
    "one_past_the_end_is_unknown",
    "a_freed_pointer_is_unknown",
    "pointers_of_nobody_are_unknown",
    "pointers_of_another_context_are_unknown",
    "the_runtime_agrees_with_the_registry",
    "host_memory_has_no_device",
    "a_range_outside_is_refused_with_the_numbers",
    "overlap_inside_an_allocation_is_refused",
    "one_byte_too_many_is_refused_by_every_operation",
    "memory_of_another_context_is_refused",
    "a_block_is_freed_once_by_its_owner",
    "a_buffer_of_another_context_is_refused",
    "memory_goes_back_to_its_own_context",
    "a_buffer_round_trip",
    "a_buffer_range_outside_is_refused",
    "an_event_of_another_context_is_refused",
    "statistics_follow_every_kind",
    "the_peak_is_that_of_the_sum",
    "history_keeps_the_last_records",
    "a_failed_allocation_leaves_no_trace",
    "threads_allocate_and_free",
    "twenty_thousand_pairs_leak_nothing",
    "a_device_reaches_its_own_memory_or_peers_are_unsupported",
];

pub(crate) fn skl() -> Vec<Case> {
    cases(|| says([3, 3, 3, 0, 0], 4_294_959_104, 65_536))
}

pub(crate) fn dg2() -> Vec<Case> {
    cases(|| says([1, 3, 3, 5, 0], 4_294_959_104, 65_536))
}

pub(crate) fn pvc() -> Vec<Case> {
    cases(|| says([1, 3, 3, 15, 0], 27_487_789_056, 131_072))
}

pub(crate) fn three() -> Vec<Case> {
    let _ = WAIT_LIMIT.set(LIMIT);
    let mut cases = many::three();
    cases.extend(own());
    cases
}

fn cases(limits: fn() -> Result<(), String>) -> Vec<Case> {
    let _ = WAIT_LIMIT.set(LIMIT);
    let mut cases: Vec<Case> = vec![("the_device_says_its_limits", limits)];
    let suite = conformance_table!(First).into_iter().filter(|(name, _)| CALL_LEVEL.contains(&plain(name)));
    cases.extend(suite);
    assert_eq!(cases.len(), CALL_LEVEL.len() + 1, "every case of the list is in the suite");
    cases.extend(own());
    cases
}

/// All the other cases of the suite.
pub(crate) fn executing() -> Vec<Case> {
    let _ = WAIT_LIMIT.set(LIMIT);
    let others = |name| !CALL_LEVEL.contains(&name) && !WAITING.contains(&name);
    conformance_table!(Ending).into_iter().filter(|(name, _)| others(plain(name))).collect()
}

/// The name of a case without its provider.
fn plain(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// Cases that need a result: they must end with a timeout, if they get that far.
struct Ending;

impl Provider for Ending {
    type Backend = Dyn;

    fn with(case: impl FnOnce(Fixture<'_, Dyn>)) -> Result<(), String> {
        let usual = take_hook();
        set_hook(Box::new(|_| {}));
        let outcome = catch_unwind(AssertUnwindSafe(|| First::with(case)));
        set_hook(usual);
        let said = outcome.err().map(|panic| message(panic.as_ref()));
        assert!(said.as_ref().is_none_or(|said| said.contains("not finished within")), "{said:?}");
        Ok(())
    }
}

/// Cases for a driver that never finishes.
fn own() -> Vec<Case> {
    crate::cases![
        a_recorded_copy_stays_pending,
        hints_are_recorded,
        what_is_in_flight_is_never_freed,
        every_sample_is_compiled_and_recorded,
    ]
    .into()
}

/// Intel's compiler builds every sample for the product; a refusal has the compiler's log.
fn every_sample_is_compiled_and_recorded() -> Result<(), String> {
    fn compiled<K: DeviceCode<D>, const D: usize>(arguments: usize) -> Executable<K, LevelZero, D> {
        let executable = Executable::<K, LevelZero, D>::build(&first())
            .unwrap_or_else(|error| panic!("{} is refused: {error}", K::NAME));
        let function = executable.function().expect("code");
        let info = function.info();
        let parameters = info.parameters.as_ref().expect("their number");
        // Code that ignores items beyond the range gets the range's sizes.
        let arguments = arguments + if K::GUARDED { D } else { 0 };
        assert_eq!((function.name(), parameters.len()), (K::FUNCTION, arguments), "{info:?}");
        assert!(!parameters.contains(&Shape::Unknown), "{info:?}");
        executable
    }
    compiled::<reduce, 1>(4);
    compiled::<matmul, 2>(8);
    compiled::<histogram, 1>(4);
    compiled::<saxpy, 1>(3);
    compiled::<scan, 1>(6);
    compiled::<add_carries, 1>(3);
    let ready = compiled::<reverse, 1>(2);
    let queue = ready.function().expect("code").context().queue(QueueOrder::InOrder).expect("a queue");
    let mut a = UsmVec::<f32, Device, _>::zeroed(&queue, 1024).expect("memory");
    let range = NdRange::new([1024], [32]).expect("a range");
    let event = Launch::new(&queue, range).run_on(&ready, reverse, (&mut a,)).expect("recorded");
    assert_eq!(event.status(), Ok(EventStatus::Pending));
    Ok(())
}

fn says(capabilities: [u32; 5], max_alloc: u64, local_memory: u64) -> Result<(), String> {
    let backend = LevelZero::load().expect("the library");
    let devices = devices(&backend);
    assert_eq!(devices.len(), 1);
    let info = devices[0].info();
    let found = info.capabilities;
    let found = [found.host, found.device, found.shared, found.cross_device_shared, found.system];
    assert_eq!(found.map(|flags| flags.bits()), capabilities);
    assert_eq!((info.max_alloc_size, info.local_mem_size), (max_alloc, local_memory));
    assert_eq!(info.vendor.to_string(), "Intel(R) Corporation");
    assert!(info.platform.as_str().starts_with("Level Zero 1."), "{}", info.platform);
    assert!(info.driver_version.as_str().starts_with("1."), "{}", info.driver_version);
    assert!(info.max_work_group_size >= 64 && info.global_mem_size >= info.max_alloc_size);
    Ok(())
}

/// The driver's own wait reports success at once; the backend still checks the event.
fn a_recorded_copy_stays_pending() -> Result<(), String> {
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        let queue = first().queue(order).expect("a queue");
        let source = queue.context().allocate(&Request::new(AllocKind::Device, 4096)).expect("memory");
        let mut target = queue.context().allocate(&Request::new(AllocKind::Device, 4096)).expect("memory");
        for _ in 0..100 {
            let event = queue.copy_bytes(&mut target, 0, &source, 0, 4096).expect("recorded");
            assert_eq!(event.status(), Ok(EventStatus::Pending));
        }
        let event = queue.fill_bytes(&mut target, 0, 4096, &[1, 2, 3, 4]).expect("recorded");
        let late = event.wait_for(LIMIT).expect_err("never").kind;
        assert_eq!(late, ErrorKind::Timeout { limit_ms: LIMIT.as_millis() as u64 });
        let event = queue.barrier(&[event]).expect("recorded");
        assert_eq!(event.status(), Ok(EventStatus::Pending));
    }
    Ok(())
}

fn hints_are_recorded() -> Result<(), String> {
    let queue = first().queue(QueueOrder::InOrder).expect("a queue");
    let memory = queue.context().allocate(&Request::new(AllocKind::Shared, 1 << 16)).expect("memory");
    let advice = [MemAdvice::ReadMostly, MemAdvice::PreferDevice, MemAdvice::PreferHost, MemAdvice::Reset];
    let hints = advice.map(|advice| queue.advise(&memory, advice));
    for hint in hints.into_iter().chain([queue.prefetch(&memory)]) {
        match hint {
            Ok(event) => assert_eq!(event.status(), Ok(EventStatus::Pending)),
            Err(error) => assert!(matches!(error.kind, ErrorKind::Unsupported { .. }), "{error}"),
        }
    }
    Ok(())
}

fn what_is_in_flight_is_never_freed() -> Result<(), String> {
    let context = first();
    let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    let source = UsmVec::<u64, Device, _>::uninit(&context, 512).expect("memory");
    let mut target = context.allocate(&Request::new(AllocKind::Shared, 4096)).expect("memory");
    let (_, address) = (source, target.as_ptr() as usize);
    let _ = queue.fill_bytes(&mut target, 0, 4096, &[7]).expect("recorded");
    drop((target, queue));
    assert_eq!(context.deferred_frees(), 1);
    assert_eq!(context.query_runtime(address).expect("an answer").kind, AllocKind::Shared);
    let start = Instant::now();
    drop(context);
    assert!(start.elapsed() < Duration::from_secs(5), "the end of a context is not waited for");
    Ok(())
}
