//! Segments of addresses, the blocks that tile them, and which free block serves a request. Plain
//! numbers: nothing here reads or writes the memory, calls a driver, or copies or drops an event.
//! So a short lock can cover every call, and a replay of a trace needs no memory.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::bins::{self, Bins, Chain, Flow};
use super::choice::Demand;
use super::table::{Block, NONE, Table};

/// Sizes and addresses of blocks are multiples of this (bytes).
pub(crate) const UNIT: u64 = 64;

/// Free blocks that a search with a larger alignment looks at before it asks for a block with room
/// for any address.
const SEARCH: usize = 16;

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
    /// A cache or an owner has it.
    Out,
    /// Failed work may still touch it. It is never given out.
    Quarantined,
}

impl State {
    /// The state of this number.
    pub(crate) fn of(number: u32) -> Self {
        [Self::Vacant, Self::Free, Self::Detached, Self::Out, Self::Quarantined]
            .into_iter()
            .find(|state| *state as u32 == number)
            .unwrap_or(Self::Vacant)
    }
}

impl Order {
    /// As a number, for descriptors.
    #[inline(always)]
    pub(crate) const fn code(self) -> u64 {
        match self {
            Self::Idle => 0,
            Self::Queue(queue) => queue,
            Self::Several => u64::MAX,
        }
    }

    #[inline(always)]
    pub(crate) const fn of_code(code: u64) -> Self {
        match code {
            0 => Self::Idle,
            u64::MAX => Self::Several,
            queue => Self::Queue(queue),
        }
    }
}

impl Block {
    /// Whether free neighbours merge at once. A block that nothing uses becomes part of a larger
    /// one that a queue's work still uses, but no large block waits for the work of a small part,
    /// unless only that queue asks. Work of two queues joins only before the pool grows.
    fn joins(&self, other: &Self, callers: Callers) -> bool {
        let one_queue = matches!(callers, Callers::One(_));
        match (self.order(), other.order()) {
            (ours, theirs) if ours == theirs => true,
            (Order::Idle, Order::Queue(_)) => one_queue || self.size.get() <= other.size.get(),
            (Order::Queue(_), Order::Idle) => one_queue || other.size.get() <= self.size.get(),
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

#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    first: u32,
}

/// Counters, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    /// Blocks that caches and owners have.
    pub(crate) out: u64,
    pub(crate) blocks_out: u64,
    /// The most that owners had, as they asked for it, whenever it was looked at.
    pub(crate) peak_live: u64,
    /// Segments, with those that are being allocated.
    pub(crate) reserved: u64,
    pub(crate) peak_reserved: u64,
    /// Blocks in quarantine.
    pub(crate) leaked: u64,
    /// Allocations that got a block which work of another queue still used.
    pub(crate) waits: u64,
    /// Allocations that got a block of another queue whose work was complete.
    pub(crate) cross_queue: u64,
    /// Returns of blocks that were not out.
    pub(crate) misuses: u64,
}

type Key = (u64, u64, u32);

pub(crate) struct Space<U, H> {
    table: Table<U>,
    /// Descriptors so far.
    slots: u32,
    vacant: Vec<u32>,
    /// Free blocks by (size, address, descriptor).
    free: BTreeMap<Order, BTreeSet<Key>>,
    /// Blocks that are out, by address.
    out: BTreeMap<u64, u32>,
    segments: Vec<Option<Segment>>,
    /// The owners of the segments' memory, by the same index.
    handles: Vec<Option<H>>,
    pub(crate) counters: Counters,
    /// What owners did whose thread has no cache, or had one.
    pub(crate) flow: Flow,
    /// The last sums that were told to a ledger.
    pub(crate) reported: [u64; 4],
    /// Small blocks that the caches of threads exchange. They are out.
    pub(crate) store: Bins,
    /// Blocks that are detached now.
    pub(crate) detached: usize,
    callers: Callers,
    /// Whether a caller is about to add a segment, which may serve others too.
    pub(crate) growing: bool,
    /// Whether the last handle is gone.
    pub(crate) is_closed: bool,
    /// Whether no more blocks will be asked for, and the blocks that are out have one count of the
    /// pool together, which the last one that comes back releases.
    pub(crate) ends_with_last: bool,
}

/// Operations to drop without the lock.
pub(crate) type Gone<U> = Vec<U>;

fn keep<U: Travel>(gone: &mut Gone<U>, uses: U) {
    if uses.order() != Order::Idle {
        gone.push(uses);
    }
}

impl<U: Travel, H> Space<U, H> {
    pub(crate) fn new(table: Table<U>) -> Self {
        Self {
            table,
            slots: 0,
            vacant: Vec::new(),
            free: BTreeMap::new(),
            out: BTreeMap::new(),
            segments: Vec::new(),
            handles: Vec::new(),
            counters: Counters::default(),
            flow: Flow::new(),
            reported: [0; 4],
            store: Bins::new(),
            detached: 0,
            callers: Callers::None,
            growing: false,
            is_closed: false,
            ends_with_last: false,
        }
    }

    /// The least size of a block for `bytes`; `None` above the address space.
    pub(crate) fn round(bytes: u64) -> Option<u64> {
        bytes.max(1).checked_next_multiple_of(UNIT).map(bins::rounded)
    }

    pub(crate) fn block(&self, slot: u32) -> Option<&Block> {
        self.table.get(slot)
    }

    /// The descriptor of a block that the space knows.
    #[expect(clippy::expect_used, reason = "numbers come from the space's own lists")]
    fn at(&self, slot: u32) -> &Block {
        self.table.get(slot).expect("a descriptor of this space")
    }

    /// A descriptor of a detached block.
    fn new_slot(&mut self, address: u64, size: u64, neighbours: (u32, u32), segment: u32) -> u32 {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.table.extend_to(self.slots);
            self.slots += 1;
            self.slots - 1
        });
        let block = self.at(slot);
        block.address.set(address);
        block.size.set(size);
        block.before.set(neighbours.0);
        block.after.set(neighbours.1);
        block.segment.set(segment);
        block.bytes.set(0);
        block.set_state(State::Detached);
        slot
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
        self.at(key.2).set_state(State::Detached);
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
            found.push((key.2, self.table.take_uses(key.2)));
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
                block.set_state(State::Detached);
                found.push((slot, self.table.take_uses(slot)));
            }
        }
        self.detached += found.len();
        found
    }

    /// Makes a detached block free, with these operations, and merges it with neighbours of the
    /// same order.
    pub(crate) fn attach(&mut self, slot: u32, uses: U, gone: &mut Gone<U>) {
        self.table.set_uses(slot, uses);
        self.detached -= 1;
        self.enlist(slot, gone);
    }

    /// Keeps a detached block, whose work failed, from everyone.
    pub(crate) fn quarantine(&mut self, slot: u32, uses: U) {
        self.detached -= 1;
        let block = self.at(slot);
        block.set_state(State::Quarantined);
        self.table.set_uses(slot, uses);
        self.counters.leaked += self.at(slot).size.get();
    }

    /// Puts a block into its list, merged with free neighbours as far as their orders join.
    fn enlist(&mut self, slot: u32, gone: &mut Gone<U>) -> u32 {
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
                self.swallow(slot, after, gone);
            } else if let Some(order) = joins(before) {
                self.unlist(before, order);
                self.swallow(before, slot, gone);
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
    fn list(&mut self, slot: u32) {
        let (order, key) = self.key(slot);
        self.free.entry(order).or_default().insert(key);
    }

    fn key(&self, slot: u32) -> (Order, Key) {
        let block = self.at(slot);
        (block.order(), (block.size.get(), block.address.get(), slot))
    }

    fn unlist(&mut self, slot: u32, order: Order) {
        let (_, key) = self.key(slot);
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
        let (size, following, uses) = (next.size.get(), next.after.get(), self.table.take_uses(after));
        next.set_state(State::Vacant);
        let block = self.at(slot);
        block.size.add(size);
        block.after.set(following);
        let mut ours = self.table.take_uses(slot);
        keep(gone, ours.join(uses));
        self.table.set_uses(slot, ours);
        if following != NONE {
            self.at(following).before.set(slot);
        }
        self.vacant.push(after);
    }

    /// Merges all free neighbours, whatever the order of their operations.
    pub(crate) fn merge_all(&mut self, gone: &mut Gone<U>) {
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
                    self.swallow(slot, after, gone);
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
        gone: &mut Gone<U>,
    ) {
        self.detached -= 1;
        let (address, has_front, has_back) = self.cut(slot, size, alignment);
        if has_front {
            let front = self.split_front(slot, address);
            self.table.set_uses(front, rest());
            self.enlist(front, gone);
        }
        if has_back {
            let back = self.split_back(slot, size);
            self.table.set_uses(back, rest());
            self.enlist(back, gone);
        }
        self.at(slot).set_state(State::Out);
        self.out.insert(address, slot);
        self.counters.out += size;
        self.counters.blocks_out += 1;
    }

    /// Splits the bytes before `address` off. Returns their block.
    fn split_front(&mut self, slot: u32, address: u64) -> u32 {
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
    fn split_back(&mut self, slot: u32, size: u64) -> u32 {
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

    /// The operations on a detached block, which they leave.
    pub(crate) fn take_uses(&mut self, slot: u32) -> U {
        self.table.take_uses(slot)
    }

    /// Takes a block back that no owner has any more; its operations are in the descriptor. Returns
    /// false, and changes nothing but a counter, if it is not out.
    pub(crate) fn take_back(&mut self, slot: u32, gone: &mut Gone<U>) -> bool {
        if self.block(slot).is_none_or(|block| block.state() != State::Out) {
            self.counters.misuses += 1;
            return false;
        }
        let block = self.at(slot);
        let (address, size) = (block.address.get(), block.size.get());
        self.out.remove(&address);
        self.counters.out -= size;
        self.counters.blocks_out -= 1;
        self.enlist(slot, gone);
        true
    }

    /// Takes all blocks of a chain back.
    pub(crate) fn take_chain(&mut self, mut chain: Chain, gone: &mut Gone<U>) {
        let table = self.table.clone();
        while let Some(slot) = chain.pop(&table) {
            self.take_back(slot, gone);
        }
    }

    /// Takes what a cache could not hold: small blocks wait for the next cache that needs them.
    pub(crate) fn take_over(&mut self, mut chain: Chain, gone: &mut Gone<U>) {
        let table = self.table.clone();
        let room = bins::room_of_store(self.counters.reserved);
        while let Some(slot) = chain.pop(&table) {
            match table.get(slot).filter(|block| block.size.get() <= bins::SMALL) {
                Some(block) => {
                    let more = self.store.put(&table, slot, block, room);
                    self.take_chain(more, gone);
                }
                None => _ = self.take_back(slot, gone),
            }
        }
    }

    /// A small block of the shared store, and some more for the cache whose turn the caller holds.
    pub(crate) fn take_stored(&mut self, demand: &Demand, cache: &Bins) -> Option<u32> {
        if demand.size > bins::SMALL || self.store.is_empty() {
            return None;
        }
        let Demand { size, alignment, queue, .. } = *demand;
        let take = || self.store.take(&self.table, size, alignment, queue);
        let (slot, _) = take()?;
        let more = bins::BATCH.0.min((bins::BATCH.1 / size) as u32);
        if cache.is_poor() {
            for (slot, block) in core::iter::from_fn(take).take(more as usize) {
                let none = cache.put(&self.table, slot, block, u64::MAX);
                debug_assert!(none.is_empty());
            }
        }
        Some(slot)
    }

    /// Puts the shared store's blocks back.
    pub(crate) fn empty_store(&mut self, gone: &mut Gone<U>) {
        let all = self.store.empty(&self.table, false);
        self.take_chain(all, gone);
    }

    /// The block with an owner that contains this address.
    pub(crate) fn find(&self, address: u64) -> Option<&Block> {
        let (_, slot) = self.out.range(..=address).next_back()?;
        let block = self.block(*slot)?;
        // An allocation or a free may be under way on another thread.
        (block.is_live() && address - block.address.get() < block.bytes.get()).then_some(block)
    }

    /// All blocks that are out, by address.
    pub(crate) fn all_out(&self) -> impl Iterator<Item = &Block> {
        self.out.values().filter_map(|slot| self.block(*slot))
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
