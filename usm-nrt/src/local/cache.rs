//! The small blocks that a thread keeps for reuse: the one freed last, and a list for each size
//! class.
//!
//! The block freed last lies beside the lists. A thread that makes and frees one block at a time,
//! the usual life of a temporary, then touches two words and nothing inside the block. A list would
//! also need the next pointer and the remaining room.
//!
//! All lists share the room, so a thread that needs many blocks of one class gets them. When the
//! room is used up, the cache frees a part of its blocks, class by class. A thread that only frees
//! pays for that once in many blocks, and classes that are no longer used become empty in the end.

use core::cell::Cell;
use core::mem::MaybeUninit;

use super::{CLASSES, class_size};
use crate::block::{FreeBlock, Stack};

/// Maximum number of bytes in all lists of a thread.
const ROOM: usize = 256 * 1024;
/// Number of bytes freed at a time.
const PART: usize = 16 * 1024;

/// A thread's cache.
pub(crate) struct Cache {
    /// The class of the block freed last; 0 if there is none.
    class: Cell<u8>,
    at_hand: Cell<MaybeUninit<FreeBlock>>,
    /// Number of bytes that still fit in the lists.
    room: Cell<usize>,
    /// The class that is freed from next.
    turn: Cell<usize>,
    /// The free blocks of each class; class 0 has none.
    lists: [Stack; CLASSES + 1],
}

impl Cache {
    pub(super) const fn new() -> Self {
        Self {
            class: Cell::new(0),
            at_hand: Cell::new(MaybeUninit::uninit()),
            room: Cell::new(ROOM),
            turn: Cell::new(0),
            lists: [const { Stack::new() }; CLASSES + 1],
        }
    }

    /// A kept block of `class`, which is not 0. Its prefix is unchanged.
    #[inline(always)]
    pub(crate) fn take(&self, class: u8) -> Option<FreeBlock> {
        if self.class.get() == class {
            self.class.set(0);
            let at_hand = self.at_hand.replace(MaybeUninit::uninit());
            // SAFETY: initialised while `class` is not 0.
            return Some(unsafe { at_hand.assume_init() });
        }
        self.pop(class)
    }

    /// Keeps a block of `class`, which is not 0.
    #[inline(always)]
    pub(crate) fn put(&self, class: u8, block: FreeBlock) {
        let old_class = self.class.replace(class);
        let before = self.at_hand.replace(MaybeUninit::new(block));
        if old_class != 0 {
            // SAFETY: as in `take`.
            self.return_to_list(old_class, unsafe { before.assume_init() });
        }
    }

    /// Frees all blocks.
    pub(super) fn drain(&self) {
        for class in (1..).take(CLASSES) {
            while let Some(block) = self.take(class) {
                block.free();
            }
        }
    }

    #[inline(always)]
    fn pop(&self, class: u8) -> Option<FreeBlock> {
        let block = self.lists.get(usize::from(class))?.pop()?;
        self.room.set(self.room.get() + class_size(class));
        Some(block)
    }

    /// Moves the block that was freed before the last one to its list.
    #[inline(never)]
    fn return_to_list(&self, class: u8, block: FreeBlock) {
        let Some(list) = self.lists.get(usize::from(class)) else { return };
        if self.room.get() < class_size(class) {
            self.give_back();
        }
        list.push(block);
        self.room.set(self.room.get() - class_size(class));
    }

    /// Frees a part of the blocks.
    #[cold]
    #[inline(never)]
    fn give_back(&self) {
        while self.room.get() < PART {
            let class = self.turn.get() % CLASSES + 1;
            match self.pop(class as u8) {
                Some(block) => block.free(),
                None => self.turn.set(class),
            }
        }
    }
}
