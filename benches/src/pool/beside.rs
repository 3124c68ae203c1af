//! What other blocks, records and reports cost: beside many blocks a pair takes the same time.

use core::mem::MaybeUninit;
use std::time::Instant;

use usm_core::backend::host::{Arena, HostHeap};
use usm_core::backend::mock;
use usm_core::{AllocKind, MemorySource, QueueOrder};
use usm_pool::{Buffer, Options, Pool, PoolOptions, Problem, Strategy, plan};

use super::pair::request;
use crate::cpu_time::{keep, medians};
use crate::row::{Row, median};

pub(super) fn rows() -> Vec<Row> {
    let mut rows = vec![in_flight(), plan_arena(), fixed()];
    rows.extend(records());
    rows.extend(reports());
    rows
}

/// A pair of a size that no block in flight has, beside 10,000 blocks in flight and beside none.
fn in_flight() -> Row {
    let with = |count: usize| {
        let mock = mock::Mock::new(mock::Progress::Manual);
        let context = mock.context();
        let queue = context.queue(QueueOrder::InOrder).expect("a queue");
        let pool = Pool::new(&context, AllocKind::Shared);
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

/// A claim and its allocation beside 4,000 that are held, and beside none.
fn plan_arena() -> Row {
    const HELD: u64 = 4000;
    let buffer = |id| Buffer { id, lower: 0, upper: 1, size: 256, alignment: 64 };
    let buffers: Vec<Buffer> = (0..=HELD).map(buffer).collect();
    let problem = Problem::from_buffers(buffers).expect("buffers");
    let mut options = Options::default();
    options.strategy = Strategy::GreedyBySize;
    let plan = plan(&problem, &options).expect("a plan");
    let context = HostHeap::new().context();
    let arena = || usm_pool::arena::Arena::new(&plan, &context, AllocKind::Shared).expect("memory");
    let (many, none) = (arena(), arena());
    let take = |arena: &usm_pool::arena::Arena<HostHeap>, id: u64| {
        arena.tensor(id).expect("free").allocation().expect("the claim's")
    };
    let _held: Vec<_> = (0..HELD).map(|id| take(&many, id)).collect();
    let times =
        medians(&mut [("many", &mut || keep(take(&many, HELD))), ("none", &mut || keep(take(&none, HELD)))]);
    Row::new("plan arena: pair beside 4,000 held", "none held", "ns", times[0], times[1])
}

/// A pair with a history of the context, and with an exact peak of the pool, beside one without.
fn records() -> Vec<Row> {
    let contexts = [(); 3].map(|()| HostHeap::new().context());
    contexts[1].keep_history(1024);
    let mut options = PoolOptions::default();
    let plain = Pool::with(&contexts[0], AllocKind::Shared, options);
    let with_history = Pool::with(&contexts[1], AllocKind::Shared, options);
    options.exact_peak = true;
    let exact = Pool::with(&contexts[2], AllocKind::Shared, options);
    let request = request(4096);
    let times = medians(&mut [
        ("plain", &mut || keep(plain.allocate(&request).expect("memory"))),
        ("history", &mut || keep(with_history.allocate(&request).expect("memory"))),
        ("exact peak", &mut || keep(exact.allocate(&request).expect("memory"))),
    ]);
    vec![
        Row::new("pair of 4096 B with history", "without", "ns", times[1], times[0]),
        Row::new("pair of 4096 B with exact peak", "without", "ns", times[2], times[0]),
    ]
}

/// Bytes of the host's heap that the process uses.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn heap_bytes() -> f64 {
    // SAFETY: the call only reads.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as f64
}

/// Other systems do not tell.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn heap_bytes() -> f64 {
    f64::NAN
}

/// What a pool of 10,000 live blocks needs for itself, and the time of its snapshot.
fn reports() -> Vec<Row> {
    const BLOCKS: usize = 10_000;
    let context = HostHeap::new().context();
    let mut live = Vec::with_capacity(BLOCKS);
    let before = heap_bytes();
    let pool = Pool::new(&context, AllocKind::Shared);
    live.extend((0..BLOCKS).map(|_| pool.allocate(&request(8192)).expect("memory")));
    let reserved = pool.stats().reserved as f64;
    let metadata = (heap_bytes() - before - reserved) / BLOCKS as f64;
    let most = 64.0 + reserved / 4096.0 / BLOCKS as f64;
    let mut times: Vec<f64> = (0..21)
        .map(|_| {
            let start = Instant::now();
            keep(pool.snapshot());
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    vec![
        Row::new("metadata of a block, of 10,000", "goal", "B", metadata, most),
        Row::new("snapshot of 10,000 blocks", "goal", "ms", median(&mut times), 1.0),
    ]
}
