//! Two contexts: each refuses objects of the other and works independently of it.

use usm_core::{
    AllocKind, Allocation, Backend, BackendKind, Context, Device, ErrorKind, Event, MemAdvice, MemorySource,
    Queue, QueueOrder, Request, Result, Shared, Strided, Usage, UsmVec,
};

use super::transfer::buffer;
use crate::Fixture;

fn memory<B: Backend>(context: &Context<B>, kind: AllocKind) -> Allocation<B> {
    context.allocate(&Request::new(kind, 64)).expect("memory")
}

/// Every operation of a queue refuses memory of another context on either side, even for zero
/// bytes.
pub fn memory_of_another_context_is_refused<B: Backend>(fixture: &Fixture<'_, B>) {
    let (expected, found) = (fixture.context.id(), fixture.other.id());
    let refused = |outcome: Result<Event<B>>, what: &str| {
        let error = outcome.map(drop).expect_err(what);
        assert_eq!(error.kind, ErrorKind::WrongContext { expected, found }, "{what}");
    };
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        let queue = fixture.context.queue(order).expect("a queue");
        for kind in AllocKind::ALL {
            let (mut ours, mut theirs) = (memory(fixture.context, kind), memory(fixture.other, kind));
            for len in [0, 64] {
                refused(queue.copy_bytes(&mut ours, 0, &theirs, 0, len), "copied from");
                refused(queue.copy_bytes(&mut theirs, 0, &ours, 0, len), "copied to");
                refused(queue.fill_bytes(&mut theirs, 0, len, &[0]), "filled");
                refused(queue.copy_within(&mut theirs, 0, 32, len / 2), "copied within");
            }
            // One run, many runs, no elements.
            for (shape, stride) in [([64_usize], 1_isize), ([32], 2), ([0], 1)] {
                let strides = [stride];
                let layout = Strided::new(0, 1, &shape, &strides).expect("a layout");
                refused(queue.copy_strided(&mut ours, &layout, &theirs, &layout), "strided from");
                refused(queue.copy_strided(&mut theirs, &layout, &ours, &layout), "strided to");
            }
            let (to, from) = (Strided::new(0, 1, &[32], &[1]), Strided::new(32, 1, &[32], &[1]));
            let (to, from) = (to.expect("a layout"), from.expect("a layout"));
            refused(queue.copy_strided_within(&mut theirs, &to, &from), "strided within");
            refused(queue.prefetch(&theirs), "prefetched");
            refused(queue.advise(&theirs, MemAdvice::ReadMostly), "advised");
            // SAFETY: refused before anything runs.
            let submitted = unsafe {
                queue.submit(&[Usage::write(&ours), Usage::read(&theirs)], &[], |_, _| {
                    panic!("memory of another context reached the driver")
                })
            };
            refused(submitted, "submitted");
        }
    }
    assert_eq!(fixture.context.stats().sum.live, 0);
}

/// The same for opaque buffers, where the backend has them.
pub fn a_buffer_of_another_context_is_refused<B: Backend>(fixture: &Fixture<'_, B>) {
    let (expected, found) = (fixture.context.id(), fixture.other.id());
    let buffers = (buffer(fixture.context, 64), buffer(fixture.other, 64));
    let (Some(mut ours), Some(mut theirs)) = buffers else { return };
    let queue = fixture.context.queue(QueueOrder::InOrder).expect("a queue");
    let (mut near, mut far) =
        (memory(fixture.context, AllocKind::Host), memory(fixture.other, AllocKind::Host));
    let [near_array, far_array] = [fixture.context, fixture.other].map(|context| {
        let queue = context.queue(QueueOrder::InOrder).expect("a queue");
        UsmVec::<u8, Shared, B>::zeroed(&queue, 64).expect("an array")
    });
    for outcome in [
        queue.write_buffer(&mut theirs, 0, &near_array, 0, 64),
        queue.write_buffer(&mut ours, 0, &far_array, 0, 64),
        queue.read_buffer(&theirs, 0, &mut near, 0, 64),
        queue.read_buffer(&ours, 0, &mut far, 0, 64),
        queue.fill_buffer(&mut theirs, 0, 64, &[1]),
        queue.copy_buffer(&mut theirs, 0, &ours, 0, 64),
        queue.copy_buffer(&mut ours, 0, &theirs, 0, 64),
        queue.copy_buffer_within(&mut theirs, 0, 32, 32),
    ] {
        assert_eq!(outcome.map(drop).expect_err("foreign").kind, ErrorKind::WrongContext { expected, found });
    }
}

/// Memory returns to its own context, whichever handle is dropped last and in whatever order
/// contexts are dropped.
pub fn memory_goes_back_to_its_own_context<B: Backend>(fixture: &Fixture<'_, B>) {
    for kind in AllocKind::ALL {
        let (ours, theirs) = (memory(fixture.context, kind), memory(fixture.other, kind));
        let live = || [fixture.context, fixture.other].map(|context| context.stats().sum.live);
        assert_eq!(live(), [1, 1]);
        // Another handle of the same context is accepted.
        let again = fixture.other.clone();
        drop(theirs);
        assert_eq!((live(), again.stats().sum.live), ([1, 0], 0), "{kind}");
        drop(ours);
        assert_eq!(live(), [0, 0], "{kind}");
    }
}

/// Without concurrent access, a view on another thread temporarily forbids submissions on every
/// context of the device.
pub(super) fn between_views<B: Backend>(mut submit: impl FnMut() -> Result<Event<B>>) {
    while let Err(error) = submit() {
        assert!(matches!(error.kind, ErrorKind::HostViewLive { .. }), "{error}");
        std::thread::yield_now();
    }
}

fn work<B: Backend>(context: &Context<B>, seed: u64) {
    let queues: [Queue<B>; 2] =
        [QueueOrder::InOrder, QueueOrder::OutOfOrder].map(|order| context.queue(order).expect("a queue"));
    for round in 0..50 {
        let queue = &queues[round % 2];
        let value = seed + round as u64;
        let mut source = UsmVec::<u64, Shared, B>::zeroed(queue, 100).expect("an array");
        let mut target = UsmVec::<u64, Shared, B>::zeroed(queue, 100).expect("an array");
        between_views(|| queue.fill(&mut source, value));
        between_views(|| queue.copy(&mut target, &source));
        drop(source);
        assert_eq!(target.read().expect("a view")[..], [value; 100]);
        let info = context.query(target.as_ptr()).expect("an answer");
        assert_eq!((info.context, info.size), (context.id(), 800));
    }
    for queue in &queues {
        queue.wait().expect("idle");
    }
}

/// Each context in a thread of its own, at the same time: neither sees the other's statistics or
/// contents.
pub fn two_contexts_work_in_two_threads<B: Backend>(fixture: &Fixture<'_, B>) {
    std::thread::scope(|scope| {
        let threads = [(fixture.context, 1_000), (fixture.other, 2_000)]
            .map(|(context, seed)| scope.spawn(move || work(context, seed)));
        // Joins by name: a race detector sees that, but not how a scope waits.
        for thread in threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    for context in [fixture.context, fixture.other] {
        context.collect();
        let stats = context.stats();
        assert_eq!((stats.sum.live, stats.sum.count, stats.sum.total, stats.leaked), (0, 100, 80_000, 0));
    }
}

/// Device memory of another context is copied in order with the earlier and later work on both
/// ends, where the runtime copies between contexts. Other memory and other runtimes refuse.
pub fn memory_of_a_peer_is_copied<B: Backend>(fixture: &Fixture<'_, B>) {
    const LEN: usize = 3 << 10;
    let copies = matches!(fixture.context.info().backend, BackendKind::Cuda | BackendKind::Hip);
    let unsupported = |outcome: Result<Event<B>>| {
        let error = outcome.map(drop).expect_err("refused");
        assert!(matches!(error.kind, ErrorKind::Unsupported { .. }), "{error}");
    };
    for (order, theirs) in
        [(QueueOrder::InOrder, QueueOrder::OutOfOrder), (QueueOrder::OutOfOrder, QueueOrder::InOrder)]
    {
        let (ours, theirs) = (fixture.context.queue(order), fixture.other.queue(theirs));
        let (ours, theirs) = (ours.expect("a queue"), theirs.expect("a queue"));
        let mut dst = UsmVec::<u32, Device, B>::zeroed(&ours, LEN).expect("memory");
        let mut src = UsmVec::<u32, Device, B>::zeroed(&theirs, LEN).expect("memory");
        for turn in 0..5_u32 {
            let _ = theirs.fill(&mut src, turn + 1).expect("a fill");
            let copied = ours.copy_from_peer(&mut dst, &src);
            if !copies {
                unsupported(copied);
                break;
            }
            let _ = copied.expect("a copy");
            // Later work on the source follows the copy.
            let _ = theirs.fill(&mut src, 99).expect("a fill");
            if turn == 4 {
                // The copy, not the owner, keeps it.
                drop(core::mem::replace(&mut src, UsmVec::zeroed(&theirs, 1).expect("memory")));
            }
            assert_eq!(dst.to_vec(&ours).expect("the content"), [turn + 1; LEN]);
        }
        let memory_of = |kind, kind_of_theirs| {
            let (mut to, from) = (memory(fixture.context, kind), memory(fixture.other, kind_of_theirs));
            ours.copy_bytes_from_peer((&mut to, 0), (&from, 0), 64)
        };
        unsupported(memory_of(AllocKind::Host, AllocKind::Device));
        unsupported(memory_of(AllocKind::Device, AllocKind::Shared));
        let (mut to, from) =
            (memory(fixture.context, AllocKind::Device), memory(fixture.other, AllocKind::Device));
        let beyond = ours.copy_bytes_from_peer((&mut to, 8), (&from, 0), 60).map(drop).expect_err("beyond");
        assert_eq!(beyond.kind, ErrorKind::OutOfBounds { offset: 8, len: 60, size: 64 });
        let (expected, found) = (fixture.other.id(), fixture.context.id());
        let foreign =
            theirs.copy_bytes_from_peer((&mut to, 0), (&from, 0), 8).map(drop).expect_err("foreign");
        assert_eq!(foreign.kind, ErrorKind::WrongContext { expected, found });
    }
}
