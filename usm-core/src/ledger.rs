//! The ledger of a device: bytes and blocks of each context on it, and of all of them together,
//! under one lock; and the gate that they pass.
//!
//! There is one lock for the device and its contexts, not one for each. An allocation and its free
//! then take a single lock, whether the device has one context or several, and all numbers of a
//! read belong to one moment. The lock is held for some tens of instructions; a driver's own call
//! takes hundreds.

#[cfg(feature = "alloc")]
use alloc::{
    sync::{Arc, Weak},
    vec::Vec,
};
use core::fmt;
#[cfg(feature = "alloc")]
use core::ops::Range;

use crate::MemoryType;
#[cfg(feature = "alloc")]
use crate::backend::PointerInfo;
use crate::error::Result;
use crate::gate::Gate;
#[cfg(feature = "alloc")]
use crate::lending::{Flow, Lending};
#[cfg(feature = "alloc")]
use crate::registry::Blocks;
use crate::stats::{Stats, Tally};
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// The ledger of one device, shared by the contexts that a backend knows to be on it.
pub struct Ledger {
    /// Bytes that count against the device's memory. Changed with the lock held; reads that
    /// tolerate a stale value take no lock.
    in_use: AtomicUsize,
    state: Mutex<State>,
    /// Pools of the contexts, which answer for their own blocks.
    #[cfg(feature = "alloc")]
    pools: Mutex<Vec<(usize, Weak<dyn Lending>)>>,
    /// Whether there was ever one, so that others pay one load.
    #[cfg(feature = "alloc")]
    has_pools: AtomicUsize,
    gate: Gate,
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("in_use", &self.in_use)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct State {
    /// All contexts of the device together, dropped ones included.
    device: Tally,
    entries: Entries,
    /// Serial number of the last block.
    serial: u64,
}

/// Bytes and blocks of one context.
#[derive(Debug)]
struct Entry {
    tally: Tally,
    #[cfg(feature = "alloc")]
    blocks: Blocks,
}

/// Index of a context's entry in its device's ledger.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryId(#[cfg_attr(not(feature = "alloc"), allow(dead_code))] usize);

/// An amount of one memory type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount {
    pub(crate) memory_type: MemoryType,
    pub(crate) bytes: usize,
}

/// (current, peak) of a memory type in a context, as the log line prints them.
pub(crate) type CurrentAndPeak = (usize, usize);

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            in_use: AtomicUsize::new(0),
            state: Mutex::new(State { device: Tally::new(), entries: Entries::new(), serial: 0 }),
            #[cfg(feature = "alloc")]
            pools: Mutex::new(Vec::new()),
            #[cfg(feature = "alloc")]
            has_pools: AtomicUsize::new(0),
            gate: Gate::new(),
        }
    }

    /// The ledger of a device, kept consistent over a fork.
    #[cfg(feature = "alloc")]
    pub(crate) fn shared() -> Arc<Self> {
        let ledger = Arc::new(Self::new());
        #[cfg(feature = "std")]
        crate::process::fork::guard(&ledger);
        ledger
    }

    /// The gate that keeps host views and launches on the device apart.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Opens an entry for a new context.
    pub(crate) fn open(&self) -> EntryId {
        self.state.lock().entries.open()
    }

    /// Closes the entry of a dropped context. Its leaks stay in the device's numbers, because they
    /// stay in use.
    #[cfg(feature = "alloc")]
    pub(crate) fn close(&self, entry: EntryId) {
        let old_entry = self.state.lock().entries.close(entry);
        // Frees the entry's memory without the lock.
        drop(old_entry);
    }

    /// Bytes that count against the device's memory now.
    #[inline]
    pub(crate) fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }

    /// Calls `place` with the bytes in use and counts `bytes` if the answer is on the device.
    pub(crate) fn reserve(
        &self,
        bytes: usize,
        place: impl FnOnce(usize) -> Result<MemoryType>,
    ) -> Result<MemoryType> {
        let _locked = self.state.lock();
        let memory_type = place(self.in_use())?;
        if memory_type.on_device() {
            // Cannot overflow: `place` bounded the sum by the memory's size, and addresses are
            // distinct.
            self.add(bytes, u64::MAX);
        }
        Ok(memory_type)
    }

    /// Cancels a reservation.
    pub(crate) fn unreserve(&self, bytes: usize) {
        let _locked = self.state.lock();
        self.sub(bytes);
    }

    /// Adds to the bytes in use, unless the sum would exceed `limit`. The caller holds the lock.
    #[inline]
    fn add(&self, bytes: usize, limit: u64) -> bool {
        let sum = self.in_use().saturating_add(bytes);
        let fits = sum as u64 <= limit;
        if fits {
            self.in_use.store(sum, Ordering::Relaxed);
        }
        fits
    }

    /// The caller holds the lock.
    #[inline]
    fn sub(&self, bytes: usize) {
        self.in_use.store(self.in_use().saturating_sub(bytes), Ordering::Relaxed);
    }

    /// Adds an existing block and returns its serial number. `limit` applies to unreserved bytes;
    /// above it, nothing is added.
    #[inline(always)]
    #[cfg_attr(not(feature = "alloc"), allow(unused_variables))]
    pub(crate) fn add_block(
        &self,
        entry: EntryId,
        amount: Amount,
        limit: Option<u64>,
        #[cfg(feature = "alloc")] block: PointerInfo,
    ) -> Option<(u64, CurrentAndPeak)> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if limit.is_some_and(|limit| !self.add(amount.bytes, limit)) {
            return None;
        }
        state.serial += 1;
        let serial = state.serial;
        let (entry, numbers) = state.add_block(entry, amount);
        #[cfg(feature = "alloc")]
        entry.blocks.insert(block, serial);
        Some((serial, numbers))
    }

    /// Adds a buffer whose bytes are reserved.
    pub(crate) fn add_buffer(&self, entry: EntryId, amount: Amount) -> CurrentAndPeak {
        self.state.lock().add_block(entry, amount).1
    }

    /// Removes an amount from its context's entry; its bytes stay in use. `block` has the address
    /// and serial number of a block that the registry knows.
    pub(crate) fn remove(
        &self,
        entry: EntryId,
        amount: Amount,
        block: Option<(usize, u64)>,
    ) -> CurrentAndPeak {
        self.state.lock().remove(entry, amount, block).1
    }

    /// Removes an amount whose memory was freed.
    #[inline(always)]
    pub(crate) fn remove_freed(&self, entry: EntryId, amount: Amount, block: Option<(usize, u64)>) {
        let mut state = self.state.lock();
        if amount.memory_type.on_device() {
            self.sub(amount.bytes);
        }
        let _ = state.remove(entry, amount, block);
    }

    /// Adds a block of the ring, of which no other number and no registry knows.
    #[cfg(feature = "driver")]
    pub(crate) fn add_to_ring(&self, entry: EntryId, bytes: usize) {
        let mut state = self.state.lock();
        state.device.add_to_ring(bytes);
        state.entries.at(entry).tally.add_to_ring(bytes);
    }

    #[cfg(feature = "driver")]
    pub(crate) fn remove_from_ring(&self, entry: EntryId, bytes: usize) {
        let mut state = self.state.lock();
        state.device.remove_from_ring(bytes);
        state.entries.at(entry).tally.remove_from_ring(bytes);
    }

    #[cfg(feature = "driver")]
    pub(crate) fn refuse_ring(&self, entry: EntryId) {
        let mut state = self.state.lock();
        state.device.refuse_ring();
        state.entries.at(entry).tally.refuse_ring();
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn leaked(&self, entry: EntryId) {
        let mut state = self.state.lock();
        state.device.leak();
        state.entries.at(entry).tally.leak();
    }

    pub(crate) fn stats(&self, entry: EntryId) -> Stats {
        #[cfg(feature = "alloc")]
        let pools = self.reporting_pools(Some(entry));
        let stats = self.state.lock().entries.at(entry).tally.snapshot();
        #[cfg(feature = "alloc")]
        return with_holdings(stats, &pools);
        #[cfg(not(feature = "alloc"))]
        stats
    }

    /// Sets the peaks of the entry and of the device to the bytes live now.
    pub(crate) fn reset_peak(&self, entry: EntryId) {
        #[cfg(feature = "alloc")]
        drop(self.reporting_pools(None));
        let mut state = self.state.lock();
        state.entries.at(entry).tally.reset_peak();
        state.device.reset_peak();
    }

    /// Statistics of all contexts together.
    pub(crate) fn device_stats(&self) -> Stats {
        #[cfg(feature = "alloc")]
        let pools = self.reporting_pools(None);
        let stats = self.state.lock().device.snapshot();
        #[cfg(feature = "alloc")]
        return with_holdings(stats, &pools);
        #[cfg(not(feature = "alloc"))]
        stats
    }

    /// A pool of a context, which answers from now on.
    #[cfg(feature = "alloc")]
    pub(crate) fn register_pool(&self, entry: EntryId, pool: Weak<dyn Lending>) {
        let mut pools = self.pools.lock();
        pools.retain(|(_, pool)| pool.strong_count() > 0);
        pools.push((entry.0, pool));
        self.has_pools.store(1, Ordering::Relaxed);
    }

    /// The pools of a context, or of all.
    #[cfg(feature = "alloc")]
    pub(crate) fn pools(&self, entry: Option<EntryId>) -> Vec<Arc<dyn Lending>> {
        if self.has_pools.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let pools = self.pools.lock();
        let of_entry = pools.iter().filter(|(of, _)| entry.is_none_or(|entry| entry.0 == *of));
        of_entry.filter_map(|(_, pool)| pool.upgrade()).collect()
    }

    /// The same, after they told the ledger their latest numbers.
    #[cfg(feature = "alloc")]
    fn reporting_pools(&self, entry: Option<EntryId>) -> Vec<Arc<dyn Lending>> {
        let pools = self.pools(entry);
        pools.iter().for_each(|pool| pool.report());
        pools
    }

    /// Adds a pool's differences.
    #[cfg(feature = "alloc")]
    pub(crate) fn report_pool(&self, entry: EntryId, memory_type: MemoryType, flow: &Flow) {
        let mut state = self.state.lock();
        state.device.report(memory_type, flow);
        state.entries.at(entry).tally.report(memory_type, flow);
    }

    /// (current, peak) of a memory type of a context.
    #[cfg(feature = "alloc")]
    pub(crate) fn current_and_peak(&self, entry: EntryId, memory_type: MemoryType) -> CurrentAndPeak {
        self.state.lock().entries.at(entry).tally.current_and_peak(memory_type)
    }

    /// The live blocks of the entry's context, by address.
    #[cfg(feature = "alloc")]
    pub(crate) fn blocks(&self, entry: EntryId) -> Vec<PointerInfo> {
        let mut all = Vec::new();
        loop {
            let mut state = self.state.lock();
            let blocks = &mut state.entries.at(entry).blocks;
            let len = blocks.len();
            if len <= all.capacity() {
                blocks.for_each(|info| all.push(*info));
                drop(state);
                let pools = self.pools(Some(entry));
                if !pools.is_empty() {
                    pools.iter().for_each(|pool| pool.list(&mut all));
                    all.sort_unstable_by_key(|info| info.base);
                }
                return all;
            }
            drop(state);
            // Nothing is allocated with the lock held.
            all.reserve(len);
        }
    }

    /// The live block of the entry's context that contains `address`.
    #[cfg(feature = "alloc")]
    #[inline]
    pub(crate) fn find(&self, entry: EntryId, address: usize) -> Option<PointerInfo> {
        let block = self.state.lock().entries.at(entry).blocks.find(address);
        if block.is_some() || self.has_pools.load(Ordering::Relaxed) == 0 {
            return block;
        }
        self.find_in_pools(Some(entry), address)
    }

    #[cfg(feature = "alloc")]
    #[cold]
    fn find_in_pools(&self, entry: Option<EntryId>, address: usize) -> Option<PointerInfo> {
        self.pools(entry).iter().find_map(|pool| pool.find(address))
    }

    /// The addresses of the segment of a pool of this context that contains the address, live or
    /// not.
    #[cfg(feature = "alloc")]
    pub(crate) fn segment_of_pool(&self, entry: EntryId, address: usize) -> Option<Range<usize>> {
        if self.has_pools.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.pools(Some(entry)).iter().find_map(|pool| pool.segment(address))
    }

    /// The live block of any context that contains `address`.
    #[cfg(feature = "driver")]
    pub fn find_any(&self, address: usize) -> Option<PointerInfo> {
        let state = self.state.lock();
        let block = state.entries.entries.iter().find_map(|entry| entry.blocks.find(address));
        drop(state);
        block.or_else(|| self.find_in_pools(None, address))
    }
}

#[cfg(all(feature = "std", unix, not(any(loom, miri, usm_valgrind))))]
impl crate::process::fork::LockAcrossFork for Ledger {
    fn hold(&self) {
        self.state.hold();
        self.pools.hold();
    }

    unsafe fn release(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.pools.release() };
        // SAFETY: as the caller promises.
        unsafe { self.state.release() };
    }
}

/// Statistics with what the pools hold.
#[cfg(feature = "alloc")]
fn with_holdings(mut stats: Stats, pools: &[Arc<dyn Lending>]) -> Stats {
    for pool in pools {
        let pool_bytes = pool.holding();
        stats.reserved += pool_bytes.reserved as usize;
        stats.cached += pool_bytes.cached as usize;
        stats.pending += pool_bytes.pending as usize;
    }
    stats
}

impl State {
    #[inline]
    fn add_block(&mut self, entry: EntryId, amount: Amount) -> (&mut Entry, CurrentAndPeak) {
        self.device.add(amount.memory_type, amount.bytes);
        let entry = self.entries.at(entry);
        let numbers = entry.tally.add(amount.memory_type, amount.bytes);
        (entry, numbers)
    }

    #[inline]
    #[cfg_attr(not(feature = "alloc"), allow(unused_variables))]
    fn remove(
        &mut self,
        entry: EntryId,
        amount: Amount,
        block: Option<(usize, u64)>,
    ) -> (&mut Entry, CurrentAndPeak) {
        self.device.remove(amount.memory_type, amount.bytes);
        let entry = self.entries.at(entry);
        #[cfg(feature = "alloc")]
        if let Some((base, serial)) = block {
            entry.blocks.remove_own(base, serial);
        }
        let numbers = entry.tally.remove(amount.memory_type, amount.bytes);
        (entry, numbers)
    }
}

impl Entry {
    const fn new() -> Self {
        Self {
            tally: Tally::new(),
            #[cfg(feature = "alloc")]
            blocks: Blocks::new(),
        }
    }
}

/// The entries of all contexts.
#[cfg(feature = "alloc")]
#[derive(Debug)]
struct Entries {
    entries: Vec<Entry>,
    vacant: Vec<usize>,
}

#[cfg(feature = "alloc")]
impl Entries {
    fn new() -> Self {
        Self { entries: Vec::new(), vacant: Vec::new() }
    }

    fn open(&mut self) -> EntryId {
        EntryId(self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(Entry::new());
            self.entries.len() - 1
        }))
    }

    fn close(&mut self, entry: EntryId) -> Entry {
        let old_entry = core::mem::replace(self.at(entry), Entry::new());
        self.vacant.push(entry.0);
        old_entry
    }

    #[inline]
    fn at(&mut self, entry: EntryId) -> &mut Entry {
        &mut self.entries[entry.0]
    }
}

/// Without a heap each context has its own ledger.
#[cfg(not(feature = "alloc"))]
#[derive(Debug)]
struct Entries(Entry);

#[cfg(not(feature = "alloc"))]
impl Entries {
    fn new() -> Self {
        Self(Entry::new())
    }

    fn open(&mut self) -> EntryId {
        EntryId(0)
    }

    fn at(&mut self, _: EntryId) -> &mut Entry {
        &mut self.0
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;

    #[test]
    fn a_block_above_the_limit_is_not_recorded() {
        let ledger = Ledger::new();
        let entry = ledger.open();
        let amount = |bytes| Amount { memory_type: MemoryType::UsmDevice, bytes };
        let block = |base| PointerInfo { base, size: 60, ..PointerInfo::UNKNOWN };
        let enter = |base| ledger.add_block(entry, amount(60), Some(100), block(base));
        let (serial, numbers) = enter(1_000).expect("within");
        assert_eq!(numbers, (60, 60));
        assert!(enter(2_000).is_none());
        assert_eq!((ledger.in_use(), ledger.find(entry, 2_000)), (60, None));
        assert_eq!(ledger.stats(entry).sum.count, 1);
        ledger.remove_freed(entry, amount(60), Some((1_000, serial)));
        assert!(enter(2_000).is_some());
    }
}
