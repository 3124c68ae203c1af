//! Pools over the host and over a simulated device: an interval oracle, random programs whose work
//! finishes in any order and fails midway, limits, ends.

#![cfg(feature = "std")]
#![allow(clippy::std_instead_of_alloc, reason = "a test of threads: std is there")]

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use usm_core::backend::host::HostHeap;
use usm_core::backend::mock::{Fault, Mock, Operation, Progress};
use usm_core::{
    AllocKind, Allocation, Backend, Context, Error, ErrorKind, Fallback, MemorySource, Queue, QueueOrder,
    Request, Shared, UsmVec,
};
use usm_pool::pool::BlockState;
use usm_pool::{Pool, PoolOptions, Reuse};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit as u64) as usize
    }
}

fn options(change: impl Fn(&mut PoolOptions)) -> PoolOptions {
    let mut options = PoolOptions::default();
    change(&mut options);
    options
}

fn request(size: usize) -> Request {
    Request::new(AllocKind::Shared, size)
}

/// Segments are tiled by their blocks, and the sums are those of `stats`.
fn check<B: Backend>(pool: &Pool<B>) {
    pool.check();
    let (stats, mut sums) = (pool.stats(), BTreeMap::new());
    for segment in pool.snapshot() {
        let mut at = segment.address;
        for block in &segment.blocks {
            assert_eq!(block.address, at, "blocks tile their segment");
            at += block.size;
            *sums.entry(format!("{:?}", block.state)).or_insert(0) += block.size;
            let is_live = block.state == BlockState::Live;
            assert_eq!(is_live, block.requested > 0);
            assert!(block.requested <= block.size);
        }
        assert_eq!(at, segment.address + segment.size);
    }
    let of = |state: BlockState| sums.get(&format!("{state:?}")).copied().unwrap_or(0);
    let found = (of(BlockState::Cached), of(BlockState::Pending), of(BlockState::Leaked));
    assert_eq!(found, (stats.cached, stats.pending, stats.leaked));
    assert_eq!(sums.values().sum::<u64>(), stats.reserved);
}

/// Every block against every other, of the pool and of the context. `USM_CALLS` asks for another
/// number of calls.
#[test]
fn no_byte_has_two_owners() {
    let context = HostHeap::new().context();
    let pool = Pool::with(&context, AllocKind::Shared, options(|o| o.segment = 1 << 20));
    let mut live = BTreeMap::<usize, Allocation<HostHeap>>::new();
    let mut random = Random(7);
    for step in 0..skip::cases("USM_CALLS", 30_000) {
        if live.len() < 300 && random.below(100) < 55 {
            let most = 1 << (1 + random.below(17));
            let size = 1 + random.below(most);
            let alignment = 1 << random.below(18);
            let block = pool.allocate(&request(size).aligned_to(alignment)).expect("memory");
            let base = block.as_ptr() as usize;
            assert_eq!((base % alignment, block.size()), (0, size));
            let below = live.range(..=base).next_back();
            assert!(below.is_none_or(|(at, other)| at + other.size() <= base), "{below:?}");
            let above = live.range(base..).next();
            assert!(above.is_none_or(|(at, _)| base + size <= *at), "{above:?}");
            // The core knows the block as it was asked for, and nothing beside it.
            let info = context.query(block.as_ptr()).expect("an answer");
            assert_eq!((info.base, info.size, info.kind), (base, size, AllocKind::Shared));
            live.insert(base, block);
        } else if let Some(base) = live.keys().nth(random.below(live.len().max(1))).copied() {
            drop(live.remove(&base));
            let info = context.query(base as *const u8).expect("an answer");
            assert_eq!(info.kind, AllocKind::Unknown);
        }
        if step % 1000 == 0 {
            check(&pool);
            let sum: usize = live.values().map(Allocation::size).sum();
            assert_eq!((pool.stats().live, pool.stats().blocks), (sum as u64, live.len() as u64));
            let stats = context.stats().sum;
            assert_eq!((stats.current, stats.live), (sum, live.len()), "no segments");
            assert_eq!(context.blocks().len(), live.len());
        }
    }
    drop(live);
    pool.trim(0);
    assert_eq!((pool.stats().reserved, pool.snapshot()), (0, vec![]));
}

struct Array {
    memory: UsmVec<u32, Shared, Mock>,
    value: u32,
}

/// Programs on queues that finish in any order, with views of the host in between: every read sees
/// its own owner's values.
#[test]
fn memory_keeps_its_values_while_queues_work() {
    let mut waits = 0;
    for seed in 0..40 * skip::effort() {
        let mut random = Random(seed);
        let mock = Mock::new(if seed % 4 == 0 { Progress::Immediate } else { Progress::OnWait });
        mock.seed(seed);
        let context = mock.context();
        let orders = [QueueOrder::InOrder, QueueOrder::InOrder, QueueOrder::OutOfOrder];
        let queues = orders.map(|order| context.queue(order).expect("a queue"));
        let reuse = [Reuse::Follow, Reuse::Ready][(seed % 2) as usize];
        let given = options(|o| (o.segment, o.reuse, o.keep) = (1 << 14, reuse, Some(1 << 15)));
        let pool = Pool::with(&context, AllocKind::Shared, given);
        let mut arrays: Vec<Array> = Vec::new();
        for step in 0..400 {
            let queue = &queues[random.below(3)];
            match random.below(8) {
                0..=2 => {
                    let source = if random.below(4) == 0 { pool.clone() } else { pool.on(queue) };
                    let (len, value) = (1 + random.below(900), random.below(1 << 30) as u32);
                    let mut memory = UsmVec::zeroed_in(queue, &source, len).expect("memory");
                    let _ = queue.fill(&mut memory, value).expect("a fill");
                    arrays.push(Array { memory, value });
                }
                3 | 4 if !arrays.is_empty() => {
                    drop(arrays.swap_remove(random.below(arrays.len())));
                }
                5 if arrays.len() > 1 => {
                    let source = arrays.swap_remove(random.below(arrays.len()));
                    let target = random.below(arrays.len());
                    let target = &mut arrays[target];
                    if source.memory.len() == target.memory.len() {
                        let _ = queue.copy(&mut target.memory, &source.memory).expect("a copy");
                        target.value = source.value;
                    }
                    arrays.push(source);
                }
                6 if !arrays.is_empty() => {
                    let array = &arrays[random.below(arrays.len())];
                    let view = array.memory.read().expect("a view");
                    assert!(view.iter().all(|value| *value == array.value), "seed {seed}, step {step}");
                }
                7 => check(&pool),
                _ => {}
            }
        }
        waits += pool.stats().waits;
        if reuse == Reuse::Ready {
            assert_eq!(pool.stats().waits, 0, "seed {seed}");
        }
        for array in &arrays {
            assert!(array.memory.read().expect("a view").iter().all(|value| *value == array.value));
        }
        // In any order: pool, queues, arrays.
        if seed % 3 == 0 {
            drop(pool);
        }
        drop(queues);
        drop(arrays);
        context.synchronize(Duration::from_secs(5)).expect("no failure");
        assert_eq!(context.stats().sum.live, 0);
        drop(context);
        if seed % 3 == 0 {
            assert_eq!((mock.live_blocks(), mock.violations()), (0, vec![]), "seed {seed}");
        }
        assert_eq!(mock.violations(), []);
    }
    assert!(waits > 0, "no block was followed");
}

fn filled(queue: &Queue<Mock>, block: &mut Allocation<Mock>) -> Result<(), Error> {
    let len = block.size();
    queue.fill_bytes(block, 0, len, &[7]).map(drop)
}

fn waits_of_last_fill(mock: &Mock) -> usize {
    let calls = mock.calls();
    calls.iter().rev().find(|call| call.operation == Operation::Fill).expect("a fill").after
}

#[test]
fn a_ready_block_is_chosen_before_one_that_waits_and_that_before_growth() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    context.set_wait_limit(Duration::ZERO);
    let [ours, theirs] = [(); 2].map(|()| context.queue(QueueOrder::InOrder).expect("a queue"));
    let pool = Pool::with(&context, AllocKind::Shared, options(|o| o.segment = 1 << 20));
    drop(pool.on(&theirs).allocate(&request(1)).expect("memory"));
    // The block merges with the rest of its segment.
    pool.trim(u64::MAX);
    let mut busy = pool.on(&ours).allocate(&request(1000)).expect("memory");
    let address = busy.as_ptr();
    filled(&ours, &mut busy).expect("a fill");
    drop(busy);
    assert_eq!(pool.stats().pending, 1024);
    // Another queue gets bytes that nothing uses, although the others fit better.
    let other = pool.on(&theirs).allocate(&request(1000)).expect("memory");
    assert_ne!(other.as_ptr(), address);
    // The same queue gets them, and does not wait.
    let mut again = pool.on(&ours).allocate(&request(900)).expect("memory");
    assert_eq!(again.as_ptr(), address);
    filled(&ours, &mut again).expect("a fill");
    assert_eq!((waits_of_last_fill(&mock), pool.stats().waits), (0, 0));
    drop(again);
    // Nothing else is left: the other queue follows, and the host waits.
    let _rest = pool.allocate(&request((1 << 20) - 2048)).expect("the rest");
    let mut followed = pool.on(&theirs).allocate(&request(1000)).expect("memory");
    assert_eq!((followed.as_ptr(), pool.stats().waits), (address, 1));
    let refused = followed.wait_for_host(usm_core::Access::Read).expect_err("it is in use");
    assert!(matches!(refused.kind, ErrorKind::Timeout { .. }), "{refused}");
    filled(&theirs, &mut followed).expect("a fill");
    assert_eq!(waits_of_last_fill(&mock), 1);
    assert_eq!(pool.stats().reserved, 1 << 20, "no growth");
    drop((followed, other));
    mock.finish();
    check(&pool);
}

#[test]
fn a_block_of_failed_work_is_never_given_out() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let [broken, whole] = [(); 2].map(|()| context.queue(QueueOrder::InOrder).expect("a queue"));
    let pool = Pool::with(&context, AllocKind::Shared, options(|o| o.limit = Some(1 << 14)));
    let error = Error::from(ErrorKind::Native { operation: "a fill" }).with_native(-5);
    mock.inject(Fault { operation: Operation::Fill, skip: 0, error, late: true });
    let mut block = pool.on(&broken).allocate(&request(1 << 14)).expect("memory");
    filled(&broken, &mut block).expect("fails later");
    drop(block);
    mock.finish();
    let refused = pool.on(&whole).allocate(&request(64)).expect_err("no bytes are left");
    assert!(matches!(refused.kind, ErrorKind::PoolExhausted { .. }), "{refused}");
    assert_eq!(pool.stats().leaked, 1 << 14);
    let mut plain = context.allocate(&request(64)).expect("memory");
    filled(&whole, &mut plain).expect("a fill");
    mock.finish();
    drop(plain.wait_for_host(usm_core::Access::Write).expect("no failure"));
    context.set_wait_limit(Duration::ZERO);
}

#[test]
#[cfg(target_pointer_width = "64")]
fn owners_have_few_bytes() {
    assert_eq!(size_of::<Allocation<HostHeap>>(), 72);
    assert_eq!(size_of::<Allocation<usm_core::backend::Dyn>>(), 72);
}

#[test]
fn limits_are_exact() {
    let context = HostHeap::new().context();
    let pool = Pool::with(&context, AllocKind::Shared, options(|o| o.limit = Some(1024)));
    let refused = pool.allocate(&request(1025)).expect_err("above the limit");
    let numbers = ErrorKind::PoolExhausted {
        kind: AllocKind::Shared,
        requested: 1025,
        limit: 1024,
        live: 0,
        reserved: 0,
        pending: 0,
        largest: 0,
    };
    assert_eq!(refused.kind, numbers);
    let text = refused.to_string();
    for number in
        ["shared memory", "1025", "limit 1024", "0 live", "0 reserved", "0 pending", "0 in the largest"]
    {
        assert!(text.contains(number), "{text}");
    }
    let one = pool.tagged("first").allocate(&request(512)).expect("half");
    let two = pool.tagged("first").allocate(&request(500)).expect("half");
    assert_eq!((pool.stats().reserved, pool.stats().live), (1024, 1012));
    assert!(pool.to_string().contains("first: 1012 bytes"), "{pool}");
    assert!(pool.allocate(&request(1)).is_err());
    drop(one);
    assert!(pool.allocate(&request(512)).is_ok());
    drop(two);
    let whole = pool.allocate(&request(1024)).expect("merged");
    drop(whole);
    let none = Pool::with(&context, AllocKind::Shared, options(|o| o.limit = Some(0)));
    assert!(matches!(none.allocate(&request(1)).unwrap_err().kind, ErrorKind::PoolExhausted { .. }));
    let device = Pool::with(&context, AllocKind::Device, options(|o| o.limit = Some(0)));
    let of_host =
        device.allocate(&Request::new(AllocKind::Device, 64).or(Fallback::Host)).expect("of the host");
    assert_eq!(of_host.kind(), AllocKind::Host);
}

#[test]
fn threads_never_exceed_a_limit_together() {
    let context = HostHeap::new().context();
    let pool = Pool::with(
        &context,
        AllocKind::Shared,
        options(|o| {
            (o.limit, o.segment) = (Some(1 << 16), 1 << 14);
        }),
    );
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let pool = &pool;
            scope.spawn(move || {
                let (mut random, mut held) = (Random(seed), Vec::new());
                for _ in 0..2000 * skip::effort() {
                    match pool.allocate(&request(1 + random.below(4000))) {
                        Ok(block) if held.len() < 12 => held.push(block),
                        Ok(block) => drop(block),
                        Err(error) => {
                            assert!(matches!(error.kind, ErrorKind::PoolExhausted { .. }), "{error}");
                            held.clear();
                        }
                    }
                    assert!(pool.stats().reserved <= 1 << 16);
                }
            });
        }
    });
    check(&pool);
    assert_eq!((pool.stats().live, pool.stats().misuses), (0, 0));
    assert!(pool.stats().peak_reserved <= 1 << 16);
    // One thread gets it all.
    assert!(pool.allocate(&request(1 << 16)).is_ok());
}

#[test]
fn bad_requests_change_nothing() {
    let (context, other) = (HostHeap::new().context(), HostHeap::new().context());
    let pool = Pool::new(&context, AllocKind::Shared);
    let queue = other.queue(QueueOrder::InOrder).expect("a queue");
    let kind = |request: Request| pool.allocate(&request).expect_err("bad").kind;
    assert_eq!(kind(request(0)), ErrorKind::ZeroSize);
    assert_eq!(kind(request(1).aligned_to(3)), ErrorKind::BadAlignment { alignment: 3 });
    assert_eq!(kind(request(usize::MAX)), ErrorKind::SizeOverflow);
    let (expected, found) = (AllocKind::Shared, AllocKind::Device);
    assert_eq!(kind(Request::new(found, 1)), ErrorKind::WrongKind { expected, found });
    assert_eq!(kind(Request::new(AllocKind::Unknown, 1)), ErrorKind::UnknownKind);
    assert!(pool.allocate(&request(isize::MAX as usize - 4096)).is_err());
    let foreign = pool.on(&queue).allocate(&request(1)).expect_err("of another context").kind;
    assert_eq!(foreign, ErrorKind::WrongContext { expected: context.id(), found: other.id() });
    assert_eq!((pool.stats().reserved, pool.stats().blocks), (0, 0));
}

#[test]
fn a_callback_frees_allocates_or_gives_up() {
    let context = HostHeap::new().context();
    let pool = Pool::with(&context, AllocKind::Shared, options(|o| o.limit = Some(4096)));
    let calls = Arc::new(AtomicUsize::new(0));
    let held = Arc::new(std::sync::Mutex::new(vec![pool.allocate(&request(4096)).expect("all of it")]));
    let (counted, of_callback, inside) = (Arc::clone(&calls), Arc::clone(&held), pool.clone());
    pool.on_exhausted(move |bytes| {
        assert_eq!(bytes, 64);
        // A callback may use the pool, from any thread.
        assert!(inside.stats().live > 0);
        let dropper = Arc::clone(&of_callback);
        std::thread::spawn(move || dropper.lock().expect("no panic").clear()).join().expect("no panic");
        counted.fetch_add(1, Ordering::Relaxed);
        true
    });
    let block = pool.allocate(&request(64)).expect("freed by the callback");
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    held.lock().expect("no panic").push(block);
    pool.on_exhausted(|_| panic!("planned"));
    let caught = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| pool.allocate(&request(8192))));
    assert!(caught.is_err());
    let counted = Arc::clone(&calls);
    pool.on_exhausted(move |_| counted.fetch_add(1, Ordering::Relaxed) < 100);
    assert!(pool.allocate(&request(8192)).is_err());
    assert_eq!(calls.load(Ordering::Relaxed), 1 + 3, "three retries, and a call before each");
    check(&pool);
    // One that needs memory of the full pool itself is not called again.
    let (inside, counted) = (pool.clone(), Arc::clone(&calls));
    let before = calls.load(Ordering::Relaxed);
    pool.on_exhausted(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        inside.allocate(&request(8192)).is_ok()
    });
    assert!(pool.allocate(&request(8192)).is_err());
    assert_eq!(calls.load(Ordering::Relaxed), before + 1);
    // Also after the panic above: one that gives up what it has lets its thread go on.
    let (inside, of_callback) = (pool.clone(), Arc::clone(&held));
    pool.on_exhausted(move |_| {
        of_callback.lock().expect("no panic").clear();
        inside.allocate(&request(64)).is_ok()
    });
    let all = pool.allocate(&request(4096)).expect("freed by the callback");
    held.lock().expect("no panic").push(all);
    drop(pool.allocate(&request(4096)).expect("freed by the callback"));
    pool.on_exhausted(|_| false);
}

/// Each call of the driver in growth may fail.
#[test]
fn a_refused_growth_leaves_the_numbers() {
    let mock = Mock::new(Progress::Immediate);
    let context = mock.context();
    let pool = Pool::new(&context, AllocKind::Shared);
    let error = ErrorKind::OutOfMemory { memory_type: usm_core::MemoryType::UsmShared, requested: 1 }.into();
    // 2 MiB, 1 MiB, 512 KiB fail; 256 KiB are taken.
    for _ in 0..3 {
        mock.inject(Fault { operation: Operation::Allocate, skip: 0, error, late: false });
    }
    let block = pool.allocate(&request(1000)).expect("less memory");
    assert_eq!((pool.stats().reserved, pool.stats().live), (256 << 10, 1000));
    let lost = Error::from(ErrorKind::Native { operation: "an allocation" });
    mock.inject(Fault { operation: Operation::Allocate, skip: 0, error: lost, late: false });
    let refused = pool.allocate(&request(1 << 20)).expect_err("the driver's");
    assert_eq!(refused.kind, lost.kind);
    assert_eq!((pool.stats().reserved, pool.stats().live), (256 << 10, 1000));
    check(&pool);
    drop(block);
    assert_eq!((pool.trim(0), mock.live_blocks()), (256 << 10, 0));
}

#[test]
fn blocks_outlive_their_pool_on_any_thread() {
    for forgets in [false, true] {
        let mock = Mock::new(Progress::OnWait);
        let context: Context<Mock> = mock.context();
        let queue = context.queue(QueueOrder::InOrder).expect("a queue");
        let pool = Pool::new(&context, AllocKind::Shared);
        let mut blocks: Vec<_> = (0..8).map(|_| pool.allocate(&request(100)).expect("memory")).collect();
        assert_eq!(pool.leaks().iter().map(|block| (block.id, block.age)).next(), Some((1, 7)));
        filled(&queue, &mut blocks[3]).expect("a fill");
        drop((pool, context));
        if forgets {
            core::mem::forget(blocks.pop());
        }
        std::thread::scope(|scope| {
            for block in blocks {
                scope.spawn(move || drop(block));
            }
        });
        queue.wait().expect("no failure");
        drop(queue);
        assert_eq!(mock.live_blocks(), usize::from(forgets));
        assert_eq!(mock.violations(), []);
    }
}

#[test]
fn an_aligned_block_is_found_behind_newer_ones() {
    let context = HostHeap::new().context();
    let mut options = PoolOptions::default();
    options.limit = Some(1 << 20);
    let pool = Pool::with(&context, AllocKind::Shared, options);
    // Free blocks of 4,096 bytes between live ones, of which the oldest alone begins at a multiple.
    let take = |size: usize| pool.allocate(&Request::new(AllocKind::Shared, size)).expect("memory");
    let first = pool.allocate(&Request::new(AllocKind::Shared, 4096).aligned_to(4096)).expect("memory");
    let mut live = vec![take(64)];
    let mut later = Vec::new();
    while let Ok(block) = pool.allocate(&Request::new(AllocKind::Shared, 4096)) {
        later.push(block);
        match pool.allocate(&Request::new(AllocKind::Shared, 64)) {
            Ok(between) => live.push(between),
            Err(_) => break,
        }
    }
    later.retain(|block| block.block().address() % 4096 != 0);
    let address = first.block().address();
    drop(first);
    pool.trim(0);
    drop(later);
    pool.trim(0);
    let again =
        pool.allocate(&Request::new(AllocKind::Shared, 4096).aligned_to(4096)).expect("the old block");
    assert_eq!(again.block().address() % 4096, 0, "at {address:#x} before");
}

#[test]
fn a_callback_that_uses_other_pools_leaves_the_statistics_right() {
    let context = HostHeap::new().context();
    let mut options = PoolOptions::default();
    options.limit = Some(1 << 16);
    let pool = Pool::with(&context, AllocKind::Shared, options);
    // A thread has one cache for several pools: some of these take that of `pool`.
    let others: Vec<_> = (0..64).map(|_| Pool::new(&context, AllocKind::Shared)).collect();
    let request = |size| Request::new(AllocKind::Shared, size);
    let first = std::sync::Mutex::new(Some(pool.allocate(&request(60_000)).expect("memory")));
    let users = others.clone();
    pool.on_exhausted(move |_| {
        let is_more = first.lock().expect("a lock").take().is_some();
        for other in &users {
            drop(other.allocate(&request(64)).expect("memory"));
        }
        is_more
    });
    let second = pool.allocate(&request(60_000)).expect("what the callback freed");
    assert_eq!((pool.stats().live, pool.stats().blocks), (60_000, 1));
    assert!(others.iter().all(|other| other.stats().live == 0 && other.stats().blocks == 0));
    drop(second);
    assert_eq!((pool.stats().live, pool.stats().blocks), (0, 0));
    pool.check();
}
