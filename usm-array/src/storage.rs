//! Memory that several arrays share.

use std::any::Any;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use usm_core::backend::{Backend, MemAdvice};
use usm_core::{Access, AllocKind, Allocation, Block, Context, ErrorKind, Event, Queue, Usage};

use crate::block_lock::TurnLock;
use crate::error::{Error, Result};
use crate::fork;
use crate::turns;

/// A value that belongs to memory and is dropped with it, such as the object that lent it. `()` is
/// the owner of memory that needs none.
pub trait Owner<B: Backend>: Default + Send + Sync + 'static {
    /// Lets go of the memory, after its last handle is gone. `is_foreign`: it was lent.
    fn release(self, memory: Allocation<B>, is_foreign: bool) {
        let _ = is_foreign;
        drop(memory);
    }
}

impl<B: Backend> Owner<B> for () {}

/// A handle to memory that several arrays may share. Dropping the last handle frees the memory.
///
/// Only this handle knows whether the memory may be written, so every operation that keeps the
/// memory keeps that too. A handle can lose the right to write, and never gains it.
///
/// Each use takes the *turn* of the memory: threads use it one after another, and a later one waits
/// for the work of earlier ones by their events.
pub struct Storage<B: Backend, O: Owner<B> = ()> {
    memory: Arc<Memory<B, O>>,
    is_readonly: bool,
}

/// The memory behind handles.
pub(crate) struct Memory<B: Backend, O: Owner<B>> {
    allocation: ManuallyDrop<Allocation<B>>,
    /// Bytes that arrays may use, from the first one on: the rest of the block may be unwritten.
    size: usize,
    /// Held from reading the uses of the block until a new use is recorded. Without it two threads
    /// could submit at once and miss each other's event, because handles are shared.
    turn: TurnLock,
    /// Whether the memory belongs to another library or process.
    is_foreign: bool,
    /// Whether it is plain memory of the process, as an end of a copy: no owner has to let it go.
    is_of_process: bool,
    owner: ManuallyDrop<O>,
}

impl<B: Backend, O: Owner<B>> Memory<B, O> {
    pub(crate) const fn turn(&self) -> &TurnLock {
        &self.turn
    }
}

impl<B: Backend, O: Owner<B>> Drop for Memory<B, O> {
    fn drop(&mut self) {
        // SAFETY: drop runs once, and nothing reads the field afterwards.
        let allocation = unsafe { ManuallyDrop::take(&mut self.allocation) };
        // SAFETY: as above.
        let owner = unsafe { ManuallyDrop::take(&mut self.owner) };
        match self.is_of_process {
            // A copy drops it in the turn of other memory, where an owner must not wait.
            true => drop((allocation, owner)),
            false => owner.release(allocation, self.is_foreign),
        }
    }
}

impl<B: Backend, O: Owner<B>> Clone for Storage<B, O> {
    fn clone(&self) -> Self {
        Self { memory: Arc::clone(&self.memory), is_readonly: self.is_readonly }
    }
}

impl<B: Backend, O: Owner<B>> fmt::Debug for Storage<B, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Storage");
        text.field("block", self.block()).field("is_readonly", &self.is_readonly).finish_non_exhaustive()
    }
}

impl<B: Backend, O: Owner<B>> Storage<B, O> {
    /// Memory of the program's own.
    ///
    /// # Safety
    /// Nobody reads a byte of the memory through this crate before it was written, unless any bytes
    /// of it are values, as those of memory that a driver gave.
    pub unsafe fn new(allocation: Allocation<B>, owner: O) -> Self {
        let size = allocation.size();
        Self::of_allocation(allocation, size, owner, false)
    }

    /// The first `size` bytes of memory, all written, and no more of it.
    ///
    /// # Safety
    /// As [`new`](Self::new), for these bytes.
    pub(crate) unsafe fn of_first(allocation: Allocation<B>, size: usize, owner: O) -> Self {
        let size = size.min(allocation.size());
        Self::of_allocation(allocation, size, owner, false)
    }

    /// Writable memory of another owner. `keeper` keeps it alive until the last operation is
    /// complete; `owner` goes when the last handle does.
    ///
    /// # Safety
    /// As [`Allocation::foreign`], and as [`new`](Self::new).
    pub unsafe fn lent(
        context: &Context<B>,
        (kind, pointer, size): (AllocKind, NonNull<u8>, usize),
        keeper: Box<dyn Any + Send + Sync>,
        owner: O,
    ) -> Self {
        let block = Block { pointer, size, alignment: 1, kind };
        // SAFETY: the caller's promise.
        let allocation = unsafe { Allocation::foreign(context.clone(), block, keeper) };
        Self::of_allocation(allocation, size, owner, true)
    }

    /// Memory of another process.
    ///
    /// # Safety
    /// As [`new`](Self::new).
    pub unsafe fn of_other_process(allocation: Allocation<B>, owner: O) -> Self {
        let size = allocation.size();
        Self::of_allocation(allocation, size, owner, true)
    }

    /// Plain memory of the process, as host memory of the context. Copies of every runtime accept
    /// it.
    ///
    /// # Safety
    /// The bytes live until `keeper` is dropped. The storage is used as an end of copies only,
    /// because its memory is not USM.
    ///
    /// # Errors
    /// [`ErrorKind::ZeroSize`] for a null pointer.
    pub(crate) unsafe fn of_process(
        context: &Context<B>,
        (pointer, size): (*mut u8, usize),
        keeper: Box<dyn Any + Send + Sync>,
    ) -> usm_core::Result<Self> {
        let pointer = NonNull::new(pointer).ok_or(ErrorKind::ZeroSize)?;
        // SAFETY: the caller's promise.
        let storage = unsafe { Self::lent(context, (AllocKind::Host, pointer, size), keeper, O::default()) };
        Ok(storage.into_plain())
    }

    /// The same as plain memory of the process.
    fn into_plain(mut self) -> Self {
        // No other handle exists yet.
        if let Some(memory) = Arc::get_mut(&mut self.memory) {
            memory.is_of_process = true;
        }
        self
    }

    fn of_allocation(allocation: Allocation<B>, size: usize, owner: O, is_foreign: bool) -> Self {
        fork::prepare::<{ fork::TURNS }>();
        let (allocation, owner) = (ManuallyDrop::new(allocation), ManuallyDrop::new(owner));
        let memory =
            Memory { allocation, size, turn: TurnLock::new(), is_foreign, is_of_process: false, owner };
        Self { memory: Arc::new(memory), is_readonly: false }
    }

    /// The same memory, read-only if `is_readonly` is set or the memory was read-only before.
    #[must_use]
    pub fn restricted(self, is_readonly: bool) -> Self {
        Self { is_readonly: self.is_readonly || is_readonly, ..self }
    }

    /// Whether this handle may only read.
    #[must_use]
    pub const fn is_readonly(&self) -> bool {
        self.is_readonly
    }

    /// Refuses read-only memory.
    ///
    /// # Errors
    /// [`Error::ReadOnly`].
    pub const fn writable(&self) -> Result<()> {
        if self.is_readonly { Err(Error::ReadOnly) } else { Ok(()) }
    }

    pub(crate) const fn memory(&self) -> &Arc<Memory<B, O>> {
        &self.memory
    }

    /// The value that belongs to the memory.
    #[must_use]
    pub fn owner(&self) -> &O {
        &self.memory.owner
    }

    /// The block with its record of work.
    ///
    /// # Safety
    /// Work is submitted on it, and its bytes are accessed, in a turn of this storage only, or
    /// while no other handle exists.
    #[doc(hidden)]
    #[must_use]
    pub unsafe fn allocation(&self) -> &Allocation<B> {
        self.block_of_turns()
    }

    /// [`allocation`](Self::allocation), for this crate.
    pub(crate) fn block_of_turns(&self) -> &Allocation<B> {
        &self.memory.allocation
    }

    /// The context of the memory.
    #[must_use]
    pub fn context(&self) -> &Context<B> {
        self.block_of_turns().context()
    }

    /// The kind of the memory.
    #[must_use]
    pub fn kind(&self) -> AllocKind {
        self.block_of_turns().kind()
    }

    /// Size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.memory.size
    }

    /// Refuses bytes beyond the size.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfBounds`].
    pub(crate) fn check_range(&self, offset: usize, len: usize) -> usm_core::Result<()> {
        let size = self.size();
        match offset.checked_add(len).is_some_and(|end| end <= size) {
            true => Ok(()),
            false => Err(ErrorKind::OutOfBounds { offset, len, size }.into()),
        }
    }

    /// Address, size, alignment and kind.
    #[must_use]
    pub fn block(&self) -> &Block {
        self.block_of_turns().block()
    }

    /// Address of the first byte.
    #[must_use]
    pub fn address(&self) -> usize {
        self.block().address()
    }

    /// Whether the memory belongs to another library or process.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.memory.is_foreign
    }

    /// Whether the two blocks share addresses.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let (one, two) = (self.address(), other.address());
        one < two.saturating_add(other.size()) && two < one.saturating_add(self.size())
    }

    /// Whether the host may access the memory.
    #[must_use]
    pub fn is_host_accessible(&self) -> bool {
        self.kind().is_host_accessible()
    }

    /// Waits until all work on the memory is complete, for a consumer that does not know its
    /// events.
    ///
    /// # Errors
    /// A failure of that work, or the end of the wait limit.
    pub fn wait_for_uses(&self) -> usm_core::Result<()> {
        self.block_of_turns().wait_for_uses(Access::Write)
    }

    /// Waits until no work on the memory conflicts with an access, at most `limit`.
    ///
    /// # Errors
    /// As [`wait_for_uses`](Self::wait_for_uses).
    pub fn wait_for_uses_within(&self, access: Access, limit: Duration) -> usm_core::Result<()> {
        self.block_of_turns().wait_for_uses_within(access, limit)
    }

    /// Waits until nothing of earlier owners of the bytes uses them.
    ///
    /// # Errors
    /// As [`wait_for_uses`](Self::wait_for_uses).
    #[doc(hidden)]
    pub fn wait_for_earlier_owners(&self) -> usm_core::Result<()> {
        self.block_of_turns().wait_for_earlier_owners()
    }

    /// Orders `queue` and this memory without waiting. Later work of the queue waits for the work
    /// on the memory, and later uses of the memory wait for the queue's work so far.
    ///
    /// # Errors
    /// Those of a barrier.
    pub fn follow(&self, queue: &Queue<B>) -> usm_core::Result<()> {
        let _turn = turns::of_one(self)?;
        queue.barrier_with_usages(&[Usage::write(self.block_of_turns())], &[]).map(drop)
    }

    /// Gives the runtime a hint: `advice` on the use of the block, or a prefetch to the queue's
    /// device. Where the runtime takes no hints, the event follows earlier work on the block.
    ///
    /// # Errors
    /// The runtime's, and those of a barrier.
    pub fn hint(&self, queue: &Queue<B>, advice: Option<MemAdvice>) -> Result<Event<B>> {
        let (_turn, allocation) = (turns::of_one(self)?, self.block_of_turns());
        let outcome = match advice {
            Some(advice) => queue.advise(allocation, advice),
            None => queue.prefetch(allocation),
        };
        match outcome {
            Err(error) if matches!(error.kind, ErrorKind::Unsupported { .. }) => {
                Ok(queue.barrier_with_usages(&[Usage::read(allocation)], &[])?)
            }
            outcome => Ok(outcome?),
        }
    }
}
