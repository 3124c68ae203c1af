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
//! - The one lock is held for a search in ordered lists, over no call of a driver and no callback,
//!   and forks find it free.
//! - A block in a thread's cache is out for the space, and has no owner. Only the holder of the
//!   cache's turn touches its list. The pool lives as long as a block is out.

mod bins;
mod choice;
mod give_back;
mod records;
mod space;
mod table;
#[cfg(feature = "std")]
mod threads;

pub mod replay;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{Ordering, fence};

use usm_core::backend::ContextOps;
use usm_core::segment::{self, Holding, Lending, Segment, Watch};
use usm_core::{
    AllocKind, Allocation, Backend, Block, Context, Error, ErrorKind, Fallback, Inherited, MemorySource,
    MemoryType, Pending, PointerInfo, Queue, Request, Result,
};

use crate::sync::Mutex;

use bins::Flow;
pub use choice::Reuse;
use choice::{Demand, Given, Ground, Refusal, Status};
pub use records::{BlockPart, BlockState, PoolBlock, PoolOptions, PoolSegment, PoolStats};
use space::{Gone, Order, Space, Travel};
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

type Callback = Arc<dyn Fn(u64) -> bool + Send + Sync>;

type SpaceOf<B> = Space<Pending<B>, Segment<B>>;

/// The pool itself. Its handles count it; its blocks together hold one count once it is closed.
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
    /// The number of the next allocation.
    ids: Num64,
    table: Table<Pending<B>>,
    space: Arc<Mutex<SpaceOf<B>>>,
    tags: Mutex<Vec<String>>,
    callback: Mutex<Option<Callback>>,
}

impl<B: Backend + 'static> Ground for Shared<B> {
    type Uses = Pending<B>;
    type Memory = Segment<B>;
    type Error = Error;

    /// A fork leaves the space free in the child.
    fn with<R>(&self, call: impl FnOnce(&mut SpaceOf<B>) -> R) -> R {
        let mut space = self.space.lock();
        let result = call(&mut space);
        let keeps = !space.is_closed && space.counters.reserved <= self.keep;
        self.room.set(if keeps { bins::room(space.counters.reserved) } else { 0 });
        result
    }

    fn gather(&self) {
        self.take_in(|space, gone| {
            space.empty_store(gone);
        });
        #[cfg(feature = "std")]
        {
            let mut chains = Vec::new();
            threads::take_all(self.id, |cache| chains.push(cache.bins().empty(&self.table, false)));
            self.take_in(|space, gone| chains.into_iter().for_each(|chain| space.take_chain(chain, gone)));
        }
    }

    fn status(&self, uses: &Pending<B>) -> Status {
        if uses.has_failed() {
            Status::Failed
        } else if uses.is_done() {
            Status::Complete
        } else {
            Status::Pending
        }
    }

    fn copy(&self, uses: &Pending<B>) -> Pending<B> {
        uses.clone()
    }

    fn wait(&self, all: &[(u32, Pending<B>)]) {
        let mut all_of_them = Pending::none();
        all.iter().for_each(|(_, uses)| drop(all_of_them.join(uses.clone())));
        // A failure or a timeout shows when the operations are asked.
        let _ = all_of_them.wait(self.context.raw().shared().wait_limit());
    }

    fn grow(&self, bytes: u64, alignment: u64) -> Result<(u64, Segment<B>)> {
        let too_large = |_| Error::from(ErrorKind::SizeOverflow);
        let (size, alignment) =
            (usize::try_from(bytes).map_err(too_large)?, usize::try_from(alignment).map_err(too_large)?);
        let layout = Layout::from_size_align(size, alignment).map_err(|_| ErrorKind::SizeOverflow)?;
        let memory = Segment::allocate(&self.context, self.kind, layout)?;
        Ok((memory.block().address() as u64, memory))
    }

    fn is_shortage(error: &Error) -> bool {
        matches!(
            error.kind,
            ErrorKind::OutOfMemory { .. }
                | ErrorKind::OverMemory { .. }
                | ErrorKind::OverMaxAlloc { .. }
                | ErrorKind::TooManyBlocks { .. }
                | ErrorKind::SizeOverflow
        )
    }

    fn pause(&self) {
        #[cfg(feature = "std")]
        std::thread::yield_now();
        #[cfg(not(feature = "std"))]
        core::hint::spin_loop();
    }
}

/// Each segment is freed after the operations on its bytes.
impl<B: Backend + 'static> Drop for Shared<B> {
    fn drop(&mut self) {
        self.report();
        let mut gone = Vec::new();
        let all = self.with(|space| space.end(&mut gone));
        for (memory, uses) in all {
            memory.free_after(uses);
        }
    }
}

/// The last of these closes the pool.
struct Handle<B: Backend + 'static>(Arc<Shared<B>>);

impl<B: Backend + 'static> Drop for Handle<B> {
    fn drop(&mut self) {
        let shared = &self.0;
        shared.with(|space| space.is_closed = true);
        fence(Ordering::SeqCst);
        shared.close();
        let count_of_all = Arc::clone(shared);
        let ends_with_last = shared.with(|space| {
            space.ends_with_last = space.counters.blocks_out > 0;
            space.ends_with_last
        });
        if ends_with_last {
            core::mem::forget(count_of_all);
        }
    }
}

impl<B: Backend + 'static> Shared<B> {
    /// Takes blocks and sums of all caches: none of them serves the pool any more.
    fn close(&self) {
        #[cfg(feature = "std")]
        {
            let mut taken = Vec::new();
            threads::take_all(self.id, |cache| {
                let flow = Flow::new();
                flow.add(&cache.flow);
                taken.push((cache.bins().empty(&self.table, false), flow));
                cache.clear();
            });
            self.take_in(|space, gone| {
                for (chain, flow) in taken {
                    space.take_chain(chain, gone);
                    space.flow.add(&flow);
                }
            });
        }
        self.take_in(|space, gone| space.empty_store(gone));
    }

    /// Takes blocks into the space. The caller has a count of its own: the last block of a closed
    /// pool releases that of all blocks.
    fn take_in(&self, call: impl FnOnce(&mut SpaceOf<B>, &mut Gone<Pending<B>>)) {
        let (mut gone, mut idle) = (Vec::new(), Vec::new());
        let is_last = self.with(|space| {
            call(space, &mut gone);
            while space.counters.reserved > self.keep {
                let Some((segment, memory)) = space.remove_idle_segment() else { break };
                space.unreserve(segment.bytes);
                idle.push(memory);
            }
            let is_last = space.ends_with_last && space.counters.blocks_out == 0;
            space.ends_with_last &= !is_last;
            is_last
        });
        drop((gone, idle));
        if is_last {
            // SAFETY: in an `Arc`, whose count the last handle left for the blocks; this was the
            // last one, and the flag above says so once.
            unsafe { Arc::decrement_strong_count(core::ptr::from_ref(self)) };
        }
    }

    /// The sums of all threads.
    fn flow(&self, space: &SpaceOf<B>) -> Flow {
        let flow = Flow::new();
        flow.add(&space.flow);
        #[cfg(feature = "std")]
        threads::for_each(self.id, |cache| flow.add(&cache.flow));
        flow
    }

    /// Bytes of the space, the store and all caches: without operations, and with some.
    fn free_bytes(&self, space: &SpaceOf<B>) -> (u64, u64) {
        let mut free = space.free_bytes();
        let mut add = |more: (u64, u64)| free = (free.0 + more.0, free.1 + more.1);
        add(space.store.free_bytes());
        #[cfg(feature = "std")]
        threads::for_each(self.id, |cache| add(cache.bins().free_bytes()));
        free
    }

    /// Looks at the peak, and tells the ledger what happened since it was last told.
    fn report(&self) {
        let flow = self.with(|space| {
            let flow = self.flow(space);
            space.counters.peak_live = space.counters.peak_live.max(flow.live());
            let now = [&flow.allocated, &flow.freed, &flow.allocations, &flow.frees].map(Num64::get);
            let before = core::mem::replace(&mut space.reported, now);
            segment::Flow {
                allocated: now[0].wrapping_sub(before[0]),
                freed: now[1].wrapping_sub(before[1]),
                allocations: now[2].wrapping_sub(before[2]),
                frees: now[3].wrapping_sub(before[3]),
            }
        });
        segment::report(&self.context, self.kind, &flow);
    }

    #[inline(always)]
    fn block_of(&self, address: u64, bytes: u64, alignment: usize) -> Block {
        // The address is one of a segment, which came from a pointer.
        let pointer = NonNull::new(core::ptr::with_exposed_provenance_mut(address as usize));
        let pointer = pointer.unwrap_or(NonNull::dangling());
        Block { pointer, size: bytes as usize, alignment, kind: self.kind }
    }

    fn describe(&self, block: &table::Block) -> PointerInfo {
        let block = self.block_of(block.address.get(), block.bytes.get(), 1);
        segment::describe(&self.context, &block)
    }
}

impl<B: Backend + 'static> Lending for Shared<B> {
    fn report(&self) {
        Self::report(self);
    }

    fn holding(&self) -> Holding {
        self.with(|space| {
            let (cached, pending) = self.free_bytes(space);
            Holding { reserved: space.counters.reserved, cached, pending }
        })
    }

    fn find(&self, address: usize) -> Option<PointerInfo> {
        self.with(|space| space.find(address as u64).map(|block| self.describe(block)))
    }

    fn list(&self, all: &mut Vec<PointerInfo>) {
        self.with(|space| {
            let live = space.all_out().filter(|block| block.is_live());
            all.extend(live.map(|block| self.describe(block)));
        });
    }

    fn trim(&self) -> u64 {
        self.gather();
        choice::collect(self);
        choice::release(self, 0)
    }
}

/// A pool of one kind of memory of a context: a [`MemorySource`] for every array and allocation. A
/// clone is another handle. Blocks may outlive all handles, and any thread may drop them.
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
            ids: Num64::new(1),
            table,
            space,
            tags: Mutex::new(alloc::vec![String::new()]),
            callback: Mutex::new(None),
        });
        let known: Arc<dyn Lending> = Arc::<Shared<B>>::clone(&shared);
        segment::register(context, Arc::downgrade(&known));
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
        let known = tags.iter().position(|tag| tag == name);
        let tag = known.unwrap_or_else(|| {
            tags.push(name.into());
            tags.len() - 1
        });
        drop(tags);
        Self { tag: tag as u32, ..self.clone() }
    }

    /// Calls `free` with the requested bytes when a request finds no memory, up to three times.
    /// `free` may drop blocks, and says whether to try again. It replaces an earlier one.
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
            peak_live: counters.peak_live,
            peak_reserved: counters.peak_reserved,
            leaked: counters.leaked,
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

    fn exhausted(&self, requested: u64) -> Error {
        let shared = self.shared();
        let (live, reserved, pending, largest) = shared.with(|space| {
            let (_, pending) = shared.free_bytes(space);
            (shared.flow(space).live(), space.counters.reserved, pending, space.largest_free())
        });
        let limit = shared.options.limit.map_or(u64::MAX, |limit| limit as u64);
        ErrorKind::PoolExhausted { requested, limit, live, reserved, pending, largest }.into()
    }

    /// A block, after the callback if none is left.
    fn choose(&self, demand: &Demand, requested: u64) -> core::result::Result<Given<Pending<B>>, Error> {
        let shared = self.shared();
        let mut error = Error::from(ErrorKind::SizeOverflow);
        for _ in 0..=3 {
            error = match choice::allocate(shared, demand) {
                Ok(given) => return Ok(given),
                Err(Refusal::Exhausted) => self.exhausted(requested),
                Err(Refusal::Memory(error)) => error,
            };
            let callback = shared.callback.lock().clone();
            match callback {
                Some(free) if free(requested) => {}
                _ => break,
            }
        }
        Err(error)
    }
}

impl<B: Backend + 'static> Pool<B> {
    /// A block of the calling thread's cache, for a request that is valid and that nobody records.
    #[cfg(feature = "std")]
    #[inline(always)]
    fn take_cached(&self, request: &Request, alignment: usize) -> Option<Own<B>> {
        let shared = self.shared();
        let is_usual = request.kind == shared.kind
            && self.queue_context == shared.context_id
            && alignment.is_power_of_two()
            && (1..=isize::MAX as usize / 2).contains(&request.size)
            && shared.watch.may_begin();
        if !is_usual {
            return None;
        }
        let size = Space::<Pending<B>, Segment<B>>::round(request.size as u64)?;
        let cache = threads::find(shared.id)?;
        if !cache.begin() {
            return None;
        }
        let taken = cache.bins().take(&shared.table, size, alignment as u64, self.queue);
        cache.end();
        let (slot, block) = taken?;
        Some(self.own_cached(slot, block, request.size as u64, cache))
    }

    /// Marks a block that no list has as an owner's.
    #[inline(always)]
    fn own(&self, slot: u32, block: &table::Block, bytes: u64, id: u64) -> Own<B> {
        let uses = match block.is_idle() {
            true => Inherited::none(),
            false => self.shared().table.take_uses(slot).into(),
        };
        block.tag.set(self.tag);
        block.id.set(id);
        block.bytes.set(bytes);
        Own { slot, address: block.address.get(), uses }
    }

    /// The same, counted by a cache of the calling thread.
    #[cfg(feature = "std")]
    #[inline(always)]
    fn own_cached(&self, slot: u32, block: &table::Block, bytes: u64, cache: &threads::Cache) -> Own<B> {
        cache.flow.allocate(bytes);
        self.own(slot, block, bytes, cache.next_id(&self.shared().ids))
    }

    /// The owner of a block.
    #[inline(always)]
    fn allocation(&self, own: Own<B>, bytes: usize, alignment: usize) -> Allocation<B> {
        let shared = self.shared();
        let block = shared.block_of(own.address, bytes as u64, alignment);
        let lender = NonNull::from(shared);
        // SAFETY: the block lies in a segment that lives until it is back, is nobody else's, and
        // comes with all operations on its bytes. The pool and its context live until the last
        // block is back, whatever becomes of this handle.
        unsafe { Allocation::from_lender(&shared.context, block, own.uses, lender, own.slot) }
    }

    /// A block for [`MemorySource::allocate`], when the thread's cache has none. Otherwise what
    /// that returns, in a box because it is rare.
    #[inline(never)]
    fn find_slowly(&self, request: &Request) -> core::result::Result<Own<B>, Box<Result<Allocation<B>>>> {
        let shared = self.shared();
        let found = self.checked_demand(request).and_then(|(layout, demand)| {
            let _entered = segment::admit(&shared.context)?;
            self.find_block(&demand, layout.size() as u64)
        });
        match found {
            Ok(own) if shared.watch.is_recorded() => {
                let alignment = request.layout().map_or(1, |layout| layout.align());
                let allocation = self.allocation(own, request.size, alignment);
                shared.report();
                segment::record_allocation(&shared.context, allocation.block());
                Err(Box::new(Ok(allocation)))
            }
            Ok(own) => Ok(own),
            Err(error) if is_refusal_of_memory(&error) => {
                if request.fallback == Fallback::Host && shared.kind != AllocKind::Host {
                    let mut of_host = *request;
                    of_host.kind = AllocKind::Host;
                    return Err(Box::new(shared.context.allocate(&of_host)));
                }
                segment::record_refusal(&shared.context, shared.kind, request.size);
                Err(Box::new(Err(error)))
            }
            Err(error) => Err(Box::new(Err(error))),
        }
    }

    fn checked_demand(&self, request: &Request) -> Result<(Layout, Demand)> {
        let (layout, shared) = (request.layout()?, self.shared());
        let kind = shared.kind;
        MemoryType::try_from(request.kind)?;
        if request.kind != kind {
            return Err(ErrorKind::WrongKind { expected: kind, found: request.kind }.into());
        }
        let expected = shared.context_id;
        if self.queue_context != expected {
            return Err(ErrorKind::WrongContext { expected, found: self.queue_context }.into());
        }
        let size = Space::<Pending<B>, Segment<B>>::round(layout.size() as u64);
        let demand = Demand {
            size: size.ok_or(ErrorKind::SizeOverflow)?,
            alignment: layout.align() as u64,
            queue: self.queue,
            reuse: shared.options.reuse,
            limit: shared.options.limit.map_or(u64::MAX, |limit| limit as u64),
            segment: shared.options.segment as u64,
        };
        Ok((layout, demand))
    }

    /// A block of the thread's cache, of the store that caches share, or of the space.
    fn find_block(&self, demand: &Demand, bytes: u64) -> Result<Own<B>> {
        let shared = self.shared();
        let table = &shared.table;
        #[cfg(feature = "std")]
        let cache = caches(shared).then(|| threads::open(shared.id, &self.shared)).flatten();
        #[cfg(feature = "std")]
        if let Some(cache) = cache {
            let kept = cache.enter(|bins| {
                let own = bins.take(table, demand.size, demand.alignment, demand.queue);
                let stored = || shared.with(|space| space.take_stored(demand, bins));
                own.map(|(slot, _)| slot).or_else(stored)
            });
            if let Some((slot, block)) = kept.flatten().and_then(|slot| Some((slot, table.get(slot)?))) {
                return Ok(self.own_cached(slot, block, bytes, cache));
            }
            if demand.size > bins::SMALL {
                // Large blocks may merge to one that fits.
                let large = cache.enter(|bins| bins.empty(table, true)).unwrap_or(bins::Chain::new());
                if !large.is_empty() {
                    shared.take_in(|space, gone| space.take_chain(large, gone));
                }
            }
        }
        let given = self.choose(demand, bytes)?;
        #[cfg(usm_valgrind)]
        if given.uses.is_empty() {
            let block = shared.block_of(given.address, bytes, 1);
            usm_core::substitute::without_values(block.pointer.as_ptr(), block.size);
        }
        let block = table.get(given.slot).ok_or(ErrorKind::SizeOverflow)?;
        table.set_uses(given.slot, given.uses);
        let count_in_space = || {
            shared.with(|space| space.flow.allocate(bytes));
            self.own(given.slot, block, bytes, shared.ids.add_shared(1))
        };
        #[cfg(feature = "std")]
        let own = match cache {
            Some(cache) => self.own_cached(given.slot, block, bytes, cache),
            None => count_in_space(),
        };
        #[cfg(not(feature = "std"))]
        let own = count_in_space();
        // Memory that the caches did not have: a peak may be near.
        shared.report();
        Ok(own)
    }
}

/// A block that an owner is about to get.
struct Own<B: Backend> {
    slot: u32,
    address: u64,
    uses: Inherited<B>,
}

/// Whether the error is of the memory, and not of the request.
fn is_refusal_of_memory(error: &Error) -> bool {
    !matches!(
        error.kind,
        ErrorKind::ZeroSize
            | ErrorKind::BadAlignment { .. }
            | ErrorKind::WrongKind { .. }
            | ErrorKind::WrongContext { .. }
            | ErrorKind::UnknownKind
            | ErrorKind::Forked
            | ErrorKind::ProcessEnds
    )
}

/// Whether threads keep blocks of the pool.
#[cfg(feature = "std")]
#[inline(always)]
fn caches<B: Backend + 'static>(shared: &Shared<B>) -> bool {
    !cfg!(usm_valgrind) && shared.room.get() != 0
}

impl<B: Backend + 'static> MemorySource<B> for Pool<B> {
    /// Waits only for work without which the request would be refused.
    ///
    /// # Errors
    /// [`ErrorKind::PoolExhausted`] at the pool's limit; [`ErrorKind::WrongKind`]; as of
    /// [`Context`].
    #[inline(always)]
    fn allocate(&self, request: &Request) -> Result<Allocation<B>> {
        let alignment = match request.alignment {
            0 => Request::DEFAULT_ALIGNMENT,
            alignment => alignment,
        };
        #[cfg(feature = "std")]
        let cached = self.take_cached(request, alignment);
        #[cfg(not(feature = "std"))]
        let cached = None;
        let own = match cached {
            Some(own) => own,
            None => match self.find_slowly(request) {
                Ok(own) => own,
                Err(other) => return *other,
            },
        };
        // Both ways meet here, in registers: an owner that went through memory would be read before
        // its parts are there.
        Ok(self.allocation(own, request.size, alignment))
    }

    fn context(&self) -> &Context<B> {
        &self.shared().context
    }
}
