//! Switches of the whole runtime: statistics, thread caches, shutdown.

use core::sync::atomic::{AtomicU32, Ordering};

const STATS: u32 = 1;
const CACHE: u32 = 2;
const SHUTDOWN: u32 = 4;
const TRACKING: u32 = 8;

/// Number of the allocator behind new blocks (see [`crate::set_allocator`]): the highest byte.
const ALLOCATOR_SHIFT: u32 = 24;
const ALLOCATOR: u32 = 0xFF << ALLOCATOR_SHIFT;

/// All switches in one word: the hot paths pay one relaxed load for all of them.
static SWITCHES: AtomicU32 = AtomicU32::new(0);

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

/// Starts or stops counting; counters keep their values. Off at start.
pub fn set_stats(on: bool) {
    set(STATS, on);
}

/// Whether blocks are counted.
#[inline]
pub fn stats_enabled() -> bool {
    is_set(STATS)
}

/// Lets each thread keep small freed blocks (up to 1 KiB of data, about 16 KiB a size class) for its own
/// next allocations. Off at start. Without the feature `std` there are no thread caches and this does
/// nothing. A thread gives its blocks back when it ends, or by [`crate::drain_thread_cache`].
pub fn set_thread_cache(on: bool) {
    set(CACHE, on && cfg!(feature = "std"));
}

/// Where new blocks come from when it is not the global allocator straight away; see [`Placement`].
#[inline]
pub(crate) fn placement() -> Placement {
    Placement(SWITCHES.load(Ordering::Relaxed) & (CACHE | ALLOCATOR))
}

/// The switches that an allocation looks at: one comparison says that nothing is special.
#[derive(Clone, Copy)]
pub(crate) struct Placement(u32);

impl Placement {
    #[inline]
    pub(crate) const fn is_plain(self) -> bool {
        self.0 == 0
    }

    /// The number of the installed allocator, or 0 for the global one.
    #[inline]
    pub(crate) const fn allocator(self) -> u8 {
        (self.0 >> ALLOCATOR_SHIFT) as u8
    }
}

/// Chooses the allocator of new blocks; publishes its entry too.
pub(crate) fn set_allocator(number: u8) {
    let word = u32::from(number) << ALLOCATOR_SHIFT;
    // The closure never refuses.
    let _ = SWITCHES
        .fetch_update(Ordering::Release, Ordering::Relaxed, |switches| Some(switches & !ALLOCATOR | word));
}

/// Whether small blocks are cached per thread.
#[inline]
pub fn thread_cache_enabled() -> bool {
    is_set(CACHE)
}

/// Enters or leaves shutdown: from then on the last release frees a block's memory but runs no foreign
/// destructor, because what it would call into (an interpreter, a device context) may be gone. Payloads
/// that this runtime allocated itself are still freed.
pub fn set_shutdown(on: bool) {
    set(SHUTDOWN, on);
}

/// Whether destructors are skipped.
#[inline]
pub fn is_shutdown() -> bool {
    is_set(SHUTDOWN)
}

/// Starts or stops keeping a record of every block made, for [`crate::live_blocks`]. Off at start.
pub fn set_tracking(on: bool) {
    set(TRACKING, on);
}

/// Whether (blocks are counted, blocks are tracked): one load for both.
#[inline]
pub(crate) fn observers() -> (bool, bool) {
    let switches = SWITCHES.load(Ordering::Relaxed);
    (switches & STATS != 0, switches & TRACKING != 0)
}
