//! The containers of compiled code: Numba's typed dictionary, set and list, under the function
//! names of its `helperlib`.
//!
//! Elements are bytes of a fixed size that only the caller understands. Callbacks in a method table
//! count the references that elements hold. Dictionaries and sets keep the order of insertion: rows
//! are contiguous, and a hash table of small integers finds the row of a key. Lists grow by an
//! eighth ([`list`]). All memory comes from [`set_allocator`](crate::set_allocator)'s functions,
//! and [`Stats`](crate::Stats) counts it.
//!
//! Orders, positions, status codes, growth and the times of callbacks equal those of Numba's
//! functions. Where Numba's are undefined, these return a status: for sizes that overflow, null,
//! and positions without an element. A callback may read the container that called it; a change is
//! refused as [`DICT_MUTATED`] or [`LIST_MUTATED`].

pub mod dict;
mod dump;
mod hash_container;
mod iterate;
mod layout;
pub mod list;
mod memory;
mod search;
pub mod set;
mod table;

use core::ffi::{c_int, c_void};

pub use hash_container::HashContainer;
pub use iterate::KeyedIter;
pub use list::{List, ListIter};

/// Success; after an insertion: the key is new.
pub const OK: c_int = 0;
/// The key was present. A dictionary has replaced its value.
pub const REPLACED: c_int = 1;

/// Status of dictionaries and sets: memory is short, or no memory has that size.
pub const DICT_NO_MEMORY: c_int = -1;
/// The container changed during an iteration, or a callback tried to change it.
pub const DICT_MUTATED: c_int = -2;
/// Every element was visited.
pub const DICT_EXHAUSTED: c_int = -3;
/// The container has no element to remove.
pub const DICT_EMPTY: c_int = -4;
/// A comparison of keys failed, or it changed the container.
pub const DICT_COMPARE_FAILED: c_int = -5;

/// Result of a lookup: the key is absent.
pub const MISSING: isize = -1;
/// Result of a lookup: a comparison failed.
pub const LOOKUP_FAILED: isize = -3;

/// Status of lists: no item has this index.
pub const LIST_INDEX: c_int = -1;
/// Memory is short, or no memory has that size.
pub const LIST_NO_MEMORY: c_int = -2;
/// As [`DICT_MUTATED`].
pub const LIST_MUTATED: c_int = -3;
/// Every item was visited.
pub const LIST_EXHAUSTED: c_int = -4;
/// The list was made immutable.
pub const LIST_IMMUTABLE: c_int = -5;

/// Compares a key of the container with a given key: 1 equal, 0 different, negative if the
/// comparison failed.
pub type EqualFn = unsafe extern "C" fn(stored: *const u8, given: *const u8) -> c_int;
/// Counts a reference that an element holds.
pub type CountFn = unsafe extern "C" fn(element: *const c_void);

/// # Safety
/// `function` is absent or accepts `element`.
#[inline]
unsafe fn call(function: Option<CountFn>, element: *const u8) {
    if let Some(function) = function {
        // SAFETY: as the caller promises.
        unsafe { function(element.cast()) }
    }
}
