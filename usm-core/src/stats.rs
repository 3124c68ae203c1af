//! Counters of live memory: per type and for the sum, each with the true peak.

use core::fmt;

use crate::MemoryType;
#[cfg(feature = "alloc")]
use crate::lending::Flow;

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
    /// The pinned blocks through which copies of the program's memory go. They are in no other
    /// number, because no caller asked for them.
    pub ring: Counters,
    /// Number of times that there was no memory for such a block. The copy then goes through fewer
    /// blocks, or the runtime's own.
    pub ring_refusals: usize,
    /// Bytes of the segments of pools. Their blocks are in the numbers above as their owners asked
    /// for them; a peak may miss what a pool's thread caches gave out since it was last told.
    pub reserved: usize,
    /// Bytes of the pools' free blocks that nothing uses.
    pub cached: usize,
    /// Bytes of the pools' free blocks that unfinished operations were last known to use.
    pub pending: usize,
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
        let ring = (self.ring.count > 0).then_some(("ring", &self.ring));
        for (name, row) in rows.chain([("sum", &self.sum)]).chain(ring) {
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
    allocation_count: usize,
    free_count: usize,
    peak: usize,
    allocations: usize,
    frees: usize,
}

impl Row {
    const NONE: Self = Self { allocation_count: 0, free_count: 0, peak: 0, allocations: 0, frees: 0 };

    /// Returns (current, peak).
    #[inline]
    fn add(&mut self, bytes: usize) -> (usize, usize) {
        self.allocation_count = self.allocation_count.wrapping_add(bytes);
        self.allocations = self.allocations.wrapping_add(1);
        let current = self.allocation_count.wrapping_sub(self.free_count);
        if current > self.peak {
            self.peak = current;
        }
        (current, self.peak)
    }

    #[inline]
    fn remove(&mut self, bytes: usize) -> (usize, usize) {
        self.free_count = self.free_count.wrapping_add(bytes);
        self.frees = self.frees.wrapping_add(1);
        (self.allocation_count.wrapping_sub(self.free_count), self.peak)
    }

    fn counters(&self) -> Counters {
        Counters {
            current: self.allocation_count.wrapping_sub(self.free_count),
            peak: self.peak,
            total: self.allocation_count,
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
    leak_count: usize,
    /// Apart from all others.
    ring: Row,
    ring_refusals: usize,
}

impl Tally {
    pub(crate) const fn new() -> Self {
        let (by_type, ring) = ([Row::NONE; 4], Row::NONE);
        Self { by_type, current: 0, peak: 0, leak_count: 0, ring, ring_refusals: 0 }
    }

    #[cfg(feature = "driver")]
    pub(crate) fn add_to_ring(&mut self, bytes: usize) {
        let _ = self.ring.add(bytes);
    }

    #[cfg(feature = "driver")]
    pub(crate) fn remove_from_ring(&mut self, bytes: usize) {
        self.ring.remove(bytes);
    }

    #[cfg(feature = "driver")]
    pub(crate) fn refuse_ring(&mut self) {
        self.ring_refusals = self.ring_refusals.wrapping_add(1);
    }

    /// Returns (current, peak) of the type, as the log line prints them.
    #[inline]
    pub(crate) fn add(&mut self, memory_type: MemoryType, bytes: usize) -> (usize, usize) {
        self.current = self.current.wrapping_add(bytes);
        if self.current > self.peak {
            self.peak = self.current;
        }
        self.by_type[memory_type.index()].add(bytes)
    }

    #[inline]
    pub(crate) fn remove(&mut self, memory_type: MemoryType, bytes: usize) -> (usize, usize) {
        self.current = self.current.wrapping_sub(bytes);
        self.by_type[memory_type.index()].remove(bytes)
    }

    /// Adds the differences of a pool.
    #[cfg(feature = "alloc")]
    pub(crate) fn report(&mut self, memory_type: MemoryType, flow: &Flow) {
        let row = &mut self.by_type[memory_type.index()];
        row.allocation_count = row.allocation_count.wrapping_add(flow.allocated as usize);
        row.free_count = row.free_count.wrapping_add(flow.freed as usize);
        row.allocations = row.allocations.wrapping_add(flow.allocations as usize);
        row.frees = row.frees.wrapping_add(flow.frees as usize);
        row.peak = row.peak.max(row.allocation_count.wrapping_sub(row.free_count));
        let change = (flow.allocated as usize).wrapping_sub(flow.freed as usize);
        self.current = self.current.wrapping_add(change);
        self.peak = self.peak.max(self.current);
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn current_and_peak(&self, memory_type: MemoryType) -> (usize, usize) {
        let row = &self.by_type[memory_type.index()];
        (row.allocation_count.wrapping_sub(row.free_count), row.peak)
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn leak(&mut self) {
        self.leak_count = self.leak_count.wrapping_add(1);
    }

    /// Sets the peaks to the live bytes.
    pub(crate) fn reset_peak(&mut self) {
        self.peak = self.current;
        let rows = self.by_type.iter_mut().chain([&mut self.ring]);
        rows.for_each(|row| row.peak = row.allocation_count.wrapping_sub(row.free_count));
    }

    pub(crate) fn snapshot(&self) -> Stats {
        let by_type = self.by_type.map(|row| row.counters());
        let mut sum = Counters::default();
        by_type.iter().for_each(|row| sum.add(row));
        (sum.current, sum.peak) = (self.current, self.peak);
        let (ring, ring_refusals) = (self.ring.counters(), self.ring_refusals);
        Stats { by_type, sum, leaked: self.leak_count, ring, ring_refusals, ..Stats::default() }
    }
}
