//! Forks, while threads allocate, free, submit and wait.

use std::process::{ExitCode, exit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use usm_core::backend::Dyn;
use usm_core::backend::host::HostHeap;
use usm_core::{
    AllocKind, BackendKind, Context, Error, ErrorKind, MemorySource, QueueOrder, Request, Result, UsmVec,
};

use crate::program::{Lane, Program};

/// Kills a hung child.
const SECONDS: u32 = 20;

/// The exit status of a child that runs `work` and returns from it, as the C library's number.
fn child(work: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child uses only the parts that are guaranteed to work after a fork beside
    // threads: the C library's heap, and this library.
    match unsafe { libc::fork() } {
        -1 => panic!("no child"),
        0 => {
            // SAFETY: sets a timer.
            unsafe { libc::alarm(SECONDS) };
            exit(work())
        }
        id => {
            let mut status = 0;
            // SAFETY: a child, and room for its status.
            while unsafe { libc::waitpid(id, &raw mut status, 0) } != id {}
            status
        }
    }
}

/// A child that drops the objects it finds, uses new ones, and ends while the parent's work is in
/// flight.
pub(crate) fn child_ends(program: Program) -> ExitCode {
    let status = child(move || {
        drop(program);
        7
    });
    exit(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) })
}

/// Many children of a program whose threads allocate and free.
pub(crate) fn many(program: Program) -> ExitCode {
    static STOP: AtomicBool = AtomicBool::new(false);
    let count = std::env::var("USM_FORKS").ok().and_then(|count| count.parse().ok()).unwrap_or(12);
    let heap = HostHeap::new().context();
    heap.keep_history(16);
    let erased = Dyn::new(HostHeap::new()).devices().expect("devices")[0].context().expect("a heap");
    let mut threads = Vec::new();
    for _ in 0..2 {
        let (heap, erased) = (heap.clone(), erased.clone());
        threads.push(thread::spawn(move || {
            while !STOP.load(Ordering::Relaxed) {
                on_host(&heap).expect("the heap");
                on_erased_host(&erased).expect("the heap");
            }
        }));
    }
    for mut lane in program.small_lanes(if program.never_answers { 0 } else { 1 }) {
        threads.push(thread::spawn(move || {
            while !STOP.load(Ordering::Relaxed) {
                lane.copy().and_then(|()| lane.queue.wait()).expect("a copy");
            }
        }));
    }
    let mut died = Vec::new();
    for number in 0..count {
        let status = child(|| {
            let works = on_host(&heap).and_then(|()| on_erased_host(&erased));
            let outcome = works.and_then(|()| refused(&program));
            if let Err(error) = outcome {
                eprintln!("child {number}: {error}");
            }
            if number % 2 == 0 {
                return i32::from(outcome.is_err());
            }
            // SAFETY: ends the process.
            unsafe { libc::_exit(i32::from(outcome.is_err())) }
        });
        if status != 0 {
            died.push(status);
        }
    }
    STOP.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    if !died.is_empty() {
        eprintln!("{} of {count} children ended with {:?}", died.len(), died);
    }
    exit(if died.is_empty() { 3 } else { 1 })
}

fn on_host(heap: &Context<HostHeap>) -> Result<()> {
    let queue = heap.queue(QueueOrder::InOrder)?;
    let array = UsmVec::<u32, usm_core::Host, _>::zeroed(&queue, 100)?;
    assert!(array.read()?.iter().all(|element| *element == 0));
    Ok(())
}

fn on_erased_host(heap: &Context<Dyn>) -> Result<()> {
    let mut lane = Lane::new(heap, QueueOrder::OutOfOrder, 256)?;
    lane.copy()?;
    lane.queue.wait()
}

/// A runtime that was open in the parent is refused in the child for every call; plain host memory
/// works.
fn refused(program: &Program) -> Result<()> {
    let context = &program.contexts[0];
    let is_host = context.info().backend == BackendKind::Host;
    let (lane, limit) = (&program.lanes[0], core::time::Duration::from_secs(5));
    let request = Request::new(lane.dst.kind(), 64);
    let answers: [(&str, Result<()>); 7] = [
        ("allocate", context.allocate(&request).map(drop)),
        ("queue", context.queue(QueueOrder::InOrder).map(drop)),
        ("barrier", lane.queue.barrier(&[]).map(drop)),
        ("wait", lane.queue.wait()),
        ("synchronize", context.synchronize(limit)),
        ("query", context.query_runtime(64).map(drop)),
        (
            "view",
            if lane.dst.kind() == AllocKind::Device {
                Err(ErrorKind::Forked.into())
            } else {
                lane.dst.wait_for_host(usm_core::Access::Read).map(drop)
            },
        ),
    ];
    for (question, answer) in answers {
        let is_right = match answer {
            Ok(()) => is_host,
            Err(Error { kind: ErrorKind::Forked, .. }) => !is_host,
            Err(_) => false,
        };
        if !is_right {
            eprintln!("{question}: {answer:?}");
            return Err(answer.err().unwrap_or(ErrorKind::DeviceLost.into()));
        }
    }
    Ok(())
}
