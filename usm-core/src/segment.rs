//! Larger memory of a pool, and the ledger's part of the blocks that it lends: statistics, queries,
//! history and observer know the blocks as their owners asked for them, and never the segments. The
//! bytes of a segment count against the device's memory. The ledger asks the pool, so that a block
//! comes and goes without the ledger's lock. For usm-pool; no part of the interface.

use alloc::sync::Weak;
use core::alloc::Layout;
use core::mem;
use core::ptr::NonNull;

use crate::backend::{Backend, Block, ContextOps, PointerInfo};
use crate::context::Context;
use crate::context_state::{ContextState, EntryGuard};
use crate::deferred::{Release, release_after};
use crate::error::Result;
use crate::history::Operation;
use crate::limits::Fallback;
use crate::pending::Pending;
use crate::{AllocKind, MemoryType};

pub use crate::lending::{Flow, Holding, Lending};

/// Memory of a context that only its pool knows.
#[derive(Debug)]
pub struct Segment<B: Backend> {
    context: Context<B>,
    block: Block,
}

impl<B: Backend> Segment<B> {
    /// Allocates memory within the limits of the device.
    ///
    /// # Errors
    /// The limits' or the runtime's.
    pub fn allocate(context: &Context<B>, kind: AllocKind, layout: Layout) -> Result<Self> {
        let _entered = context.shared().work()?;
        let memory_type = MemoryType::try_from(kind)?;
        context.reserve(memory_type, layout.size(), Fallback::Refuse)?;
        let allocate = || context.raw().allocate(kind, layout);
        let outcome = match allocate() {
            // Other pools of the device may hold what the runtime lacks.
            Err(error) if context.trim_for(&error) => allocate(),
            outcome => outcome,
        };
        match outcome {
            Ok(pointer) => {
                let block = Block { pointer, size: layout.size(), alignment: layout.align(), kind };
                #[cfg(any(usm_valgrind, usm_asan))]
                crate::sync::checker::hide(block.pointer.as_ptr(), block.size);
                Ok(Self { context: context.clone(), block })
            }
            Err(error) => {
                context.shared().unreserve(memory_type, layout.size());
                Err(error.in_backend(context.info().backend))
            }
        }
    }

    /// The memory.
    #[must_use]
    pub fn block(&self) -> &Block {
        &self.block
    }

    /// Frees the memory once these operations are complete. All blocks are back.
    pub fn free_after(self, uses: Pending<B>) {
        // SAFETY: a copy of an original that is forgotten.
        let context = unsafe { core::ptr::read(&self.context) };
        let block = self.block;
        #[cfg(any(usm_valgrind, usm_asan))]
        crate::sync::checker::show(block.pointer.as_ptr(), block.size, !uses.is_empty());
        mem::forget(self);
        release_after::<B>(context.raw(), Release::Removed(block), uses);
    }
}

impl<B: Backend> Drop for Segment<B> {
    fn drop(&mut self) {
        #[cfg(any(usm_valgrind, usm_asan))]
        crate::sync::checker::show(self.block.pointer.as_ptr(), self.block.size, false);
        release_after::<B>(self.context.raw(), Release::Removed(self.block), Pending::none());
    }
}

/// Makes a pool known to the ledger of its device, until it ends.
pub fn register<B: Backend>(context: &Context<B>, pool: Weak<dyn Lending>) {
    context.shared().register_pool(pool);
}

/// Adds a pool's differences to the statistics.
pub fn report<B: Backend>(context: &Context<B>, kind: AllocKind, flow: &Flow) {
    context.shared().report_pool(MemoryType::of(kind), flow);
}

/// Describes a block of a pool.
#[must_use]
pub fn describe<B: Backend>(context: &Context<B>, block: &Block) -> PointerInfo {
    context.shared().describe(block)
}

/// What the state of a context asks of each block of a pool, without a call of an erased backend.
#[allow(missing_debug_implementations, reason = "a pointer")]
pub struct Watch(NonNull<ContextState>);

// SAFETY: a shared reference in effect, to a value that threads share.
unsafe impl Send for Watch {}
// SAFETY: as above.
unsafe impl Sync for Watch {}

impl Watch {
    /// # Safety
    /// The context lives as long as the result is used.
    #[must_use]
    pub unsafe fn new<B: Backend>(context: &Context<B>) -> Self {
        Self(NonNull::from(context.shared()))
    }

    #[inline(always)]
    fn state(&self) -> &ContextState {
        // SAFETY: the promise of `new`; a context keeps its state at one place.
        unsafe { self.0.as_ref() }
    }

    /// Whether an allocation that calls no driver may begin, and nobody records it: not in a child
    /// of a process with an open runtime, and not once that runtime is being taken apart.
    #[inline(always)]
    #[must_use]
    pub fn may_begin(&self) -> bool {
        let state = self.state();
        !state.is_watched() && state.may_begin()
    }

    /// Whether allocations and frees are recorded, by a history or an observer.
    #[inline]
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.state().is_watched()
    }

    /// Whether a free is recorded, or may have to be told to another process.
    #[inline(always)]
    #[must_use]
    pub fn watches_frees(&self) -> bool {
        self.state().history().watches_frees()
    }

    /// Tells other processes that these bytes end. Call it before they can be reused.
    pub fn end_exports(&self, block: &Block) {
        self.state().end_exports(block.address(), block.size);
    }
}

/// Tells history and observer of an allocation, once the block has an owner: an observer may panic.
#[cold]
pub fn record_allocation<B: Backend>(context: &Context<B>, block: &Block) {
    context.shared().record_lent(Operation::Allocate, block);
}

/// Tells history and observer of a free, before the address may be recorded again. Observers may
/// panic.
#[cold]
pub fn record_free<B: Backend>(context: &Context<B>, block: &Block) {
    context.shared().record_lent(Operation::Free, block);
}

/// Tells history and observer of a refusal.
pub fn record_refusal<B: Backend>(context: &Context<B>, kind: AllocKind, bytes: usize) {
    if let Ok(memory_type) = MemoryType::try_from(kind) {
        context.shared().record_refusal(memory_type, bytes);
    }
}

/// Whether the context may start anything new.
///
/// # Errors
/// [`ErrorKind::Forked`](crate::ErrorKind::Forked) and
/// [`ErrorKind::ProcessEnds`](crate::ErrorKind::ProcessEnds).
#[inline]
pub fn admit<B: Backend>(context: &Context<B>) -> Result<Admitted> {
    context.shared().work().map(Admitted)
}

/// While this lives, the runtime is open.
#[must_use = "the runtime may be taken apart as soon as it is dropped"]
#[allow(dead_code, reason = "kept for its drop")]
#[allow(missing_debug_implementations, reason = "only held")]
pub struct Admitted(EntryGuard);
