//! Models of callers and the thread under all interleavings: every queued caller returns, by a
//! signal or at its limit, and at most one thread is in the runtime. Only a signal ends a wait
//! without a limit, see `sync/model.rs`.

use core::cell::Cell;
use std::sync::Mutex as StdMutex;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread::{self, JoinHandle};

use super::*;
use crate::error::ErrorKind;

/// An operation of the runtime, with the result that it writes.
#[derive(Debug)]
struct Operation {
    runtime: Arc<Runtime>,
    result: UnsafeCell<u32>,
    /// Until this is true the operation runs.
    may_end: Mutex<bool>,
    signal: Condvar,
}

/// Counts the threads in the runtime; at most one is allowed.
#[derive(Debug)]
struct Runtime {
    inside: AtomicUsize,
}

// SAFETY: loom fails a model where two accesses to the result are not ordered.
unsafe impl Sync for Operation {}
// SAFETY: as above.
unsafe impl Send for Operation {}

/// A wait that the thread calls.
trait Block: Send + Sync + 'static {
    fn block(&self);
}

fn blocking(event: &Arc<impl Block>) -> Blocking {
    let event = Arc::clone(event);
    Box::new(move || event.block())
}

impl Block for Operation {
    fn block(&self) {
        assert_eq!(self.runtime.inside.fetch_add(1, Ordering::AcqRel), 0, "two threads in the runtime");
        let mut may_end = self.may_end.lock();
        while !*may_end {
            may_end = self.signal.wait(may_end);
        }
        drop(may_end);
        // SAFETY: loom fails the model if another access is not ordered before or after this.
        self.result.with_mut(|result| unsafe { *result += 1 });
        self.runtime.inside.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Operation {
    fn new(runtime: &Arc<Runtime>, may_end: bool) -> Arc<Self> {
        let (runtime, may_end) = (Arc::clone(runtime), Mutex::new(may_end));
        Arc::new(Self { runtime, result: UnsafeCell::new(0), may_end, signal: Condvar::new() })
    }

    fn end(&self) {
        *self.may_end.lock() = true;
        self.signal.notify_one();
    }

    fn result(&self) -> u32 {
        // SAFETY: loom fails the model if a change is not ordered before or after this.
        self.result.with(|result| unsafe { *result })
    }
}

/// The last wait, which ends the thread.
#[derive(Debug)]
struct End(AtomicBool);

impl Block for End {
    fn block(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A wait queue, and its thread, which can end here.
struct Office {
    queue: WaitQueue,
    runtime: Arc<Runtime>,
    end: Arc<End>,
    thread: StdMutex<Option<JoinHandle<()>>>,
    /// How often starting a thread fails.
    refusals: AtomicUsize,
}

impl Office {
    /// Uses each shared object once, because this thread must make loom's objects.
    fn new(refusals: usize) -> Arc<Self> {
        let queue = WaitQueue::new();
        queue.arrival.notify_one();
        assert!(queue.callers.lock().tickets.is_empty());
        Arc::new(Self {
            queue,
            runtime: Arc::new(Runtime { inside: AtomicUsize::new(0) }),
            end: Arc::new(End(AtomicBool::new(false))),
            thread: StdMutex::new(None),
            refusals: AtomicUsize::new(refusals),
        })
    }

    fn start(self: &Arc<Self>) -> bool {
        let refusals = self.refusals.load(Ordering::Relaxed);
        if refusals > 0 {
            self.refusals.store(refusals - 1, Ordering::Relaxed);
            return false;
        }
        let office = Arc::clone(self);
        let serve = move || {
            while !office.end.0.load(Ordering::Acquire) {
                office.queue.serve_next();
            }
        };
        let before = self.thread.lock().expect("no panic").replace(thread::spawn(serve));
        assert!(before.is_none(), "one thread for all");
        true
    }

    /// A wait without a limit.
    fn wait(self: &Arc<Self>, event: &Arc<impl Block>) -> Result<()> {
        self.queue.wait(
            &Ticket::new(blocking(event)),
            Duration::MAX,
            || Duration::ZERO,
            || Ok(EventStatus::Pending),
            || self.start(),
        )
    }

    /// A wait that times out after reading the clock this many times.
    fn wait_for(
        self: &Arc<Self>,
        event: &Arc<Operation>,
        looks: u32,
        status: impl Fn() -> Result<EventStatus>,
    ) -> Result<()> {
        let left = Cell::new(looks);
        let limit = Duration::from_secs(1);
        let elapsed = || match left.get() {
            0 => limit,
            looks => {
                left.set(looks - 1);
                Duration::ZERO
            }
        };
        let ours = Ticket::new(blocking(event));
        let outcome = self.queue.wait(&ours, limit, elapsed, status, || self.start());
        let stays = |ticket: &Arc<Ticket>| Arc::ptr_eq(ticket, &ours);
        assert!(!self.queue.callers.lock().tickets.iter().any(stays), "its ticket is still queued");
        outcome
    }

    fn close(self: &Arc<Self>) {
        self.wait(&self.end).expect("no failure");
        let thread = self.thread.lock().expect("no panic").take();
        thread.expect("one was started").join().expect("no panic");
        assert!(self.queue.callers.lock().tickets.is_empty());
    }
}

/// Runs a model with at most three forced switches.
fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

/// This includes the first caller, the last one, and a caller that finds the queue empty.
#[test]
fn each_of_several_callers_has_its_wait() {
    model(|| {
        let office = Office::new(0);
        let caller = {
            let office = Arc::clone(&office);
            thread::spawn(move || {
                let operation = Operation::new(&office.runtime, true);
                office.wait(&operation).expect("no failure");
                assert_eq!(operation.result(), 1);
            })
        };
        let operation = Operation::new(&office.runtime, true);
        office.wait(&operation).expect("no failure");
        assert_eq!(operation.result(), 1, "it returns after the end");
        caller.join().expect("no panic");
        office.close();
    });
}

/// The caller times out while the thread is in the runtime or about to enter it.
#[test]
fn a_caller_that_times_out_returns() {
    model(|| {
        let office = Office::new(0);
        let operation = Operation::new(&office.runtime, false);
        assert_eq!(office.wait_for(&operation, 2, || Ok(EventStatus::Pending)), Ok(()));
        operation.end();
        office.close();
        assert!(operation.result() <= 1);
        assert_eq!(Arc::strong_count(&operation), 1, "no reference is left");
    });
}

/// The thread waits for another caller's operation, which is still running.
#[test]
fn a_caller_behind_another_one_leaves_the_queue_at_its_limit() {
    model(|| {
        let office = Office::new(0);
        let long = Operation::new(&office.runtime, false);
        let caller = {
            let (office, long) = (Arc::clone(&office), Arc::clone(&long));
            thread::spawn(move || {
                office.wait(&long).expect("no failure");
                assert_eq!(long.result(), 1);
            })
        };
        let behind = Operation::new(&office.runtime, true);
        assert_eq!(office.wait_for(&behind, 1, || Ok(EventStatus::Pending)), Ok(()));
        long.end();
        caller.join().expect("no panic");
        office.close();
        assert_eq!(Arc::strong_count(&behind), 1, "no reference is left");
    });
}

/// The thread also completes operations of other callers, which detect this by polling.
#[test]
fn a_caller_behind_another_one_detects_completion_itself() {
    model(|| {
        let office = Office::new(0);
        let (long, complete) = (Operation::new(&office.runtime, false), Arc::new(AtomicBool::new(false)));
        let caller = {
            let (office, long, complete) = (Arc::clone(&office), Arc::clone(&long), Arc::clone(&complete));
            thread::spawn(move || {
                complete.store(true, Ordering::Release);
                office.wait(&long).expect("no failure");
            })
        };
        let status = || match complete.load(Ordering::Acquire) {
            true => Err(ErrorKind::DeviceLost.into()),
            false => Ok(EventStatus::Pending),
        };
        // It never ends by itself while the caller waits. So it may occupy the thread, but the
        // thread must not block the caller.
        let behind = Operation::new(&office.runtime, true);
        let outcome = office.wait_for(&behind, u32::MAX, status);
        assert!(outcome == Ok(()) || outcome == Err(ErrorKind::DeviceLost.into()));
        long.end();
        caller.join().expect("no panic");
        office.close();
    });
}

/// If no thread can be started, the caller returns at once, and the next caller tries again.
#[test]
fn without_a_thread_no_caller_is_queued() {
    model(|| {
        let office = Office::new(1);
        let caller = {
            let office = Arc::clone(&office);
            thread::spawn(move || {
                let operation = Operation::new(&office.runtime, true);
                office.wait(&operation).expect("no failure");
                operation.result()
            })
        };
        let operation = Operation::new(&office.runtime, true);
        office.wait(&operation).expect("no failure");
        assert_eq!(operation.result() + caller.join().expect("no panic"), 1, "one of them has a thread");
        office.close();
    });
}
