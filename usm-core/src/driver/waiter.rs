//! Waits with a limit, by one thread that waits in the runtime for callers that have one.
//!
//! The runtimes' own waits have no limit, and must run all the same. On a CPU device the waiting
//! thread takes part in the work. A caller that only polls leaves it to the runtime's other
//! threads, which a busy machine schedules late: a copy of 4 KiB takes 5 ms instead of 40 us. On an
//! idle machine polling is faster: handing the wait to another thread takes longer than the copy.
//! So a caller first gives the processor away between its queries. If it comes back late, the
//! machine is busy: for a while each wait then goes at once to a thread of its own, and its caller
//! sleeps until that thread is done. Reading the clock is part of the cost of a short wait, so
//! while the machine is not busy few waits read it before their fifth query.
//!
//! **One** thread for the process, whatever the number of callers: Intel's CPU runtime keeps room
//! for one thread beside its workers. A second one finds none, and the runtime then has a thread
//! that already waits do its wait. If that thread is just running the same queue, it waits for
//! itself: a deadlock, seen with two waits on out-of-order queues on two processors. The thread
//! also works on the operations that other callers wait for: a caller whose turn has not come
//! queries now and then.

mod wait_queue;

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use self::wait_queue::{Ticket, WaitQueue};
use super::poll;
use crate::backend::EventStatus;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::sleeping::Mutex;

pub use self::wait_queue::Blocking;

/// A wait polls for this long, giving the processor away between queries. Then a thread takes over,
/// which adds little.
const YIELD: Duration = Duration::from_millis(1);
/// A query this late means that another thread had the processor: a scheduler's turn is longer.
const LATE: Duration = Duration::from_micros(500);
/// How long a machine is taken to be busy that was found so for the first time; each further time
/// in a row doubles it, since finding out costs some turns of the scheduler.
const FIRST_BUSY: Duration = Duration::from_millis(16);
const LONGEST_BUSY: Duration = Duration::from_millis(512);
/// One wait of so many measures its first questions too, on a machine that was not found busy.
const MEASURED: u32 = 8;
/// Queries without a clock: the third mostly answers for an operation of a few microseconds.
const UNMEASURED: u32 = 3;
/// If each query may take a scheduler's turn, this is still long.
const MANY_TURNS: Duration = Duration::from_millis(250);
static WAIT_QUEUE: WaitQueue = WaitQueue::new();
/// Waits, about: those of two threads at once may count as one.
static WAITS: AtomicU32 = AtomicU32::new(0);

/// The machine counts as busy until then, and for how long it did so last.
static BUSY: Mutex<Option<(Instant, Duration)>> = Mutex::new(None);
/// Whether the machine counts as busy at all: most waits find that it does not, and leave it so.
static MAY_BE_BUSY: AtomicBool = AtomicBool::new(false);

/// Waits until `status` says that an event is complete, at most `limit`. What `blocking` gives
/// waits for it without a limit; none where a program decides when it ends: such a wait would keep
/// the only thread from all others.
pub fn until_complete(
    limit: Duration,
    status: impl Fn() -> Result<EventStatus>,
    blocking: impl FnOnce() -> Option<Blocking>,
) -> Result<()> {
    if status()? == EventStatus::Complete {
        return Ok(());
    }
    if limit >= MANY_TURNS && !is_measured() {
        for _ in 0..UNMEASURED {
            thread::yield_now();
            if status()? == EventStatus::Complete {
                return Ok(());
            }
        }
    }
    let start = Instant::now();
    if complete_soon(start, limit, &status)? {
        return Ok(());
    }
    if let Some(block) = blocking() {
        WAIT_QUEUE.wait(
            &Ticket::new(block),
            || limit.saturating_sub(start.elapsed()),
            &status,
            start_thread,
        )?;
    }
    // Without a thread this is the wait, otherwise the last query.
    let rest = limit.saturating_sub(start.elapsed());
    poll::until_complete(rest, status).map_err(|error| match error.kind {
        ErrorKind::Timeout { .. } => Error::timeout(limit),
        _ => error,
    })
}

/// Whether the first queries read the clock: always while the machine may be busy.
fn is_measured() -> bool {
    let count = WAITS.load(Ordering::Relaxed).wrapping_add(1);
    WAITS.store(count, Ordering::Relaxed);
    count % MEASURED == 0 || MAY_BE_BUSY.load(Ordering::Relaxed)
}

/// Whether the wait queue has its thread now.
fn start_thread() -> bool {
    thread::Builder::new().name("usm-wait".into()).spawn(|| WAIT_QUEUE.serve()).is_ok()
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

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::sync::Arc;
    use core::sync::atomic::AtomicUsize;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// Ends only by the part that a waiting thread takes in it.
    #[derive(Debug, Default)]
    struct NeedsHelp(AtomicBool);

    impl NeedsHelp {
        fn block(&self) {
            self.0.store(true, Ordering::Release);
        }

        fn status(&self) -> EventStatus {
            if self.0.load(Ordering::Acquire) { EventStatus::Complete } else { EventStatus::Pending }
        }
    }

    /// Has a thread wait for an event by `block`.
    fn by<E: Send + Sync + 'static>(event: &Arc<E>, block: fn(&E)) -> Option<Blocking> {
        let event = Arc::clone(event);
        Some(Box::new(move || block(&event)))
    }

    /// Keeps the thread until it is opened.
    #[derive(Debug, Default)]
    struct Gate {
        taken: AtomicBool,
        open: AtomicBool,
    }

    impl Gate {
        fn block(&self) {
            self.taken.store(true, Ordering::Release);
            while !self.open.load(Ordering::Acquire) {
                thread::sleep(Duration::from_millis(1));
            }
        }

        fn status(&self) -> EventStatus {
            if self.open.load(Ordering::Acquire) { EventStatus::Complete } else { EventStatus::Pending }
        }
    }

    #[test]
    fn an_operation_that_needs_a_waiting_thread_has_one() {
        let event = Arc::new(NeedsHelp::default());
        until_complete(LONG, || Ok(event.status()), || by(&event, NeedsHelp::block)).unwrap();
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
        until_complete(LONG, late, || by(&event, NeedsHelp::block)).unwrap();
    }

    /// Each of many callers has its wait, and no two are in the runtime at once.
    #[test]
    fn one_thread_waits_for_many_callers() {
        static INSIDE: AtomicUsize = AtomicUsize::new(0);
        static MOST: AtomicUsize = AtomicUsize::new(0);

        #[derive(Debug, Default)]
        struct Counted(NeedsHelp);

        impl Counted {
            fn block(&self) {
                MOST.fetch_max(INSIDE.fetch_add(1, Ordering::AcqRel) + 1, Ordering::AcqRel);
                thread::sleep(Duration::from_millis(2));
                INSIDE.fetch_sub(1, Ordering::AcqRel);
                self.0.block();
            }
        }

        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let event = Arc::new(Counted::default());
                    until_complete(LONG, || Ok(event.0.status()), || by(&event, Counted::block)).unwrap();
                });
            }
        });
        assert_eq!(MOST.load(Ordering::Acquire), 1);
    }

    /// The caller polls for an event that the program sets; other callers have the thread
    /// meanwhile.
    #[test]
    fn a_wait_for_what_never_ends_names_its_limit_and_keeps_nobody() {
        let limit = Duration::from_millis(5);
        let endless = || until_complete(limit, || Ok(EventStatus::Pending), || None).unwrap_err();
        assert_eq!(endless().kind, ErrorKind::Timeout { limit_ms: 5 });
        let event = Arc::new(NeedsHelp::default());
        until_complete(LONG, || Ok(event.status()), || by(&event, NeedsHelp::block)).unwrap();
        assert_eq!(endless().kind, ErrorKind::Timeout { limit_ms: 5 });
    }

    /// Callers that wait behind an operation that does not end find out by themselves, and those
    /// that gave up leave nothing behind.
    #[test]
    fn a_turn_that_does_not_come_is_not_waited_for() {
        let release = Arc::new(Gate::default());
        let held = Arc::clone(&release);
        thread::scope(|scope| {
            let first = scope.spawn(move || {
                until_complete(LONG, || Ok(held.status()), || by(&held, Gate::block)).unwrap();
            });
            while !release.taken.load(Ordering::Acquire) {
                thread::yield_now();
            }
            let asked = AtomicUsize::new(0);
            let by_itself = || {
                let complete = asked.fetch_add(1, Ordering::Relaxed) > 2_000_000;
                Ok(if complete { EventStatus::Complete } else { EventStatus::Pending })
            };
            let behind = Arc::new(Gate::default());
            let soon = Duration::from_millis(20);
            let error = until_complete(soon, by_itself, || by(&behind, Gate::block)).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Timeout { limit_ms: 20 });
            assert!(!behind.taken.load(Ordering::Acquire));
            assert_eq!(Arc::strong_count(&behind), 1, "its ticket is still in the line");
            asked.store(usize::MAX / 2, Ordering::Relaxed);
            until_complete(LONG, by_itself, || by(&behind, Gate::block)).unwrap();
            release.open.store(true, Ordering::Release);
            first.join().unwrap();
        });
    }

    #[test]
    fn what_failed_while_a_thread_waited_is_the_answer() {
        let event = Arc::new(NeedsHelp::default());
        let status = || match event.status() {
            EventStatus::Complete => Err(Error::from(ErrorKind::DeviceLost)),
            pending => Ok(pending),
        };
        assert_eq!(
            until_complete(LONG, status, || by(&event, NeedsHelp::block)).unwrap_err().kind,
            ErrorKind::DeviceLost
        );
    }
}
