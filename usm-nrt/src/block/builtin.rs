//! The entry points for allocations without a header: `malloc`-shaped functions, and the table of
//! them that every header names.

use core::ffi::c_void;
use core::ptr::{self, NonNull};

use super::prefix::prefix_of;
use super::{MIN_ALIGN, allocate, free, reallocate};
use crate::error::Error;
use crate::external::ExternalAllocator;
use crate::meminfo::MemInfo;
#[cfg(feature = "debug")]
use crate::misuse;
use crate::stats::{Event, count};
use crate::track;

/// The built-in allocator in the shape of an external one. Every block of this runtime carries its
/// address, so that any other NRT (Numba's own included) frees the block through it.
pub static BUILTIN: ExternalAllocator = ExternalAllocator {
    malloc: Some(builtin_malloc),
    realloc: Some(builtin_realloc),
    free: Some(builtin_free),
    opaque: ptr::null_mut(),
};

unsafe extern "C" fn builtin_malloc(size: usize, _: *mut c_void) -> *mut c_void {
    let Ok(block) = allocate_plain(size) else { return ptr::null_mut() };
    count([Event::Alloc]);
    block.as_ptr().cast()
}

unsafe extern "C" fn builtin_realloc(block: *mut c_void, size: usize, _: *mut c_void) -> *mut c_void {
    // SAFETY: the caller passes null or a block of this allocator (contract of `realloc`).
    let Ok(new) = (unsafe { reallocate_plain(block.cast(), size) }) else { return ptr::null_mut() };
    if block.is_null() {
        count([Event::Alloc]);
    }
    new.as_ptr().cast()
}

unsafe extern "C" fn builtin_free(block: *mut c_void, _: *mut c_void) {
    if let Some(block) = NonNull::new(block.cast::<u8>()) {
        // SAFETY: a live block, as the caller promises.
        if unsafe { has_head(block) } {
            // This runtime frees its blocks without a detour, so that is another one which
            // destroyed a header.
            track::left(block.cast());
        } else {
            count([Event::Free]);
            track::freed(block);
        }
        // SAFETY: the caller passes a block of this allocator, once (contract of `free`).
        unsafe { free(block) }
    }
}

/// Where a header that lies at the begin of a block names its allocator.
const NAMED_AT: usize = core::mem::offset_of!(MemInfo, external_allocator);

/// That place in a block.
///
/// # Safety
/// `block` has room for a header.
unsafe fn named_in(block: NonNull<u8>) -> NonNull<*const ExternalAllocator> {
    // SAFETY: inside the block; aligned, because block and header are.
    unsafe { block.add(NAMED_AT) }.cast()
}

/// Whether a header lies in a block that somebody frees by the allocator that it names: only then
/// it is [`BUILTIN`]'s address that is found there. A bit in the prefix would not do, because
/// blocks that threads keep serve with and without a header.
///
/// # Safety
/// `block` is a live block of this module.
unsafe fn has_head(block: NonNull<u8>) -> bool {
    // SAFETY: as the caller promises.
    if unsafe { prefix_of(block) }.room() < size_of::<MemInfo>() {
        return false;
    }
    // SAFETY: as the caller promises, and there is room for a header.
    let place = unsafe { named_in(block) };
    // SAFETY: written: by a header, or by `forget_head`.
    let named = unsafe { place.read() };
    ptr::eq(named, &raw const BUILTIN)
}

/// Whoever had a fresh block before may have had a header in it.
///
/// # Safety
/// `block` is a live block of this module, of whose bytes from `NAMED_AT` on nobody has written
/// any.
unsafe fn forget_head(block: NonNull<u8>) {
    // SAFETY: as the caller promises.
    if unsafe { prefix_of(block) }.room() >= size_of::<MemInfo>() {
        // SAFETY: as the caller promises, and there is room for a header.
        let place = unsafe { named_in(block) };
        // SAFETY: nobody has written there what he still needs.
        unsafe { place.write(ptr::null()) };
    }
}

/// A block for somebody outside, without a head.
pub(crate) fn allocate_plain(size: usize) -> Result<NonNull<u8>, Error> {
    let block = allocate(0, size, MIN_ALIGN)?;
    // SAFETY: just made.
    unsafe { forget_head(block) };
    Ok(block)
}

/// [`reallocate`] of such a block.
///
/// # Safety
/// As there.
pub(crate) unsafe fn reallocate_plain(block: *mut u8, size: usize) -> Result<NonNull<u8>, Error> {
    let Some(old) = NonNull::new(block) else { return allocate_plain(size) };
    #[cfg(feature = "debug")]
    misuse::check_block(old, "reallocate");
    // SAFETY: a live block.
    let was_small = unsafe { prefix_of(old) }.room() < size_of::<MemInfo>();
    track::freed(old);
    // SAFETY: same contract.
    let new = unsafe { reallocate(block, size) }?;
    if was_small {
        // SAFETY: what lies there is new.
        unsafe { forget_head(new) };
    }
    Ok(new)
}
