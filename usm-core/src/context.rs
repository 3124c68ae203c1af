//! Contexts: the scope of pointers, statistics and limits.

use core::fmt;
use core::time::Duration;

use crate::DeviceInfo;
#[cfg(feature = "std")]
use crate::DeviceType;
use crate::backend::{Backend, ContextOps, Peer, PointerInfo};
use crate::context_state::ContextState;
#[cfg(feature = "alloc")]
use crate::deferred::Deferred;
use crate::error::{Error, ErrorKind, Result};
use crate::history::Observer;
#[cfg(feature = "alloc")]
use crate::pending::Pending;
use crate::stats::Stats;

/// A context over one device. Cloning it gives another handle to the same context.
pub struct Context<B: Backend> {
    pub(crate) raw: B::Context,
}

impl<B: Backend> Clone for Context<B> {
    fn clone(&self) -> Self {
        Self { raw: self.raw.clone() }
    }
}

impl<B: Backend> fmt::Debug for Context<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("id", &self.id())
            .field("device", &self.info().name)
            .finish_non_exhaustive()
    }
}

impl<B: Backend> Context<B> {
    /// A new context over a device of `backend`.
    ///
    /// # Errors
    /// The runtime's.
    pub fn new(backend: &B, device: &B::Device) -> Result<Self> {
        backend.create_context(device).map(Self::from_raw)
    }

    /// Wraps a backend's own context.
    #[must_use]
    pub fn from_raw(raw: B::Context) -> Self {
        Self { raw }
    }

    /// The backend's own context.
    #[must_use]
    pub fn raw(&self) -> &B::Context {
        &self.raw
    }

    pub(crate) fn shared(&self) -> &ContextState {
        self.raw.shared()
    }

    /// Id of the context, unique in the process; [`PointerInfo::context`] reports it.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.shared().id()
    }

    /// The device.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        self.shared().info()
    }

    /// The kind of memory at `pointer`, the start of its allocation and its size. Accepts any
    /// pointer and does not dereference it. The registry answers for our memory, the runtime for
    /// other memory.
    ///
    /// # Errors
    /// When the runtime's query failed. A pointer that is not USM of this context has kind
    /// `Unknown`.
    pub fn query<T: ?Sized>(&self, pointer: *const T) -> Result<PointerInfo> {
        let address = pointer.cast::<u8>() as usize;
        #[cfg(feature = "alloc")]
        if let Some(info) = self.shared().find(address) {
            return Ok(info);
        }
        // The runtime knows the segments of pools, whose free bytes are nobody's.
        #[cfg(feature = "alloc")]
        if self.shared().segment_of_pool(address).is_some() {
            return Ok(PointerInfo::UNKNOWN);
        }
        self.query_runtime(address)
    }

    /// The runtime's own answer: the cross-check of the registry.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub fn query_runtime(&self, address: usize) -> Result<PointerInfo> {
        let _entered = self.shared().ask()?;
        self.raw.query(address)
    }

    /// Free bytes of the device's memory, which other programs use too. If a CPU's runtime does not
    /// report them: the bytes that the system can give without swapping.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if neither reports them; the runtime's.
    pub fn free_memory(&self) -> Result<u64> {
        let _entered = self.shared().ask()?;
        let free_bytes = self.raw.free_memory().map_err(|error| error.in_backend(self.info().backend));
        #[cfg(feature = "std")]
        if let Err(Error { kind: ErrorKind::Unsupported { .. }, .. }) = free_bytes {
            if matches!(self.info().device_type, DeviceType::Cpu | DeviceType::Host) {
                return crate::host_memory::free().map_or(free_bytes, Ok);
            }
        }
        free_bytes
    }

    /// Statistics of the context.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared().stats()
    }

    /// Statistics of all contexts on the device that this process made through this crate,
    /// including dropped ones. The limits apply to these. On the host heap and over an arena,
    /// contexts have no device in common, so each counts for itself.
    #[must_use]
    pub fn device_stats(&self) -> Stats {
        self.shared().device_stats()
    }

    /// Starts the peaks of [`stats`](Self::stats) and of [`device_stats`](Self::device_stats) anew:
    /// they are the most bytes live since this call.
    pub fn reset_peak(&self) {
        self.shared().reset_peak();
    }

    /// Calls `observer` for each allocation, free and refusal from now on; `None` removes it.
    pub fn set_observer(&self, observer: Option<Observer>) {
        self.shared().set_observer(observer);
    }

    /// Keeps the last `records` allocations, frees and refusals; 0, the default, keeps none.
    #[cfg(feature = "alloc")]
    pub fn keep_history(&self, records: usize) {
        self.shared().history().set_capacity(records);
    }

    /// The live allocations of this context, by address.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn blocks(&self) -> alloc::vec::Vec<PointerInfo> {
        self.shared().blocks()
    }

    /// The kept allocations, frees and refusals, oldest first.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn history(&self) -> alloc::vec::Vec<crate::history::Record> {
        self.shared().history().records()
    }

    /// Records that [`history`](Self::history) lost, because later ones took their place, since
    /// [`keep_history`](Self::keep_history).
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn history_lost(&self) -> u64 {
        self.shared().history().lost()
    }

    /// Whether this context's device can reach the memory of `peer`'s, once
    /// [enabled](Self::enable_peer_access). A device of another library is out of reach.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the runtime has no peer access; the runtime's.
    pub fn can_access_peer(&self, peer: &Self) -> Result<bool> {
        let _entered = self.shared().ask()?;
        // SAFETY: of one library.
        self.with_peer(peer, |ours, theirs| unsafe { B::Peer::can_access(ours, theirs) }).unwrap_or(Ok(false))
    }

    /// Lets this context's device reach the memory of `peer`'s. Doing it twice is no error.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the runtime has no peer access, the devices cannot, or belong
    /// to two libraries; the runtime's.
    pub fn enable_peer_access(&self, peer: &Self) -> Result<()> {
        let _entered = self.shared().work()?;
        // SAFETY: of one library.
        self.with_peer(peer, |ours, theirs| unsafe { B::Peer::enable(ours, theirs) })
            .unwrap_or_else(|| Err(self.unreachable_peer()))
    }

    /// Disables the access that [`enable_peer_access`](Self::enable_peer_access) enabled. It is no
    /// error if it was not enabled.
    ///
    /// # Errors
    /// As for [`enable_peer_access`](Self::enable_peer_access).
    pub fn disable_peer_access(&self, peer: &Self) -> Result<()> {
        let _entered = self.shared().work()?;
        // SAFETY: of one library.
        self.with_peer(peer, |ours, theirs| unsafe { B::Peer::disable(ours, theirs) })
            .unwrap_or_else(|| Err(self.unreachable_peer()))
    }

    /// Calls the runtime with two contexts of one library. Returns `None` for contexts of two
    /// libraries: each library knows only its own handles.
    pub(crate) fn with_peer<R>(
        &self,
        peer: &Self,
        call: impl FnOnce(&B::Context, &B::Context) -> Result<R>,
    ) -> Option<Result<R>> {
        let of_one_library = self.shared().same_library(peer.shared());
        of_one_library
            .then(|| call(&self.raw, &peer.raw).map_err(|error| error.in_backend(self.info().backend)))
    }

    fn unreachable_peer(&self) -> Error {
        let operation = "peer access to a device of another library";
        Error::from(ErrorKind::Unsupported { operation }).in_backend(self.info().backend)
    }

    /// Sets the longest time of a wait inside a view or a drop, all its events together. Also
    /// applies to waits for the events of operations submitted from now on.
    pub fn set_wait_limit(&self, limit: Duration) {
        self.shared().set_wait_limit(limit);
    }

    /// Blocks until all queues of the context are idle, at most `limit`. An operation that failed
    /// does not end the wait for the others.
    ///
    /// The event of a failed operation returns the failure whenever it is asked; so does its queue
    /// if it is in order. While the queue lives and its work is not known to be complete, every
    /// call of this function returns the failure. The failure of a dropped queue is returned once,
    /// because a program cannot act on it any more: the next call speaks of later work, as
    /// `wait_and_throw` of SYCL does. A lost device stays lost, as after a fault in CUDA. Host
    /// views that need the device idle are refused whether the failure was reported or not: nothing
    /// tells that failed work has ended. An index that a launch found outside is returned once.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`], or the failure of an operation. Of several failures the first; all
    /// count as reported.
    pub fn synchronize(&self, limit: Duration) -> Result<()> {
        let _entered = self.shared().ask()?;
        self.raw.report_failures(limit)?;
        self.collect();
        #[cfg(feature = "alloc")]
        self.shared().outcomes().report(|_| true)?;
        Ok(())
    }

    /// The work in flight in the context's queues now, for waiting in parts. Work submitted later
    /// is not in it, so steady load does not prolong the wait. A dropped queue's failure is in it
    /// until [`synchronize`](Self::synchronize) has reported it. Blocks only while a queue is being
    /// dropped, at most `limit`.
    ///
    /// # Errors
    /// The runtime's, or [`ErrorKind::Timeout`].
    #[cfg(feature = "alloc")]
    pub fn pending(&self, limit: Duration) -> Result<Pending<B>> {
        let _entered = self.shared().ask()?;
        let mut events = alloc::vec::Vec::new();
        self.raw.for_each_pending(limit, &mut |event| events.push(event))?;
        Ok(Pending::of_events(self.id(), events))
    }

    /// Frees blocks whose owners were dropped and whose operations are complete. Allocating does it
    /// too.
    pub fn collect(&self) {
        #[cfg(feature = "alloc")]
        if let Some(deferred) = self.raw.deferred() {
            deferred.collect(&self.raw);
        }
    }

    /// Number of blocks that are still in use although their owners were dropped.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn deferred_frees(&self) -> usize {
        self.raw.deferred().map_or(0, Deferred::len)
    }
}
