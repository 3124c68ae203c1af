//! Models of work in flight, under all interleavings of two and three threads: `cargo xtask loom`.
//! The asynchronous backend is the mock, whose engine reports a block that is freed while queued
//! work still uses it.
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use usm_core::backend::mock::{Mock, Progress};
use usm_core::{
    AllocKind, Context, Device, ErrorKind, MemorySource, MemoryType, Queue, QueueOrder, Request, Shared,
    UsmVec,
};

/// Every interleaving with at most this many forced switches: two are enough to show bugs of two or
/// three threads.
fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 50_000;
    builder.check(run);
}

/// A context whose locks were all used once, because this thread must make loom's objects before
/// the others start.
fn warm(mock: &Mock) -> Context<Mock> {
    let context = mock.context();
    let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    let (mut one, two) = (array(&queue), array(&queue));
    let _ = queue.copy(&mut one, &two).expect("a copy");
    // Dropped in flight, so that the list of deferred frees is used too.
    drop((one, two));
    mock.finish();
    for kind in [AllocKind::Host, AllocKind::Device, AllocKind::Shared] {
        drop(context.allocate(&Request::new(kind, 1)).expect("memory"));
    }
    let view = UsmVec::<u8, Shared, _>::from_slice(&queue, &[1]).expect("an array");
    assert_eq!(view.read().expect("a view")[..], [1]);
    context
}

fn array(queue: &Queue<Mock>) -> UsmVec<u8, Device, Mock> {
    UsmVec::zeroed(queue, 2).expect("an array")
}

#[test]
fn two_threads_cannot_pass_the_limit_together() {
    model(|| {
        let mock = Mock::default().with_device(|info| {
            info.global_mem_size = 1000;
            info.max_alloc_size = 1000;
        });
        let context = warm(&mock);
        let other = context.clone();
        let request = || Request::new(AllocKind::Device, 600);
        let thread = thread::spawn(move || other.allocate(&request()).map(|block| block.size()));
        let mine = context.allocate(&request());
        let theirs = thread.join().expect("no panic");
        // The other thread's block may be freed before this allocation; both are never live
        // together.
        match (&mine, &theirs) {
            (Err(error), Ok(_)) | (Ok(_), Err(error)) => {
                assert!(matches!(error.kind, ErrorKind::OverMemory { requested: 600, .. }), "{error}");
            }
            (Ok(_), Ok(_)) => {}
            (Err(one), Err(other)) => panic!("both refused: {one}, {other}"),
        }
        let peak = context.stats().of(MemoryType::UsmDevice).peak;
        assert!(peak <= 1000, "both were live: {peak} bytes");
        drop(mine);
        assert_eq!(context.stats().sum.current, 0);
    });
}

#[test]
fn statistics_and_registry_lose_nothing() {
    model(|| {
        let mock = Mock::default();
        let context = warm(&mock);
        let before = context.stats().sum;
        let other = context.clone();
        let thread = thread::spawn(move || {
            let block = other.allocate(&Request::new(AllocKind::Shared, 64)).expect("memory");
            let found = other.query(block.as_ptr()).expect("an answer");
            assert_eq!((found.base, found.size), (block.as_ptr() as usize, 64));
            drop(block);
        });
        let block = context.allocate(&Request::new(AllocKind::Device, 32)).expect("memory");
        assert_eq!(context.query(block.as_ptr()).expect("an answer").size, 32);
        drop(block);
        thread.join().expect("no panic");
        let stats = context.stats().sum;
        assert_eq!((stats.current, stats.live), (0, 0));
        assert_eq!((stats.count - before.count, stats.total - before.total), (2, 96));
        assert!((64..=96).contains(&stats.peak), "{stats:?}");
    });
}

#[test]
fn an_array_dropped_in_flight_is_freed_once_and_after_its_use() {
    model(|| {
        let mock = Mock::new(Progress::OnWait);
        let context = warm(&mock);
        let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
        let (mut one, two) = (array(&queue), array(&queue));
        let _ = queue.copy(&mut one, &two).expect("a copy");
        let driver = mock.clone();
        // The device runs while the arrays are dropped.
        let device = thread::spawn(move || driver.finish());
        let dropper = thread::spawn(move || drop(one));
        drop(two);
        dropper.join().expect("no panic");
        device.join().expect("no panic");
        drop(queue);
        // The next allocation frees complete blocks.
        drop(context.allocate(&Request::new(AllocKind::Device, 8)).expect("memory"));
        drop(context);
        assert_eq!(mock.violations(), []);
        assert_eq!(mock.live_blocks(), 0);
    });
}

#[test]
fn two_readers_and_the_next_writer_are_ordered() {
    model(|| {
        let mock = Mock::new(Progress::OnWait);
        let context = warm(&mock);
        let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
        let source = Arc::new(UsmVec::<u8, Shared, _>::from_slice(&queue, &[7; 2]).expect("an array"));
        let reader = {
            let (source, context) = (source.clone(), context.clone());
            thread::spawn(move || {
                let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
                let mut copy = UsmVec::<u8, Shared, _>::zeroed(&queue, 2).expect("an array");
                let _ = queue.copy(&mut copy, &source).expect("a copy");
                drop(source);
                copy
            })
        };
        let mut mine = UsmVec::<u8, Shared, _>::zeroed(&queue, 2).expect("an array");
        let _ = queue.copy(&mut mine, &source).expect("a copy");
        let theirs = reader.join().expect("no panic");
        let mut source = Arc::try_unwrap(source).unwrap_or_else(|_| panic!("the reader let go"));
        let _ = queue.fill(&mut source, 9).expect("a fill");
        assert_eq!(mine.to_vec(&queue).expect("content"), [7, 7]);
        assert_eq!(theirs.to_vec(&queue).expect("content"), [7, 7]);
        assert_eq!(source.to_vec(&queue).expect("content"), [9, 9]);
        drop((mine, theirs, source, queue, context));
        assert_eq!(mock.violations(), []);
    });
}

#[test]
fn a_view_and_a_submission_of_another_thread_exclude_each_other() {
    model(|| {
        let mock = Mock::new(Progress::OnWait).without_concurrent_access();
        let context = warm(&mock);
        let queue = context.queue(QueueOrder::InOrder).expect("a queue");
        let viewed = UsmVec::<u8, Shared, _>::from_slice(&queue, &[1; 2]).expect("an array");
        let mut filled = array(&queue);
        let submitter = thread::spawn(move || {
            let outcome = queue.fill(&mut filled, 3).map(drop);
            (outcome, queue, filled)
        });
        let view = viewed.read().expect("a view");
        // All work submitted before the view has run, and none is submitted while it lives.
        assert_eq!((mock.queued(), view[0]), (0, 1));
        drop(view);
        let (outcome, queue, filled) = submitter.join().expect("no panic");
        if let Err(error) = outcome {
            assert_eq!(error.kind, ErrorKind::HostViewLive { views: 1 });
        }
        drop((filled, viewed, queue, context));
        assert_eq!(mock.violations(), []);
    });
}

#[test]
fn a_view_and_a_submission_by_another_context_of_the_device_exclude_each_other() {
    model(|| {
        let mock = Mock::new(Progress::OnWait).without_concurrent_access();
        let (context, other) = (warm(&mock), mock.context());
        let queue = context.queue(QueueOrder::InOrder).expect("a queue");
        let viewed = UsmVec::<u8, Shared, _>::from_slice(&queue, &[1; 2]).expect("an array");
        let queue = other.queue(QueueOrder::InOrder).expect("a queue");
        let mut filled = array(&queue);
        other.synchronize(core::time::Duration::MAX).expect("done");
        let submitter = thread::spawn(move || {
            let outcome = queue.fill(&mut filled, 3).map(drop);
            // If its work was submitted, the drop of its context or the view waits for it.
            drop((filled, queue, other));
            outcome
        });
        let view = viewed.read().expect("a view");
        assert_eq!((mock.queued(), view[0]), (0, 1));
        drop(view);
        if let Err(error) = submitter.join().expect("no panic") {
            assert_eq!(error.kind, ErrorKind::HostViewLive { views: 1 });
        }
        drop((viewed, context));
        assert_eq!(mock.violations(), []);
    });
}

#[test]
fn a_context_is_dropped_once_with_its_last_owner() {
    model(|| {
        let mock = Mock::default();
        let context = warm(&mock);
        let block = context.allocate(&Request::new(AllocKind::Device, 8)).expect("memory");
        let other = context.allocate(&Request::new(AllocKind::Shared, 8)).expect("memory");
        // An allocation counts its handle with its entry in the ledger, a context by itself.
        let thread = thread::spawn(move || drop((block, other)));
        drop(context);
        thread.join().expect("no panic");
        assert_eq!(mock.live_blocks(), 0);
        assert_eq!(mock.contexts(), 0);
        assert_eq!(mock.violations(), []);
    });
}

#[test]
fn two_readers_on_one_in_order_queue_are_both_waited_for() {
    model(|| {
        let mock = Mock::new(Progress::Manual);
        let context = mock.context();
        context.set_wait_limit(core::time::Duration::ZERO);
        let queue = context.queue(QueueOrder::InOrder).expect("a queue");
        let done = |array| {
            mock.finish();
            array
        };
        let source = Arc::new(done(array(&queue)));
        let (mut one, mut two) = (done(array(&queue)), done(array(&queue)));
        let reader = {
            let (source, queue) = (source.clone(), queue.clone());
            thread::spawn(move || {
                let _ = queue.copy(&mut one, &source).expect("a copy");
                drop(source);
                one
            })
        };
        let _ = queue.copy(&mut two, &source).expect("a copy");
        let one = reader.join().expect("no panic");
        // The device has run the first of the two.
        assert!(mock.step());
        drop(source);
        context.collect();
        assert_eq!(mock.violations(), []);
        mock.finish();
        drop((one, two));
    });
}

/// Another owner may already have the address of memory that is being dropped; the ledger then has
/// that owner's block.
#[test]
fn memory_of_a_queue_changes_hands_between_threads() {
    model(|| {
        let mock = Mock::new(Progress::Manual);
        let context = warm(&mock);
        let queue = context.queue(QueueOrder::InOrder).expect("a queue");
        let request = Request::new(AllocKind::Device, 2);
        drop(MemorySource::allocate(&queue, &request).expect("memory"));
        let first = MemorySource::allocate(&queue, &request).expect("memory");
        let thread = thread::spawn(move || drop(first));
        let mut second = MemorySource::allocate(&queue, &request).expect("memory");
        let _ = queue.fill_bytes(&mut second, 0, 2, &[1]).expect("a fill");
        thread.join().expect("no panic");
        let info = context.query(second.as_ptr()).expect("an answer");
        assert_eq!((info.base, info.size), (second.as_ptr().addr(), 2));
        assert_eq!(context.stats().sum.current, 2);
        mock.finish();
        assert_eq!(mock.violations(), []);
    });
}
