//! A block that is allocated and freed: by one thread, by two at once, by another one.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use offset_allocator::Allocator;
use usm_core::backend::host::{Arena, HostHeap};
use usm_core::backend::{Dyn, mock};
use usm_core::{AllocKind, Backend, Context, MemorySource, QueueOrder, Request};
use usm_pool::Pool;

use crate::cpu_time::{keep, medians};
use crate::pairs::Clock;
use crate::row::{Row, median};

/// Bytes of one unit of offset-allocator, which counts in 32 bits.
const UNIT: u64 = 64;

pub(super) fn peer(bytes: u64) -> Mutex<Allocator> {
    Mutex::new(Allocator::with_max_allocs((bytes / UNIT) as u32, 1 << 17))
}

pub(super) fn units(bytes: usize) -> u32 {
    (bytes as u64).div_ceil(UNIT) as u32
}

const PEER: &str = "offset-allocator, Mutex";

fn request(size: usize) -> Request {
    Request::new(AllocKind::Shared, size)
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for size in [64, 4 << 10, 64 << 10, 1 << 20, 64 << 20, 1 << 30] {
        rows.extend(lifo("host", &HostHeap::new().context(), size));
        rows.extend(lifo("Dyn over the host", &erased(), size));
    }
    rows.extend(two_threads());
    rows.extend(other_thread());
    rows.push(in_flight());
    rows.push(fixed());
    rows
}

fn lifo<B: Backend + 'static>(name: &str, context: &Context<B>, size: usize) -> Vec<Row> {
    let pool = Pool::new(context, AllocKind::Shared);
    let other = peer(4 << 30);
    let request = request(size);
    let ours = &mut || keep(pool.allocate(&request).expect("memory"));
    let theirs = &mut || {
        let block = other.lock().expect("no panic").allocate(units(size)).expect("room");
        keep(&block);
        other.lock().expect("no panic").free(block);
    };
    let plain = &mut || keep(context.allocate(&request).expect("memory"));
    let times = medians(&mut [("pool", ours), (PEER, theirs), ("context", plain)]);
    let case = format!("pair of {size} B, {name}");
    vec![
        Row::new(&case, PEER, "ns", times[0], times[1]),
        Row::new(&case, "Context::allocate", "ns", times[0], times[2]),
    ]
}

/// Medians of nanoseconds of a pair: of one thread, and of two whose batches begin together.
fn one_and_two(pair: impl Fn() + Sync) -> (f64, f64) {
    const ROUNDS: usize = 101;
    const PAIRS: u32 = 4000;
    let batch = || {
        let start = Clock::Thread.now();
        (0..PAIRS).for_each(|_| pair());
        (Clock::Thread.now() - start) as f64 / f64::from(PAIRS)
    };
    let (mut one, mut two) = (Vec::new(), Vec::new());
    let begin = Barrier::new(2);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            for _ in 0..ROUNDS {
                begin.wait();
                batch();
                begin.wait();
            }
        });
        for _ in 0..ROUNDS {
            one.push(batch());
            begin.wait();
            two.push(batch());
            begin.wait();
        }
        other.join().expect("no panic");
    });
    (median(&mut one), median(&mut two))
}

fn two_threads() -> Vec<Row> {
    let context = HostHeap::new().context();
    let pool = Pool::new(&context, AllocKind::Shared);
    let request = request(4096);
    let (one, two) = one_and_two(|| keep(pool.allocate(&request).expect("memory")));
    let (plain_one, plain_two) = one_and_two(|| keep(context.allocate(&request).expect("memory")));
    let other = peer(4 << 30);
    let (peer_one, peer_two) = one_and_two(|| {
        let block = other.lock().expect("no panic").allocate(units(4096)).expect("room");
        keep(&block);
        other.lock().expect("no panic").free(block);
    });
    vec![
        Row::new("two threads at once, 4096 B: pool", "one thread", "ns", two, one),
        Row::new("two threads at once, 4096 B: context", "one thread", "ns", plain_two, plain_one),
        Row::new("two threads at once, 4096 B: offset-alloc.", "one thread", "ns", peer_two, peer_one),
    ]
}

/// Blocks that one thread allocates and another frees: CPU time of both for a block.
fn other_thread() -> Vec<Row> {
    const BLOCKS: u32 = 100_000;
    let context = HostHeap::new().context();
    let pool = Pool::new(&context, AllocKind::Shared);
    let request = request(4096);
    let mut times = Vec::new();
    let spent = AtomicU32::new(0);
    for _ in 0..21 {
        // Batches, because the channel itself costs more than a block.
        let (sender, receiver) = sync_channel::<Vec<_>>(16);
        let time = thread::scope(|scope| {
            let freeing = scope.spawn(|| {
                let mut time = 0;
                for batch in receiver {
                    let start = Clock::Thread.now();
                    for block in batch {
                        drop::<usm_core::Allocation<HostHeap>>(block);
                    }
                    time += Clock::Thread.now() - start;
                }
                time
            });
            let mut time = 0;
            for _ in 0..BLOCKS / 100 {
                let mut batch = Vec::with_capacity(100);
                let start = Clock::Thread.now();
                for _ in 0..100 {
                    batch.push(pool.allocate(&request).expect("memory"));
                }
                time += Clock::Thread.now() - start;
                sender.send(batch).expect("a receiver");
            }
            drop(sender);
            time + freeing.join().expect("no panic")
        });
        times.push(time as f64 / f64::from(BLOCKS));
        spent.fetch_add(1, Ordering::Relaxed);
    }
    let other = peer(4 << 30);
    let theirs = medians(&mut [(PEER, &mut || {
        let block = other.lock().expect("no panic").allocate(units(4096)).expect("room");
        keep(&block);
        other.lock().expect("no panic").free(block);
    })]);
    vec![Row::new(
        "freed on another thread, 4096 B",
        "its pair on one thread",
        "ns",
        median(&mut times),
        theirs[0],
    )]
}

/// A pair of a size that no block in flight has, beside 10,000 blocks in flight and beside none.
fn in_flight() -> Row {
    let with = |count: usize| {
        let mock = mock::Mock::new(mock::Progress::Manual);
        let context = mock.context();
        let queue = context.queue(QueueOrder::InOrder).expect("a queue");
        let pool = Arc::new(Pool::new(&context, AllocKind::Shared));
        let blocks: Vec<_> = (0..count).map(|_| pool.allocate(&request(1000)).expect("memory")).collect();
        for mut block in blocks {
            let _ = queue.fill_bytes(&mut block, 0, 1000, &[1]).expect("a fill");
        }
        (mock, pool, queue)
    };
    let (none, many) = (with(0), with(10_000));
    let request = request(300);
    let times = medians(&mut [
        ("many", &mut || keep(many.1.allocate(&request).expect("memory"))),
        ("none", &mut || keep(none.1.allocate(&request).expect("memory"))),
    ]);
    none.0.finish();
    many.0.finish();
    Row::new("pair beside 10,000 blocks in flight", "none in flight", "ns", times[0], times[1])
}

/// A pair of the fixed arena beside 4,000 live blocks, and beside none.
fn fixed() -> Row {
    const LIVE: usize = 4000;
    let mut memory = [(); 2].map(|()| vec![MaybeUninit::uninit(); 1 << 20]);
    let [one, other] = &mut memory;
    let arenas = [Box::new(Arena::<{ LIVE + 1 }>::new(one)), Box::new(Arena::new(other))];
    let [many, none] = [arenas[0].context(), arenas[1].context()];
    let _live: Vec<_> = (0..LIVE).map(|_| many.allocate(&request(200)).expect("memory")).collect();
    let request = request(100);
    let times = medians(&mut [
        ("many", &mut || keep(many.allocate(&request).expect("memory"))),
        ("none", &mut || keep(none.allocate(&request).expect("memory"))),
    ]);
    Row::new("fixed arena: pair beside 4,000 live", "none live", "ns", times[0], times[1])
}

/// The host behind the erased backend, which Python uses.
fn erased() -> Context<Dyn> {
    Context::from_raw(Dyn::erase_context::<HostHeap>(HostHeap::new().context().raw().clone()))
}
