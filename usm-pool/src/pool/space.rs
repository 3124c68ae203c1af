//! Segments of addresses, the blocks that tile them, and which free block serves a request. Plain
//! numbers: nothing here reads or writes the memory, calls a driver, or copies or drops an event.
//! So a short lock can cover every call, and a replay of a trace needs no memory.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// Sizes and addresses of blocks are multiples of this (bytes).
pub(crate) const UNIT: u64 = 64;

/// Free blocks that a search with a larger alignment looks at before it asks for a block with room
/// for any address.
const SEARCH: usize = 16;

/// No block.
const NONE: u32 = u32::MAX;

/// How the unfinished operations on a free block are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// There are none.
    Idle,
    /// All are of this in-order queue, whose next operation follows them.
    Queue(u64),
    /// Of several queues, or of one that orders nothing.
    Several,
}

/// The unfinished operations on a block, which travel with its bytes.
pub(crate) trait Travel: Sized {
    const NONE: Self;

    fn order(&self) -> Order;

    /// Adds operations. Returns those that need not be remembered, for a drop without the lock.
    fn join(&mut self, others: Self) -> Self;
}

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// An unused descriptor.
    Vacant,
    /// In the list of its order.
    Free,
    /// In no list: its operations are asked, or it is cut, by one caller.
    Detached,
    /// An owner has it.
    Live,
    /// Failed work may still touch it. It is never given out.
    Quarantined,
}

/// The descriptor of a block, outside of the memory.
pub(crate) struct Block<U> {
    pub(crate) address: u64,
    pub(crate) size: u64,
    /// Neighbours by address in the segment.
    before: u32,
    after: u32,
    segment: u32,
    pub(crate) state: State,
    pub(crate) uses: U,
    /// What the owner asked for.
    pub(crate) owner: Owner,
}

impl<U: Travel> Block<U> {
    /// Whether free neighbours merge at once. A block that nothing uses becomes part of a larger
    /// one that a queue's work still uses, but no large block waits for the work of a small part,
    /// unless only that queue asks. Work of two queues joins only before the pool grows.
    fn joins(&self, other: &Self, callers: Callers) -> bool {
        let one_queue = matches!(callers, Callers::One(_));
        match (self.uses.order(), other.uses.order()) {
            (ours, theirs) if ours == theirs => true,
            (Order::Idle, Order::Queue(_)) => one_queue || self.size <= other.size,
            (Order::Queue(_), Order::Idle) => one_queue || other.size <= self.size,
            _ => false,
        }
    }
}

/// For which queues blocks were asked so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callers {
    None,
    One(Order),
    Many,
}

/// An owner's part of a live block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Owner {
    /// Bytes as requested.
    pub(crate) bytes: u64,
    /// The number of the allocation, from 1.
    pub(crate) id: u64,
    pub(crate) tag: u32,
    /// Number of the block in the context's ledger.
    pub(crate) serial: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    first: u32,
}

/// Counters, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    /// As requested.
    pub(crate) live: u64,
    pub(crate) peak_live: u64,
    /// Segments, with those that are being allocated.
    pub(crate) reserved: u64,
    pub(crate) peak_reserved: u64,
    /// Blocks in quarantine.
    pub(crate) leaked: u64,
    pub(crate) blocks: u64,
    /// Allocations so far.
    pub(crate) allocations: u64,
    /// Allocations that got a block which work of another queue still used.
    pub(crate) waits: u64,
    /// Allocations that got a block of another queue whose work was complete.
    pub(crate) cross_queue: u64,
    /// Returns of blocks that were not out.
    pub(crate) misuses: u64,
}

type Key = (u64, u64, u32);

pub(crate) struct Space<U, H> {
    blocks: Vec<Block<U>>,
    vacant: Vec<u32>,
    /// Free blocks by (size, address, descriptor).
    free: BTreeMap<Order, BTreeSet<Key>>,
    segments: Vec<Option<Segment>>,
    /// The owners of the segments' memory, by the same index.
    handles: Vec<Option<H>>,
    pub(crate) counters: Counters,
    /// Blocks that are detached now.
    pub(crate) detached: usize,
    callers: Callers,
    /// Whether a caller is about to add a segment, which may serve others too.
    pub(crate) growing: bool,
    /// Whether no more blocks will be asked for: the last one that comes back ends the pool.
    pub(crate) closed: bool,
}

/// Operations to drop without the lock.
pub(crate) type Gone<U> = Vec<U>;

fn keep<U: Travel>(gone: &mut Gone<U>, uses: U) {
    if uses.order() != Order::Idle {
        gone.push(uses);
    }
}

impl<U: Travel, H> Space<U, H> {
    pub(crate) const fn new() -> Self {
        Self {
            blocks: Vec::new(),
            vacant: Vec::new(),
            free: BTreeMap::new(),
            segments: Vec::new(),
            handles: Vec::new(),
            counters: Counters {
                live: 0,
                peak_live: 0,
                reserved: 0,
                peak_reserved: 0,
                leaked: 0,
                blocks: 0,
                allocations: 0,
                waits: 0,
                cross_queue: 0,
                misuses: 0,
            },
            detached: 0,
            callers: Callers::None,
            growing: false,
            closed: false,
        }
    }

    /// The least size of a block for `bytes`; `None` above the address space.
    pub(crate) fn round(bytes: u64) -> Option<u64> {
        bytes.max(1).checked_next_multiple_of(UNIT)
    }

    pub(crate) fn block(&self, slot: u32) -> Option<&Block<U>> {
        self.blocks.get(slot as usize)
    }

    fn at(&mut self, slot: u32) -> &mut Block<U> {
        &mut self.blocks[slot as usize]
    }

    fn new_slot(&mut self, block: Block<U>) -> u32 {
        if let Some(slot) = self.vacant.pop() {
            *self.at(slot) = block;
            return slot;
        }
        self.blocks.push(block);
        (self.blocks.len() - 1) as u32
    }

    /// The best fit in one list: the smallest block, at its lowest address.
    fn fit(&self, order: Order, size: u64, alignment: u64) -> Option<Key> {
        let list = self.free.get(&order)?;
        let mut fits = list.range((size, 0, 0)..);
        let holds = |key: &Key| {
            let start = key.1.checked_next_multiple_of(alignment)?;
            (start.checked_add(size)? <= key.1 + key.0).then_some(*key)
        };
        if alignment <= UNIT {
            return fits.next().copied();
        }
        if let Some(found) = fits.by_ref().take(SEARCH).find_map(holds) {
            return Some(found);
        }
        let any = size.checked_add(alignment - UNIT)?;
        list.range((any, 0, 0)..).next().copied()
    }

    fn detach(&mut self, order: Order, key: Key) {
        if let Some(list) = self.free.get_mut(&order) {
            list.remove(&key);
            if list.is_empty() && order != Order::Idle {
                self.free.remove(&order);
            }
        }
        self.at(key.2).state = State::Detached;
        self.detached += 1;
    }

    /// The smallest block that an operation of `queue` need not wait for, detached; unless a
    /// smaller one may be complete, which [`detach_waiting`](Self::detach_waiting) gives. Its
    /// operations are in the descriptor.
    pub(crate) fn detach_ready(
        &mut self,
        queue: Order,
        size: u64,
        alignment: u64,
        asks: bool,
    ) -> Option<u32> {
        self.callers = match self.callers {
            Callers::None if queue != Order::Idle => Callers::One(queue),
            Callers::One(known) if known == queue => self.callers,
            _ => Callers::Many,
        };
        let mut best = self.fit(Order::Idle, size, alignment).map(|key| (key, Order::Idle));
        if let Order::Queue(_) = queue {
            let of_queue = self.fit(queue, size, alignment).map(|key| (key, queue));
            best = [best, of_queue].into_iter().flatten().min();
        }
        let (key, order) = best?;
        let is_other = |order: &&Order| **order != Order::Idle && **order != queue;
        let smaller = |order: &Order| self.fit(*order, size, alignment).is_some_and(|other| other.0 < key.0);
        if asks && self.free.keys().filter(is_other).any(smaller) {
            return None;
        }
        self.detach(order, key);
        Some(key.2)
    }

    /// At most `count` of the smallest blocks that fit and have unfinished operations, detached.
    /// Each comes with its operations.
    pub(crate) fn detach_waiting(&mut self, size: u64, alignment: u64, count: usize) -> Vec<(u32, U)> {
        let mut found = Vec::new();
        while found.len() < count {
            let orders = self.free.keys().filter(|order| **order != Order::Idle);
            let fits = orders.filter_map(|order| Some((self.fit(*order, size, alignment)?, *order)));
            let Some((key, order)) = fits.min() else { break };
            self.detach(order, key);
            found.push((key.2, core::mem::replace(&mut self.at(key.2).uses, U::NONE)));
        }
        found
    }

    /// All free blocks with unfinished operations, detached.
    pub(crate) fn detach_all_waiting(&mut self) -> Vec<(u32, U)> {
        let orders: Vec<Order> = self.free.keys().copied().filter(|order| *order != Order::Idle).collect();
        let mut found = Vec::new();
        for order in orders {
            let Some(list) = self.free.remove(&order) else { continue };
            for (.., slot) in list {
                let block = self.at(slot);
                block.state = State::Detached;
                found.push((slot, core::mem::replace(&mut block.uses, U::NONE)));
            }
        }
        self.detached += found.len();
        found
    }

    /// Makes a detached block free, with these operations, and merges it with neighbours of the
    /// same order.
    pub(crate) fn attach(&mut self, slot: u32, uses: U, gone: &mut Gone<U>) {
        self.at(slot).uses = uses;
        self.detached -= 1;
        self.enlist(slot, gone);
    }

    /// Keeps a detached block, whose work failed, from everyone.
    pub(crate) fn quarantine(&mut self, slot: u32, uses: U) {
        self.detached -= 1;
        let block = self.at(slot);
        (block.state, block.uses) = (State::Quarantined, uses);
        self.counters.leaked += self.blocks[slot as usize].size;
    }

    /// Puts a block into its list, merged with free neighbours as far as their orders join.
    fn enlist(&mut self, slot: u32, gone: &mut Gone<U>) -> u32 {
        let mut slot = slot;
        loop {
            let block = &self.blocks[slot as usize];
            let (before, after) = (block.before, block.after);
            let joins = |other: u32| {
                let other = self.blocks.get(other as usize).filter(|other| other.state == State::Free)?;
                block.joins(other, self.callers).then(|| other.uses.order())
            };
            if let Some(order) = joins(after) {
                self.unlist(after, order);
                self.swallow(slot, after, gone);
            } else if let Some(order) = joins(before) {
                self.unlist(before, order);
                self.swallow(before, slot, gone);
                slot = before;
            } else {
                break;
            }
        }
        let block = self.at(slot);
        block.state = State::Free;
        let (order, key) = (block.uses.order(), (block.size, block.address, slot));
        self.free.entry(order).or_default().insert(key);
        slot
    }

    fn unlist(&mut self, slot: u32, order: Order) {
        let block = self.at(slot);
        let key = (block.size, block.address, slot);
        if let Some(list) = self.free.get_mut(&order) {
            list.remove(&key);
            if list.is_empty() && order != Order::Idle {
                self.free.remove(&order);
            }
        }
    }

    /// Joins a block with the one after it. Neither is in a list.
    fn swallow(&mut self, slot: u32, after: u32, gone: &mut Gone<U>) {
        let next = self.at(after);
        let (size, following) = (next.size, next.after);
        let uses = core::mem::replace(&mut next.uses, U::NONE);
        next.state = State::Vacant;
        self.vacant.push(after);
        let block = self.at(slot);
        block.size += size;
        block.after = following;
        keep(gone, block.uses.join(uses));
        if following != NONE {
            self.at(following).before = slot;
        }
    }

    /// Merges all free neighbours, whatever the order of their operations.
    pub(crate) fn merge_all(&mut self, gone: &mut Gone<U>) {
        for index in 0..self.segments.len() {
            let Some(segment) = self.segments[index] else { continue };
            let mut slot = segment.first;
            while slot != NONE {
                let Block { after, state, .. } = self.blocks[slot as usize];
                let is_free =
                    |slot: u32| self.blocks.get(slot as usize).is_some_and(|b| b.state == State::Free);
                if state == State::Free && is_free(after) {
                    let (order, next) = (self.at(slot).uses.order(), self.at(after).uses.order());
                    self.unlist(slot, order);
                    self.unlist(after, next);
                    self.swallow(slot, after, gone);
                    let block = self.at(slot);
                    let (order, key) = (block.uses.order(), (block.size, block.address, slot));
                    self.free.entry(order).or_default().insert(key);
                } else {
                    slot = after;
                }
            }
        }
    }

    /// Where a request of this size and alignment lies in a block that fits, and whether bytes
    /// remain before and after it.
    pub(crate) fn cut(&self, slot: u32, size: u64, alignment: u64) -> (u64, bool, bool) {
        let block = &self.blocks[slot as usize];
        let address = block.address.next_multiple_of(alignment);
        (address, address > block.address, address + size < block.address + block.size)
    }

    /// Gives a detached block that fits to an owner. Bytes before and after become free blocks with
    /// copies of its operations: `rest` gives one for each.
    pub(crate) fn give(
        &mut self,
        slot: u32,
        size: u64,
        alignment: u64,
        owner: Owner,
        mut rest: impl FnMut() -> U,
        gone: &mut Gone<U>,
    ) {
        self.detached -= 1;
        let (address, has_front, has_back) = self.cut(slot, size, alignment);
        if has_front {
            let front = self.split_front(slot, address);
            self.at(front).uses = rest();
            self.enlist(front, gone);
        }
        if has_back {
            let back = self.split_back(slot, size);
            self.at(back).uses = rest();
            self.enlist(back, gone);
        }
        let id = self.counters.allocations + 1;
        let block = self.at(slot);
        block.state = State::Live;
        block.owner = Owner { id, ..owner };
        let counters = &mut self.counters;
        counters.allocations = id;
        counters.blocks += 1;
        counters.live += owner.bytes;
        counters.peak_live = counters.peak_live.max(counters.live);
    }

    /// Splits the bytes before `address` off. Returns their block.
    fn split_front(&mut self, slot: u32, address: u64) -> u32 {
        let Block { address: start, before, segment, .. } = self.blocks[slot as usize];
        let front = self.new_slot(Block {
            address: start,
            size: address - start,
            before,
            after: slot,
            segment,
            state: State::Detached,
            uses: U::NONE,
            owner: Owner::default(),
        });
        match before {
            NONE => {
                if let Some(segment) = &mut self.segments[segment as usize] {
                    segment.first = front;
                }
            }
            before => self.at(before).after = front,
        }
        let block = self.at(slot);
        block.size -= address - start;
        (block.address, block.before) = (address, front);
        front
    }

    /// Splits the bytes after the first `size` off. Returns their block.
    fn split_back(&mut self, slot: u32, size: u64) -> u32 {
        let Block { address, size: all, after, segment, .. } = self.blocks[slot as usize];
        let back = self.new_slot(Block {
            address: address + size,
            size: all - size,
            before: slot,
            after,
            segment,
            state: State::Detached,
            uses: U::NONE,
            owner: Owner::default(),
        });
        if after != NONE {
            self.at(after).before = back;
        }
        let block = self.at(slot);
        (block.size, block.after) = (size, back);
        back
    }

    /// The operations on a detached block, which they leave.
    pub(crate) fn take_uses(&mut self, slot: u32) -> U {
        core::mem::replace(&mut self.at(slot).uses, U::NONE)
    }

    /// Remembers the number of a live block in the ledger.
    pub(crate) fn set_serial(&mut self, slot: u32, serial: u64) {
        self.at(slot).owner.serial = serial;
    }

    /// Takes a block back from its owner. Returns false, and changes nothing but a counter, if it
    /// is not out.
    pub(crate) fn take_back(&mut self, slot: u32, uses: U, gone: &mut Gone<U>) -> bool {
        if self.block(slot).is_none_or(|block| block.state != State::Live) {
            self.counters.misuses += 1;
            keep(gone, uses);
            return false;
        }
        let block = self.at(slot);
        block.uses = uses;
        let bytes = core::mem::take(&mut block.owner).bytes;
        self.counters.live -= bytes;
        self.counters.blocks -= 1;
        self.enlist(slot, gone);
        true
    }

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
        let slot = self.new_slot(Block {
            address,
            size: bytes,
            before: NONE,
            after: NONE,
            segment: index as u32,
            state: State::Detached,
            uses: U::NONE,
            owner: Owner::default(),
        });
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
            let block = &self.blocks[key.2 as usize];
            block.before == NONE && block.after == NONE
        };
        let slot = idle.iter().rev().find(whole)?.2;
        self.unlist(slot, Order::Idle);
        let index = self.at(slot).segment as usize;
        self.at(slot).state = State::Vacant;
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
    pub(crate) fn blocks_of(&self, segment: Segment) -> impl Iterator<Item = &Block<U>> {
        let mut slot = segment.first;
        core::iter::from_fn(move || {
            let block = self.blocks.get(slot as usize)?;
            slot = block.after;
            Some(block)
        })
    }

    /// Everything, for the end: each segment's memory with the operations on it.
    pub(crate) fn end(&mut self, gone: &mut Gone<U>) -> Vec<(H, U)> {
        let mut all = Vec::new();
        for (index, segment) in self.segments().collect::<Vec<_>>() {
            let (mut slot, mut uses) = (segment.first, U::NONE);
            while slot != NONE {
                let block = self.at(slot);
                slot = block.after;
                let of_block = core::mem::replace(&mut block.uses, U::NONE);
                keep(gone, uses.join(of_block));
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
        let (mut listed, mut bytes, mut leaked, mut live) = (0, 0, 0, 0);
        for (index, segment) in self.segments() {
            let (mut at, mut before) = (segment.address, NONE);
            let mut slot = segment.first;
            while slot != NONE {
                let block = &self.blocks[slot as usize];
                assert_eq!((block.address, block.before, block.segment), (at, before, index), "slot {slot}");
                assert!(block.size > 0 && block.size % UNIT == 0, "slot {slot} of {} bytes", block.size);
                let is_listed = self
                    .free
                    .get(&block.uses.order())
                    .is_some_and(|list| list.contains(&(block.size, block.address, slot)));
                match block.state {
                    State::Free => {
                        assert!(is_listed, "slot {slot} is in no list");
                        listed += 1;
                        let next = self.blocks.get(block.after as usize);
                        let joins = next
                            .is_some_and(|next| next.state == State::Free && block.joins(next, self.callers));
                        assert!(!joins, "slot {slot} and the next are free, and join");
                    }
                    State::Live => live += block.owner.bytes,
                    State::Quarantined => leaked += block.size,
                    State::Detached => {}
                    State::Vacant => panic!("slot {slot} is vacant in a segment"),
                }
                (at, before, slot) = (at + block.size, slot, block.after);
            }
            assert_eq!(at, segment.address + segment.bytes, "segment {index}");
            bytes += segment.bytes;
        }
        assert_eq!(listed, self.free.values().map(BTreeSet::len).sum::<usize>());
        assert_eq!((live, leaked), (self.counters.live, self.counters.leaked));
        assert!(bytes <= self.counters.reserved, "{bytes} of {} reserved", self.counters.reserved);
    }
}
