//! Counts of blocks made and freed.

use core::fmt;

pub(crate) use crate::counters::Event;
use crate::local;
use crate::system;

/// Counts since the start of the program, while statistics were on ([`crate::set_stats`]).
///
/// Only completed operations are counted, not a failed allocation or `free(NULL)`. The sum over
/// threads is taken without stopping them, so it is exact whenever no thread is inside the runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    /// Memory blocks allocated. A MemInfo with its data in one block counts once, a varsize one
    /// twice.
    pub alloc: usize,
    /// Memory blocks freed.
    pub free: usize,
    /// MemInfos initialised.
    pub mi_alloc: usize,
    /// MemInfos destroyed.
    pub mi_free: usize,
}

impl Stats {
    /// The current counts; `None` while statistics are off.
    pub fn current() -> Option<Self> {
        system::stats_enabled().then(Self::totals)
    }

    /// The counts so far, also while statistics are off.
    pub fn totals() -> Self {
        let mut sum = [0usize; 4];
        local::for_each_counters(|counters| counters.add_to(&mut sum));
        let [alloc, free, mi_alloc, mi_free] = sum;
        Self { alloc, free, mi_alloc, mi_free }
    }

    /// Memory blocks not yet freed; negative if counting began while blocks lived.
    pub fn live_blocks(&self) -> isize {
        self.alloc.wrapping_sub(self.free) as isize
    }

    /// MemInfos not yet destroyed; negative if counting began while blocks lived.
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

/// Counts each event if statistics are on.
#[inline]
pub(crate) fn count<const N: usize>(events: [Event; N]) {
    if system::stats_enabled() {
        local::count(events);
    }
}
