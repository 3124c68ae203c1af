//! Allocations: host memory of every kind.

use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;

use level_zero_sys::*;

use crate::device::{MAX_ALLOC, MEMORY};
use crate::state::{Answer, State};

/// Minimum alignment of every allocation, in bytes.
const MINIMUM_ALIGNMENT: usize = 64;

/// A live allocation.
#[derive(Debug)]
pub(crate) struct Allocation {
    layout: Layout,
    /// Bytes of the layout before the allocation's first byte.
    skipped: usize,
    /// The requested size in bytes.
    pub(crate) size: usize,
    pub(crate) kind: ze_memory_type_t,
    pub(crate) device: Option<usize>,
    pub(crate) context: usize,
    pub(crate) id: u64,
}

impl State {
    /// Allocates memory of one kind. Stricter than real drivers: refuses empty sizes and alignments
    /// that are no power of two.
    pub(crate) fn allocate(
        &mut self,
        context: ze_context_handle_t,
        kind: ze_memory_type_t,
        device: Option<usize>,
        size: usize,
        alignment: usize,
    ) -> Answer<usize> {
        let context = self.context(context)?;
        if size == 0 || size as u64 > MAX_ALLOC {
            return Err(ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
        }
        let above = |limit: Option<u32>| limit.is_some_and(|limit| alignment > limit as usize);
        if above(self.faults.refused_alignment) {
            return Err(ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT);
        }
        let alignment = alignment.max(MINIMUM_ALIGNMENT);
        let layout =
            Layout::from_size_align(size, alignment).map_err(|_| ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT)?;
        let used: u64 = self.allocations.values().map(|live| live.size as u64).sum();
        if used + size as u64 > MEMORY {
            return Err(ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
        }
        // A deliberately misaligned block starts half an alignment after an aligned one.
        let skipped = if above(self.faults.ignored_alignment) { alignment / 2 } else { 0 };
        let layout = Layout::from_size_align(size + skipped, layout.align())
            .map_err(|_| ZE_RESULT_ERROR_UNSUPPORTED_SIZE)?;
        // SAFETY: the size is not zero.
        let block = unsafe { alloc(layout) } as usize;
        if block == 0 {
            return Err(ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
        }
        let base = block + skipped;
        let id = self.number() as u64;
        self.allocations.insert(base, Allocation { layout, skipped, size, kind, device, context, id });
        Ok(base)
    }

    /// Frees the allocation at an address.
    pub(crate) fn free(&mut self, context: ze_context_handle_t, address: usize) -> Answer {
        let context = self.context(context)?;
        match self.allocations.get(&address) {
            Some(live) if live.context == context => {}
            _ => return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT),
        }
        let bytes = self.allocations.get(&address).map_or(0, |live| live.size);
        self.unless(self.queues.values().flatten().any(|command| command.touches(address, bytes)))?;
        if let Some(live) = self.allocations.remove(&address) {
            // SAFETY: allocated above with this layout, and no longer in the table.
            unsafe { dealloc((address - live.skipped) as *mut u8, live.layout) };
        }
        Ok(())
    }

    /// The allocation of a context that contains an address.
    pub(crate) fn lookup(
        &self,
        context: ze_context_handle_t,
        address: usize,
    ) -> Answer<Option<(usize, &Allocation)>> {
        let context = self.context(context)?;
        let below = self.allocations.range(..=address).next_back();
        Ok(below
            .filter(|(base, live)| live.context == context && address - **base < live.size)
            .map(|(base, live)| (*base, live)))
    }
}
