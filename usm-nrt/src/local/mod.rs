//! What each thread keeps for itself: its counters and its cache of small blocks. Without `std` there are
//! no threads to know of: counters are shared and nothing is cached.

#[cfg(feature = "std")]
mod thread;
#[cfg(feature = "std")]
pub use thread::drain_thread_cache;
#[cfg(feature = "std")]
pub(crate) use thread::{count, for_each_counters, put, put_first, take};

#[cfg(not(feature = "std"))]
mod shared;
#[cfg(not(feature = "std"))]
pub(crate) use shared::{count, drain_thread_cache, for_each_counters, put, put_first, take};

/// Bytes between two size classes: a cache line.
const CLASS_STEP: usize = 64;
/// Size classes: 64 bytes (class 1) to 1 KiB of data behind its 64 bytes of header.
pub(crate) const CLASSES: usize = 17;

/// The class of blocks of `total` bytes, all included, or `None` when they are too large to be cached.
#[inline]
pub(crate) fn class_of(total: usize) -> Option<u8> {
    let class = total.div_ceil(CLASS_STEP);
    (class <= CLASSES && class > 0).then_some(class as u8)
}

/// Bytes of a block of class `class`.
#[inline]
pub(crate) const fn class_size(class: u8) -> usize {
    class as usize * CLASS_STEP
}
