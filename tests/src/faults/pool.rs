//! A pool on a driver that fails on demand.

use usm_core::{AllocKind, Allocation, Context, ErrorKind, MemorySource, QueueOrder, Request, Result};
use usm_pool::{Pool, PoolOptions};

use super::{FailingDriver, LONG, ORDERS};

/// More than the segments of the program below.
const SEGMENTS: u64 = 10;

/// The calls of each function fail from the first, second, ... one on while a pool grows, serves
/// two queues and trims: the pool says what it holds, and only what the driver did not take back is
/// lost.
pub fn a_pool_with_a_fault_anywhere_says_what_it_holds<D: FailingDriver>(driver: &D) {
    let mut before = driver.objects();
    let functions = D::ROUND_TRIP.iter().chain(D::OF_POOLS);
    for (function, call) in functions.flat_map(|name| (1..5).map(move |call| (name, call))) {
        for order in ORDERS {
            let place = format!("{function} {call} {order:?}");
            let fault = format!("{function}={}@{call}", D::REFUSED);
            let mut made = None;
            let outcome = driver.failing(&fault, || {
                let context = made.insert(driver.context()?);
                program::<D>(context, order, &place)
            });
            if let Err(error) = outcome {
                let is_planned =
                    error.native == Some(D::REFUSED) || matches!(error.kind, ErrorKind::EarlierOwnerFailed);
                assert!(is_planned, "{place}: {error}");
            }
            let mut leaked = 0;
            if let Some(context) = made {
                let _planned = context.synchronize(LONG);
                context.collect();
                leaked = (context.stats().leaked + context.deferred_frees()) as u64;
                assert_eq!((context.stats().reserved, context.stats().sum.live), (0, 0), "{place}");
            }
            let left = driver.objects();
            // From its first failure on the driver takes nothing back: what a program has at most.
            let is_uncounted = !D::COUNTS_KEPT && D::OF_POOLS.contains(function);
            let may_stay = is_uncounted || D::KEPT_WITHOUT.contains(function);
            let lost = left[0] - before[0];
            let most = leaked + if may_stay { SEGMENTS } else { 0 };
            assert!(lost <= most, "{place}: {lost} blocks, {leaked} counted");
            before = left;
            assert_eq!(driver.misuses(), 0, "{place}");
        }
    }
}

fn program<D: FailingDriver>(context: &Context<D::Backend>, order: QueueOrder, place: &str) -> Result<()> {
    let queues = [context.queue(order)?, context.queue(QueueOrder::OutOfOrder)?];
    let mut options = PoolOptions::default();
    (options.segment, options.limit) = (1 << 16, Some(1 << 20));
    let pool = Pool::with(context, AllocKind::Device, options);
    let mut held: Vec<Allocation<D::Backend>> = Vec::new();
    let outcome = (|| {
        for size in [1000, 60_000, 100_000, 50_000] {
            for queue in &queues {
                let mut block = pool.on(queue).allocate(&Request::new(AllocKind::Device, size))?;
                let fill = queue.fill_bytes(&mut block, 0, size & !63, &[7]).map(drop);
                held.push(block);
                fill?;
                if held.len() > 2 {
                    drop(held.remove(0));
                }
            }
        }
        held.clear();
        context.synchronize(LONG)?;
        pool.trim(0);
        held.push(pool.allocate(&Request::new(AllocKind::Device, 70_000))?);
        Ok(())
    })();
    pool.check();
    let live: usize = held.iter().map(Allocation::size).sum();
    let (stats, of_context) = (pool.stats(), context.stats());
    assert_eq!((stats.live, stats.blocks), (live as u64, held.len() as u64), "{place}");
    assert_eq!((of_context.sum.current, of_context.reserved), (live, stats.reserved as usize), "{place}");
    let segments: u64 = pool.snapshot().iter().map(|segment| segment.size).sum();
    assert_eq!(segments, stats.reserved, "{place}");
    outcome
}
