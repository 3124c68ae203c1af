//! A run-time pool: memory for programs that allocate and free all the time.
//!
//! The pool holds segments of a context's memory and gives out blocks of them. Descriptors lie
//! outside the memory, which the pool neither reads nor writes. A block returns with the operations
//! that still use it, and takes them to its next owner: work of the same in-order queue follows
//! them without an event, work of other queues and host views wait for them. No call waits for the
//! device, except one that would otherwise be refused.
//!
//! # Why this is sound
//!
//! - Blocks tile their segment and each has one owner, which the lender's slot names: a return of a
//!   slot that is not out is refused and counted.
//! - Bytes travel with every unfinished operation on them: through cuts, by a copy; through merges,
//!   by a union, which leaves out only what a later operation of the same in-order queue follows.
//! - Segments outlive all blocks: the last handle closes the pool, and then the last block ends it,
//!   on whatever thread. Each segment is freed after the operations on all of its bytes.
//! - The one lock is held for a search of a bounded number of blocks, over no call of a driver and
//!   no callback, and forks find it free.
//! - A block in a thread's cache is out for the space, and has no owner. Only the holder of the
//!   cache's turn touches its list. The pool lives as long as a block is out.

mod allocate;
mod bins;
mod callback;
mod choice;
mod classes;
mod give_back;
mod ground;
mod records;
mod report;
mod space;
mod table;
#[cfg(feature = "std")]
mod threads;

pub mod replay;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use usm_core::segment::{self, Lending, Segment, Watch};
use usm_core::{AllocKind, Backend, Context, Pending, Queue};

use crate::sync::Mutex;

use callback::Callback;
use choice::Ground;
pub use choice::Reuse;
use ground::Handle;
pub use records::{BlockPart, BlockState, PoolBlock, PoolOptions, PoolSegment, PoolStats};
use space::{Order, Space, Travel};
use table::{Num64, Table};
/// For tests: as on a system without a barrier in all threads.
#[cfg(feature = "std")]
#[doc(hidden)]
pub use threads::set_no_barrier;

impl<B: Backend> Travel for Pending<B> {
    const NONE: Self = Self::none();

    fn order(&self) -> Order {
        match self.only_queue() {
            None => Order::Idle,
            Some(0) => Order::Several,
            Some(queue) => Order::Queue(queue),
        }
    }

    fn join(&mut self, others: Self) -> Self {
        Self::join(self, others)
    }
}

type SpaceOf<B> = Space<Pending<B>, Segment<B>>;

/// What every thread writes from time to time, on a line of its own.
#[derive(Default)]
#[repr(align(128))]
struct SharedCounters {
    /// The number of the next allocation.
    ids: Num64,
    /// With [`PoolOptions::exact_peak`]: live bytes, and the most of them.
    exact: (Num64, Num64),
}

/// The pool itself. Its handles count it; its blocks together hold one count once it is closed.
///
/// Every call of every thread reads the fields, so the counts before them have a line of their own.
#[repr(align(128))]
struct Shared<B: Backend + 'static> {
    /// The pool's number among the caches of threads.
    #[cfg(feature = "std")]
    id: u64,
    /// Of `context`, which is dropped after it.
    watch: Watch,
    context: Context<B>,
    context_id: u64,
    kind: AllocKind,
    options: PoolOptions,
    /// Bytes above which nothing stays that comes back.
    keep: u64,
    /// Bytes that a thread may keep; 0 once blocks that come back pass the caches by.
    room: Num64,
    shared_counters: SharedCounters,
    table: Table<Pending<B>>,
    space: Arc<Mutex<SpaceOf<B>>>,
    tags: Mutex<Vec<String>>,
    callback: Mutex<Option<Callback>>,
}

/// A pool of one kind of memory of a context: a [`MemorySource`](usm_core::MemorySource) for every
/// array and allocation. A clone is another handle. Blocks may outlive all handles, and any thread
/// may drop them.
///
/// ```
/// use usm_core::backend::host::HostHeap;
/// use usm_core::{AllocKind, QueueOrder, Shared, UsmVec};
/// use usm_pool::Pool;
///
/// let context = HostHeap::new().context();
/// let queue = context.queue(QueueOrder::InOrder)?;
/// let pool = Pool::new(&context, AllocKind::Shared);
/// let first = UsmVec::<u32, Shared, _>::zeroed_in(&queue, &pool.on(&queue), 1000)?;
/// let address = first.as_ptr();
/// drop(first);
/// let second = UsmVec::<u32, Shared, _>::zeroed_in(&queue, &pool.tagged("second"), 1000)?;
/// assert_eq!(second.as_ptr(), address);
/// assert_eq!(pool.stats().live, 4000);
/// assert_eq!(pool.leaks()[0].tag, "second");
/// # Ok::<(), usm_core::Error>(())
/// ```
pub struct Pool<B: Backend + 'static> {
    shared: Arc<Shared<B>>,
    handle: Arc<Handle<B>>,
    /// The queue of the next operation on what is allocated, with its context.
    queue: Order,
    queue_context: u64,
    /// Index of the tag; 0 of none.
    tag: u32,
}

impl<B: Backend + 'static> Clone for Pool<B> {
    fn clone(&self) -> Self {
        let Self { queue, queue_context, tag, .. } = *self;
        let (shared, handle) = (Arc::clone(&self.shared), Arc::clone(&self.handle));
        Self { shared, handle, queue, queue_context, tag }
    }
}

impl<B: Backend + 'static> fmt::Debug for Pool<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("kind", &self.shared().kind).field("stats", &self.stats()).finish()
    }
}

/// One line with the numbers, and one for each of the tags that hold most.
impl<B: Backend + 'static> fmt::Display for Pool<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PoolStats { live, reserved, cached, pending, leaked, blocks, .. } = self.stats();
        write!(f, "{} pool: {live} bytes live in {blocks} blocks, ", self.shared().kind)?;
        write!(f, "{reserved} reserved, {cached} cached, {pending} pending, {leaked} leaked")?;
        let mut tags = alloc::collections::BTreeMap::<String, u64>::new();
        for block in self.leaks() {
            *tags.entry(block.tag).or_default() += block.bytes;
        }
        let mut tags: Vec<(u64, String)> = tags.into_iter().map(|(tag, bytes)| (bytes, tag)).collect();
        tags.sort_unstable_by(|a, b| b.cmp(a));
        for (bytes, tag) in tags.iter().filter(|(_, tag)| !tag.is_empty()).take(5) {
            write!(f, "\n  {tag}: {bytes} bytes")?;
        }
        Ok(())
    }
}

impl<B: Backend + 'static> Pool<B> {
    /// A pool of this kind without a limit of its own. Takes no memory before its first block.
    #[must_use]
    pub fn new(context: &Context<B>, kind: AllocKind) -> Self {
        Self::with(context, kind, PoolOptions::default())
    }

    /// A pool with these options.
    #[must_use]
    pub fn with(context: &Context<B>, kind: AllocKind, options: PoolOptions) -> Self {
        let table = Table::new();
        let space = Arc::new(Mutex::new(Space::new(table.clone())));
        #[cfg(feature = "std")]
        usm_core::ends::guard_lock(&space);
        let shared = Arc::new(Shared {
            #[cfg(feature = "std")]
            id: threads::new_pool(),
            // SAFETY: of the context beside it, whose state has one place for all clones.
            watch: unsafe { Watch::new(context) },
            context: context.clone(),
            context_id: context.id(),
            kind,
            options,
            keep: options.keep.map_or(u64::MAX, |keep| keep as u64),
            room: Num64::new(bins::room(0)),
            shared_counters: SharedCounters { ids: Num64::new(1), ..SharedCounters::default() },
            table,
            space,
            tags: Mutex::new(alloc::vec![String::new()]),
            callback: Mutex::new(None),
        });
        let lender: Arc<dyn Lending> = Arc::<Shared<B>>::clone(&shared);
        segment::register(context, Arc::downgrade(&lender));
        let handle = Arc::new(Handle(Arc::clone(&shared)));
        Self { shared, handle, queue: Order::Idle, queue_context: context.id(), tag: 0 }
    }

    fn shared(&self) -> &Shared<B> {
        &self.shared
    }

    /// The same pool for memory that this queue uses first. Blocks that its earlier work still uses
    /// are then ready; without the name of a queue only unused ones are.
    #[must_use]
    pub fn on(&self, queue: &Queue<B>) -> Self {
        let order = match queue.id() {
            0 => Order::Idle,
            id => Order::Queue(id),
        };
        Self { queue: order, queue_context: queue.context().id(), ..self.clone() }
    }

    /// The same pool with a name for what is allocated through it, in reports.
    #[must_use]
    pub fn tagged(&self, name: &str) -> Self {
        let mut tags = self.shared().tags.lock();
        let position = tags.iter().position(|tag| tag == name);
        let tag = position.unwrap_or_else(|| {
            tags.push(name.into());
            tags.len() - 1
        });
        drop(tags);
        Self { tag: tag as u32, ..self.clone() }
    }

    /// Calls `free` with the requested bytes when a request finds no memory, up to three times.
    /// `free` may drop blocks, and says whether to try again. It may allocate; requests inside of
    /// it call no such function. It replaces an earlier one. A function that owns a handle of the
    /// pool keeps the pool alive, until another one replaces it.
    pub fn on_exhausted(&self, free: impl Fn(u64) -> bool + Send + Sync + 'static) {
        let new: Callback = Arc::new(free);
        let old = self.shared().callback.lock().replace(new);
        drop(old);
    }

    /// What the pool holds.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        let shared = self.shared();
        shared.report();
        let (counters, flow, (cached, pending)) =
            shared.with(|space| (space.counters, shared.flow(space), shared.free_bytes(space)));
        PoolStats {
            live: flow.live(),
            reserved: counters.reserved,
            cached,
            pending,
            peak_live: counters.peak_live.max(shared.shared_counters.exact.1.get()),
            peak_reserved: counters.peak_reserved,
            leaked: counters.quarantine,
            blocks: flow.allocations.get().saturating_sub(flow.frees.get()),
            waits: counters.waits,
            misuses: counters.misuses,
        }
    }

    /// Returns idle segments until at most `bytes` are reserved. Returns the bytes that went. Does
    /// not wait for work.
    pub fn trim(&self, bytes: u64) -> u64 {
        self.shared().gather();
        choice::collect(self.shared());
        choice::release(self.shared(), bytes)
    }

    /// The segments and their blocks, by address.
    #[must_use]
    pub fn snapshot(&self) -> Vec<PoolSegment> {
        self.shared().with(|space| replay::segments_of(space))
    }

    /// The blocks that are out, oldest first.
    #[must_use]
    pub fn leaks(&self) -> Vec<PoolBlock> {
        let shared = self.shared();
        let (mut owners, now) = shared.with(|space| {
            let live = space.all_out().filter(|block| block.is_live());
            let owner = |block: &table::Block| (block.id.get(), block.bytes.get(), block.tag.get());
            (live.map(owner).collect::<Vec<_>>(), shared.flow(space).allocations.get())
        });
        owners.sort_unstable();
        let tags = shared.tags.lock();
        let block = |(id, bytes, tag): (u64, u64, u32)| {
            let tag = tags.get(tag as usize).cloned().unwrap_or_default();
            PoolBlock { id, bytes, tag, age: now.saturating_sub(id) }
        };
        owners.into_iter().map(block).collect()
    }

    /// Panics if the descriptors contradict each other: for tests.
    #[doc(hidden)]
    pub fn check(&self) {
        self.shared().with(|space| space.check());
    }
}
