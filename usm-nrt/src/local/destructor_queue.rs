//! Destructors that run inside destructors, each on a part of the thread's stack.

use alloc::vec::Vec;
use core::cell::Cell;
use core::ptr::NonNull;

use crate::meminfo::MemInfo;

/// Maximum depth of nested destructors. Beyond it blocks wait until all running destructors have
/// returned. A program may build a chain of blocks of any length, in which each releases the next;
/// a stack has a limit.
pub(super) const DEEPEST: usize = 256;

/// The nesting of one thread.
pub(super) struct DestructorQueue {
    depth: Cell<usize>,
    /// Number of waiting blocks.
    count: Cell<usize>,
    queue: Cell<Vec<NonNull<MemInfo>>>,
}

impl DestructorQueue {
    pub(super) const fn new() -> Self {
        Self { depth: Cell::new(0), count: Cell::new(0), queue: Cell::new(Vec::new()) }
    }

    /// Begins a destructor. Returns false if the block waits instead. Without memory for a waiting
    /// block, begins at a larger depth.
    #[inline]
    pub(super) fn begin(&self, mi: NonNull<MemInfo>) -> bool {
        if self.depth.get() >= DEEPEST && self.wait(mi) {
            return false;
        }
        self.depth.set(self.depth.get() + 1);
        true
    }

    /// Ends a destructor. The outermost one begins that of a waiting block, and returns the block.
    #[inline]
    pub(super) fn end(&self) -> Option<NonNull<MemInfo>> {
        // `begin` counted nothing if the thread had no memory for it.
        let depth = self.depth.get().saturating_sub(1);
        self.depth.set(depth);
        if depth == 0 && self.count.get() > 0 { self.next() } else { None }
    }

    #[cold]
    fn wait(&self, mi: NonNull<MemInfo>) -> bool {
        let mut queue = self.queue.take();
        let has_room = queue.try_reserve(1).is_ok();
        if has_room {
            queue.push(mi);
            self.count.set(queue.len());
        }
        self.queue.set(queue);
        has_room
    }

    #[cold]
    fn next(&self) -> Option<NonNull<MemInfo>> {
        let mut queue = self.queue.take();
        let next = queue.pop();
        self.count.set(queue.len());
        self.queue.set(queue);
        self.depth.set(usize::from(next.is_some()));
        next
    }
}
