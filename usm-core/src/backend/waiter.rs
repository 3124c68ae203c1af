//! Waits with a limit, by threads that wait in the runtime for callers that have one.
//!
//! The runtimes' own waits have none. They must run all the same: on a CPU device the waiting thread takes part in the work,
//! and a caller that only polls leaves it to the runtime's other threads, which a busy machine schedules late: a copy of
//! 4 KiB takes 5 ms instead of 40 us. On an idle one it is the other way round, and handing the wait over takes longer
//! than the copy. So a caller first gives the processor away between its questions, and where it comes back late the
//! machine is busy: for a while from then on each wait goes at once to an idle thread of this pool, and its caller sleeps
//! until that thread says so. One whose operation never ends stays behind; its caller does not.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use super::{EventStatus, poll};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::sleeping::{Condvar, Mutex};

/// A wait gives the processor away between its questions for this long before a thread takes over, which then adds little.
const YIELD: Duration = Duration::from_millis(1);
/// A question that comes this late found the processor with somebody else: a turn of the scheduler is longer.
const LATE: Duration = Duration::from_micros(500);
/// How long a machine is taken to be busy that was found so for the first time; each further time in a row doubles it,
/// since finding out costs a turn or two of the scheduler.
const FIRST_BUSY: Duration = Duration::from_millis(16);
const LONGEST_BUSY: Duration = Duration::from_millis(512);
/// Threads that may be stuck at once; beyond that callers poll.
const MOST_WAITERS: usize = 64;

/// What a thread can wait for without a limit.
pub(super) trait Blocking: Debug + Send + Sync + 'static {
    /// Comes back when the operation has ended, however it has.
    fn block(&self);
}

/// What a caller and a waiter share.
#[derive(Debug)]
struct Ticket {
    event: Arc<dyn Blocking>,
    done: Mutex<bool>,
    signal: Condvar,
}

/// A thread of the pool, idle or not.
#[derive(Debug)]
struct Waiter {
    job: Mutex<Option<Arc<Ticket>>>,
    signal: Condvar,
}

#[derive(Debug)]
struct Pool {
    idle: Vec<Arc<Waiter>>,
    threads: usize,
}

/// Until when the machine is taken to be busy, and for how long it was when last found so.
static BUSY: Mutex<Option<(Instant, Duration)>> = Mutex::new(None);
/// Whether the above says anything: most waits find that it does not, and leave it so.
static MAY_BE_BUSY: AtomicBool = AtomicBool::new(false);

static POOL: Mutex<Pool> = Mutex::new(Pool { idle: Vec::new(), threads: 0 });

/// Waits until `status` says that `event` is complete, at most `limit`.
pub(super) fn until_complete<E: Blocking>(
    event: &Arc<E>,
    limit: Duration,
    status: impl Fn() -> Result<EventStatus>,
) -> Result<()> {
    if status()? == EventStatus::Complete {
        return Ok(());
    }
    let start = Instant::now();
    if complete_soon(start, limit, &status)? {
        return Ok(());
    }
    let event: Arc<dyn Blocking> = Arc::<E>::clone(event);
    wait(event, limit.saturating_sub(start.elapsed()));
    // Without a thread to be had, or when it gave up, this is the last word.
    let rest = limit.saturating_sub(start.elapsed());
    poll::until_complete(rest, status).map_err(|error| match error.kind {
        ErrorKind::Timeout { .. } => Error::timeout(limit),
        _ => error,
    })
}

/// Polls for a moment, not at all on a busy machine.
fn complete_soon(start: Instant, limit: Duration, status: impl Fn() -> Result<EventStatus>) -> Result<bool> {
    if MAY_BE_BUSY.load(Ordering::Relaxed) && BUSY.lock().is_some_and(|(until, _)| start < until) {
        return Ok(false);
    }
    let mut asked = start;
    while asked.duration_since(start) < YIELD.min(limit) {
        thread::yield_now();
        let complete = status()? == EventStatus::Complete;
        let now = Instant::now();
        let late = now.duration_since(asked) > LATE;
        if complete || late {
            note(late.then_some(now));
            return Ok(complete);
        }
        asked = now;
    }
    Ok(false)
}

/// Remembers that the machine was busy at that time, or that it was not.
fn note(late: Option<Instant>) {
    if late.is_none() && !MAY_BE_BUSY.load(Ordering::Relaxed) {
        return;
    }
    MAY_BE_BUSY.store(late.is_some(), Ordering::Relaxed);
    let mut busy = BUSY.lock();
    *busy = late.map(|now| {
        let hold = busy.map_or(FIRST_BUSY, |(_, hold)| (hold * 2).min(LONGEST_BUSY));
        (now + hold, hold)
    });
}

/// Has a thread wait for `event` and comes back when it has, after `limit`, or at once when no thread is to be had.
fn wait(event: Arc<dyn Blocking>, limit: Duration) {
    let Some(waiter) = idle() else { return };
    let ticket = Arc::new(Ticket { event, done: Mutex::new(false), signal: Condvar::new() });
    *waiter.job.lock() = Some(Arc::clone(&ticket));
    waiter.signal.notify_one();
    let start = Instant::now();
    let mut done = ticket.done.lock();
    while !*done {
        let rest = limit.saturating_sub(start.elapsed());
        if rest.is_zero() {
            return;
        }
        done = ticket.signal.wait_timeout(done, rest);
    }
}

fn idle() -> Option<Arc<Waiter>> {
    let mut pool = POOL.lock();
    if let Some(waiter) = pool.idle.pop() {
        return Some(waiter);
    }
    if pool.threads == MOST_WAITERS {
        return None;
    }
    let waiter = Arc::new(Waiter { job: Mutex::new(None), signal: Condvar::new() });
    let own = Arc::clone(&waiter);
    thread::Builder::new().name("usm-wait".into()).spawn(move || own.run()).ok()?;
    pool.threads += 1;
    Some(waiter)
}

impl Waiter {
    fn run(self: Arc<Self>) {
        loop {
            let mut job = self.job.lock();
            let ticket = loop {
                match job.take() {
                    Some(ticket) => break ticket,
                    None => job = self.signal.wait(job),
                }
            };
            drop(job);
            ticket.event.block();
            *ticket.done.lock() = true;
            ticket.signal.notify_one();
            drop(ticket);
            POOL.lock().idle.push(Arc::clone(&self));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// Ends only by the part that a waiting thread takes in it.
    #[derive(Debug, Default)]
    struct NeedsHelp(AtomicBool);

    impl Blocking for NeedsHelp {
        fn block(&self) {
            self.0.store(true, Ordering::Release);
        }
    }

    impl NeedsHelp {
        fn status(&self) -> EventStatus {
            if self.0.load(Ordering::Acquire) { EventStatus::Complete } else { EventStatus::Pending }
        }
    }

    #[derive(Debug)]
    struct Endless;

    impl Blocking for Endless {
        fn block(&self) {
            loop {
                thread::park();
            }
        }
    }

    #[test]
    fn an_operation_that_needs_a_waiting_thread_has_one() {
        let event = Arc::new(NeedsHelp::default());
        until_complete(&event, LONG, || Ok(event.status())).unwrap();
    }

    #[test]
    fn on_a_busy_machine_too() {
        let event = Arc::new(NeedsHelp::default());
        let asked = AtomicBool::new(false);
        let late = || {
            if asked.swap(true, Ordering::Relaxed) {
                thread::sleep(LATE * 2);
            }
            Ok(event.status())
        };
        until_complete(&event, LONG, late).unwrap();
    }

    #[test]
    fn a_wait_for_what_never_ends_names_its_limit() {
        let limit = Duration::from_millis(5);
        let error = until_complete(&Arc::new(Endless), limit, || Ok(EventStatus::Pending)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Timeout { limit_ms: 5 });
    }

    #[test]
    fn what_failed_while_a_thread_waited_is_the_answer() {
        let event = Arc::new(NeedsHelp::default());
        let status = || match event.status() {
            EventStatus::Complete => Err(Error::from(ErrorKind::DeviceLost)),
            pending => Ok(pending),
        };
        assert_eq!(until_complete(&event, LONG, status).unwrap_err().kind, ErrorKind::DeviceLost);
    }
}
