//! Waits with a limit, made by one thread that waits in the runtime for all callers.
//!
//! The runtimes' own waits have no limit, and must run all the same. On a CPU device the waiting
//! thread takes part in the work. A caller that only polls leaves it to the runtime's other
//! threads, which a busy machine schedules late: a copy of 4 KiB takes 5 ms instead of 40 us. On an
//! idle machine polling is faster: handing the wait to another thread takes longer than the copy.
//! So a caller first stays awake as in every [wait](super::poll), on a busy machine not at all.
//! Then the thread waits, and the caller sleeps until it is done. Reading the clock is part of the
//! cost of a short wait, so while the machine is not busy few waits read it before their fifth
//! query.
//!
//! **One** thread for the process, whatever the number of callers: a CPU runtime may keep room for
//! one thread beside its workers. A second one finds none, and the runtime then has a thread
//! that already waits do its wait. If that thread is just running the same queue, it waits for
//! itself: a deadlock, seen with two waits on out-of-order queues on two processors. The thread
//! also works on the operations that other callers wait for: a caller whose turn has not come
//! queries now and then.

mod wait_queue;

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use self::wait_queue::{Ticket, WaitQueue};
use super::poll;
use crate::backend::EventStatus;
use crate::error::Result;

pub use self::wait_queue::Blocking;

/// On a machine that does not count as busy, one wait in this many reads the clock at its first
/// queries too.
const MEASURED: u32 = 8;
/// Number of queries without reading the clock. The third query usually finds an operation of a few
/// microseconds complete.
const UNMEASURED: u32 = 3;
/// If each query may take a scheduler's turn, this is still long.
const MANY_TURNS: Duration = Duration::from_millis(250);
static WAIT_QUEUE: WaitQueue = WaitQueue::new();
/// Approximate number of waits: two concurrent ones may count as one.
static WAITS: AtomicU32 = AtomicU32::new(0);

/// Waits until `status` says that an event is complete, at most `limit`. The result of
/// `blocking_wait` waits for the event without a limit. `blocking_wait` returns `None` for an event
/// that the program sets, because such a wait would occupy the only thread.
pub fn until_complete(
    limit: Duration,
    status: impl Fn() -> Result<EventStatus>,
    blocking_wait: impl FnOnce() -> Option<Blocking>,
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
    // Yields leave the processor to the threads of a CPU device.
    if poll::stay_awake(start, limit, &status, thread::yield_now)? {
        return Ok(());
    }
    if let Some(block) = blocking_wait() {
        WAIT_QUEUE.wait(&Ticket::new(block), limit, || start.elapsed(), &status, start_thread)?;
    }
    // Without a thread this does the wait; otherwise it is the last query.
    poll::with_sleeps(start, limit, status)
}

/// Whether the first queries read the clock. They always do while the machine may be busy.
fn is_measured() -> bool {
    let count = WAITS.load(Ordering::Relaxed).wrapping_add(1);
    WAITS.store(count, Ordering::Relaxed);
    count % MEASURED == 0 || poll::may_be_busy()
}

/// Starts the thread of the wait queue. Returns whether that worked.
fn start_thread() -> bool {
    thread::Builder::new().name("usm-wait".into()).spawn(|| WAIT_QUEUE.serve()).is_ok()
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::sync::Arc;
    use core::sync::atomic::{AtomicBool, AtomicUsize};

    use super::*;
    use crate::error::{Error, ErrorKind};

    const LONG: Duration = Duration::from_secs(60);

    /// An operation that completes only if a thread waits for it.
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

    /// Makes a wait for an event that calls `block`.
    fn blocking_on<E: Send + Sync + 'static>(event: &Arc<E>, block: fn(&E)) -> Option<Blocking> {
        let event = Arc::clone(event);
        Some(Box::new(move || block(&event)))
    }

    /// Occupies the thread until it is opened.
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
        until_complete(LONG, || Ok(event.status()), || blocking_on(&event, NeedsHelp::block)).unwrap();
    }

    #[test]
    fn on_a_busy_machine_too() {
        let event = Arc::new(NeedsHelp::default());
        let asked = AtomicBool::new(false);
        let late = || {
            if asked.swap(true, Ordering::Relaxed) {
                thread::sleep(poll::LATE * 2);
            }
            Ok(event.status())
        };
        until_complete(LONG, late, || blocking_on(&event, NeedsHelp::block)).unwrap();
    }

    /// Each of many callers gets its wait, and at most one thread is in the runtime.
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
                    until_complete(LONG, || Ok(event.0.status()), || blocking_on(&event, Counted::block))
                        .unwrap();
                });
            }
        });
        assert_eq!(MOST.load(Ordering::Acquire), 1);
    }

    /// The caller polls for an event that the program sets, so other callers can use the thread.
    #[test]
    fn a_wait_for_endless_work_reports_its_limit_and_blocks_no_caller() {
        let limit = Duration::from_millis(5);
        let endless = || until_complete(limit, || Ok(EventStatus::Pending), || None).unwrap_err();
        assert_eq!(endless().kind, ErrorKind::Timeout { limit_ms: 5 });
        let event = Arc::new(NeedsHelp::default());
        until_complete(LONG, || Ok(event.status()), || blocking_on(&event, NeedsHelp::block)).unwrap();
        assert_eq!(endless().kind, ErrorKind::Timeout { limit_ms: 5 });
    }

    /// Callers behind an operation that does not end detect completion themselves, and callers that
    /// time out leave no ticket behind.
    #[test]
    fn a_turn_that_does_not_come_is_not_waited_for() {
        let release = Arc::new(Gate::default());
        let held = Arc::clone(&release);
        thread::scope(|scope| {
            let first = scope.spawn(move || {
                until_complete(LONG, || Ok(held.status()), || blocking_on(&held, Gate::block)).unwrap();
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
            let error = until_complete(soon, by_itself, || blocking_on(&behind, Gate::block)).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Timeout { limit_ms: 20 });
            assert!(!behind.taken.load(Ordering::Acquire));
            assert_eq!(Arc::strong_count(&behind), 1, "its ticket is still queued");
            asked.store(usize::MAX / 2, Ordering::Relaxed);
            until_complete(LONG, by_itself, || blocking_on(&behind, Gate::block)).unwrap();
            release.open.store(true, Ordering::Release);
            first.join().unwrap();
        });
    }

    #[test]
    fn a_failure_during_a_wait_of_the_thread_is_returned() {
        let event = Arc::new(NeedsHelp::default());
        let status = || match event.status() {
            EventStatus::Complete => Err(Error::from(ErrorKind::DeviceLost)),
            pending => Ok(pending),
        };
        assert_eq!(
            until_complete(LONG, status, || blocking_on(&event, NeedsHelp::block)).unwrap_err().kind,
            ErrorKind::DeviceLost
        );
    }
}
