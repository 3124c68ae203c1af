//! Switches of the whole runtime: statistics, thread cache, shutdown.

use core::sync::atomic::Ordering;

#[cfg(feature = "std")]
use crate::local;
use crate::sync::lasting::AtomicU32;

const STATS: u32 = 1;
const CACHE: u32 = 2;
const SHUTDOWN: u32 = 4;
const TRACKING: u32 = 8;
/// Small blocks of the installed allocator are carved out of slabs and kept.
const KEPT: u32 = 16;

/// The highest byte: the number of the allocator of new blocks (see [`crate::set_allocator`]).
const ALLOCATOR_SHIFT: u32 = 24;
const ALLOCATOR: u32 = 0xFF << ALLOCATOR_SHIFT;

/// All switches in one word, so that hot paths pay one relaxed load.
static SWITCHES: AtomicU32 = AtomicU32::new(AT_START);

/// The thread cache is on, except in builds that look for misuse of blocks.
const AT_START: u32 = if cfg!(all(feature = "std", not(feature = "debug"), not(miri))) { CACHE } else { 0 };

fn set(switch: u32, on: bool) {
    if on {
        SWITCHES.fetch_or(switch, Ordering::Relaxed);
    } else {
        SWITCHES.fetch_and(!switch, Ordering::Relaxed);
    }
}

#[inline]
fn is_set(switch: u32) -> bool {
    SWITCHES.load(Ordering::Relaxed) & switch != 0
}

/// Turns counting on or off. Counters keep their values. Off at start.
pub fn set_stats(on: bool) {
    set(STATS, on);
}

/// Whether blocks are counted.
#[inline]
pub fn stats_enabled() -> bool {
    is_set(STATS)
}

/// Turns the thread cache on or off. Each thread keeps small freed blocks for reuse: blocks of up
/// to 1 KiB of data, 256 KiB in total. On at start, except with the feature `debug`, under a
/// sanitizer, and with `USM_NRT_THREAD_CACHE=0` in the environment. A thread frees its kept blocks
/// when it ends, or by [`crate::drain_thread_cache`].
///
/// Without the feature `std` there is no thread cache and this does nothing. The C library turns
/// the cache off in a process with so many libraries that finding a thread's variables takes calls.
pub fn set_thread_cache(on: bool) {
    #[cfg(feature = "std")]
    local::record_thread_cache_choice();
    switch_thread_cache(on);
}

pub(crate) fn switch_thread_cache(on: bool) {
    set(CACHE, on && cfg!(feature = "std"));
}

/// The switches that allocation and freeing read.
#[derive(Clone, Copy)]
pub(crate) struct Switches(u32);

/// All switches at this moment; one load.
#[inline]
pub(crate) fn switches() -> Switches {
    Switches(SWITCHES.load(Ordering::Relaxed))
}

impl Switches {
    /// Whether nothing is tracked and no allocator is installed.
    #[inline]
    pub(crate) const fn is_plain(self) -> bool {
        self.0 & (TRACKING | ALLOCATOR) == 0
    }

    /// Whether allocations and frees are counted.
    #[inline]
    pub(crate) const fn is_counted(self) -> bool {
        self.0 & STATS != 0
    }

    /// Whether every block is recorded.
    #[inline]
    pub(crate) const fn is_tracked(self) -> bool {
        self.0 & TRACKING != 0
    }

    /// Whether small blocks of the installed allocator are carved out of slabs. Not while tracking:
    /// the allocator is then called for each block, so that it can see the requesting code.
    #[inline]
    #[cfg(feature = "std")]
    pub(crate) const fn is_slabbed(self) -> bool {
        self.0 & (CACHE | KEPT | TRACKING) == CACHE | KEPT
    }

    /// Whether threads keep small blocks.
    #[inline]
    pub(crate) const fn is_cached(self) -> bool {
        self.0 & CACHE != 0
    }

    /// The number of the installed allocator; 0 for the global one.
    #[inline]
    pub(crate) const fn allocator(self) -> u8 {
        (self.0 >> ALLOCATOR_SHIFT) as u8
    }
}

/// Chooses the allocator of new blocks, and publishes its entry.
pub(crate) fn set_allocator(number: u8, is_kept: bool) {
    let word = u32::from(number) << ALLOCATOR_SHIFT | if is_kept { KEPT } else { 0 };
    // The closure never refuses.
    let _ = SWITCHES.fetch_update(Ordering::Release, Ordering::Relaxed, |switches| {
        Some(switches & !(ALLOCATOR | KEPT) | word)
    });
}

/// Whether threads keep small blocks.
#[inline]
pub fn thread_cache_enabled() -> bool {
    is_set(CACHE)
}

/// Enters or leaves shutdown. In shutdown the last release frees a block's memory but runs no
/// foreign destructor, because the destructor's library (an interpreter, a device context) may be
/// unloaded. Payloads of this runtime are still freed.
pub fn set_shutdown(on: bool) {
    set(SHUTDOWN, on);
}

/// Whether destructors are skipped.
#[inline]
pub fn is_shutdown() -> bool {
    is_set(SHUTDOWN)
}

/// The switch of [`crate::set_tracking`], its only caller.
pub(crate) fn switch_tracking(on: bool) {
    set(TRACKING, on);
}
