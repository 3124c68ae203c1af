//! Models of queue lists under all interleavings.

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::*;
use crate::backend::EventStatus;

/// Work that another thread may finish.
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

type Queues = QueueList<Queue, Work>;

struct Queue {
    queue_list: Arc<Queues>,
    last: Work,
}

impl Queue {
    fn new(queue_list: &Arc<Queues>) -> (Arc<Self>, Work) {
        let last = Work::new();
        let queue = Arc::new(Self { queue_list: Arc::clone(queue_list), last: last.clone() });
        queue_list.insert(&queue);
        (queue, last)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.queue_list.remove(self, Ok(Some(self.last.clone())));
    }
}

fn synchronize(queue_list: &Queues) -> Result<()> {
    queue_list.synchronize(Duration::MAX, |queue| Ok(queue.last.clone()))
}

/// Uses each lock once, because this thread must make loom's locks.
fn queue_list() -> Arc<Queues> {
    let queue_list = Arc::new(QueueList::new());
    queue_list.remove(core::ptr::null(), Ok(None));
    queue_list
}

#[test]
fn the_work_of_a_dropped_queue_is_never_missed() {
    loom::model(|| {
        let queue_list = queue_list();
        let (queue, work) = Queue::new(&queue_list);
        let dropper = thread::spawn(move || drop(queue));
        assert!(synchronize(&queue_list).is_err(), "it has not finished");
        dropper.join().expect("no panic");
        assert!(synchronize(&queue_list).is_err(), "it goes on");
        work.end();
        assert_eq!(synchronize(&queue_list), Ok(()));
        assert_eq!(queue_list.last_events.lock().len(), 0);
    });
}

#[test]
fn only_finished_operations_are_forgotten() {
    let mut builder = loom::model::Builder::new();
    // Three threads: two forced switches are enough to show their interactions.
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let queue_list = queue_list();
        let ((one, first), (two, second)) = (Queue::new(&queue_list), Queue::new(&queue_list));
        let dropper = thread::spawn(move || drop(one));
        let ender = {
            let first = first.clone();
            thread::spawn(move || first.end())
        };
        drop(two);
        dropper.join().expect("no panic");
        ender.join().expect("no panic");
        assert!(synchronize(&queue_list).is_err(), "the second goes on");
        assert_eq!(queue_list.last_events.lock().len(), 1, "and the first does not");
        second.end();
        assert_eq!(synchronize(&queue_list), Ok(()));
    });
}

/// Failed work.
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
        let queue_list = Arc::new(QueueList::<(), Failed>::new());
        queue_list.remove(core::ptr::null(), Ok(None));
        drop(queue_list.unknown_outcome.lock());
        queue_list.last_events.lock().push(LastEvent { number: next_id(), event: Failed, is_reported: true });
        let other = Arc::clone(&queue_list);
        let gives_up = thread::spawn(move || other.prune());
        assert!(queue_list.synchronize(Duration::MAX, |_| Ok(Failed)).is_err());
        gives_up.join().expect("no panic");
        assert_eq!(queue_list.last_events.lock().len(), 0);
    });
}
