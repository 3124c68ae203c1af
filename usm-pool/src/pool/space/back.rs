//! How blocks come back, and the store that the caches of threads share.

use super::super::bins::{self, Bins, CachedBlock, Chain};
use super::super::choice::Demand;
use super::super::classes::{self, Ticket};
use super::{Garbage, Space, State, Travel};

impl<U: Travel, H> Space<U, H> {
    /// Takes a block back that no owner has any more; its operations are in the descriptor. Returns
    /// false, and changes nothing but a counter, if it is not out.
    pub(crate) fn take_back(&mut self, slot: u32, garbage: &mut Garbage<U>) -> bool {
        if self.block(slot).is_none_or(|block| block.state() != State::Out) {
            self.counters.misuses += 1;
            return false;
        }
        let block = self.at(slot);
        let size = block.size.get();
        self.counters.out -= size;
        self.counters.blocks_out -= 1;
        self.enlist(slot, garbage);
        true
    }

    /// Takes all blocks of a chain back.
    pub(crate) fn take_chain(&mut self, mut chain: Chain, garbage: &mut Garbage<U>) {
        let table = self.table.clone();
        while let Some(slot) = chain.pop(&table) {
            self.take_back(slot, garbage);
        }
    }

    /// Takes what a cache could not hold: small blocks wait for the next cache that needs them. All
    /// do that `passes_on` says: they are of a thread that frees what others allocate.
    pub(crate) fn take_over(&mut self, mut chain: Chain, passes_on: bool, garbage: &mut Garbage<U>) {
        // Nobody empties the store of a closed pool any more.
        if self.is_closed {
            return self.take_chain(chain, garbage);
        }
        let table = self.table.clone();
        let room = bins::room_of_store(self.counters.reserved);
        while let Some(slot) = chain.pop(&table) {
            match table.get(slot).filter(|block| block.size.get() <= classes::SMALL) {
                Some(block) if passes_on => self.store.put_any(slot, block),
                Some(block) if self.store.bytes() <= room => {
                    let more = self.store.put(&table, slot, block, room);
                    self.take_chain(more, garbage);
                }
                _ => _ = self.take_back(slot, garbage),
            }
        }
    }

    /// A small block of the shared store, and some more for the cache whose turn the caller holds.
    pub(crate) fn take_stored(&mut self, demand: &Demand, cache: &Bins) -> Option<Ticket> {
        if demand.size > classes::SMALL || self.store.is_empty() {
            return None;
        }
        let Demand { size, alignment, queue, .. } = *demand;
        let take = || self.store.take(&self.table, size, alignment, queue);
        let CachedBlock { ticket, .. } = take()?;
        let more = bins::BATCH.0.min((bins::BATCH.1 / size) as u32);
        if cache.is_poor() {
            for CachedBlock { ticket, block } in core::iter::from_fn(take).take(more as usize) {
                let none = cache.put(&self.table, ticket.slot(), block, u64::MAX);
                debug_assert!(none.is_empty());
            }
        }
        Some(ticket)
    }

    /// Puts the shared store's blocks back.
    pub(crate) fn empty_store(&mut self, garbage: &mut Garbage<U>) {
        let all = self.store.empty(&self.table, false);
        self.take_chain(all, garbage);
    }
}
