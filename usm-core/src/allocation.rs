//! The one owner of a block of USM memory.

use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use core::time::Duration;

#[cfg(feature = "alloc")]
use {
    crate::checks::check_same_context,
    crate::deferred::{Release, Unread, release_after},
    crate::outcome::Outcome,
    crate::pending::Pending,
    crate::queue_memory::owner::{self, OfQueue},
    crate::watch::report,
    alloc::{boxed::Box, sync::Arc},
    core::any::Any,
};

use crate::access::Access;
use crate::backend::{Backend, Block, ContextOps};
use crate::context::Context;
use crate::error::{ErrorKind, Result};
use crate::gate::ViewGuard;
use crate::lender::{Inherited, Lender, Loan};
use crate::uses::Uses;
use crate::{AllocKind, BackendKind, DeviceType, MemoryType};
#[cfg(feature = "driver")]
use crate::{backend::EventOps, context_state::RING_SERIAL, ring::idle::Idle};

enum Owner<B: Backend> {
    /// The context's backend allocated the block. This is the block's serial number in the ledger.
    Context(u64),
    /// The same of a record, which is read first.
    #[cfg(feature = "alloc")]
    Record(Box<Unread<B>>),
    /// A queue allocated it and takes it back in its order.
    #[cfg(feature = "alloc")]
    Queue(Box<OfQueue<B>>),
    /// The context allocated it because its queue could not. It leaves the ledger like memory of
    /// the queue.
    #[cfg(feature = "alloc")]
    QueueOfContext(u64),
    /// A lender takes it back, which keeps the context alive: this one is a copy by its bits.
    Lent(Loan<B>),
    /// Foreign memory, kept alive by this value.
    #[cfg(feature = "alloc")]
    Foreign(Option<Box<dyn Any + Send + Sync>>),
}

/// The one owner of a block of USM memory. Dropping it gives the block back after every operation
/// that uses it.
pub struct Allocation<B: Backend> {
    /// Dropped last, by hand: a lent block has a copy that nobody counts.
    context: ManuallyDrop<Context<B>>,
    block: Block,
    /// Dropped by hand: the usual end of an allocation has nothing to drop in it.
    body: ManuallyDrop<Body<B>>,
}

struct Body<B: Backend> {
    uses: Uses<B>,
    owner: Owner<B>,
}

impl<B: Backend> fmt::Debug for Allocation<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allocation")
            .field("backend", &self.context.info().backend)
            .field("kind", &self.block.kind)
            .field("address", &self.block.pointer)
            .field("bytes", &self.block.size)
            .finish()
    }
}

impl<B: Backend> Allocation<B> {
    #[inline]
    pub(crate) fn owned(context: Context<B>, block: Block, serial: u64) -> Self {
        Self::new(context, block, Uses::new(), Owner::Context(serial))
    }

    #[inline]
    fn new(context: Context<B>, block: Block, uses: Uses<B>, owner: Owner<B>) -> Self {
        let context = ManuallyDrop::new(context);
        Self { context, block, body: ManuallyDrop::new(Body { uses, owner }) }
    }

    /// Memory that the runtime allocated in the order of a queue. The ledger has its bytes, and its
    /// uses begin with the allocation.
    #[cfg(feature = "alloc")]
    pub(crate) fn of_queue(context: Context<B>, block: Block, uses: Uses<B>, of_queue: OfQueue<B>) -> Self {
        Self::new(context, block, uses, Owner::Queue(Box::new(of_queue)))
    }

    /// The same for memory that the context allocated. Other memory keeps its owner.
    #[cfg(feature = "alloc")]
    pub(crate) fn into_of_queue(mut self) -> Self {
        if let Owner::Context(serial) = self.body.owner {
            self.body.owner = Owner::QueueOfContext(serial);
        }
        self
    }

    /// This allocation is the record of an operation, and is read when it ends.
    #[cfg(feature = "alloc")]
    pub(crate) fn read_outcome_on_drop(
        &mut self,
        outcome: Arc<Outcome>,
        read: unsafe fn(&B::Context, Block, Box<Unread<B>>),
    ) {
        if let Owner::Context(serial) = self.body.owner {
            self.body.owner = Owner::Record(Box::new(Unread { serial, outcome, read }));
        }
    }

    /// A block of the ring with its unfinished uses, for the next copy. Other memory is dropped.
    #[cfg(feature = "driver")]
    pub(crate) fn into_idle(mut self) -> Option<Idle<B>> {
        let Owner::Context(RING_SERIAL) = self.body.owner else { return None };
        let mut events = self.body.uses.take(self.context.id()).into_events();
        events.retain(|event| !EventOps::is_complete(event));
        let block = self.block;
        self.release_ownership();
        Some(Idle { block, events })
    }

    /// Leaves the block to another owner: the drop does not free it.
    #[cfg(feature = "alloc")]
    pub(crate) fn release_ownership(mut self) {
        self.body.owner = Owner::Foreign(None);
    }

    /// Whether the memory came from a queue, or is a part of such memory: see
    /// [`MemorySource`](crate::MemorySource).
    #[must_use]
    pub fn is_of_queue(&self) -> bool {
        match &self.body.owner {
            #[cfg(feature = "alloc")]
            Owner::Queue(_) | Owner::QueueOfContext(_) => true,
            Owner::Lent(loan) => loan.of_queue,
            _ => false,
        }
    }

    /// A block of a larger one, given back to `lender` under `slot` when it is dropped. `uses` are
    /// the operations that earlier owners of these bytes left in flight, the allocation of the
    /// larger block by a queue among them: a submission that would wait for one that failed is
    /// refused ([`ErrorKind::EarlierOwnerFailed`]). Counts neither lender nor context.
    ///
    /// # Safety
    /// - `block` is live memory of `context`, disjoint from every other allocation that is live,
    ///   and stays so until the lender takes it back.
    /// - `uses` has every unfinished operation that touches these bytes.
    /// - `lender` and the original of `context` live until then. The original does not move its
    ///   state: see point 14 of the [contract](crate::backend).
    #[doc(hidden)]
    #[inline(always)]
    #[must_use]
    pub unsafe fn from_lender<L: Lender<B>>(
        context: &Context<B>,
        block: Block,
        uses: impl Into<Inherited<B>>,
        lender: NonNull<L>,
        slot: u32,
    ) -> Self {
        // SAFETY: a copy that is not dropped, of an original that lives for longer.
        let context = unsafe { ptr::read(context) };
        // SAFETY: the caller's promise.
        let loan = unsafe { Loan::new(lender, slot) };
        Self::new(context, block, uses.into().0, Owner::Lent(loan))
    }

    /// Foreign memory that `owner` keeps alive. Dropping the allocation drops `owner` after every
    /// operation that uses the memory. The ledger does not count it.
    ///
    /// # Safety
    /// `block` is USM memory of `context` with the stated kind, or memory that its device can
    /// access like that kind; live until `owner` is dropped. The caller must order accesses made
    /// outside this crate.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub unsafe fn foreign(context: Context<B>, block: Block, owner: Box<dyn Any + Send + Sync>) -> Self {
        Self::new(context, block, Uses::new(), Owner::Foreign(Some(owner)))
    }

    /// Takes the owner of foreign memory. Does not wait for the operations that use it: the caller
    /// ensures that they are complete.
    #[cfg(feature = "alloc")]
    pub(crate) fn into_owner<O: Any>(mut self) -> core::result::Result<O, Self> {
        match &mut self.body.owner {
            Owner::Foreign(owner) if owner.as_ref().is_some_and(|owner| owner.is::<O>()) => {
                match owner.take().map(|owner| owner.downcast::<O>()) {
                    Some(Ok(owner)) => Ok(*owner),
                    _ => Err(self),
                }
            }
            _ => Err(self),
        }
    }

    /// Foreign memory whose ownership passes to the context: the ledger counts it and it is freed
    /// with the allocation. The limits count it and do not refuse it.
    ///
    /// # Safety
    /// `block` is live USM memory of `context`'s native context that [`ContextOps::free`] can free
    /// as its own of that kind. No other code uses or frees it any more.
    #[must_use]
    pub unsafe fn taken(context: Context<B>, block: Block) -> Self {
        let (serial, record) = context.shared().count_foreign_block(&block);
        let allocation = Self::owned(context, block, serial);
        allocation.context.shared().record_allocation(record);
        allocation
    }

    /// The context that the memory belongs to.
    #[must_use]
    pub fn context(&self) -> &Context<B> {
        &self.context
    }

    /// Kind of the memory.
    #[must_use]
    pub fn kind(&self) -> AllocKind {
        self.block.kind
    }

    /// Whether code of the device can read and write the memory. Of foreign host memory this is not
    /// known: it may be memory of the process.
    pub(crate) fn is_reached_by_device(&self) -> bool {
        match self.block.kind {
            AllocKind::Device | AllocKind::Shared => true,
            AllocKind::Host => !self.is_foreign(),
            AllocKind::Unknown => false,
        }
    }

    #[cfg(feature = "alloc")]
    fn is_foreign(&self) -> bool {
        matches!(self.body.owner, Owner::Foreign(_))
    }

    #[cfg(not(feature = "alloc"))]
    fn is_foreign(&self) -> bool {
        false
    }

    /// Type of the memory, as statistics list it.
    #[must_use]
    pub fn memory_type(&self) -> MemoryType {
        MemoryType::of(self.block.kind)
    }

    /// Bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.block.size
    }

    /// The block.
    #[must_use]
    pub fn block(&self) -> &Block {
        &self.block
    }

    /// First byte. The caller must prove that dereferencing it is valid; for device memory it never
    /// is.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.block.pointer.as_ptr()
    }

    pub(crate) fn uses(&self) -> &Uses<B> {
        &self.body.uses
    }

    /// The unfinished operations that use the memory, its allocation by a queue among them: for
    /// sources that carve.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn pending(&self) -> Pending<B> {
        let id = self.context.id();
        if self.context.shared().is_synchronous() { Pending::none() } else { self.body.uses.pending(id) }
    }

    /// Makes operations that used a part of this allocation count as uses of the whole: for sources
    /// that carve.
    ///
    /// # Errors
    /// [`ErrorKind::WrongContext`] when the operations are of another context; nothing is absorbed
    /// then.
    #[cfg(feature = "alloc")]
    pub fn absorb(&self, pending: Pending<B>) -> Result<()> {
        if !pending.is_empty() {
            check_same_context(self.context.id(), pending.context())?;
            self.body.uses.absorb(pending);
        }
        Ok(())
    }

    /// Blocks until the host may access the memory in this way, at most the context's wait limit.
    /// The access ends with the guard, or when conflicting work is submitted.
    ///
    /// # Errors
    /// [`ErrorKind::NotHostAccessible`], [`ErrorKind::Timeout`], or the failure of an operation
    /// that wrote it.
    pub fn wait_for_host(&self, access: Access) -> Result<ViewGuard<'_>> {
        self.host_guard(access)
    }

    /// Blocks until every operation that conflicts with this access is complete, for any kind of
    /// memory, at most the context's wait limit. Call it before the memory goes to a caller that
    /// does not know its events.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`], or the failure of an operation that used it.
    pub fn wait_for_uses(&self, access: Access) -> Result<()> {
        self.wait_within(access, self.context.shared().wait_limit())
    }

    /// As [`wait_for_uses`](Self::wait_for_uses), at most `limit`.
    ///
    /// # Errors
    /// Those of [`wait_for_uses`](Self::wait_for_uses).
    pub fn wait_for_uses_within(&self, access: Access, limit: Duration) -> Result<()> {
        self.wait_within(access, limit)
    }

    /// Waits until the operations of the block's earlier owners are complete, for a caller that
    /// gives the address to others. Usually there are none, and then it costs nothing.
    ///
    /// # Errors
    /// Those of [`wait_for_uses`](Self::wait_for_uses).
    #[cfg(feature = "alloc")]
    pub fn wait_for_earlier_owners(&self) -> Result<()> {
        match self.has_earlier_uses() {
            true => self.wait_for_uses(Access::Write),
            false => Ok(()),
        }
    }

    /// Whether operations of the block's earlier owners may still use it.
    pub(crate) fn has_earlier_uses(&self) -> bool {
        #[cfg(feature = "alloc")]
        return self.body.uses.has_inherited();
        #[cfg(not(feature = "alloc"))]
        false
    }

    fn wait_within(&self, access: Access, limit: Duration) -> Result<()> {
        let _entered = self.context.shared().ask()?;
        #[cfg(feature = "alloc")]
        if self.context.shared().is_synchronous() {
            return Ok(());
        }
        #[cfg(feature = "alloc")]
        let outcomes = self.unreported(access);
        #[cfg_attr(not(usm_valgrind), allow(unused_variables, reason = "only for helgrind's requests"))]
        let wait_count = self.body.uses.wait(access, limit)?;
        #[cfg(usm_valgrind)]
        if self.context.shared().info().backend == crate::BackendKind::OpenCl {
            self.body.uses.annotate_for_helgrind(wait_count, access, self.as_ptr(), self.size());
        }
        #[cfg(feature = "alloc")]
        report(&self.context, &outcomes, limit)?;
        Ok(())
    }

    /// The outcomes that the next wait for such an access must report. Query this before the wait.
    #[cfg(feature = "alloc")]
    pub(crate) fn unreported(&self, access: Access) -> alloc::vec::Vec<Arc<Outcome>> {
        match self.context.shared().outcomes().is_empty() {
            true => alloc::vec::Vec::new(),
            false => self.body.uses.unreported(access),
        }
    }

    /// Takes over the outcomes of operations that wrote `src`, whose bytes a copy brings here: the
    /// next wait for either of the two reports their failure. Call it after the copy was submitted.
    pub(crate) fn take_over_failures(&self, src: &Self) {
        #[cfg(feature = "alloc")]
        {
            let outcomes = src.unreported(Access::Read);
            if !outcomes.is_empty() {
                self.body.uses.add_copied_outcomes(outcomes);
            }
        }
        #[cfg(not(feature = "alloc"))]
        let _ = src;
    }

    /// Whether the processor can read and write the memory for a copy. On a device that is the
    /// processor, device memory is memory of the process: OpenCL's and SYCL's runtimes for CPUs
    /// allocate it there, and their own copies are `memcpy`. Views of the program stay refused.
    pub(crate) fn is_reached_by_processor(&self) -> bool {
        let info = self.context.shared().info();
        let is_of_processor = info.device_type == DeviceType::Cpu
            && matches!(info.backend, BackendKind::OpenCl | BackendKind::Sycl);
        self.block.kind.is_host_accessible() || (self.block.kind == AllocKind::Device && is_of_processor)
    }

    /// Blocks until the processor may copy from or to the memory. The caller has checked that
    /// [it reaches it](Self::is_reached_by_processor), and keeps new work away.
    pub(crate) fn processor_guard(&self, access: Access) -> Result<ViewGuard<'_>> {
        if self.block.kind.is_host_accessible() {
            return self.host_guard(access);
        }
        self.wait_within(access, self.context.shared().wait_limit())?;
        Ok(ViewGuard::NONE)
    }

    pub(crate) fn host_guard(&self, access: Access) -> Result<ViewGuard<'_>> {
        let kind = self.block.kind;
        if !kind.is_host_accessible() {
            return Err(ErrorKind::NotHostAccessible { kind }.into());
        }
        let shared = self.context.shared();
        let limit = shared.wait_limit();
        self.wait_within(access, limit)?;
        match shared.gate() {
            Some(gate) if !shared.info().capabilities.concurrent(kind) => {
                gate.view::<B>(self.context.raw(), limit)
            }
            _ => Ok(ViewGuard::NONE),
        }
    }

    /// Checks that `len` bytes at `offset` lie inside.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfBounds`] with the three numbers.
    pub fn check_range(&self, offset: usize, len: usize) -> Result<()> {
        let size = self.block.size;
        match offset.checked_add(len) {
            Some(end) if end <= size => Ok(()),
            _ => Err(ErrorKind::OutOfBounds { offset, len, size }.into()),
        }
    }
}

impl<B: Backend> Drop for Allocation<B> {
    #[inline]
    fn drop(&mut self) {
        let Body { uses, owner } = &mut *self.body;
        match owner {
            Owner::Lent(loan) if uses.is_untouched() => {
                // SAFETY: the owner is being dropped, and reads neither lender nor context
                // afterwards.
                unsafe { loan.give_back(&self.block, uses, &self.context) };
            }
            _ => self.drop_other(),
        }
    }
}

impl<B: Backend> Allocation<B> {
    /// Drops an allocation that nobody lent, or that has uses.
    #[inline(never)]
    fn drop_other(&mut self) {
        let Body { uses, owner } = &mut *self.body;
        match owner {
            Owner::Context(serial) if uses.is_untouched() => {
                // SAFETY: counted, and nothing reads it afterwards.
                let context = unsafe { ManuallyDrop::take(&mut self.context) };
                // SAFETY: the block came from this context's backend, its owner is being dropped,
                // and nothing uses it.
                unsafe { free_now(&context, &self.block, *serial) };
            }
            _ => self.drop_in_use(),
        }
    }

    /// Drops an allocation that has uses or another owner than the context.
    #[inline(never)]
    fn drop_in_use(&mut self) {
        // SAFETY: the allocation is being dropped, and nothing else reads this.
        let Body { mut uses, owner } = unsafe { ManuallyDrop::take(&mut self.body) };
        if let Owner::Lent(loan) = owner {
            // SAFETY: as in `drop`.
            return unsafe { loan.give_back(&self.block, &mut uses, &self.context) };
        }
        // SAFETY: counted, and nothing reads it afterwards.
        let context = unsafe { ManuallyDrop::take(&mut self.context) };
        #[cfg(feature = "alloc")]
        match &owner {
            Owner::Queue(of_queue) => {
                return owner::free::<B>(
                    context.raw(),
                    self.block,
                    Some(of_queue),
                    of_queue.serial(),
                    &mut uses,
                );
            }
            Owner::QueueOfContext(serial) => {
                return owner::free::<B>(context.raw(), self.block, None, *serial, &mut uses);
            }
            _ => {}
        }
        let pending = uses.take(context.id());
        match owner {
            #[cfg(feature = "alloc")]
            Owner::Context(serial) if pending.is_empty() => {
                // SAFETY: as in `drop`.
                unsafe { free_now(&context, &self.block, serial) };
            }
            #[cfg(feature = "alloc")]
            Owner::Context(serial) => {
                release_after::<B>(context.raw(), Release::Block(self.block, serial), pending)
            }
            // Without `alloc` every submission waited for its event, so nothing uses any block.
            #[cfg(not(feature = "alloc"))]
            Owner::Context(_) => _ = pending,
            #[cfg(feature = "alloc")]
            Owner::Record(unread) => {
                release_after::<B>(context.raw(), Release::Record(self.block, unread), pending)
            }
            #[cfg(feature = "alloc")]
            Owner::Foreign(Some(owner)) => release_after::<B>(context.raw(), Release::Owner(owner), pending),
            #[cfg(feature = "alloc")]
            Owner::Queue(_) | Owner::QueueOfContext(_) | Owner::Foreign(None) => {}
            Owner::Lent(_) => {}
        }
    }
}

/// Frees the block now.
///
/// # Safety
/// As [`ContextOps::free`].
#[inline]
unsafe fn free_now<B: Backend>(context: &Context<B>, block: &Block, serial: u64) {
    let Ok(_entered) = context.shared().ask() else { return };
    // SAFETY: the caller's promise.
    let free = || unsafe { context.raw().free(block) };
    let memory_type = MemoryType::of(block.kind);
    context.shared().free(memory_type, Some((block, serial)), block.size, free);
}
