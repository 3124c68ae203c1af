//! How blocks are cut and merged.

use super::super::table::NONE;
use super::{Block, Garbage, Order, QUEUES, Space, State, Travel, keep};

impl<U: Travel, H> Space<U, H> {
    /// Puts a block into its list, merged with free neighbours as far as their orders join.
    pub(super) fn enlist(&mut self, slot: u32, garbage: &mut Garbage<U>) -> u32 {
        let mut slot = slot;
        loop {
            let block = self.at(slot);
            let (before, after) = (block.before.get(), block.after.get());
            let joins = |other: u32| {
                let other = self.block(other).filter(|other| other.state() == State::Free)?;
                block.joins(other, self.callers).then(|| other.order())
            };
            if let Some(order) = joins(after) {
                self.unlist(after, order);
                self.swallow(slot, after, garbage);
            } else if let Some(order) = joins(before) {
                self.unlist(before, order);
                self.swallow(before, slot, garbage);
                slot = before;
            } else {
                break;
            }
        }
        self.at(slot).set_state(State::Free);
        self.list(slot);
        slot
    }

    /// Puts a free block into its list.
    pub(super) fn list(&mut self, slot: u32) {
        let order = self.at(slot).order();
        let block = self.table.get(slot);
        let Some(block) = block else { return };
        match order {
            Order::Idle => self.idle.push(&self.table, slot, block),
            order => self.used.entry(order).or_default().push(&self.table, slot, block),
        }
    }

    /// Takes a free block out of its list.
    pub(super) fn unlist(&mut self, slot: u32, order: Order) {
        let Some(block) = self.table.get(slot) else { return };
        if order == Order::Idle {
            return self.idle.remove(&self.table, block);
        }
        if let Some(free) = self.used.get_mut(&order) {
            free.remove(&self.table, block);
            if free.is_empty() && self.used.len() > QUEUES {
                self.used.remove(&order);
            }
        }
    }

    /// Joins a block with the one after it. Neither is in a list.
    pub(super) fn swallow(&mut self, slot: u32, after: u32, garbage: &mut Garbage<U>) {
        let next = self.at(after);
        let (size, successor, uses) = (next.size.get(), next.after.get(), self.table.take_uses(after));
        next.set_state(State::Vacant);
        let block = self.at(slot);
        block.size.add(size);
        block.after.set(successor);
        let mut ours = self.table.take_uses(slot);
        keep(garbage, ours.join(uses));
        self.table.set_uses(slot, ours);
        if successor != NONE {
            self.at(successor).before.set(slot);
        }
        self.vacant.push(after);
    }

    /// Merges all free neighbours, whatever the order of their operations.
    pub(crate) fn merge_all(&mut self, garbage: &mut Garbage<U>) {
        for index in 0..self.segments.len() {
            let Some(segment) = self.segments[index] else { continue };
            let mut slot = segment.first;
            while slot != NONE {
                let block = self.at(slot);
                let after = block.after.get();
                let is_free = |block: &Block| block.state() == State::Free;
                if is_free(block) && self.block(after).is_some_and(is_free) {
                    let (order, next) = (block.order(), self.at(after).order());
                    self.unlist(slot, order);
                    self.unlist(after, next);
                    self.swallow(slot, after, garbage);
                    self.list(slot);
                } else {
                    slot = after;
                }
            }
        }
    }

    /// Where a request of this size and alignment lies in a block that fits, and whether bytes
    /// remain before and after it.
    pub(crate) fn cut(&self, slot: u32, size: u64, alignment: u64) -> (u64, bool, bool) {
        let block = self.at(slot);
        let address = block.address.get().next_multiple_of(alignment);
        let end = block.address.get() + block.size.get();
        (address, address > block.address.get(), address + size < end)
    }

    /// Gives a detached block that fits out. Bytes before and after become free blocks with copies
    /// of its operations: `rest` gives one for each.
    pub(crate) fn give(
        &mut self,
        slot: u32,
        size: u64,
        alignment: u64,
        mut rest: impl FnMut() -> U,
        garbage: &mut Garbage<U>,
    ) {
        self.detached_count -= 1;
        let (address, has_front, has_back) = self.cut(slot, size, alignment);
        if has_front {
            let front = self.split_front(slot, address);
            self.table.set_uses(front, rest());
            self.enlist(front, garbage);
        }
        if has_back {
            let back = self.split_back(slot, size);
            self.table.set_uses(back, rest());
            self.enlist(back, garbage);
        }
        self.at(slot).set_state(State::Out);
        self.places.mark(self.at(slot).segment.get(), address, slot);
        self.counters.out += size;
        self.counters.blocks_out += 1;
    }

    /// Splits the bytes before `address` off. Returns their block.
    pub(super) fn split_front(&mut self, slot: u32, address: u64) -> u32 {
        let block = self.at(slot);
        let (start, before, segment) = (block.address.get(), block.before.get(), block.segment.get());
        let front = self.new_slot(start, address - start, (before, slot), segment);
        match before {
            NONE => {
                if let Some(segment) = &mut self.segments[segment as usize] {
                    segment.first = front;
                }
            }
            before => self.at(before).after.set(front),
        }
        let block = self.at(slot);
        block.size.set(block.size.get() - (address - start));
        block.address.set(address);
        block.before.set(front);
        front
    }

    /// Splits the bytes after the first `size` off. Returns their block.
    pub(super) fn split_back(&mut self, slot: u32, size: u64) -> u32 {
        let block = self.at(slot);
        let (address, all) = (block.address.get(), block.size.get());
        let (after, segment) = (block.after.get(), block.segment.get());
        let back = self.new_slot(address + size, all - size, (slot, after), segment);
        if after != NONE {
            self.at(after).before.set(back);
        }
        let block = self.at(slot);
        block.size.set(size);
        block.after.set(back);
        back
    }
}
