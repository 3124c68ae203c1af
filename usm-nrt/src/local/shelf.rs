//! The small blocks of an installed allocator that a thread keeps for reuse. `block/slab.rs` carves
//! them.
//!
//! The shelf is separate from the cache of the heap's blocks. No other thread ever touches that
//! cache, so it pays for no synchronisation. Blocks of a shelf must be returned when their
//! allocator is exchanged, whatever their threads do.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use usm_core::per_thread::{self, Claim, Claims, Turn};

use super::{CLASSES, class_size};
use crate::block::{Chain, FreeBlock, Stack};
use crate::fallible::try_into_raw;

/// Maximum number of bytes on a shelf.
const ROOM: usize = 256 * 1024;
/// Number of bytes returned at a time.
const PART: usize = 16 * 1024;

/// A thread's kept blocks. The holder of the turn owns every field except the atomics.
pub(crate) struct Shelf {
    turn: Turn,
    /// The generation of the blocks.
    generation: Cell<u32>,
    /// Number of bytes that still fit.
    room: Cell<usize>,
    /// The class that is returned from next.
    next_class: Cell<usize>,
    /// The blocks of each class; class 0 has none.
    lists: [Stack; CLASSES + 1],
    /// Number of blocks on the shelf.
    blocks: AtomicUsize,
}

// SAFETY: only the holder of the turn accesses the cells: the thread that claimed the shelf, or the
// one that closed it.
unsafe impl Sync for Shelf {}

/// All shelves of the process.
static SHELVES: Claims<Shelf> = Claims::new();
/// The generation whose blocks are kept. The holder of the turn reads it. It changes before all
/// shelves are cleared, so no older block reaches a cleared shelf.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Held by a thread that closes other threads' shelves.
pub(crate) static CLOSING: spin::Mutex<()> = spin::Mutex::new(());

impl Shelf {
    fn new() -> Self {
        Self {
            turn: Turn::new(),
            generation: Cell::new(0),
            room: Cell::new(ROOM),
            next_class: Cell::new(0),
            lists: [const { Stack::new() }; CLASSES + 1],
            blocks: AtomicUsize::new(0),
        }
    }

    /// Claims a shelf for the calling thread until it gives it up; `None` without memory.
    pub(super) fn claim() -> Option<&'static Claim<Self>> {
        SHELVES.claim(Self::new, try_into_raw)
    }

    /// A kept block of `class` and of the current generation.
    #[inline]
    pub(crate) fn take(&self, class: u8) -> Option<FreeBlock> {
        if !self.turn.enter() {
            return None;
        }
        let current = self.generation.get() == GENERATION.load(Ordering::Relaxed);
        let block = if current { self.pop(class) } else { None };
        self.turn.leave();
        block
    }

    /// Keeps a block of `class`, carved in `generation`. Returns the blocks that the caller must
    /// return to their slabs.
    #[inline]
    pub(crate) fn put(&self, class: u8, block: FreeBlock, generation: u32) -> Chain {
        let mut back = Chain::new();
        if !self.turn.enter() {
            back.push(block);
            return back;
        }
        let now = GENERATION.load(Ordering::Relaxed);
        if self.generation.get() != now {
            back = self.empty();
            self.generation.set(now);
        }
        if generation != now {
            self.turn.leave();
            back.push(block);
            return back;
        }
        if self.room.get() < class_size(class) {
            self.make_room(&mut back);
        }
        self.push(class, block);
        self.turn.leave();
        back
    }

    /// [`put`](Self::put) for several blocks.
    pub(crate) fn put_all(&self, class: u8, mut chain: Chain, generation: u32) -> Chain {
        let mut back = Chain::new();
        while let Some(block) = chain.pop() {
            back.append(self.put(class, block, generation));
        }
        back
    }

    /// Takes all blocks off the shelf; only its owner calls it. Takes none while another thread
    /// clears it.
    pub(super) fn clear(&self) -> Chain {
        if !self.turn.enter() {
            return Chain::new();
        }
        let all = self.empty();
        self.turn.leave();
        all
    }

    #[inline(always)]
    fn pop(&self, class: u8) -> Option<FreeBlock> {
        let block = self.lists.get(usize::from(class))?.pop()?;
        self.room.set(self.room.get() + class_size(class));
        self.blocks.store(self.blocks.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        Some(block)
    }

    #[inline(always)]
    fn push(&self, class: u8, block: FreeBlock) {
        let Some(list) = self.lists.get(usize::from(class)) else { return };
        list.push(block);
        self.room.set(self.room.get() - class_size(class));
        self.blocks.store(self.blocks.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    #[cold]
    fn make_room(&self, back: &mut Chain) {
        while self.room.get() < PART {
            let class = self.next_class.get() % CLASSES + 1;
            match self.pop(class as u8) {
                Some(block) => back.push(block),
                None => self.next_class.set(class),
            }
        }
    }

    #[cold]
    fn empty(&self) -> Chain {
        let mut all = Chain::new();
        for class in (1..).take(CLASSES) {
            while let Some(block) = self.pop(class) {
                all.push(block);
            }
        }
        all
    }
}

/// Number of blocks on all shelves.
pub(crate) fn blocks_on_shelves() -> usize {
    SHELVES.iter().map(|shelf| shelf.blocks.load(Ordering::Relaxed)).sum()
}

/// Keeps blocks of `generation` and no others from now on.
pub(crate) fn set_generation(generation: u32) {
    GENERATION.store(generation, Ordering::Relaxed);
}

/// Takes the kept blocks of all threads; the caller returns them to their slabs. Takes none if the
/// system has no barrier for it, and none of a thread that is inside its shelf for too long. Those
/// threads return their blocks themselves, at their next block or at their end.
pub(crate) fn clear_all() -> Chain {
    let mut batch = Chain::new();
    let _guard = CLOSING.lock();
    per_thread::take_all(
        &SHELVES,
        |_| true,
        |shelf| &shelf.turn,
        per_thread::in_all_threads,
        |shelf| batch.append(shelf.empty()),
    );
    batch
}
