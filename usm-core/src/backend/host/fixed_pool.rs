//! A pool for programs without a heap.

use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::blocks::{Blocks, FixedNode};
use crate::AllocKind;
use crate::error::{ErrorKind, Result};

/// Blocks of a fixed region, for programs without a heap. The records lie in memory of the
/// caller's: two for each block that is to live at once. It neither reads nor writes the region,
/// and needs no atomics: a caller with threads locks it.
///
/// ```
/// use core::alloc::Layout;
/// use core::mem::MaybeUninit;
///
/// use usm_core::backend::host::{FixedNode, FixedPool};
///
/// let (mut memory, mut nodes) = ([MaybeUninit::uninit(); 4096], [FixedNode::VACANT; 16]);
/// let mut pool = FixedPool::new(&mut memory, &mut nodes);
/// let layout = Layout::from_size_align(1000, 64)?;
/// let block = pool.allocate(layout)?;
/// assert!(pool.free(block));
/// assert!(!pool.free(block), "returned twice");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FixedPool<'m> {
    base: NonNull<u8>,
    len: usize,
    nodes: &'m mut [FixedNode],
    blocks: Blocks,
    memory: PhantomData<&'m mut [MaybeUninit<u8>]>,
}

// SAFETY: the pool borrows region and records exclusively.
unsafe impl Send for FixedPool<'_> {}
// SAFETY: shared references allow no change.
unsafe impl Sync for FixedPool<'_> {}

impl fmt::Debug for FixedPool<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base, len, blocks, .. } = self;
        f.debug_struct("FixedPool")
            .field("base", base)
            .field("bytes", len)
            .field("live", &blocks.live())
            .finish()
    }
}

impl<'m> FixedPool<'m> {
    /// A pool of this region.
    #[must_use]
    pub fn new(memory: &'m mut [MaybeUninit<u8>], nodes: &'m mut [FixedNode]) -> Self {
        let (base, len) = (NonNull::from(&mut *memory).cast::<u8>(), memory.len());
        let blocks = Blocks::new(nodes, base.as_ptr() as usize, len);
        Self { base, len, nodes, blocks, memory: PhantomData }
    }

    /// A block, which is the caller's until it is freed or the pool ends.
    ///
    /// # Errors
    /// [`ErrorKind::ZeroSize`]; [`ErrorKind::TooManyBlocks`] without records;
    /// [`ErrorKind::OutOfMemory`].
    pub fn allocate(&mut self, layout: Layout) -> Result<NonNull<u8>> {
        if layout.size() == 0 {
            return Err(ErrorKind::ZeroSize.into());
        }
        let start = self.blocks.allocate(self.nodes, layout, AllocKind::Host)?;
        // SAFETY: blocks lie inside the region.
        Ok(unsafe { self.base.add(start - self.base.as_ptr() as usize) })
    }

    /// Takes a block back. False, and nothing changes, if no live block starts there: for one that
    /// was freed already, an address inside a block, foreign memory.
    pub fn free(&mut self, block: NonNull<u8>) -> bool {
        self.blocks.free(self.nodes, block.as_ptr() as usize)
    }

    /// Number of live blocks.
    #[must_use]
    pub fn live(&self) -> usize {
        self.blocks.live()
    }

    /// Panics if the records contradict each other: for tests.
    #[doc(hidden)]
    pub fn check(&self) {
        self.blocks.check(self.nodes, self.base.as_ptr() as usize, self.len);
    }
}
