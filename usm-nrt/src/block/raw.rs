//! The source of memory: the global allocator of the program that links this crate. The C library
//! has no other than the system's allocator, so it calls that directly.

#[cfg(not(all(usm_nrt_export, feature = "std")))]
pub(super) use alloc::alloc::{alloc, dealloc, realloc};
#[cfg(all(usm_nrt_export, feature = "std"))]
pub(super) use direct::{alloc, dealloc, realloc};

#[cfg(all(usm_nrt_export, feature = "std"))]
mod direct {
    use core::alloc::{GlobalAlloc, Layout};
    use std::alloc::System;

    /// # Safety
    /// The layout is not empty.
    #[inline(always)]
    pub(in crate::block) unsafe fn alloc(layout: Layout) -> *mut u8 {
        // SAFETY: same contract.
        unsafe { System.alloc(layout) }
    }

    /// # Safety
    /// `base` came from [`alloc`] with this layout and is freed once.
    #[inline(always)]
    pub(in crate::block) unsafe fn dealloc(base: *mut u8, layout: Layout) {
        // SAFETY: same contract.
        unsafe { System.dealloc(base, layout) }
    }

    /// # Safety
    /// As for [`dealloc`]; `size` is not zero and fits the alignment.
    pub(in crate::block) unsafe fn realloc(base: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: same contract.
        unsafe { System.realloc(base, layout, size) }
    }
}
