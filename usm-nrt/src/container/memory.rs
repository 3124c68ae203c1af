//! Memory of the runtime, counted; and elements, which are bytes of a size that is known when they
//! are moved.

use core::mem::{self, MaybeUninit};
use core::ptr::{self, NonNull};

use crate::block;
use crate::stats::{Event, count};

/// A block of the runtime, aligned to 16 bytes; freed when dropped.
#[derive(Debug)]
pub(super) struct Memory(NonNull<u8>);

impl Memory {
    /// `size` bytes that say nothing; `None` when there are none.
    pub(super) fn new(size: usize) -> Option<Self> {
        let block = block::allocate(0, size, block::MIN_ALIGN).ok()?;
        count([Event::Alloc]);
        Some(Self(block))
    }

    /// Other `size`, same contents as far as they fit. False when there is no memory; then nothing
    /// has changed.
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

    /// `value` in a block of its own, to be taken back by [`Memory::take`]; `None` when there is no
    /// memory.
    pub(super) fn hold<T>(value: T) -> Option<NonNull<T>> {
        const { assert!(align_of::<T>() <= block::MIN_ALIGN) };
        let memory = Self::new(size_of::<T>())?;
        let place = memory.0.cast::<T>();
        // SAFETY: as many bytes as the value has, and aligned for it.
        unsafe { place.write(value) };
        mem::forget(memory);
        Some(place)
    }

    /// The value of [`Memory::hold`], whose block is freed.
    ///
    /// # Safety
    /// `place` came from there, and nobody uses it any more.
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

/// Copies an element, padding in it included, which may never have been written. The usual sizes
/// are one instruction or two; a call of `memcpy` costs more than the rest of a lookup.
///
/// # Safety
/// `size` bytes to read and to write, which do not overlap; neither need be aligned.
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
/// The bytes of a `T` to read and to write.
#[inline(always)]
unsafe fn copy_as<T: Copy>(from: *const u8, to: *mut u8) {
    // SAFETY: as the caller promises; without a value they may be.
    let value = unsafe { from.cast::<MaybeUninit<T>>().read_unaligned() };
    // SAFETY: as the caller promises.
    unsafe { to.cast::<MaybeUninit<T>>().write_unaligned(value) }
}

/// Zeros over an element; nothing for null.
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

/// Whether two elements have the same bytes.
///
/// # Safety
/// `size` initialised bytes to read at both.
#[inline(always)]
pub(super) unsafe fn same(one: *const u8, other: *const u8, size: usize) -> bool {
    match size {
        // SAFETY: as the caller promises, for all of these.
        4 => unsafe { same_as::<u32>(one, other) },
        // SAFETY: as above.
        8 => unsafe { same_as::<u64>(one, other) },
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
/// The initialised bytes of a `T` to read at both.
#[inline(always)]
unsafe fn same_as<T: Copy + Eq>(one: *const u8, other: *const u8) -> bool {
    // SAFETY: as the caller promises.
    let one = unsafe { one.cast::<T>().read_unaligned() };
    // SAFETY: as the caller promises.
    let other = unsafe { other.cast::<T>().read_unaligned() };
    one == other
}
