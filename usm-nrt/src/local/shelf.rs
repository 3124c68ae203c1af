//! The small blocks of an installed allocator that a thread keeps for its next ones
//! (`block/slab.rs` carves them).
//!
//! Beside the cache of the heap's blocks, not in it: that one is never touched by another thread
//! and pays nothing for that; these must go back when the allocator is given up, whatever their
//! threads are doing.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::{CLASSES, barrier, class_size};
use crate::block::{Chain, Kept, Stack};
use crate::claims::{Claim, Claims};
use crate::turn::{self, Turn};

/// Most bytes that a shelf may hold back.
const ROOM: usize = 256 * 1024;
/// Bytes that are given back at a time.
const PART: usize = 16 * 1024;

/// What one thread keeps. Everything but the atomics belongs to whoever has the turn.
pub(crate) struct Shelf {
    turn: Turn,
    /// Which installation the blocks are of.
    generation: Cell<u32>,
    /// How many more bytes it may hold.
    room: Cell<usize>,
    /// The class that gives back next.
    next_class: Cell<usize>,
    /// The blocks of each class; none of class 0.
    lists: [Stack; CLASSES + 1],
    /// How many blocks lie here.
    blocks: AtomicUsize,
}

// SAFETY: cells are touched only by who has the turn: the thread that has claimed the shelf, or the
// one that closed it out.
unsafe impl Sync for Shelf {}

/// All shelves.
static SHELVES: Claims<Shelf> = Claims::new();
/// The installation whose blocks are kept. Looked at by who has the turn: whoever clears all
/// shelves has changed it before, so nothing of the one before comes to a shelf that was cleared.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Held by whoever closes others out.
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

    /// A shelf for the calling thread alone, until it gives it up; `None` without memory.
    pub(super) fn claim() -> Option<&'static Claim<Self>> {
        SHELVES.claim(Self::new)
    }

    /// A block of `class` and of this installation.
    #[inline]
    pub(crate) fn take(&self, class: u8) -> Option<Kept> {
        if !self.turn.enter() {
            return None;
        }
        let current = self.generation.get() == GENERATION.load(Ordering::Relaxed);
        let kept = if current { self.pop(class) } else { None };
        self.turn.leave();
        kept
    }

    /// Keeps a block of `class`, carved in `generation`; what the caller is to give back for it.
    #[inline]
    pub(crate) fn put(&self, class: u8, kept: Kept, generation: u32) -> Chain {
        let mut back = Chain::new();
        if !self.turn.enter() {
            back.push(kept);
            return back;
        }
        let now = GENERATION.load(Ordering::Relaxed);
        if self.generation.get() != now {
            back = self.empty();
            self.generation.set(now);
        }
        if generation != now {
            self.turn.leave();
            back.push(kept);
            return back;
        }
        if self.room.get() < class_size(class) {
            self.make_room(&mut back);
        }
        self.push(class, kept);
        self.turn.leave();
        back
    }

    /// [`put`](Self::put) of several.
    pub(crate) fn put_all(&self, class: u8, mut chain: Chain, generation: u32) -> Chain {
        let mut back = Chain::new();
        while let Some(kept) = chain.pop() {
            back.append(self.put(class, kept, generation));
        }
        back
    }

    /// Takes everything away; the owner's to call. Nothing while somebody else does so.
    pub(super) fn clear(&self) -> Chain {
        if !self.turn.enter() {
            return Chain::new();
        }
        let all = self.empty();
        self.turn.leave();
        all
    }

    #[inline(always)]
    fn pop(&self, class: u8) -> Option<Kept> {
        let kept = self.lists.get(usize::from(class))?.pop()?;
        self.room.set(self.room.get() + class_size(class));
        self.blocks.store(self.blocks.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        Some(kept)
    }

    #[inline(always)]
    fn push(&self, class: u8, kept: Kept) {
        let Some(list) = self.lists.get(usize::from(class)) else { return };
        list.push(kept);
        self.room.set(self.room.get() - class_size(class));
        self.blocks.store(self.blocks.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    #[cold]
    fn make_room(&self, back: &mut Chain) {
        while self.room.get() < PART {
            let class = self.next_class.get() % CLASSES + 1;
            match self.pop(class as u8) {
                Some(kept) => back.push(kept),
                None => self.next_class.set(class),
            }
        }
    }

    #[cold]
    fn empty(&self) -> Chain {
        let mut all = Chain::new();
        for class in (1..).take(CLASSES) {
            while let Some(kept) = self.pop(class) {
                all.push(kept);
            }
        }
        all
    }
}

/// How many blocks lie on all shelves.
pub(crate) fn shelved() -> usize {
    SHELVES.iter().map(|shelf| shelf.blocks.load(Ordering::Relaxed)).sum()
}

/// From now on blocks of `generation` are kept, and no others.
pub(crate) fn set_generation(generation: u32) {
    GENERATION.store(generation, Ordering::Relaxed);
}

/// Takes from all threads what they keep: the caller's to give back. Where the system has no
/// barrier for that, and from a thread that is held up just then, nothing: those give back
/// themselves, with their next block or at their end.
pub(crate) fn clear_all() -> Chain {
    let mut taken = Chain::new();
    let _guard = CLOSING.lock();
    turn::take_all(
        &SHELVES,
        |shelf| &shelf.turn,
        barrier::in_all_threads,
        |shelf| taken.append(shelf.empty()),
    );
    taken
}
