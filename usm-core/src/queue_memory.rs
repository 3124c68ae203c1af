//! Memory from a queue: device memory that is allocated and freed in the queue's order, where the runtime does that.
//!
//! A queue is a [`MemorySource`]: whatever takes a source takes a queue. Nothing waits for the device, neither here nor in the drop of what was
//! allocated, and memory whose free comes before in the queue is given out again. Where the device has no such thing ([`DeviceInfo::queue_memory`]),
//! and for the other kinds, the same program gets memory of the queue's context.
//!
//! # Why this is sound
//!
//! - The allocation is recorded as a write by its queue, with an event. So the first use by another queue, or by the same one if that is out of
//!   order, starts after it, and a later use follows the first; the same in-order queue needs no event. [`Pending`](crate::Pending) of the
//!   memory has the event too, and so have those who carve parts from it.
//! - The free is submitted by the drop of the one owner, so no use is submitted after it. It is given the events of all uses but those by the same
//!   in-order queue, which come before it there. The owner holds the queue: dropping the queue first changes nothing.
//! - The address may be given out again as soon as the free is submitted, to memory whose first use is ordered after it. The registry
//!   then has an entry with a later number, which the old owner does not touch; that owner is the only one who may still name the old
//!   memory, and it is being dropped.
//! - A free that is refused leaves the block as it was. It waits in the [`Deferred`](crate::Deferred) list for all its uses, the allocation among
//!   them, and goes by [`Backend::free`]. Uses that failed never end there, and the block is leaked and counted, as always.
//! - Only the owner's drop frees. Who forgets it leaks it; an [`Event`](crate::Event) forgotten, or dropped, takes no use out of the list.
//!
//! # In the books
//!
//! Memory from a queue leaves statistics, history and registry when its owner is dropped, on every backend, whether or not the runtime has it back
//! then: the same program has the same numbers everywhere, at every moment. Against the memory's size its bytes count until they are back in the
//! runtime's hands, which with queue order is when the free was submitted.
//!
//! [`DeviceInfo::queue_memory`]: crate::DeviceInfo::queue_memory

use crate::allocation::Allocation;
use crate::backend::Backend;
use crate::context::Context;
use crate::error::Result;
use crate::queue::Queue;
use crate::source::{MemorySource, Request};

/// Device memory in the order of the queue where [`DeviceInfo::queue_memory`](crate::DeviceInfo::queue_memory) says so, memory of the
/// queue's context otherwise. The allocation may be used by every queue of the context, and outlives this one.
///
/// ```
/// use usm_core::backend::mock::Mock;
/// use usm_core::{Device, QueueOrder, UsmVec};
///
/// let context = Mock::default().context();
/// let queue = context.queue(QueueOrder::InOrder)?;
/// let first = UsmVec::<u32, Device, _>::zeroed_in(&queue, &queue, 64)?;
/// let address = first.as_ptr();
/// drop(first); // in flight: freed in the order of the queue
/// let second = UsmVec::<u32, Device, _>::zeroed_in(&queue, &queue, 64)?;
/// assert_eq!(second.as_ptr(), address); // before anything has run
/// assert_eq!(second.to_vec(&queue)?, [0; 64]);
/// # Ok::<(), usm_core::Error>(())
/// ```
impl<B: Backend> MemorySource<B> for Queue<B> {
    /// Nothing waits; the memory has no content yet.
    ///
    /// # Errors
    /// As of [`Context`].
    fn allocate(&self, request: &Request) -> Result<Allocation<B>> {
        #[cfg(feature = "alloc")]
        if request.kind == crate::AllocKind::Device && !B::SYNCHRONOUS {
            return ordered::allocate(self, request);
        }
        self.context().allocate(request)
    }

    fn context(&self) -> &Context<B> {
        self.context()
    }
}

#[cfg(feature = "alloc")]
pub(crate) mod ordered {
    use alloc::vec::Vec;
    use core::alloc::Layout;

    use super::*;
    use crate::access::Access;
    use crate::allocation::settle;
    use crate::backend::{Block, QueueMemory};
    use crate::deferred::Release;
    use crate::error::{Error, ErrorKind};
    use crate::uses::Uses;
    use crate::{AllocKind, MemoryType};

    /// How memory from a queue goes back.
    pub(crate) struct OfQueue<B: Backend> {
        queue: B::Queue,
        /// Of the queue, 0 when out of order: see [`Uses`].
        id: u64,
        /// Number of the block in the books.
        serial: u64,
        /// Whether the runtime allocated it in order, and so takes it back.
        native: bool,
    }

    pub(super) fn allocate<B: Backend>(queue: &Queue<B>, request: &Request) -> Result<Allocation<B>> {
        let context = queue.context();
        let of_queue =
            |serial, native| OfQueue { queue: queue.raw().clone(), id: queue.id(), serial, native };
        if context.info().queue_memory {
            let layout = request.layout()?;
            let memory_type = context.reserve(MemoryType::UsmDevice, layout.size(), request.fallback)?;
            if memory_type != MemoryType::UsmDevice {
                let kind = memory_type.kind().unwrap_or(request.kind);
                return context.allocate(&Request { kind, ..*request });
            }
            match native(queue, layout) {
                Ok((block, event)) => {
                    let serial = context.shared().allocated(&block, B::COUNTED);
                    let allocation = Allocation::of_queue(context.counted(), block, of_queue(serial, true));
                    // As a write: whoever uses it from elsewhere starts after it.
                    allocation.uses().record(Access::Write, queue.id(), event, 0);
                    return Ok(allocation);
                }
                Err(error) => {
                    context.shared().unreserve(memory_type, layout.size());
                    // The device has it, this memory or this driver has not.
                    if !matches!(error.kind, ErrorKind::Unsupported { .. }) {
                        return Err(error.in_backend(context.info().backend));
                    }
                }
            }
        }
        let allocation = MemorySource::allocate(context, request)?;
        Ok(match allocation.kind() {
            AllocKind::Device => allocation.into_of_queue(|serial| of_queue(serial, false)),
            _ => allocation,
        })
    }

    fn native<B: Backend>(
        queue: &Queue<B>,
        layout: Layout,
    ) -> core::result::Result<(Block, B::Event), Error> {
        queue.context().collect();
        let (pointer, event) = B::QueueMemory::allocate(queue.raw(), layout)?;
        let (size, alignment) = (layout.size(), layout.align());
        Ok((Block { pointer, size, alignment, kind: AllocKind::Device }, event))
    }

    /// Gives the block back behind its uses.
    pub(crate) fn free<B: Backend>(
        context: &Context<B>,
        block: Block,
        of_queue: &OfQueue<B>,
        uses: &mut Uses<B>,
    ) {
        let (shared, memory_type) = (context.shared(), MemoryType::of(block.kind));
        let mut after = Vec::new();
        let submit = || {
            if !of_queue.native {
                return false;
            }
            let _ = uses.dependencies(Access::Write, of_queue.id, &mut after);
            // SAFETY: allocated in order, and its one owner is being dropped: freed once, and nobody submits a use any more. Those that were
            // submitted are known to `uses`; what it leaves out was submitted to this in-order queue before.
            unsafe { B::QueueMemory::free(&of_queue.queue, &block, &after) }.is_ok()
        };
        if !shared.retire(memory_type, &block, of_queue.serial, submit) {
            settle(context, Release::Retired(block), uses.take());
        }
    }
}
