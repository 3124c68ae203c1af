//! Segments of addresses, the blocks that tile them, and which free block serves a request. Plain
//! numbers: nothing here reads or writes the memory, calls a driver, or copies or drops an event.
//! So a short lock can cover every call, and a replay of a trace needs no memory.

mod back;
mod cut;
mod free;
mod places;
mod segments;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::bins::{Bins, Flow};
use super::classes;
use super::table::{Block, Table};
use free::Free;
use places::Places;

/// Sizes and addresses of blocks are multiples of this (bytes).
pub(crate) const UNIT: u64 = 64;

/// Queues whose empty lists are kept.
const QUEUES: usize = 8;

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
        match number {
            1 => Self::Free,
            2 => Self::Detached,
            3 => Self::Out,
            4 => Self::Quarantined,
            _ => Self::Vacant,
        }
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
    pub(crate) quarantine: u64,
    /// Allocations that got a block which work of another queue still used.
    pub(crate) waits: u64,
    /// Allocations that got a block of another queue whose work was complete.
    pub(crate) cross_queue: u64,
    /// Returns of blocks that were not out.
    pub(crate) misuses: u64,
}

/// Size, address, descriptor.
type Key = (u64, u64, u32);

pub(crate) struct Space<U, H> {
    table: Table<U>,
    /// Descriptors so far.
    slots: u32,
    vacant: Vec<u32>,
    /// Free blocks without operations.
    idle: Free,
    /// Free blocks with operations, by their order.
    used: BTreeMap<Order, Free>,
    places: Places,
    segments: Vec<Option<Segment>>,
    /// The owners of the segments' memory, by the same index.
    handles: Vec<Option<H>>,
    pub(crate) counters: Counters,
    /// What owners did whose thread has no cache, or had one.
    pub(crate) flow: Flow,
    /// The last sums that were told to a ledger.
    pub(crate) last_report: [u64; 4],
    /// Small blocks that the caches of threads exchange. They are out.
    pub(crate) store: Bins,
    /// Blocks that are detached now.
    pub(crate) detached_count: usize,
    callers: Callers,
    /// Whether a caller is about to add a segment, which may serve others too.
    pub(crate) is_growing: bool,
    /// Whether the last handle is gone.
    pub(crate) is_closed: bool,
    /// Whether no more blocks will be asked for, and the blocks that are out have one count of the
    /// pool together, which the last one that comes back releases.
    pub(crate) ends_with_last: bool,
}

/// Operations to drop without the lock.
pub(crate) type Garbage<U> = Vec<U>;

fn keep<U: Travel>(garbage: &mut Garbage<U>, uses: U) {
    if uses.order() != Order::Idle {
        garbage.push(uses);
    }
}

impl<U: Travel, H> Space<U, H> {
    pub(crate) fn new(table: Table<U>) -> Self {
        Self {
            table,
            slots: 0,
            vacant: Vec::new(),
            idle: Free::default(),
            used: BTreeMap::new(),
            places: Places::default(),
            segments: Vec::new(),
            handles: Vec::new(),
            counters: Counters::default(),
            flow: Flow::new(),
            last_report: [0; 4],
            store: Bins::new(),
            detached_count: 0,
            callers: Callers::None,
            is_growing: false,
            is_closed: false,
            ends_with_last: false,
        }
    }

    /// The least size of a block for `bytes`; `None` above the address space.
    pub(crate) fn round(bytes: u64) -> Option<u64> {
        bytes.max(1).checked_next_multiple_of(UNIT).map(classes::rounded)
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

    /// The free blocks of an order.
    fn free(&self, order: Order) -> Option<&Free> {
        match order {
            Order::Idle => Some(&self.idle),
            order => self.used.get(&order),
        }
    }

    /// The best fit in the lists of one order: the smallest block, at its lowest address.
    fn fit(&self, order: Order, size: u64, alignment: u64) -> Option<Key> {
        self.free(order)?.fit(&self.table, size, alignment)
    }

    fn detach(&mut self, order: Order, key: Key) {
        self.unlist(key.2, order);
        self.at(key.2).set_state(State::Detached);
        self.detached_count += 1;
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
            Callers::One(caller) if caller == queue => self.callers,
            _ => Callers::Many,
        };
        let mut best = self.fit(Order::Idle, size, alignment).map(|key| (key, Order::Idle));
        if let Order::Queue(_) = queue {
            let of_queue = self.fit(queue, size, alignment).map(|key| (key, queue));
            best = [best, of_queue].into_iter().flatten().min();
        }
        let (key, order) = best?;
        let is_other = |order: &&Order| **order != queue;
        let smaller = |order: &Order| self.fit(*order, size, alignment).is_some_and(|other| other.0 < key.0);
        if asks && self.used.keys().filter(is_other).any(smaller) {
            return None;
        }
        self.detach(order, key);
        Some(key.2)
    }

    /// At most `count` of the smallest blocks that fit and have unfinished operations, detached.
    /// Each comes with its operations.
    pub(crate) fn detach_waiting(&mut self, size: u64, alignment: u64, count: usize) -> Vec<(u32, U)> {
        let mut blocks = Vec::new();
        while blocks.len() < count {
            let fits =
                self.used.keys().filter_map(|order| Some((self.fit(*order, size, alignment)?, *order)));
            let Some((key, order)) = fits.min() else { break };
            self.detach(order, key);
            blocks.push((key.2, self.table.take_uses(key.2)));
        }
        blocks
    }

    /// All free blocks with unfinished operations, detached.
    pub(crate) fn detach_all_waiting(&mut self) -> Vec<(u32, U)> {
        let mut blocks = Vec::new();
        for free in core::mem::take(&mut self.used).into_values() {
            for (.., slot) in free.all(&self.table) {
                self.at(slot).set_state(State::Detached);
                blocks.push((slot, self.table.take_uses(slot)));
            }
        }
        self.detached_count += blocks.len();
        blocks
    }

    /// Makes a detached block free, with these operations, and merges it with neighbours of the
    /// same order.
    pub(crate) fn attach(&mut self, slot: u32, uses: U, garbage: &mut Garbage<U>) {
        self.table.set_uses(slot, uses);
        self.detached_count -= 1;
        self.enlist(slot, garbage);
    }

    /// Keeps a detached block, whose work failed, from everyone.
    pub(crate) fn quarantine(&mut self, slot: u32, uses: U) {
        self.detached_count -= 1;
        let block = self.at(slot);
        block.set_state(State::Quarantined);
        self.table.set_uses(slot, uses);
        self.counters.quarantine += self.at(slot).size.get();
    }

    /// The operations on a detached block, which they leave.
    pub(crate) fn take_uses(&mut self, slot: u32) -> U {
        self.table.take_uses(slot)
    }

    /// The block with an owner that contains this address.
    pub(crate) fn find(&self, address: u64) -> Option<&Block> {
        let (index, _) = self.segment_at(address)?;
        let block = self.block_at(index, address)?;
        // An allocation or a free may be under way on another thread.
        (block.is_live() && address - block.address.get() < block.bytes.get()).then_some(block)
    }

    /// All blocks that are out, by segment and address.
    pub(crate) fn all_out(&self) -> impl Iterator<Item = &Block> {
        let blocks = self.segments().flat_map(|(_, segment)| self.blocks_of(segment));
        blocks.filter(|block| block.state() == State::Out)
    }
}
