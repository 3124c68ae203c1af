//! Which failures a queue list reports, to which callers and how often.

use alloc::rc::Rc;
use core::cell::Cell;

use super::*;
use crate::backend::EventStatus;

/// An event with the number of steps that its work still needs.
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

    let queue_list = QueueList::<(), Event>::new();
    let waited = Rc::new(Cell::new(false));
    queue_list.remove(core::ptr::null(), Ok(Some(Event::Failed)));
    queue_list.remove(core::ptr::null(), Ok(Some(Event::Waited(Rc::clone(&waited)))));
    let outcome = queue_list.synchronize(Duration::from_secs(1), |_| Ok(Event::Failed));
    assert_eq!(outcome, Err(ErrorKind::DeviceLost.into()));
    assert!(waited.get());
}

/// If a queue gives no event, a wait still waits for the other queues. If such a queue is dropped,
/// it never counts as complete.
#[test]
fn without_an_event_a_wait_waits_for_the_others_and_fails() {
    let queue_list = QueueList::new();
    let (refusing, other) = (Arc::new(0), Arc::new(1));
    queue_list.insert(&refusing);
    queue_list.insert(&other);
    let refusal = Error::from(ErrorKind::Native { operation: "the event of a queue" });
    let work = Steps(Rc::new(Cell::new(1)));
    let last = |queue: &Arc<i32>| if **queue == 0 { Err(refusal) } else { Ok(work.clone()) };
    let waited = Cell::new(0);
    let outcome = queue_list.synchronize(Duration::ZERO, |queue| {
        waited.set(waited.get() + 1);
        last(queue)
    });
    assert_eq!((outcome, waited.get()), (Err(refusal), 2));

    let left = Arc::as_ptr(&refusing);
    drop(refusing);
    queue_list.remove(left, Err(refusal));
    work.0.set(0);
    for _ in 0..2 {
        assert_eq!(queue_list.synchronize(Duration::ZERO, last), Err(refusal));
        assert_eq!(queue_list.pending(Duration::ZERO, |queue| last(queue).map(Some)).err(), Some(refusal));
    }
}

/// The event of failed work.
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
fn a_dropped_queues_failure_is_reported_once_and_blocks_memory_for_good() {
    let queue_list = QueueList::<(), Failed>::new();
    let failure = ErrorKind::Native { operation: "an operation of the test" };
    let nothing = |_: &Arc<()>| Ok(Failed(failure));
    let (report, unreported) = (
        || queue_list.report_failures(Duration::ZERO, nothing),
        || queue_list.pending_unreported(Duration::ZERO, |_| Ok(None)),
    );
    queue_list.remove(core::ptr::null(), Ok(Some(Failed(failure))));
    assert_eq!(unreported().map(|events| events.len()), Ok(1));
    assert_eq!(
        queue_list.synchronize(Duration::ZERO, nothing),
        Err(failure.into()),
        "which is no report to the program"
    );
    assert_eq!(report(), Err(failure.into()));
    assert_eq!((report(), unreported().map(|events| events.len())), (Ok(()), Ok(0)));
    assert_eq!(queue_list.synchronize(Duration::ZERO, nothing), Err(failure.into()));
    assert_eq!(queue_list.pending(Duration::ZERO, |_| Ok(None)).map(|events| events.len()), Ok(1));
    // The same without an event.
    queue_list.remove(core::ptr::null(), Err(ErrorKind::NoDevice.into()));
    assert_eq!(unreported().map(|events| events.len()), Err(ErrorKind::NoDevice.into()));
    assert_eq!((report(), report()), (Err(ErrorKind::NoDevice.into()), Ok(())));
    assert_eq!(unreported().map(|events| events.len()), Ok(0));
    assert_eq!(queue_list.synchronize(Duration::ZERO, nothing), Err(ErrorKind::NoDevice.into()));
    // The next failure is reported again.
    queue_list.remove(core::ptr::null(), Ok(Some(Failed(failure))));
    assert_eq!((report(), report()), (Err(failure.into()), Ok(())));
}

#[test]
fn a_lost_device_stays_lost() {
    let queue_list = QueueList::<(), Failed>::new();
    queue_list.remove(core::ptr::null(), Ok(Some(Failed(ErrorKind::DeviceLost))));
    for _ in 0..3 {
        let outcome = queue_list.report_failures(Duration::ZERO, |_| Ok(Failed(ErrorKind::DeviceLost)));
        assert_eq!(outcome, Err(ErrorKind::DeviceLost.into()));
    }
}

#[test]
fn a_live_queue_reports_its_failure_every_time() {
    let queue_list = QueueList::<(), Failed>::new();
    let queue = Arc::new(());
    queue_list.insert(&queue);
    for _ in 0..3 {
        assert_eq!(
            queue_list.report_failures(Duration::ZERO, |_| Ok(Failed(ErrorKind::NoDevice))),
            Err(ErrorKind::NoDevice.into())
        );
    }
}

const FAILURE: ErrorKind = ErrorKind::Native { operation: "an operation of the test" };

/// Running or failed work.
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

/// A failure is reported after all other work has ended. A call that timed out before does not
/// swallow it.
#[test]
fn a_wait_that_timed_out_reports_nothing() {
    let queue_list = QueueList::<(), Either>::new();
    let work = Rc::new(Cell::new(1));
    queue_list.remove(core::ptr::null(), Ok(Some(Either::Work(Steps(Rc::clone(&work))))));
    queue_list.remove(core::ptr::null(), Ok(Some(Either::Failed)));
    let report = || queue_list.report_failures(Duration::ZERO, |_| Ok(Either::Failed));
    assert_eq!(report(), Err(Error::timeout(Duration::ZERO)));
    work.set(0);
    assert_eq!(report(), Err(FAILURE.into()));
    assert_eq!(report(), Ok(()));
}

#[test]
fn a_queue_that_is_being_dropped_is_waited_for() {
    let queue_list = QueueList::new();
    let work = Steps(Rc::new(Cell::new(1)));
    let wait = || queue_list.synchronize(Duration::ZERO, |_| Ok(Steps(Rc::new(Cell::new(0)))));
    let queue = Arc::new(());
    queue_list.insert(&queue);
    assert_eq!(wait(), Ok(()));
    let left = Arc::as_ptr(&queue);
    drop(queue);
    assert!(wait().is_err(), "its last event is not known yet");
    queue_list.remove(left, Ok(Some(work.clone())));
    assert!(wait().is_err(), "its work goes on");
    // Dropping another queue does not change this.
    queue_list.remove(core::ptr::null(), Ok(None));
    assert!(wait().is_err());
    work.0.set(0);
    assert_eq!(wait(), Ok(()));
    assert_eq!(queue_list.last_events.lock().len(), 0);
}

/// Neither reported nor unreported failures grow the list, and folded failures still fail every
/// wait.
#[test]
fn queues_that_fail_again_and_again_fill_no_memory() {
    for asks in [true, false] {
        let queue_list = QueueList::<(), Either>::new();
        let work = Rc::new(Cell::new(1));
        let leave = |event| queue_list.remove(core::ptr::null(), Ok(Some(event)));
        let nothing = |_: &Arc<()>| Ok(Either::Failed);
        for _ in 0..10 {
            leave(Either::Work(Steps(Rc::clone(&work))));
        }
        for _ in 0..1000 {
            leave(Either::Failed);
            if asks {
                work.set(0);
                assert_eq!(
                    queue_list.report_failures(Duration::ZERO, nothing),
                    Err(FAILURE.into()),
                    "each failure is reported"
                );
            }
        }
        let kept = queue_list.last_events.lock().len();
        assert!(kept <= MAX_FAILURES + 10, "{kept}");
        if !asks {
            // No event of running work was folded.
            assert!(matches!(
                queue_list.last_events.lock()[..10],
                [LastEvent { event: Either::Work(_), .. }, ..]
            ));
            work.set(0);
            assert_eq!(
                queue_list.report_failures(Duration::ZERO, nothing),
                Err(FAILURE.into()),
                "all of them together"
            );
        }
        assert_eq!(queue_list.report_failures(Duration::ZERO, nothing), Ok(()));
        assert_eq!(
            queue_list.pending_unreported(Duration::ZERO, |_| Ok(None)).map(|events| events.len()),
            Ok(0)
        );
        for _ in 0..2 {
            assert_eq!(queue_list.synchronize(Duration::ZERO, nothing), Err(FAILURE.into()));
            assert!(queue_list.pending(Duration::ZERO, |_| Ok(None)).is_err());
        }
    }
}

#[test]
fn a_lost_device_stays_lost_whatever_fails_after() {
    let queue_list = QueueList::<(), Failed>::new();
    let report = || queue_list.report_failures(Duration::ZERO, |_| Ok(Failed(FAILURE)));
    queue_list.remove(core::ptr::null(), Ok(Some(Failed(ErrorKind::DeviceLost))));
    for _ in 0..2 * MAX_FAILURES {
        queue_list.remove(core::ptr::null(), Ok(Some(Failed(FAILURE))));
    }
    assert_eq!(report(), Err(FAILURE.into()));
    for _ in 0..2 {
        assert_eq!(report(), Err(ErrorKind::DeviceLost.into()));
    }
}

/// A call that looked before a queue was dropped has not reported that queue's failure.
#[test]
fn a_failure_beside_one_that_is_being_reported_is_reported_too() {
    let queue_list = QueueList::<(), Failed>::new();
    let queue = Arc::new(());
    queue_list.insert(&queue);
    queue_list.remove(core::ptr::null(), Err(FAILURE.into()));
    let another_goes = |_: &Arc<()>| {
        queue_list.remove(core::ptr::null(), Err(FAILURE.into()));
        Err(ErrorKind::NoDevice.into())
    };
    assert_eq!(queue_list.report_failures(Duration::ZERO, another_goes), Err(FAILURE.into()));
    let idle = |queue_list: &QueueList<(), Failed>| {
        queue_list.report_failures(Duration::ZERO, |_| Err(ErrorKind::NoDevice.into()))
    };
    assert_eq!(
        (idle(&queue_list), idle(&queue_list)),
        (Err(FAILURE.into()), Err(ErrorKind::NoDevice.into()))
    );
}
