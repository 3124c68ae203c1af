//! Counters of live memory: per type and for the sum, each with the true peak.

use core::fmt;

use crate::MemoryType;

/// Counters of one memory type, or of the sum. Bytes, except the two counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Live bytes.
    pub current: usize,
    /// Peak of the live bytes.
    pub peak: usize,
    /// Sum of all allocated bytes.
    pub total: usize,
    /// Number of live allocations.
    pub live: usize,
    /// Number of all allocations.
    pub count: usize,
}

/// A snapshot of the statistics of a context, or of all contexts of a device.
///
/// All numbers belong to one moment. `sum.peak` is the peak of the sum, not the sum of the peaks:
/// it does not add memory of two types that was never live at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Per type, indexed as [`MemoryType::ALL`].
    pub by_type: [Counters; 4],
    /// All types together.
    pub sum: Counters,
    /// Number of blocks that were still in use at the wait limit of a drop: leaked, never freed.
    pub leaked: usize,
}

impl Stats {
    /// The counters of one memory type.
    #[must_use]
    pub const fn of(&self, memory_type: MemoryType) -> &Counters {
        &self.by_type[memory_type.index()]
    }
}

impl Counters {
    fn add(&mut self, more: &Self) {
        self.current = self.current.wrapping_add(more.current);
        self.total = self.total.wrapping_add(more.total);
        self.live = self.live.wrapping_add(more.live);
        self.count = self.count.wrapping_add(more.count);
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

/// The counts of one memory type: additions and removals, so that each event changes as few words
/// as possible.
#[derive(Clone, Copy, Debug)]
struct Row {
    allocated: usize,
    freed: usize,
    peak: usize,
    allocations: usize,
    frees: usize,
}

impl Row {
    const NONE: Self = Self { allocated: 0, freed: 0, peak: 0, allocations: 0, frees: 0 };

    fn counters(&self) -> Counters {
        Counters {
            current: self.allocated.wrapping_sub(self.freed),
            peak: self.peak,
            total: self.allocated,
            live: self.allocations.wrapping_sub(self.frees),
            count: self.allocations,
        }
    }
}

/// The live counters behind [`Stats`]: plain numbers, changed under the ledger's lock.
#[derive(Debug)]
pub(crate) struct Tally {
    by_type: [Row; 4],
    /// Bytes of all types; a query adds up the rest of the sum.
    current: usize,
    peak: usize,
    leaked: usize,
}

impl Tally {
    pub(crate) const fn new() -> Self {
        Self { by_type: [Row::NONE; 4], current: 0, peak: 0, leaked: 0 }
    }

    /// Returns (current, peak) of the type, as the log line prints them.
    #[inline]
    pub(crate) fn add(&mut self, memory_type: MemoryType, bytes: usize) -> (usize, usize) {
        self.current = self.current.wrapping_add(bytes);
        if self.current > self.peak {
            self.peak = self.current;
        }
        let row = &mut self.by_type[memory_type.index()];
        row.allocated = row.allocated.wrapping_add(bytes);
        row.allocations = row.allocations.wrapping_add(1);
        let current = row.allocated.wrapping_sub(row.freed);
        if current > row.peak {
            row.peak = current;
        }
        (current, row.peak)
    }

    #[inline]
    pub(crate) fn remove(&mut self, memory_type: MemoryType, bytes: usize) -> (usize, usize) {
        self.current = self.current.wrapping_sub(bytes);
        let row = &mut self.by_type[memory_type.index()];
        row.freed = row.freed.wrapping_add(bytes);
        row.frees = row.frees.wrapping_add(1);
        (row.allocated.wrapping_sub(row.freed), row.peak)
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn leak(&mut self) {
        self.leaked = self.leaked.wrapping_add(1);
    }

    /// Sets the peaks to the live bytes.
    pub(crate) fn reset_peak(&mut self) {
        self.peak = self.current;
        self.by_type.iter_mut().for_each(|row| row.peak = row.allocated.wrapping_sub(row.freed));
    }

    pub(crate) fn snapshot(&self) -> Stats {
        let by_type = self.by_type.map(|row| row.counters());
        let mut sum = Counters::default();
        by_type.iter().for_each(|row| sum.add(row));
        (sum.current, sum.peak) = (self.current, self.peak);
        Stats { by_type, sum, leaked: self.leaked }
    }
}
