//! Numba's typed set.

use core::ffi::c_int;
use core::ptr;

use super::hash_container::Methods;
use super::layout::{MIN_SLOTS, slots_for};
use super::{CountFn, EqualFn, HashContainer, KeyedIter, LOOKUP_FAILED, MISSING};
use crate::export::export;

/// The callbacks of a set; each may be missing.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct SetMethods {
    /// Compares keys. Without it keys are equal if their bytes are.
    pub key_equal: Option<EqualFn>,
    /// Called for a key that was copied into the set.
    pub key_incref: Option<CountFn>,
    /// Called for a key that leaves it.
    pub key_decref: Option<CountFn>,
}

export! {
    /// Makes a set with a hash table of `size` slots: a power of two of at least 8; other numbers
    /// are rounded up.
    fn numba_set_new(out: *mut *mut HashContainer, key_size: isize, size: isize) -> c_int {
        let slots = usize::try_from(size).unwrap_or(0).max(MIN_SLOTS).checked_next_power_of_two();
        // SAFETY: the caller's room.
        unsafe { HashContainer::make(out, slots, key_size, 0) }
    }
    /// Makes a set with room for `n_keys` keys of `key_size` bytes.
    fn numba_set_new_sized(out: *mut *mut HashContainer, key_size: isize, n_keys: isize) -> c_int {
        let slots = slots_for(usize::try_from(n_keys).unwrap_or(0));
        // SAFETY: the caller's room.
        unsafe { HashContainer::make(out, slots, key_size, 0) }
    }
    /// Copies the table. Null removes all methods.
    fn numba_set_set_method_table(setp: *mut HashContainer, methods: *const SetMethods) {
        // SAFETY: null or the caller's table.
        let methods = if methods.is_null() { SetMethods::default() } else { unsafe { methods.read() } };
        let SetMethods { key_equal, key_incref, key_decref } = methods;
        let methods = Methods { key_equal, key_incref, key_decref, ..Methods::default() };
        // SAFETY: the caller's set.
        unsafe { HashContainer::set_methods(setp, methods) }
    }
    /// Releases all keys and frees the memory.
    fn numba_set_free(setp: *mut HashContainer) {
        // SAFETY: the caller's set, given up.
        unsafe { HashContainer::free(setp) }
    }
    /// The number of keys.
    fn numba_set_length(setp: *mut HashContainer) -> isize {
        // SAFETY: the caller's set.
        unsafe { HashContainer::length(setp) }
    }
    /// 1 if the key is present, 0 if absent, [`LOOKUP_FAILED`] if a comparison failed.
    fn numba_set_contains(setp: *mut HashContainer, key_bytes: *const u8, hash: isize) -> isize {
        // SAFETY: the caller's set and key.
        match unsafe { HashContainer::lookup(setp, key_bytes, hash, ptr::null_mut()) } {
            MISSING => 0,
            LOOKUP_FAILED => LOOKUP_FAILED,
            _ => 1,
        }
    }
    /// Adds a key. Returns [`REPLACED`](super::REPLACED) if an equal key was present; that one
    /// stays.
    fn numba_set_add(setp: *mut HashContainer, key_bytes: *const u8, hash: isize) -> c_int {
        // SAFETY: the caller's set and key; values have no bytes.
        unsafe { HashContainer::insert(setp, key_bytes, hash, ptr::null(), ptr::null_mut(), false) }
    }
    /// Removes a key if it is present.
    fn numba_set_discard(setp: *mut HashContainer, key_bytes: *const u8, hash: isize) -> c_int {
        // SAFETY: the caller's set and key.
        unsafe { HashContainer::discard(setp, key_bytes, hash) }
    }
    /// Size of an iterator in bytes.
    fn numba_set_iter_sizeof() -> usize {
        size_of::<KeyedIter>()
    }
    /// Starts an iteration, in the order of insertion.
    fn numba_set_iter(it: *mut KeyedIter, setp: *mut HashContainer) {
        // SAFETY: the caller's set and room for an iterator.
        unsafe { HashContainer::iterate(setp, it) }
    }
    /// The address of the next key, valid until the set changes.
    fn numba_set_iter_next(it: *mut KeyedIter, key_ptr: *mut *const u8) -> c_int {
        // SAFETY: the caller's iterator of a live set, and room for a pointer.
        unsafe { HashContainer::next(it, key_ptr, ptr::null_mut()) }
    }
    /// Prints keys and hashes to the standard output of C.
    fn numba_set_dump(setp: *mut HashContainer) {
        // SAFETY: the caller's set.
        if let Some(set) = unsafe { setp.as_ref() } {
            super::dump::set(set);
        }
    }
}
