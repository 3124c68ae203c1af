//! Blocks without a header: functions in the shape of `malloc`, and the table of these functions
//! that every header names.

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

/// The built-in allocator as an external allocator. Every header of this runtime holds its address,
/// so any other NRT, Numba's included, frees the block through it.
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
            // This runtime frees its own blocks directly, so another runtime destroyed a header.
            track::record_foreign_free(block.cast());
        } else {
            count([Event::Free]);
            track::forget_header(block);
        }
        // SAFETY: the caller passes a block of this allocator, once (contract of `free`).
        unsafe { free(block) }
    }
}

/// Offset of the allocator's address in a header at the start of a block, in bytes.
const NAMED_AT: usize = core::mem::offset_of!(MemInfo, external_allocator);

/// The place of that address in a block.
///
/// # Safety
/// `block` has room for a header.
unsafe fn allocator_slot(block: NonNull<u8>) -> NonNull<*const ExternalAllocator> {
    // SAFETY: inside the block; aligned, because block and header are.
    unsafe { block.add(NAMED_AT) }.cast()
}

/// Whether the block holds a header that is being freed through the allocator it names. Only then
/// is [`BUILTIN`]'s address found there. A bit in the prefix would not do: a block that a thread
/// kept serves with and without a header.
///
/// # Safety
/// `block` is a live block of this module.
unsafe fn has_head(block: NonNull<u8>) -> bool {
    // SAFETY: as the caller promises.
    if unsafe { prefix_of(block) }.room() < size_of::<MemInfo>() {
        return false;
    }
    // SAFETY: as the caller promises, and there is room for a header.
    let place = unsafe { allocator_slot(block) };
    // SAFETY: initialised, by a header or by `forget_head`.
    let allocator = unsafe { place.read() };
    ptr::eq(allocator, &raw const BUILTIN)
}

/// Clears the allocator's address in a fresh block, which may have held a header before.
///
/// # Safety
/// `block` is a live block of this module, and nothing was written to its bytes from `NAMED_AT` on.
unsafe fn forget_head(block: NonNull<u8>) {
    // SAFETY: as the caller promises.
    if unsafe { prefix_of(block) }.room() >= size_of::<MemInfo>() {
        // SAFETY: as the caller promises, and there is room for a header.
        let place = unsafe { allocator_slot(block) };
        // SAFETY: these bytes hold nothing that is still needed.
        unsafe { place.write(ptr::null()) };
    }
}

/// Allocates a block without a header, for callers outside this runtime.
pub(crate) fn allocate_plain(size: usize) -> Result<NonNull<u8>, Error> {
    let block = allocate(0, size, MIN_ALIGN)?;
    // SAFETY: just made.
    unsafe { forget_head(block) };
    Ok(block)
}

/// [`reallocate`] for a block of [`allocate_plain`].
///
/// # Safety
/// As for [`reallocate`].
pub(crate) unsafe fn reallocate_plain(block: *mut u8, size: usize) -> Result<NonNull<u8>, Error> {
    let Some(old) = NonNull::new(block) else { return allocate_plain(size) };
    #[cfg(feature = "debug")]
    misuse::check_block(old, "reallocate");
    // SAFETY: a live block.
    let was_small = unsafe { prefix_of(old) }.room() < size_of::<MemInfo>();
    track::forget_header(old);
    // SAFETY: same contract.
    let new = unsafe { reallocate(block, size) }?;
    if was_small {
        // SAFETY: the grown part is uninitialised.
        unsafe { forget_head(new) };
    }
    Ok(new)
}
