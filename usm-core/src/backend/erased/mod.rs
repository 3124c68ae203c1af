//! The erased backend: one type for whatever runtime is chosen at run time.
//!
//! [`Dyn`] implements [`Backend`] itself, so `Allocation<Dyn>`, `Queue<Dyn>` and everything built
//! on them work without a match over backends. A dynamic call costs about a nanosecond; a driver
//! call costs microseconds.

mod bound;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::any::{Any, TypeId};
use core::fmt::{self, Debug};
use core::ptr::NonNull;
use core::time::Duration;

use bound::{
    AnyEvent, Bound, BoundBackend, ContextOf, ErasedBackend, ErasedContext, ErasedDevice, ErasedQueue,
    QueueOf, Work,
};

use crate::backend::ability::NATIVE_BYTES;
use crate::backend::{
    Advice, Backend, Block, BufferWork, Buffers, ContextOps, Conversion, DeviceOps, EventOps, EventStatus,
    HostTasks, Ipc, MemAdvice, Peer, PointerInfo, QueueMemory, QueueOps, QueueOrder, Rows, StridedCopy,
};
use crate::context_state::ContextState;
use crate::deferred::Deferred;
use crate::error::{ErrorKind, Result};
use crate::event::EventTimes;
use crate::{AllocKind, DeviceInfo};

/// A backend chosen at run time.
#[derive(Clone, Debug)]
pub struct Dyn(Arc<dyn ErasedBackend>);

/// A device of [`Dyn`].
#[derive(Clone, Debug)]
pub struct DynDevice(Arc<dyn ErasedDevice>);

/// A context of [`Dyn`].
#[derive(Clone, Debug)]
pub struct DynContext(Arc<ContextInner>);

/// A queue of [`Dyn`].
#[derive(Clone, Debug)]
pub struct DynQueue(Arc<dyn ErasedQueue>);

/// An event of [`Dyn`].
#[derive(Clone, Debug)]
pub struct DynEvent(Arc<dyn AnyEvent>);

/// A buffer of [`Dyn`].
pub struct DynBuffer {
    raw: Box<dyn Any + Send + Sync>,
    argument: Option<usize>,
    place: (usize, usize),
}

/// Memory of another process, opened through [`Dyn`].
#[derive(Debug)]
#[allow(dead_code, reason = "kept for its drop")]
pub struct DynOpened(Box<dyn OpenMemory>);

/// State of an opened handle.
trait OpenMemory: Debug + Send + Sync {}

impl<T: Debug + Send + Sync> OpenMemory for T {}

impl Debug for DynBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DynBuffer")
    }
}

#[derive(Debug)]
struct ContextInner {
    object: Arc<dyn ErasedContext>,
    deferred: Deferred<Dyn>,
}

impl Drop for ContextInner {
    fn drop(&mut self) {
        let (context, shared) = (&self.object, self.object.shared());
        // SAFETY: `drain` hands out blocks of this context whose operations are complete, each
        // once.
        let free = |block: &Block| unsafe { context.free(block) };
        // SAFETY: as above.
        let destroy = |raw: DynBuffer| unsafe { context.destroy_buffer(raw.raw) };
        // SAFETY: the state of this context, and both give back to it.
        unsafe { self.deferred.drain(shared, shared.wait_limit(), free, destroy) };
    }
}

impl Dyn {
    /// Erases a backend.
    #[must_use]
    pub fn new<B: Backend + Send + Sync + 'static>(backend: B) -> Self {
        Self(Arc::new(BoundBackend(backend)))
    }

    /// The backend value, if it is a `B`.
    #[must_use]
    pub fn downcast_ref<B: Backend + 'static>(&self) -> Option<&B> {
        self.0.as_any().downcast_ref()
    }

    /// The devices, in the runtime's order.
    ///
    /// # Errors
    /// When the runtime cannot be asked.
    pub fn devices(&self) -> Result<Vec<DynDevice>> {
        let mut devices = Vec::new();
        Arc::clone(&self.0).for_each_device(&mut |device| devices.push(device))?;
        Ok(devices)
    }

    /// Erases a backend's own context; both handles have one state.
    #[must_use]
    pub fn erase_context<B: Backend + 'static>(context: B::Context) -> DynContext {
        let object = Arc::new(ContextOf::<B>::new(context));
        DynContext(Arc::new(ContextInner { object, deferred: Deferred::new() }))
    }
}

impl DynDevice {
    /// The runtime's description of the device.
    #[must_use]
    pub fn info(&self) -> DeviceInfo {
        self.0.info()
    }

    /// The backend's own device, if it is a `D`.
    #[must_use]
    pub fn downcast_ref<D: 'static>(&self) -> Option<&D> {
        self.0.as_any().downcast_ref()
    }

    /// A new context over this device.
    ///
    /// # Errors
    /// The runtime's.
    pub fn context(&self) -> Result<crate::Context<Dyn>> {
        let object = self.0.create_context()?;
        let inner = ContextInner { object, deferred: Deferred::new() };
        Ok(crate::Context::from_raw(DynContext(Arc::new(inner))))
    }
}

impl DynContext {
    /// The backend's own context, if it is a `C`.
    #[must_use]
    pub fn downcast_ref<C: 'static>(&self) -> Option<&C> {
        self.0.object.as_any().downcast_ref()
    }

    /// The extension of type `T` that another crate adds to this context's backend, if any: see
    /// [`Backend::extension`].
    #[must_use]
    pub fn extension<T: 'static>(&self) -> Option<&'static T> {
        self.0.object.extension(TypeId::of::<T>())?.downcast_ref()
    }
}

impl DynQueue {
    /// The backend's own queue, if it is a `Q`.
    #[must_use]
    pub fn downcast_ref<Q: 'static>(&self) -> Option<&Q> {
        self.0.as_any().downcast_ref()
    }

    /// Erases a backend's own queue.
    #[must_use]
    pub fn erase<B: Backend + 'static>(queue: B::Queue) -> Self {
        Self(Arc::new(QueueOf::<B>(Bound::new(queue))))
    }
}

impl DynEvent {
    /// The backend's own event, if it is an `E`.
    #[must_use]
    pub fn downcast_ref<E: 'static>(&self) -> Option<&E> {
        self.0.as_any().downcast_ref()
    }

    /// Erases a backend's own event.
    #[must_use]
    pub fn erase<B: Backend + 'static>(event: B::Event) -> Self {
        Self(Arc::new(event))
    }

    fn downcast<B: Backend + 'static>(&self) -> Result<B::Event> {
        self.downcast_ref::<B::Event>().cloned().ok_or_else(|| {
            ErrorKind::Unsupported { operation: "waiting for an event of another backend" }.into()
        })
    }
}

// SAFETY: every call goes to the bound backend, which keeps the contract; `ContextInner` drains its
// list (9).
unsafe impl Backend for Dyn {
    const SYNCHRONOUS: bool = false;

    type Device = DynDevice;
    type Context = DynContext;
    type Queue = DynQueue;
    type Event = DynEvent;
    type Buffers = Self;
    type HostTasks = Self;
    type Advice = Self;
    type Ipc = Self;
    type Peer = Self;
    type QueueMemory = Self;

    fn for_each_device(&self, visit: &mut dyn FnMut(DynDevice)) -> Result<()> {
        Arc::clone(&self.0).for_each_device(visit)
    }

    fn create_context(&self, device: &DynDevice) -> Result<DynContext> {
        let object = device.0.create_context()?;
        Ok(DynContext(Arc::new(ContextInner { object, deferred: Deferred::new() })))
    }
}

impl DeviceOps for DynDevice {
    fn info(&self) -> DeviceInfo {
        self.0.info()
    }
}

impl ContextOps<Dyn> for DynContext {
    fn shared(&self) -> &ContextState {
        self.0.object.shared()
    }

    fn deferred(&self) -> Option<&Deferred<Dyn>> {
        Some(&self.0.deferred)
    }

    fn create_queue(&self, order: QueueOrder) -> Result<DynQueue> {
        self.0.object.create_queue(order).map(DynQueue)
    }

    fn create_timed_queue(&self, order: QueueOrder) -> Result<DynQueue> {
        self.0.object.create_timed_queue(order).map(DynQueue)
    }

    fn allocate(&self, kind: AllocKind, layout: Layout) -> Result<NonNull<u8>> {
        self.0.object.allocate(kind, layout)
    }

    fn allocate_zeroed(&self, kind: AllocKind, layout: Layout) -> Result<(NonNull<u8>, bool)> {
        self.0.object.allocate_zeroed(kind, layout)
    }

    unsafe fn free(&self, block: &Block) {
        // SAFETY: the caller's promise.
        unsafe { self.0.object.free(block) };
    }

    fn query(&self, address: usize) -> Result<PointerInfo> {
        self.0.object.query(address)
    }

    fn free_memory(&self) -> Result<u64> {
        self.0.object.free_memory()
    }

    fn synchronize(&self, limit: Duration) -> Result<()> {
        self.0.object.synchronize(limit)
    }

    fn report_failures(&self, limit: Duration) -> Result<()> {
        self.0.object.report_failures(limit)
    }

    fn for_each_pending(&self, limit: Duration, visit: &mut dyn FnMut(DynEvent)) -> Result<()> {
        self.0.object.for_each_pending(limit, visit)
    }
}

impl QueueOps<Dyn> for DynQueue {
    unsafe fn copy(&self, dst: *mut u8, src: *const u8, len: usize, after: &[DynEvent]) -> Result<DynEvent> {
        // SAFETY: the caller's promise.
        unsafe { self.0.submit(Work::Copy(dst, src, len), after) }
    }

    unsafe fn copy_rows(&self, rows: &Rows, after: &[DynEvent]) -> Result<DynEvent> {
        // SAFETY: the caller's promise.
        unsafe { self.0.submit(Work::Rows(rows), after) }
    }

    unsafe fn copy_strided(&self, copy: &StridedCopy<'_>, after: &[DynEvent]) -> Result<DynEvent> {
        // SAFETY: the caller's promise.
        unsafe { self.0.submit(Work::Strided(copy), after) }
    }

    unsafe fn convert(&self, conversion: &Conversion<'_>, after: &[DynEvent]) -> Result<DynEvent> {
        // SAFETY: the caller's promise.
        unsafe { self.0.submit(Work::Convert(conversion), after) }
    }

    unsafe fn fill(&self, dst: *mut u8, pattern: &[u8], len: usize, after: &[DynEvent]) -> Result<DynEvent> {
        // SAFETY: the caller's promise.
        unsafe { self.0.submit(Work::Fill(dst, pattern, len), after) }
    }

    unsafe fn barrier(&self, after: &[DynEvent]) -> Result<DynEvent> {
        // SAFETY: the caller's promise.
        unsafe { self.0.submit(Work::Barrier, after) }
    }
}

impl EventOps for DynEvent {
    fn status(&self) -> Result<EventStatus> {
        self.0.status()
    }

    fn wait(&self, limit: Duration) -> Result<()> {
        self.0.wait(limit)
    }

    fn times(&self) -> Result<EventTimes> {
        self.0.times()
    }
}

impl Buffers<Dyn> for Dyn {
    type Raw = DynBuffer;

    fn create(context: &DynContext, size: usize) -> Result<DynBuffer> {
        context.0.object.create_buffer(size)
    }

    unsafe fn destroy(context: &DynContext, raw: DynBuffer) {
        // SAFETY: the caller's promise.
        unsafe { context.0.object.destroy_buffer(raw.raw) };
    }

    fn argument(raw: &DynBuffer) -> Option<usize> {
        raw.argument
    }

    fn place(raw: &DynBuffer) -> (usize, usize) {
        raw.place
    }

    unsafe fn submit(
        queue: &DynQueue,
        work: BufferWork<'_, DynBuffer>,
        len: usize,
        after: &[DynEvent],
    ) -> Result<DynEvent> {
        // SAFETY: the caller's promise.
        unsafe { queue.0.submit(Work::Buffers(work, len), after) }
    }
}

impl HostTasks<Dyn> for Dyn {
    unsafe fn run<F: FnOnce() + Send + 'static>(
        queue: &DynQueue,
        after: &[DynEvent],
        task: F,
    ) -> Result<DynEvent> {
        // SAFETY: the caller's promise.
        unsafe { queue.0.submit(Work::Task(Box::new(task)), after) }
    }
}

impl Ipc<Dyn> for Dyn {
    type Opened = DynOpened;

    unsafe fn export(context: &DynContext, block: &Block) -> Result<([u8; NATIVE_BYTES], usize)> {
        // SAFETY: the caller's promise.
        unsafe { context.0.object.export(block) }
    }

    unsafe fn open(
        context: &DynContext,
        kind: AllocKind,
        native: &[u8; NATIVE_BYTES],
    ) -> Result<(NonNull<u8>, DynOpened)> {
        // SAFETY: the caller's promise.
        unsafe { context.0.object.open(kind, native) }
    }
}

impl Peer<Dyn> for Dyn {
    unsafe fn can_access(context: &DynContext, peer: &DynContext) -> Result<bool> {
        // SAFETY: the caller's promise.
        unsafe { context.0.object.can_access_peer(&*peer.0.object) }
    }

    unsafe fn enable(context: &DynContext, peer: &DynContext) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { context.0.object.enable_peer(&*peer.0.object) }
    }

    unsafe fn disable(context: &DynContext, peer: &DynContext) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { context.0.object.disable_peer(&*peer.0.object) }
    }

    unsafe fn copy(
        queue: &DynQueue,
        peer: &DynContext,
        (dst, src): (*mut u8, *const u8),
        len: usize,
        after: &[DynEvent],
    ) -> Result<DynEvent> {
        // SAFETY: the caller's promise.
        unsafe { queue.0.submit(Work::FromPeer(&*peer.0.object, dst, src, len), after) }
    }
}

impl QueueMemory<Dyn> for Dyn {
    fn allocate(queue: &DynQueue, layout: Layout) -> Result<(NonNull<u8>, DynEvent)> {
        queue.0.allocate(layout)
    }

    unsafe fn free(queue: &DynQueue, block: &Block, after: &[DynEvent]) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { queue.0.free(block, after) }
    }
}

impl Advice<Dyn> for Dyn {
    unsafe fn prefetch(
        queue: &DynQueue,
        pointer: *const u8,
        len: usize,
        after: &[DynEvent],
    ) -> Result<DynEvent> {
        // SAFETY: the caller's promise.
        unsafe { queue.0.submit(Work::Prefetch(pointer, len), after) }
    }

    unsafe fn advise(
        queue: &DynQueue,
        pointer: *const u8,
        len: usize,
        advice: MemAdvice,
        after: &[DynEvent],
    ) -> Result<DynEvent> {
        // SAFETY: the caller's promise.
        unsafe { queue.0.submit(Work::Advise(pointer, len, advice), after) }
    }
}
