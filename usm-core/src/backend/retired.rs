//! Queues whose handles are gone, released a while after their work has finished.
//!
//! Intel's CPU runtime drops its last reference to an out-of-order queue on the worker thread that has just completed the
//! queue's last command, and the queue's destructor then waits for that very command: the worker never comes back, and
//! with it the device. So the last reference stays here until the worker must be done with the command.

use alloc::vec::Vec;
use core::time::Duration;
use std::time::Instant;

use super::EventOps;
use crate::sync::Mutex;

/// From the completion of a queue's last event to its release. The runtime needs microseconds, on a machine with many more runnable threads
/// than processors a few turns of the scheduler.
const PATIENCE: Duration = if cfg!(loom) { Duration::ZERO } else { Duration::from_secs(4) };

#[derive(Debug)]
struct Retiree<H, E> {
    /// Released before its last event: the runtime looks at that once more.
    #[expect(dead_code, reason = "its drop is what it is kept for")]
    queue: H,
    last: E,
    complete_since: Option<Instant>,
}

impl<H, E: EventOps> Retiree<H, E> {
    fn may_go(&mut self) -> bool {
        if self.complete_since.is_none() && self.last.is_complete() {
            self.complete_since = Some(Instant::now());
        }
        self.complete_since.is_some_and(|since| since.elapsed() > PATIENCE)
    }
}

/// The retired queues of one backend, for the whole process: a queue may outlive its context's last handle.
#[derive(Debug)]
pub(super) struct Retired<H, E> {
    list: Mutex<Vec<Retiree<H, E>>>,
}

impl<H, E: EventOps> Retired<H, E> {
    pub(super) const fn new() -> Self {
        Self { list: Mutex::new(Vec::new()) }
    }

    /// Takes a queue whose work ends with `last`.
    pub(super) fn retire(&self, queue: H, last: E) {
        self.sweep();
        self.list.lock().push(Retiree { queue, last, complete_since: None });
    }

    /// Releases the queues whose time has come.
    pub(super) fn sweep(&self) {
        // The runtime is asked, and queues are released, without the lock held.
        let list = core::mem::take(&mut *self.list.lock());
        let (mut gone, mut kept) = (Vec::new(), Vec::new());
        for mut retiree in list {
            if retiree.may_go() { gone.push(retiree) } else { kept.push(retiree) }
        }
        self.list.lock().extend(kept);
        drop(gone);
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use loom::thread;

    use super::*;
    use crate::backend::EventStatus;
    use crate::error::Result;

    #[derive(Clone)]
    struct Work(Arc<AtomicBool>);

    impl EventOps for Work {
        fn status(&self) -> Result<EventStatus> {
            let complete = self.0.load(Ordering::Acquire);
            Ok(if complete { EventStatus::Complete } else { EventStatus::Pending })
        }

        fn wait(&self, _: Duration) -> Result<()> {
            Ok(())
        }
    }

    /// Counts its releases, none of which may come before its work has finished.
    struct Handle(Work, Arc<AtomicUsize>);

    impl Drop for Handle {
        fn drop(&mut self) {
            assert!(self.0.is_complete());
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_queue_is_released_once_and_after_its_work() {
        loom::model(|| {
            let retired = std::sync::Arc::new(Retired::<Handle, Work>::new());
            retired.sweep();
            let (work, released) = (Work(Arc::new(AtomicBool::new(false))), Arc::new(AtomicUsize::new(0)));
            let retire = |work: &Work| retired.retire(Handle(work.clone(), released.clone()), work.clone());
            retire(&work);
            let sweeper = {
                let retired = std::sync::Arc::clone(&retired);
                thread::spawn(move || retired.sweep())
            };
            work.0.store(true, Ordering::Release);
            retire(&work);
            sweeper.join().expect("no panic");
            // The clock moves on between two sweeps.
            while released.load(Ordering::Relaxed) < 2 {
                retired.sweep();
            }
            assert!(retired.list.lock().is_empty());
        });
    }
}
