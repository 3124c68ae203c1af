//! Contexts: the scope of pointers, statistics and limits.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;
use core::time::Duration;

#[cfg(feature = "std")]
use crate::DeviceType;
use crate::allocation::Allocation;
use crate::backend::{Backend, Block, Buffers, ContextOps, Peer, PointerInfo, QueueOrder};
use crate::buffer::Buffer;
use crate::context_state::ContextState;
#[cfg(feature = "driver")]
use crate::context_state::RING_SERIAL;
use crate::error::{Error, ErrorKind, Result};
use crate::history::Observer;
use crate::limits::Fallback;
#[cfg(feature = "alloc")]
use crate::pending::Pending;
use crate::queue::Queue;
use crate::source::{MemorySource, Request};
use crate::stats::Stats;
use crate::{AllocKind, DeviceInfo, MemoryType};

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

/// Result of [`Context::allocate_memory`]: one of the four memory types.
pub enum Memory<B: Backend> {
    /// USM memory; the allocation knows its kind.
    Usm(Allocation<B>),
    /// An opaque buffer.
    Buffer(Buffer<B>),
}

impl<B: Backend> fmt::Debug for Memory<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usm(allocation) => allocation.fmt(f),
            Self::Buffer(buffer) => buffer.fmt(f),
        }
    }
}

impl<B: Backend> Memory<B> {
    /// The memory's type.
    #[must_use]
    pub fn memory_type(&self) -> MemoryType {
        match self {
            Self::Usm(allocation) => MemoryType::of(allocation.kind()),
            Self::Buffer(_) => MemoryType::Buffer,
        }
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

    /// A new queue.
    ///
    /// # Errors
    /// The runtime's.
    pub fn queue(&self, order: QueueOrder) -> Result<Queue<B>> {
        self.make_queue(order, B::Context::create_queue)
    }

    /// A new queue whose events know their [times](crate::Event::times). Measuring may slow its
    /// operations down.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where the runtime measures no times: on the host and on Level
    /// Zero. The runtime's.
    pub fn timed_queue(&self, order: QueueOrder) -> Result<Queue<B>> {
        let queue = self.make_queue(order, B::Context::create_timed_queue);
        queue.map_err(|error| error.in_backend(self.info().backend))
    }

    fn make_queue(
        &self,
        order: QueueOrder,
        create: impl FnOnce(&B::Context, QueueOrder) -> Result<B::Queue>,
    ) -> Result<Queue<B>> {
        let _entered = self.shared().work()?;
        #[cfg(feature = "std")]
        if !B::SYNCHRONOUS {
            crate::process::exit::register_for_object();
        }
        let raw = create(&self.raw, order)?;
        // SAFETY: created by this context with this order.
        Ok(unsafe { Queue::from_raw(self, raw, order) })
    }

    /// Memory of any of the four types by one call: an opaque buffer or USM memory of a kind.
    ///
    /// `alignment` in bytes (0: default) applies to USM memory. If device memory is full and
    /// `fallback` allows it, the result is host memory instead, also for a buffer;
    /// [`Memory::memory_type`] tells which.
    ///
    /// # Errors
    /// The request's, the limits', the runtime's; [`ErrorKind::Unsupported`] for buffers on a
    /// backend without them.
    pub fn allocate_memory(
        &self,
        memory_type: MemoryType,
        size: usize,
        alignment: usize,
        fallback: Fallback,
    ) -> Result<Memory<B>> {
        let _entered = self.shared().work()?;
        let Some(kind) = memory_type.kind() else {
            return match self.reserve(memory_type, size, fallback)? {
                MemoryType::Buffer => self.create_buffer(size).map(Memory::Buffer),
                _ => self.allocate_memory(MemoryType::UsmHost, size, alignment, fallback),
            };
        };
        let request = Request { kind, size, alignment, fallback };
        self.allocate(&request).map(Memory::Usm)
    }

    /// Reserves bytes within the limits. First frees memory that only waits to be freed, and before
    /// a refusal or a fallback what pools hold without use. Nothing is reserved during that, so a
    /// panic of a foreign owner leaves no reservation.
    pub(crate) fn reserve(
        &self,
        memory_type: MemoryType,
        bytes: usize,
        fallback: Fallback,
    ) -> Result<MemoryType> {
        self.collect();
        let refusal = match self.shared().reserve(memory_type, bytes, Fallback::Refuse) {
            Ok(memory_type) => return Ok(memory_type),
            Err(error) => error,
        };
        if !self.trim_for(&refusal) && fallback == Fallback::Refuse {
            return Err(refusal);
        }
        self.shared().reserve(memory_type, bytes, fallback)
    }

    /// The bytes are already reserved.
    fn create_buffer(&self, size: usize) -> Result<Buffer<B>> {
        let raw_buffer =
            if size == 0 { Err(ErrorKind::ZeroSize.into()) } else { B::Buffers::create(&self.raw, size) };
        match raw_buffer {
            Ok(raw) => {
                let record = self.shared().count_buffer(size);
                let buffer = Buffer::new(self.clone(), raw, size);
                self.shared().record_allocation(record);
                Ok(buffer)
            }
            Err(error) => {
                self.shared().unreserve(MemoryType::Buffer, size);
                Err(error.in_backend(self.info().backend))
            }
        }
    }

    /// Allocates again after other threads took the rest of the memory.
    ///
    /// # Safety
    /// `block` was just allocated for the request, and nothing uses it.
    #[cold]
    unsafe fn retry_reserved(
        &self,
        request: &Request,
        block: Block,
        call: &mut AllocateCall<'_, B>,
    ) -> Result<Allocation<B>> {
        // SAFETY: the caller's promise.
        unsafe { self.raw.free(&block) };
        self.allocate_reserved(request, request.layout()?, call)
    }

    /// Reserves the bytes before asking the driver, and records the allocation.
    #[cold]
    fn allocate_reserved(
        &self,
        request: &Request,
        layout: Layout,
        call: &mut AllocateCall<'_, B>,
    ) -> Result<Allocation<B>> {
        let wanted_type = MemoryType::try_from(request.kind)?;
        let record_refusal = |_: &Error| self.shared().record_refusal(wanted_type, layout.size());
        let memory_type =
            self.reserve(wanted_type, layout.size(), request.fallback).inspect_err(record_refusal)?;
        let kind = memory_type.kind().unwrap_or(request.kind);
        match self.call(&mut *call, kind, layout) {
            Ok(pointer) => {
                let block = Block { pointer, size: layout.size(), alignment: layout.align(), kind };
                let (serial, record) = self.shared().allocated(&block);
                let allocation = self.allocation_of(block, serial);
                self.shared().record_allocation(record);
                Ok(allocation)
            }
            Err(error) => {
                self.shared().unreserve(memory_type, layout.size());
                record_refusal(&error);
                Err(error.in_backend(self.info().backend))
            }
        }
    }

    /// The owner of a block that was just allocated.
    #[inline(always)]
    fn allocation_of(&self, block: Block, serial: u64) -> Allocation<B> {
        #[cfg(usm_valgrind)]
        crate::sync::memcheck::without_values(block.pointer.as_ptr(), block.size);
        Allocation::owned(self.clone(), block, serial)
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
        self.raw.deferred().map_or(0, crate::deferred::Deferred::len)
    }
}

/// A driver's call that allocates.
type AllocateCall<'c, B> = dyn FnMut(&<B as Backend>::Context, AllocKind, Layout) -> Result<NonNull<u8>> + 'c;

impl<B: Backend> MemorySource<B> for Context<B> {
    /// Each path returns its own allocation. A shared result would be written, copied and read
    /// again, which costs as much as one of the locks.
    #[inline]
    fn allocate(&self, request: &Request) -> Result<Allocation<B>> {
        self.allocate_by(request, B::Context::allocate)
    }

    fn allocate_zeroed(&self, request: &Request) -> Result<(Allocation<B>, bool)> {
        let mut is_zeroed = false;
        let allocation = self.allocate_by(request, |raw, kind, layout| {
            let pointer;
            (pointer, is_zeroed) = raw.allocate_zeroed(kind, layout)?;
            Ok(pointer)
        })?;
        #[cfg(usm_valgrind)]
        if is_zeroed {
            crate::sync::memcheck::with_values(allocation.as_ptr(), allocation.size());
        }
        Ok((allocation, is_zeroed))
    }

    fn context(&self) -> &Context<B> {
        self
    }
}

impl<B: Backend> Context<B> {
    /// A block of the ring, which is counted apart.
    #[cfg(feature = "driver")]
    pub(crate) fn allocate_for_ring(&self, bytes: usize) -> Result<Allocation<B>> {
        let kind = AllocKind::Host;
        let layout = Request::new(kind, bytes).layout()?;
        let _entered = self.shared().work()?;
        let pointer = self.raw.allocate(kind, layout)?;
        self.shared().count_ring_block(bytes);
        let block = Block { pointer, size: bytes, alignment: layout.align(), kind };
        Ok(self.allocation_of(block, RING_SERIAL))
    }

    /// Gives idle segments of pools and pinned blocks of copies back, for an allocation that found
    /// no memory. Returns whether there were any.
    #[cold]
    pub(crate) fn trim_for(&self, error: &Error) -> bool {
        let is_shortage = matches!(
            error.kind,
            ErrorKind::OutOfMemory { .. } | ErrorKind::OverMemory { .. } | ErrorKind::TooManyBlocks { .. }
        );
        #[cfg(feature = "alloc")]
        if is_shortage && self.shared().trim_pools() > 0 {
            return true;
        }
        #[cfg(feature = "driver")]
        return matches!(error.kind, ErrorKind::OutOfMemory { .. }) && self.trim() > 0;
        #[cfg(not(feature = "driver"))]
        {
            let _ = is_shortage;
            false
        }
    }

    /// Calls the driver, and once more if memory could be given back meanwhile.
    #[inline(always)]
    fn call(
        &self,
        call: &mut (impl FnMut(&B::Context, AllocKind, Layout) -> Result<NonNull<u8>> + ?Sized),
        kind: AllocKind,
        layout: Layout,
    ) -> Result<NonNull<u8>> {
        match call(&self.raw, kind, layout) {
            Err(error) if self.trim_for(&error) => call(&self.raw, kind, layout),
            outcome => outcome,
        }
    }

    /// Allocates for the request by a call of the driver.
    #[inline(always)]
    fn allocate_by(
        &self,
        request: &Request,
        mut call: impl FnMut(&B::Context, AllocKind, Layout) -> Result<NonNull<u8>>,
    ) -> Result<Allocation<B>> {
        let layout = request.layout()?;
        let (shared, kind) = (self.shared(), request.kind);
        let _entered = shared.work()?;
        if !shared.needs_no_reservation(layout.size()) || kind == AllocKind::Unknown || shared.is_watched() {
            return self.allocate_reserved(request, layout, &mut call);
        }
        self.collect();
        let pointer = match self.call(&mut call, kind, layout) {
            Ok(pointer) => pointer,
            Err(error) => {
                if let Ok(memory_type) = MemoryType::try_from(kind) {
                    shared.record_refusal(memory_type, layout.size());
                }
                return Err(error.in_backend(shared.info().backend));
            }
        };
        let block = Block { pointer, size: layout.size(), alignment: layout.align(), kind };
        match shared.allocated_within(&block) {
            Some(serial) => Ok(self.allocation_of(block, serial)),
            // SAFETY: just allocated and unused.
            None => unsafe { self.retry_reserved(request, block, &mut call) },
        }
    }
}
