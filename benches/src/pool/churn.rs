//! Random replacement among 10,000 live blocks, with what the pool holds for them.

use usm_core::backend::host::HostHeap;
use usm_core::{AllocKind, Allocation, MemorySource, Request};
use usm_pool::Pool;

use super::Random;
use super::pair::{PEER, peer, units};
use crate::cpu_time::medians;
use crate::row::Row;

const CASE: &str = "churn, 10,000 live, 64 B to 64 KiB";
const LIVE: usize = 10_000;
const SIZES: (u64, u64) = (64, 64 << 10);

pub(super) fn rows() -> Vec<Row> {
    let context = HostHeap::new().context();
    let pool = Pool::new(&context, AllocKind::Shared);
    let mut random = Random(1);
    let make = |random: &mut Random| {
        let size = random.size(SIZES.0, SIZES.1) as usize;
        pool.allocate(&Request::new(AllocKind::Shared, size)).expect("memory")
    };
    let mut owners: Vec<Allocation<HostHeap>> = (0..LIVE).map(|_| make(&mut random)).collect();
    let other = peer(1 << 30);
    let mut of_other = Random(1);
    let take = |random: &mut Random| {
        let size = random.size(SIZES.0, SIZES.1) as usize;
        other.lock().expect("no panic").allocate(units(size)).expect("room")
    };
    let mut blocks: Vec<_> = (0..LIVE).map(|_| take(&mut of_other)).collect();
    // Owners of ours have 72 bytes, which no longer fit into the nearest cache.
    let wide = peer(1 << 30);
    let mut of_wide = Random(1);
    let take_wide = |random: &mut Random| {
        let size = random.size(SIZES.0, SIZES.1) as usize;
        (wide.lock().expect("no panic").allocate(units(size)).expect("room"), [0_u64; 8])
    };
    let mut records: Vec<_> = (0..LIVE).map(|_| take_wide(&mut of_wide)).collect();
    let mut of_loop = Random(1);
    let times = medians(&mut [
        ("pool", &mut || {
            let at = random.below(LIVE as u64) as usize;
            let new = make(&mut random);
            drop(core::mem::replace(&mut owners[at], new));
        }),
        ("offset-allocator", &mut || {
            let at = of_other.below(LIVE as u64) as usize;
            let new = take(&mut of_other);
            let old = core::mem::replace(&mut blocks[at], new);
            other.lock().expect("no panic").free(old);
        }),
        ("records", &mut || {
            let at = of_wide.below(LIVE as u64) as usize;
            let new = take_wide(&mut of_wide);
            let (old, rest) = core::mem::replace(&mut records[at], new);
            crate::cpu_time::keep(rest);
            wide.lock().expect("no panic").free(old);
        }),
        ("loop", &mut || {
            let at = of_loop.below(LIVE as u64) as usize;
            crate::cpu_time::keep((at, of_loop.size(SIZES.0, SIZES.1)));
        }),
    ]);
    let stats = pool.stats();
    let [ours, theirs, with_records] = [0, 1, 2].map(|which| times[which] - times[3]);
    vec![
        Row::new(CASE, PEER, "ns", ours, theirs),
        Row::new(CASE, "the same in records of 72 B", "ns", ours, with_records),
        Row::new(
            "churn: bytes reserved",
            "most bytes live",
            "MB",
            stats.peak_reserved as f64 / 1e6,
            stats.peak_live as f64 / 1e6,
        ),
    ]
}
