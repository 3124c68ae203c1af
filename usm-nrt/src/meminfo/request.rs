//! What is asked of a new block.

use core::marker::PhantomData;
use core::ptr::NonNull;

use crate::destructor::Dtor;
use crate::external::ExternalAllocator;

/// How a block is to be allocated. The default is what `NRT_MemInfo_alloc` does: 16-byte alignment,
/// no fill, no destructor, the built-in allocator. It lives no longer than the allocator that it
/// names.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Request<'a> {
    pub(super) size: usize,
    pub(super) align: usize,
    pub(super) fill: bool,
    pub(super) dtor: Option<Dtor>,
    pub(super) allocator: Option<NonNull<ExternalAllocator>>,
    lives: PhantomData<&'a ExternalAllocator>,
}

impl Request<'_> {
    /// `size` bytes of data; 0 is allowed and gives a data pointer that may not be read or written.
    #[inline]
    pub const fn new(size: usize) -> Self {
        Self { size, align: 16, fill: false, dtor: None, allocator: None, lives: PhantomData }
    }

    /// Alignment of the data in bytes: a power of two, otherwise the allocation is refused.
    #[inline]
    pub const fn align(mut self, align: usize) -> Self {
        self.align = align;
        self
    }

    /// The "safe" variant: data starts as 0xCB bytes and is overwritten with 0xDE just before it is
    /// freed.
    #[inline]
    pub const fn filled(mut self) -> Self {
        self.fill = true;
        self
    }

    /// Calls `dtor(data, size, NULL)` when the last reference goes.
    ///
    /// # Safety
    /// `dtor` may be called once, on any thread, with the block's data.
    #[inline]
    pub const unsafe fn dtor(mut self, dtor: Dtor) -> Self {
        self.dtor = Some(dtor);
        self
    }

    /// Takes header and data from `allocator`, in one block.
    ///
    /// # Safety
    /// `allocator` outlives the block; its functions follow C99's rules and may be called from any
    /// thread.
    #[inline]
    pub const unsafe fn allocator(mut self, allocator: NonNull<ExternalAllocator>) -> Self {
        self.allocator = Some(allocator);
        self
    }
}
