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

mod choice;
mod space;

pub mod replay;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use usm_core::backend::ContextOps;
use usm_core::segment::{self, Entry, Segment};
use usm_core::{
    AllocKind, Allocation, Backend, Block, Context, Error, ErrorKind, Fallback, Lender, MemorySource,
    MemoryType, Pending, Queue, Request, Result,
};

use crate::sync::{Mutex, in_arena};

pub use choice::Reuse;
use choice::{Demand, Given, Ground, Refusal, Status};
use space::{Order, Owner, Space, State, Travel};

/// How a pool grows and what it keeps. Sizes in bytes.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PoolOptions {
    /// Most bytes that the pool holds; `None`: what the context gives.
    pub limit: Option<usize>,
    /// Size of a new segment; 0: an eighth of what the pool holds, from 2 to 32 MiB. A larger
    /// request gets a segment of its own size, and a pool that cannot grow by a segment tries less.
    pub segment: usize,
    /// Most bytes that stay when blocks return, if a segment is idle; `None`: no limit. The pool
    /// returns idle segments before it grows in any case.
    pub keep: Option<usize>,
    /// Whether blocks may be given out while work of other queues uses them.
    pub reuse: Reuse,
}

/// What a pool holds now, and held at most. In bytes, blocks and waits as counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Live blocks, as their owners asked for them.
    pub live: u64,
    /// Segments.
    pub reserved: u64,
    /// Free blocks that nothing uses.
    pub cached: u64,
    /// Free blocks that unfinished operations were last known to use.
    pub pending: u64,
    /// The most of `live`.
    pub peak_live: u64,
    /// The most of `reserved`.
    pub peak_reserved: u64,
    /// Blocks that failed work may still touch: never given out again.
    pub leaked: u64,
    /// Live blocks.
    pub blocks: u64,
    /// Allocations that got a block which unfinished work of another queue used.
    pub waits: u64,
    /// Returns of blocks that were not out, which lenders refuse.
    pub misuses: u64,
}

/// A live block, for reports of what never came back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolBlock {
    /// Number of the allocation, from 1.
    pub id: u64,
    /// Bytes as requested.
    pub bytes: u64,
    /// The tag, or an empty text.
    pub tag: String,
    /// Allocations of the pool since.
    pub age: u64,
}

/// One block of a segment, for pictures and viewers. In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockPart {
    /// First byte.
    pub address: u64,
    /// Bytes, up to the next block.
    pub size: u64,
    /// Bytes as requested; 0 of a block without owner.
    pub requested: u64,
    /// What it is.
    pub state: BlockState,
}

/// What a block of a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockState {
    /// An owner has it.
    Live,
    /// Free, and nothing uses it.
    Cached,
    /// Free, and unfinished operations were last known to use it.
    Pending,
    /// Failed work may still touch it.
    Leaked,
}

/// One segment of a pool and its blocks, which tile it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolSegment {
    /// First byte.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The blocks, by address.
    pub blocks: Vec<BlockPart>,
}

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

/// The pool itself. Its handles count it; its blocks together hold one count once it is closed.
struct Shared<B: Backend> {
    context: Context<B>,
    kind: AllocKind,
    options: PoolOptions,
    space: Mutex<Space<Pending<B>, Segment<B>>>,
    tags: Mutex<Vec<String>>,
    callback: Mutex<Option<Callback>>,
}

impl<B: Backend> Ground for Shared<B> {
    type Uses = Pending<B>;
    type Memory = Segment<B>;
    type Error = Error;

    /// A fork leaves the space free in the child.
    fn with<R>(&self, call: impl FnOnce(&mut Space<Pending<B>, Segment<B>>) -> R) -> R {
        in_arena(|| call(&mut self.space.lock()))
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
impl<B: Backend> Drop for Shared<B> {
    fn drop(&mut self) {
        let mut gone = Vec::new();
        let all = self.space.get_mut().end(&mut gone);
        for (memory, uses) in all {
            memory.free_after(uses);
        }
    }
}

/// The last of these closes the pool.
struct Handle<B: Backend>(Arc<Shared<B>>);

impl<B: Backend> Drop for Handle<B> {
    fn drop(&mut self) {
        let blocks = self.0.with(|space| {
            space.closed = true;
            space.counters.blocks
        });
        if blocks > 0 {
            // The count of all blocks together, which the last one releases.
            core::mem::forget(Arc::clone(&self.0));
        }
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
pub struct Pool<B: Backend> {
    handle: Arc<Handle<B>>,
    /// The queue of the next operation on what is allocated, with its context.
    queue: Order,
    queue_context: u64,
    /// Index of the tag; 0 of none.
    tag: u32,
}

impl<B: Backend> Clone for Pool<B> {
    fn clone(&self) -> Self {
        let Self { queue, queue_context, tag, .. } = *self;
        Self { handle: Arc::clone(&self.handle), queue, queue_context, tag }
    }
}

impl<B: Backend> fmt::Debug for Pool<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("kind", &self.shared().kind).field("stats", &self.stats()).finish()
    }
}

/// One line with the numbers, and one for each of the tags that hold most.
impl<B: Backend> fmt::Display for Pool<B> {
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

impl<B: Backend> Pool<B> {
    /// A pool of this kind without a limit of its own. Takes no memory before its first block.
    #[must_use]
    pub fn new(context: &Context<B>, kind: AllocKind) -> Self {
        Self::with(context, kind, PoolOptions::default())
    }

    /// A pool with these options.
    #[must_use]
    pub fn with(context: &Context<B>, kind: AllocKind, options: PoolOptions) -> Self {
        let shared = Shared {
            context: context.clone(),
            kind,
            options,
            space: Mutex::new(Space::new()),
            tags: Mutex::new(alloc::vec![String::new()]),
            callback: Mutex::new(None),
        };
        let handle = Arc::new(Handle(Arc::new(shared)));
        Self { handle, queue: Order::Idle, queue_context: context.id(), tag: 0 }
    }

    fn shared(&self) -> &Shared<B> {
        &self.handle.0
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
        let (counters, (cached, pending)) = self.shared().with(|space| (space.counters, space.free_bytes()));
        PoolStats {
            live: counters.live,
            reserved: counters.reserved,
            cached,
            pending,
            peak_live: counters.peak_live,
            peak_reserved: counters.peak_reserved,
            leaked: counters.leaked,
            blocks: counters.blocks,
            waits: counters.waits,
            misuses: counters.misuses,
        }
    }

    /// Returns idle segments until at most `bytes` are reserved. Returns the bytes that went. Does
    /// not wait for work.
    pub fn trim(&self, bytes: u64) -> u64 {
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
        let (mut owners, now) = self.shared().with(|space| {
            let mut owners: Vec<Owner> = Vec::new();
            for (_, segment) in space.segments() {
                let live = space.blocks_of(segment).filter(|block| block.state == State::Live);
                owners.extend(live.map(|block| block.owner));
            }
            (owners, space.counters.allocations)
        });
        owners.sort_unstable_by_key(|owner| owner.id);
        let tags = self.shared().tags.lock();
        let block = |owner: Owner| PoolBlock {
            id: owner.id,
            bytes: owner.bytes,
            tag: tags.get(owner.tag as usize).cloned().unwrap_or_default(),
            age: now - owner.id,
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
        let (counters, pending, largest) =
            shared.with(|space| (space.counters, space.free_bytes().1, space.largest_free()));
        let limit = shared.options.limit.map_or(u64::MAX, |limit| limit as u64);
        let (live, reserved) = (counters.live, counters.reserved);
        ErrorKind::PoolExhausted { requested, limit, live, reserved, pending, largest }.into()
    }

    /// A block, after the callback if none is left.
    fn choose(&self, demand: &Demand) -> core::result::Result<Given<Pending<B>>, Error> {
        let shared = self.shared();
        let mut error = Error::from(ErrorKind::SizeOverflow);
        for _ in 0..=3 {
            error = match choice::allocate(shared, demand) {
                Ok(given) => return Ok(given),
                Err(Refusal::Exhausted) => self.exhausted(demand.owner.bytes),
                Err(Refusal::Memory(error)) => error,
            };
            let callback = shared.callback.lock().clone();
            match callback {
                Some(free) if free(demand.owner.bytes) => {}
                _ => break,
            }
        }
        Err(error)
    }
}

impl<B: Backend> MemorySource<B> for Pool<B> {
    /// Waits only for work without which the request would be refused.
    ///
    /// # Errors
    /// [`ErrorKind::PoolExhausted`] at the pool's limit; [`ErrorKind::WrongKind`]; as of
    /// [`Context`].
    fn allocate(&self, request: &Request) -> Result<Allocation<B>> {
        let (layout, shared) = (request.layout()?, self.shared());
        let _entered = segment::admit(&shared.context)?;
        let kind = shared.kind;
        MemoryType::try_from(request.kind)?;
        if request.kind != kind {
            return Err(ErrorKind::WrongKind { expected: kind, found: request.kind }.into());
        }
        let expected = shared.context.id();
        if self.queue_context != expected {
            return Err(ErrorKind::WrongContext { expected, found: self.queue_context }.into());
        }
        let size = Space::<Pending<B>, Segment<B>>::round(layout.size() as u64);
        let demand = Demand {
            size: size.ok_or(ErrorKind::SizeOverflow)?,
            alignment: layout.align() as u64,
            queue: self.queue,
            owner: Owner { bytes: layout.size() as u64, tag: self.tag, ..Owner::default() },
            reuse: shared.options.reuse,
            limit: shared.options.limit.map_or(u64::MAX, |limit| limit as u64),
            segment: shared.options.segment as u64,
        };
        let given = match self.choose(&demand) {
            Ok(given) => given,
            Err(_) if request.fallback == Fallback::Host && kind != AllocKind::Host => {
                let mut of_host = *request;
                of_host.kind = AllocKind::Host;
                return shared.context.allocate(&of_host);
            }
            Err(error) => {
                segment::record_refusal(&shared.context, kind, layout.size());
                return Err(error);
            }
        };
        // The address is one of a segment, which came from a pointer.
        let pointer = NonNull::new(core::ptr::with_exposed_provenance_mut(given.address as usize));
        let pointer = pointer.ok_or(ErrorKind::SizeOverflow)?;
        let block = Block { pointer, size: layout.size(), alignment: layout.align(), kind };
        #[cfg(usm_valgrind)]
        if given.uses.is_empty() {
            usm_core::substitute::without_values(block.pointer.as_ptr(), block.size);
        }
        let entry = Entry::new(&shared.context, &block);
        let (slot, serial) = (given.slot, entry.serial());
        shared.with(|space| space.set_serial(slot, serial));
        // SAFETY: an address in an `Arc`.
        let lender = unsafe { NonNull::new_unchecked(Arc::as_ptr(&self.handle.0).cast_mut()) };
        // SAFETY: the block lies in a segment that lives until it is back, is nobody else's, and
        // comes with all operations on its bytes. The pool and its context live until the last
        // block is back, whatever becomes of this handle.
        let allocation = unsafe { Allocation::from_lender(&shared.context, block, given.uses, lender, slot) };
        entry.record(&shared.context);
        Ok(allocation)
    }

    fn context(&self) -> &Context<B> {
        &self.shared().context
    }
}

/// Puts a block back, also if an observer panics. The last one releases the count of all blocks.
struct GiveBack<B: Backend> {
    shared: Arc<Shared<B>>,
    slot: u32,
    uses: Pending<B>,
}

impl<B: Backend> Drop for GiveBack<B> {
    fn drop(&mut self) {
        let uses = core::mem::replace(&mut self.uses, Pending::none());
        let (mut gone, mut idle) = (Vec::new(), Vec::new());
        let keep = self.shared.options.keep.map_or(u64::MAX, |keep| keep as u64);
        let is_last = self.shared.with(|space| {
            let was_out = space.take_back(self.slot, uses, &mut gone);
            while space.counters.reserved > keep {
                let Some((segment, memory)) = space.remove_idle_segment() else { break };
                space.unreserve(segment.bytes);
                idle.push(memory);
            }
            was_out && space.closed && space.counters.blocks == 0
        });
        if is_last {
            // SAFETY: the count that the last handle left for the blocks; this was the last one.
            unsafe { Arc::decrement_strong_count(Arc::as_ptr(&self.shared)) };
        }
    }
}

// SAFETY: the space keeps the uses of returned bytes, and gives them to the next owner or to the
// end of the segment.
unsafe impl<B: Backend> Lender<B> for Shared<B> {
    unsafe fn take_back(lender: NonNull<Self>, slot: u32, block: &Block, uses: Pending<B>) {
        // A count for this call: another thread may return the last block before it ends.
        // SAFETY: in an `Arc` that is alive until the last block is back.
        unsafe { Arc::increment_strong_count(lender.as_ptr()) };
        // SAFETY: the count above.
        let shared = unsafe { Arc::from_raw(lender.as_ptr()) };
        let serial = shared.with(|space| {
            let owner = space.block(slot).filter(|block| block.state == State::Live)?.owner;
            Some(owner.serial)
        });
        let give_back = GiveBack { shared, slot, uses };
        if let Some(serial) = serial {
            segment::leave(&give_back.shared.context, block, serial);
        }
    }
}
