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

    /// Whether the device answers this to everything from then on.
    fn is_for_good(&self, error: &Error) -> bool {
        error.kind == ErrorKind::DeviceLost
    }
}

/// Queues `Q` with events `E`.
#[derive(Debug)]
pub(super) struct Roster<Q, E> {
    /// One that is being dropped stays until it has [left](Self::leave).
    queues: Mutex<Vec<Weak<Q>>>,
    /// Work of queues that are gone goes on.
    orphans: Mutex<Vec<Orphan<E>>>,
    /// Nothing says any more when the work of a queue ends that went without an event.
    lost: Mutex<Option<Lost>>,
}

/// The last event of a queue that is gone.
#[derive(Clone, Debug)]
struct Orphan<E> {
    /// Its own.
    number: u64,
    event: E,
    /// Whether the program was told that it failed.
    told: bool,
}

/// Why there is no event after the work of a queue that is gone.
#[derive(Clone, Copy, Debug)]
struct Lost {
    error: Error,
    /// Whether the program was told.
    told: bool,
}

/// What there is to wait for.
struct Found<E> {
    lost: Option<Lost>,
    orphans: Vec<Orphan<E>>,
    /// After everything in a queue that lives; none where it is idle. One whose work failed may refuse to say.
    queues: Vec<Result<Option<E>>>,
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
            Ok(Some(event)) => self.orphans.lock().push(Orphan { number: next_id(), event, told: false }),
            Ok(None) => {}
            Err(error) => {
                let mut lost = self.lost.lock();
                if lost.is_none_or(|known| known.told) {
                    *lost = Some(Lost { error, told: false });
                }
            }
        }
        let gone = take_out(&mut self.queues.lock(), |known| known.as_ptr() == queue);
        drop(gone);
        self.forget_finished();
    }

    /// The driver is called without the lock held.
    fn forget_finished(&self) {
        let mut orphans = self.orphans.lock().clone();
        orphans.retain(|orphan| orphan.event.is_complete());
        let done = |known: &Orphan<E>| orphans.iter().any(|orphan| orphan.number == known.number);
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
    #[cfg(any(feature = "cuda", feature = "level-zero", test))]
    pub(super) fn pending(
        &self,
        limit: Duration,
        last: impl Fn(&Arc<Q>) -> Result<Option<E>>,
    ) -> Result<Vec<E>> {
        self.pending_but(limit, last, |_told| false)
    }

    /// [`pending`](Self::pending) without what the program knows to have failed.
    pub(super) fn pending_untold(
        &self,
        limit: Duration,
        last: impl Fn(&Arc<Q>) -> Result<Option<E>>,
    ) -> Result<Vec<E>> {
        self.pending_but(limit, last, |told| told)
    }

    fn pending_but(
        &self,
        limit: Duration,
        last: impl Fn(&Arc<Q>) -> Result<Option<E>>,
        is_left_out: impl Fn(bool) -> bool,
    ) -> Result<Vec<E>> {
        let Found { lost, orphans, queues } = self.find(limit, last)?;
        if let Some(lost) = lost.filter(|lost| !is_left_out(lost.told)) {
            return Err(lost.error);
        }
        let orphans =
            orphans.into_iter().filter(|orphan| !is_left_out(orphan.told)).map(|orphan| Ok(orphan.event));
        orphans.chain(queues.into_iter().filter_map(Result::transpose)).collect()
    }

    fn find(&self, limit: Duration, last: impl Fn(&Arc<Q>) -> Result<Option<E>>) -> Result<Found<E>> {
        let queues = self.settled(limit, Instant::now())?;
        let (lost, orphans) = (*self.lost.lock(), self.orphans.lock().clone());
        Ok(Found { lost, orphans, queues: queues.iter().map(last).collect() })
    }

    /// Blocks until all work has finished, at most `limit`; `last` gives an event after everything in a queue. The first failure
    /// is the answer, once everything else has finished too: every time, because nothing says that work which failed has ended.
    pub(super) fn synchronize(&self, limit: Duration, last: impl Fn(&Arc<Q>) -> Result<E>) -> Result<()> {
        self.wait_for_all(limit, last, |_told, failure| Err(failure)).0
    }

    /// [`synchronize`](Self::synchronize) for the program. The failure of a queue that is gone is told by the calls that began before the first
    /// of them told it; that of a device, which stays as it is, every time. A wait that ran out tells nothing else.
    pub(super) fn settle(&self, limit: Duration, last: impl Fn(&Arc<Q>) -> Result<E>) -> Result<()> {
        let (outcome, failed, lost) =
            self.wait_for_all(limit, last, |told, failure| if told { Ok(()) } else { Err(failure) });
        if matches!(outcome, Err(Error { kind: ErrorKind::Timeout { .. }, .. })) {
            return outcome;
        }
        if !failed.is_empty() {
            let mut orphans = self.orphans.lock();
            orphans.iter_mut().for_each(|orphan| orphan.told |= failed.contains(&orphan.number));
        }
        if let (Some(seen), Some(now)) = (lost, &mut *self.lost.lock()) {
            now.told |= now.error == seen.error;
        }
        outcome
    }

    /// `judge` says what the failure of a queue that is gone is taken for, and gets whether it was told. Beside the outcome, what failed of such
    /// queues.
    fn wait_for_all(
        &self,
        limit: Duration,
        last: impl Fn(&Arc<Q>) -> Result<E>,
        judge: impl Fn(bool, Error) -> Result<()>,
    ) -> (Result<()>, Vec<u64>, Option<Lost>) {
        let start = Instant::now();
        let Found { lost, orphans, queues } = match self.find(limit, |queue| last(queue).map(Some)) {
            Ok(found) => found,
            Err(error) => return (Err(error), Vec::new(), None),
        };
        let wait = |event: &E| {
            event.wait(limit.saturating_sub(start.elapsed())).map_err(|error| match error.kind {
                ErrorKind::Timeout { .. } => Error { kind: Error::timeout(limit).kind, ..error },
                _ => error,
            })
        };
        let mut failed = Vec::new();
        let mut outcome = lost.map_or(Ok(()), |lost| judge(lost.told, lost.error));
        for orphan in &orphans {
            outcome = outcome.and(match wait(&orphan.event) {
                Err(error) if matches!(error.kind, ErrorKind::Timeout { .. }) => Err(error),
                Err(error) if orphan.event.is_for_good(&error) => Err(error),
                Err(error) => {
                    failed.push(orphan.number);
                    judge(orphan.told, error)
                }
                Ok(()) => Ok(()),
            });
        }
        for event in queues {
            outcome = outcome.and(event.and_then(|event| event.as_ref().map_or(Ok(()), wait)));
        }
        self.forget_finished();
        (outcome, failed, lost)
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

    /// An event that is known to have failed.
    #[derive(Clone)]
    struct Failed(ErrorKind);

    impl Completion for Failed {
        fn is_complete(&self) -> bool {
            false
        }

        fn wait(&self, _: Duration) -> Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn the_failure_of_a_queue_that_is_gone_is_told_once_and_stays_for_who_must_know() {
        let roster = Roster::<(), Failed>::new();
        let failure = ErrorKind::Native { operation: "an operation of the test" };
        let nothing = |_: &Arc<()>| Ok(Failed(failure));
        let (settle, untold) = (
            || roster.settle(Duration::ZERO, nothing),
            || roster.pending_untold(Duration::ZERO, |_| Ok(None)),
        );
        roster.leave(core::ptr::null(), Ok(Some(Failed(failure))));
        assert_eq!(untold().map(|events| events.len()), Ok(1));
        assert_eq!(
            roster.synchronize(Duration::ZERO, nothing),
            Err(failure.into()),
            "which tells the program nothing"
        );
        assert_eq!(settle(), Err(failure.into()));
        assert_eq!((settle(), untold().map(|events| events.len())), (Ok(()), Ok(0)));
        assert_eq!(roster.synchronize(Duration::ZERO, nothing), Err(failure.into()));
        assert_eq!(roster.pending(Duration::ZERO, |_| Ok(None)).map(|events| events.len()), Ok(1));
        // Without an event for it, the same.
        roster.leave(core::ptr::null(), Err(ErrorKind::NoDevice.into()));
        assert_eq!(untold().map(|events| events.len()), Err(ErrorKind::NoDevice.into()));
        assert_eq!((settle(), settle()), (Err(ErrorKind::NoDevice.into()), Ok(())));
        assert_eq!(untold().map(|events| events.len()), Ok(0));
        assert_eq!(roster.synchronize(Duration::ZERO, nothing), Err(ErrorKind::NoDevice.into()));
        // The next one is news.
        roster.leave(core::ptr::null(), Ok(Some(Failed(failure))));
        assert_eq!((settle(), settle()), (Err(failure.into()), Ok(())));
    }

    #[test]
    fn a_device_that_is_lost_stays_lost() {
        let roster = Roster::<(), Failed>::new();
        roster.leave(core::ptr::null(), Ok(Some(Failed(ErrorKind::DeviceLost))));
        for _ in 0..3 {
            let outcome = roster.settle(Duration::ZERO, |_| Ok(Failed(ErrorKind::DeviceLost)));
            assert_eq!(outcome, Err(ErrorKind::DeviceLost.into()));
        }
    }

    #[test]
    fn a_queue_that_lives_tells_its_failure_every_time() {
        let roster = Roster::<(), Failed>::new();
        let queue = Arc::new(());
        roster.remember(&queue);
        for _ in 0..3 {
            assert_eq!(
                roster.settle(Duration::ZERO, |_| Ok(Failed(ErrorKind::NoDevice))),
                Err(ErrorKind::NoDevice.into())
            );
        }
    }

    /// The failure is told once everything else has ended, not swallowed by the limit of a call that did not get so far.
    #[test]
    fn a_wait_that_ran_out_has_told_nothing() {
        const FAILURE: ErrorKind = ErrorKind::Native { operation: "an operation of the test" };

        #[derive(Clone)]
        enum Either {
            Work(Steps),
            Failed,
        }

        impl Completion for Either {
            fn is_complete(&self) -> bool {
                matches!(self, Self::Work(work) if work.is_complete())
            }

            fn wait(&self, limit: Duration) -> Result<()> {
                match self {
                    Self::Work(work) => work.wait(limit),
                    Self::Failed => Err(FAILURE.into()),
                }
            }
        }

        let roster = Roster::<(), Either>::new();
        let work = Rc::new(Cell::new(1));
        roster.leave(core::ptr::null(), Ok(Some(Either::Work(Steps(Rc::clone(&work))))));
        roster.leave(core::ptr::null(), Ok(Some(Either::Failed)));
        let settle = || roster.settle(Duration::ZERO, |_| Ok(Either::Failed));
        assert_eq!(settle(), Err(Error::timeout(Duration::ZERO)));
        work.set(0);
        assert_eq!(settle(), Err(FAILURE.into()));
        assert_eq!(settle(), Ok(()));
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
