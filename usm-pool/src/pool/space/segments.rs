//! The segments of a space, and what reports ask of them.

use alloc::vec::Vec;

use super::super::table::NONE;
use super::{Block, Garbage, Order, Segment, Space, State, Travel, UNIT, keep};

impl<U: Travel, H> Space<U, H> {
    /// Reserves bytes within the limit, before they are allocated.
    pub(crate) fn reserve(&mut self, bytes: u64, limit: u64) -> bool {
        let sum = self.counters.reserved.saturating_add(bytes);
        let fits = sum <= limit;
        if fits {
            self.counters.reserved = sum;
        }
        fits
    }

    /// Cancels a reservation, or ends that of a freed segment.
    pub(crate) fn unreserve(&mut self, bytes: u64) {
        self.counters.reserved -= bytes;
    }

    /// Adds a segment whose bytes are reserved, as one detached block. Returns its
    /// number.
    pub(crate) fn add_segment(&mut self, address: u64, bytes: u64, handle: H) -> u32 {
        let index = self.segments.iter().position(Option::is_none).unwrap_or(self.segments.len());
        if index == self.segments.len() {
            self.segments.push(None);
            self.handles.push(None);
        }
        let slot = self.new_slot(address, bytes, (NONE, NONE), index as u32);
        self.segments[index] = Some(Segment { address, bytes, first: slot });
        self.handles[index] = Some(handle);
        self.places.add(index as u32, address, bytes);
        self.detached_count += 1;
        self.counters.peak_reserved = self.counters.peak_reserved.max(self.counters.reserved);
        slot
    }

    /// Takes a segment out that is one idle block, the largest first. Its bytes stay reserved until
    /// [`unreserve`](Self::unreserve).
    pub(crate) fn remove_idle_segment(&mut self) -> Option<(Segment, H)> {
        let whole = self.segments().filter(|(_, segment)| {
            let block = self.at(segment.first);
            block.state() == State::Free && block.is_idle() && block.after.get() == NONE
        });
        let (index, Segment { first: slot, address, .. }) =
            whole.max_by_key(|(_, segment)| (segment.bytes, segment.address))?;
        self.unlist(slot, Order::Idle);
        self.places.remove(index, address);
        let index = index as usize;
        self.at(slot).set_state(State::Vacant);
        self.vacant.push(slot);
        self.segments[index].take().zip(self.handles[index].take())
    }

    /// Bytes of free blocks: without operations, and with some.
    pub(crate) fn free_bytes(&self) -> (u64, u64) {
        (self.idle.bytes, self.used.values().map(|free| free.bytes).sum())
    }

    /// Bytes of the largest free block.
    pub(crate) fn largest_free(&self) -> u64 {
        let lists = core::iter::once(&self.idle).chain(self.used.values());
        lists.map(|free| free.largest(&self.table)).max().unwrap_or(0)
    }

    /// The segments in use, by number.
    pub(crate) fn segments(&self) -> impl Iterator<Item = (u32, Segment)> {
        let slots = self.segments.iter().enumerate();
        slots.filter_map(|(index, segment)| Some((index as u32, (*segment)?)))
    }

    /// The blocks of a segment, by address.
    pub(crate) fn blocks_of(&self, segment: Segment) -> impl Iterator<Item = &Block> {
        let mut slot = segment.first;
        core::iter::from_fn(move || {
            let block = self.block(slot)?;
            slot = block.after.get();
            Some(block)
        })
    }

    /// Everything, for the end: each segment's memory with the operations on it.
    pub(crate) fn end(&mut self, garbage: &mut Garbage<U>) -> Vec<(H, U)> {
        let mut all = Vec::new();
        for (index, segment) in self.segments().collect::<Vec<_>>() {
            let (mut slot, mut uses) = (segment.first, U::NONE);
            while slot != NONE {
                keep(garbage, uses.join(self.table.take_uses(slot)));
                slot = self.at(slot).after.get();
            }
            if let Some(handle) = self.handles[index as usize].take() {
                all.push((handle, uses));
            }
        }
        self.segments.clear();
        all
    }

    /// Panics with what is wrong.
    pub(crate) fn check(&self) {
        let (mut list_count, mut bytes, mut quarantine, mut out) = (0, 0, 0, (0, 0));
        for (index, segment) in self.segments() {
            let (mut at, mut before) = (segment.address, NONE);
            let mut slot = segment.first;
            while slot != NONE {
                let block = self.at(slot);
                let place = (block.address.get(), block.before.get(), block.segment.get());
                assert_eq!(place, (at, before, index), "slot {slot}");
                let size = block.size.get();
                assert!(size > 0 && size % UNIT == 0, "slot {slot} of {size} bytes");
                match block.state() {
                    State::Free => {
                        let mut all =
                            self.free(block.order()).into_iter().flat_map(|free| free.all(&self.table));
                        let key = (size, at, slot);
                        assert!(all.any(|entry| entry == key), "slot {slot} is in no list");
                        list_count += 1;
                        let next = self.block(block.after.get());
                        let joins = next.is_some_and(|next| {
                            next.state() == State::Free && block.joins(next, self.callers)
                        });
                        assert!(!joins, "slot {slot} and the next are free, and join");
                    }
                    State::Out => {
                        out = (out.0 + size, out.1 + 1);
                        let hit = self.block_at(index, at + size - 1);
                        assert!(
                            hit.is_some_and(|other| core::ptr::eq(other, block)),
                            "slot {slot} is not found"
                        );
                        assert!(block.bytes.get() <= size, "slot {slot}");
                    }
                    State::Quarantined => quarantine += size,
                    State::Detached => {}
                    State::Vacant => panic!("slot {slot} is vacant in a segment"),
                }
                (at, before, slot) = (at + size, slot, block.after.get());
            }
            assert_eq!(at, segment.address + segment.bytes, "segment {index}");
            bytes += segment.bytes;
        }
        let lists = core::iter::once(&self.idle).chain(self.used.values());
        assert_eq!(list_count, lists.map(|free| free.blocks).sum::<usize>());
        assert_eq!(out, (self.counters.out, self.counters.blocks_out));
        assert_eq!(quarantine, self.counters.quarantine);
        assert!(bytes <= self.counters.reserved, "{bytes} of {} reserved", self.counters.reserved);
    }
}
