//! What a roster tells, to whom and how often.

use alloc::rc::Rc;
use core::cell::Cell;

use super::*;
use crate::backend::EventStatus;

/// An event that stands for how many steps its work still needs.
#[derive(Clone)]
struct Steps(Rc<Cell<u32>>);

fn pending_unless(complete: bool) -> Result<EventStatus> {
    Ok(if complete { EventStatus::Complete } else { EventStatus::Pending })
}

impl EventOps for Steps {
    fn status(&self) -> Result<EventStatus> {
        pending_unless(self.0.get() == 0)
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

    impl EventOps for Event {
        fn status(&self) -> Result<EventStatus> {
            match self {
                Self::Failed => Err(ErrorKind::DeviceLost.into()),
                Self::Waited(_) => Ok(EventStatus::Pending),
            }
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

/// A queue that refuses to say when it is done is no reason to leave the others alone, and one that
/// is gone without having said it is never taken to be done.
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

impl EventOps for Failed {
    fn status(&self) -> Result<EventStatus> {
        Err(self.0.into())
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
    let (settle, untold) =
        (|| roster.settle(Duration::ZERO, nothing), || roster.pending_untold(Duration::ZERO, |_| Ok(None)));
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

const FAILURE: ErrorKind = ErrorKind::Native { operation: "an operation of the test" };

/// Work that goes on, or has failed.
#[derive(Clone)]
enum Either {
    Work(Steps),
    Failed,
}

impl EventOps for Either {
    fn status(&self) -> Result<EventStatus> {
        match self {
            Self::Work(work) => work.status(),
            Self::Failed => Err(FAILURE.into()),
        }
    }

    fn wait(&self, limit: Duration) -> Result<()> {
        match self {
            Self::Work(work) => work.wait(limit),
            Self::Failed => Err(FAILURE.into()),
        }
    }
}

/// The failure is told once everything else has ended, not swallowed by the limit of a call that
/// did not get so far.
#[test]
fn a_wait_that_ran_out_has_told_nothing() {
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

/// Neither told ones nor those that nobody asked about; and what is given up is refused like the
/// rest.
#[test]
fn queues_that_fail_without_end_fill_no_memory() {
    for asks in [true, false] {
        let roster = Roster::<(), Either>::new();
        let work = Rc::new(Cell::new(1));
        let leave = |event| roster.leave(core::ptr::null(), Ok(Some(event)));
        let nothing = |_: &Arc<()>| Ok(Either::Failed);
        for _ in 0..10 {
            leave(Either::Work(Steps(Rc::clone(&work))));
        }
        for _ in 0..1000 {
            leave(Either::Failed);
            if asks {
                work.set(0);
                assert_eq!(roster.settle(Duration::ZERO, nothing), Err(FAILURE.into()), "each is news");
            }
        }
        let kept = roster.orphans.lock().len();
        assert!(kept <= KEPT + 10, "{kept}");
        if !asks {
            // Of what goes on nothing was given up.
            assert!(matches!(roster.orphans.lock()[..10], [Orphan { event: Either::Work(_), .. }, ..]));
            work.set(0);
            assert_eq!(roster.settle(Duration::ZERO, nothing), Err(FAILURE.into()), "all of them together");
        }
        assert_eq!(roster.settle(Duration::ZERO, nothing), Ok(()));
        assert_eq!(roster.pending_untold(Duration::ZERO, |_| Ok(None)).map(|events| events.len()), Ok(0));
        for _ in 0..2 {
            assert_eq!(roster.synchronize(Duration::ZERO, nothing), Err(FAILURE.into()));
            assert!(roster.pending(Duration::ZERO, |_| Ok(None)).is_err());
        }
    }
}

#[test]
fn a_device_that_is_lost_stays_so_whatever_fails_after() {
    let roster = Roster::<(), Failed>::new();
    let settle = || roster.settle(Duration::ZERO, |_| Ok(Failed(FAILURE)));
    roster.leave(core::ptr::null(), Ok(Some(Failed(ErrorKind::DeviceLost))));
    for _ in 0..2 * KEPT {
        roster.leave(core::ptr::null(), Ok(Some(Failed(FAILURE))));
    }
    assert_eq!(settle(), Err(FAILURE.into()));
    for _ in 0..2 {
        assert_eq!(settle(), Err(ErrorKind::DeviceLost.into()));
    }
}

/// Whoever looked before a queue went has told nothing of that.
#[test]
fn what_is_lost_beside_a_failure_that_is_just_being_told_is_told_too() {
    let roster = Roster::<(), Failed>::new();
    let queue = Arc::new(());
    roster.remember(&queue);
    roster.leave(core::ptr::null(), Err(FAILURE.into()));
    let another_goes = |_: &Arc<()>| {
        roster.leave(core::ptr::null(), Err(FAILURE.into()));
        Err(ErrorKind::NoDevice.into())
    };
    assert_eq!(roster.settle(Duration::ZERO, another_goes), Err(FAILURE.into()));
    let idle =
        |roster: &Roster<(), Failed>| roster.settle(Duration::ZERO, |_| Err(ErrorKind::NoDevice.into()));
    assert_eq!((idle(&roster), idle(&roster)), (Err(FAILURE.into()), Err(ErrorKind::NoDevice.into())));
}
