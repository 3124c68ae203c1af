//! Views and drops while work is in flight.

use core::ptr::NonNull;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use usm_core::backend::mock::{Fault, Mock, Operation, Progress};
use usm_core::backend::{Block, HostTasks};
use usm_core::{
    Access, AllocKind, Allocation, Backend, Context, Error, ErrorKind, EventStatus, Fallback, Host, Lender,
    MemorySource, MemoryType, Pending, Queue, QueueOrder, Request, Shared, UsmVec,
};

mod without_concurrent_access;

const DELAY: Duration = Duration::from_millis(60);

/// Finishes the device's work later, from another thread.
fn finish_later(mock: &Mock) -> thread::JoinHandle<()> {
    let mock = mock.clone();
    thread::spawn(move || {
        thread::sleep(DELAY);
        mock.finish();
    })
}

#[test]
fn a_view_blocks_until_the_writer_is_done() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut array = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    core::mem::forget(queue.fill(&mut array, 7).expect("a fill"));
    core::mem::forget(queue);
    let (start, device) = (Instant::now(), finish_later(&mock));
    assert_eq!(array.read().expect("a view")[..], [7; 4]);
    assert!(start.elapsed() >= DELAY, "the view did not wait");
    device.join().expect("the device's thread");
}

#[test]
fn a_write_view_waits_for_readers_too() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut source = UsmVec::<u32, Shared, Mock>::from_slice(&queue, &[1; 4]).expect("memory");
    let mut target = UsmVec::<u32, Host, Mock>::zeroed(&queue, 4).expect("memory");
    let _ = queue.copy(&mut target, &source).expect("a copy");
    assert_eq!(source.read().expect("no write is in flight")[..], [1; 4]);
    let (start, device) = (Instant::now(), finish_later(&mock));
    source.write().expect("a view").fill(2);
    assert!(start.elapsed() >= DELAY, "the view did not wait");
    assert_eq!(target.read().expect("a view")[..], [1; 4]);
    device.join().expect("the device's thread");
}

#[test]
fn what_is_pending_grows_by_nothing_that_is_submitted_later() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut array = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    mock.finish();
    assert!(context.pending(Duration::ZERO).expect("idle").is_done());
    let first = queue.fill(&mut array, 7).expect("a fill");
    let all = context.pending(Duration::ZERO).expect("events");
    let own = queue.pending().expect("an event");
    let later = queue.fill(&mut array, 8).expect("a fill");
    for pending in [&all, &own] {
        let limit = Duration::from_millis(1);
        assert_eq!(pending.wait(limit).expect_err("held").kind, ErrorKind::Timeout { limit_ms: 1 });
    }
    while !(all.is_done() && own.is_done()) {
        assert!(mock.step(), "nothing is left to run, and it is not done");
    }
    assert_eq!((all.wait(Duration::ZERO), own.wait(Duration::ZERO)), (Ok(()), Ok(())));
    assert_eq!(first.status(), Ok(EventStatus::Complete));
    assert_eq!(later.status(), Ok(EventStatus::Pending));
    mock.finish();
}

#[test]
fn a_view_gives_up_at_its_limit() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    context.set_wait_limit(Duration::from_millis(20));
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut array = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    let event = queue.fill(&mut array, 7).expect("a fill");
    assert_eq!(array.read().expect_err("in flight").kind, ErrorKind::Timeout { limit_ms: 20 });
    let limit = Duration::from_millis(5);
    assert_eq!(event.wait_for(limit).expect_err("in flight").kind, ErrorKind::Timeout { limit_ms: 5 });
    mock.finish();
    assert_eq!(array.read().expect("a view")[..], [7; 4]);
}

#[test]
fn dropped_memory_is_freed_after_its_last_use_and_not_before() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut array = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    let _ = queue.fill(&mut array, 7).expect("a fill");
    drop(array);
    context.collect();
    assert_eq!((context.deferred_frees(), mock.live_blocks()), (1, 1));
    assert_eq!(context.stats().sum.live, 1, "memory in use is not free");
    mock.finish();
    context.collect();
    assert_eq!((context.deferred_frees(), mock.live_blocks()), (0, 0));
    assert_eq!(mock.violations(), []);
}

#[test]
fn what_never_finishes_is_leaked_and_counted() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    context.set_wait_limit(Duration::from_millis(10));
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut array = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    let _ = queue.fill(&mut array, 7).expect("a fill");
    drop((array, queue, context));
    assert_eq!((mock.live_blocks(), mock.violations()), (1, vec![]));
}

#[test]
fn the_limit_of_a_context_is_for_everything_that_its_end_waits_for() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let limit = Duration::from_millis(500);
    context.set_wait_limit(limit);
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    for _ in 0..100 {
        let mut array = UsmVec::<u8, Shared, _>::zeroed(&queue, 8).expect("memory");
        let _ = queue.fill(&mut array, 1).expect("a fill");
    }
    let start = Instant::now();
    drop((queue, context));
    // A limit for each array would add up to 100 limits.
    assert!(start.elapsed() < limit * 50, "{:?}", start.elapsed());
    assert_eq!((mock.live_blocks(), mock.violations()), (100, vec![]));
}

#[test]
fn an_event_waits_up_to_the_limit_of_its_context() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    context.set_wait_limit(Duration::from_millis(20));
    let event = queue.barrier(&[]).expect("a barrier");
    assert_eq!(event.clone().wait().expect_err("in flight").kind, ErrorKind::Timeout { limit_ms: 20 });
    mock.finish();
    event.wait().expect("done");
}

/// Records its drop, and then panics if told to.
struct Owner {
    memory: Box<[u8]>,
    panics: bool,
    gone: Arc<AtomicBool>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
        assert!(!self.panics, "the drop of an owner of {} bytes", self.memory.len());
    }
}

impl Owner {
    fn allocation(context: &Context<Mock>, panics: bool) -> (Allocation<Mock>, Arc<AtomicBool>) {
        let gone = Arc::new(AtomicBool::new(false));
        let mut owner = Self { memory: vec![1; 64].into(), panics, gone: Arc::clone(&gone) };
        let pointer = NonNull::new(owner.memory.as_mut_ptr()).expect("a box");
        let block = Block { pointer, size: 64, alignment: 1, kind: AllocKind::Host };
        // SAFETY: the owner's memory, which the mock treats as any other.
        (unsafe { Allocation::foreign(context.clone(), block, Box::new(owner)) }, gone)
    }
}

#[test]
fn an_owner_that_panics_takes_no_memory_along_that_is_in_use() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    context.set_wait_limit(Duration::from_millis(5));
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let ((mut one, first), (mut two, second)) =
        (Owner::allocation(&context, true), Owner::allocation(&context, false));
    let _ = queue.fill_bytes(&mut one, 0, 64, &[7]).expect("a fill");
    let _ = queue.fill_bytes(&mut two, 0, 64, &[8]).expect("a fill");
    drop((one, two));
    assert!(mock.step());
    drop(queue);
    let ended = catch_unwind(AssertUnwindSafe(|| drop(context)));
    assert_eq!((ended.is_err(), mock.queued()), (true, 1));
    assert!(first.load(Ordering::Relaxed) && !second.load(Ordering::Relaxed));
    mock.finish();
}

/// The reservation for a concurrent caller is released.
#[test]
fn an_owner_that_panics_takes_no_memory_of_the_device_along() {
    let mock = Mock::new(Progress::Manual).with_device(|info| info.max_alloc_size = info.global_mem_size);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    // The driver refuses a device's memory.
    let all = Request::new(AllocKind::Device, context.info().global_mem_size as usize);
    let error = Error::from(ErrorKind::Native { operation: "an allocation" });
    for buffer in [false, true] {
        let (mut foreign, gone) = Owner::allocation(&context, true);
        let _ = queue.fill_bytes(&mut foreign, 0, 64, &[7]).expect("a fill");
        drop(foreign);
        mock.finish();
        let ask = || match buffer {
            true => context.allocate_memory(MemoryType::Buffer, all.size, 0, Fallback::Refuse).map(drop),
            false => context.allocate(&all).map(drop),
        };
        assert!(catch_unwind(AssertUnwindSafe(ask)).is_err(), "the owner is dropped, and panics");
        assert!(gone.load(Ordering::Relaxed));
        mock.inject(Fault { operation: Operation::Allocate, skip: 0, error, late: false });
        let refused = context.allocate(&all).expect_err("the driver refuses");
        assert_eq!(refused.kind, error.kind, "and not the ledger's");
    }
}

/// The submission is not lost: its memory is kept until it has run.
#[test]
fn a_task_that_panics_takes_no_submission_of_others_along() {
    let task = |queue: &Queue<Mock>, task: Box<dyn FnOnce() + Send>| {
        // SAFETY: the tasks of this test access only memory that they own.
        let submitted = unsafe { queue.submit(&[], &[], |queue, after| Mock::run(queue, after, task)) };
        submitted.expect("a task")
    };
    for seed in 0..32 {
        let mock = Mock::new(Progress::Immediate);
        mock.seed(seed);
        let context = mock.context();
        let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
        let inner = queue.clone();
        // Nothing else runs during a task: both wait in the queue, and the next caller runs them.
        let submits = move || {
            for _ in 0..2 {
                let _ = task(&inner, Box::new(|| panic!("a task of the test")));
            }
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| task(&queue, Box::new(submits))));
        let mut array = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
        let filled = catch_unwind(AssertUnwindSafe(|| queue.fill(&mut array, 3)));
        drop(array);
        context.collect();
        assert_eq!((mock.queued(), mock.violations()), (0, vec![]), "seed {seed}");
        assert!(outcome.is_ok() && filled.is_ok(), "seed {seed}: the panic of another task");
        drop((outcome, filled));
    }
}

/// The caller of a task that runs at once and panics receives the panic.
#[test]
fn a_task_that_panics_at_once_panics_where_it_is_submitted() {
    let mock = Mock::new(Progress::Immediate);
    let queue = mock.context().queue(QueueOrder::InOrder).expect("a queue");
    // SAFETY: the task touches no memory.
    let submit =
        || unsafe { queue.submit(&[], &[], |queue, after| Mock::run(queue, after, || panic!("a task"))) };
    let panic = catch_unwind(AssertUnwindSafe(submit)).expect_err("it panics");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"a task"));
}

#[test]
fn an_owner_that_panics_keeps_no_other_from_being_dropped() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let ((mut one, _), (mut two, second)) =
        (Owner::allocation(&context, true), Owner::allocation(&context, false));
    let _ = queue.fill_bytes(&mut one, 0, 64, &[7]).expect("a fill");
    let _ = queue.fill_bytes(&mut two, 0, 64, &[8]).expect("a fill");
    drop((one, two));
    mock.finish();
    assert!(catch_unwind(AssertUnwindSafe(|| context.collect())).is_err());
    assert_eq!((second.load(Ordering::Relaxed), context.deferred_frees()), (false, 1));
    context.collect();
    assert_eq!((second.load(Ordering::Relaxed), context.deferred_frees()), (true, 0));
}

#[test]
fn a_limit_may_be_as_long_as_one_likes() {
    let mock = Mock::new(Progress::OnWait);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut array = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    queue.fill(&mut array, 7).expect("a fill").wait_for(Duration::MAX).expect("done");
    let _ = queue.fill(&mut array, 8).expect("a fill");
    context.synchronize(Duration::MAX).expect("done");
    assert_eq!(array.read().expect("a view")[..], [8; 4]);
}

struct Whole(Allocation<Mock>);

// SAFETY: the whole waits for what still uses its part.
unsafe impl Lender<Mock> for Whole {
    unsafe fn take_back(lender: NonNull<Self>, _: u32, _: &Block, uses: Pending<Mock>) {
        // SAFETY: the test keeps the whole.
        unsafe { lender.as_ref() }.0.absorb(uses).expect("operations of one context");
    }
}

#[test]
fn work_of_another_context_is_not_absorbed() {
    let mock = Mock::new(Progress::Manual);
    let [ours, theirs] = [mock.context(), mock.context()];
    let queue = theirs.queue(QueueOrder::InOrder).expect("a queue");
    let mut busy = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    let _ = queue.fill(&mut busy, 1).expect("a fill");
    let whole = ours.allocate(&Request::new(AllocKind::Shared, 64)).expect("memory");
    let (expected, found) = (ours.id(), theirs.id());
    for pending in [busy.allocation().pending(), queue.pending().expect("events")] {
        assert_eq!((pending.context(), pending.is_done()), (found, false));
        let refused = whole.absorb(pending).expect_err("of another context");
        assert_eq!(refused.kind, ErrorKind::WrongContext { expected, found });
    }
    assert!(whole.pending().is_done());
    mock.finish();
    whole.absorb(Pending::none()).expect("nothing in flight is of every context");
}

#[test]
fn what_a_whole_absorbs_of_its_parts_is_forgotten_when_it_is_done() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    let whole = context.allocate(&Request::new(AllocKind::Shared, 64)).expect("memory");
    let whole = Whole(whole);
    for _ in 0..50 {
        let lender = NonNull::from(&whole);
        // SAFETY: the only unused part of a block; `whole` lives for longer.
        let mut part =
            unsafe { Allocation::from_lender(&context, *whole.0.block(), Pending::none(), lender, 0) };
        let _ = queue.fill_bytes(&mut part, 0, 64, &[1]).expect("a fill");
        drop(part);
        mock.finish();
    }
    let mut whole = whole.0;
    let _ = queue.fill_bytes(&mut whole, 0, 64, &[2]).expect("a fill");
    let waits = mock.calls().last().expect("the fill").after;
    assert!(waits < 10, "{waits} operations are waited for, all of them done");
    mock.finish();
}
