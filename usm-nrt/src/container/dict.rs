//! Numba's typed dictionary.

use core::ffi::c_int;
use core::ptr;

use super::hash_container::Methods;
use super::layout::slots_for;
use super::{CountFn, EqualFn, HashContainer, KeyedIter};
use crate::export::export;

/// The callbacks of a dictionary; each may be missing.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct DictMethods {
    /// Compares keys. Without it keys are equal if their bytes are.
    pub key_equal: Option<EqualFn>,
    /// Called for a key that was copied into the dictionary.
    pub key_incref: Option<CountFn>,
    /// Called for a key that leaves it.
    pub key_decref: Option<CountFn>,
    /// Called for a value that was copied into the dictionary.
    pub value_incref: Option<CountFn>,
    /// Called for a value that leaves it.
    pub value_decref: Option<CountFn>,
}

export! {
    /// Makes a dictionary with room for `n_keys` keys. Sizes of a key and a value are in bytes.
    fn numba_dict_new_sized(out: *mut *mut HashContainer, n_keys: isize, key_size: isize, val_size: isize) -> c_int {
        let slots = slots_for(usize::try_from(n_keys).unwrap_or(0));
        // SAFETY: the caller's room.
        unsafe { HashContainer::make(out, slots, key_size, val_size) }
    }
    /// Copies the table. Null removes all methods.
    fn numba_dict_set_method_table(d: *mut HashContainer, methods: *const DictMethods) {
        // SAFETY: null or the caller's table.
        let methods = if methods.is_null() { DictMethods::default() } else { unsafe { methods.read() } };
        let DictMethods { key_equal, key_incref, key_decref, value_incref, value_decref } = methods;
        let methods = Methods { key_equal, key_incref, key_decref, value_incref, value_decref };
        // SAFETY: the caller's dictionary.
        unsafe { HashContainer::set_methods(d, methods) }
    }
    /// Releases all keys and values, and frees the memory.
    fn numba_dict_free(d: *mut HashContainer) {
        // SAFETY: the caller's dictionary, given up.
        unsafe { HashContainer::free(d) }
    }
    /// The number of keys.
    fn numba_dict_length(d: *mut HashContainer) -> isize {
        // SAFETY: the caller's dictionary.
        unsafe { HashContainer::length(d) }
    }
    /// The position of a key; copies its value to `oldval_bytes`. Otherwise
    /// [`MISSING`](super::MISSING) or [`LOOKUP_FAILED`](super::LOOKUP_FAILED), and `oldval_bytes`
    /// is zeroed. Counts no references.
    fn numba_dict_lookup(d: *mut HashContainer, key_bytes: *const u8, hash: isize, oldval_bytes: *mut u8) -> isize {
        // SAFETY: the caller's dictionary, key and room for a value.
        unsafe { HashContainer::lookup(d, key_bytes, hash, oldval_bytes) }
    }
    /// Sets the value of a key. Returns [`REPLACED`](super::REPLACED) if it had one; copies that
    /// one to `oldval_bytes`, already released.
    fn numba_dict_insert(d: *mut HashContainer, key_bytes: *const u8, hash: isize, val_bytes: *const u8, oldval_bytes: *mut u8) -> c_int {
        // SAFETY: the caller's dictionary, key, value and room for a value.
        unsafe { HashContainer::insert(d, key_bytes, hash, val_bytes, oldval_bytes, true) }
    }
    /// [`numba_dict_insert`] without the old value.
    fn numba_dict_insert_ez(d: *mut HashContainer, key_bytes: *const u8, hash: isize, val_bytes: *const u8) -> c_int {
        // SAFETY: the caller's dictionary, key and value.
        unsafe { HashContainer::insert(d, key_bytes, hash, val_bytes, ptr::null_mut(), true) }
    }
    /// Removes the key at position `ix` of a lookup. The hash is not used.
    fn numba_dict_delitem(d: *mut HashContainer, _hash: isize, ix: isize) -> c_int {
        // SAFETY: the caller's dictionary.
        unsafe { HashContainer::delete(d, ix) }
    }
    /// Moves the last key and its value out. The caller owns their references.
    fn numba_dict_popitem(d: *mut HashContainer, key_bytes: *mut u8, val_bytes: *mut u8) -> c_int {
        // SAFETY: the caller's dictionary and room for both.
        unsafe { HashContainer::pop(d, key_bytes, val_bytes) }
    }
    /// Size of an iterator in bytes.
    fn numba_dict_iter_sizeof() -> usize {
        size_of::<KeyedIter>()
    }
    /// Starts an iteration, in the order of insertion.
    fn numba_dict_iter(it: *mut KeyedIter, d: *mut HashContainer) {
        // SAFETY: the caller's dictionary and room for an iterator.
        unsafe { HashContainer::iterate(d, it) }
    }
    /// Addresses of the next key and value, valid until the dictionary changes.
    fn numba_dict_iter_next(it: *mut KeyedIter, key_ptr: *mut *const u8, val_ptr: *mut *const u8) -> c_int {
        // SAFETY: the caller's iterator of a live dictionary, and room for two pointers.
        unsafe { HashContainer::next(it, key_ptr, val_ptr) }
    }
    /// Prints keys, hashes and values to the standard output of C.
    fn numba_dict_dump(d: *mut HashContainer) {
        // SAFETY: the caller's dictionary.
        if let Some(dict) = unsafe { d.as_ref() } {
            super::dump::dict(dict);
        }
    }
}
