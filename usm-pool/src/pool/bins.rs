//! The free blocks that a cache holds, in a list for each size. Plain numbers, as the space: the
//! same code serves the caches of threads, the store that they share, and replays.

#[cfg(feature = "std")]
use super::classes::size_of_class;
use super::classes::{CLASSES, HASHED, SMALL, Ticket, bin_of};
use super::space::{Order, Travel};
use super::table::{Block, NONE, Num32, Num64, Table};

const BINS: usize = CLASSES + HASHED;

/// Larger classes that serve a request whose own class is empty.
const BEYOND: u32 = 3;
/// Blocks of a list that are looked at.
const LOOKS: usize = 4;
/// Most blocks of a cache, and of the store.
const MOST: u32 = 1024;
/// Bytes that every cache may hold. Larger pools' caches hold a part of what the pool has, and the
/// store half as much of what threads freed that allocate as much.
const ROOM: u64 = 256 << 10;
const PART: u64 = 32;

/// Bytes that a cache of a pool of `reserved` bytes may hold.
#[inline(always)]
pub(crate) fn room(reserved: u64) -> u64 {
    ROOM.max(reserved / PART)
}

/// The same for the store.
pub(crate) fn room_of_store(reserved: u64) -> u64 {
    (ROOM / 4).max(reserved / PART / 2)
}

/// Blocks, and bytes, that move from the shared store to a thread at once.
pub(crate) const BATCH: (u32, u64) = (16, 64 << 10);

/// A block that left a list.
pub(crate) struct CachedBlock<'t> {
    pub(crate) ticket: Ticket,
    pub(crate) block: &'t Block,
}

/// What owners did: sums of bytes as requested, and numbers of blocks.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    pub(crate) allocated_bytes: Num64,
    pub(crate) freed_bytes: Num64,
    pub(crate) allocations: Num64,
    pub(crate) frees: Num64,
}

impl Flow {
    pub(crate) const fn new() -> Self {
        Self {
            allocated_bytes: Num64::new(0),
            freed_bytes: Num64::new(0),
            allocations: Num64::new(0),
            frees: Num64::new(0),
        }
    }

    #[inline(always)]
    pub(crate) fn allocate(&self, bytes: u64) {
        self.allocated_bytes.add(bytes);
        self.allocations.add(1);
    }

    #[inline(always)]
    pub(crate) fn free(&self, bytes: u64) {
        self.freed_bytes.add(bytes);
        self.frees.add(1);
    }

    /// Adds those of another one.
    pub(crate) fn add(&self, other: &Self) {
        self.allocated_bytes.add(other.allocated_bytes.get());
        self.freed_bytes.add(other.freed_bytes.get());
        self.allocations.add(other.allocations.get());
        self.frees.add(other.frees.get());
    }

    #[cfg(feature = "std")]
    pub(crate) fn clear(&self) {
        for number in [&self.allocated_bytes, &self.freed_bytes, &self.allocations, &self.frees] {
            number.set(0);
        }
    }

    /// Bytes allocated and not freed, as far as both are seen.
    pub(crate) fn live(&self) -> u64 {
        self.allocated_bytes.get().saturating_sub(self.freed_bytes.get())
    }
}

#[derive(Debug)]
struct Bin {
    size: Num64,
    head: Num32,
}

/// Blocks in a list by their descriptors, on their way to the space.
#[derive(Debug)]
#[must_use = "the blocks would be lost"]
pub(crate) struct Chain {
    head: u32,
}

impl Chain {
    pub(crate) const fn new() -> Self {
        Self { head: NONE }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NONE
    }

    fn push<U: Travel>(&mut self, table: &Table<U>, slot: u32) {
        if let Some(block) = table.get(slot) {
            block.next.set(self.head);
            self.head = slot;
        }
    }

    pub(crate) fn pop<U: Travel>(&mut self, table: &Table<U>) -> Option<u32> {
        let slot = self.head;
        self.head = table.get(slot)?.next.get();
        Some(slot)
    }
}

/// The lists. Only the holder calls the functions that change them.
#[derive(Debug)]
pub(crate) struct Bins {
    bins: [Bin; BINS],
    bytes: Num64,
    /// The part of `bytes` that unfinished operations were last known to use.
    pending: Num64,
    blocks: Num32,
    /// The bin that is emptied next.
    turn: Num32,
}

impl Bins {
    pub(crate) const fn new() -> Self {
        Self {
            bins: [const { Bin { size: Num64::new(0), head: Num32::new(NONE) } }; BINS],
            bytes: Num64::new(0),
            pending: Num64::new(0),
            blocks: Num32::new(0),
            turn: Num32::new(0),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.get() == 0
    }

    /// Bytes without operations, and with some.
    pub(crate) fn free_bytes(&self) -> (u64, u64) {
        let pending = self.pending.get();
        (self.bytes.get().saturating_sub(pending), pending)
    }

    /// Whether a [batch](BATCH) fits.
    pub(crate) fn is_poor(&self) -> bool {
        self.bytes.get() + BATCH.1 <= ROOM && self.blocks.get() + BATCH.0 <= MOST
    }

    /// A block for a request of this size, the last one that came, whose operations need not be
    /// waited for by the queue.
    #[inline(always)]
    pub(crate) fn take<'t, U: Travel>(
        &self,
        table: &'t Table<U>,
        size: u64,
        alignment: u64,
        queue: Order,
    ) -> Option<CachedBlock<'t>> {
        let bin = bin_of(size);
        let fits = self.bins[bin].head.get() != NONE && (size <= SMALL || self.bins[bin].size.get() == size);
        if fits {
            if let Some(hit) = self.take_of(table, bin, alignment, queue) {
                return Some(hit);
            }
        }
        if size > SMALL { None } else { self.take_larger(table, bin, alignment, queue) }
    }

    /// A block of one of the next classes.
    #[inline(never)]
    fn take_larger<'t, U: Travel>(
        &self,
        table: &'t Table<U>,
        bin: usize,
        alignment: u64,
        queue: Order,
    ) -> Option<CachedBlock<'t>> {
        // The wasted part of a block stays a few percent.
        let last = (bin + BEYOND.min(bin as u32 / 8) as usize).min(CLASSES - 1);
        (bin + 1..=last).find_map(|bin| match self.bins[bin].head.get() {
            NONE => None,
            _ => self.take_of(table, bin, alignment, queue),
        })
    }

    #[inline(always)]
    fn take_of<'t, U: Travel>(
        &self,
        table: &'t Table<U>,
        bin: usize,
        alignment: u64,
        queue: Order,
    ) -> Option<CachedBlock<'t>> {
        let mut place = &self.bins[bin].head;
        for _ in 0..LOOKS {
            let slot = place.get();
            let block = table.get(slot)?;
            if block.is_ready_for(queue.code()) && block.address.get() & (alignment - 1) == 0 {
                place.set(block.next.get());
                self.removed(block);
                return Some(CachedBlock { ticket: Ticket::of_bin(slot, bin), block });
            }
            place = &block.next;
        }
        None
    }

    #[inline(always)]
    fn removed(&self, block: &Block) {
        let size = block.size.get();
        self.bytes.set(self.bytes.get() - size);
        if !block.is_idle() {
            self.pending.set(self.pending.get() - size);
        }
        self.blocks.set(self.blocks.get() - 1);
    }

    /// Keeps a block. Returns those that are too many for this room; never this one.
    #[inline(always)]
    pub(crate) fn put<U: Travel>(&self, table: &Table<U>, slot: u32, block: &Block, room: u64) -> Chain {
        let size = block.size.get();
        self.put_into(table, (slot, block), (size, bin_of(size)), block.is_idle(), room)
    }

    /// The same for a block of a ticket. Of an idle block with a class nothing is read.
    #[cfg(feature = "std")]
    #[inline(always)]
    pub(crate) fn put_ticket<U: Travel>(
        &self,
        table: &Table<U>,
        ticket: Ticket,
        block: &Block,
        is_idle: bool,
        room: u64,
    ) -> Chain {
        match ticket.class() {
            Some(class) => {
                let size = size_of_class(class);
                debug_assert_eq!((size, is_idle), (block.size.get(), block.is_idle()));
                self.put_into(table, (ticket.slot(), block), (size, class), is_idle, room)
            }
            None => self.put(table, ticket.slot(), block, room),
        }
    }

    #[inline(always)]
    fn put_into<U: Travel>(
        &self,
        table: &Table<U>,
        (slot, block): (u32, &Block),
        (size, bin): (u64, usize),
        is_idle: bool,
        room: u64,
    ) -> Chain {
        let Some(list) = self.bins.get(bin) else { return Chain::new() };
        let head = list.head.get();
        let bytes = self.bytes.get() + size;
        let fits = bytes <= room && self.blocks.get() < MOST && (head == NONE || list.size.get() == size);
        if !fits && !self.is_empty() {
            return self.put_instead(table, slot, block, room);
        }
        self.link(slot, block, (size, bin), is_idle);
        Chain::new()
    }

    /// Keeps a block of a class, whatever the number of blocks and bytes.
    pub(crate) fn put_any(&self, slot: u32, block: &Block) {
        let size = block.size.get();
        self.link(slot, block, (size, bin_of(size)), block.is_idle());
    }

    #[inline(always)]
    fn link(&self, slot: u32, block: &Block, (size, bin): (u64, usize), is_idle: bool) {
        let Some(list) = self.bins.get(bin) else { return };
        block.next.set(list.head.get());
        list.head.set(slot);
        list.size.set(size);
        self.bytes.add(size);
        if !is_idle {
            self.pending.add(size);
        }
        self.blocks.set(self.blocks.get() + 1);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Puts a block after others went.
    #[inline(never)]
    fn put_instead<U: Travel>(&self, table: &Table<U>, slot: u32, block: &Block, room: u64) -> Chain {
        let mut chain = Chain::new();
        let size = block.size.get();
        let bin = bin_of(size);
        if self.bins[bin].size.get() != size {
            self.empty_bin(table, bin, u32::MAX, &mut chain);
        }
        // Some more than needed, so that the next blocks find room.
        let (most_bytes, most_blocks) = ((room - room / 4).saturating_sub(size), MOST - MOST / 4);
        while (self.bytes.get() > most_bytes || self.blocks.get() > most_blocks) && !self.is_empty() {
            let turn = self.turn.get() as usize % BINS;
            // All of a large size, which later requests may never ask for again.
            let count = if turn < CLASSES { 8 } else { u32::MAX };
            self.empty_bin(table, turn, count, &mut chain);
            if self.bins[turn].head.get() == NONE {
                self.turn.set(self.next_full(turn + 1));
            }
        }
        let more = self.put(table, slot, block, u64::MAX);
        debug_assert!(more.is_empty());
        chain
    }

    /// The next bin with blocks, in a circle; this one if there are none.
    fn next_full(&self, from: usize) -> u32 {
        let is_full = |bin: &usize| self.bins[*bin % BINS].head.get() != NONE;
        ((from..from + BINS).find(is_full).unwrap_or(from) % BINS) as u32
    }

    fn empty_bin<U: Travel>(&self, table: &Table<U>, bin: usize, count: u32, chain: &mut Chain) {
        for _ in 0..count {
            let slot = self.bins[bin].head.get();
            let Some(block) = table.get(slot) else { break };
            self.bins[bin].head.set(block.next.get());
            self.removed(block);
            chain.push(table, slot);
        }
    }

    /// All blocks, or all large ones.
    pub(crate) fn empty<U: Travel>(&self, table: &Table<U>, only_large: bool) -> Chain {
        let mut chain = Chain::new();
        let first = if only_large { CLASSES } else { 0 };
        for bin in first..BINS {
            if self.is_empty() {
                break;
            }
            self.empty_bin(table, bin, u32::MAX, &mut chain);
        }
        chain
    }
}
