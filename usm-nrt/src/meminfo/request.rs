//! The parameters of a new block.

use core::marker::PhantomData;
use core::ptr::NonNull;

use crate::destructor::Dtor;
use crate::external::ExternalAllocator;

/// The parameters of an allocation. The default equals `NRT_MemInfo_alloc`: 16-byte alignment, no
/// fill, no destructor, the built-in allocator. A request lives no longer than the allocator that
/// it names.
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
    /// Requests `size` bytes of data. 0 is allowed; its data pointer must not be read or written.
    #[inline]
    pub const fn new(size: usize) -> Self {
        Self { size, align: 16, fill: false, dtor: None, allocator: None, lives: PhantomData }
    }

    /// Sets the alignment of the data in bytes. The allocation refuses other numbers than powers of
    /// two.
    #[inline]
    pub const fn align(mut self, align: usize) -> Self {
        self.align = align;
        self
    }

    /// Selects the safe variant: data starts as 0xCB bytes and is overwritten with 0xDE just before
    /// it is freed.
    #[inline]
    pub const fn filled(mut self) -> Self {
        self.fill = true;
        self
    }

    /// Calls `dtor(data, size, NULL)` after the last release.
    ///
    /// # Safety
    /// Any thread may call `dtor` once with the block's data.
    #[inline]
    pub const unsafe fn dtor(mut self, dtor: Dtor) -> Self {
        self.dtor = Some(dtor);
        self
    }

    /// Allocates header and data from `allocator`, in one block.
    ///
    /// # Safety
    /// `allocator` outlives the block. Its functions follow C99's rules, and any thread may call
    /// them.
    #[inline]
    pub const unsafe fn allocator(mut self, allocator: NonNull<ExternalAllocator>) -> Self {
        self.allocator = Some(allocator);
        self
    }
}
