//! Memory from a queue: device memory that the runtime allocates and frees in the queue's order, if
//! it can.
//!
//! A queue is a [`MemorySource`]: every function that takes a source takes a queue. No call waits
//! for the device, the drop included, and memory whose free comes earlier in the queue is given out
//! again. If the device lacks this ([`DeviceInfo::queue_memory`]), and for the other kinds, the
//! same program gets memory of the queue's context.
//!
//! # Why this is sound
//!
//! - The allocation is recorded as a write by its queue, with an event. So the first use starts
//!   after it, by another queue or by the same one if that is out of order, and later uses follow
//!   the first. The same in-order queue needs no event. [`Pending`](crate::Pending) of the memory
//!   has the event too, and so does every part carved from it.
//! - The drop of the one owner submits the free, so no use is submitted after it. The free waits
//!   for all uses but those of the same in-order queue, which come before it there. The owner holds
//!   the queue: dropping the queue first changes nothing.
//! - The runtime may give the address out again as soon as the free is submitted, to memory whose
//!   first use is ordered after it. The registry then has a block with a later serial number, which
//!   the old owner does not touch. Only that owner may still name the old memory, and it is being
//!   dropped.
//! - A refused free leaves the block as it was. The block waits in the
//!   [`Deferred`](crate::Deferred) list for all its uses, the allocation among them, and
//!   [`ContextOps::free`](crate::backend::ContextOps::free) frees it. Uses that failed are never
//!   complete, so the block is leaked and counted, as always.
//! - Both are work on the device, so neither is submitted while a host view forbids that
//!   (`gate.rs`). The allocation then takes memory of the context. The free counts as refused; the
//!   view has waited for all work, so the uses are mostly complete.
//! - Only the owner's drop frees. A forgotten owner is a leak. A forgotten or dropped
//!   [`Event`](crate::Event) takes no use out of the list.
//!
//! # In the ledger
//!
//! On every backend, memory from a queue leaves statistics, history and registry when its owner is
//! dropped, whether or not the runtime has it back by then: the same program has the same numbers
//! everywhere, at every moment. Its bytes count against the memory's size until the runtime has
//! them back, which with queue order is when the free was submitted.
//!
//! [`DeviceInfo::queue_memory`]: crate::DeviceInfo::queue_memory

use crate::allocation::Allocation;
use crate::backend::Backend;
use crate::context::Context;
use crate::error::Result;
use crate::queue::Queue;
use crate::source::{MemorySource, Request};

/// Device memory in the order of the queue if
/// [`DeviceInfo::queue_memory`](crate::DeviceInfo::queue_memory) is true. Otherwise, and while a
/// host view forbids work on the device, memory of the queue's context. Every queue of the context
/// may use the allocation, which outlives this queue.
///
/// ```
/// # #[cfg(feature = "mock")] {
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
/// # }
/// # Ok::<(), usm_core::Error>(())
/// ```
impl<B: Backend> MemorySource<B> for Queue<B> {
    /// Does not wait; the memory has no content yet.
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
pub(crate) mod owner;

#[cfg(feature = "alloc")]
mod ordered {
    use core::alloc::Layout;
    use core::slice;

    use super::owner::OfQueue;
    use super::*;
    use crate::access::Access;
    use crate::backend::{Block, QueueMemory};
    use crate::deferred::{Release, release_after};
    use crate::error::{Error, ErrorKind};
    use crate::pending::{Pending, Position};
    use crate::uses::Uses;
    use crate::{AllocKind, MemoryType};

    pub(super) fn allocate<B: Backend>(queue: &Queue<B>, request: &Request) -> Result<Allocation<B>> {
        let (context, shared) = (queue.context(), queue.context().shared());
        if !shared.info().queue_memory {
            return allocate_from_context(queue, request);
        }
        let layout = request.layout()?;
        if !shared.needs_no_reservation(layout.size()) || shared.is_watched() {
            return allocate_reserved(queue, request, layout);
        }
        context.collect();
        let ((block, event), position) = match native(queue, layout) {
            Ok(allocation) => allocation,
            Err(error) => return allocate_after_refusal(queue, request, error),
        };
        if let Some(serial) = shared.allocated_within(&block) {
            return Ok(allocated(queue, block, serial, event, position));
        }
        give_back(queue, block, event);
        // Other threads took the rest of the memory.
        allocate_reserved(queue, request, layout)
    }

    /// Reserves the bytes before asking the runtime.
    #[cold]
    fn allocate_reserved<B: Backend>(
        queue: &Queue<B>,
        request: &Request,
        layout: Layout,
    ) -> Result<Allocation<B>> {
        let context = queue.context();
        let memory_type = context.reserve(MemoryType::UsmDevice, layout.size(), request.fallback)?;
        if memory_type != MemoryType::UsmDevice {
            let kind = memory_type.kind().unwrap_or(request.kind);
            return context.allocate(&Request { kind, ..*request });
        }
        match native(queue, layout) {
            Ok(((block, event), position)) => {
                let (serial, record) = context.shared().allocated(&block);
                let allocation = allocated(queue, block, serial, event, position);
                context.shared().record_allocation(record);
                Ok(allocation)
            }
            Err(error) => {
                context.shared().unreserve(memory_type, layout.size());
                allocate_after_refusal(queue, request, error)
            }
        }
    }

    #[inline]
    #[allow(clippy::type_complexity, reason = "one caller takes it apart")]
    fn native<B: Backend>(queue: &Queue<B>, layout: Layout) -> Result<((Block, B::Event), Position)> {
        let _gate = queue.context().shared().submit()?;
        let ((pointer, event), position) =
            queue.clock().position(|| B::QueueMemory::allocate(queue.raw(), layout))?;
        let (size, alignment) = (layout.size(), layout.align());
        Ok(((Block { pointer, size, alignment, kind: AllocKind::Device }, event), position))
    }

    /// The ledger has the block.
    #[inline]
    fn allocated<B: Backend>(
        queue: &Queue<B>,
        block: Block,
        serial: u64,
        event: B::Event,
        position: Position,
    ) -> Allocation<B> {
        // Recorded as a write: uses from other queues start after it.
        let uses = Uses::with_first_use(Access::Write, position, event);
        Allocation::of_queue(
            queue.context().clone(),
            block,
            uses,
            OfQueue::new(queue.raw().clone(), queue.id(), serial),
        )
    }

    #[cold]
    fn allocate_after_refusal<B: Backend>(
        queue: &Queue<B>,
        request: &Request,
        error: Error,
    ) -> Result<Allocation<B>> {
        // The device has queue memory, but this kind or this driver does not, or a host view
        // forbids work now.
        if matches!(error.kind, ErrorKind::Unsupported { .. } | ErrorKind::HostViewLive { .. }) {
            return allocate_from_context(queue, request);
        }
        Err(error.in_backend(queue.context().info().backend))
    }

    /// Memory of the context that leaves the ledger like memory of the queue.
    fn allocate_from_context<B: Backend>(queue: &Queue<B>, request: &Request) -> Result<Allocation<B>> {
        let allocation = MemorySource::allocate(queue.context(), request)?;
        Ok(match allocation.kind() {
            AllocKind::Device => allocation.into_of_queue(),
            _ => allocation,
        })
    }

    /// A block that the ledger has no room for.
    #[cold]
    fn give_back<B: Backend>(queue: &Queue<B>, block: Block, event: B::Event) {
        let (context, memory_type) = (queue.context(), MemoryType::of(block.kind));
        // The runtime may refuse; the bytes count until it has them.
        context.shared().reserve_unchecked(memory_type, block.size);
        let free = |after: &[_]| {
            let _gate = context.shared().submit()?;
            // SAFETY: just allocated in order, not known to any other code, and its one use is its
            // allocation.
            unsafe { B::QueueMemory::free(queue.raw(), &block, after) }
        };
        match free(slice::from_ref(&event)) {
            Ok(()) => context.shared().unreserve(memory_type, block.size),
            Err(_) => release_after::<B>(
                context.raw(),
                Release::Removed(block),
                Pending::of_events(context.id(), [event]),
            ),
        }
    }

    #[cfg(all(test, feature = "mock"))]
    mod tests {
        use super::*;
        use crate::backend::mock::{Fault, Mock, Operation, Progress};
        use crate::{Fallback, QueueOrder};

        /// A view may begin between the allocation and its free.
        #[test]
        fn the_free_of_a_block_without_room_waits_for_no_view() {
            let mock = Mock::new(Progress::OnWait).without_concurrent_access();
            let context = mock.context();
            let queue = context.queue(QueueOrder::InOrder).expect("a queue");
            let array = crate::UsmVec::<u8, crate::Shared, _>::zeroed(&queue, 8).expect("an array");
            let layout = Layout::from_size_align(256, 64).expect("a layout");
            let ((block, event), _) = native(&queue, layout).expect("memory");
            let view = array.read().expect("a view");
            give_back(&queue, block, event);
            assert!(!mock.calls().iter().any(|call| call.operation == Operation::FreeInOrder));
            assert_eq!((mock.live_blocks(), context.deferred_frees(), view.len()), (1, 0, 8));
            drop(view);
            assert_eq!(mock.violations(), []);
        }

        /// Refused or not, the block was in no statistics, and its bytes count until the runtime
        /// takes it back.
        #[test]
        fn a_block_without_room_returns_to_the_runtime() {
            for refuses in [false, true] {
                let all_at_once = |info: &mut crate::DeviceInfo| info.max_alloc_size = info.global_mem_size;
                let mock = Mock::new(Progress::Manual).with_device(all_at_once);
                let context = mock.context();
                let queue = context.queue(QueueOrder::InOrder).expect("a queue");
                let layout = Layout::from_size_align(256, 64).expect("a layout");
                let ((block, event), _) = native(&queue, layout).expect("memory");
                if refuses {
                    let error = Error::from(ErrorKind::Native { operation: "the driver's call" });
                    mock.inject(Fault { operation: Operation::FreeInOrder, skip: 0, error, late: false });
                }
                give_back(&queue, block, event);
                let in_use = || {
                    let (shared, all) = (context.shared(), context.info().global_mem_size as usize);
                    let placed = shared.reserve(MemoryType::UsmDevice, all, Fallback::Refuse);
                    if let Err(Error { kind: ErrorKind::OverMemory { in_use, .. }, .. }) = placed {
                        return in_use;
                    }
                    shared.unreserve(placed.expect("the whole memory"), all);
                    0
                };
                assert_eq!((context.deferred_frees(), in_use()), if refuses { (1, 256) } else { (0, 0) });
                mock.finish();
                context.collect();
                assert_eq!((mock.live_blocks(), mock.violations(), in_use()), (0, alloc::vec![], 0));
                assert_eq!(context.stats().sum.count, 0);
            }
        }
    }
}
