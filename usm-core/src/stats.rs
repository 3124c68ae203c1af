//! Counters of live memory: per type and for the sum, each with the true peak.

use core::fmt;

use crate::MemoryType;
use crate::sync::{AtomicUsize, Ordering};

/// Counters of one memory type, or of the sum. Bytes, except the two counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Bytes live now.
    pub current: usize,
    /// Most bytes ever live at once.
    pub peak: usize,
    /// Bytes ever allocated.
    pub total: usize,
    /// Allocations live now.
    pub live: usize,
    /// Allocations ever made.
    pub count: usize,
}

/// A snapshot of the statistics of a context.
///
/// `sum.peak` is the peak of the sum, not the sum of the peaks: memory of two types that was never live at the same
/// time is not added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Per type, indexed as [`MemoryType::ALL`].
    pub by_type: [Counters; 4],
    /// Of all types together.
    pub sum: Counters,
    /// Blocks that were still in use when the wait limit of a drop ran out: given up, never freed.
    pub leaked: usize,
}

impl Stats {
    /// The counters of one memory type.
    #[must_use]
    pub const fn of(&self, memory_type: MemoryType) -> &Counters {
        &self.by_type[memory_type.index()]
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "type        current       peak      total  live  count")?;
        let rows = MemoryType::ALL.iter().map(|memory_type| (memory_type.name(), self.of(*memory_type)));
        for (name, row) in rows.chain([("sum", &self.sum)]) {
            writeln!(
                f,
                "{name:<10} {:>8} {:>10} {:>10} {:>5} {:>6}",
                row.current, row.peak, row.total, row.live, row.count
            )?;
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
struct AtomicCounters {
    current: AtomicUsize,
    peak: AtomicUsize,
    total: AtomicUsize,
    live: AtomicUsize,
    count: AtomicUsize,
}

impl AtomicCounters {
    const fn new() -> Self {
        Self {
            current: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            total: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            count: AtomicUsize::new(0),
        }
    }

    /// Returns (current, peak) after the addition. A maximum by `fetch_max` cannot lose an update, unlike
    /// compare-then-store.
    fn add(&self, bytes: usize) -> (usize, usize) {
        let current = self.current.fetch_add(bytes, Ordering::Relaxed).wrapping_add(bytes);
        let peak = self.peak.fetch_max(current, Ordering::Relaxed).max(current);
        self.total.fetch_add(bytes, Ordering::Relaxed);
        self.live.fetch_add(1, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
        (current, peak)
    }

    fn remove(&self, bytes: usize) -> (usize, usize) {
        let current = self.current.fetch_sub(bytes, Ordering::Relaxed).wrapping_sub(bytes);
        self.live.fetch_sub(1, Ordering::Relaxed);
        (current, self.peak.load(Ordering::Relaxed))
    }

    fn snapshot(&self) -> Counters {
        Counters {
            current: self.current.load(Ordering::Relaxed),
            peak: self.peak.load(Ordering::Relaxed),
            total: self.total.load(Ordering::Relaxed),
            live: self.live.load(Ordering::Relaxed),
            count: self.count.load(Ordering::Relaxed),
        }
    }
}

/// The live counters behind [`Stats`].
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    by_type: [AtomicCounters; 4],
    sum: AtomicCounters,
    leaked: AtomicUsize,
}

impl Ledger {
    pub(crate) const fn new() -> Self {
        Self {
            by_type: [const { AtomicCounters::new() }; 4],
            sum: AtomicCounters::new(),
            leaked: AtomicUsize::new(0),
        }
    }

    /// Returns (current, peak) of the type, as the log line prints them.
    pub(crate) fn add(&self, memory_type: MemoryType, bytes: usize) -> (usize, usize) {
        self.sum.add(bytes);
        self.by_type[memory_type.index()].add(bytes)
    }

    pub(crate) fn remove(&self, memory_type: MemoryType, bytes: usize) -> (usize, usize) {
        self.sum.remove(bytes);
        self.by_type[memory_type.index()].remove(bytes)
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn leak(&self) {
        self.leaked.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> Stats {
        Stats {
            by_type: core::array::from_fn(|index| self.by_type[index].snapshot()),
            sum: self.sum.snapshot(),
            leaked: self.leaked.load(Ordering::Relaxed),
        }
    }
}
