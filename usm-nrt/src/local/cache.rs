//! The small blocks that a thread keeps for its next ones: one at hand, and a list for each size
//! class.
//!
//! The block freed last lies beside the lists. Who makes and frees one block at a time, the usual
//! life of a temporary, then touches two words and nothing inside of the block; a list would also
//! want the next pointer and the room that is left.
//!
//! All lists share the room, so that a thread that needs many blocks of one class gets them. When
//! it is used up, a part of what lies there is given back, class by class: who only frees pays for
//! that once in many blocks, and what nobody asks for any more goes in the end.

use core::cell::Cell;
use core::mem::MaybeUninit;

use super::{CLASSES, class_size};
use crate::block::{Kept, Stack};

/// Most bytes that all lists of a thread may hold back.
const ROOM: usize = 256 * 1024;
/// Bytes that are given back at a time.
const PART: usize = 16 * 1024;

/// What one thread keeps.
pub(crate) struct Cache {
    /// The class of the block at hand; 0 when there is none.
    class: Cell<u8>,
    at_hand: Cell<MaybeUninit<Kept>>,
    /// How many more bytes the lists may hold.
    room: Cell<usize>,
    /// The class that gives back next.
    turn: Cell<usize>,
    /// The free blocks of each class; none of class 0.
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

    /// A block of `class`, which is not 0, with the prefix that it had.
    #[inline(always)]
    pub(crate) fn take(&self, class: u8) -> Option<Kept> {
        if self.class.get() == class {
            self.class.set(0);
            let at_hand = self.at_hand.replace(MaybeUninit::uninit());
            // SAFETY: there is one while there is a class of it.
            return Some(unsafe { at_hand.assume_init() });
        }
        self.pop(class)
    }

    /// Keeps a block of `class`, which is not 0.
    #[inline(always)]
    pub(crate) fn put(&self, class: u8, kept: Kept) {
        let displaced = self.class.replace(class);
        let before = self.at_hand.replace(MaybeUninit::new(kept));
        if displaced != 0 {
            // SAFETY: as in `take`.
            self.put_away(displaced, unsafe { before.assume_init() });
        }
    }

    /// Gives all blocks back.
    pub(super) fn drain(&self) {
        for class in (1..).take(CLASSES) {
            while let Some(kept) = self.take(class) {
                kept.free();
            }
        }
    }

    #[inline(always)]
    fn pop(&self, class: u8) -> Option<Kept> {
        let kept = self.lists.get(usize::from(class))?.pop()?;
        self.room.set(self.room.get() + class_size(class));
        Some(kept)
    }

    /// Puts the block that was at hand on its list.
    #[inline(never)]
    fn put_away(&self, class: u8, kept: Kept) {
        let Some(list) = self.lists.get(usize::from(class)) else { return };
        if self.room.get() < class_size(class) {
            self.give_back();
        }
        list.push(kept);
        self.room.set(self.room.get() - class_size(class));
    }

    /// Makes room for many blocks.
    #[cold]
    #[inline(never)]
    fn give_back(&self) {
        while self.room.get() < PART {
            let class = self.turn.get() % CLASSES + 1;
            match self.pop(class as u8) {
                Some(kept) => kept.free(),
                None => self.turn.set(class),
            }
        }
    }
}
