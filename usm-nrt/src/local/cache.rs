//! The small blocks that a thread keeps for its next ones: one at hand, and a list for each size class.
//!
//! The block freed last lies beside the lists. Who makes and frees one block at a time, the usual life of a temporary, then
//! touches two words and nothing inside of the block; a list would also want the next pointer and the room that is left.
//!
//! All lists share the room, so that a thread that needs many blocks of one class gets them. When it is used up, a part of what
//! lies there is given back, class by class: who only frees pays for that once in many blocks, and what nobody asks for any more
//! goes in the end.

use core::cell::Cell;
use core::ptr::{self, NonNull};

use super::{CLASSES, class_size};
use crate::block;

/// Most bytes that all lists of a thread may hold back.
const ROOM: usize = 256 * 1024;
/// Bytes that are given back at a time.
const PART: usize = 16 * 1024;

/// A free block, as long as the cache has it. What the block's owner and late users of it look at stays as it was: the
/// prefix, which the next owner needs anyway, and the reference count, so that a second release is still seen.
#[repr(C)]
pub(crate) struct Node {
    prefix: [usize; PREFIX_WORDS],
    refcount: usize,
    pub(crate) next: *mut Node,
}

const PREFIX_WORDS: usize = block::PREFIX / size_of::<usize>();
const _: () = assert!(size_of::<Node>() <= super::CLASS_STEP);

/// What one thread keeps.
pub(crate) struct Cache {
    /// The class of the block at hand; 0 when there is none.
    class: Cell<u8>,
    at_hand: Cell<*mut Node>,
    /// How many more bytes the lists may hold.
    room: Cell<usize>,
    /// The class that gives back next.
    turn: Cell<usize>,
    /// The free blocks of each class; none of class 0.
    lists: [Cell<*mut Node>; CLASSES + 1],
}

impl Cache {
    pub(super) const fn new() -> Self {
        Self {
            class: Cell::new(0),
            at_hand: Cell::new(ptr::null_mut()),
            room: Cell::new(ROOM),
            turn: Cell::new(0),
            lists: [const { Cell::new(ptr::null_mut()) }; CLASSES + 1],
        }
    }

    /// A block of `class`, which is not 0, with the prefix that it had.
    #[inline(always)]
    pub(crate) fn take(&self, class: u8) -> Option<NonNull<u8>> {
        if self.class.get() == class {
            self.class.set(0);
            return NonNull::new(self.at_hand.get().cast());
        }
        self.pop(class).map(NonNull::cast)
    }

    /// Keeps a block of `class`, which is not 0.
    #[inline(always)]
    pub(crate) fn put(&self, class: u8, kept: NonNull<u8>) {
        let displaced = self.class.replace(class);
        let node = self.at_hand.replace(kept.cast().as_ptr());
        if displaced != 0 {
            self.put_away(displaced, node);
        }
    }

    /// Gives all blocks back.
    pub(super) fn drain(&self) {
        for class in (1..).take(CLASSES) {
            while let Some(kept) = self.take(class) {
                // SAFETY: a kept block of a class, which the cache has just given up.
                unsafe { block::free_kept(kept) };
            }
        }
    }

    #[inline(always)]
    fn pop(&self, class: u8) -> Option<NonNull<Node>> {
        let list = self.lists.get(usize::from(class))?;
        let node = NonNull::new(list.get())?;
        // SAFETY: a kept block is a node.
        list.set(unsafe { (*node.as_ptr()).next });
        self.room.set(self.room.get() + class_size(class));
        Some(node)
    }

    /// Puts the block that was at hand on its list.
    #[inline(never)]
    fn put_away(&self, class: u8, node: *mut Node) {
        let Some(list) = self.lists.get(usize::from(class)) else { return };
        if self.room.get() < class_size(class) {
            self.give_back();
        }
        // SAFETY: the block holds a node, and belongs to the cache.
        unsafe { (*node).next = list.get() };
        list.set(node);
        self.room.set(self.room.get() - class_size(class));
    }

    /// Makes room for many blocks.
    #[cold]
    #[inline(never)]
    fn give_back(&self) {
        while self.room.get() < PART {
            let class = self.turn.get() % CLASSES + 1;
            match self.pop(class as u8) {
                // SAFETY: a kept block of a class, which the cache has just given up.
                Some(node) => unsafe { block::free_kept(node.cast()) },
                None => self.turn.set(class),
            }
        }
    }
}
