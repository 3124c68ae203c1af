//! The ledger entries of a context: reservations, live blocks, and their history.

use super::ContextState;
use crate::MemoryType;
use crate::backend::Block;
#[cfg(feature = "alloc")]
use crate::backend::PointerInfo;
use crate::error::Result;
use crate::history::{Operation, Record, now};
#[cfg(feature = "alloc")]
use crate::ipc::life;
use crate::ledger::{Amount, CurrentAndPeak};
#[cfg(feature = "alloc")]
use crate::lending::{Flow, Lending};
use crate::limits::{self, Fallback};
#[cfg(feature = "alloc")]
use alloc::sync::Weak;

/// In place of a serial number: the block is one of the ring, which is counted apart. The ledger
/// begins at 1.
#[cfg(feature = "driver")]
pub(crate) const RING_SERIAL: u64 = 0;

impl ContextState {
    /// The live block of this context that contains `address`.
    #[cfg(feature = "alloc")]
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn find(&self, address: usize) -> Option<PointerInfo> {
        self.ledger.find(self.entry, address)
    }

    /// The addresses of the segment of a pool of this context that contains the address, live or
    /// not.
    #[cfg(feature = "alloc")]
    pub(crate) fn segment_of_pool(&self, address: usize) -> Option<core::ops::Range<usize>> {
        self.ledger.segment_of_pool(self.entry, address)
    }

    /// Whether an allocation is so small, compared with the free memory, that its bytes need no
    /// reservation before the driver is asked. Only 64 threads at once could ask for more than
    /// there is, and the limits apply to their results.
    #[inline]
    pub(crate) fn needs_no_reservation(&self, bytes: usize) -> bool {
        let (bytes, in_use) = (bytes as u64, self.ledger.in_use() as u64);
        let left = self.info.global_mem_size.saturating_sub(in_use);
        bytes <= self.info.max_alloc_size && bytes <= left / 64
    }

    /// Applies the limits and reserves the bytes, so that two threads cannot both get the last of
    /// the memory. Call [`unreserve`](Self::unreserve) if the driver then refuses.
    pub(crate) fn reserve(
        &self,
        memory_type: MemoryType,
        bytes: usize,
        fallback: Fallback,
    ) -> Result<MemoryType> {
        self.ledger
            .reserve(bytes, |in_use| limits::place(&self.info, in_use as u64, memory_type, bytes, fallback))
    }

    /// Reserves bytes of memory that already exists, regardless of the limits.
    #[cfg(feature = "alloc")]
    pub(crate) fn reserve_unchecked(&self, memory_type: MemoryType, bytes: usize) {
        let _ = self.ledger.reserve(bytes, |_| Ok(memory_type));
    }

    pub(crate) fn unreserve(&self, memory_type: MemoryType, bytes: usize) {
        if memory_type.on_device() {
            self.ledger.unreserve(bytes);
        }
    }

    /// Whether allocations are recorded. Then they take the way of reserved ones, so that the usual
    /// way carries nothing to record.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.history.is_active()
    }

    /// Counts a block from the driver whose bytes were not reserved, and records nothing. Returns
    /// its serial number, which [`free`](Self::free) takes. Returns `None` and counts nothing if
    /// other threads took the rest of the memory meanwhile.
    #[inline(always)]
    pub(crate) fn allocated_within(&self, block: &Block) -> Option<u64> {
        self.count_block_within(block, Some(self.info.global_mem_size)).map(|(serial, _)| serial)
    }

    /// Counts a block from the driver whose bytes are reserved. Returns its serial number and what
    /// to record once the block has an owner.
    pub(crate) fn allocated(&self, block: &Block) -> (u64, UnrecordedAllocation) {
        // Only unreserved bytes can be refused.
        self.count_block(block, None)
    }

    /// Records a refused request, if there is a history or an observer.
    #[cold]
    pub(crate) fn record_refusal(&self, memory_type: MemoryType, bytes: usize) {
        if self.history.is_active() {
            let row = *self.stats().of(memory_type);
            let amount = Amount { memory_type, bytes };
            self.record(Operation::Refuse, amount, 0, (row.current, row.peak));
        }
    }

    /// The live blocks by address.
    #[cfg(feature = "alloc")]
    pub(crate) fn blocks(&self) -> alloc::vec::Vec<PointerInfo> {
        self.ledger.blocks(self.entry)
    }

    /// Counts a foreign block: it exists, so no limit refuses it.
    pub(crate) fn count_foreign_block(&self, block: &Block) -> (u64, UnrecordedAllocation) {
        // No sum exceeds the address space.
        self.count_block(block, Some(u64::MAX))
    }

    /// As [`count_foreign_block`](Self::count_foreign_block), for a buffer.
    pub(crate) fn count_foreign_buffer(&self, bytes: usize) -> UnrecordedAllocation {
        let _ = self.ledger.reserve(bytes, |_| Ok(MemoryType::Buffer));
        self.count_buffer(bytes)
    }

    /// Counts a buffer whose bytes are reserved.
    pub(crate) fn count_buffer(&self, bytes: usize) -> UnrecordedAllocation {
        let amount = Amount { memory_type: MemoryType::Buffer, bytes };
        UnrecordedAllocation { amount, address: 0, numbers: self.ledger.add_buffer(self.entry, amount) }
    }

    /// Records an allocation that has an owner: an observer that panics drops the owner, which
    /// frees the memory.
    pub(crate) fn record_allocation(&self, allocation: UnrecordedAllocation) {
        self.record(Operation::Allocate, allocation.amount, allocation.address, allocation.numbers);
    }

    fn count_block(&self, block: &Block, limit: Option<u64>) -> (u64, UnrecordedAllocation) {
        let (serial, numbers) = self.count_block_within(block, limit).unwrap_or_default();
        let amount = Amount { memory_type: MemoryType::of(block.kind), bytes: block.size };
        (serial, UnrecordedAllocation { amount, address: block.address(), numbers })
    }

    /// `limit` applies to unreserved bytes.
    #[inline(always)]
    fn count_block_within(&self, block: &Block, limit: Option<u64>) -> Option<(u64, CurrentAndPeak)> {
        let amount = Amount { memory_type: MemoryType::of(block.kind), bytes: block.size };
        let limit = limit.filter(|_| amount.memory_type.on_device());
        #[cfg(feature = "alloc")]
        return self.ledger.add_block(self.entry, amount, limit, self.describe(block));
        #[cfg(not(feature = "alloc"))]
        self.ledger.add_block(self.entry, amount, limit)
    }

    /// Frees memory by `free`, then removes it from the ledger: the bytes that the next allocation
    /// is granted are really free. The runtime may give the address out again before the registry
    /// forgets the block; the serial number tells the two apart.
    #[inline]
    pub(crate) fn free(
        &self,
        memory_type: MemoryType,
        block: Option<(&Block, u64)>,
        bytes: usize,
        free: impl FnOnce(),
    ) {
        #[cfg(feature = "driver")]
        if let Some((_, RING_SERIAL)) = block {
            free();
            return self.ledger.remove_from_ring(self.entry, bytes);
        }
        let amount = Amount { memory_type, bytes };
        let identity = block.map(|(block, serial)| (block.address(), serial));
        if !self.history.watches_frees() {
            free();
            return self.ledger.remove_freed(self.entry, amount, identity);
        }
        self.free_watched(amount, identity, free);
    }

    /// Tells other processes, and records the free before the address can be recorded again.
    #[cold]
    fn free_watched(&self, amount: Amount, identity: Option<(usize, u64)>, free: impl FnOnce()) {
        #[cfg(feature = "alloc")]
        if let Some((address, _)) = identity {
            self.end_exports(address, amount.bytes);
        }
        let numbers = self.ledger.remove(self.entry, amount, identity);
        let mut free = Some(free);
        // Runs also if the observer panics.
        let _free = AtEnd(|| {
            if let Some(free) = free.take() {
                free();
                self.unreserve(amount.memory_type, amount.bytes);
            }
        });
        self.record(Operation::Free, amount, identity.map_or(0, |(address, _)| address), numbers);
    }

    /// A pool of this context, which answers for its blocks.
    #[cfg(feature = "alloc")]
    pub(crate) fn register_pool(&self, pool: Weak<dyn Lending>) {
        self.ledger.register_pool(self.entry, pool);
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn report_pool(&self, memory_type: MemoryType, flow: &Flow) {
        self.ledger.report_pool(self.entry, memory_type, flow);
    }

    /// Returns idle segments of the pools of all contexts of the device. Returns their bytes.
    #[cfg(feature = "alloc")]
    pub(crate) fn trim_pools(&self) -> u64 {
        self.ledger.pools(None).iter().map(|pool| pool.trim()).sum()
    }

    /// Records an event of a block of a pool: before a free and after an allocation is counted.
    #[cfg(feature = "alloc")]
    pub(crate) fn record_lent(&self, operation: Operation, block: &Block) {
        let amount = Amount { memory_type: MemoryType::of(block.kind), bytes: block.size };
        let mut numbers = self.ledger.current_and_peak(self.entry, amount.memory_type);
        if operation == Operation::Free {
            numbers.0 = numbers.0.wrapping_sub(block.size);
        }
        self.record_block(operation, amount, (block.address(), true), numbers);
    }

    /// Removes a block from the ledger in any case. Returns whether `free` freed it; otherwise its
    /// bytes stay in use until [`unreserve`](Self::unreserve).
    #[cfg(feature = "alloc")]
    #[inline]
    pub(crate) fn remove(
        &self,
        memory_type: MemoryType,
        block: &Block,
        serial: u64,
        free: impl FnOnce() -> bool,
    ) -> bool {
        let amount = Amount { memory_type, bytes: block.size };
        let identity = Some((block.address(), serial));
        if self.history.watches_frees() {
            self.end_exports(block.address(), block.size);
            // Records the free before the address can be recorded again.
            let numbers = self.ledger.remove(self.entry, amount, identity);
            let (mut free, mut is_freed) = (Some(free), false);
            // Runs also if the observer panics.
            let end = AtEnd(|| {
                is_freed = free.take().is_some_and(|free| free());
                if is_freed {
                    self.unreserve(memory_type, block.size);
                }
            });
            self.record(Operation::Free, amount, block.address(), numbers);
            drop(end);
            return is_freed;
        }
        let is_freed = free();
        match is_freed {
            true => self.ledger.remove_freed(self.entry, amount, identity),
            false => _ = self.ledger.remove(self.entry, amount, identity),
        }
        is_freed
    }

    /// The name of the sign of life of these bytes of this context, for handles of other processes.
    #[cfg(feature = "alloc")]
    pub(crate) fn begin_export(&self, address: usize, bytes: usize) -> Result<life::Name> {
        life::begin(self.id, address..address.saturating_add(bytes), &self.history)
    }

    /// Tells other processes that these bytes end. Call it before they can be reused.
    #[cfg(feature = "alloc")]
    #[inline]
    pub(crate) fn end_exports(&self, address: usize, bytes: usize) {
        if self.history.has_exports() {
            life::end(self.id, address..address.saturating_add(bytes), &self.history);
        }
    }

    /// Counts a block of the ring, whose serial number is [`RING_SERIAL`].
    #[cfg(feature = "driver")]
    pub(crate) fn count_ring_block(&self, bytes: usize) {
        self.ledger.add_to_ring(self.entry, bytes);
    }

    /// Counts a block that the ring did not get.
    #[cfg(feature = "driver")]
    pub(crate) fn count_ring_refusal(&self) {
        self.ledger.refuse_ring(self.entry);
    }

    /// Counts a block that could not be freed safely; its bytes stay in use.
    #[cfg(feature = "alloc")]
    pub(crate) fn count_leak(&self) {
        self.ledger.leaked(self.entry);
    }

    /// As `count_leak`, for backends, but the bytes leave use as those of a freed block. It is
    /// unsafe because every program can reach the state of its contexts and could count blocks that
    /// are not leaked.
    ///
    /// # Safety
    /// The caller is the backend of this context and was told to free a block of it, which it keeps
    /// for ever.
    #[cfg(feature = "alloc")]
    #[doc(hidden)]
    pub unsafe fn leaked(&self) {
        self.count_leak();
    }

    #[inline]
    fn record(&self, operation: Operation, amount: Amount, address: usize, numbers: CurrentAndPeak) {
        self.record_block(operation, amount, (address, false), numbers);
    }

    #[inline]
    fn record_block(
        &self,
        operation: Operation,
        amount: Amount,
        (address, in_pool): (usize, bool),
        (current, peak): CurrentAndPeak,
    ) {
        if self.history.is_active() {
            let Amount { memory_type, bytes } = amount;
            self.history.record(Record {
                operation,
                memory_type,
                address,
                bytes,
                current,
                peak,
                time: now(),
                in_pool,
            });
        }
    }

    /// The description of a block of this context.
    #[cfg(feature = "alloc")]
    #[inline]
    pub(crate) fn describe(&self, block: &Block) -> PointerInfo {
        PointerInfo {
            kind: block.kind,
            base: block.address(),
            size: block.size,
            device: (block.kind != crate::AllocKind::Host).then_some(self.info.ordinal),
            context: self.id,
        }
    }
}

/// An allocation that was counted. [`ContextState::record_allocation`] records it once it has an
/// owner.
#[must_use = "the history has a record of every allocation"]
pub(crate) struct UnrecordedAllocation {
    amount: Amount,
    address: usize,
    numbers: CurrentAndPeak,
}

/// Runs a closure on drop, also if an observer panics.
struct AtEnd<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
