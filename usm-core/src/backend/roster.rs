//! The queues of a context, for waiting for all of its work: those that live, and the last events of those that do not.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::time::Duration;
use std::time::Instant;

use crate::error::{Error, ErrorKind, Result};
use crate::sync::{Mutex, give_way, next_id, take_out};

/// What a roster needs of a backend's event.
pub(super) trait Completion: Clone {
    fn is_complete(&self) -> bool;
    fn wait(&self, limit: Duration) -> Result<()>;
}

/// Queues `Q` with events `E`.
#[derive(Debug)]
pub(super) struct Roster<Q, E> {
    /// One that is being dropped stays until it has [left](Self::leave).
    queues: Mutex<Vec<Weak<Q>>>,
    /// Work of queues that are gone goes on. With a number of its own for each event.
    orphans: Mutex<Vec<(u64, E)>>,
    /// Why there is no event after the work of a queue that is gone. Nothing says any more when that ends.
    lost: Mutex<Option<Error>>,
}

impl<Q, E: Completion> Roster<Q, E> {
    pub(super) const fn new() -> Self {
        Self { queues: Mutex::new(Vec::new()), orphans: Mutex::new(Vec::new()), lost: Mutex::new(None) }
    }

    pub(super) fn remember(&self, queue: &Arc<Q>) {
        self.queues.lock().push(Arc::downgrade(queue));
    }

    /// For the `Drop` of a queue: keeps its last event instead, none where the queue is idle. At no moment is the queue's work in neither list.
    /// Where there is work and no event can be had, the context's work is never known to be done from now on, and that error says why.
    pub(super) fn leave(&self, queue: *const Q, last: Result<Option<E>>) {
        match last {
            Ok(Some(event)) => self.orphans.lock().push((next_id(), event)),
            Ok(None) => {}
            Err(error) => *self.lost.lock() = Some(error),
        }
        let gone = take_out(&mut self.queues.lock(), |known| known.as_ptr() == queue);
        drop(gone);
        self.forget_finished();
    }

    /// The driver is called without the lock held.
    fn forget_finished(&self) {
        let mut orphans = self.orphans.lock().clone();
        orphans.retain(|(_, event)| event.is_complete());
        let done = |(number, _): &(u64, E)| orphans.iter().any(|(done, _)| done == number);
        let gone = take_out(&mut self.orphans.lock(), done);
        drop(gone);
    }

    /// The queues that live, once none is on its way from the one list to the other.
    fn settled(&self, limit: Duration, start: Instant) -> Result<Vec<Arc<Q>>> {
        loop {
            // Dropping the last handle of a queue takes the lock, so that is done outside of it.
            let queues: Vec<_> = self.queues.lock().iter().map(Weak::upgrade).collect();
            match queues.into_iter().collect() {
                Some(queues) => return Ok(queues),
                None if start.elapsed() >= limit => return Err(Error::timeout(limit)),
                None => give_way(),
            }
        }
    }

    /// Events after all work that was submitted before; `last` gives one after everything in a queue that is not idle. Blocks only while a
    /// queue is on its way from the one list to the other, at most `limit`.
    pub(super) fn pending(
        &self,
        limit: Duration,
        last: impl Fn(&Arc<Q>) -> Result<Option<E>>,
    ) -> Result<Vec<E>> {
        let (events, outcome) = self.known(limit, last)?;
        outcome.map(|()| events)
    }

    /// The events that there are, and the first reason why there are not all.
    fn known(
        &self,
        limit: Duration,
        last: impl Fn(&Arc<Q>) -> Result<Option<E>>,
    ) -> Result<(Vec<E>, Result<()>)> {
        let queues = self.settled(limit, Instant::now())?;
        let mut outcome = self.lost.lock().map_or(Ok(()), Err);
        let mut events: Vec<E> = self.orphans.lock().iter().map(|(_, event)| event.clone()).collect();
        for queue in &queues {
            match last(queue) {
                Ok(event) => events.extend(event),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        Ok((events, outcome))
    }

    /// Blocks until all work has finished, at most `limit`; `last` gives an event after everything in a queue. The first failure
    /// is the answer, once everything else has finished too.
    pub(super) fn synchronize(&self, limit: Duration, last: impl Fn(&Arc<Q>) -> Result<E>) -> Result<()> {
        let start = Instant::now();
        let (events, mut outcome) = self.known(limit, |queue| last(queue).map(Some))?;
        for event in &events {
            let waited =
                event.wait(limit.saturating_sub(start.elapsed())).map_err(|error| match error.kind {
                    ErrorKind::Timeout { .. } => Error { kind: Error::timeout(limit).kind, ..error },
                    _ => error,
                });
            outcome = outcome.and(waited);
        }
        self.forget_finished();
        outcome
    }
}

#[cfg(test)]
mod tests {
    use alloc::rc::Rc;
    use core::cell::Cell;

    use super::*;

    /// An event that stands for how many steps its work still needs.
    #[derive(Clone)]
    struct Steps(Rc<Cell<u32>>);

    impl Completion for Steps {
        fn is_complete(&self) -> bool {
            self.0.get() == 0
        }

        fn wait(&self, limit: Duration) -> Result<()> {
            if self.is_complete() { Ok(()) } else { Err(Error::timeout(limit)) }
        }
    }

    #[test]
    fn a_failure_does_not_cut_the_wait_for_the_others_short() {
        #[derive(Clone)]
        enum Event {
            Failed,
            Waited(Rc<Cell<bool>>),
        }

        impl Completion for Event {
            fn is_complete(&self) -> bool {
                false
            }

            fn wait(&self, _: Duration) -> Result<()> {
                match self {
                    Self::Failed => Err(ErrorKind::DeviceLost.into()),
                    Self::Waited(waited) => {
                        waited.set(true);
                        Ok(())
                    }
                }
            }
        }

        let roster = Roster::<(), Event>::new();
        let waited = Rc::new(Cell::new(false));
        roster.leave(core::ptr::null(), Ok(Some(Event::Failed)));
        roster.leave(core::ptr::null(), Ok(Some(Event::Waited(Rc::clone(&waited)))));
        let outcome = roster.synchronize(Duration::from_secs(1), |_| Ok(Event::Failed));
        assert_eq!(outcome, Err(ErrorKind::DeviceLost.into()));
        assert!(waited.get());
    }

    /// A queue that refuses to say when it is done is no reason to leave the others alone, and one that is gone without having said it is never
    /// taken to be done.
    #[test]
    fn without_an_event_the_others_are_waited_for_and_nothing_is_said_to_be_done() {
        let roster = Roster::new();
        let (refusing, other) = (Arc::new(0), Arc::new(1));
        roster.remember(&refusing);
        roster.remember(&other);
        let refusal = Error::from(ErrorKind::Native { operation: "the event of a queue" });
        let work = Steps(Rc::new(Cell::new(1)));
        let last = |queue: &Arc<i32>| if **queue == 0 { Err(refusal) } else { Ok(work.clone()) };
        let waited = Cell::new(0);
        let outcome = roster.synchronize(Duration::ZERO, |queue| {
            waited.set(waited.get() + 1);
            last(queue)
        });
        assert_eq!((outcome, waited.get()), (Err(refusal), 2));

        let left = Arc::as_ptr(&refusing);
        drop(refusing);
        roster.leave(left, Err(refusal));
        work.0.set(0);
        for _ in 0..2 {
            assert_eq!(roster.synchronize(Duration::ZERO, last), Err(refusal));
            assert_eq!(roster.pending(Duration::ZERO, |queue| last(queue).map(Some)).err(), Some(refusal));
        }
    }

    #[test]
    fn a_queue_that_is_being_dropped_is_waited_for() {
        let roster = Roster::new();
        let work = Steps(Rc::new(Cell::new(1)));
        let wait = || roster.synchronize(Duration::ZERO, |_| Ok(Steps(Rc::new(Cell::new(0)))));
        let queue = Arc::new(());
        roster.remember(&queue);
        assert_eq!(wait(), Ok(()));
        let left = Arc::as_ptr(&queue);
        drop(queue);
        assert!(wait().is_err(), "its last event is not known yet");
        roster.leave(left, Ok(Some(work.clone())));
        assert!(wait().is_err(), "its work goes on");
        // The next queue to leave has nothing to do with it.
        roster.leave(core::ptr::null(), Ok(None));
        assert!(wait().is_err());
        work.0.set(0);
        assert_eq!(wait(), Ok(()));
        assert_eq!(roster.orphans.lock().len(), 0);
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::atomic::{AtomicBool, Ordering};
    use loom::thread;

    use super::*;

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

    impl Completion for Work {
        fn is_complete(&self) -> bool {
            self.0.load(Ordering::Acquire)
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
}
