//! Failed user events on OpenCL: Intel's CPU runtime reports work behind one as complete, the
//! backend does not. In-order queues only: on others that runtime sometimes ends the process, or
//! never ends it.
//!
//! Its own harness: a process for each case. A wrong answer fails at once, and so does a process
//! that hangs before its answer. A process that a signal ends without an answer is repeated a few
//! times, and the case fails if none answers.

#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc, reason = "a program with std")]

use core::ffi::c_void;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

use usm_core::backend::DeviceOps;
use usm_core::{
    AllocKind, Backend, Context, ErrorKind, Event, EventStatus, Queue, QueueOrder, Shared, UsmVec,
};
use usm_opencl::raw::{self, cl_context, cl_event, cl_int};
use usm_opencl::{OpenCl, OpenClEvent};
use usm_tests::conformance::failure;
use usm_tests::harness::{Tally, is_wanted};
use usm_tests::{Fixture, process};

/// A child's variable for its case.
const VARIABLE: &str = "OPENCL_FAILURE_CASE";
/// Maximum number of deaths of a case without an answer.
const TRIES: usize = 4;
/// Time limit of a child, above every wait limit in the cases, so that such a wait reports first.
const LIMIT: Duration = Duration::from_secs(90);

const IN_ORDER: QueueOrder = QueueOrder::InOrder;

type Case = (&'static str, fn(&Fixture<'_, OpenCl>));

const CASES: [Case; 8] = [
    ("a_failed_event_fails_every_wait", |fixture| failure::fails_every_wait(fixture, IN_ORDER)),
    ("a_failure_takes_the_rest_of_an_in_order_queue", failure::a_failure_takes_the_rest_of_an_in_order_queue),
    ("a_failure_crosses_queues", |fixture| failure::crosses_queues(fixture, [IN_ORDER; 2])),
    (
        "the_failure_of_a_dropped_queue_is_reported_once",
        failure::the_failure_of_a_dropped_queue_is_reported_once,
    ),
    ("what_fails_may_be_dropped_before", |fixture| failure::may_be_dropped_before(fixture, IN_ORDER)),
    ("a_failure_is_known_at_a_distance", a_failure_is_known_at_a_distance),
    ("work_behind_a_failure_that_is_known_is_refused", work_behind_a_failure_that_is_known_is_refused),
    ("what_follows_a_success_is_complete", what_follows_a_success_is_complete),
];

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(VARIABLE) {
        let (_, case) = CASES.iter().find(|(known, _)| *known == name).expect("a known case");
        return child(*case);
    }
    let here = context().map(drop);
    let mut tally = Tally::default();
    for (name, _) in CASES.iter().filter(|(name, _)| is_wanted(name)) {
        match here.as_ref().map(|()| parent(name)) {
            Ok(Ok(())) => tally.pass(),
            Ok(Err(reason)) => tally.fail(name, reason),
            Err(reason) => tally.miss("opencl", name, reason),
        }
    }
    tally.end()
}

/// Runs a case in processes until one answers.
fn parent(name: &str) -> Result<(), String> {
    let mut ends = String::new();
    for attempt in 1..=TRIES {
        let ended = process::again(VARIABLE, name, LIMIT, |_| ());
        let (answer, end) = (&ended.out, &ended.end);
        if let Some(wrong) = answer.lines().find(|line| line.starts_with("wrong")) {
            return Err(wrong.to_owned());
        }
        let right = answer.lines().any(|line| line == "right");
        if !ended.well() {
            let when = if right { "after" } else { "before" };
            println!("{name}, process {attempt} of {TRIES}: {end}, {when} its answer");
            ends.push_str(&format!(" {end};"));
        }
        if right {
            return Ok(());
        }
        if !end.starts_with("signal") {
            return Err(format!("no answer: {end}"));
        }
    }
    Err(format!("no answer of {TRIES} processes:{ends}"))
}

/// Prints the answer before anything else of the process can end it.
fn child(case: fn(&Fixture<'_, OpenCl>)) -> ExitCode {
    let contexts = context().and_then(|first| Ok((first, context()?)));
    let (context, other) = contexts.expect("the parent found it");
    let fixture =
        Fixture { context: &context, other: &other, separate: true, failing: Some(&fail_by_user_event) };
    let answer = match catch_unwind(AssertUnwindSafe(|| case(&fixture))) {
        Ok(()) => "right".to_owned(),
        Err(panic) => format!("wrong: {}", process::message(panic.as_ref()).replace('\n', " ")),
    };
    println!("{answer}");
    let _ = std::io::stdout().flush();
    if answer == "right" { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// On the first device with all kinds of USM.
fn context() -> Result<Context<OpenCl>, String> {
    let backend = OpenCl::load().map_err(|error| error.to_string())?;
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

/// A marker behind an event that the program sets, finally to a failure.
fn fail_by_user_event(queue: &Queue<OpenCl>) -> (Event<OpenCl>, Box<dyn FnOnce()>) {
    let (marker, user) = behind_user_event(queue);
    (marker, Box::new(move || drop(user)))
}

fn behind_user_event(queue: &Queue<OpenCl>) -> (Event<OpenCl>, UserEvent) {
    type Create = unsafe extern "C" fn(cl_context, *mut cl_int) -> cl_event;
    type Release = unsafe extern "C" fn(cl_event) -> cl_int;
    let context = queue.context();
    let function = |name| raw::function(context.raw(), name).expect("in every loader").as_ptr();
    // SAFETY: functions of OpenCL 1.1 with these signatures.
    let (create, set, release) = unsafe {
        (
            core::mem::transmute::<*mut c_void, Create>(function(c"clCreateUserEvent")),
            core::mem::transmute::<*mut c_void, Set>(function(c"clSetUserEventStatus")),
            core::mem::transmute::<*mut c_void, Release>(function(c"clReleaseEvent")),
        )
    };
    let mut status = 0;
    // SAFETY: a live context, room for the status.
    let user = unsafe { create(context.raw().as_raw(), &raw mut status) };
    assert_eq!(status, 0);
    // SAFETY: a live event of the context.
    let event = unsafe { OpenClEvent::from_raw(context.raw(), user) }.expect("an event");
    // SAFETY: an event of the context.
    let event = unsafe { Event::from_raw(context, event) };
    let marker = queue.barrier(&[event]).expect("a marker");
    (marker, UserEvent { user, status: FAILED, set, release })
}

type Set = unsafe extern "C" fn(cl_event, cl_int) -> cl_int;
/// `CL_OUT_OF_RESOURCES`.
const FAILED: cl_int = -5;
const COMPLETE: cl_int = 0;

/// Set in its drop, so that a case that ends early leaves no endless work.
struct UserEvent {
    user: cl_event,
    status: cl_int,
    set: Set,
    release: unsafe extern "C" fn(cl_event) -> cl_int,
}

impl Drop for UserEvent {
    fn drop(&mut self) {
        // SAFETY: a live user event that was not set; its reference is released once.
        let answers = unsafe { ((self.set)(self.user, self.status), (self.release)(self.user)) };
        assert!(answers == (0, 0) || std::thread::panicking(), "{answers:?}");
    }
}

/// Longer than any failure takes to be known.
const LONG: Duration = Duration::from_secs(60);

fn queue_and_array(fixture: &Fixture<'_, OpenCl>) -> (Queue<OpenCl>, UsmVec<u64, Shared, OpenCl>) {
    let queue = fixture.context.queue(IN_ORDER).expect("a queue");
    let array = UsmVec::from_slice(&queue, &[1; 64]).expect("an array");
    (queue, array)
}

/// The operations between depend on the user event only through their order.
fn a_failure_is_known_at_a_distance(fixture: &Fixture<'_, OpenCl>) {
    let (queue, mut array) = queue_and_array(fixture);
    let (_, user) = behind_user_event(&queue);
    let behind: Vec<_> = (2..10).map(|value| queue.fill(&mut array, value).expect("submitted")).collect();
    let last = queue.barrier(&[]).expect("submitted");
    assert!(behind.iter().all(|event| event.status() == Ok(EventStatus::Pending)));
    drop(user);
    for event in behind.iter().chain([&last]) {
        let error = event.wait_for(LONG).expect_err("what it follows failed");
        assert!(matches!(error.kind, ErrorKind::Native { .. }), "{error}");
        assert_eq!(error.native, Some(i64::from(FAILED)), "{error}");
    }
}

/// It never starts, so the memory is unchanged and may be read.
fn work_behind_a_failure_that_is_known_is_refused(fixture: &Fixture<'_, OpenCl>) {
    let (queue, mut array) = queue_and_array(fixture);
    let (marker, user) = behind_user_event(&queue);
    drop(user);
    marker.wait_for(LONG).expect_err("failed");
    let error = queue.fill(&mut array, 2).expect_err("refused");
    assert!(matches!(error.kind, ErrorKind::Native { .. }), "{error}");
    assert_eq!(array.read().expect("nothing touched it")[..], [1; 64]);
}

/// The same with an event that succeeds: its record is no failure.
fn what_follows_a_success_is_complete(fixture: &Fixture<'_, OpenCl>) {
    let (queue, mut array) = queue_and_array(fixture);
    let (marker, mut user) = behind_user_event(&queue);
    let behind = queue.fill(&mut array, 2).expect("submitted");
    assert_eq!(behind.status(), Ok(EventStatus::Pending));
    user.status = COMPLETE;
    drop(user);
    behind.wait_for(LONG).expect("complete");
    assert_eq!(marker.status(), Ok(EventStatus::Complete));
    assert_eq!(array.read().expect("a view")[..], [2; 64]);
}
