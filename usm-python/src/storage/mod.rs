//! Blocks of memory that Python's handles share, and the transfers between them.

pub(crate) mod file;
#[cfg(target_os = "linux")]
mod large_pages;
pub(crate) mod lock;
pub(crate) mod memory;
pub(crate) mod origin;
pub(crate) mod pool;
pub(crate) mod reserve;
pub(crate) mod snapshot;
pub(crate) mod stats;
pub(crate) mod track;
pub(crate) mod transfer;

use std::any::Any;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};

use pyo3::prelude::*;
use usm_core::backend::{Dyn, DynEvent, DynQueue, MemAdvice, QueueOps};
use usm_core::{
    Access, AllocKind, Allocation, BackendKind, Block, Context, ErrorKind, Event, Number, Queue, Request,
    Strided, Usage,
};

use crate::device::runtime::Stream;
use crate::process::fork;
use crate::storage::lock::TurnLock;
use crate::storage::pool::Source;
use crate::storage::track::Tracked;
use crate::text::error::Failure;

type Result<T> = std::result::Result<T, Failure>;

/// A handle to memory that several arrays may share. Dropping the last handle frees the memory.
///
/// Only this handle knows whether the memory may be written, so every conversion that keeps the
/// memory keeps that too. A handle can lose the right to write, and never gain it.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    memory: Arc<Memory>,
    readonly: bool,
}

/// The memory behind handles.
#[derive(Debug)]
struct Memory {
    allocation: ManuallyDrop<Allocation<Dyn>>,
    /// Held from reading the uses of the block until a new use is recorded. Without it two threads
    /// could submit at once and miss each other's event, because handles are shared.
    turn: TurnLock,
    /// Whether the memory belongs to another library or process.
    foreign: bool,
    /// Whether later arrays get the memory without the driver's free, which waits for the device.
    skips_free: bool,
    /// Whether others know the address: their work on the device is unknown here.
    has_escaped: AtomicBool,
    /// The object that foreign memory was imported from.
    owner: Option<Py<PyAny>>,
    _tracked: Tracked,
}

impl Storage {
    /// Allocates `size` bytes for work of `stream`, at least one byte: an array without elements
    /// has an address too. Alignment 0 means the default. The caller may or may not be attached to
    /// the interpreter.
    pub(crate) fn allocate(
        stream: &Stream,
        kind: AllocKind,
        size: usize,
        alignment: usize,
    ) -> usm_core::Result<Self> {
        Self::allocate_from(&Source::outside_blocks(stream, kind), stream, kind, size, alignment)
    }

    /// [`allocate`](Self::allocate) from a pool, if there is one.
    pub(crate) fn allocate_from(
        source: &Source,
        stream: &Stream,
        kind: AllocKind,
        size: usize,
        alignment: usize,
    ) -> usm_core::Result<Self> {
        let request = Request::new(kind, size.max(1)).aligned_to(alignment);
        Self::made(source, stream, source.allocate(stream, &request))
    }

    /// [`allocate_from`](Self::allocate_from), with zeros. Large blocks of the host come zero from the
    /// system; others are filled, and this waits for that.
    pub(crate) fn allocate_zeroed(
        source: &Source,
        stream: &Stream,
        kind: AllocKind,
        size: usize,
        alignment: usize,
    ) -> Result<Self> {
        let request = Request::new(kind, size.max(1)).aligned_to(alignment);
        let (mut is_zero, made) = match source.allocate_zeroed(stream, &request) {
            Ok((made, is_zero)) => (is_zero, Ok(made)),
            Err(error) => (false, Err(error)),
        };
        let storage = Self::made(source, stream, made)?;
        is_zero |= size == 0;
        if !is_zero {
            storage.fill(&stream.queue, 0, size, &[0])?;
        }
        Ok(storage)
    }

    fn made(
        source: &Source,
        stream: &Stream,
        made: usm_core::Result<Allocation<Dyn>>,
    ) -> usm_core::Result<Self> {
        let note = origin::note(stream, made.as_ref().map_or(0, |made| made.block().address()));
        let allocation = made?;
        #[cfg(target_os = "linux")]
        if stream.is_host() && !source.is_pool() {
            large_pages::advise(&allocation);
        }
        let tracked = Tracked::allocation(allocation.size(), note);
        let mut storage = Self::from_allocation(allocation, false, None, tracked);
        if let Some(memory) = Arc::get_mut(&mut storage.memory) {
            memory.skips_free = source.is_pool() && pool::is_free_a_wait(stream.context());
        }
        Ok(storage)
    }

    /// Writable memory of another owner. `keeper` keeps it alive until the last operation is
    /// complete; `owner` is the object that it was imported from.
    ///
    /// # Safety
    /// As [`Allocation::foreign`].
    pub(crate) unsafe fn foreign(
        context: &Context<Dyn>,
        kind: AllocKind,
        pointer: NonNull<u8>,
        size: usize,
        owner: Option<Py<PyAny>>,
        keeper: Box<dyn Any + Send + Sync>,
    ) -> Self {
        let block = Block { pointer, size, alignment: 1, kind };
        // SAFETY: the caller's promise.
        let allocation = unsafe { Allocation::foreign(context.clone(), block, keeper) };
        Self::from_allocation(allocation, true, owner, Tracked::default())
    }

    /// Memory of another process.
    pub(crate) fn of_other_process(allocation: Allocation<Dyn>) -> Self {
        Self::from_allocation(allocation, true, None, Tracked::default())
    }

    /// Gives the runtime a hint: `advice` on the use of the block, or a prefetch to the queue's
    /// device. Where the runtime takes no hints, the event follows earlier work on the block. Call
    /// it detached from the interpreter, as [`copy`].
    pub(crate) fn hint(&self, queue: &Queue<Dyn>, advice: Option<MemAdvice>) -> Result<Event<Dyn>> {
        let (_turn, allocation) = (self.turn()?, self.allocation());
        let given = match advice {
            Some(advice) => queue.advise(allocation, advice),
            None => queue.prefetch(allocation),
        };
        match given {
            Err(error) if matches!(error.kind, ErrorKind::Unsupported { .. }) => {
                Ok(queue.barrier_with_usages(&[Usage::read(allocation)], &[])?)
            }
            given => Ok(given?),
        }
    }

    /// Plain memory of the process, as host memory of the context. Copies of every runtime accept
    /// it.
    ///
    /// # Safety
    /// The bytes live until `keeper` is dropped. The storage is used as an end of copies only,
    /// because its memory is not USM.
    pub(crate) unsafe fn of_process(
        context: &Context<Dyn>,
        (pointer, size): (*mut u8, usize),
        keeper: Box<dyn Any + Send + Sync>,
    ) -> usm_core::Result<Self> {
        let pointer = NonNull::new(pointer).ok_or(ErrorKind::ZeroSize)?;
        // SAFETY: the caller's promise.
        Ok(unsafe { Self::foreign(context, AllocKind::Host, pointer, size, None, keeper) })
    }

    fn from_allocation(
        allocation: Allocation<Dyn>,
        foreign: bool,
        owner: Option<Py<PyAny>>,
        tracked: Tracked,
    ) -> Self {
        let allocation = ManuallyDrop::new(allocation);
        let (turn, has_escaped) = (TurnLock::new(), AtomicBool::new(false));
        let memory =
            Memory { allocation, turn, foreign, skips_free: false, has_escaped, owner, _tracked: tracked };
        Self { memory: Arc::new(memory), readonly: false }
    }

    /// The same memory, read-only if `readonly` is set or the memory was read-only before.
    pub(crate) fn restricted(self, readonly: bool) -> Self {
        Self { readonly: self.readonly || readonly, ..self }
    }

    pub(crate) fn is_readonly(&self) -> bool {
        self.readonly
    }

    /// Refuses read-only memory.
    pub(crate) fn writable(&self) -> Result<()> {
        if self.readonly { Err(Failure::ReadOnly) } else { Ok(()) }
    }

    /// The address for writing `len` bytes from `offset`. Every write takes its address from here.
    fn target(&self, offset: usize, len: usize) -> Result<*mut u8> {
        self.writable()?;
        self.allocation().check_range(offset, len)?;
        Ok(self.allocation().as_ptr().wrapping_add(offset))
    }

    /// The address for reading `len` bytes from `offset`.
    fn source(&self, offset: usize, len: usize) -> Result<*const u8> {
        self.allocation().check_range(offset, len)?;
        Ok(self.allocation().as_ptr().wrapping_add(offset))
    }

    pub(crate) fn allocation(&self) -> &Allocation<Dyn> {
        &self.memory.allocation
    }

    pub(crate) fn kind(&self) -> AllocKind {
        self.allocation().kind()
    }

    pub(crate) fn size(&self) -> usize {
        self.allocation().size()
    }

    pub(crate) fn address(&self) -> usize {
        self.allocation().block().address()
    }

    /// The producer of imported memory, `None` for our own.
    pub(crate) fn owner(&self) -> Option<&Py<PyAny>> {
        self.memory.owner.as_ref()
    }

    pub(crate) fn is_foreign(&self) -> bool {
        self.memory.foreign
    }

    /// Whether the two blocks share addresses.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let (one, two) = (self.address(), other.address());
        one < two.saturating_add(other.size()) && two < one.saturating_add(self.size())
    }

    pub(crate) fn is_host_accessible(&self) -> bool {
        self.kind().is_host_accessible()
    }

    fn turn(&self) -> usm_core::Result<Turn<'_>> {
        let inside = fork::enter();
        Ok(Turn(self.memory.turn.lock()?, None, inside))
    }

    /// Calls `call` in the turn of the block.
    pub(crate) fn with_turn<R>(&self, call: impl FnOnce() -> R) -> usm_core::Result<R> {
        let _turn = self.turn()?;
        Ok(call())
    }

    /// Notes that others know the address from now on. When the memory is dropped, later arrays get
    /// it only after all work of the device.
    pub(crate) fn escape(&self) {
        self.memory.has_escaped.store(true, Ordering::Relaxed);
    }

    /// [`escape`](Self::escape) for an address without any order: nothing of earlier arrays uses the
    /// memory then. Call it detached from the interpreter.
    pub(crate) fn escape_unordered(&self) -> usm_core::Result<()> {
        self.escape();
        self.allocation().wait_for_earlier_owners()
    }

    /// Waits until all work on the memory is complete, for a consumer that does not know our
    /// events.
    pub(crate) fn wait_for_uses(&self) -> usm_core::Result<()> {
        self.allocation().wait_for_uses(Access::Write)
    }

    /// Orders `queue` and this memory without waiting. Later work of the queue waits for the work
    /// on the memory, and later uses of the memory wait for the queue's work so far. Call it
    /// detached from the interpreter, as [`copy`].
    pub(crate) fn follow(&self, queue: &Queue<Dyn>) -> usm_core::Result<()> {
        let _turn = self.turn()?;
        queue.barrier_with_usages(&[Usage::write(self.allocation())], &[]).map(drop)
    }

    /// Copies `len` bytes from `offset` to `target`, and waits. From device memory the device
    /// writes the target; if that takes longer than the wait limit, the target is leaked, because
    /// the device may still write it.
    pub(crate) fn read<T: AsMut<[u8]> + 'static>(
        &self,
        queue: &Queue<Dyn>,
        offset: usize,
        len: usize,
        mut target: T,
    ) -> Result<T> {
        let bytes = target.as_mut();
        let (size, to) = (bytes.len(), bytes.as_mut_ptr());
        if len > size {
            return Err(ErrorKind::OutOfBounds { offset: 0, len, size }.into());
        }
        // SAFETY: bytes of the target, which it keeps in place when it moves.
        unsafe { self.read_to(queue, offset, (to, len), target) }
    }

    /// [`read`](Self::read) to bytes that nobody has written yet.
    ///
    /// # Safety
    /// The bytes of `room` live until `target` is dropped, wherever it moves.
    pub(crate) unsafe fn read_to<T>(
        &self,
        queue: &Queue<Dyn>,
        offset: usize,
        (to, len): (*mut u8, usize),
        target: T,
    ) -> Result<T> {
        let _ = self.source(offset, len)?;
        if len == 0 {
            return Ok(target);
        }
        let _turn = self.turn()?;
        // SAFETY: the turn keeps other submissions over the block away; the target outlives the
        // copy, or is never freed. It may be a view of the same block.
        match unsafe { queue.read_bytes_to(to, self.allocation(), offset, len) } {
            Ok(()) => Ok(target),
            Err(error) => {
                std::mem::forget(target);
                Err(error.into())
            }
        }
    }

    /// Calls `access` with the address of `len` bytes from `offset` while nothing else uses the
    /// memory. `None`, and it was not called, where that could wait: for a device, for the turn of
    /// another thread, or for a fork. So the caller may be attached to the interpreter.
    fn at_once<R>(&self, offset: usize, len: usize, access: impl FnOnce(*mut u8) -> R) -> Option<R> {
        let allocation = self.allocation();
        if allocation.context().info().backend != BackendKind::Host {
            return None;
        }
        allocation.check_range(offset, len).ok()?;
        let _inside = fork::try_enter::<{ fork::TURNS }>()?;
        let _turn = self.memory.turn.try_lock()?;
        // The host's work has finished when its calls return, so this does not block.
        let _guard = allocation.wait_for_host(Access::Write).ok()?;
        Some(access(allocation.as_ptr().wrapping_add(offset)))
    }

    /// Copies the bytes from `offset` to `target` without waiting. False if that is not possible.
    pub(crate) fn read_at_once(&self, offset: usize, target: &mut [u8]) -> bool {
        let (to, len) = (target.as_mut_ptr(), target.len());
        // SAFETY: the range lies inside of the live block of host memory, and nothing of ours
        // writes it meanwhile. The target is the caller's alone.
        self.at_once(offset, len, |from| unsafe { ptr::copy(from, to, len) }).is_some()
    }

    /// Copies the `len` bytes from each offset to the start of `target`, which is other memory, one
    /// after another and without waiting. False if that is not possible.
    pub(crate) fn gather_at_once(&self, offsets: &[usize], len: usize, target: &Self) -> bool {
        let fits = |offset: &usize| self.allocation().check_range(*offset, len).is_ok();
        let size = offsets.len().checked_mul(len);
        let Some(size) = size.filter(|_| offsets.iter().all(fits) && !self.overlaps(target)) else {
            return false;
        };
        let copy = |from: *mut u8, mut to: *mut u8| {
            for offset in offsets {
                // SAFETY: both ranges were checked and lie in two live blocks of host memory, which
                // nothing of ours uses meanwhile.
                unsafe { ptr::copy_nonoverlapping(from.wrapping_add(*offset), to, len) };
                to = to.wrapping_add(len);
            }
        };
        if target.readonly {
            return false;
        }
        self.at_once(0, 0, |from| target.at_once(0, size, |to| copy(from, to))).flatten().is_some()
    }

    /// Copies the bytes to `offset` without waiting. False if that is not possible.
    pub(crate) fn write_at_once(&self, offset: usize, bytes: &[u8]) -> bool {
        let (from, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: as above.
        !self.readonly && self.at_once(offset, len, |to| unsafe { ptr::copy(from, to, len) }).is_some()
    }

    /// Copies all bytes of `source` to `offset`, and waits. For device memory the device reads the
    /// source; if that takes longer than the wait limit, the source is leaked, because the device
    /// may still read it.
    pub(crate) fn write<S: AsRef<[u8]> + 'static>(
        &self,
        queue: &Queue<Dyn>,
        offset: usize,
        source: S,
    ) -> Result<()> {
        let bytes = source.as_ref();
        let _ = self.target(offset, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        let _turn = self.turn()?;
        let (from, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: the turn keeps other submissions over the block away; the source outlives the
        // copy, or is never freed. It may be a view of the same block.
        let written = unsafe { queue.write_bytes_from(self.allocation(), offset, from, len) };
        Ok(written.inspect_err(|_| std::mem::forget(source))?)
    }

    /// Copies `len` bytes that `fill` writes to `offset`, by several threads through pinned blocks,
    /// and waits. `None`, and `fill` was not called, where the device has no such way; false if
    /// `fill` ended the copy.
    ///
    /// # Safety
    /// Where `fill` returns true it has written all bytes of the slice.
    pub(crate) unsafe fn write_by(
        &self,
        queue: &Queue<Dyn>,
        offset: usize,
        len: usize,
        fill: &(dyn Fn(usize, &mut [MaybeUninit<u8>]) -> bool + Sync),
    ) -> Result<Option<bool>> {
        let _ = self.target(offset, len)?;
        let _turn = self.turn()?;
        // SAFETY: the turn keeps other submissions over the block away; the caller's promise.
        let is_whole = unsafe { queue.write_bytes_by(self.allocation(), offset, len, fill) };
        Ok(is_whole.transpose()?)
    }

    /// Whether a [`fill`](Self::fill) from `offset` takes the pattern.
    pub(crate) fn takes_pattern(&self, offset: usize, pattern: &[u8]) -> bool {
        matches!(pattern.len(), 1 | 2 | 4 | 8 | 16) && (self.address() + offset) % pattern.len() == 0
    }

    /// Repeats `pattern` over `len` bytes from `offset`, a multiple of its width, and waits.
    pub(crate) fn fill(&self, queue: &Queue<Dyn>, offset: usize, len: usize, pattern: &[u8]) -> Result<()> {
        let to = self.target(offset, len)?;
        let turn = self.turn()?;
        let fill = |queue: &DynQueue, after: &[DynEvent]| match len {
            // SAFETY: the events are of the queue's context.
            0 => unsafe { queue.barrier(after) },
            // SAFETY: the range lies inside a live block, which the usage keeps alive and ordered;
            // the turn keeps other submissions over it apart.
            _ => unsafe { queue.fill(to, pattern, len, after) },
        };
        // SAFETY: the fill writes the block after the events that it is given.
        let event = unsafe { queue.submit(&[Usage::write(self.allocation())], &[], fill) }?;
        drop(turn);
        Ok(event.wait()?)
    }
}

/// Starts a copy between two blocks of one context; the ranges must not overlap. Call it detached
/// from the interpreter: another thread may hold these locks while it waits for a device.
pub(crate) fn copy(
    queue: &Queue<Dyn>,
    (dst, dst_offset): (&Storage, usize),
    (src, src_offset): (&Storage, usize),
    len: usize,
) -> Result<Event<Dyn>> {
    let to = dst.target(dst_offset, len)?;
    let from = src.source(src_offset, len)?;
    if (to as usize).abs_diff(from as usize) < len {
        return Err(ErrorKind::Overlap { dst: to as usize, src: from as usize, len }.into());
    }
    let _turns = turns(dst, src)?;
    let usages = [Usage::write(dst.allocation()), Usage::read(src.allocation())];
    let copy = |queue: &DynQueue, after: &[DynEvent]| match len {
        // SAFETY: the events are of the queue's context.
        0 => unsafe { queue.barrier(after) },
        // SAFETY: both ranges lie inside live blocks of the queue's context (`submit` checks that),
        // do not overlap, and the usages keep both alive and ordered; the turns keep other
        // submissions over them apart.
        _ => unsafe { queue.copy(to, from, len, after) },
    };
    // SAFETY: the copy uses both blocks as the usages say, after the events that it is given.
    Ok(unsafe { queue.submit(&usages, &[], copy) }?)
}

/// Copies `len` bytes between two blocks of any contexts by the processor, at once. False unless it
/// is the device of both and reaches them. Call it detached from the interpreter, as [`copy`].
pub(crate) fn copy_by_processor(
    (dst, to): (&Storage, usize),
    (src, from): (&Storage, usize),
    len: usize,
) -> Result<bool> {
    dst.writable()?;
    let _turns = turns(dst, src)?;
    // SAFETY: as in `copy_strided`.
    match unsafe { dst.allocation().copy_by_processor(to, src.allocation(), from, len) } {
        Some(outcome) => Ok(outcome.map(|()| true)?),
        None => Ok(false),
    }
}

/// Copies between two layouts in blocks of one context, which may overlap. `None`: the copy is
/// complete already. Call it detached from the interpreter, as [`copy`].
pub(crate) fn copy_strided(
    queue: &Queue<Dyn>,
    (dst, to): (&Storage, &Strided<'_>),
    (src, from): (&Storage, &Strided<'_>),
) -> Result<Option<Event<Dyn>>> {
    dst.writable()?;
    let _turns = turns(dst, src)?;
    // SAFETY: until the call returns, the turns keep other submissions and our host writes to both
    // blocks away. Python code that uses an exported address synchronises its own threads, as with
    // every array.
    Ok(unsafe { queue.copy_strided_shared(dst.allocation(), to, src.allocation(), from) }?)
}

/// As [`copy_strided`], for callers that do not wait.
pub(crate) fn submit_strided(
    queue: &Queue<Dyn>,
    (dst, to): (&Storage, &Strided<'_>),
    (src, from): (&Storage, &Strided<'_>),
) -> Result<Event<Dyn>> {
    dst.writable()?;
    let _turns = turns(dst, src)?;
    // SAFETY: as in `copy_strided`; later submissions follow the copy by the records of the blocks.
    Ok(unsafe { queue.submit_strided_shared(dst.allocation(), to, src.allocation(), from) }?)
}

/// Converts numbers between two layouts in blocks of one context. Call it detached from the
/// interpreter, as [`copy`].
pub(crate) fn convert(
    queue: &Queue<Dyn>,
    (dst, to, to_number): (&Storage, &Strided<'_>, Number),
    (src, from, from_number): (&Storage, &Strided<'_>, Number),
) -> Result<Event<Dyn>> {
    dst.writable()?;
    let _turns = turns(dst, src)?;
    // SAFETY: the memory is a driver's, so any bytes in it are values; the turns keep other
    // submissions over both blocks apart, and later ones follow by the records of the blocks.
    Ok(unsafe {
        let (dst, src) = (dst.allocation(), src.allocation());
        queue.convert_strided_shared((dst, to, to_number), (src, from, from_number))
    }?)
}

/// Starts a copy of device memory of another context. Call it detached from the interpreter, as
/// [`copy`].
pub(crate) fn copy_from_peer(
    queue: &Queue<Dyn>,
    (dst, dst_offset): (&Storage, usize),
    (src, src_offset): (&Storage, usize),
    len: usize,
) -> Result<Event<Dyn>> {
    dst.writable()?;
    let _turns = turns(dst, src)?;
    let (dst, src) = (dst.allocation(), src.allocation());
    // SAFETY: as in `submit_strided`.
    Ok(unsafe { queue.copy_shared_from_peer((dst, dst_offset), (src, src_offset), len) }?)
}

/// Holds the turns of all blocks while `submit` submits work on them. Each turn is taken once, in
/// the order of addresses as in [`turns`]. Call it detached from the interpreter, as [`copy`].
///
/// # Errors
/// As [`TurnLock::lock`].
pub(crate) fn with_turns<R>(storages: &[&Storage], submit: impl FnOnce() -> R) -> usm_core::Result<R> {
    let _turns = Turns::of(storages)?;
    Ok(submit())
}

/// The turns of all blocks, until it is dropped.
pub(crate) struct Turns<'s> {
    blocks: Vec<&'s Arc<Memory>>,
    held: Option<Held<'s>>,
}

/// The turns, and what a fork waits for; dropped in this order.
#[expect(dead_code, reason = "kept for their drops, in this order")]
struct Held<'s>(Vec<MutexGuard<'s, ()>>, fork::Inside<{ fork::TURNS }>);

impl<'s> Turns<'s> {
    /// As [`with_turns`].
    pub(crate) fn of(storages: &[&'s Storage]) -> usm_core::Result<Self> {
        let mut blocks: Vec<&Arc<Memory>> = storages.iter().map(|storage| &storage.memory).collect();
        blocks.sort_unstable_by_key(|block| Arc::as_ptr(block));
        blocks.dedup_by_key(|block| Arc::as_ptr(block));
        let held = Some(Self::hold(&blocks)?);
        Ok(Self { blocks, held })
    }

    fn hold(blocks: &[&'s Arc<Memory>]) -> usm_core::Result<Held<'s>> {
        let inside = fork::enter::<{ fork::TURNS }>();
        let turns = blocks.iter().map(|block| block.turn.lock()).collect::<usm_core::Result<Vec<_>>>()?;
        Ok(Held(turns, inside))
    }

    /// Marks the blocks as those of a launch, which may release the turns in between.
    pub(crate) fn begin_launch(&self) -> Launched<'s> {
        self.blocks.iter().for_each(|block| block.turn.begin_launch());
        Launched(self.blocks.clone())
    }

    /// Lets others have the turns during `work`.
    pub(crate) fn released<R>(&mut self, work: impl FnOnce() -> R) -> usm_core::Result<R> {
        self.held = None;
        let result = work();
        self.held = Some(Self::hold(&self.blocks)?);
        Ok(result)
    }
}

/// The blocks of a launch, until it ends.
pub(crate) struct Launched<'s>(Vec<&'s Arc<Memory>>);

impl Drop for Launched<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|block| block.turn.end_launch());
    }
}

/// The turns of two blocks, or the one turn if they are the same. The order of addresses prevents a
/// deadlock between two copies in opposite directions.
fn turns<'s>(dst: &'s Storage, src: &'s Storage) -> usm_core::Result<Turn<'s>> {
    let is_first = Arc::as_ptr(&dst.memory) <= Arc::as_ptr(&src.memory);
    let (first, second) = if is_first { (dst, src) } else { (src, dst) };
    let mut turn = first.turn()?;
    if !Arc::ptr_eq(&first.memory, &second.memory) {
        turn.1 = Some(second.memory.turn.lock()?);
    }
    Ok(turn)
}

/// The turn of one block or of two. A fork waits until it is dropped.
#[expect(dead_code, reason = "kept for their drops, in this order")]
struct Turn<'s>(MutexGuard<'s, ()>, Option<MutexGuard<'s, ()>>, fork::Inside<{ fork::TURNS }>);

impl Drop for Memory {
    /// Frees the block. Our own memory is freed detached from the interpreter, because a driver's
    /// free may block on a thread that needs the interpreter. Foreign memory is released attached,
    /// at once. At the end of the process, where there is no interpreter, the block is freed too.
    fn drop(&mut self) {
        let Self { allocation, foreign, owner, .. } = self;
        let must_wait = self.skips_free && *self.has_escaped.get_mut();
        let free = |allocation: &mut ManuallyDrop<Allocation<Dyn>>| {
            // Without the wait the memory is lost, because others may still use it.
            if must_wait && !pool::wait_for_the_device(allocation.context()) {
                return;
            }
            // SAFETY: drop runs once and calls this once; nothing reads the field afterwards.
            unsafe { ManuallyDrop::drop(allocation) };
        };
        if !*foreign && allocation.context().info().backend == BackendKind::Host {
            free(allocation);
            return;
        }
        let done = Python::try_attach(|py| {
            if *foreign {
                free(allocation);
                drop(owner.take());
            } else {
                py.detach(|| free(allocation));
            }
        });
        if done.is_none() {
            free(allocation);
        }
    }
}
