//! What a pool answers to the ledger of its device.

use alloc::vec::Vec;
use core::ops::Range;
use core::ptr::NonNull;

use usm_core::segment::{self, Holding, Lending};
use usm_core::{Backend, Block, PointerInfo};

use super::bins::Flow;
use super::choice::Ground;
use super::table::Num64;
#[cfg(feature = "std")]
use super::threads;
use super::{Shared, SpaceOf, choice, table};

impl<B: Backend + 'static> Shared<B> {
    /// Counts an allocation whose bytes are about to be an owner's.
    #[inline(always)]
    pub(super) fn count_allocated(&self, bytes: u64) {
        if self.options.exact_peak {
            let live = self.shared_counters.exact.0.add_shared(bytes).wrapping_add(bytes);
            self.shared_counters.exact.1.raise_shared(live);
        }
    }

    /// Counts a free whose bytes are nobody's yet.
    #[inline(always)]
    pub(super) fn count_freed(&self, bytes: u64) {
        if self.options.exact_peak {
            self.shared_counters.exact.0.add_shared(bytes.wrapping_neg());
        }
    }

    /// The sums of all threads.
    pub(super) fn flow(&self, space: &SpaceOf<B>) -> Flow {
        let flow = Flow::new();
        flow.add(&space.flow);
        #[cfg(feature = "std")]
        threads::for_each(self.id, |cache| flow.add(&cache.flow));
        flow
    }

    /// Bytes of the space, the store and all caches: without operations, and with some.
    pub(super) fn free_bytes(&self, space: &SpaceOf<B>) -> (u64, u64) {
        let mut free = space.free_bytes();
        let mut add = |more: (u64, u64)| free = (free.0 + more.0, free.1 + more.1);
        add(space.store.free_bytes());
        #[cfg(feature = "std")]
        threads::for_each(self.id, |cache| add(cache.bins().free_bytes()));
        free
    }

    /// Looks at the peak, and tells the ledger what happened since it was last told.
    pub(super) fn report(&self) {
        let flow = self.with(|space| {
            let flow = self.flow(space);
            space.counters.peak_live = space.counters.peak_live.max(flow.live());
            let now =
                [&flow.allocated_bytes, &flow.freed_bytes, &flow.allocations, &flow.frees].map(Num64::get);
            let before = core::mem::replace(&mut space.last_report, now);
            segment::Flow {
                allocated: now[0].wrapping_sub(before[0]),
                freed: now[1].wrapping_sub(before[1]),
                allocations: now[2].wrapping_sub(before[2]),
                frees: now[3].wrapping_sub(before[3]),
            }
        });
        segment::report(&self.context, self.kind, &flow);
    }

    #[inline(always)]
    pub(super) fn block_of(&self, address: u64, bytes: u64, alignment: usize) -> Block {
        // The address is one of a segment, which came from a pointer.
        let pointer = NonNull::new(core::ptr::with_exposed_provenance_mut(address as usize));
        let pointer = pointer.unwrap_or(NonNull::dangling());
        Block { pointer, size: bytes as usize, alignment, kind: self.kind }
    }

    fn describe(&self, block: &table::Block) -> PointerInfo {
        let block = self.block_of(block.address.get(), block.bytes.get(), 1);
        segment::describe(&self.context, &block)
    }
}

impl<B: Backend + 'static> Lending for Shared<B> {
    fn report(&self) {
        Self::report(self);
    }

    fn holding(&self) -> Holding {
        self.with(|space| {
            let (cached, pending) = self.free_bytes(space);
            Holding { reserved: space.counters.reserved, cached, pending }
        })
    }

    fn find(&self, address: usize) -> Option<PointerInfo> {
        self.with(|space| space.find(address as u64).map(|block| self.describe(block)))
    }

    fn segment(&self, address: usize) -> Option<Range<usize>> {
        let place = self.with(|space| Some(space.segment_at(address as u64)?.1))?;
        let start = place.address as usize;
        Some(start..start + place.bytes as usize)
    }

    fn list(&self, all: &mut Vec<PointerInfo>) {
        self.with(|space| {
            let live = space.all_out().filter(|block| block.is_live());
            all.extend(live.map(|block| self.describe(block)));
        });
    }

    fn trim(&self) -> u64 {
        self.gather();
        choice::collect(self);
        choice::release(self, 0)
    }
}
