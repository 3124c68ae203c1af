//! The bookkeeping that every context carries, whatever its backend.

#[cfg(feature = "alloc")]
use alloc::sync::Arc;
use core::time::Duration;

use crate::account::{Account, CurrentAndPeak, Entry, PageNumber};
use crate::backend::Block;
#[cfg(feature = "alloc")]
use crate::backend::PointerInfo;
use crate::error::Result;
use crate::gate::{Gate, SubmitGuard};
use crate::history::{History, Observer, Operation, Record};
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
pub struct Shared {
    id: u64,
    /// The library behind the native context; 0 where it was not named.
    library: usize,
    info: DeviceInfo,
    #[cfg(feature = "alloc")]
    account: Arc<Account>,
    #[cfg(not(feature = "alloc"))]
    account: Account,
    page: PageNumber,
    /// Whether the device's gate is used.
    gated: bool,
    history: History,
    wait_limit_ms: AtomicU32,
    /// Of a runtime that works beside the program: what the end of the process waits for.
    #[cfg(feature = "std")]
    member: Option<Arc<exit::Member>>,
}

/// While this lives, the runtime of a context may be called, where there is one.
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

impl Shared {
    /// Bookkeeping of a new context over the device that `info` describes, with books that no other
    /// context sees.
    #[must_use]
    pub fn new(info: DeviceInfo) -> Self {
        #[cfg(feature = "alloc")]
        return Self::on(info, Account::shared());
        #[cfg(not(feature = "alloc"))]
        Self::keeping(info, Account::new())
    }

    /// The same with the books that all contexts of the device share.
    #[cfg(feature = "alloc")]
    #[doc(hidden)]
    #[must_use]
    pub fn on(info: DeviceInfo, account: Arc<Account>) -> Self {
        Self::keeping(info, account)
    }

    fn keeping(
        info: DeviceInfo,
        #[cfg(feature = "alloc")] account: Arc<Account>,
        #[cfg(not(feature = "alloc"))] account: Account,
    ) -> Self {
        Self {
            id: next_id(),
            library: 0,
            gated: info.capabilities.needs_gate(),
            info,
            page: account.open(),
            account,
            history: History::from_environment(),
            wait_limit_ms: AtomicU32::new(DEFAULT_WAIT_LIMIT.as_millis() as u32),
            #[cfg(feature = "std")]
            member: None,
        }
    }

    /// To be called before something new is begun on the context.
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

    /// To be called before a question, a wait, or what gives something back.
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
    /// contexts ([`Peer`](crate::backend::Peer)) are given contexts of one library only; a context
    /// whose library is not named is given with itself alone.
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
        self.gated.then(|| self.account.gate())
    }

    /// Lets work onto the device, as long as the answer lives, or says how many views forbid it.
    #[inline]
    pub(crate) fn submit(&self) -> Result<Admitted<'_>> {
        Ok(Admitted(self.work()?, self.gate().map(Gate::submit).transpose()?))
    }

    /// The end of the process waits by `idle` for the work of this context; so do host views of
    /// other contexts on the device, where host and device must not touch memory at the same time.
    /// It gets a limit, and must not keep the context alive: it is dropped after it.
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

    /// How long waits for events, inside views and in drops last at most.
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
        self.account.stats(self.page)
    }

    pub(crate) fn reset_peak(&self) {
        self.account.reset_peak(self.page);
    }

    pub(crate) fn device_stats(&self) -> Stats {
        self.account.device_stats()
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
        self.account.find(self.page, address)
    }

    /// Whether an allocation is so small beside the memory that is left that its bytes need not be
    /// reserved before the driver is asked: 64 threads would have to be at it at once to ask for
    /// more than there is, and the limits are applied to what they got.
    #[inline]
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let (bytes, in_use) = (bytes as u64, self.account.in_use() as u64);
        let left = self.info.global_mem_size.saturating_sub(in_use);
        bytes <= self.info.max_alloc_size && bytes <= left / 64
    }

    /// Applies the limits and reserves the bytes, so that two threads cannot both be given the last
    /// of the memory; [`unreserve`](Self::unreserve) when the driver then refuses.
    pub(crate) fn reserve(
        &self,
        memory_type: MemoryType,
        bytes: usize,
        fallback: Fallback,
    ) -> Result<MemoryType> {
        self.account
            .reserve(bytes, |in_use| limits::place(&self.info, in_use as u64, memory_type, bytes, fallback))
    }

    /// Reserves bytes of memory that is there already, whatever the limits say.
    #[cfg(feature = "alloc")]
    pub(crate) fn reserve_over(&self, memory_type: MemoryType, bytes: usize) {
        let _ = self.account.reserve(bytes, |_| Ok(memory_type));
    }

    pub(crate) fn unreserve(&self, memory_type: MemoryType, bytes: usize) {
        if memory_type.on_device() {
            self.account.unreserve(bytes);
        }
    }

    /// Accounts for a block that the driver gave, whose bytes were not reserved. `None`, and
    /// nothing is accounted for, when others took the rest of the memory meanwhile. The number is
    /// what [`free`](Self::free) wants with the block; with `owned`, an owner of the context is
    /// counted too.
    #[inline]
    pub(crate) fn allocated_within(&self, block: &Block, owned: bool) -> Option<u64> {
        self.enter(block, Some(self.info.global_mem_size), owned)
    }

    /// Accounts for a block that the driver gave, whose bytes are reserved.
    pub(crate) fn allocated(&self, block: &Block, owned: bool) -> u64 {
        // Refused are only bytes that were not reserved.
        self.enter(block, None, owned).unwrap_or(0)
    }

    /// Accounts for a block that somebody else allocated: it exists, so no limit refuses it.
    pub(crate) fn taken(&self, block: &Block) -> u64 {
        // Above the largest sum there is only the end of the address space.
        self.enter(block, Some(u64::MAX), false).unwrap_or(0)
    }

    /// As [`taken`](Self::taken), for a buffer.
    pub(crate) fn taken_buffer(&self, bytes: usize) {
        let _ = self.account.reserve(bytes, |_| Ok(MemoryType::Buffer));
        self.created(bytes);
    }

    /// Accounts for a buffer whose bytes are reserved.
    pub(crate) fn created(&self, bytes: usize) {
        let entry = Entry { memory_type: MemoryType::Buffer, bytes };
        let numbers = self.account.enter_buffer(self.page, entry);
        let lost = AtEnd(|| self.lost(entry, None, false));
        self.tell(Operation::Allocate, entry, 0, numbers);
        core::mem::forget(lost);
    }

    /// `limit` is for bytes that were not reserved.
    #[inline(always)]
    fn enter(&self, block: &Block, limit: Option<u64>, owned: bool) -> Option<u64> {
        if self.history.is_active() {
            // A copy: whose address is taken is not kept in registers, not even where nobody wants
            // records.
            return self.enter_and_tell(*block, limit, owned);
        }
        self.enter_quietly(block, limit, owned).map(|(serial, _)| serial)
    }

    #[cold]
    fn enter_and_tell(&self, block: Block, limit: Option<u64>, owned: bool) -> Option<u64> {
        let (serial, numbers) = self.enter_quietly(&block, limit, owned)?;
        let entry = Entry { memory_type: MemoryType::of(block.kind), bytes: block.size };
        let lost = AtEnd(|| self.lost(entry, Some((block.address(), serial)), owned));
        self.tell(Operation::Allocate, entry, block.address(), numbers);
        core::mem::forget(lost);
        Some(serial)
    }

    /// An observer has panicked over what was just entered, and nobody has it: it leaves the books
    /// as a leak, whose bytes stay in use.
    #[cfg_attr(not(feature = "alloc"), allow(unused_variables, reason = "nothing is counted"))]
    fn lost(&self, entry: Entry, known: Option<(usize, u64)>, owned: bool) {
        let _ = self.account.strike(self.page, entry, known);
        #[cfg(feature = "alloc")]
        self.leaked();
        #[cfg(feature = "alloc")]
        if owned {
            let _ = self.release();
        }
    }

    #[inline(always)]
    fn enter_quietly(&self, block: &Block, limit: Option<u64>, owned: bool) -> Option<(u64, CurrentAndPeak)> {
        let entry = Entry { memory_type: MemoryType::of(block.kind), bytes: block.size };
        let limit = limit.filter(|_| entry.memory_type.on_device());
        #[cfg(feature = "alloc")]
        return self.account.enter(self.page, entry, limit, self.describe(block), owned);
        #[cfg(not(feature = "alloc"))]
        self.account.enter(self.page, entry, limit, owned)
    }

    /// Gives memory back by `free` and takes it out of the books, in this order: what the next
    /// allocation is granted is really there. The runtime may give the address out again before the
    /// block is out of the registry; its number then tells the two apart.
    ///
    /// With `owned`, an owner of the context may go in the same step; the answer says whether it
    /// did. The last owner never does.
    #[inline]
    pub(crate) fn free(
        &self,
        memory_type: MemoryType,
        block: Option<(&Block, u64)>,
        bytes: usize,
        owned: bool,
        free: impl FnOnce(),
    ) -> bool {
        let entry = Entry { memory_type, bytes };
        let known = block.map(|(block, serial)| (block.address(), serial));
        if !self.history.is_active() {
            free();
            return self.account.settle(self.page, entry, known, owned);
        }
        self.free_and_tell(entry, known, free);
        false
    }

    /// A free is told before the address can be told of again.
    #[cold]
    fn free_and_tell(&self, entry: Entry, known: Option<(usize, u64)>, free: impl FnOnce()) {
        let numbers = self.account.strike(self.page, entry, known);
        let mut free = Some(free);
        // Also when the observer panics.
        let _free = AtEnd(|| {
            if let Some(free) = free.take() {
                free();
                self.unreserve(entry.memory_type, entry.bytes);
            }
        });
        self.tell(Operation::Free, entry, known.map_or(0, |(address, _)| address), numbers);
    }

    /// Takes a block out of the books whatever becomes of it. Where `free` did not give it back,
    /// the answer is none, and its bytes are in use until [`unreserve`](Self::unreserve); where it
    /// did, `owned` and the answer are as for [`free`](Self::free).
    #[cfg(feature = "alloc")]
    #[inline]
    pub(crate) fn retire(
        &self,
        memory_type: MemoryType,
        block: &Block,
        serial: u64,
        owned: bool,
        free: impl FnOnce() -> bool,
    ) -> Option<bool> {
        let entry = Entry { memory_type, bytes: block.size };
        let known = Some((block.address(), serial));
        if self.history.is_active() {
            // A free is told before the address can be told of again.
            let numbers = self.account.strike(self.page, entry, known);
            let (mut free, mut freed) = (Some(free), false);
            // Also when the observer panics.
            let end = AtEnd(|| {
                freed = free.take().is_some_and(|free| free());
                if freed {
                    self.unreserve(memory_type, block.size);
                }
            });
            self.tell(Operation::Free, entry, block.address(), numbers);
            drop(end);
            return freed.then_some(false);
        }
        if free() {
            return Some(self.account.settle(self.page, entry, known, owned));
        }
        let _ = self.account.strike(self.page, entry, known);
        None
    }

    /// Counts another owner of the context.
    #[cfg(feature = "alloc")]
    pub(crate) fn retain(&self) {
        self.account.retain(self.page);
    }

    /// Counts an owner less; whether there is one left.
    #[cfg(feature = "alloc")]
    pub(crate) fn release(&self) -> bool {
        self.account.release(self.page)
    }

    /// Counts a block that could not be freed safely: it stays in use.
    #[cfg(feature = "alloc")]
    #[doc(hidden)]
    pub fn leaked(&self) {
        self.account.leaked(self.page);
    }

    #[inline]
    fn tell(&self, operation: Operation, entry: Entry, address: usize, (current, peak): CurrentAndPeak) {
        if self.history.is_active() {
            let Entry { memory_type, bytes } = entry;
            self.history.record(Record { operation, memory_type, address, bytes, current, peak });
        }
    }

    /// What the books say of a block of this context.
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
impl Drop for Shared {
    fn drop(&mut self) {
        if let (Some(gate), Ok(_entered)) = (self.gate(), self.ask()) {
            gate.leave(self.id);
        }
        #[cfg(feature = "std")]
        if let Some(member) = self.member.take() {
            member.leave();
        }
        self.account.close(self.page);
    }
}

/// What is done when this is dropped, thus also where an observer panics.
struct AtEnd<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
