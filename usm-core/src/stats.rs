//! Counters of live memory: per type and for the sum, each with the true peak.

use core::fmt;

use crate::MemoryType;

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
/// All numbers are of one moment. `sum.peak` is the peak of the sum, not the sum of the peaks: memory of two types that was
/// never live at the same time is not added up.
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

/// The live counters behind [`Stats`]: plain numbers, changed under the lock of a context's books.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    by_type: [Counters; 4],
    /// Bytes of all types; the rest of the sum is added up when asked.
    current: usize,
    peak: usize,
    leaked: usize,
}

impl Ledger {
    pub(crate) const fn new() -> Self {
        const NONE: Counters = Counters { current: 0, peak: 0, total: 0, live: 0, count: 0 };
        Self { by_type: [NONE; 4], current: 0, peak: 0, leaked: 0 }
    }

    /// Returns (current, peak) of the type, as the log line prints them.
    pub(crate) fn add(&mut self, memory_type: MemoryType, bytes: usize) -> (usize, usize) {
        self.current = self.current.wrapping_add(bytes);
        self.peak = self.peak.max(self.current);
        let row = &mut self.by_type[memory_type.index()];
        row.current = row.current.wrapping_add(bytes);
        row.peak = row.peak.max(row.current);
        row.total = row.total.wrapping_add(bytes);
        row.live = row.live.wrapping_add(1);
        row.count = row.count.wrapping_add(1);
        (row.current, row.peak)
    }

    pub(crate) fn remove(&mut self, memory_type: MemoryType, bytes: usize) -> (usize, usize) {
        self.current = self.current.wrapping_sub(bytes);
        let row = &mut self.by_type[memory_type.index()];
        row.current = row.current.wrapping_sub(bytes);
        row.live = row.live.wrapping_sub(1);
        (row.current, row.peak)
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn leak(&mut self) {
        self.leaked = self.leaked.wrapping_add(1);
    }

    pub(crate) fn snapshot(&self) -> Stats {
        let mut sum = Counters { current: self.current, peak: self.peak, ..Counters::default() };
        for row in &self.by_type {
            sum.total = sum.total.wrapping_add(row.total);
            sum.live = sum.live.wrapping_add(row.live);
            sum.count = sum.count.wrapping_add(row.count);
        }
        Stats { by_type: self.by_type, sum, leaked: self.leaked }
    }
}
