//! Random replacement among 10,000 live blocks, with what the pool holds for them.

use usm_core::backend::host::HostHeap;
use usm_core::{AllocKind, Allocation, MemorySource, Request};
use usm_pool::Pool;

use super::Random;
use super::pair::{peer, units};
use crate::cpu_time::medians;
use crate::row::Row;

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
    let mut ours: Vec<Allocation<HostHeap>> = (0..LIVE).map(|_| make(&mut random)).collect();
    let other = peer(1 << 30);
    let mut of_other = Random(1);
    let take = |random: &mut Random| {
        let size = random.size(SIZES.0, SIZES.1) as usize;
        other.lock().expect("no panic").allocate(units(size)).expect("room")
    };
    let mut theirs: Vec<_> = (0..LIVE).map(|_| take(&mut of_other)).collect();
    let mut of_loop = Random(1);
    let times = medians(&mut [
        ("pool", &mut || {
            let at = random.below(LIVE as u64) as usize;
            let new = make(&mut random);
            drop(core::mem::replace(&mut ours[at], new));
        }),
        ("offset-allocator", &mut || {
            let at = of_other.below(LIVE as u64) as usize;
            let new = take(&mut of_other);
            let old = core::mem::replace(&mut theirs[at], new);
            other.lock().expect("no panic").free(old);
        }),
        ("loop", &mut || {
            let at = of_loop.below(LIVE as u64) as usize;
            crate::cpu_time::keep((at, of_loop.size(SIZES.0, SIZES.1)));
        }),
    ]);
    let stats = pool.stats();
    let (ours_alone, theirs_alone) = (times[0] - times[2], times[1] - times[2]);
    vec![
        Row::new(
            "churn, 10,000 live, 64 B to 64 KiB",
            "offset-allocator, Mutex",
            "ns",
            ours_alone,
            theirs_alone,
        ),
        Row::new(
            "churn: bytes reserved",
            "most bytes live",
            "MB",
            stats.peak_reserved as f64 / 1e6,
            stats.peak_live as f64 / 1e6,
        ),
    ]
}
