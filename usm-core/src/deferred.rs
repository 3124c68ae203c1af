//! Blocks whose owner was dropped while the device still uses them. They are freed once their
//! events are complete, not before.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::Any;
use core::fmt;
use core::time::Duration;

use crate::MemoryType;
use crate::after::After;
use crate::backend::{Backend, Block, Buffers, ContextOps};
use crate::context_state::ContextState;
#[cfg(feature = "driver")]
use crate::context_state::RING_SERIAL;
use crate::deadline::Deadline;
use crate::outcome::Outcome;
use crate::pending::Pending;
#[cfg(feature = "driver")]
use crate::ring::idle::{Idle, Ring};

/// Memory to release once the events are complete.
pub(crate) enum Release<B: Backend> {
    /// A block of the backend, with its serial number in the ledger.
    Block(Block, u64),
    /// The same for the record of an operation, which is read first.
    Record(Block, Box<Unread<B>>),
    /// A block of the backend that has left the ledger; its bytes still count as in use.
    Removed(Block),
    /// A buffer of the backend, with its bytes if the ledger counts it.
    Buffer(<B::Buffers as Buffers<B>>::Raw, Option<usize>),
    /// The owner of foreign memory.
    Owner(Box<dyn Any + Send + Sync>),
}

/// What it takes to read the record of an operation.
pub(crate) struct Unread<B: Backend> {
    /// Serial number of its block in the ledger.
    pub(crate) serial: u64,
    pub(crate) outcome: Arc<Outcome>,
    /// Reads the record and frees its block, which nothing uses. A pointer, because reading takes a
    /// queue and an array, and both lie above this list.
    pub(crate) read: unsafe fn(&B::Context, Block, Box<Self>),
}

/// The list of one context. A backend with asynchronous operations keeps one beside its native
/// context and calls [`drain`](Self::drain) before it destroys that.
pub struct Deferred<B: Backend>(
    After<Release<B>, B::Event>,
    /// The pinned blocks of the context that wait for the next copy.
    #[cfg(feature = "driver")]
    Ring<B>,
);

impl<B: Backend> fmt::Debug for Deferred<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferred").field("entries", &self.len()).finish()
    }
}

impl<B: Backend> Default for Deferred<B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Backend> Deferred<B> {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self(
            After::new(),
            #[cfg(feature = "driver")]
            Ring::new(),
        )
    }

    /// Blocks that still wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(feature = "driver")]
    pub(crate) fn ring(&self) -> &Ring<B> {
        &self.1
    }

    pub(crate) fn push(&self, pending: Pending<B>, release: Release<B>) {
        self.0.push(release, pending.into_events());
    }

    /// Frees blocks whose events are complete; never blocks.
    #[inline]
    pub(crate) fn collect(&self, context: &B::Context) {
        if !self.is_empty() {
            self.collect_finished(context);
        }
    }

    #[cold]
    fn collect_finished(&self, context: &B::Context) {
        let Ok(_entered) = context.shared().ask() else { return };
        // SAFETY: the block was handed over by its owner, and all its events are complete.
        self.0.collect(|what| unsafe { release(context, what) });
    }

    /// Waits for all events, at most `limit` in all, and passes each block to `free` or `destroy`.
    /// Leaks and counts the blocks that stay in use: freeing memory that a device still writes
    /// would be worse.
    ///
    /// For the `Drop` of a backend's context, which has no `B::Context` any more.
    ///
    /// # Safety
    /// `shared` is the state of the context that owns this list. `free` and `destroy` give each
    /// block back to that context; nothing uses it any more.
    ///
    /// # Panics
    /// If an owner of foreign memory panics in its drop. The entries after it are leaked and
    /// counted.
    pub unsafe fn drain(
        &self,
        shared: &ContextState,
        limit: Duration,
        mut free: impl FnMut(&Block),
        mut destroy: impl FnMut(<B::Buffers as Buffers<B>>::Raw),
    ) {
        // Memory does not return to a closed runtime. A thread that has ended may have left its
        // list locked.
        let Ok(_entered) = shared.ask() else { return };
        #[cfg(feature = "driver")]
        for Idle { block, events } in self.1.take_all() {
            self.0.push(Release::Block(block, RING_SERIAL), events);
        }
        // Leaked blocks end with the native context.
        shared.end_exports(0, usize::MAX);
        let give_back = |what| release_with(shared, what, &mut free, &mut destroy);
        self.0.drain(&mut Deadline::after(limit), give_back, |_leaked| shared.count_leak());
    }
}

/// Releases at once if nothing is pending, otherwise once the events are complete.
pub(crate) fn release_after<B: Backend>(context: &B::Context, what: Release<B>, pending: Pending<B>) {
    let Ok(_entered) = context.shared().ask() else {
        // The runtime is closed.
        core::mem::forget(what);
        return;
    };
    if pending.is_done() {
        // SAFETY: the owner is being dropped, so no other code releases it, and nothing uses it any
        // more.
        unsafe { release(context, what) };
    } else if let Some(deferred) = context.deferred() {
        deferred.push(pending, what);
    } else {
        // A backend without a list has no pending work. If it has some, leaking is safe.
        context.shared().count_leak();
        core::mem::forget(what);
    }
}

/// # Safety
/// No operation uses the memory, and no other code releases it.
unsafe fn release<B: Backend>(context: &B::Context, what: Release<B>) {
    if let Release::Record(block, unread) = what {
        let read = unread.read;
        // SAFETY: the caller's promise.
        return unsafe { read(context, block, unread) };
    }
    release_with(
        context.shared(),
        what,
        // SAFETY: the caller's promise.
        |block| unsafe { context.free(block) },
        // SAFETY: the caller's promise.
        |raw| unsafe { B::Buffers::destroy(context, raw) },
    );
}

fn release_with<B: Backend>(
    shared: &ContextState,
    what: Release<B>,
    mut free: impl FnMut(&Block),
    mut destroy: impl FnMut(<B::Buffers as Buffers<B>>::Raw),
) {
    let mut free_counted = |block: Block, serial| {
        let memory_type = MemoryType::of(block.kind);
        shared.free(memory_type, Some((&block, serial)), block.size, || free(&block));
    };
    match what {
        Release::Block(block, serial) => free_counted(block, serial),
        Release::Record(block, unread) => free_counted(block, unread.serial),
        Release::Removed(block) => {
            free(&block);
            shared.unreserve(MemoryType::of(block.kind), block.size);
        }
        Release::Buffer(raw, Some(bytes)) => {
            shared.free(MemoryType::Buffer, None, bytes, || destroy(raw));
        }
        Release::Buffer(raw, None) => destroy(raw),
        Release::Owner(owner) => drop(owner),
    }
}
