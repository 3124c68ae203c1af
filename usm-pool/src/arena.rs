//! A plan in use: one allocation for each memory, and a part of it for each tensor.
//!
//! The arena does not trust callers to follow the plan. It refuses bytes that another tensor still
//! holds, and names that tensor. Bytes that an unfinished operation still uses come with the events
//! to wait for. So no order of calls gives two owners the same bytes, and a plan that is wrong for
//! its queue costs time, never data.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use usm_core::{
    AllocKind, Allocation, Backend, Block, Context, ErrorKind, MemorySource, Pending, Reclaim, Request,
};

use crate::plan::{Memory, Plan, Row};
use crate::sync::{Mutex, in_arena};

/// Why the arena refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArenaError {
    /// The plan has no such tensor.
    Unknown {
        /// The id asked for.
        id: u64,
    },
    /// The tensor has no bytes.
    Empty {
        /// The id asked for.
        id: u64,
    },
    /// Another tensor that shares bytes is still held.
    InUse {
        /// The id asked for.
        id: u64,
        /// The tensor that holds the bytes.
        held_by: u64,
    },
    /// The source refused the memory.
    Memory(usm_core::Error),
}

impl fmt::Display for ArenaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { id } => write!(f, "tensor {id} is not in the plan"),
            Self::Empty { id } => write!(f, "tensor {id} has no bytes"),
            Self::InUse { id, held_by } => {
                write!(f, "tensor {id} shares bytes with tensor {held_by}, which is still held")
            }
            Self::Memory(error) => write!(f, "memory of the arena: {error}"),
        }
    }
}

impl core::error::Error for ArenaError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Memory(error) => Some(error),
            _ => None,
        }
    }
}

impl From<usm_core::Error> for ArenaError {
    fn from(error: usm_core::Error) -> Self {
        Self::Memory(error)
    }
}

/// Bytes of one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    memory: Memory,
    low: u64,
    high: u64,
}

impl Range {
    fn overlaps(&self, other: &Self) -> bool {
        self.memory == other.memory && self.low < other.high && other.low < self.high
    }

    fn is_inside(&self, other: &Self) -> bool {
        self.memory == other.memory && other.low <= self.low && self.high <= other.high
    }
}

/// The ranges in use, and released ranges that unfinished operations may still use.
struct Ranges<B: Backend> {
    held: Vec<(Range, u64)>,
    /// Shared, because a copy of an event may be the backend's own code, which the lock excludes.
    released: Vec<(Range, Arc<Pending<B>>)>,
}

struct Inner<B: Backend> {
    context: Context<B>,
    device: Option<Allocation<B>>,
    host: Option<Allocation<B>>,
    rows: BTreeMap<u64, Row>,
    ranges: Mutex<Ranges<B>>,
}

impl<B: Backend> Inner<B> {
    fn base(&self, memory: Memory) -> Option<&Allocation<B>> {
        match memory {
            Memory::Device => self.device.as_ref(),
            Memory::Host => self.host.as_ref(),
        }
    }

    /// Runs a few instructions on the ranges, which drop no events. A fork leaves the ranges free
    /// in the child.
    fn with_ranges<R>(&self, call: impl FnOnce(&mut Ranges<B>) -> R) -> R {
        in_arena(|| call(&mut self.ranges.lock()))
    }

    fn release_range(&self, range: &Range, id: u64) {
        self.with_ranges(|ranges| {
            if let Some(at) = ranges.held.iter().position(|(held, holder)| held == range && *holder == id) {
                ranges.held.swap_remove(at);
            }
        });
    }
}

/// Memory for one run of a plan at a time. A clone is another handle to the same memory.
///
/// ```
/// use usm_core::backend::host::HostHeap;
/// use usm_core::{AllocKind, Device, QueueOrder, UsmVec};
/// use usm_pool::arena::{Arena, ArenaError};
/// use usm_pool::{Buffer, Options, Problem, plan};
///
/// // Two tensors whose lives do not overlap get the same bytes.
/// let tensors = [Buffer::new(7, 0, 1, 256).aligned(64), Buffer::new(8, 1, 2, 256).aligned(64)];
/// let plan = plan(&Problem::from_buffers(tensors.into())?, &Options::default())?;
/// let context = HostHeap::new().context();
/// let queue = context.queue(QueueOrder::InOrder)?;
/// let arena = Arena::new(&plan, &context, AllocKind::Device)?;
/// assert_eq!(arena.bytes(), 256);
///
/// let seven = UsmVec::<f32, Device, _>::zeroed_in(&queue, &arena.tensor(7)?, 64)?;
/// assert_eq!(arena.tensor(8).unwrap_err(), ArenaError::InUse { id: 8, held_by: 7 });
/// drop(seven);
/// let eight = UsmVec::<f32, Device, _>::zeroed_in(&queue, &arena.tensor(8)?, 64)?;
/// # drop(eight);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub struct Arena<B: Backend> {
    inner: Arc<Inner<B>>,
}

impl<B: Backend> Clone for Arena<B> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<B: Backend> fmt::Debug for Arena<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena")
            .field("device", &self.inner.device)
            .field("host", &self.inner.host)
            .field("tensors", &self.inner.rows.len())
            .finish()
    }
}

impl<B: Backend> Arena<B> {
    /// Allocates the plan's memory: `device_kind` (device or shared) for the part in device memory,
    /// host memory for the rest.
    ///
    /// # Errors
    /// [`ArenaError::Memory`] when the source refuses.
    pub fn new<S: MemorySource<B>>(
        plan: &Plan,
        source: &S,
        device_kind: AllocKind,
    ) -> Result<Self, ArenaError> {
        let allocate = |memory: Memory, kind: AllocKind| -> Result<Option<Allocation<B>>, ArenaError> {
            let bytes = plan.memories.iter().find(|used| used.memory == memory).map_or(0, |used| used.peak);
            if bytes == 0 {
                return Ok(None);
            }
            let rows = plan.rows.iter().filter(|row| row.memory == memory);
            let alignment = rows.map(|row| row.alignment).max().unwrap_or(1);
            let too_large = |_| usm_core::Error::from(ErrorKind::SizeOverflow);
            let size = usize::try_from(bytes).map_err(too_large)?;
            let alignment = usize::try_from(alignment).map_err(too_large)?;
            let request = Request::new(kind, size).aligned_to(alignment.max(Request::DEFAULT_ALIGNMENT));
            Ok(Some(source.allocate(&request)?))
        };
        let device = allocate(Memory::Device, device_kind)?;
        let host = allocate(Memory::Host, AllocKind::Host)?;
        // A queue's memory exists after an event, and other sources may return bytes that late
        // operations still use. Parts wait for both.
        let whole = |memory, base: &Allocation<B>| {
            (Range { memory, low: 0, high: base.size() as u64 }, base.pending())
        };
        let bases = [(Memory::Device, &device), (Memory::Host, &host)];
        let released = bases
            .into_iter()
            .filter_map(|(memory, base)| base.as_ref().map(|base| whole(memory, base)))
            .filter(|(_, pending)| !pending.events().is_empty())
            .map(|(range, pending)| (range, Arc::new(pending)))
            .collect();
        Ok(Self {
            inner: Arc::new(Inner {
                context: source.context().clone(),
                device,
                host,
                rows: plan.rows.iter().map(|row| (row.id, *row)).collect(),
                ranges: Mutex::new(Ranges { held: Vec::new(), released }),
            }),
        })
    }

    /// Bytes that the arena holds in all memories.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let bases = [&self.inner.device, &self.inner.host];
        bases.into_iter().flatten().map(|base| base.size() as u64).sum()
    }

    /// The context that the memory belongs to.
    #[must_use]
    pub fn context(&self) -> &Context<B> {
        &self.inner.context
    }

    /// Claims the bytes of a tensor. The claim is a [`MemorySource`] for one typed array or
    /// allocation.
    ///
    /// # Errors
    /// [`ArenaError::Unknown`], [`ArenaError::Empty`], and [`ArenaError::InUse`] as long as a
    /// tensor that shares bytes is held. A view, or the result of work in place, shares bytes with
    /// its source: drop the source first. The bytes keep their content.
    pub fn tensor(&self, id: u64) -> Result<Claim<B>, ArenaError> {
        let row = self.inner.rows.get(&id).ok_or(ArenaError::Unknown { id })?;
        if row.size == 0 {
            return Err(ArenaError::Empty { id });
        }
        let range = Range { memory: row.memory, low: row.offset, high: row.offset.saturating_add(row.size) };
        self.inner.with_ranges(|ranges| {
            if let Some(&(_, held_by)) = ranges.held.iter().find(|(held, _)| held.overlaps(&range)) {
                return Err(ArenaError::InUse { id, held_by });
            }
            ranges.held.push((range, id));
            Ok(())
        })?;
        Ok(Claim { inner: self.inner.clone(), range, id, taken: Mutex::new(false) })
    }
}

/// A claim to one tensor's bytes.
pub struct Claim<B: Backend> {
    inner: Arc<Inner<B>>,
    range: Range,
    id: u64,
    taken: Mutex<bool>,
}

impl<B: Backend> fmt::Debug for Claim<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("tensor", &self.id).field("range", &self.range).finish()
    }
}

impl<B: Backend + 'static> Claim<B> {
    /// Bytes of the tensor.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.range.high - self.range.low
    }

    /// The tensor as one allocation.
    ///
    /// # Errors
    /// As [`MemorySource::allocate`]: the claim serves once.
    pub fn allocation(&self) -> usm_core::Result<Allocation<B>> {
        let kind = self.inner.base(self.range.memory).map_or(AllocKind::Unknown, Allocation::kind);
        // Fits, because the size of the whole arena does.
        self.allocate(&Request::new(kind, self.bytes() as usize).aligned_to(1))
    }
}

impl<B: Backend + 'static> MemorySource<B> for Claim<B> {
    fn allocate(&self, request: &Request) -> usm_core::Result<Allocation<B>> {
        let layout = request.aligned_to(request.alignment.max(1)).layout()?;
        let limit = self.bytes();
        let Some(base) = self.inner.base(self.range.memory) else {
            return Err(ErrorKind::OverMemory { requested: request.size as u64, in_use: 0, limit: 0 }.into());
        };
        if request.kind != base.kind() {
            return Err(ErrorKind::WrongKind { expected: base.kind(), found: request.kind }.into());
        }
        let mut taken = self.taken.lock();
        let in_use = if *taken { limit } else { 0 };
        if *taken || request.size as u64 > limit {
            return Err(ErrorKind::OverMemory { requested: request.size as u64, in_use, limit }.into());
        }
        let offset = usize::try_from(self.range.low).map_err(|_| ErrorKind::SizeOverflow)?;
        base.check_range(offset, request.size)?;
        let pointer = base.as_ptr().wrapping_add(offset);
        let unaligned = ErrorKind::BadAlignment { alignment: layout.align() };
        let pointer = core::ptr::NonNull::new(pointer).filter(|at| at.as_ptr().addr() % layout.align() == 0);
        let pointer = pointer.ok_or(unaligned)?;
        let block = Block { pointer, size: request.size, alignment: layout.align(), kind: base.kind() };
        let source = Arc::new(Part { inner: self.inner.clone(), range: self.range, id: self.id });
        // SAFETY: the block lies in the base allocation (`check_range`). `source` keeps that alive,
        // and the block is in its context, whatever the source claims. The block is disjoint from
        // all other parts: `ranges` holds its range from the claim on, `tensor` refuses overlapping
        // ranges, only `reclaim` removes the range, and `taken` lets each claim serve once. The
        // base itself is never handed out.
        let allocation = unsafe { Allocation::carved(base.context().clone(), block, source) };
        *taken = true;
        drop(taken);
        let mut earlier = Vec::new();
        // From now on this allocation keeps the uses of the bytes inside it.
        let inside = self.inner.with_ranges(|ranges| {
            let meeting = ranges.released.iter().filter(|(range, _)| range.overlaps(&self.range));
            earlier.extend(meeting.map(|(_, pending)| Arc::clone(pending)));
            let all = core::mem::take(&mut ranges.released).into_iter();
            let (inside, kept) = all.partition::<Vec<_>, _>(|(range, _)| range.is_inside(&self.range));
            ranges.released = kept;
            inside
        });
        drop(inside);
        // Pending operations may still read the old content.
        #[cfg(usm_valgrind)]
        if earlier.is_empty() {
            usm_core::substitute::without_values(allocation.as_ptr(), allocation.size());
        }
        earlier.iter().try_for_each(|pending| allocation.absorb(Pending::clone(pending)))?;
        Ok(allocation)
    }

    fn context(&self) -> &Context<B> {
        &self.inner.context
    }
}

impl<B: Backend> Drop for Claim<B> {
    fn drop(&mut self) {
        if !*self.taken.get_mut() {
            self.inner.release_range(&self.range, self.id);
        }
    }
}

/// Takes one part back.
struct Part<B: Backend> {
    inner: Arc<Inner<B>>,
    range: Range,
    id: u64,
}

impl<B: Backend> Reclaim<B> for Part<B> {
    fn reclaim(&self, _: Block, pending: Pending<B>) {
        if !pending.is_done() {
            // The base is freed after all operations that used a part of it.
            if let Some(base) = self.inner.base(self.range.memory) {
                // Cannot fail: part and base belong to one context.
                let _ = base.absorb(pending.clone());
            }
            let pending = Arc::new(pending);
            self.inner.with_ranges(|ranges| ranges.released.push((self.range, pending)));
        }
        self.inner.release_range(&self.range, self.id);
    }

    fn is_of_queue(&self) -> bool {
        self.inner.base(self.range.memory).is_some_and(Allocation::is_of_queue)
    }
}
