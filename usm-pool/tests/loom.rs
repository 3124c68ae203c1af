//! Models of an arena whose parts several threads claim and return during operations on them, and
//! of the caches of a pool: `cargo xtask loom`. The backend of the arena is the mock, which counts
//! the events that an operation waits for.
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use usm_core::backend::host::HostHeap;
use usm_core::backend::mock::{Mock, Operation, Progress};
use usm_core::{AllocKind, Allocation, Context, MemorySource, Queue, QueueOrder, Request};
use usm_pool::arena::{Arena, ArenaError};
use usm_pool::{Buffer, Options, Pool, PoolOptions, Problem, plan};

/// Every switch between threads that the program allows, with a limited number of forced ones.
fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 50_000;
    builder.check(run);
}

/// Two tensors in the same bytes, with the locks of context and arena used once: this thread
/// creates loom's objects.
fn office(mock: &Mock) -> (Context<Mock>, Queue<Mock>, Arena<Mock>) {
    let buffers = vec![Buffer::new(7, 0, 1, 64).aligned(64), Buffer::new(8, 1, 2, 64).aligned(64)];
    let problem = Problem::from_buffers(buffers).expect("a problem");
    let plan = plan(&problem, &Options::default()).expect("a plan");
    let context = mock.context();
    let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    let arena = Arena::new(&plan, &context, AllocKind::Device).expect("an arena");
    for id in [7, 8] {
        let mut part = arena.tensor(id).expect("free").allocation().expect("a part");
        let _ = queue.fill_bytes(&mut part, 0, 64, &[0]).expect("a fill");
        mock.finish();
        drop(part);
    }
    (context, queue, arena)
}

/// Events that the last fill waited for.
fn waited_for(mock: &Mock) -> usize {
    let calls = mock.calls();
    calls.iter().rev().find(|call| call.operation == Operation::Fill).expect("a fill").after
}

fn filled(queue: &Queue<Mock>, mut part: Allocation<Mock>, value: u8) -> Allocation<Mock> {
    let _ = queue.fill_bytes(&mut part, 0, 64, &[value]).expect("a fill");
    part
}

/// A claim receives the pending operations on its bytes, whenever these were returned.
#[test]
fn bytes_come_back_with_what_still_uses_them() {
    model(|| {
        let mock = Mock::new(Progress::Manual);
        let (context, queue, arena) = office(&mock);
        context.set_wait_limit(core::time::Duration::ZERO);
        let seven = arena.tensor(7).expect("free").allocation().expect("a part");
        let seven = filled(&queue, seven, 7);
        let dropper = thread::spawn(move || drop(seven));
        match arena.tensor(8) {
            Err(error) => assert_eq!(error, ArenaError::InUse { id: 8, held_by: 7 }),
            Ok(claim) => {
                let eight = filled(&queue, claim.allocation().expect("a part"), 8);
                assert_eq!(waited_for(&mock), 1, "the fill of the tensor before is under way");
                drop(eight);
            }
        }
        dropper.join().expect("no panic");
        let eight = arena.tensor(8).expect("free").allocation().expect("a part");
        let eight = filled(&queue, eight, 8);
        assert!(waited_for(&mock) >= 1, "something is under way still");
        drop((eight, arena, queue, context));
        assert_eq!(mock.violations(), []);
        mock.finish();
    });
}

/// Two threads claim the same bytes, and one gets them.
#[test]
fn bytes_have_one_owner() {
    model(|| {
        let mock = Mock::new(Progress::Manual);
        let (context, queue, arena) = office(&mock);
        context.set_wait_limit(core::time::Duration::ZERO);
        let other = {
            let arena = arena.clone();
            thread::spawn(move || arena.tensor(7).map(|claim| claim.allocation().expect("a part")))
        };
        let mine = arena.tensor(8).map(|claim| claim.allocation().expect("a part"));
        let theirs = other.join().expect("no panic");
        match (&mine, &theirs) {
            (Ok(_), Err(error)) => assert_eq!(*error, ArenaError::InUse { id: 7, held_by: 8 }),
            (Err(error), Ok(_)) => assert_eq!(*error, ArenaError::InUse { id: 8, held_by: 7 }),
            _ => panic!("both or neither: {mine:?} {theirs:?}"),
        }
        drop((mine, theirs));
        assert!(arena.tensor(7).is_ok());
        drop((arena, queue, context));
        mock.finish();
    });
}

/// Two threads use one claim, and one of them gets the bytes.
#[test]
fn a_claim_serves_once() {
    model(|| {
        let mock = Mock::new(Progress::Manual);
        let (context, queue, arena) = office(&mock);
        let claim = Arc::new(arena.tensor(7).expect("free"));
        let other = {
            let claim = claim.clone();
            thread::spawn(move || claim.allocation())
        };
        let mine = claim.allocation();
        let theirs = other.join().expect("no panic");
        assert!(mine.is_ok() != theirs.is_ok(), "{mine:?} {theirs:?}");
        drop((mine, theirs, claim));
        assert!(arena.tensor(8).is_ok());
        drop((arena, queue, context));
        mock.finish();
    });
}

fn blocks_of(context: &Context<HostHeap>, limit: usize) -> Pool<HostHeap> {
    let mut options = PoolOptions::default();
    (options.limit, options.segment) = (Some(limit), limit);
    Pool::with(context, AllocKind::Shared, options)
}

fn take(pool: &Pool<HostHeap>, size: usize) -> usm_core::Result<Allocation<HostHeap>> {
    pool.allocate(&Request::new(AllocKind::Shared, size))
}

/// A context and a pool with the locks of both used once, and this thread's cache.
fn pool_in_use(limit: usize) -> (Context<HostHeap>, Pool<HostHeap>) {
    let context = HostHeap::new().context();
    let pool = blocks_of(&context, limit);
    drop(take(&pool, 64).expect("memory"));
    pool.trim(0);
    (context, pool)
}

/// Waits for what a thread does at its end: loom's `join` returns before.
fn until(is_done: impl Fn() -> bool) {
    while !is_done() {
        thread::yield_now();
    }
}

fn has_ended(context: &Context<HostHeap>) -> bool {
    (context.stats().sum.live, context.stats().reserved) == (0, 0)
}

/// The last handle goes while another thread allocates and frees a block, which it may keep or
/// return: the segments go back.
#[test]
fn a_pool_ends_while_a_thread_is_inside_its_cache() {
    model(|| {
        let (context, pool) = pool_in_use(128);
        let other = {
            let pool = pool.clone();
            thread::spawn(move || {
                let block = take(&pool, 64).expect("memory");
                drop(pool);
                drop(block);
            })
        };
        drop(pool);
        other.join().expect("no panic");
        until(|| has_ended(&context));
    });
}
