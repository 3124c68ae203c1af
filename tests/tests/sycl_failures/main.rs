//! Operations that fail under SYCL: work that follows one, through an event or the queue's order,
//! fails too.
//!
//! On a CPU nothing fails by itself, so a layer of the OpenCL loader makes it fail (`layer.c`,
//! built by the C compiler of the set-up). SYCL and its runtime are as installed.
//!
//! Its own harness: a process for each case, because opening the loader selects the layer.

#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc, reason = "a program with std")]

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use usm_core::backend::{DeviceOps, QueueOps};
use usm_core::{
    AllocKind, Backend, Context, Device, ErrorKind, Event, EventStatus, MemorySource, Queue, QueueOrder,
    Request, Shared, UsmVec,
};
use usm_sycl::Dpctl;
use usm_tests::conformance::failure;
use usm_tests::harness::{Tally, is_wanted};
use usm_tests::{Fixture, process};

/// A child's variable for its case.
const VARIABLE: &str = "SYCL_FAILURE_CASE";
/// The path of the layer.
const LAYER: &str = "OPENCL_LAYERS";
/// Time limit of a child, above every wait limit in the cases, so that such a wait reports first.
const LIMIT: Duration = Duration::from_secs(90);
/// Longer than any failure takes to be known.
const LONG: Duration = Duration::from_secs(60);

type Case = (&'static str, fn(&Fixture<'_, Dpctl>));

const CASES: [Case; 11] = [
    ("a_failed_event_fails_every_wait", failure::a_failed_event_fails_every_wait),
    ("a_failure_takes_the_rest_of_an_in_order_queue", failure::a_failure_takes_the_rest_of_an_in_order_queue),
    ("a_failure_takes_its_dependants_out_of_order", failure::a_failure_takes_its_dependants_out_of_order),
    ("a_failure_crosses_queues", failure::a_failure_crosses_queues),
    (
        "the_failure_of_a_dropped_queue_is_reported_once",
        failure::the_failure_of_a_dropped_queue_is_reported_once,
    ),
    ("what_fails_may_be_dropped_before", failure::what_fails_may_be_dropped_before),
    ("a_failure_is_known_at_a_distance", a_failure_is_known_at_a_distance),
    ("a_chain_of_fills_fails_from_its_start", a_chain_of_fills_fails_from_its_start),
    ("a_failure_goes_to_and_fro_between_queues", a_failure_goes_to_and_fro_between_queues),
    ("what_was_before_a_failure_is_complete", what_was_before_a_failure_is_complete),
    ("what_nobody_asks_about_is_not_kept", what_nobody_asks_about_is_not_kept),
];

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(VARIABLE) {
        let (_, case) = CASES.iter().find(|(known, _)| *known == name).expect("a known case");
        return child(*case);
    }
    let layer = context().map(drop).and_then(|()| layer());
    let mut tally = Tally::default();
    for (name, _) in CASES.iter().filter(|(name, _)| is_wanted(name)) {
        let layer = match &layer {
            Ok(layer) => layer,
            Err(reason) => {
                tally.miss("sycl", name, reason);
                continue;
            }
        };
        let ended = process::again(VARIABLE, name, LIMIT, |command| {
            command.env(LAYER, layer).stderr(Stdio::piped());
        });
        if ended.well() {
            tally.pass();
        } else {
            tally.fail(name, format_args!("{}\n{}{}", ended.end, ended.out, ended.errors));
        }
    }
    tally.end()
}

fn child(case: fn(&Fixture<'_, Dpctl>)) -> ExitCode {
    let (context, other) = (context().expect("found by the parent"), context().expect("found by the parent"));
    let layer = Layer::open();
    let failing = move |queue: &Queue<Dpctl>| layer.failing(queue);
    let fixture = Fixture { context: &context, other: &other, separate: false, failing: Some(&failing) };
    let outcome = catch_unwind(AssertUnwindSafe(|| case(&fixture)));
    // Work that a failed case holds back would be waited for.
    let _ = (layer.release)();
    if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn context() -> Result<Context<Dpctl>, String> {
    let backend = Dpctl::load().map_err(|error| error.to_string())?;
    let mut found = None;
    backend
        .for_each_device(&mut |device| {
            let capabilities = device.info().capabilities;
            if AllocKind::ALL.iter().all(|kind| !capabilities.of(*kind).is_empty()) {
                found.get_or_insert(device);
            }
        })
        .map_err(|error| error.to_string())?;
    let device = found.ok_or("no device with unified shared memory")?;
    Context::new(&backend, &device).map_err(|error| error.to_string())
}

/// Builds the layer.
fn layer() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("opencl-layer");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sycl_failures/layer.c");
    // Another process may have the file open, so a new one replaces it.
    let (library, fresh) = (folder.join("liblayer.so"), folder.join(format!("{}.so", std::process::id())));
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-pthread", "-o"]).args([&fresh, &source]);
    let built = compiler.status().map_err(|error| format!("cc: {error}"))?;
    if !built.success() {
        return Err(format!("cc: {built}"));
    }
    std::fs::rename(&fresh, &library).map_err(|error| error.to_string())?;
    Ok(library)
}

/// The layer of this process.
#[derive(Clone, Copy)]
struct Layer {
    fail: extern "C" fn(),
    release: extern "C" fn() -> c_int,
}

impl Layer {
    fn open() -> Self {
        let path = std::env::var_os(LAYER).expect("set by the parent");
        // SAFETY: already opened by the OpenCL loader, for good.
        let library: &libloading::Library =
            unsafe { Box::leak(Box::new(libloading::Library::new(path).expect("open"))) };
        // SAFETY: a function of the file with this signature.
        let fail = *unsafe { library.get::<extern "C" fn()>(b"layer_fail\0") }.expect("there");
        // SAFETY: as above.
        let release = *unsafe { library.get::<extern "C" fn() -> c_int>(b"layer_release\0") }.expect("there");
        Self { fail, release }
    }

    /// A fill that fails when it is released.
    fn failing(self, queue: &Queue<Dpctl>) -> (Event<Dpctl>, Box<dyn FnOnce()>) {
        let mut array = UsmVec::<u8, Device, _>::uninit(queue.context(), 8).expect("memory");
        // SAFETY: nothing reads it.
        let memory = unsafe { array.allocation_mut() };
        (self.fail)();
        let event = queue.fill_bytes(memory, 0, 8, &[1]).expect("a fill");
        let release = self.release;
        (event, Box::new(move || assert_eq!(release(), 1, "the fill came to the layer")))
    }
}

fn has_failed(event: &Event<Dpctl>) {
    let error = event.wait_for(LONG).expect_err("earlier work failed");
    assert!(matches!(error.kind, ErrorKind::Native { .. }), "{error}");
    assert!(event.status().is_err());
}

fn queue_and_array(
    fixture: &Fixture<'_, Dpctl>,
    order: QueueOrder,
) -> (Queue<Dpctl>, UsmVec<u64, Shared, Dpctl>) {
    let queue = fixture.context.queue(order).expect("a queue");
    let array = UsmVec::from_slice(&queue, &[1; 64]).expect("an array");
    (queue, array)
}

fn failing(fixture: &Fixture<'_, Dpctl>, queue: &Queue<Dpctl>) -> (Event<Dpctl>, Box<dyn FnOnce()>) {
    (fixture.failing.expect("given"))(queue)
}

/// The operations between depend on it only through the queue's order, and only the last one is
/// queried: copies, fills, hints and barriers.
fn a_failure_is_known_at_a_distance(fixture: &Fixture<'_, Dpctl>) {
    let (queue, mut array) = queue_and_array(fixture, QueueOrder::InOrder);
    let mut other = UsmVec::<u64, Device, _>::zeroed(&queue, 64).expect("an array");
    let (event, release) = failing(fixture, &queue);
    for value in 0..100 {
        let _ = queue.fill(&mut array, value).expect("submitted");
        let _ = queue.copy(&mut other, &array).expect("submitted");
        drop(queue.prefetch(array.allocation()));
    }
    let last = queue.barrier(&[]).expect("submitted");
    assert_eq!(last.status(), Ok(EventStatus::Pending));
    release();
    has_failed(&last);
    has_failed(&event);
    assert!(array.read().is_err() && queue.wait().is_err());
    let refused = queue.fill(&mut array, 7).expect_err("known by now");
    assert!(matches!(refused.kind, ErrorKind::Native { .. }), "{refused}");
}

/// Out of order, fills of one array, each behind the previous one only through a barrier: the
/// longest path to the failure, without recursion.
fn a_chain_of_fills_fails_from_its_start(fixture: &Fixture<'_, Dpctl>) {
    let (queue, mut array) = queue_and_array(fixture, QueueOrder::OutOfOrder);
    let (event, release) = failing(fixture, &queue);
    let bytes = array.allocation().as_ptr();
    let usages = [usm_core::Usage::write(array.allocation())];
    // SAFETY: the array belongs to this case and has that many bytes.
    let first =
        unsafe { queue.submit(&usages, &[event], |queue, events| queue.fill(bytes, &[3], 512, events)) };
    drop(first.expect("submitted"));
    let mut last = None;
    for value in 0..2000 {
        last = Some(queue.fill(&mut array, value).expect("submitted"));
    }
    release();
    has_failed(&last.expect("many"));
    assert!(array.read().is_err());
}

/// Two in-order queues that use one array in turns.
fn a_failure_goes_to_and_fro_between_queues(fixture: &Fixture<'_, Dpctl>) {
    let (one, mut array) = queue_and_array(fixture, QueueOrder::InOrder);
    let two = fixture.context.queue(QueueOrder::InOrder).expect("a queue");
    let before =
        two.fill(&mut UsmVec::<u8, Device, _>::zeroed(&two, 8).expect("an array"), 1).expect("a fill");
    let (_, release) = failing(fixture, &one);
    let mut last = None;
    for value in 0..50 {
        let _ = one.fill(&mut array, value).expect("submitted");
        last = Some(two.fill(&mut array, value).expect("submitted"));
    }
    release();
    has_failed(&last.expect("many"));
    before.wait_for(LONG).expect("before all that, in another queue");
    assert!(two.wait().is_err() && one.wait().is_err());
    // A new queue does not depend on it.
    let (fresh, mut array) = queue_and_array(fixture, QueueOrder::InOrder);
    fresh.fill(&mut array, 4).expect("a fill").wait_for(LONG).expect("done");
    assert_eq!(array.read().expect("a view")[..], [4; 64]);
}

/// Also if it is queried after the failure is known.
fn what_was_before_a_failure_is_complete(fixture: &Fixture<'_, Dpctl>) {
    let (queue, mut array) = queue_and_array(fixture, QueueOrder::InOrder);
    let events: Vec<_> = (0..10).map(|value| queue.fill(&mut array, value).expect("a fill")).collect();
    let (failed, release) = failing(fixture, &queue);
    release();
    has_failed(&failed);
    for event in &events {
        event.wait_for(LONG).expect("before the failure");
    }
    assert_eq!(array.read().expect("nothing of it failed")[..], [9; 64]);
}

/// A program that never waits keeps no event of completed work, as the process's memory shows.
fn what_nobody_asks_about_is_not_kept(fixture: &Fixture<'_, Dpctl>) {
    let queue = fixture.context.queue(QueueOrder::InOrder).expect("a queue");
    let memory = fixture.context.allocate(&Request::new(AllocKind::Shared, 8)).expect("memory");
    let barriers = |count: usize| {
        for _ in 0..count {
            drop(queue.barrier(&[]).expect("a barrier"));
        }
        queue.wait().expect("idle");
        resident()
    };
    let before = barriers(2_000);
    let after = barriers(30_000);
    drop(memory);
    assert!(after < before + (24 << 20), "{before} to {after} bytes");
}

fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    pages * 4096
}
