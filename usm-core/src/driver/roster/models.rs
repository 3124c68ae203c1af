//! Rosters under all interleavings.

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::*;
use crate::backend::EventStatus;

/// Work that somebody may finish.
#[derive(Clone)]
struct Work(loom::sync::Arc<AtomicBool>);

impl Work {
    fn new() -> Self {
        Self(loom::sync::Arc::new(AtomicBool::new(false)))
    }

    fn end(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl EventOps for Work {
    fn status(&self) -> Result<EventStatus> {
        let complete = self.0.load(Ordering::Acquire);
        Ok(if complete { EventStatus::Complete } else { EventStatus::Pending })
    }

    fn wait(&self, limit: Duration) -> Result<()> {
        if self.is_complete() { Ok(()) } else { Err(Error::timeout(limit)) }
    }
}

type Queues = Roster<Queue, Work>;

struct Queue {
    roster: Arc<Queues>,
    last: Work,
}

impl Queue {
    fn new(roster: &Arc<Queues>) -> (Arc<Self>, Work) {
        let last = Work::new();
        let queue = Arc::new(Self { roster: Arc::clone(roster), last: last.clone() });
        roster.remember(&queue);
        (queue, last)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.roster.leave(self, Ok(Some(self.last.clone())));
    }
}

fn synchronize(roster: &Queues) -> Result<()> {
    roster.synchronize(Duration::MAX, |queue| Ok(queue.last.clone()))
}

/// Its locks were used once: loom's are made by this thread.
fn roster() -> Arc<Queues> {
    let roster = Arc::new(Roster::new());
    roster.leave(core::ptr::null(), Ok(None));
    roster
}

#[test]
fn the_work_of_a_queue_that_goes_is_never_missed() {
    loom::model(|| {
        let roster = roster();
        let (queue, work) = Queue::new(&roster);
        let dropper = thread::spawn(move || drop(queue));
        assert!(synchronize(&roster).is_err(), "it has not finished");
        dropper.join().expect("no panic");
        assert!(synchronize(&roster).is_err(), "it goes on");
        work.end();
        assert_eq!(synchronize(&roster), Ok(()));
        assert_eq!(roster.orphans.lock().len(), 0);
    });
}

#[test]
fn what_is_forgotten_is_what_has_finished() {
    let mut builder = loom::model::Builder::new();
    // Three threads: two forced switches show what they can do to each other.
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let roster = roster();
        let ((one, first), (two, second)) = (Queue::new(&roster), Queue::new(&roster));
        let dropper = thread::spawn(move || drop(one));
        let ender = {
            let first = first.clone();
            thread::spawn(move || first.end())
        };
        drop(two);
        dropper.join().expect("no panic");
        ender.join().expect("no panic");
        assert!(synchronize(&roster).is_err(), "the second goes on");
        assert_eq!(roster.orphans.lock().len(), 1, "and the first does not");
        second.end();
        assert_eq!(synchronize(&roster), Ok(()));
    });
}

/// Work that has failed.
#[derive(Clone)]
struct Failed;

impl EventOps for Failed {
    fn status(&self) -> Result<EventStatus> {
        Err(ErrorKind::NoDevice.into())
    }

    fn wait(&self, _: Duration) -> Result<()> {
        Err(ErrorKind::NoDevice.into())
    }
}

#[test]
fn a_failure_that_is_given_up_is_never_missed() {
    loom::model(|| {
        let roster = Arc::new(Roster::<(), Failed>::new());
        roster.leave(core::ptr::null(), Ok(None));
        drop(roster.lost.lock());
        roster.orphans.lock().push(Orphan { number: next_id(), event: Failed, told: true });
        let other = Arc::clone(&roster);
        let gives_up = thread::spawn(move || other.forget_finished());
        assert!(roster.synchronize(Duration::MAX, |_| Ok(Failed)).is_err());
        gives_up.join().expect("no panic");
        assert_eq!(roster.orphans.lock().len(), 0);
    });
}
