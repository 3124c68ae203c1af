//! The state that every context carries, whatever its backend.

#[cfg(feature = "alloc")]
use alloc::sync::Arc;
use core::time::Duration;

use crate::DeviceInfo;
use crate::error::Result;
use crate::gate::{Gate, SubmitGuard};
use crate::history::{History, Observer};
use crate::ledger::{EntryId, Ledger};
#[cfg(feature = "alloc")]
use crate::outcome::Outcomes;
#[cfg(feature = "std")]
use crate::process::{self, Inside, exit};
use crate::stats::Stats;
use crate::sync::{AtomicU32, Ordering, next_id};

mod accounting;

#[cfg(feature = "driver")]
pub(crate) use accounting::RING_SERIAL;

/// Default time limit of waits in a context.
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
    uses_gate: bool,
    /// Whether an operation has finished when its call returns, also behind an erased backend.
    #[cfg(feature = "alloc")]
    synchronous: bool,
    history: History,
    wait_limit_ms: AtomicU32,
    /// Outcomes of checked launches that were not reported yet.
    #[cfg(feature = "alloc")]
    outcomes: Outcomes,
    /// Set for a runtime that works beside the program: the end of the process waits for it.
    #[cfg(feature = "std")]
    member: Option<Arc<exit::Member>>,
}

/// While this lives, calls of the context's runtime are allowed, if there is one.
#[must_use = "the runtime may be taken apart as soon as it is dropped"]
pub(crate) struct EntryGuard(
    #[cfg(feature = "std")]
    #[expect(dead_code, reason = "kept for its drop")]
    Option<Inside>,
);

/// While this lives, work may be submitted.
#[must_use = "views may begin as soon as it is dropped"]
#[expect(dead_code, reason = "kept for their drops")]
pub(crate) struct AdmissionGuard<'s>(EntryGuard, Option<SubmitGuard<'s>>);

impl ContextState {
    /// State of a new context over the device that `info` describes, with a ledger of its own.
    #[must_use]
    pub fn new(info: DeviceInfo) -> Self {
        #[cfg(feature = "alloc")]
        return Self::with_shared_ledger(info, Ledger::shared());
        #[cfg(not(feature = "alloc"))]
        Self::with_ledger(info, Ledger::new())
    }

    /// The same with the ledger that all contexts of the device share.
    #[cfg(feature = "alloc")]
    #[doc(hidden)]
    #[must_use]
    pub fn with_shared_ledger(info: DeviceInfo, ledger: Arc<Ledger>) -> Self {
        Self::with_ledger(info, ledger)
    }

    fn with_ledger(
        info: DeviceInfo,
        #[cfg(feature = "alloc")] ledger: Arc<Ledger>,
        #[cfg(not(feature = "alloc"))] ledger: Ledger,
    ) -> Self {
        Self {
            id: next_id(),
            library: 0,
            uses_gate: info.capabilities.needs_gate(),
            #[cfg(feature = "alloc")]
            synchronous: false,
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

    /// The state of a context whose operations have finished when their calls return.
    #[cfg(feature = "alloc")]
    pub(crate) fn of_synchronous(mut self) -> Self {
        self.synchronous = true;
        self
    }

    /// Whether no operation is ever in flight.
    #[cfg(feature = "alloc")]
    #[inline]
    pub(crate) fn is_synchronous(&self) -> bool {
        self.synchronous
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// Call before starting anything new on the context.
    #[inline]
    pub(crate) fn work(&self) -> Result<EntryGuard> {
        #[cfg(feature = "std")]
        return Ok(EntryGuard(match &self.member {
            Some(_) => Some(process::work().map_err(|error| error.in_backend(self.info.backend))?),
            None => None,
        }));
        #[cfg(not(feature = "std"))]
        Ok(EntryGuard())
    }

    /// Whether something that calls no driver may begin.
    #[cfg(feature = "alloc")]
    #[inline]
    pub(crate) fn may_begin(&self) -> bool {
        #[cfg(feature = "std")]
        return self.member.is_none() || process::runs();
        #[cfg(not(feature = "std"))]
        true
    }

    /// Call before a query, a wait or a release.
    #[inline]
    pub(crate) fn ask(&self) -> Result<EntryGuard> {
        #[cfg(feature = "std")]
        return Ok(EntryGuard(match &self.member {
            Some(_) => Some(process::ask().map_err(|error| error.in_backend(self.info.backend))?),
            None => None,
        }));
        #[cfg(not(feature = "std"))]
        Ok(EntryGuard())
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
        self.uses_gate.then(|| self.ledger.gate())
    }

    /// Admits work to the device while the result lives, or returns how many views forbid it.
    #[inline]
    pub(crate) fn submit(&self) -> Result<AdmissionGuard<'_>> {
        Ok(AdmissionGuard(self.work()?, self.gate().map(Gate::submit).transpose()?))
    }

    /// Registers `idle`, which waits for the work of this context within a limit. The end of the
    /// process calls it. If host and device must not access memory concurrently, host views of
    /// other contexts on the device call it too. It must not keep the context alive: it is dropped
    /// after it.
    #[cfg(any(feature = "driver", feature = "mock"))]
    #[doc(hidden)]
    #[must_use]
    pub fn with_idle_wait(mut self, idle: impl Fn(Duration) -> Result<()> + Send + Sync + 'static) -> Self {
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
