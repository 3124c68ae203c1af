//! Models of two threads and a runtime that forgets failures, under all interleavings. Operations
//! are numbered in queue order. A thread that finds an operation complete may use its result, and
//! all earlier operations have succeeded. No failure is lost, and no event is kept or released
//! twice.

use core::sync::atomic::AtomicUsize as Count;

use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicU32;
use loom::thread;

use super::*;
use usm_core::ErrorKind;

const PENDING: u32 = 0;
const ENDED: u32 = 1;
const FAILED: u32 = 2;

/// An operation on the device, with its result.
struct Job {
    state: AtomicU32,
    result: UnsafeCell<u32>,
    fails: bool,
}

// SAFETY: loom fails a model where two accesses to the result are not ordered.
unsafe impl Sync for Job {}
// SAFETY: as above.
unsafe impl Send for Job {}

impl Job {
    fn new(fails: bool) -> Arc<Self> {
        Arc::new(Self { state: AtomicU32::new(PENDING), result: UnsafeCell::new(0), fails })
    }

    fn run(&self) {
        // SAFETY: loom fails the model if another access is not ordered before or after this.
        self.result.with_mut(|result| unsafe { *result += 1 });
        self.state.store(if self.fails { FAILED } else { ENDED }, Ordering::Release);
    }

    fn result(&self) -> u32 {
        // SAFETY: loom fails the model if the change is not ordered before this.
        self.result.with(|result| unsafe { *result })
    }
}

/// An event of the runtime.
struct Native {
    job: Arc<Job>,
    events: Arc<Count>,
    /// Calls take this chain's lock, so a model fails if the calling thread already holds it.
    probe: Option<Arc<Chain<Native>>>,
}

impl Native {
    fn call(&self) {
        if let Some(chain) = &self.probe {
            drop(chain.state.lock());
        }
    }
}

impl EventOps for Native {
    fn status(&self) -> Result<EventStatus> {
        self.call();
        match self.job.state.load(Ordering::Acquire) {
            PENDING => Ok(EventStatus::Pending),
            ENDED => Ok(EventStatus::Complete),
            _ => Err(failure()),
        }
    }

    fn wait(&self, _: core::time::Duration) -> Result<()> {
        unreachable!("nobody waits here")
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        self.call();
        self.events.fetch_sub(1, Ordering::Relaxed);
    }
}

fn failure() -> Error {
    ErrorKind::DeviceLost.into()
}

/// An in-order queue, its operations in order, and its number of live events.
struct Queue {
    lane: Lane<Native>,
    jobs: Mutex<Vec<Arc<Job>>>,
    /// Number of operations that have run or are about to.
    ran: Mutex<usize>,
    events: Arc<Count>,
    probes: bool,
}

type Event = TrackedOperation<Native>;

impl Queue {
    /// Uses each lock once, because this thread must make loom's locks.
    fn new(probes: bool) -> Arc<Self> {
        let lane = Lane::new();
        assert_eq!((lane.chain.check(), *lane.turn.lock()), (Ok(()), 0));
        lane.chain.drop_finished();
        let (jobs, ran) = (Mutex::new(Vec::new()), Mutex::new(0));
        drop((jobs.lock(), ran.lock()));
        Arc::new(Self { lane, jobs, ran, events: Arc::default(), probes })
    }

    fn submit(&self, refuse: bool, fails: bool, follows: Vec<Event>) -> Result<Event> {
        let job = Job::new(fails);
        self.submit_job(refuse, job, follows)
    }

    fn submit_job(&self, refuse: bool, job: Arc<Job>, follows: Vec<Event>) -> Result<Event> {
        let follows = follows.into_iter().filter(|event| !event.is_known_complete()).collect();
        self.lane.submit(refuse, follows, || {
            // Checked here, because another thread may run it right afterwards.
            assert_eq!(job.state.load(Ordering::Relaxed), PENDING);
            self.jobs.lock().push(Arc::clone(&job));
            self.events.fetch_add(1, Ordering::Relaxed);
            let probe = self.probes.then(|| Arc::clone(&self.lane.chain));
            Ok(Native { job, events: Arc::clone(&self.events), probe })
        })
    }

    fn put(&self, fails: bool) -> Event {
        self.submit(false, fails, Vec::new()).expect("it is taken")
    }

    /// The device runs the remaining operations. It reads no state, because loom forgets earlier
    /// readers of a word that another thread changes.
    fn run(&self) {
        let mut ran = self.ran.lock();
        let jobs = self.jobs.lock().split_at(*ran).1.to_vec();
        *ran += jobs.len();
        drop(ran);
        for job in jobs {
            job.run();
        }
    }

    /// The position of an event in the queue.
    fn position(&self, event: &Event) -> usize {
        let jobs = self.jobs.lock();
        jobs.iter().position(|job| Arc::ptr_eq(job, &event.0.operation.job)).expect("submitted")
    }

    fn waiting(&self) -> usize {
        self.lane.chain.state.lock().open_operations.len()
    }
}

/// A thread that finds an operation complete may use its result.
fn ask(event: &Event) -> Result<EventStatus> {
    let answer = event.status();
    if answer == Ok(EventStatus::Complete) {
        assert_eq!(event.0.operation.job.result(), 1);
    }
    answer
}

/// Runs a model with at most this many forced switches.
fn model(switches: Option<usize>, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = switches;
    builder.check(run);
}

/// The first operation of the queue fails, whichever thread submitted it. So the other one fails
/// too, and later submissions are refused.
#[test]
fn two_submitters_have_the_numbers_of_the_order() {
    model(None, || {
        let queue = Queue::new(false);
        let submitting = Arc::clone(&queue);
        // The operation of one thread fails.
        let other = thread::spawn(move || submitting.put(true));
        let good = queue.put(false);
        let bad = other.join().expect("no panic");
        queue.run();
        let expected = match queue.position(&good) < queue.position(&bad) {
            true => Ok(EventStatus::Complete),
            false => Err(failure()),
        };
        assert_eq!(good.number() < bad.number(), expected.is_ok());
        // Independent of earlier queries.
        for _ in 0..2 {
            assert_eq!(ask(&good), expected);
            assert_eq!(ask(&bad), Err(failure()));
        }
        assert_eq!(queue.submit(true, false, Vec::new()).map(drop), Err(failure()));
    });
}

/// The states of operations may become known in another order than the queue's.
#[test]
fn no_operation_is_complete_before_its_predecessors() {
    model(None, || {
        let queue = Queue::new(false);
        let (first, second, third) = (queue.put(false), queue.put(false), queue.put(false));
        queue.jobs.lock().reverse();
        let running = Arc::clone(&queue);
        let device = thread::spawn(move || running.run());
        thread::yield_now();
        for event in [&third, &second] {
            if ask(event) == Ok(EventStatus::Complete) {
                assert_eq!(first.0.operation.job.result(), 1);
            }
        }
        device.join().expect("no panic");
        assert_eq!(ask(&third), Ok(EventStatus::Complete));
        assert_eq!((ask(&first), queue.waiting()), (Ok(EventStatus::Complete), 0));
    });
}

/// One thread queries its operation while the other submits and the device runs.
#[test]
fn a_sweep_beside_a_submission_forgets_nothing() {
    model(Some(3), || {
        let queue = Queue::new(false);
        let first = queue.put(false);
        let asking = (Arc::clone(&queue), first.clone());
        let asker = thread::spawn(move || {
            asking.0.run();
            assert_eq!(ask(&asking.1), Ok(EventStatus::Complete));
        });
        let (second, third) = (queue.put(false), queue.put(true));
        let _ = ask(&second);
        let last = queue.put(false);
        asker.join().expect("no panic");
        queue.run();
        assert_eq!(ask(&last), Err(failure()));
        assert_eq!(ask(&third), Err(failure()));
        assert_eq!(ask(&second), Ok(EventStatus::Complete));
        assert_eq!(ask(&first), Ok(EventStatus::Complete));
        assert_eq!(queue.waiting(), 0);
    });
}

/// Two threads concurrently query operations that succeeded after a failure, one of them on another
/// queue.
#[test]
fn a_failure_is_known_to_all_that_follows_it() {
    model(Some(3), || {
        let (queue, other) = (Queue::new(false), Queue::new(false));
        let (before, bad, behind) = (queue.put(false), queue.put(true), queue.put(false));
        let across = other.submit(true, false, [before.clone(), behind.clone()].into()).expect("taken");
        let next = other.put(false);
        drop(bad);
        queue.run();
        other.run();
        let (asking, follower) = (Arc::clone(&other), across.clone());
        let asker = thread::spawn(move || {
            assert_eq!(ask(&next), Err(failure()));
            assert_eq!(ask(&follower), Err(failure()));
            assert_eq!(asking.submit(true, false, Vec::new()).map(drop), Err(failure()));
        });
        assert_eq!(ask(&behind), Err(failure()));
        assert_eq!(queue.submit(true, false, Vec::new()).map(drop), Err(failure()));
        // Barriers are accepted, and fail.
        let barrier = queue.put(false);
        queue.run();
        assert_eq!(ask(&barrier), Err(failure()));
        assert_eq!(ask(&before), Ok(EventStatus::Complete));
        asker.join().expect("no panic");
        assert_eq!(ask(&across), Err(failure()));
    });
}

/// A thread that learns completion from another thread's query also sees the device's writes. With
/// `follows` the second operation names the first.
fn memory_of_complete_work_may_be_used(follows: bool) {
    model(None, move || {
        let queue = Queue::new(false);
        let first = queue.put(false);
        let named = if follows { [first.clone()].into() } else { Vec::new() };
        let second = queue.submit(true, false, named).expect("taken");
        let (running, one, two) = (Arc::clone(&queue), first.clone(), second.clone());
        let asker = thread::spawn(move || {
            running.run();
            assert_eq!(ask(&two), Ok(EventStatus::Complete));
            assert_eq!(ask(&one), Ok(EventStatus::Complete));
        });
        // The query comes first, then all other orders.
        thread::yield_now();
        for event in [&second, &first].into_iter().filter(|event| event.is_known_complete()) {
            assert_eq!(event.0.operation.job.result(), 1);
        }
        let later = ask(&second);
        assert!(later != Ok(EventStatus::Complete) || ask(&first) == Ok(EventStatus::Complete));
        asker.join().expect("no panic");
    });
}

#[test]
fn memory_of_complete_work_in_a_chain_may_be_used() {
    memory_of_complete_work_may_be_used(false);
}

#[test]
fn memory_of_complete_work_behind_other_work_may_be_used() {
    memory_of_complete_work_may_be_used(true);
}

/// Queries and releases of the runtime's events happen without a lock of the chain, each release
/// once, on whichever thread has the last handle.
#[test]
fn events_are_given_back_once_and_without_the_lock() {
    model(Some(3), || {
        let queue = Queue::new(true);
        let events = Arc::clone(&queue.events);
        let (first, second) = (queue.put(false), queue.put(false));
        queue.run();
        let asker = thread::spawn(move || {
            let _ = ask(&first);
        });
        let third = queue.submit(true, false, [second].into()).expect("taken");
        queue.run();
        assert_eq!(ask(&third), Ok(EventStatus::Complete));
        drop(third);
        asker.join().expect("no panic");
        assert_eq!((queue.waiting(), events.load(Ordering::Relaxed)), (0, 0));
    });
}

/// Also if an operation fails that no thread queries: the later ones are released, and a chain is
/// dropped with its queue and last event.
#[test]
fn after_a_failure_nothing_is_kept() {
    model(Some(3), || {
        let queue = Queue::new(true);
        let (chain, events) = (Arc::downgrade(&queue.lane.chain), Arc::clone(&queue.events));
        drop(queue.put(true));
        let behind = queue.put(false);
        drop(queue.put(false));
        queue.run();
        let asker = thread::spawn(move || assert_eq!(ask(&behind), Err(failure())));
        let late = queue.put(false);
        queue.run();
        assert_eq!(ask(&late), Err(failure()));
        drop(late);
        asker.join().expect("no panic");
        assert_eq!((queue.waiting(), events.load(Ordering::Relaxed)), (0, 0));
        drop(queue);
        assert!(chain.upgrade().is_none());
    });
}

/// Finished events that no thread queries leave a long chain.
#[test]
fn a_long_line_becomes_shorter() {
    model(Some(3), || {
        let queue = Queue::new(true);
        let held: Vec<_> = (0..LONG).map(|_| queue.put(false)).collect();
        let running = Arc::clone(&queue);
        let device = thread::spawn(move || running.run());
        drop(held);
        drop(queue.put(false));
        device.join().expect("no panic");
        queue.run();
        for _ in 0..4 {
            drop(queue.put(false));
            queue.run();
            assert!(queue.waiting() <= LONG);
        }
        assert_eq!(queue.events.load(Ordering::Relaxed), queue.waiting());
    });
}
