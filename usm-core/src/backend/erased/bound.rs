//! Object-safe forms of the handles, implemented once for every backend by binding a handle to its
//! backend type.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::any::{Any, TypeId};
use core::fmt::{self, Debug};
use core::ptr::NonNull;
use core::time::Duration;

use super::{DynBuffer, DynDevice, DynEvent, DynOpened};
use crate::backend::ability::NATIVE_BYTES;
use crate::backend::{
    Advice, Backend, Block, BufferWork, Buffers, ContextOps, Conversion, DeviceOps, EventOps, HostTasks, Ipc,
    MemAdvice, Peer, PointerInfo, QueueMemory, QueueOps, QueueOrder, Rows, StridedCopy,
};
use crate::context_state::ContextState;
use crate::error::{ErrorKind, Result};
use crate::{AllocKind, DeviceInfo};

/// A closure for a queue, erased.
pub(super) type Task = Box<dyn FnOnce() + Send>;

pub(super) trait ErasedBackend: Debug + Send + Sync {
    fn for_each_device(self: Arc<Self>, visit: &mut dyn FnMut(DynDevice)) -> Result<()>;
    fn as_any(&self) -> &dyn Any;
}

pub(super) trait ErasedDevice: Debug + Send + Sync {
    fn info(&self) -> DeviceInfo;
    fn create_context(&self) -> Result<Arc<dyn ErasedContext>>;
    fn as_any(&self) -> &dyn Any;
}

pub(super) trait ErasedContext: Debug + Send + Sync {
    fn shared(&self) -> &ContextState;
    fn create_queue(&self, order: QueueOrder) -> Result<Arc<dyn ErasedQueue>>;
    fn create_timed_queue(&self, order: QueueOrder) -> Result<Arc<dyn ErasedQueue>>;
    fn allocate(&self, kind: AllocKind, layout: Layout) -> Result<NonNull<u8>>;
    fn allocate_zeroed(&self, kind: AllocKind, layout: Layout) -> Result<(NonNull<u8>, bool)>;
    /// # Safety
    /// As [`ContextOps::free`].
    unsafe fn free(&self, block: &Block);
    fn query(&self, address: usize) -> Result<PointerInfo>;
    fn free_memory(&self) -> Result<u64>;
    fn synchronize(&self, limit: Duration) -> Result<()>;
    fn report_failures(&self, limit: Duration) -> Result<()>;
    fn for_each_pending(&self, limit: Duration, visit: &mut dyn FnMut(DynEvent)) -> Result<()>;
    fn create_buffer(&self, size: usize) -> Result<DynBuffer>;
    /// # Safety
    /// As [`Buffers::destroy`].
    unsafe fn destroy_buffer(&self, raw: Box<dyn Any + Send + Sync>);
    /// # Safety
    /// As [`Ipc::export`].
    unsafe fn export(&self, block: &Block) -> Result<([u8; NATIVE_BYTES], usize)>;
    /// # Safety
    /// As [`Ipc::open`].
    unsafe fn open(&self, kind: AllocKind, native: &[u8; NATIVE_BYTES]) -> Result<(NonNull<u8>, DynOpened)>;
    /// # Safety
    /// As [`Peer::can_access`].
    unsafe fn can_access_peer(&self, peer: &dyn ErasedContext) -> Result<bool>;
    /// # Safety
    /// As [`Peer::enable`].
    unsafe fn enable_peer(&self, peer: &dyn ErasedContext) -> Result<()>;
    /// # Safety
    /// As [`Peer::disable`].
    unsafe fn disable_peer(&self, peer: &dyn ErasedContext) -> Result<()>;
    fn extension(&self, type_id: TypeId) -> Option<&'static dyn Any>;
    fn as_any(&self) -> &dyn Any;
}

/// An operation for a queue, with pointers that the safe layer has proven.
pub(super) enum Work<'a> {
    Copy(*mut u8, *const u8, usize),
    Rows(&'a Rows),
    Strided(&'a StridedCopy<'a>),
    Convert(&'a Conversion<'a>),
    FromPeer(&'a dyn ErasedContext, *mut u8, *const u8, usize),
    Fill(*mut u8, &'a [u8], usize),
    Barrier,
    Task(Task),
    Prefetch(*const u8, usize),
    Advise(*const u8, usize, MemAdvice),
    Buffers(BufferWork<'a, DynBuffer>, usize),
}

pub(super) trait ErasedQueue: Debug + Send + Sync {
    /// # Safety
    /// As the method of [`QueueOps`], [`Buffers`], [`HostTasks`], [`Advice`] or [`Peer`] that the
    /// work stands for.
    unsafe fn submit(&self, work: Work<'_>, after: &[DynEvent]) -> Result<DynEvent>;
    fn allocate(&self, layout: Layout) -> Result<(NonNull<u8>, DynEvent)>;
    /// # Safety
    /// As [`QueueMemory::free`].
    unsafe fn free(&self, block: &Block, after: &[DynEvent]) -> Result<()>;
    fn as_any(&self) -> &dyn Any;
}

/// An event of some backend, which knows its type.
pub(super) trait AnyEvent: EventOps + Debug + Send + Sync {
    fn as_any(&self) -> &dyn Any;
}

impl<E: EventOps + Debug + Send + Sync + 'static> AnyEvent for E {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A handle bound to the backend type that understands it.
pub(super) struct Bound<B: Backend, H> {
    backend: core::marker::PhantomData<fn() -> B>,
    handle: H,
}

impl<B: Backend, H> Bound<B, H> {
    pub(super) fn new(handle: H) -> Self {
        Self { backend: core::marker::PhantomData, handle }
    }
}

impl<B: Backend, H: Debug> Debug for Bound<B, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.fmt(f)
    }
}

pub(super) struct BoundDevice<B: Backend> {
    backend: Arc<BoundBackend<B>>,
    device: B::Device,
}

impl<B: Backend> Debug for BoundDevice<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.device.fmt(f)
    }
}

pub(super) struct BoundBackend<B>(pub(super) B);

impl<B> Debug for BoundBackend<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(core::any::type_name::<B>())
    }
}

impl<B> ErasedBackend for BoundBackend<B>
where
    B: Backend + Send + Sync + 'static,
{
    fn for_each_device(self: Arc<Self>, visit: &mut dyn FnMut(DynDevice)) -> Result<()> {
        let this = Arc::clone(&self);
        self.0.for_each_device(&mut |device| {
            visit(DynDevice(Arc::new(BoundDevice { backend: Arc::clone(&this), device })));
        })
    }

    fn as_any(&self) -> &dyn Any {
        &self.0
    }
}

impl<B> ErasedDevice for BoundDevice<B>
where
    B: Backend + Send + Sync + 'static,
{
    fn info(&self) -> DeviceInfo {
        self.device.info()
    }

    fn create_context(&self) -> Result<Arc<dyn ErasedContext>> {
        let context = self.backend.0.create_context(&self.device)?;
        Ok(Arc::new(Bound::<B, _>::new(context)))
    }

    fn as_any(&self) -> &dyn Any {
        &self.device
    }
}

/// The context of a bound backend.
pub(super) type ContextOf<B> = Bound<B, <B as Backend>::Context>;

impl<B: Backend + 'static> ErasedContext for ContextOf<B> {
    fn shared(&self) -> &ContextState {
        self.handle.shared()
    }

    fn create_queue(&self, order: QueueOrder) -> Result<Arc<dyn ErasedQueue>> {
        let queue = self.handle.create_queue(order)?;
        Ok(Arc::new(QueueOf::<B>(Bound::new(queue))))
    }

    fn create_timed_queue(&self, order: QueueOrder) -> Result<Arc<dyn ErasedQueue>> {
        let queue = self.handle.create_timed_queue(order)?;
        Ok(Arc::new(QueueOf::<B>(Bound::new(queue))))
    }

    fn allocate(&self, kind: AllocKind, layout: Layout) -> Result<NonNull<u8>> {
        self.handle.allocate(kind, layout)
    }

    fn allocate_zeroed(&self, kind: AllocKind, layout: Layout) -> Result<(NonNull<u8>, bool)> {
        self.handle.allocate_zeroed(kind, layout)
    }

    unsafe fn free(&self, block: &Block) {
        // SAFETY: the caller's promise.
        unsafe { self.handle.free(block) };
    }

    fn query(&self, address: usize) -> Result<PointerInfo> {
        self.handle.query(address)
    }

    fn free_memory(&self) -> Result<u64> {
        self.handle.free_memory()
    }

    fn synchronize(&self, limit: Duration) -> Result<()> {
        self.handle.synchronize(limit)
    }

    fn report_failures(&self, limit: Duration) -> Result<()> {
        self.handle.report_failures(limit)
    }

    fn for_each_pending(&self, limit: Duration, visit: &mut dyn FnMut(DynEvent)) -> Result<()> {
        self.handle.for_each_pending(limit, &mut |event| visit(DynEvent::erase::<B>(event)))
    }

    fn create_buffer(&self, size: usize) -> Result<DynBuffer> {
        let raw = B::Buffers::create(&self.handle, size)?;
        let (argument, place) = (B::Buffers::argument(&raw), B::Buffers::place(&raw));
        Ok(DynBuffer { raw: Box::new(BufferOf::<B>(raw)), argument, place })
    }

    unsafe fn destroy_buffer(&self, raw: Box<dyn Any + Send + Sync>) {
        if let Ok(buffer) = raw.downcast::<BufferOf<B>>() {
            // SAFETY: the caller's promise.
            unsafe { B::Buffers::destroy(&self.handle, buffer.0) };
        }
    }

    unsafe fn export(&self, block: &Block) -> Result<([u8; NATIVE_BYTES], usize)> {
        // SAFETY: the caller's promise.
        unsafe { B::Ipc::export(&self.handle, block) }
    }

    unsafe fn open(&self, kind: AllocKind, native: &[u8; NATIVE_BYTES]) -> Result<(NonNull<u8>, DynOpened)> {
        // SAFETY: the caller's promise.
        let (pointer, memory) = unsafe { B::Ipc::open(&self.handle, kind, native) }?;
        Ok((pointer, DynOpened(Box::new(memory))))
    }

    unsafe fn can_access_peer(&self, peer: &dyn ErasedContext) -> Result<bool> {
        let peer = of_same_backend::<B>(peer)?;
        // SAFETY: the caller's promise.
        unsafe { B::Peer::can_access(&self.handle, peer) }
    }

    unsafe fn enable_peer(&self, peer: &dyn ErasedContext) -> Result<()> {
        let peer = of_same_backend::<B>(peer)?;
        // SAFETY: the caller's promise.
        unsafe { B::Peer::enable(&self.handle, peer) }
    }

    unsafe fn disable_peer(&self, peer: &dyn ErasedContext) -> Result<()> {
        let peer = of_same_backend::<B>(peer)?;
        // SAFETY: the caller's promise.
        unsafe { B::Peer::disable(&self.handle, peer) }
    }

    fn extension(&self, type_id: TypeId) -> Option<&'static dyn Any> {
        B::extension(type_id)
    }

    fn as_any(&self) -> &dyn Any {
        &self.handle
    }
}

fn of_same_backend<B: Backend + 'static>(context: &dyn ErasedContext) -> Result<&B::Context> {
    let context = context.as_any().downcast_ref::<B::Context>();
    context.ok_or_else(|| ErrorKind::Unsupported { operation: "peer access to another backend" }.into())
}

pub(super) struct BufferOf<B: Backend>(<B::Buffers as Buffers<B>>::Raw);

impl<B: Backend + 'static> BufferOf<B> {
    /// The safe layer has checked that the buffer belongs to the queue's context, hence to its
    /// backend.
    fn of(buffer: &DynBuffer) -> Result<&<B::Buffers as Buffers<B>>::Raw> {
        match buffer.raw.downcast_ref::<Self>() {
            Some(buffer) => Ok(&buffer.0),
            None => Err(ErrorKind::Unsupported { operation: "a buffer of another backend" }.into()),
        }
    }
}

pub(super) struct QueueOf<B: Backend>(pub(super) Bound<B, B::Queue>);

impl<B: Backend> Debug for QueueOf<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<B: Backend + 'static> ErasedQueue for QueueOf<B> {
    #[expect(
        clippy::multiple_unsafe_ops_per_block,
        reason = "one operation runs, and one proof holds for all of them"
    )]
    unsafe fn submit(&self, work: Work<'_>, after: &[DynEvent]) -> Result<DynEvent> {
        let queue = &self.0.handle;
        let after = events_of::<B>(after)?;
        // SAFETY: each arm passes on the caller's promise for the same operation.
        let event = unsafe {
            match work {
                Work::Copy(dst, src, len) => queue.copy(dst, src, len, &after),
                Work::Rows(rows) => queue.copy_rows(rows, &after),
                Work::Strided(copy) => queue.copy_strided(copy, &after),
                Work::Convert(conversion) => queue.convert(conversion, &after),
                Work::FromPeer(peer, dst, src, len) => {
                    B::Peer::copy(queue, of_same_backend::<B>(peer)?, (dst, src), len, &after)
                }
                Work::Fill(dst, pattern, len) => queue.fill(dst, pattern, len, &after),
                Work::Barrier => queue.barrier(&after),
                Work::Task(task) => B::HostTasks::run(queue, &after, task),
                Work::Prefetch(pointer, len) => B::Advice::prefetch(queue, pointer, len, &after),
                Work::Advise(pointer, len, advice) => B::Advice::advise(queue, pointer, len, advice, &after),
                Work::Buffers(work, len) => {
                    B::Buffers::submit(queue, work.try_map(BufferOf::<B>::of)?, len, &after)
                }
            }
        }?;
        Ok(DynEvent::erase::<B>(event))
    }

    fn allocate(&self, layout: Layout) -> Result<(NonNull<u8>, DynEvent)> {
        let (pointer, event) = B::QueueMemory::allocate(&self.0.handle, layout)?;
        Ok((pointer, DynEvent::erase::<B>(event)))
    }

    unsafe fn free(&self, block: &Block, after: &[DynEvent]) -> Result<()> {
        let after = events_of::<B>(after)?;
        // SAFETY: the caller's promise.
        unsafe { B::QueueMemory::free(&self.0.handle, block, &after) }
    }

    fn as_any(&self) -> &dyn Any {
        &self.0.handle
    }
}

fn events_of<B: Backend + 'static>(events: &[DynEvent]) -> Result<Vec<B::Event>> {
    events.iter().map(DynEvent::downcast::<B>).collect()
}
