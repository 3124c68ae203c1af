//! How many blocks were made and freed.

use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::local;
use crate::system;

/// Counts since the start of the program, taken while statistics were on ([`crate::set_stats`]).
///
/// Only what really happened is counted: a failed allocation or `free(NULL)` leaves no trace. Numbers of
/// several threads are summed without stopping them, so they are exact whenever no thread is inside the
/// runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    /// Memory blocks allocated (a MemInfo with its data in one block counts once, a varsize one twice).
    pub alloc: usize,
    /// Memory blocks freed.
    pub free: usize,
    /// MemInfos initialised.
    pub mi_alloc: usize,
    /// MemInfos destroyed.
    pub mi_free: usize,
}

impl Stats {
    /// The counts at this moment, or `None` while statistics are off.
    pub fn current() -> Option<Self> {
        system::stats_enabled().then(Self::totals)
    }

    /// The counts so far, also while statistics are off.
    pub fn totals() -> Self {
        let mut sum = [0usize; 4];
        local::for_each_counters(|counters| {
            for (sum, counter) in sum.iter_mut().zip(&counters.0) {
                *sum = sum.wrapping_add(counter.load(Ordering::Relaxed));
            }
        });
        let [alloc, free, mi_alloc, mi_free] = sum;
        Self { alloc, free, mi_alloc, mi_free }
    }

    /// Memory blocks not yet freed; negative when counting began with live blocks.
    pub fn live_blocks(&self) -> isize {
        self.alloc.wrapping_sub(self.free) as isize
    }

    /// MemInfos not yet destroyed; negative when counting began with live blocks.
    pub fn live_meminfos(&self) -> isize {
        self.mi_alloc.wrapping_sub(self.mi_free) as isize
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "alloc={} free={} mi_alloc={} mi_free={}",
            self.alloc, self.free, self.mi_alloc, self.mi_free
        )
    }
}

/// What is counted; the value is the index in [`Counters`].
#[derive(Clone, Copy)]
pub(crate) enum Event {
    Alloc = 0,
    Free = 1,
    MiAlloc = 2,
    MiFree = 3,
}

/// One set of counters. With `std` each thread has its own, written by plain stores; see [`local`].
#[derive(Debug)]
pub(crate) struct Counters(pub(crate) [AtomicUsize; 4]);

impl Counters {
    pub(crate) const fn new() -> Self {
        Self([const { AtomicUsize::new(0) }; 4])
    }

    /// Counts when any thread may write.
    pub(crate) fn add_shared(&self, event: Event) {
        self.0[event as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts when only this thread writes.
    #[cfg(feature = "std")]
    #[inline]
    pub(crate) fn add_owned(&self, event: Event) {
        let counter = &self.0[event as usize];
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

/// Counts each event when statistics are on.
#[inline]
pub(crate) fn count<const N: usize>(events: [Event; N]) {
    if system::stats_enabled() {
        local::count(events);
    }
}
