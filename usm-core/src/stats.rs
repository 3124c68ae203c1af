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

/// Current value and its maximum.
#[derive(Debug, Default)]
struct Level {
    current: AtomicUsize,
    peak: AtomicUsize,
}

impl Level {
    const fn new() -> Self {
        Self { current: AtomicUsize::new(0), peak: AtomicUsize::new(0) }
    }

    /// Returns (current, peak) after the addition. A maximum by `fetch_max` cannot lose an update, unlike
    /// compare-then-store; it is skipped where the peak stands above already, which it never leaves again.
    fn add(&self, bytes: usize) -> (usize, usize) {
        let current = self.current.fetch_add(bytes, Ordering::Relaxed).wrapping_add(bytes);
        let peak = self.peak.load(Ordering::Relaxed);
        if peak >= current {
            return (current, peak);
        }
        (current, self.peak.fetch_max(current, Ordering::Relaxed).max(current))
    }

    fn remove(&self, bytes: usize) -> (usize, usize) {
        let current = self.current.fetch_sub(bytes, Ordering::Relaxed).wrapping_sub(bytes);
        (current, self.peak.load(Ordering::Relaxed))
    }
}

#[derive(Debug, Default)]
struct AtomicCounters {
    level: Level,
    total: AtomicUsize,
    count: AtomicUsize,
    freed: AtomicUsize,
}

impl AtomicCounters {
    const fn new() -> Self {
        Self {
            level: Level::new(),
            total: AtomicUsize::new(0),
            count: AtomicUsize::new(0),
            freed: AtomicUsize::new(0),
        }
    }

    fn snapshot(&self) -> Counters {
        // Frees first: one that happens in between then counts as live, never as minus one.
        let freed = self.freed.load(Ordering::Acquire);
        let count = self.count.load(Ordering::Relaxed);
        Counters {
            current: self.level.current.load(Ordering::Relaxed),
            peak: self.level.peak.load(Ordering::Relaxed),
            total: self.total.load(Ordering::Relaxed),
            live: count.wrapping_sub(freed),
            count,
        }
    }
}

/// The live counters behind [`Stats`].
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    by_type: [AtomicCounters; 4],
    /// Of all types. Counts and totals of the sum are sums.
    sum: Level,
    leaked: AtomicUsize,
}

impl Ledger {
    pub(crate) const fn new() -> Self {
        Self { by_type: [const { AtomicCounters::new() }; 4], sum: Level::new(), leaked: AtomicUsize::new(0) }
    }

    /// Returns (current, peak) of the type, as the log line prints them.
    pub(crate) fn add(&self, memory_type: MemoryType, bytes: usize) -> (usize, usize) {
        let counters = &self.by_type[memory_type.index()];
        self.sum.add(bytes);
        counters.total.fetch_add(bytes, Ordering::Relaxed);
        counters.count.fetch_add(1, Ordering::Relaxed);
        counters.level.add(bytes)
    }

    pub(crate) fn remove(&self, memory_type: MemoryType, bytes: usize) -> (usize, usize) {
        let counters = &self.by_type[memory_type.index()];
        self.sum.remove(bytes);
        let levels = counters.level.remove(bytes);
        counters.freed.fetch_add(1, Ordering::Release);
        levels
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn leak(&self) {
        self.leaked.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> Stats {
        let by_type: [Counters; 4] = core::array::from_fn(|index| self.by_type[index].snapshot());
        let mut sum = Counters {
            current: self.sum.current.load(Ordering::Relaxed),
            peak: self.sum.peak.load(Ordering::Relaxed),
            ..Counters::default()
        };
        for row in &by_type {
            sum.total = sum.total.wrapping_add(row.total);
            sum.live = sum.live.wrapping_add(row.live);
            sum.count = sum.count.wrapping_add(row.count);
        }
        Stats { by_type, sum, leaked: self.leaked.load(Ordering::Relaxed) }
    }
}
