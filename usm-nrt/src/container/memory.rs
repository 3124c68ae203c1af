//! Counted memory of the runtime, and moves of elements, whose size in bytes is known at run time
//! only.

use core::mem::{self, MaybeUninit};
use core::ptr::{self, NonNull};

use crate::block;
use crate::stats::{Event, count};

/// A block of the runtime, aligned to 16 bytes. Freed on drop.
#[derive(Debug)]
pub(super) struct Memory(NonNull<u8>);

impl Memory {
    /// Allocates `size` uninitialised bytes; `None` if memory is short.
    pub(super) fn new(size: usize) -> Option<Self> {
        let block = block::allocate(0, size, block::MIN_ALIGN).ok()?;
        count([Event::Alloc]);
        Some(Self(block))
    }

    /// Resizes to `size` bytes and keeps the content up to the smaller size. On failure returns
    /// false and changes nothing.
    pub(super) fn resize(&mut self, size: usize) -> bool {
        // SAFETY: a block of that module, which this value owns; it is replaced by the new one.
        match unsafe { block::reallocate(self.0.as_ptr(), size) } {
            Ok(block) => {
                self.0 = block;
                true
            }
            Err(_) => false,
        }
    }

    #[inline]
    pub(super) fn start(&self) -> *mut u8 {
        self.0.as_ptr()
    }

    /// Stores `value` in a block of its own, which [`Memory::take`] frees; `None` if memory is
    /// short.
    pub(super) fn store_in_block<T>(value: T) -> Option<NonNull<T>> {
        const { assert!(align_of::<T>() <= block::MIN_ALIGN) };
        let memory = Self::new(size_of::<T>())?;
        let place = memory.0.cast::<T>();
        // SAFETY: as many bytes as the value has, and aligned for it.
        unsafe { place.write(value) };
        mem::forget(memory);
        Some(place)
    }

    /// Takes the value of [`Memory::store_in_block`] and frees its block.
    ///
    /// # Safety
    /// `place` came from [`Memory::store_in_block`], and nothing uses it afterwards.
    pub(super) unsafe fn take<T>(place: NonNull<T>) -> T {
        // SAFETY: written there, and read once.
        let value = unsafe { place.read() };
        drop(Self(place.cast()));
        value
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        count([Event::Free]);
        // SAFETY: a block of that module, which this value owned.
        unsafe { block::free(self.0) }
    }
}

/// Copies an element with its padding, which may be uninitialised. The usual sizes take one or two
/// instructions; a call of `memcpy` would cost more than the rest of a lookup.
///
/// # Safety
/// Both ranges have `size` bytes and do not overlap; neither need be aligned.
#[inline(always)]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, size: usize) {
    match size {
        0 => {}
        // SAFETY: as the caller promises, for all of these.
        4 => unsafe { copy_as::<u32>(from, to) },
        // SAFETY: as above.
        8 => unsafe { copy_as::<u64>(from, to) },
        // SAFETY: as above.
        16 => unsafe { copy_as::<[u64; 2]>(from, to) },
        // SAFETY: as above.
        _ => unsafe { ptr::copy_nonoverlapping(from, to, size) },
    }
}

/// # Safety
/// `from` and `to` have the bytes of a `T` to read and to write.
#[inline(always)]
unsafe fn copy_as<T: Copy>(from: *const u8, to: *mut u8) {
    // SAFETY: as the caller promises; the bytes may be uninitialised.
    let value = unsafe { from.cast::<MaybeUninit<T>>().read_unaligned() };
    // SAFETY: as the caller promises.
    unsafe { to.cast::<MaybeUninit<T>>().write_unaligned(value) }
}

/// Zeroes an element; does nothing for null.
///
/// # Safety
/// `to` is null or has `size` bytes to write.
#[inline(always)]
pub(super) unsafe fn zero(to: *mut u8, size: usize) {
    if to.is_null() {
        return;
    }
    if size == 8 {
        // SAFETY: as the caller promises.
        return unsafe { to.cast::<u64>().write_unaligned(0) };
    }
    // SAFETY: as the caller promises.
    unsafe { to.write_bytes(0, size) }
}

/// Compares two elements by their bytes.
///
/// # Safety
/// Both have `size` initialised bytes to read.
#[inline(always)]
pub(super) unsafe fn bytes_equal(one: *const u8, other: *const u8, size: usize) -> bool {
    match size {
        // SAFETY: as the caller promises, for all of these.
        4 => unsafe { words_equal::<u32>(one, other) },
        // SAFETY: as above.
        8 => unsafe { words_equal::<u64>(one, other) },
        _ => {
            // SAFETY: as above.
            let one = unsafe { core::slice::from_raw_parts(one, size) };
            // SAFETY: as above.
            let other = unsafe { core::slice::from_raw_parts(other, size) };
            one == other
        }
    }
}

/// # Safety
/// Both have the initialised bytes of a `T` to read.
#[inline(always)]
unsafe fn words_equal<T: Copy + Eq>(one: *const u8, other: *const u8) -> bool {
    // SAFETY: as the caller promises.
    let one = unsafe { one.cast::<T>().read_unaligned() };
    // SAFETY: as the caller promises.
    let other = unsafe { other.cast::<T>().read_unaligned() };
    one == other
}
