//! The caches of threads: what they hold is counted, found, bounded and given back, whatever their
//! threads do.

#![cfg(feature = "std")]
#![allow(clippy::std_instead_of_alloc, reason = "a test of threads: std is there")]

use core::cell::RefCell;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};

use usm_core::backend::host::HostHeap;
use usm_core::backend::mock::{Mock, Progress};
use usm_core::{AllocKind, Allocation, Context, ErrorKind, MemorySource, QueueOrder, Request};
use usm_pool::pool::BlockState;
use usm_pool::snapshot::{Device, Snapshot};
use usm_pool::{Pool, PoolOptions};

fn request(size: usize) -> Request {
    Request::new(AllocKind::Shared, size)
}

fn pool(context: &Context<HostHeap>, change: impl Fn(&mut PoolOptions)) -> Pool<HostHeap> {
    let mut options = PoolOptions::default();
    change(&mut options);
    Pool::with(context, AllocKind::Shared, options)
}

fn effort() -> usize {
    std::env::var("USM_EFFORT").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit as u64) as usize
    }
}

/// No cache may hide memory from a limit: the whole of it is in one block at the end.
fn is_whole(pool: &Pool<HostHeap>, bytes: usize) {
    pool.check();
    assert_eq!((pool.stats().live, pool.stats().blocks), (0, 0));
    drop(pool.allocate(&request(bytes)).expect("all of it"));
}

/// Waits for the threads with their destructors, which the end of a scope does not.
fn end(threads: Vec<std::thread::ScopedJoinHandle<'_, ()>>) {
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

#[test]
fn the_last_block_comes_first_at_every_size() {
    let context = HostHeap::new().context();
    for size in [1, 64, 65, 1000, 4096, 64 << 10, 1 << 20, 64 << 20] {
        let pool = Pool::new(&context, AllocKind::Shared);
        let first = pool.allocate(&request(size)).expect("memory");
        let second = pool.allocate(&request(size)).expect("memory");
        let (one, two) = (first.as_ptr(), second.as_ptr());
        drop(first);
        drop(second);
        let again = pool.allocate(&request(size)).expect("memory");
        assert_eq!(again.as_ptr(), two);
        if size <= 1 << 20 {
            assert_eq!(pool.allocate(&request(size)).expect("memory").as_ptr(), one);
        }
        assert_eq!((pool.stats().live, pool.stats().blocks), (size as u64, 1));
    }
}

/// A peak between two looks, in the caches of two threads.
#[test]
fn an_exact_peak_misses_no_moment() {
    let context = HostHeap::new().context();
    for exact in [false, true] {
        let pool = pool(&context, |options| options.exact_peak = exact);
        let warm: Vec<_> = (0..3).map(|_| pool.allocate(&request(1000)).expect("memory")).collect();
        drop(warm);
        let both = Barrier::new(2);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let block = pool.allocate(&request(1 << 20)).expect("memory");
                both.wait();
                both.wait();
                drop(block);
            });
            both.wait();
            drop([(); 2].map(|()| pool.allocate(&request(1000)).expect("memory")));
            both.wait();
            other.join().expect("no panic");
        });
        let peak = pool.stats().peak_live;
        assert!(peak <= (1 << 20) + 2000);
        assert!(!exact || peak == (1 << 20) + 2000, "{peak}");
    }
}

#[test]
fn history_tells_what_it_lost() {
    let context = HostHeap::new().context();
    let pool = Pool::new(&context, AllocKind::Shared);
    context.keep_history(5);
    for _ in 0..4 {
        drop(pool.allocate(&request(100)).expect("memory"));
    }
    assert_eq!((context.history().len(), context.history_lost()), (5, 3));
    context.keep_history(2);
    assert_eq!((context.history().len(), context.history_lost()), (2, 0));
}

#[test]
fn caches_of_other_threads_serve_a_limit_while_they_sleep() {
    let context = HostHeap::new().context();
    let pool = pool(&context, |options| options.limit = Some(1 << 20));
    let (begin, end) = (Barrier::new(5), Barrier::new(5));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let blocks: Vec<_> =
                    (0..20).map(|_| pool.allocate(&request(10_000)).expect("memory")).collect();
                drop(blocks);
                begin.wait();
                end.wait();
            });
        }
        begin.wait();
        is_whole(&pool, 1 << 20);
        end.wait();
    });
    is_whole(&pool, 1 << 20);
}

#[test]
fn ended_threads_and_late_destructors_leave_nothing() {
    thread_local! {
        static LATE: RefCell<Vec<(Pool<HostHeap>, Allocation<HostHeap>)>> = const { RefCell::new(Vec::new()) };
    }
    let context = HostHeap::new().context();
    let pool = pool(&context, |options| options.limit = Some(1 << 20));
    for round in 0..30 * effort() {
        std::thread::scope(|scope| {
            let spawn = |_| {
                scope.spawn(|| {
                    // Before the cache, and after it: its destructor runs late or early.
                    if round % 2 == 0 {
                        LATE.with_borrow_mut(Vec::clear);
                    }
                    let block = pool.allocate(&request(5000)).expect("memory");
                    LATE.with_borrow_mut(|late| late.push((pool.clone(), block)));
                    drop(pool.allocate(&request(300)).expect("memory"));
                })
            };
            end((0..4).map(spawn).collect());
        });
    }
    is_whole(&pool, 1 << 20);
}

#[test]
fn many_pools_in_turns_keep_a_bounded_number_of_blocks() {
    let context = HostHeap::new().context();
    let pools: Vec<_> = (0..50).map(|_| pool(&context, |o| o.limit = Some(1 << 18))).collect();
    for _ in 0..20 {
        for pool in &pools {
            let blocks: Vec<_> = (0..40).map(|_| pool.allocate(&request(4000)).expect("memory")).collect();
            drop(blocks);
        }
    }
    pools.iter().for_each(|pool| is_whole(pool, 1 << 18));
    assert_eq!(context.stats().sum.live, 0);
    assert_eq!(context.stats().reserved, 50 << 18);
    drop(pools);
    assert_eq!((context.stats().reserved, context.stats().sum.live), (0, 0));
    assert_eq!(context.stats().sum.count, 50 * 20 * 40 + 50, "of pools that are gone too");
}

/// Blocks go round: each thread allocates, and the next one frees.
#[test]
fn blocks_that_other_threads_free_come_back() {
    let context = HostHeap::new().context();
    let pool = pool(&context, |options| options.limit = Some(4 << 20));
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for seed in 0..3 {
            let (sender, receiver) = channel::<Allocation<HostHeap>>();
            let pool = &pool;
            threads.push(scope.spawn(move || {
                let mut random = Random(seed);
                for _ in 0..5000 * effort() {
                    let size = 1 + random.below(2000);
                    let block = loop {
                        match pool.allocate(&request(size)) {
                            Ok(block) => break block,
                            Err(error) => {
                                assert!(matches!(error.kind, ErrorKind::PoolExhausted { .. }), "{error}");
                                std::thread::yield_now();
                            }
                        }
                    };
                    assert_eq!(block.size(), size);
                    sender.send(block).expect("a receiver");
                }
            }));
            threads.push(scope.spawn(move || receiver.iter().for_each(drop)));
        }
        end(threads);
    });
    is_whole(&pool, 4 << 20);
    assert_eq!(pool.stats().misuses, 0);
}

#[test]
fn forgotten_blocks_are_listed_and_the_rest_works_on() {
    let context = HostHeap::new().context();
    let pool = Pool::new(&context, AllocKind::Shared);
    for _ in 0..100 {
        core::mem::forget(pool.tagged("lost").allocate(&request(100)).expect("memory"));
        drop(pool.allocate(&request(100)).expect("memory"));
    }
    assert_eq!((pool.leaks().len(), pool.stats().live), (100, 10_000));
    assert!(pool.leaks().iter().all(|block| block.tag == "lost" && block.bytes == 100));
    pool.check();
    drop(pool);
    assert_eq!(context.stats().sum.live, 100);
}

/// The pool ends while threads free its blocks, and each of them may be the last.
#[test]
fn a_pool_ends_once_whoever_frees_last() {
    for round in 0..100 * effort() {
        let mock = Mock::new(Progress::Immediate);
        let context = mock.context();
        let pool = Pool::new(&context, AllocKind::Shared);
        let blocks: Vec<_> = (0..30).map(|_| pool.allocate(&request(100)).expect("memory")).collect();
        let begin = Arc::new(Barrier::new(4));
        let mut parts: Vec<Vec<_>> = (0..3).map(|_| Vec::new()).collect();
        for (at, block) in blocks.into_iter().enumerate() {
            parts[at % 3].push(block);
        }
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for part in parts {
                let begin = Arc::clone(&begin);
                let other = (round % 2 == 0).then(|| pool.clone());
                threads.push(scope.spawn(move || {
                    begin.wait();
                    if let Some(other) = other {
                        drop(other.allocate(&request(100)).expect("memory"));
                    }
                    drop(part);
                }));
            }
            begin.wait();
            drop(pool);
            end(threads);
        });
        assert_eq!((mock.live_blocks(), mock.violations()), (0, vec![]));
        assert_eq!(context.stats().sum.live, 0);
    }
}

/// Viewers know a block that its owner has freed while work still uses it.
#[test]
fn a_snapshot_shows_blocks_in_use_without_owner_as_pending() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let pool = Pool::new(&context, AllocKind::Shared);
    let [mut pending, live, idle] =
        [500, 600, 700].map(|size| pool.allocate(&request(size)).expect("memory"));
    let _ = queue.fill_bytes(&mut pending, 0, 500, &[1]).expect("a fill");
    drop((pending, idle));
    let segments = pool.snapshot().iter().map(|segment| segment.for_viewers("shared")).collect();
    let device = Device { name: "mock".into(), total: 1 << 30, segments, events: Vec::new() };
    let states: Vec<_> =
        device.segments[0].blocks.iter().map(|block| (block.size, block.is_pending)).collect();
    assert_eq!(states, [(512, true), (640, false)]);
    let pickle = Snapshot { devices: vec![device] }.pickle();
    let has = |text: &str| pickle.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("active_pending_free") && has("active_allocated") && has("inactive"));
    mock.finish();
    drop(live);
}

/// A block of another queue's unfinished work stays in the cache for its own queue.
#[test]
fn a_cache_serves_each_queue_with_its_own_blocks() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let queues = [(); 2].map(|()| context.queue(QueueOrder::InOrder).expect("a queue"));
    let pool = Pool::new(&context, AllocKind::Shared);
    let mut places = Vec::new();
    for queue in &queues {
        let mut block = pool.on(queue).allocate(&request(500)).expect("memory");
        let _ = queue.fill_bytes(&mut block, 0, 500, &[1]).expect("a fill");
        places.push(block.as_ptr());
    }
    assert_ne!(places[0], places[1]);
    assert_eq!(pool.stats().pending, 1024);
    let states: Vec<_> = pool.snapshot().iter().flat_map(|s| s.blocks.clone()).map(|b| b.state).collect();
    assert_eq!(states.iter().filter(|state| **state == BlockState::Pending).count(), 2);
    for (queue, place) in queues.iter().zip(&places) {
        assert_eq!(pool.on(queue).allocate(&request(500)).expect("memory").as_ptr(), *place);
    }
    assert_eq!(pool.stats().waits, 0);
    mock.finish();
    pool.check();
}

#[test]
fn an_allocation_that_finds_no_memory_takes_what_pools_hold_without_use() {
    let mock = Mock::new(Progress::Immediate).with_device(|info| info.global_mem_size = 64 << 20);
    let context = mock.context();
    let pool = Pool::new(&context, AllocKind::Device);
    let device = |size| Request::new(AllocKind::Device, size);
    drop(pool.allocate(&device(40 << 20)).expect("memory"));
    assert_eq!(context.stats().reserved, 40 << 20);
    let plain = context.allocate(&device(50 << 20)).expect("the pool's");
    assert_eq!((context.stats().reserved, plain.size()), (0, 50 << 20));
    let refused = pool.allocate(&device(40 << 20)).expect_err("in use");
    assert!(
        matches!(refused.kind, ErrorKind::OverMemory { .. } | ErrorKind::OutOfMemory { .. }),
        "{refused}"
    );
}
