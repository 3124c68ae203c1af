//! Waits with a limit, by threads that wait in the runtime for callers that have one.
//!
//! The runtimes' own waits have none. They must run all the same: on a CPU device the waiting thread takes part in the work,
//! and a caller that only polls leaves it to the runtime's other threads, which a busy machine schedules late (a copy of
//! 1 MiB was measured 50 times slower). So an idle thread of this pool waits, and the caller waits for that thread. One whose
//! operation never ends stays behind; its caller does not.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::time::Duration;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use super::{EventStatus, poll};
use crate::error::{Error, ErrorKind, Result};

/// A wait polls without a pause for about the time of a small operation.
const SPIN: Duration = Duration::from_micros(20);
/// Then it gives the processor away between its questions for about as long as handing over to a thread takes twice.
const YIELD: Duration = Duration::from_micros(100);
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

static POOL: Mutex<Pool> = Mutex::new(Pool { idle: Vec::new(), threads: 0 });

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until `status` says that `event` is complete, at most `limit`: polls for a moment, then has a thread wait.
pub(super) fn until_complete<E: Blocking>(
    event: &Arc<E>,
    limit: Duration,
    status: impl Fn() -> Result<EventStatus>,
) -> Result<()> {
    let start = Instant::now();
    while status()? == EventStatus::Pending {
        let elapsed = start.elapsed();
        if elapsed < SPIN.min(limit) {
            core::hint::spin_loop();
            continue;
        }
        if elapsed < YIELD.min(limit) {
            thread::yield_now();
            continue;
        }
        let event: Arc<dyn Blocking> = Arc::<E>::clone(event);
        wait(event, limit.saturating_sub(elapsed));
        // Without a thread to be had, or when it gave up, this is the last word.
        let rest = limit.saturating_sub(start.elapsed());
        return poll::until_complete(rest, status).map_err(|error| match error.kind {
            ErrorKind::Timeout { .. } => Error::timeout(limit),
            _ => error,
        });
    }
    Ok(())
}

/// Has a thread wait for `event` and comes back when it has, after `limit`, or at once when no thread is to be had.
fn wait(event: Arc<dyn Blocking>, limit: Duration) {
    let Some(waiter) = idle() else { return };
    let ticket = Arc::new(Ticket { event, done: Mutex::new(false), signal: Condvar::new() });
    *locked(&waiter.job) = Some(Arc::clone(&ticket));
    waiter.signal.notify_one();
    let start = Instant::now();
    let mut done = locked(&ticket.done);
    while !*done {
        let rest = limit.saturating_sub(start.elapsed());
        if rest.is_zero() {
            return;
        }
        done = ticket.signal.wait_timeout(done, rest).unwrap_or_else(PoisonError::into_inner).0;
    }
}

fn idle() -> Option<Arc<Waiter>> {
    let mut pool = locked(&POOL);
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
            let mut job = locked(&self.job);
            let ticket = loop {
                match job.take() {
                    Some(ticket) => break ticket,
                    None => job = self.signal.wait(job).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(job);
            ticket.event.block();
            *locked(&ticket.done) = true;
            ticket.signal.notify_one();
            drop(ticket);
            locked(&POOL).idle.push(Arc::clone(&self));
        }
    }
}
