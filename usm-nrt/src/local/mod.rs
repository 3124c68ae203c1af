//! The data of each thread: its counters and its small blocks. Without `std` the threads are
//! unknown: they share the counters, and nothing is kept.

#[cfg(feature = "std")]
mod cache;
#[cfg(feature = "std")]
mod cache_default;
#[cfg(feature = "std")]
mod destructor_queue;
#[cfg(feature = "std")]
mod shelf;
#[cfg(feature = "std")]
mod thread;
#[cfg(feature = "std")]
mod thread_slot;
#[cfg(feature = "std")]
pub(crate) use cache::Cache;
#[cfg(feature = "std")]
pub(crate) use cache_default::record_choice as record_thread_cache_choice;
// Forks leave it free.
#[cfg(all(feature = "std", unix, not(miri)))]
pub(crate) use shelf::CLOSING;
#[cfg(feature = "std")]
pub(crate) use shelf::{blocks_on_shelves, clear_all as clear_all_shelves, set_generation};
#[cfg(feature = "std")]
pub use thread::drain_thread_cache;
#[cfg(feature = "std")]
pub(crate) use thread::{
    begin_destructor, cache_if_enabled, count, end_destructor, for_each_counters, put, shelf, take,
};

#[cfg(not(feature = "std"))]
mod shared;
#[cfg(not(feature = "std"))]
pub(crate) use shared::{
    Cache, begin_destructor, cache_if_enabled, count, drain_thread_cache, end_destructor, for_each_counters,
    put, take,
};

/// Bytes between two size classes; a size includes prefix and header.
const CLASS_STEP: usize = 32;
/// Number of size classes. The last one holds 1 KiB of data behind 64 bytes of prefix and header.
pub(crate) const CLASSES: usize = (64 + 1024) / CLASS_STEP;

/// The class of blocks of `total` bytes, with prefix and header. `None` if they are too large to be
/// kept.
#[inline(always)]
pub(crate) fn class_of(total: usize) -> Option<u8> {
    let class = total.div_ceil(CLASS_STEP);
    (class <= CLASSES && class > 0).then_some(class as u8)
}

/// Size in bytes of a block of this class.
#[inline]
pub(crate) const fn class_size(class: u8) -> usize {
    class as usize * CLASS_STEP
}
