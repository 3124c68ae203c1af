//! Iteration over dictionaries and sets, which detects changes.

use core::ffi::{c_int, c_void};
use core::mem::offset_of;

use super::{DICT_EXHAUSTED, DICT_MUTATED, HashContainer, OK};

/// An iterator in memory of the caller: as large as Numba's, at any alignment.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct KeyedIter {
    parent: *const c_void,
    generation: usize,
    size: usize,
    position: usize,
}

impl HashContainer {
    /// Starts an iteration.
    ///
    /// # Safety
    /// `this` is null or live; `out` is null or has room, at any alignment.
    pub(super) unsafe fn iterate(this: *const Self, out: *mut KeyedIter) {
        // SAFETY: null or live, as the caller promises.
        let (generation, size) = unsafe { this.as_ref() }
            .map_or((0, 0), |parent| (parent.table.generation(), parent.table.used()));
        if !out.is_null() {
            // SAFETY: room, as the caller promises.
            unsafe { out.write_unaligned(KeyedIter { parent: this.cast(), generation, size, position: 0 }) };
        }
    }

    /// The addresses of the next key and value.
    ///
    /// # Safety
    /// `iter` is null or of a live container; the outputs are null or have room for a pointer.
    #[inline(always)]
    pub(super) unsafe fn next(iter: *mut KeyedIter, key: *mut *const u8, value: *mut *const u8) -> c_int {
        if iter.is_null() {
            return DICT_EXHAUSTED;
        }
        // SAFETY: written by `iterate`.
        let state = unsafe { iter.read_unaligned() };
        // SAFETY: its container is null or live.
        let Some(parent) = (unsafe { state.parent.cast::<Self>().as_ref() }) else { return DICT_EXHAUSTED };
        let table = &parent.table;
        if table.generation() != state.generation || table.used() != state.size {
            return DICT_MUTATED;
        }
        let Some(position) = (state.position..table.filled()).find(|&position| table.is_live(position))
        else {
            return DICT_EXHAUSTED;
        };
        let place = iter.wrapping_byte_add(offset_of!(KeyedIter, position)).cast::<usize>();
        // SAFETY: the caller's iterator.
        unsafe { place.write_unaligned(position + 1) };
        if !key.is_null() {
            // SAFETY: room for a pointer.
            unsafe { key.write_unaligned(table.key(position)) };
        }
        if !value.is_null() {
            // SAFETY: as above.
            unsafe { value.write_unaligned(table.value(position)) };
        }
        OK
    }
}
