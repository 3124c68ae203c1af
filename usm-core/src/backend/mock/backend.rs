//! The handles of the simulated driver and their [`Backend`] implementation.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::ptr::NonNull;
use core::time::Duration;

use super::Mock;
use super::engine::{Engine, MockEvent, Submission, Touch};
use super::script::Operation;
use crate::backend::{
    Advice, Backend, Block, BufferWork, Buffers, ContextOps, DeviceOps, EventOps, HostTasks, MemAdvice,
    PointerInfo, QueueMemory, QueueOps, QueueOrder,
};
use crate::context_state::ContextState;
use crate::deadline::Deadline;
use crate::deferred::Deferred;
use crate::error::{ErrorKind, Result};
use crate::sync::next_id;
use crate::{AllocKind, DeviceInfo, process};

/// A device of the simulated driver.
#[derive(Clone, Debug)]
pub struct MockDevice {
    pub(super) info: DeviceInfo,
    pub(super) peer_access: bool,
}

impl MockDevice {
    pub(super) fn new(mock: &Mock, ordinal: usize) -> Self {
        Self { info: mock.devices[ordinal], peer_access: mock.peer_access }
    }
}

/// A context of the simulated driver.
#[derive(Debug)]
pub struct MockContext {
    pub(super) engine: Arc<Engine>,
    pub(super) device: MockDevice,
    pub(super) shared: ContextState,
    deferred: Deferred<Mock>,
}

impl Drop for MockContext {
    fn drop(&mut self) {
        let Ok(_inside) = process::ask() else { return };
        let (engine, id) = (&self.engine, self.shared.id());
        // SAFETY: `drain` hands out blocks of this context whose operations are complete, each
        // once.
        let free = |block: &Block| unsafe { engine.free(block, id) };
        // SAFETY: as above.
        let destroy = |raw: MockBuffer| unsafe { engine.free(&raw.block, id) };
        // SAFETY: the state of this context, and blocks go back to its engine.
        unsafe { self.deferred.drain(&self.shared, self.shared.wait_limit(), free, destroy) };
        engine.closed_context();
    }
}

/// A queue of the simulated driver.
#[derive(Clone, Debug)]
pub struct MockQueue {
    context: Arc<MockContext>,
    pub(super) id: u64,
    order: QueueOrder,
}

/// A buffer of the simulated driver.
#[derive(Debug)]
pub struct MockBuffer {
    block: Block,
}

/// An address that a queued operation carries to the thread that runs it.
#[derive(Clone, Copy)]
struct Address(*mut u8);

// SAFETY: the operation's contract keeps the memory valid and free of conflicting access until its
// event is complete.
unsafe impl Send for Address {}

impl Address {
    /// A method, so that closures capture the whole wrapper and stay `Send`.
    fn get(self) -> *mut u8 {
        self.0
    }
}

impl MockQueue {
    fn submit(
        &self,
        operation: Operation,
        bytes: usize,
        after: &[MockEvent],
        touches: Vec<Touch>,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<MockEvent> {
        let submission = Submission {
            operation,
            queue: self.id,
            order: self.order,
            context: self.context.shared.id(),
            bytes,
            after,
            touches,
        };
        self.context.engine.submit(submission, work)
    }
}

impl QueueOps<Mock> for MockQueue {
    unsafe fn copy(
        &self,
        dst: *mut u8,
        src: *const u8,
        len: usize,
        after: &[MockEvent],
    ) -> Result<MockEvent> {
        let (to, from) = (Address(dst), Address(src.cast_mut()));
        self.submit(
            Operation::Copy,
            len,
            after,
            vec![Touch::write(dst, len), Touch::read(src, len)],
            move || {
                // SAFETY: the caller's promise holds until the event is complete, which happens
                // after this.
                unsafe { core::ptr::copy_nonoverlapping(from.get(), to.get(), len) };
            },
        )
    }

    unsafe fn fill(
        &self,
        dst: *mut u8,
        pattern: &[u8],
        len: usize,
        after: &[MockEvent],
    ) -> Result<MockEvent> {
        let width = pattern.len();
        if !matches!(width, 1 | 2 | 4 | 8 | 16) || len % width != 0 {
            self.context.engine.misused(dst, len);
            return Err(ErrorKind::BadPattern { width, len }.into());
        }
        let (to, pattern) = (Address(dst), pattern.to_vec());
        self.submit(Operation::Fill, len, after, vec![Touch::write(dst, len)], move || {
            for start in (0..len).step_by(pattern.len()) {
                let place = to.get().wrapping_add(start);
                // SAFETY: the caller's promise holds until the event is complete, which happens
                // after this; `len` is a multiple of the width. This makes no slice of the range,
                // which may be uninitialised.
                unsafe { core::ptr::copy_nonoverlapping(pattern.as_ptr(), place, pattern.len()) };
            }
        })
    }

    unsafe fn barrier(&self, after: &[MockEvent]) -> Result<MockEvent> {
        let all = if after.is_empty() {
            self.context.engine.outstanding(self.context.shared.id(), Some(self.id))
        } else {
            after.to_vec()
        };
        self.submit(Operation::Barrier, 0, &all, Vec::new(), || {})
    }
}

// SAFETY: memory comes from the global allocator (2); the engine runs work only after its events
// and, in order, after what came before (3), keeps refused work out of the queue (4), completes
// events after the work (6); waits poll with a limit (5); `MockContext` drains its list (9); freed
// blocks are checked against queued work (7).
unsafe impl Backend for Mock {
    const SYNCHRONOUS: bool = false;

    type Device = MockDevice;
    type Context = Arc<MockContext>;
    type Queue = MockQueue;
    type Event = MockEvent;
    type Buffers = Self;
    type HostTasks = Self;
    type Advice = Self;
    type Ipc = Self;
    type Peer = Self;
    type QueueMemory = Self;

    fn for_each_device(&self, visit: &mut dyn FnMut(MockDevice)) -> Result<()> {
        (0..self.devices.len()).for_each(|ordinal| visit(MockDevice::new(self, ordinal)));
        Ok(())
    }

    fn create_context(&self, device: &MockDevice) -> Result<Arc<MockContext>> {
        let _inside = process::work()?;
        self.engine.call(Operation::CreateContext, 0, 0)?;
        self.engine.opened_context();
        let shared = ContextState::with_shared_ledger(device.info, self.engine.ledger(device.info.ordinal))
            .of_library(Arc::as_ptr(&self.engine).addr());
        // The gate belongs to the engine.
        let (engine, id) = (Arc::downgrade(&self.engine), shared.id());
        let idle = move |limit| engine.upgrade().map_or(Ok(()), |engine| synchronize(&engine, id, limit));
        Ok(Arc::new(MockContext {
            engine: Arc::clone(&self.engine),
            device: device.clone(),
            shared: shared.with_idle_wait(idle),
            deferred: Deferred::new(),
        }))
    }
}

impl DeviceOps for MockDevice {
    fn info(&self) -> DeviceInfo {
        self.info
    }
}

impl ContextOps<Mock> for Arc<MockContext> {
    fn shared(&self) -> &ContextState {
        &self.shared
    }

    fn deferred(&self) -> Option<&Deferred<Mock>> {
        Some(&self.deferred)
    }

    fn create_queue(&self, order: QueueOrder) -> Result<MockQueue> {
        self.engine.call(Operation::CreateQueue, 0, 0)?;
        Ok(MockQueue { context: self.clone(), id: next_id(), order })
    }

    fn allocate(&self, kind: AllocKind, layout: Layout) -> Result<NonNull<u8>> {
        if self.shared.info().capabilities.of(kind).is_empty() {
            return Err(ErrorKind::Unsupported { operation: "this kind of memory on this device" }.into());
        }
        self.engine.allocate(kind, layout, self.shared.id(), false)
    }

    unsafe fn free(&self, block: &Block) {
        // SAFETY: the caller's promise.
        unsafe { self.engine.free(block, self.shared.id()) };
    }

    fn query(&self, address: usize) -> Result<PointerInfo> {
        self.engine.call(Operation::Query, 0, 0)?;
        let shared = &self.shared;
        Ok(self.engine.find(address, shared.id()).map_or(PointerInfo::UNKNOWN, |(base, size, kind)| {
            let device = (kind != AllocKind::Host).then_some(shared.info().ordinal);
            PointerInfo { kind, base, size, device, context: shared.id() }
        }))
    }

    fn synchronize(&self, limit: Duration) -> Result<()> {
        synchronize(&self.engine, self.shared.id(), limit)
    }

    fn for_each_pending(&self, _: Duration, visit: &mut dyn FnMut(MockEvent)) -> Result<()> {
        self.engine.outstanding(self.shared.id(), None).into_iter().for_each(visit);
        Ok(())
    }
}

fn synchronize(engine: &Arc<Engine>, context: u64, limit: Duration) -> Result<()> {
    let mut deadline = Deadline::after(limit);
    let mut outcome = Ok(());
    for event in engine.outstanding(context, None) {
        outcome = outcome.and(deadline.wait(|left| event.wait(left)));
    }
    outcome
}

impl Buffers<Mock> for Mock {
    type Raw = MockBuffer;

    fn create(context: &Arc<MockContext>, size: usize) -> Result<MockBuffer> {
        let layout = crate::Request::new(AllocKind::Device, size).layout()?;
        let pointer = context.engine.allocate(AllocKind::Device, layout, context.shared.id(), true)?;
        // SAFETY: fresh memory of that size.
        unsafe { pointer.as_ptr().write_bytes(0, size) };
        Ok(MockBuffer { block: Block { pointer, size, alignment: layout.align(), kind: AllocKind::Device } })
    }

    fn place(raw: &MockBuffer) -> (usize, usize) {
        (raw.block.address(), 0)
    }

    unsafe fn destroy(context: &Arc<MockContext>, raw: MockBuffer) {
        // SAFETY: allocated by `create`; the caller promises that nothing uses it.
        unsafe { context.engine.free(&raw.block, context.shared.id()) };
    }

    unsafe fn submit(
        queue: &MockQueue,
        work: BufferWork<'_, MockBuffer>,
        len: usize,
        after: &[MockEvent],
    ) -> Result<MockEvent> {
        // SAFETY: the caller's promise.
        unsafe { work.in_memory::<Mock>(queue, |raw| raw.block.pointer.as_ptr(), len, after) }
    }
}

impl HostTasks<Mock> for Mock {
    unsafe fn run<F: FnOnce() + Send + 'static>(
        queue: &MockQueue,
        after: &[MockEvent],
        task: F,
    ) -> Result<MockEvent> {
        queue.submit(Operation::Task, 0, after, Vec::new(), task)
    }
}

impl Advice<Mock> for Mock {
    unsafe fn prefetch(
        queue: &MockQueue,
        pointer: *const u8,
        len: usize,
        after: &[MockEvent],
    ) -> Result<MockEvent> {
        queue.submit(Operation::Advice, len, after, vec![Touch::read(pointer, len)], || {})
    }

    unsafe fn advise(
        queue: &MockQueue,
        pointer: *const u8,
        len: usize,
        _: MemAdvice,
        after: &[MockEvent],
    ) -> Result<MockEvent> {
        queue.submit(Operation::Advice, len, after, vec![Touch::read(pointer, len)], || {})
    }
}

impl QueueMemory<Mock> for Mock {
    fn allocate(queue: &MockQueue, layout: Layout) -> Result<(NonNull<u8>, MockEvent)> {
        let context = &queue.context;
        context.engine.allocate_in_order(queue.id, queue.order, context.shared.id(), layout)
    }

    unsafe fn free(queue: &MockQueue, block: &Block, after: &[MockEvent]) -> Result<()> {
        let context = &queue.context;
        // SAFETY: the caller's promise.
        unsafe { context.engine.free_in_order(queue.id, queue.order, context.shared.id(), block, after) }
    }
}
