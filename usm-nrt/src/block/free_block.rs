//! Free blocks that are kept for reuse: owning values, and stacks of them that need no memory of
//! their own.

use core::ptr::NonNull;

use super::{PREFIX, free_unusual};
#[cfg(feature = "std")]
use super::{Prefix, prefix_of};
use crate::system;

/// A free block of a class, from its prefix on; the value owns the block. Two parts keep their
/// content. The next owner needs the prefix, and the reference count still shows a second release.
pub(crate) struct FreeBlock(NonNull<Node>);

#[repr(C)]
struct Node {
    prefix: [usize; PREFIX / size_of::<usize>()],
    refcount: usize,
    /// The block below, on a stack.
    next: *mut Node,
}

impl FreeBlock {
    /// # Safety
    /// `block` is a live block of a class, which the caller gives up.
    #[inline(always)]
    pub(super) unsafe fn new(block: NonNull<u8>) -> Self {
        // SAFETY: the prefix lies before every block.
        Self(unsafe { block.sub(PREFIX) }.cast())
    }

    /// The block, now owned by the caller.
    #[inline(always)]
    pub(super) fn into_block(self) -> NonNull<u8> {
        self.block()
    }

    #[inline(always)]
    pub(super) fn block(&self) -> NonNull<u8> {
        // SAFETY: behind the prefix, which the block has had since it was made.
        unsafe { self.0.cast::<u8>().add(PREFIX) }
    }

    /// The block's prefix; keeping a block leaves it unchanged.
    #[cfg(feature = "std")]
    pub(super) fn prefix(&self) -> Prefix {
        // SAFETY: a block of this module, which stays allocated while it is kept.
        unsafe { prefix_of(self.block()) }
    }

    /// Frees the block.
    pub(crate) fn free(self) {
        // SAFETY: this value owns the block, so it is freed once.
        unsafe { free_unusual(self.into_block(), system::switches()) }
    }
}

#[cfg(feature = "std")]
pub(crate) use stack::{Chain, Stack};

#[cfg(feature = "std")]
mod stack {
    use core::cell::Cell;
    use core::ptr;

    use super::*;
    use crate::local::class_size;

    const _: () = assert!(size_of::<Node>() <= class_size(1));

    /// A stack of free blocks.
    pub(crate) struct Stack(Cell<*mut Node>);

    impl Stack {
        pub(crate) const fn new() -> Self {
            Self(Cell::new(ptr::null_mut()))
        }

        #[inline(always)]
        pub(crate) fn push(&self, block: FreeBlock) {
            // SAFETY: the smallest class has room for a node, and `block` owns the block.
            unsafe { (*block.0.as_ptr()).next = self.0.get() };
            self.0.set(block.0.as_ptr());
        }

        #[inline(always)]
        pub(crate) fn pop(&self) -> Option<FreeBlock> {
            let top = NonNull::new(self.0.get())?;
            // SAFETY: `push` wrote the node, and the stack has owned the block since.
            self.0.set(unsafe { (*top.as_ptr()).next });
            Some(FreeBlock(top))
        }
    }

    /// Counted free blocks of slabs, which the caller gives back.
    pub(crate) struct Chain {
        stack: Stack,
        count: usize,
    }

    impl Chain {
        pub(crate) const fn new() -> Self {
            Self { stack: Stack::new(), count: 0 }
        }

        pub(crate) const fn len(&self) -> usize {
            self.count
        }

        pub(crate) fn push(&mut self, block: FreeBlock) {
            self.stack.push(block);
            self.count += 1;
        }

        pub(crate) fn append(&mut self, mut other: Self) {
            while let Some(block) = other.pop() {
                self.push(block);
            }
        }

        pub(crate) fn pop(&mut self) -> Option<FreeBlock> {
            let block = self.stack.pop()?;
            self.count -= 1;
            Some(block)
        }
    }
}
