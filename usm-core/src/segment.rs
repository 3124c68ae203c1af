//! Larger memory of a pool, and the ledger's part of the blocks that it lends: statistics,
//! registry, history and observer know the blocks as their owners asked for them, and never the
//! segments. The bytes of a segment count against the device's memory. For usm-pool; no part of the
//! interface.

use core::alloc::Layout;
use core::mem;

use crate::allocation::release_after;
use crate::backend::{Backend, Block, ContextOps};
use crate::context::Context;
use crate::context_state::Unrecorded;
use crate::deferred::Release;
use crate::error::Result;
use crate::limits::Fallback;
use crate::pending::Pending;
use crate::{AllocKind, MemoryType};

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
        match context.raw().allocate(kind, layout) {
            Ok(pointer) => {
                let block = Block { pointer, size: layout.size(), alignment: layout.align(), kind };
                #[cfg(usm_valgrind)]
                crate::sync::memcheck::without_values(block.pointer.as_ptr(), block.size);
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
        mem::forget(self);
        release_after(&context, Release::Removed(block), uses);
    }
}

impl<B: Backend> Drop for Segment<B> {
    fn drop(&mut self) {
        release_after(&self.context, Release::Removed(self.block), Pending::none());
    }
}

/// A block that entered the ledger and is not recorded yet.
#[must_use = "the history has a record of every allocation"]
#[allow(missing_debug_implementations, reason = "only passed on")]
pub struct Entry {
    serial: u64,
    made: Unrecorded,
}

impl Entry {
    /// Enters a block that is lent next.
    #[inline]
    pub fn new<B: Backend>(context: &Context<B>, block: &Block) -> Self {
        let (serial, made) = context.shared().count_lent_block(block);
        Self { serial, made }
    }

    /// Number of the block in the ledger, for [`leave`].
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Tells history and observer, once the block has an owner: an observer may panic.
    #[inline]
    pub fn record<B: Backend>(self, context: &Context<B>) {
        context.shared().record_allocation(self.made);
    }
}

/// Tells history and observer of a refusal.
pub fn record_refusal<B: Backend>(context: &Context<B>, kind: AllocKind, bytes: usize) {
    if let Ok(memory_type) = MemoryType::try_from(kind) {
        context.shared().record_refusal(memory_type, bytes);
    }
}

/// Takes a block that came back out of the ledger. Observers may panic.
#[inline]
pub fn leave<B: Backend>(context: &Context<B>, block: &Block, serial: u64) {
    context.shared().remove_lent_block(block, serial);
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
pub struct Admitted(crate::context_state::Entered);
