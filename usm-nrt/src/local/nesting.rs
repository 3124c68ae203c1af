//! Destructors that run inside of destructors, each on a part of the thread's stack.

use alloc::vec::Vec;
use core::cell::Cell;
use core::ptr::NonNull;

use crate::meminfo::MemInfo;

/// Destructors inside of each other; what the next one would destroy waits until all of them have
/// returned. A chain of blocks that each release the next is as long as the program likes, a stack
/// is not.
pub(super) const DEEPEST: usize = 256;

/// What one thread is at.
pub(super) struct Nesting {
    depth: Cell<usize>,
    /// How many wait.
    count: Cell<usize>,
    waiting: Cell<Vec<NonNull<MemInfo>>>,
}

impl Nesting {
    pub(super) const fn new() -> Self {
        Self { depth: Cell::new(0), count: Cell::new(0), waiting: Cell::new(Vec::new()) }
    }

    /// Begins a destructor; false when the block waits instead. Without memory for that it goes
    /// deeper.
    #[inline]
    pub(super) fn begin(&self, mi: NonNull<MemInfo>) -> bool {
        if self.depth.get() >= DEEPEST && self.wait(mi) {
            return false;
        }
        self.depth.set(self.depth.get() + 1);
        true
    }

    /// Ends a destructor; behind the outermost one begins that of a block that waits.
    #[inline]
    pub(super) fn end(&self) -> Option<NonNull<MemInfo>> {
        // Nothing was begun where the thread had nothing to count with.
        let depth = self.depth.get().saturating_sub(1);
        self.depth.set(depth);
        if depth == 0 && self.count.get() > 0 { self.next() } else { None }
    }

    #[cold]
    fn wait(&self, mi: NonNull<MemInfo>) -> bool {
        let mut waiting = self.waiting.take();
        let has_room = waiting.try_reserve(1).is_ok();
        if has_room {
            waiting.push(mi);
            self.count.set(waiting.len());
        }
        self.waiting.set(waiting);
        has_room
    }

    #[cold]
    fn next(&self) -> Option<NonNull<MemInfo>> {
        let mut waiting = self.waiting.take();
        let next = waiting.pop();
        self.count.set(waiting.len());
        self.waiting.set(waiting);
        self.depth.set(usize::from(next.is_some()));
        next
    }
}
