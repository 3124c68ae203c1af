//! The state that every context carries, whatever its backend.

#[cfg(feature = "alloc")]
use alloc::sync::Arc;
use core::time::Duration;

use crate::backend::Block;
#[cfg(feature = "alloc")]
use crate::backend::PointerInfo;
use crate::error::Result;
use crate::gate::{Gate, SubmitGuard};
use crate::history::{History, Observer, Operation, Record, now};
#[cfg(feature = "alloc")]
use crate::index_record::Outcomes;
use crate::ledger::{Amount, CurrentAndPeak, EntryId, Ledger};
use crate::limits::{self, Fallback};
#[cfg(feature = "std")]
use crate::process::{self, Inside, exit};
use crate::stats::Stats;
use crate::sync::{AtomicU32, Ordering, next_id};
use crate::{DeviceInfo, MemoryType};

/// Waits give up after this long unless the context says otherwise.
pub const DEFAULT_WAIT_LIMIT: Duration = Duration::from_secs(30);

/// Statistics, history, limits, registry and gate of one context; the gate is the device's.
/// Backends embed one in their context.
#[derive(Debug)]
pub struct ContextState {
    id: u64,
    /// The library behind the native context; 0 if it was not named.
    library: usize,
    info: DeviceInfo,
    #[cfg(feature = "alloc")]
    ledger: Arc<Ledger>,
    #[cfg(not(feature = "alloc"))]
    ledger: Ledger,
    entry: EntryId,
    /// Whether the device's gate is used.
    gated: bool,
    history: History,
    wait_limit_ms: AtomicU32,
    /// What checked launches found and nobody heard.
    #[cfg(feature = "alloc")]
    outcomes: Outcomes,
    /// Set for a runtime that works beside the program: the end of the process waits for it.
    #[cfg(feature = "std")]
    member: Option<Arc<exit::Member>>,
}

/// While this lives, calls of the context's runtime are allowed, if there is one.
#[must_use = "the runtime may be taken apart as soon as it is dropped"]
pub(crate) struct Entered(
    #[cfg(feature = "std")]
    #[expect(dead_code, reason = "kept for its drop")]
    Option<Inside>,
);

/// While this lives, work may be submitted.
#[must_use = "views may begin as soon as it is dropped"]
#[expect(dead_code, reason = "kept for their drops")]
pub(crate) struct Admitted<'s>(Entered, Option<SubmitGuard<'s>>);

impl ContextState {
    /// State of a new context over the device that `info` describes, with a ledger of its own.
    #[must_use]
    pub fn new(info: DeviceInfo) -> Self {
        #[cfg(feature = "alloc")]
        return Self::on(info, Ledger::shared());
        #[cfg(not(feature = "alloc"))]
        Self::keeping(info, Ledger::new())
    }

    /// The same with the ledger that all contexts of the device share.
    #[cfg(feature = "alloc")]
    #[doc(hidden)]
    #[must_use]
    pub fn on(info: DeviceInfo, ledger: Arc<Ledger>) -> Self {
        Self::keeping(info, ledger)
    }

    fn keeping(
        info: DeviceInfo,
        #[cfg(feature = "alloc")] ledger: Arc<Ledger>,
        #[cfg(not(feature = "alloc"))] ledger: Ledger,
    ) -> Self {
        Self {
            id: next_id(),
            library: 0,
            gated: info.capabilities.needs_gate(),
            info,
            entry: ledger.open(),
            ledger,
            history: History::from_environment(),
            wait_limit_ms: AtomicU32::new(DEFAULT_WAIT_LIMIT.as_millis() as u32),
            #[cfg(feature = "alloc")]
            outcomes: Outcomes::new(),
            #[cfg(feature = "std")]
            member: None,
        }
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// Call before starting anything new on the context.
    #[inline]
    pub(crate) fn work(&self) -> Result<Entered> {
        #[cfg(feature = "std")]
        return Ok(Entered(match &self.member {
            Some(_) => Some(process::work().map_err(|error| error.in_backend(self.info.backend))?),
            None => None,
        }));
        #[cfg(not(feature = "std"))]
        Ok(Entered())
    }

    /// Call before a query, a wait or a release.
    #[inline]
    pub(crate) fn ask(&self) -> Result<Entered> {
        #[cfg(feature = "std")]
        return Ok(Entered(match &self.member {
            Some(_) => Some(process::ask().map_err(|error| error.in_backend(self.info.backend))?),
            None => None,
        }));
        #[cfg(not(feature = "std"))]
        Ok(Entered())
    }

    /// Names the library behind the native context by a number that no other library has while the
    /// context lives, such as the address of its table of functions. The abilities that take two
    /// contexts ([`Peer`](crate::backend::Peer)) get contexts of one library only. A context
    /// without a named library is paired only with itself.
    #[must_use]
    pub fn of_library(mut self, library: usize) -> Self {
        self.library = library;
        self
    }

    /// Whether one library understands the native handles of both contexts.
    pub(crate) fn same_library(&self, other: &Self) -> bool {
        self.id == other.id || (self.library != 0 && self.library == other.library)
    }

    /// Id of the context, unique in the process.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// The device.
    #[must_use]
    pub const fn info(&self) -> &DeviceInfo {
        &self.info
    }

    #[inline]
    pub(crate) fn gate(&self) -> Option<&Gate> {
        self.gated.then(|| self.ledger.gate())
    }

    /// Admits work to the device while the result lives, or returns how many views forbid it.
    #[inline]
    pub(crate) fn submit(&self) -> Result<Admitted<'_>> {
        Ok(Admitted(self.work()?, self.gate().map(Gate::submit).transpose()?))
    }

    /// Registers `idle`, which waits for the work of this context within a limit. The end of the
    /// process calls it; so do host views of other contexts on the device, where host and device
    /// must not touch memory at the same time. It must not keep the context alive: it is dropped
    /// after it.
    #[cfg(any(feature = "driver", feature = "mock"))]
    #[doc(hidden)]
    #[must_use]
    pub fn idle_by(mut self, idle: impl Fn(Duration) -> Result<()> + Send + Sync + 'static) -> Self {
        let idle = Arc::new(idle);
        if let Some(gate) = self.gate() {
            gate.join(self.id, Arc::clone(&idle) as _);
        }
        if !cfg!(loom) {
            self.member = Some(exit::watch(&self.info, self.wait_limit_ms(), idle));
        }
        self
    }

    /// The longest time of a wait for events, inside views and in drops.
    #[must_use]
    pub fn wait_limit(&self) -> Duration {
        Duration::from_millis(u64::from(self.wait_limit_ms()))
    }

    #[inline]
    pub(crate) fn wait_limit_ms(&self) -> u32 {
        self.wait_limit_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn set_wait_limit(&self, limit: Duration) {
        let limit_ms = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
        self.wait_limit_ms.store(limit_ms, Ordering::Relaxed);
        #[cfg(feature = "std")]
        if let Some(member) = &self.member {
            member.set_limit_ms(limit_ms);
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        self.ledger.stats(self.entry)
    }

    pub(crate) fn reset_peak(&self) {
        self.ledger.reset_peak(self.entry);
    }

    pub(crate) fn device_stats(&self) -> Stats {
        self.ledger.device_stats()
    }

    pub(crate) fn set_observer(&self, observer: Option<Observer>) {
        self.history.set_observer(observer);
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// The live block of this context that contains `address`.
    #[cfg(feature = "alloc")]
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn find(&self, address: usize) -> Option<PointerInfo> {
        self.ledger.find(self.entry, address)
    }

    /// Whether an allocation is so small, compared with the free memory, that its bytes need no
    /// reservation before the driver is asked. Only 64 threads at once could ask for more than
    /// there is, and the limits apply to their results.
    #[inline]
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let (bytes, in_use) = (bytes as u64, self.ledger.in_use() as u64);
        let left = self.info.global_mem_size.saturating_sub(in_use);
        bytes <= self.info.max_alloc_size && bytes <= left / 64
    }

    /// Applies the limits and reserves the bytes, so that two threads cannot both get the last of
    /// the memory. Call [`unreserve`](Self::unreserve) if the driver then refuses.
    pub(crate) fn reserve(
        &self,
        memory_type: MemoryType,
        bytes: usize,
        fallback: Fallback,
    ) -> Result<MemoryType> {
        self.ledger
            .reserve(bytes, |in_use| limits::place(&self.info, in_use as u64, memory_type, bytes, fallback))
    }

    /// Reserves bytes of memory that already exists, regardless of the limits.
    #[cfg(feature = "alloc")]
    pub(crate) fn reserve_unchecked(&self, memory_type: MemoryType, bytes: usize) {
        let _ = self.ledger.reserve(bytes, |_| Ok(memory_type));
    }

    pub(crate) fn unreserve(&self, memory_type: MemoryType, bytes: usize) {
        if memory_type.on_device() {
            self.ledger.unreserve(bytes);
        }
    }

    /// Counts a block from the driver whose bytes were not reserved. Returns its serial number,
    /// which [`free`](Self::free) takes. Returns `None` and counts nothing if other threads took
    /// the rest of the memory meanwhile.
    #[inline]
    pub(crate) fn allocated_within(&self, block: &Block) -> Option<u64> {
        self.enter(block, Some(self.info.global_mem_size))
    }

    /// Counts a block from the driver whose bytes are reserved.
    pub(crate) fn allocated(&self, block: &Block) -> u64 {
        // Only unreserved bytes can be refused.
        self.enter(block, None).unwrap_or(0)
    }

    /// Records a refused request, if there is a history or an observer.
    #[cold]
    pub(crate) fn refused(&self, memory_type: MemoryType, bytes: usize) {
        if self.history.is_active() {
            let row = *self.stats().of(memory_type);
            let amount = Amount { memory_type, bytes };
            self.record(Operation::Refuse, amount, 0, (row.current, row.peak));
        }
    }

    /// The live blocks by address.
    #[cfg(feature = "alloc")]
    pub(crate) fn blocks(&self) -> alloc::vec::Vec<PointerInfo> {
        self.ledger.blocks(self.entry)
    }

    /// Counts a foreign block: it exists, so no limit refuses it.
    pub(crate) fn taken(&self, block: &Block) -> u64 {
        // No sum exceeds the address space.
        self.enter(block, Some(u64::MAX)).unwrap_or(0)
    }

    /// As [`taken`](Self::taken), for a buffer.
    pub(crate) fn taken_buffer(&self, bytes: usize) {
        let _ = self.ledger.reserve(bytes, |_| Ok(MemoryType::Buffer));
        self.created(bytes);
    }

    /// Counts a buffer whose bytes are reserved.
    pub(crate) fn created(&self, bytes: usize) {
        let amount = Amount { memory_type: MemoryType::Buffer, bytes };
        let numbers = self.ledger.add_buffer(self.entry, amount);
        let unowned = AtEnd(|| self.leak_unowned(amount, None));
        self.record(Operation::Allocate, amount, 0, numbers);
        core::mem::forget(unowned);
    }

    /// `limit` applies to unreserved bytes.
    #[inline(always)]
    fn enter(&self, block: &Block, limit: Option<u64>) -> Option<u64> {
        if self.history.is_active() {
            // A copy: a value whose address is taken is not kept in registers, even without an
            // observer.
            return self.enter_and_record(*block, limit);
        }
        self.enter_quietly(block, limit).map(|(serial, _)| serial)
    }

    #[cold]
    fn enter_and_record(&self, block: Block, limit: Option<u64>) -> Option<u64> {
        let (serial, numbers) = self.enter_quietly(&block, limit)?;
        let amount = Amount { memory_type: MemoryType::of(block.kind), bytes: block.size };
        let unowned = AtEnd(|| self.leak_unowned(amount, Some((block.address(), serial))));
        self.record(Operation::Allocate, amount, block.address(), numbers);
        core::mem::forget(unowned);
        Some(serial)
    }

    /// An observer panicked after the entry, so nothing owns the memory: it counts as a leak, and
    /// its bytes stay in use.
    #[cfg_attr(not(feature = "alloc"), allow(unused_variables, reason = "nothing is counted"))]
    fn leak_unowned(&self, amount: Amount, known: Option<(usize, u64)>) {
        let _ = self.ledger.remove(self.entry, amount, known);
        #[cfg(feature = "alloc")]
        self.leaked();
    }

    #[inline(always)]
    fn enter_quietly(&self, block: &Block, limit: Option<u64>) -> Option<(u64, CurrentAndPeak)> {
        let amount = Amount { memory_type: MemoryType::of(block.kind), bytes: block.size };
        let limit = limit.filter(|_| amount.memory_type.on_device());
        #[cfg(feature = "alloc")]
        return self.ledger.add_block(self.entry, amount, limit, self.describe(block));
        #[cfg(not(feature = "alloc"))]
        self.ledger.add_block(self.entry, amount, limit)
    }

    /// Frees memory by `free`, then removes it from the ledger: the bytes that the next allocation
    /// is granted are really free. The runtime may give the address out again before the registry
    /// forgets the block; the serial number tells the two apart.
    #[inline]
    pub(crate) fn free(
        &self,
        memory_type: MemoryType,
        block: Option<(&Block, u64)>,
        bytes: usize,
        free: impl FnOnce(),
    ) {
        let amount = Amount { memory_type, bytes };
        let known = block.map(|(block, serial)| (block.address(), serial));
        if !self.history.is_active() {
            free();
            return self.ledger.remove_freed(self.entry, amount, known);
        }
        self.free_and_record(amount, known, free);
    }

    /// Records the free before the address can be recorded again.
    #[cold]
    fn free_and_record(&self, amount: Amount, known: Option<(usize, u64)>, free: impl FnOnce()) {
        let numbers = self.ledger.remove(self.entry, amount, known);
        let mut free = Some(free);
        // Runs also if the observer panics.
        let _free = AtEnd(|| {
            if let Some(free) = free.take() {
                free();
                self.unreserve(amount.memory_type, amount.bytes);
            }
        });
        self.record(Operation::Free, amount, known.map_or(0, |(address, _)| address), numbers);
    }

    /// Removes a block from the ledger in any case. Returns whether `free` freed it; otherwise its
    /// bytes stay in use until [`unreserve`](Self::unreserve).
    #[cfg(feature = "alloc")]
    #[inline]
    pub(crate) fn remove(
        &self,
        memory_type: MemoryType,
        block: &Block,
        serial: u64,
        free: impl FnOnce() -> bool,
    ) -> bool {
        let amount = Amount { memory_type, bytes: block.size };
        let known = Some((block.address(), serial));
        if self.history.is_active() {
            // Records the free before the address can be recorded again.
            let numbers = self.ledger.remove(self.entry, amount, known);
            let (mut free, mut freed) = (Some(free), false);
            // Runs also if the observer panics.
            let end = AtEnd(|| {
                freed = free.take().is_some_and(|free| free());
                if freed {
                    self.unreserve(memory_type, block.size);
                }
            });
            self.record(Operation::Free, amount, block.address(), numbers);
            drop(end);
            return freed;
        }
        let freed = free();
        match freed {
            true => self.ledger.remove_freed(self.entry, amount, known),
            false => _ = self.ledger.remove(self.entry, amount, known),
        }
        freed
    }

    /// Counts a block that could not be freed safely; its bytes stay in use.
    #[cfg(feature = "alloc")]
    #[doc(hidden)]
    pub fn leaked(&self) {
        self.ledger.leaked(self.entry);
    }

    #[inline]
    fn record(&self, operation: Operation, amount: Amount, address: usize, (current, peak): CurrentAndPeak) {
        if self.history.is_active() {
            let Amount { memory_type, bytes } = amount;
            self.history.record(Record {
                operation,
                memory_type,
                address,
                bytes,
                current,
                peak,
                time: now(),
            });
        }
    }

    /// The description of a block of this context.
    #[cfg(feature = "alloc")]
    #[inline]
    pub(crate) fn describe(&self, block: &Block) -> PointerInfo {
        PointerInfo {
            kind: block.kind,
            base: block.address(),
            size: block.size,
            device: (block.kind != crate::AllocKind::Host).then_some(self.info.ordinal),
            context: self.id,
        }
    }
}

#[cfg(feature = "alloc")]
impl Drop for ContextState {
    fn drop(&mut self) {
        if let (Some(gate), Ok(_entered)) = (self.gate(), self.ask()) {
            gate.leave(self.id);
        }
        #[cfg(feature = "std")]
        if let Some(member) = self.member.take() {
            member.leave();
        }
        self.ledger.close(self.entry);
    }
}

/// Runs a closure on drop, also if an observer panics.
struct AtEnd<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
