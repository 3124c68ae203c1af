//! The segments of a space, and what reports ask of them.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::super::table::NONE;
use super::{Block, Gone, Key, Order, Segment, Space, State, Travel, UNIT, keep};

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
        self.detached += 1;
        self.counters.peak_reserved = self.counters.peak_reserved.max(self.counters.reserved);
        slot
    }

    /// Takes a segment out that is one idle block, the largest first. Its bytes stay reserved until
    /// [`unreserve`](Self::unreserve).
    pub(crate) fn remove_idle_segment(&mut self) -> Option<(Segment, H)> {
        let idle = self.free.get(&Order::Idle)?;
        let whole = |key: &&Key| {
            let block = self.at(key.2);
            block.before.get() == NONE && block.after.get() == NONE
        };
        let slot = idle.iter().rev().find(whole)?.2;
        self.unlist(slot, Order::Idle);
        let index = self.at(slot).segment.get() as usize;
        self.at(slot).set_state(State::Vacant);
        self.vacant.push(slot);
        self.segments[index].take().zip(self.handles[index].take())
    }

    /// Bytes of free blocks: without operations, and with some.
    pub(crate) fn free_bytes(&self) -> (u64, u64) {
        let sum = |list: &BTreeSet<Key>| list.iter().map(|key| key.0).sum::<u64>();
        let idle = self.free.get(&Order::Idle).map_or(0, sum);
        let all: u64 = self.free.values().map(sum).sum();
        (idle, all - idle)
    }

    /// Bytes of the largest free block.
    pub(crate) fn largest_free(&self) -> u64 {
        self.free.values().filter_map(|list| list.last()).map(|key| key.0).max().unwrap_or(0)
    }

    /// The segments in use, by number.
    pub(crate) fn segments(&self) -> impl Iterator<Item = (u32, Segment)> {
        let numbered = self.segments.iter().enumerate();
        numbered.filter_map(|(index, segment)| Some((index as u32, (*segment)?)))
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
    pub(crate) fn end(&mut self, gone: &mut Gone<U>) -> Vec<(H, U)> {
        let mut all = Vec::new();
        for (index, segment) in self.segments().collect::<Vec<_>>() {
            let (mut slot, mut uses) = (segment.first, U::NONE);
            while slot != NONE {
                keep(gone, uses.join(self.table.take_uses(slot)));
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
        let (mut listed, mut bytes, mut leaked, mut out) = (0, 0, 0, (0, 0));
        for (index, segment) in self.segments() {
            let (mut at, mut before) = (segment.address, NONE);
            let mut slot = segment.first;
            while slot != NONE {
                let (block, (order, key)) = (self.at(slot), self.key(slot));
                let place = (block.address.get(), block.before.get(), block.segment.get());
                assert_eq!(place, (at, before, index), "slot {slot}");
                let size = block.size.get();
                assert!(size > 0 && size % UNIT == 0, "slot {slot} of {size} bytes");
                match block.state() {
                    State::Free => {
                        let is_listed = self.free.get(&order).is_some_and(|list| list.contains(&key));
                        assert!(is_listed, "slot {slot} is in no list");
                        listed += 1;
                        let next = self.block(block.after.get());
                        let joins = next.is_some_and(|next| {
                            next.state() == State::Free && block.joins(next, self.callers)
                        });
                        assert!(!joins, "slot {slot} and the next are free, and join");
                    }
                    State::Out => {
                        out = (out.0 + size, out.1 + 1);
                        assert_eq!(self.out.get(&at), Some(&slot));
                        assert!(block.bytes.get() <= size, "slot {slot}");
                    }
                    State::Quarantined => leaked += size,
                    State::Detached => {}
                    State::Vacant => panic!("slot {slot} is vacant in a segment"),
                }
                (at, before, slot) = (at + size, slot, block.after.get());
            }
            assert_eq!(at, segment.address + segment.bytes, "segment {index}");
            bytes += segment.bytes;
        }
        assert_eq!(listed, self.free.values().map(BTreeSet::len).sum::<usize>());
        assert_eq!(out, (self.counters.out, self.counters.blocks_out));
        assert_eq!((self.out.len() as u64, leaked), (out.1, self.counters.leaked));
        assert!(bytes <= self.counters.reserved, "{bytes} of {} reserved", self.counters.reserved);
    }
}
