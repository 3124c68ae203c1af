//! Statistics, history, owners and threads.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use usm_core::history::Operation;
use usm_core::{
    AllocKind, Allocation, Backend, BackendKind, Block, Context, Counters, Device, Host, Lender,
    MemorySource, MemoryType, Pending, Queue, QueueOrder, Request, Shared, UsmVec,
};

use super::contexts::between_views;
use crate::{Fixture, counting};

fn allocate<B: Backend>(context: &Context<B>, kind: AllocKind, size: usize) -> Allocation<B> {
    context.allocate(&Request::new(kind, size)).expect("memory")
}

fn queue<B: Backend>(fixture: &Fixture<'_, B>) -> Queue<B> {
    fixture.context.queue(QueueOrder::InOrder).expect("a queue")
}

/// Current, peak, total, live and count of each kind.
pub fn statistics_follow_every_kind<B: Backend>(fixture: &Fixture<'_, B>) {
    for kind in AllocKind::ALL {
        let memory_type = MemoryType::try_from(kind).expect("a kind to allocate");
        let first = allocate(fixture.context, kind, 100);
        let second = allocate(fixture.context, kind, 50);
        drop(first);
        let row = *fixture.context.stats().of(memory_type);
        assert_eq!((row.current, row.peak, row.total, row.live, row.count), (50, 150, 150, 1, 2), "{kind}");
        drop(second);
        assert_eq!(fixture.context.stats().of(memory_type).current, 0);
    }
    assert_eq!(fixture.context.stats().sum.count, 6);
}

/// Lists the live blocks by address. The history holds refused requests, with times.
pub fn blocks_and_refusals_are_listed<B: Backend>(fixture: &Fixture<'_, B>) {
    let context = fixture.context;
    context.keep_history(1000);
    let mut held: Vec<_> = (1..=12).map(|size| allocate(context, AllocKind::Host, size)).collect();
    drop(held.split_off(9));
    let mut expected: Vec<_> = held.iter().map(|it| (it.block().address(), it.size())).collect();
    expected.sort_unstable();
    let listed: Vec<_> = context.blocks().iter().map(|info| (info.base, info.size)).collect();
    assert_eq!(listed, expected);
    let much = isize::MAX as usize / 2;
    assert!(context.allocate(&Request::new(AllocKind::Device, much)).is_err());
    let records = context.history();
    let last = records.last().expect("a record");
    assert_eq!((last.operation, last.memory_type), (Operation::Refuse, MemoryType::UsmDevice));
    assert_eq!((last.address, last.bytes), (0, much));
    assert!(records.iter().all(|record| record.time > 1_600_000_000_000_000));
    context.keep_history(0);
    drop(held);
    assert!(context.blocks().is_empty());
}

/// Not the sum of the kinds' peaks: the kinds were never live together.
pub fn the_peak_is_that_of_the_sum<B: Backend>(fixture: &Fixture<'_, B>) {
    for kind in AllocKind::ALL {
        drop(allocate(fixture.context, kind, 1000));
    }
    assert_eq!(fixture.context.stats().sum.peak, 1000);
    let both =
        (allocate(fixture.context, AllocKind::Host, 700), allocate(fixture.context, AllocKind::Device, 600));
    drop(both);
    assert_eq!(fixture.context.stats().sum.peak, 1300);
}

/// Off by default. When on, it keeps the newest records.
pub fn history_keeps_the_last_records<B: Backend>(fixture: &Fixture<'_, B>) {
    drop(allocate(fixture.context, AllocKind::Host, 8));
    assert_eq!(fixture.context.history(), []);
    fixture.context.keep_history(3);
    drop(allocate(fixture.context, AllocKind::Host, 16));
    let device = allocate(fixture.context, AllocKind::Device, 24);
    drop(allocate(fixture.context, AllocKind::Shared, 32));
    let records: Vec<_> = fixture
        .context
        .history()
        .iter()
        .map(|record| (record.operation, record.memory_type, record.bytes))
        .collect();
    assert_eq!(
        records,
        [
            (Operation::Allocate, MemoryType::UsmDevice, 24),
            (Operation::Allocate, MemoryType::UsmShared, 32),
            (Operation::Free, MemoryType::UsmShared, 32),
        ]
    );
    let lines: Vec<_> = fixture.context.history().iter().map(ToString::to_string).collect();
    assert_eq!(lines[0], "GPU_Debug: Allocate 24 bytes of usm_device allocation type (current=24; max=24)");
    assert_eq!(lines[2], "GPU_Debug: Free 32 bytes of usm_shared allocation type (current=0; max=32)");
    drop(device);
}

/// The text that [`the_same_program_has_the_same_books`] produces on every backend: history, then
/// statistics.
const BOOKS: &str = "\
GPU_Debug: Allocate 100 bytes of usm_host allocation type (current=100; max=100)
GPU_Debug: Allocate 400 bytes of usm_device allocation type (current=400; max=400)
GPU_Debug: Allocate 80 bytes of usm_shared allocation type (current=80; max=80)
GPU_Debug: Allocate 1000 bytes of usm_device allocation type (current=1400; max=1400)
GPU_Debug: Free 100 bytes of usm_host allocation type (current=0; max=100)
GPU_Debug: Allocate 80 bytes of usm_shared allocation type (current=160; max=160)
GPU_Debug: Free 80 bytes of usm_shared allocation type (current=80; max=160)
GPU_Debug: Free 1000 bytes of usm_device allocation type (current=400; max=1400)
GPU_Debug: Allocate 1 bytes of usm_shared allocation type (current=81; max=160)
cl_mem: current=0 peak=0 total=0 live=0 count=0
usm_host: current=0 peak=100 total=100 live=0 count=1
usm_shared: current=81 peak=160 total=161 live=2 count=3
usm_device: current=400 peak=1400 total=1400 live=1 count=2
sum: current=481 peak=1580 total=1661 live=3 count=6 leaked=0
";

/// One program gives one text on every backend. It includes refusals, and drops in
/// flight that a wait orders.
pub fn the_same_program_has_the_same_books<B: Backend>(fixture: &Fixture<'_, B>) {
    let (context, queue) = (fixture.context, queue(fixture));
    context.keep_history(100);
    let host = UsmVec::<u32, Host, B>::zeroed(&queue, 25).expect("an array");
    let device = UsmVec::<u32, Device, B>::from_slice(&queue, &[7; 100]).expect("an array");
    queue.wait().expect("idle");
    for refused in [
        Request::new(AllocKind::Shared, 0),
        Request::new(AllocKind::Shared, 8).aligned_to(3),
        Request::new(AllocKind::Unknown, 8),
        Request::new(AllocKind::Device, usize::MAX),
    ] {
        assert!(context.allocate(&refused).is_err());
    }
    let source = UsmVec::<u64, Shared, B>::zeroed(&queue, 10).expect("an array");
    let aligned = context.allocate(&Request::new(AllocKind::Device, 1000).aligned_to(4096)).expect("memory");
    drop(host);
    assert_eq!(device.to_vec(&queue).expect("the content"), [7; 100]);
    queue.wait().expect("idle");
    let mut target = UsmVec::<u64, Shared, B>::zeroed(&queue, 10).expect("an array");
    let _ = queue.copy(&mut target, &source).expect("a copy");
    drop(target);
    queue.wait().expect("idle");
    drop(aligned);
    // An array without elements has a byte of memory, so that its address is unique.
    let none = UsmVec::<u8, Shared, B>::zeroed(&queue, 0).expect("an array");
    let types = [MemoryType::Buffer, MemoryType::UsmHost, MemoryType::UsmShared, MemoryType::UsmDevice];
    assert_eq!(books(context, &types), BOOKS);
    drop((device, source, none));
}

/// The history of a context, then its statistics for these types and in total.
pub(super) fn books<B: Backend>(context: &Context<B>, types: &[MemoryType]) -> String {
    fn row(name: &str, counters: &Counters) -> String {
        let Counters { current, peak, total, live, count, .. } = counters;
        format!("{name}: current={current} peak={peak} total={total} live={live} count={count}")
    }
    let stats = context.stats();
    let history = context.history().into_iter().map(|record| record.to_string());
    let types = types.iter().map(|memory_type| row(&memory_type.to_string(), stats.of(*memory_type)));
    let sum = row("sum", &stats.sum) + &format!(" leaked={}", stats.leaked);
    history.chain(types).chain([sum]).map(|line| line + "\n").collect()
}

/// The reserved bytes are released.
pub fn a_failed_allocation_leaves_no_trace<B: Backend>(fixture: &Fixture<'_, B>) {
    let limit = fixture.context.info().max_alloc_size;
    let size = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1).min(isize::MAX as usize - 63);
    for kind in AllocKind::ALL {
        assert!(fixture.context.allocate(&Request::new(kind, size)).is_err());
    }
    assert_eq!(fixture.context.stats(), usm_core::Stats::default());
}

struct Owner {
    dropped: Arc<AtomicUsize>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// Imported memory is not freed by the context. Its owner is dropped after the work that uses the
/// memory.
pub fn foreign_memory_releases_its_owner_after_use<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let dropped = Arc::new(AtomicUsize::new(0));
    let memory = UsmVec::<u64, Shared, B>::from_slice(&queue, &[5; 64]).expect("an array").into_allocation();
    let block = *memory.block();
    let owner = Box::new(Owner { dropped: Arc::clone(&dropped) });
    // SAFETY: `memory` outlives the import, and nothing else touches it meanwhile.
    let import = unsafe { Allocation::foreign(fixture.context.clone(), block, owner) };
    // SAFETY: the memory holds 64 numbers.
    let import = unsafe { UsmVec::<u64, Shared, B>::from_allocation(import, 64) };
    let import = import.map_err(|(_, error)| error).expect("fits");
    let mut target = UsmVec::<u64, Shared, B>::zeroed(&queue, 64).expect("an array");
    let _ = queue.copy(&mut target, &import).expect("a copy");
    drop(import);
    assert_eq!(target.read().expect("a view")[..], [5; 64]);
    fixture.context.collect();
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    assert_eq!(fixture.context.query(memory.as_ptr()).expect("an answer").kind, AllocKind::Shared);
}

struct Parent<B: Backend> {
    memory: Allocation<B>,
    returned: AtomicUsize,
}

// SAFETY: the whole waits for what still uses its part.
unsafe impl<B: Backend> Lender<B> for Parent<B> {
    unsafe fn take_back(lender: NonNull<Self>, slot: u32, block: &Block, uses: Pending<B>) {
        // SAFETY: the part holds a count.
        let parent = unsafe { Arc::from_raw(lender.as_ptr()) };
        assert_eq!(slot, 7);
        parent.returned.fetch_add(block.size, Ordering::SeqCst);
        parent.memory.absorb(uses).expect("operations of one context");
    }

    fn is_of_queue(&self, _: u32) -> bool {
        self.memory.is_of_queue()
    }
}

/// A part of a larger block hands its unfinished work to the block, which then waits for it.
pub fn a_part_goes_back_to_its_source_with_its_uses<B: Backend + 'static>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let memory = UsmVec::<u64, Shared, B>::zeroed(&queue, 64).expect("an array").into_allocation();
    let parent = Arc::new(Parent { memory, returned: AtomicUsize::new(0) });
    let block = Block { size: 256, ..*parent.memory.block() };
    let lender = NonNull::new(Arc::into_raw(Arc::clone(&parent)).cast_mut()).expect("a pointer");
    let (context, uses) = (parent.memory.context(), parent.memory.pending());
    // SAFETY: the only part of a block that nothing else uses; the count of `Parent` keeps both
    // alive.
    let part = unsafe { Allocation::from_lender(context, block, uses, lender, 7) };
    // SAFETY: the memory is zeroed.
    let part = unsafe { UsmVec::<u64, Shared, B>::from_allocation(part, 32) };
    let mut part = part.map_err(|(_, error)| error).expect("fits");
    let _ = queue.fill(&mut part, 9).expect("a fill");
    drop(part);
    assert_eq!(parent.returned.load(Ordering::SeqCst), 256);
    let parent = Arc::into_inner(parent).expect("the part is gone");
    // SAFETY: the memory is zeroed or filled.
    let whole = unsafe { UsmVec::<u64, Shared, B>::from_allocation(parent.memory, 64) };
    let whole = whole.map_err(|(_, error)| error).expect("fits");
    let content = whole.read().expect("a view");
    assert_eq!((content[..32].to_vec(), content[32..].to_vec()), (vec![9; 32], vec![0; 32]));
}

/// Four threads allocate and free; the statistics balance.
pub fn threads_allocate_and_free<B: Backend>(fixture: &Fixture<'_, B>) {
    std::thread::scope(|scope| {
        for kind in AllocKind::ALL.into_iter().chain([AllocKind::Host]) {
            scope.spawn(move || {
                for size in 1..200 {
                    let allocation = allocate(fixture.context, kind, size);
                    assert_eq!(fixture.context.query(allocation.as_ptr()).expect("an answer").size, size);
                }
            });
        }
    });
    let sum = fixture.context.stats().sum;
    assert_eq!((sum.current, sum.live, sum.count), (0, 0, 4 * 199));
}

/// Two threads copy from one array and view it at the same time.
pub fn threads_read_one_array<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let source = UsmVec::<u32, Shared, B>::from_slice(&queue, &[3; 512]).expect("an array");
    std::thread::scope(|scope| {
        let reader = || {
            scope.spawn(|| {
                let queue = fixture.context.queue(QueueOrder::InOrder).expect("a queue");
                let mut target = UsmVec::<u32, Shared, B>::zeroed(&queue, 512).expect("an array");
                for _ in 0..20 {
                    between_views(|| queue.copy(&mut target, &source));
                }
                assert_eq!(target.read().expect("a view")[..], [3; 512]);
                assert_eq!(source.read().expect("a view")[..], [3; 512]);
            })
        };
        // Joins by name: a race detector sees that, but not how a scope waits.
        let readers = [reader(), reader()];
        for reader in readers {
            reader.join().expect("no panic");
        }
    });
}

/// Twenty thousand allocations and frees of each kind. Afterwards no block is live in the
/// statistics, the runtime knows none of the addresses, and the Rust heap holds less than a pointer
/// for each.
pub fn twenty_thousand_pairs_leak_nothing<B: Backend>(fixture: &Fixture<'_, B>) {
    const PAIRS: usize = 20_000;
    for kind in AllocKind::ALL {
        let mut addresses = Vec::with_capacity(PAIRS);
        let held = counting::held();
        for _ in 0..PAIRS {
            addresses.push(allocate(fixture.context, kind, 256).as_ptr() as usize);
        }
        let more = counting::held() - held;
        // The mock keeps a log of its calls.
        let logs = fixture.context.info().backend == BackendKind::Mock;
        assert!(logs || more < (PAIRS * size_of::<usize>()) as isize, "{kind}: {more} bytes of the heap");
        addresses.sort_unstable();
        addresses.dedup();
        for address in addresses {
            let found = fixture.context.query_runtime(address).expect("an answer");
            assert_eq!(found.kind, AllocKind::Unknown, "{kind}: {address:#x} is known although it was freed");
        }
    }
    let stats = fixture.context.stats();
    assert_eq!((stats.sum.live, stats.sum.current, stats.sum.peak, stats.leaked), (0, 0, 256, 0));
}
