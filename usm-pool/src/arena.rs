//! A plan in use: one allocation for each memory, and a part of it for each tensor.
//!
//! The arena does not trust callers to follow the plan. It refuses bytes that another tensor still
//! holds, and names that tensor. Bytes that an unfinished operation still uses come with the events
//! to wait for. So no order of calls gives two owners the same bytes, and a plan that is wrong for
//! its queue costs time, never data.

mod claims;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ptr::NonNull;

use usm_core::{
    AllocKind, Allocation, Backend, Block, Context, ErrorKind, Lender, MemorySource, Pending, Request,
};

use crate::plan::{Memory, Plan, Row};
use crate::sync::{Mutex, in_arena};
use claims::{Claims, Places};

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

/// Disjoint intervals of bytes with a value each: the higher end and the value by memory and lower
/// end. A search is one descent in a tree, however many there are.
struct Intervals<T>(BTreeMap<(Memory, u64), (u64, T)>);

impl<T> Intervals<T> {
    const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Those that meet `range`, as (lower end, value).
    fn meeting(&self, range: Range) -> impl Iterator<Item = (u64, &T)> {
        let below = self.0.range((range.memory, 0)..(range.memory, range.low)).next_back();
        let below = below.filter(|(_, (high, _))| *high > range.low);
        let inside = self.0.range((range.memory, range.low)..(range.memory, range.high));
        below.into_iter().chain(inside).map(|((_, low), (_, value))| (*low, value))
    }

    /// `range` meets none of the others.
    fn insert(&mut self, range: Range, value: T) {
        self.0.insert((range.memory, range.low), (range.high, value));
    }

    /// Takes the values of bytes of the range. Bytes outside keep theirs.
    fn cut(&mut self, range: Range) -> Vec<T>
    where
        T: Clone,
    {
        let lows: Vec<u64> = self.meeting(range).map(|(low, _)| low).collect();
        let mut values = Vec::new();
        for low in lows {
            let Some((high, value)) = self.0.remove(&(range.memory, low)) else { continue };
            if low < range.low {
                self.insert(Range { low, high: range.low, ..range }, value.clone());
            }
            if high > range.high {
                self.insert(Range { low: range.high, high, ..range }, value.clone());
            }
            values.push(value);
        }
        values
    }
}

struct Ranges<B: Backend> {
    /// Claimed rows.
    claims: Claims,
    /// What unfinished operations may still use. Shared, because a copy of an event may be the
    /// backend's own code, which the lock excludes.
    pending_uses: Intervals<Arc<Pending<B>>>,
}

struct Inner<B: Backend> {
    context: Context<B>,
    bases: Vec<(Memory, Allocation<B>)>,
    /// By id.
    rows: Vec<Row>,
    places: Places,
    ranges: Mutex<Ranges<B>>,
}

impl<B: Backend> Inner<B> {
    fn base(&self, memory: Memory) -> Option<&Allocation<B>> {
        self.bases.iter().find(|(of, _)| *of == memory).map(|(_, base)| base)
    }

    /// Runs a few instructions on the ranges, which drop no events. A fork leaves the ranges free
    /// in the child.
    fn with_ranges<R>(&self, call: impl FnOnce(&mut Ranges<B>) -> R) -> R {
        in_arena(|| call(&mut self.ranges.lock()))
    }

    fn range_of(row: &Row) -> Range {
        Range { memory: row.memory, low: row.offset, high: row.offset.saturating_add(row.size) }
    }
}

/// The bases are freed after all operations that used a part of them.
impl<B: Backend> Drop for Inner<B> {
    fn drop(&mut self) {
        let ranges =
            self.with_ranges(|ranges| core::mem::replace(&mut ranges.pending_uses, Intervals::new()));
        for ((memory, _), (_, pending)) in ranges.0 {
            if let Some(base) = self.base(memory) {
                // Cannot fail: part and base belong to one context.
                let _ = base.absorb(Pending::clone(&pending));
            }
        }
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
            .field("bases", &self.inner.bases)
            .field("tensors", &self.inner.rows.len())
            .finish()
    }
}

impl<B: Backend> Arena<B> {
    /// Allocates the plan's memory: host memory for what lies beyond device memory, `device_kind`
    /// (device or shared) for the rest. Each memory of a graph is one allocation.
    ///
    /// # Errors
    /// [`ArenaError::Memory`] when the source refuses.
    pub fn new<S: MemorySource<B>>(
        plan: &Plan,
        source: &S,
        device_kind: AllocKind,
    ) -> Result<Self, ArenaError> {
        let allocate = |memory: Memory, bytes: u64| -> Result<(Memory, Allocation<B>), ArenaError> {
            let kind = if memory == Memory::Host { AllocKind::Host } else { device_kind };
            let rows = plan.rows.iter().filter(|row| row.memory == memory);
            let alignment = rows.map(|row| row.alignment).max().unwrap_or(1);
            let too_large = |_| usm_core::Error::from(ErrorKind::SizeOverflow);
            let size = usize::try_from(bytes).map_err(too_large)?;
            let alignment = usize::try_from(alignment).map_err(too_large)?;
            let request = Request::new(kind, size).aligned_to(alignment.max(Request::DEFAULT_ALIGNMENT));
            Ok((memory, source.allocate(&request)?))
        };
        let used = plan.memories.iter().filter(|used| used.peak > 0);
        let bases: Vec<_> = used.map(|used| allocate(used.memory, used.peak)).collect::<Result<_, _>>()?;
        // A queue's memory exists after an event, and other sources may return bytes that late
        // operations still use. Parts wait for both.
        let mut pending_uses = Intervals::new();
        for &(memory, ref base) in &bases {
            let pending = base.pending();
            if !pending.is_empty() {
                pending_uses.insert(Range { memory, low: 0, high: base.size() as u64 }, Arc::new(pending));
            }
        }
        let mut rows = plan.rows.clone();
        rows.sort_unstable_by_key(|row| row.id);
        let places = Places::new(&rows);
        let ranges = Mutex::new(Ranges { claims: Claims::new(&places), pending_uses });
        let context = source.context().clone();
        Ok(Self { inner: Arc::new(Inner { context, bases, rows, places, ranges }) })
    }

    /// Bytes that the arena holds in all memories.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.inner.bases.iter().map(|(_, base)| base.size() as u64).sum()
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
        let slot = self.inner.rows.binary_search_by_key(&id, |row| row.id);
        let slot = slot.map_err(|_| ArenaError::Unknown { id })?;
        let row = &self.inner.rows[slot];
        if row.size == 0 {
            return Err(ArenaError::Empty { id });
        }
        let range = Inner::<B>::range_of(row);
        let Inner { rows, places, .. } = &*self.inner;
        let holds = self.inner.with_ranges(|ranges| ranges.claims.insert(rows, places, slot));
        holds.map_err(|holder| ArenaError::InUse { id, held_by: rows[holder].id })?;
        Ok(Claim { inner: self.inner.clone(), range, id, slot, is_used: Mutex::new(false) })
    }
}

/// A claim to one tensor's bytes.
pub struct Claim<B: Backend> {
    inner: Arc<Inner<B>>,
    range: Range,
    id: u64,
    /// Index of its row.
    slot: usize,
    is_used: Mutex<bool>,
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
        let mut is_used = self.is_used.lock();
        let in_use = if *is_used { limit } else { 0 };
        if *is_used || request.size as u64 > limit {
            return Err(ErrorKind::OverMemory { requested: request.size as u64, in_use, limit }.into());
        }
        let offset = usize::try_from(self.range.low).map_err(|_| ErrorKind::SizeOverflow)?;
        base.check_range(offset, request.size)?;
        let pointer = base.as_ptr().wrapping_add(offset);
        let error = ErrorKind::BadAlignment { alignment: layout.align() };
        let pointer = NonNull::new(pointer).filter(|at| at.as_ptr().addr() % layout.align() == 0);
        let pointer = pointer.ok_or(error)?;
        let block = Block { pointer, size: request.size, alignment: layout.align(), kind: base.kind() };
        let slot = u32::try_from(self.slot).map_err(|_| ErrorKind::SizeOverflow)?;
        *is_used = true;
        drop(is_used);
        // From now on the allocation keeps the uses of its bytes.
        let earlier = self.inner.with_ranges(|ranges| ranges.pending_uses.cut(self.range));
        let mut uses = Pending::none();
        for pending in &earlier {
            drop(uses.join(Pending::clone(pending)));
        }
        // Pending operations may still read the old content.
        #[cfg(usm_valgrind)]
        if earlier.is_empty() {
            usm_core::substitute::without_values(block.pointer.as_ptr(), block.size);
        }
        // The part's count of the arena, which `take_back` releases.
        let lender = Arc::into_raw(Arc::clone(&self.inner)).cast_mut();
        // SAFETY: points into an `Arc`.
        let lender = unsafe { NonNull::new_unchecked(lender) };
        // SAFETY: the block lies in the base allocation (`check_range`). The count keeps that and
        // its context alive, whatever the source claims. The block is disjoint from all other
        // parts: `claims` has its range from the claim on, `tensor` refuses overlapping ranges,
        // only `take_back` removes the range, and `is_used` lets each claim serve once. The base
        // itself is never handed out. `pending_uses` had all unfinished operations that touch the
        // bytes.
        Ok(unsafe { Allocation::from_lender(base.context(), block, uses, lender, slot) })
    }

    fn context(&self) -> &Context<B> {
        &self.inner.context
    }
}

impl<B: Backend> Drop for Claim<B> {
    fn drop(&mut self) {
        if !*self.is_used.get_mut() {
            self.inner.with_ranges(|ranges| ranges.claims.remove(&self.inner.places, self.slot));
        }
    }
}

// SAFETY: `pending_uses` has the uses of returned bytes until the next claim, or until the base
// waits for them.
unsafe impl<B: Backend> Lender<B> for Inner<B> {
    unsafe fn take_back(lender: NonNull<Self>, slot: u32, _: &Block, uses: Pending<B>) {
        // SAFETY: each part holds a count of the `Arc` that the pointer came from.
        let inner = unsafe { Arc::from_raw(lender.as_ptr()) };
        let Some(row) = inner.rows.get(slot as usize) else { return };
        let range = Self::range_of(row);
        let uses = (!uses.is_done()).then(|| Arc::new(uses));
        inner.with_ranges(|ranges| {
            ranges.claims.remove(&inner.places, slot as usize);
            if let Some(uses) = uses {
                ranges.pending_uses.insert(range, uses);
            }
        });
    }

    fn is_of_queue(&self, slot: u32) -> bool {
        let base = self.rows.get(slot as usize).and_then(|row| self.base(row.memory));
        base.is_some_and(Allocation::is_of_queue)
    }
}
