//! The containers of compiled code: Numba's typed dictionary, set and list, under the names of its
//! `helperlib`.
//!
//! Elements are bytes of a fixed size that only the caller understands; what they refer to is
//! counted by callbacks in a method table. Dictionaries and sets keep the order of insertion: rows
//! lie one after another, and a hash table of small integers says in which row a key is. Lists grow
//! by an eighth ([`list`]). All memory is the runtime's: it comes from
//! [`set_allocator`](crate::set_allocator)'s functions, and [`Stats`](crate::Stats) counts it.
//!
//! Orders, positions, status codes, growth and the moments of callbacks are those of Numba's
//! functions. Where those are undefined, these answer with a status: sizes that overflow, null and
//! positions of no element. A callback may look at the container that called it but not change it:
//! that is refused as [`DICT_MUTATED`] or [`LIST_MUTATED`].

pub mod dict;
mod dump;
mod iterate;
mod keyed;
mod layout;
pub mod list;
mod memory;
mod search;
pub mod set;
mod table;

use core::ffi::{c_int, c_void};

pub use iterate::KeyedIter;
pub use keyed::Keyed;
pub use list::{List, ListIter};

/// Done; of an insertion: the key is new.
pub const OK: c_int = 0;
/// The key was there; of a dictionary, its value was replaced.
pub const REPLACED: c_int = 1;

/// Status of dictionaries and sets: no memory, or a size that no memory has.
pub const DICT_NO_MEMORY: c_int = -1;
/// The container was changed while it was iterated, or is being changed by who called back.
pub const DICT_MUTATED: c_int = -2;
/// Every element was visited.
pub const DICT_EXHAUSTED: c_int = -3;
/// There is nothing to remove.
pub const DICT_EMPTY: c_int = -4;
/// A comparison of keys failed, or changed the container.
pub const DICT_COMPARE_FAILED: c_int = -5;

/// Result of a lookup: no such key.
pub const MISSING: isize = -1;
/// Result of a lookup whose comparison failed.
pub const LOOKUP_FAILED: isize = -3;

/// Status of lists: no element has this index.
pub const LIST_INDEX: c_int = -1;
/// No memory, or a size that no memory has.
pub const LIST_NO_MEMORY: c_int = -2;
/// As [`DICT_MUTATED`].
pub const LIST_MUTATED: c_int = -3;
/// Every item was visited.
pub const LIST_EXHAUSTED: c_int = -4;
/// The list was made immutable.
pub const LIST_IMMUTABLE: c_int = -5;

/// Whether two keys are equal: 1 yes, 0 no, negative when that could not be found out. The first is
/// the container's.
pub type EqualFn = unsafe extern "C" fn(stored: *const u8, given: *const u8) -> c_int;
/// Counts what the bytes of an element refer to.
pub type CountFn = unsafe extern "C" fn(element: *const c_void);

/// # Safety
/// `function` is absent or may be called with `element`.
#[inline]
unsafe fn call(function: Option<CountFn>, element: *const u8) {
    if let Some(function) = function {
        // SAFETY: as the caller promises.
        unsafe { function(element.cast()) }
    }
}
