//! The end of memory from a queue.

use crate::MemoryType;
use crate::backend::{Backend, Block, ContextOps as _, QueueMemory};
use crate::deferred::{Release, release_after};
use crate::uses::Uses;

/// How memory from a queue is freed.
pub(crate) struct OfQueue<B: Backend> {
    queue: B::Queue,
    /// Id of the queue, 0 when out of order: see [`Uses`].
    id: u64,
    /// Serial number of the block in the ledger.
    serial: u64,
}

impl<B: Backend> OfQueue<B> {
    pub(super) fn new(queue: B::Queue, id: u64, serial: u64) -> Self {
        Self { queue, id, serial }
    }

    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }
}

/// Frees the block after its uses. Only memory that the runtime allocated in order goes back in
/// order (`of_queue`).
pub(crate) fn free<B: Backend>(
    context: &B::Context,
    block: Block,
    of_queue: Option<&OfQueue<B>>,
    serial: u64,
    uses: &mut Uses<B>,
) {
    let submit = || {
        let (Some(OfQueue { queue, id, .. }), Ok(_admitted)) = (of_queue, context.shared().submit()) else {
            return false;
        };
        // SAFETY: allocated in order, and its one owner is being dropped: freed once, and no
        // use is submitted any more. `uses` knows the submitted ones, except those submitted
        // earlier to this in-order queue.
        let free = |after: &[_]| unsafe { B::QueueMemory::free(queue, &block, after) };
        uses.with_events_of_others(*id, free).is_ok()
    };
    let memory_type = MemoryType::of(block.kind);
    if !context.shared().remove(memory_type, &block, serial, submit) {
        release_after::<B>(context, Release::Removed(block), uses.take(context.shared().id()));
    }
}
