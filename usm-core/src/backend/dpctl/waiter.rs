//! Threads that wait in the runtime for callers that have a limit.
//!
//! The library's own wait has none. It must run all the same: on a CPU device the waiting thread takes part in the work, and
//! a caller that only polls leaves it to the runtime's other threads, which a busy machine schedules late (a copy of 1 MiB
//! was measured 50 times slower). So an idle thread of this pool waits, and the caller waits for that thread. One whose
//! operation never ends stays behind; its caller does not.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use super::loader::Handle;

/// Threads that may be stuck at once; beyond that callers poll.
const MOST_WAITERS: usize = 64;

/// What a caller and a waiter share.
#[derive(Debug)]
struct Ticket {
    event: Arc<Handle>,
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

/// Has a thread wait for `event` and comes back when it has, after `limit`, or at once when no thread is to be had. The
/// event's status says which.
pub(super) fn wait(event: &Arc<Handle>, limit: Duration) {
    let Some(waiter) = idle() else { return };
    let ticket =
        Arc::new(Ticket { event: Arc::clone(event), done: Mutex::new(false), signal: Condvar::new() });
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
    thread::Builder::new().name("usm-dpctl-wait".into()).spawn(move || own.run()).ok()?;
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
            // SAFETY: a live event, kept so by the ticket; the function lets no exception out.
            unsafe { (ticket.event.library().event_wait)(ticket.event.raw()) };
            *locked(&ticket.done) = true;
            ticket.signal.notify_one();
            drop(ticket);
            locked(&POOL).idle.push(Arc::clone(&self));
        }
    }
}
