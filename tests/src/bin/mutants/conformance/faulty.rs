//! A backend with one fault.

use core::alloc::Layout;
use core::convert::Infallible;
use core::ffi::CStr;
use core::ptr::NonNull;
use core::time::Duration;
use std::sync::Arc;

use usm_core::backend::mock::{Mock, MockBuffer, MockContext, MockDevice, MockEvent, MockQueue};
use usm_core::backend::{
    Advice, BufferWork, Buffers, ContextOps, DeviceOps, EventOps, HostTasks, QueueOps, Rows, Unsupported,
};
use usm_core::{
    AllocKind, Backend, BackendKind, Block, ContextState, Deferred, DeviceInfo, ErrorKind, EventStatus,
    MemAdvice, PointerInfo, QueueOrder, Result,
};
use usm_kernel::{BuildError, Code, Formats, FunctionInfo, Programmable};

macro_rules! faults {
    ($($(#[$what:meta])* $fault:ident),+ $(,)?) => {
        /// The fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Fault {
            /// No fault.
            None,
            $($(#[$what])* $fault),+
        }

        /// All faults.
        pub(crate) const FAULTS: [Fault; [$(stringify!($fault)),+].len()] = [$(Fault::$fault),+];
    };
}

faults! {
    /// A copy waits for no event.
    CopyIgnoresEvents,
    /// A fill waits for no event.
    FillIgnoresEvents,
    /// A host task waits for no event.
    TaskIgnoresEvents,
    /// A barrier waits for none of its events.
    BarrierIgnoresEvents,
    /// A barrier without events waits for nothing.
    BarrierIgnoresQueue,
    /// In-order queues are out of order.
    QueueOutOfOrder,
    /// The event of a copy is complete at once.
    CopyLosesEvent,
    /// The event of a fill is complete at once.
    FillLosesEvent,
    /// An incomplete event reports complete.
    CompleteTooEarly,
    /// No event reports complete.
    NeverComplete,
    /// A wait returns at once.
    WaitReturns,
    /// Every wait ends at its limit.
    WaitTimesOut,
    /// A failed operation reports complete.
    StatusForgetsFailure,
    /// A wait for a failed operation succeeds.
    WaitForgetsFailure,
    /// A wait for the context returns at once.
    SynchronizeReturns,
    /// Memory of another kind than requested.
    OtherKind,
    /// Memory not aligned as requested.
    Misaligned,
    /// The same memory is allocated twice.
    GivenTwice,
    /// No memory is ever freed.
    FreesNothing,
    /// Each block is freed twice.
    FreesTwice,
    /// A query knows no pointer.
    KnowsNothing,
    /// A query counts the address one past the end as inside.
    OnePastTheEnd,
    /// A query returns the queried address as the base.
    BaseIsAddress,
    /// A query returns a size one byte too small.
    SizeIsLess,
    /// A query returns a device for host memory.
    HostHasDevice,
    /// A query of an unknown pointer is an error.
    UnknownIsError,
    /// A copy omits the last byte.
    CopiesLess,
    /// A copy swaps source and destination.
    CopiesBack,
    /// A fill omits the last pattern.
    FillsLess,
    /// A fill uses only the first byte of its pattern.
    FillsFirstByte,
    /// A copy of rows omits the last row.
    RowsLess,
    /// A host task is dropped.
    TaskDropped,
    /// A hint writes.
    HintWrites,
    /// A new buffer keeps the old content.
    BufferNotZero,
    /// A write of a buffer ignores its offset.
    BufferWriteFirst,
    /// A read of a buffer ignores its offset.
    BufferReadFirst,
    /// A fill of a buffer ignores its offset.
    BufferFillFirst,
    /// A copy between buffers ignores the offset of the source.
    BufferCopyFirst,
    /// Two buffers count as one object.
    BuffersAreOne,
}

/// The backend: the mock and a fault.
#[derive(Clone, Debug)]
pub(crate) struct Faulty {
    mock: Mock,
    fault: Fault,
}

#[derive(Clone, Debug)]
pub(crate) struct FaultyDevice(MockDevice, Fault);

#[derive(Clone, Debug)]
pub(crate) struct FaultyContext(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    mock: Arc<MockContext>,
    deferred: Deferred<Faulty>,
    fault: Fault,
    /// The last block, for the fault that allocates it again.
    last: std::sync::Mutex<Option<(usize, Layout, AllocKind)>>,
}

#[derive(Clone, Debug)]
pub(crate) struct FaultyQueue {
    mock: MockQueue,
    /// A queue for events that are complete at once.
    idle: MockQueue,
    fault: Fault,
}

#[derive(Clone, Debug)]
pub(crate) struct FaultyEvent {
    mock: MockEvent,
    fault: Fault,
}

/// The offset of misaligned memory in bytes.
const OFF: usize = 8;

impl Faulty {
    pub(crate) fn new(mock: Mock, fault: Fault) -> Self {
        Self { mock, fault }
    }
}

impl Inner {
    /// The mock's block.
    fn native(&self, block: &Block) -> Block {
        match self.fault {
            Fault::Misaligned => {
                let pointer = block.pointer.as_ptr().wrapping_sub(OFF);
                let pointer = NonNull::new(pointer).unwrap_or(block.pointer);
                Block { pointer, size: block.size + OFF, ..*block }
            }
            Fault::OtherKind => Block { kind: other(block.kind), ..*block },
            _ => *block,
        }
    }

    /// # Safety
    /// As [`Backend::free`]. The mock reports and does not free an unknown block.
    unsafe fn free(&self, block: &Block) {
        let native = self.native(block);
        if self.fault != Fault::FreesNothing {
            // SAFETY: the caller's promise.
            unsafe { self.mock.free(&native) };
        }
        if self.fault == Fault::FreesTwice {
            // SAFETY: the mock reports the misuse and frees nothing.
            unsafe { self.mock.free(&native) };
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let shared = self.mock.shared();
        // SAFETY: blocks of this context after their operations, each once.
        let free = |block: &Block| unsafe { self.free(block) };
        // SAFETY: as above.
        let destroy = |(raw, _): (MockBuffer, Fault)| unsafe { Mock::destroy(&self.mock, raw) };
        // SAFETY: the state of this context, and the blocks return to its mock.
        unsafe { self.deferred.drain(shared, shared.wait_limit(), free, destroy) };
    }
}

fn other(kind: AllocKind) -> AllocKind {
    match kind {
        AllocKind::Device => AllocKind::Shared,
        AllocKind::Shared => AllocKind::Host,
        AllocKind::Host | AllocKind::Unknown => AllocKind::Device,
    }
}

impl FaultyQueue {
    fn after(&self, ignores: Fault, after: &[FaultyEvent]) -> Vec<MockEvent> {
        if self.fault == ignores { Vec::new() } else { Self::all(after) }
    }

    fn all(after: &[FaultyEvent]) -> Vec<MockEvent> {
        after.iter().map(|event| event.mock.clone()).collect()
    }

    fn event(&self, mock: MockEvent) -> FaultyEvent {
        FaultyEvent { mock, fault: self.fault }
    }

    /// A complete event.
    fn complete_event(&self) -> Result<FaultyEvent> {
        // SAFETY: no events.
        let event = unsafe { self.idle.barrier(&[]) }?;
        event.wait(Duration::from_secs(1))?;
        Ok(self.event(event))
    }

    /// The event of an operation, or a complete one if the fault is `loses`.
    fn kept(&self, loses: Fault, event: MockEvent) -> Result<FaultyEvent> {
        if self.fault == loses { self.complete_event() } else { Ok(self.event(event)) }
    }

    fn first(&self, fault: Fault, offset: usize) -> usize {
        if self.fault == fault { 0 } else { offset }
    }
}

// SAFETY: the mock keeps the contract. A fault breaks it, so the caller checks the mock for misuse
// and stops at the first sign.
unsafe impl Backend for Faulty {
    const SYNCHRONOUS: bool = false;

    type Device = FaultyDevice;
    type Context = FaultyContext;
    type Queue = FaultyQueue;
    type Event = FaultyEvent;
    type Buffers = Self;
    type HostTasks = Self;
    type Advice = Self;
    type Ipc = Unsupported;
    type Peer = Unsupported;
    type QueueMemory = Unsupported;

    fn for_each_device(&self, visit: &mut dyn FnMut(FaultyDevice)) -> Result<()> {
        self.mock.for_each_device(&mut |device| visit(FaultyDevice(device, self.fault)))
    }

    fn create_context(&self, device: &FaultyDevice) -> Result<FaultyContext> {
        Ok(FaultyContext(Arc::new(Inner {
            mock: self.mock.create_context(&device.0)?,
            deferred: Deferred::new(),
            fault: device.1,
            last: std::sync::Mutex::new(None),
        })))
    }
}

impl DeviceOps for FaultyDevice {
    fn info(&self) -> DeviceInfo {
        self.0.info()
    }
}

impl ContextOps<Faulty> for FaultyContext {
    fn shared(&self) -> &ContextState {
        self.0.mock.shared()
    }

    fn deferred(&self) -> Option<&Deferred<Faulty>> {
        Some(&self.0.deferred)
    }

    fn create_queue(&self, order: QueueOrder) -> Result<FaultyQueue> {
        let fault = self.0.fault;
        let given = if fault == Fault::QueueOutOfOrder { QueueOrder::OutOfOrder } else { order };
        let queue = |order| self.0.mock.create_queue(order);
        Ok(FaultyQueue { mock: queue(given)?, idle: queue(QueueOrder::InOrder)?, fault })
    }

    fn allocate(&self, kind: AllocKind, layout: Layout) -> Result<NonNull<u8>> {
        let inner = &self.0;
        match inner.fault {
            Fault::OtherKind => inner.mock.allocate(other(kind), layout),
            Fault::Misaligned => {
                let larger = Layout::from_size_align(layout.size() + OFF, layout.align());
                let pointer = inner.mock.allocate(kind, larger.map_err(|_| ErrorKind::SizeOverflow)?)?;
                // SAFETY: `OFF` bytes into a block that is as much larger.
                Ok(unsafe { pointer.add(OFF) })
            }
            Fault::GivenTwice => {
                let mut last = inner.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if let Some((address, of, given)) = *last {
                    if of == layout && given == kind {
                        *last = None;
                        let pointer = NonNull::new(core::ptr::with_exposed_provenance_mut(address));
                        return pointer.ok_or_else(|| ErrorKind::ZeroSize.into());
                    }
                }
                let pointer = inner.mock.allocate(kind, layout)?;
                *last = Some((pointer.as_ptr().expose_provenance(), layout, kind));
                Ok(pointer)
            }
            _ => inner.mock.allocate(kind, layout),
        }
    }

    unsafe fn free(&self, block: &Block) {
        // SAFETY: the caller's promise.
        unsafe { self.0.free(block) };
    }

    fn query(&self, address: usize) -> Result<PointerInfo> {
        let inner = &self.0;
        let mut info = inner.mock.query(address)?;
        let unknown = info.kind == AllocKind::Unknown;
        match inner.fault {
            Fault::KnowsNothing => info = PointerInfo::UNKNOWN,
            Fault::OnePastTheEnd if unknown => {
                let before = inner.mock.query(address.saturating_sub(1))?;
                info = PointerInfo { size: before.size + usize::from(before.size > 0), ..before };
            }
            Fault::BaseIsAddress if !unknown => info.base = address,
            Fault::SizeIsLess if !unknown => info.size -= 1,
            Fault::HostHasDevice if info.kind == AllocKind::Host => info.device = Some(0),
            Fault::UnknownIsError if unknown => {
                return Err(ErrorKind::Native { operation: "a question about a pointer" }.into());
            }
            _ => {}
        }
        Ok(info)
    }

    fn synchronize(&self, limit: Duration) -> Result<()> {
        match self.0.fault {
            Fault::SynchronizeReturns => Ok(()),
            _ => self.0.mock.synchronize(limit),
        }
    }

    fn for_each_pending(&self, limit: Duration, visit: &mut dyn FnMut(FaultyEvent)) -> Result<()> {
        let fault = self.0.fault;
        self.0.mock.for_each_pending(limit, &mut |mock| visit(FaultyEvent { mock, fault }))
    }
}

impl QueueOps<Faulty> for FaultyQueue {
    unsafe fn copy(
        &self,
        dst: *mut u8,
        src: *const u8,
        len: usize,
        after: &[FaultyEvent],
    ) -> Result<FaultyEvent> {
        let after = self.after(Fault::CopyIgnoresEvents, after);
        let (dst, src) =
            if self.fault == Fault::CopiesBack { (src.cast_mut(), dst.cast_const()) } else { (dst, src) };
        let len = if self.fault == Fault::CopiesLess && len > 1 { len - 1 } else { len };
        // SAFETY: the caller's promise.
        let event = unsafe { self.mock.copy(dst, src, len, &after) }?;
        self.kept(Fault::CopyLosesEvent, event)
    }

    unsafe fn copy_rows(&self, rows: &Rows, after: &[FaultyEvent]) -> Result<FaultyEvent> {
        if self.fault != Fault::RowsLess {
            return Err(ErrorKind::Unsupported { operation: "a copy of rows" }.into());
        }
        let after = Self::all(after);
        let mut events = Vec::new();
        for row in 0..rows.rows - 1 {
            let (dst, src) =
                (rows.dst.wrapping_add(row * rows.dst_pitch), rows.src.wrapping_add(row * rows.src_pitch));
            // SAFETY: the caller's promise, for this row.
            events.push(unsafe { self.mock.copy(dst, src, rows.width, &after) }?);
        }
        // SAFETY: events of this context.
        Ok(self.event(unsafe { self.mock.barrier(&events) }?))
    }

    unsafe fn fill(
        &self,
        dst: *mut u8,
        pattern: &[u8],
        len: usize,
        after: &[FaultyEvent],
    ) -> Result<FaultyEvent> {
        let after = self.after(Fault::FillIgnoresEvents, after);
        let pattern = if self.fault == Fault::FillsFirstByte { &pattern[..1] } else { pattern };
        let less = self.fault == Fault::FillsLess && len > pattern.len();
        let len = if less { len - pattern.len() } else { len };
        // SAFETY: the caller's promise.
        let event = unsafe { self.mock.fill(dst, pattern, len, &after) }?;
        self.kept(Fault::FillLosesEvent, event)
    }

    unsafe fn barrier(&self, after: &[FaultyEvent]) -> Result<FaultyEvent> {
        let ignored = if after.is_empty() { Fault::BarrierIgnoresQueue } else { Fault::BarrierIgnoresEvents };
        if self.fault == ignored {
            return self.complete_event();
        }
        let after = Self::all(after);
        // SAFETY: the caller's promise.
        Ok(self.event(unsafe { self.mock.barrier(&after) }?))
    }
}

impl EventOps for FaultyEvent {
    fn status(&self) -> Result<EventStatus> {
        let status = self.mock.status();
        match self.fault {
            Fault::CompleteTooEarly => status.map(|_| EventStatus::Complete),
            Fault::NeverComplete => status.map(|_| EventStatus::Pending),
            Fault::StatusForgetsFailure => Ok(status.unwrap_or(EventStatus::Complete)),
            _ => status,
        }
    }

    fn wait(&self, limit: Duration) -> Result<()> {
        match self.fault {
            Fault::WaitReturns => Ok(()),
            Fault::WaitTimesOut => Err(ErrorKind::Timeout { limit_ms: limit.as_millis() as u64 }.into()),
            Fault::WaitForgetsFailure => self.mock.wait(limit).or(Ok(())),
            _ => self.mock.wait(limit),
        }
    }
}

impl HostTasks<Self> for Faulty {
    unsafe fn run<F: FnOnce() + Send + 'static>(
        queue: &FaultyQueue,
        after: &[FaultyEvent],
        task: F,
    ) -> Result<FaultyEvent> {
        if queue.fault == Fault::TaskDropped {
            return queue.complete_event();
        }
        let after = queue.after(Fault::TaskIgnoresEvents, after);
        // SAFETY: the caller's promise.
        Ok(queue.event(unsafe { <Mock as HostTasks<Mock>>::run(&queue.mock, &after, task) }?))
    }
}

impl Advice<Self> for Faulty {
    unsafe fn prefetch(
        queue: &FaultyQueue,
        pointer: *const u8,
        len: usize,
        after: &[FaultyEvent],
    ) -> Result<FaultyEvent> {
        let after = FaultyQueue::all(after);
        if queue.fault == Fault::HintWrites {
            // SAFETY: live memory of that size.
            let event = unsafe { queue.mock.fill(pointer.cast_mut(), &[0], len, &after) };
            return Ok(queue.event(event?));
        }
        // SAFETY: the caller's promise.
        Ok(queue.event(unsafe { <Mock as Advice<Mock>>::prefetch(&queue.mock, pointer, len, &after) }?))
    }

    unsafe fn advise(
        queue: &FaultyQueue,
        pointer: *const u8,
        len: usize,
        advice: MemAdvice,
        after: &[FaultyEvent],
    ) -> Result<FaultyEvent> {
        let after = FaultyQueue::all(after);
        // SAFETY: the caller's promise.
        Ok(queue.event(unsafe { <Mock as Advice<Mock>>::advise(&queue.mock, pointer, len, advice, &after) }?))
    }
}

impl Buffers<Self> for Faulty {
    type Raw = (MockBuffer, Fault);

    fn create(context: &FaultyContext, size: usize) -> Result<Self::Raw> {
        let (inner, fault) = (&context.0, context.0.fault);
        let buffer = <Mock as Buffers<Mock>>::create(&inner.mock, size)?;
        if fault == Fault::BufferNotZero {
            let queue = inner.mock.create_queue(QueueOrder::InOrder)?;
            // SAFETY: the whole of a buffer that only this function has.
            let event = unsafe { Mock::submit(&queue, BufferWork::Fill((&buffer, 0), &[0xCB]), size, &[]) }?;
            event.wait(Duration::from_secs(1))?;
        }
        Ok((buffer, fault))
    }

    fn place((buffer, fault): &Self::Raw) -> (usize, usize) {
        if *fault == Fault::BuffersAreOne { (1, 0) } else { Mock::place(buffer) }
    }

    unsafe fn destroy(context: &FaultyContext, (buffer, _): Self::Raw) {
        // SAFETY: the caller's promise.
        unsafe { Mock::destroy(&context.0.mock, buffer) };
    }

    unsafe fn submit(
        queue: &FaultyQueue,
        work: BufferWork<'_, Self::Raw>,
        len: usize,
        after: &[FaultyEvent],
    ) -> Result<FaultyEvent> {
        let (work, after) = match work.try_map(|(buffer, _)| Ok(buffer))? {
            BufferWork::Write((to, offset), src) => {
                let offset = queue.first(Fault::BufferWriteFirst, offset);
                (BufferWork::Write((to, offset), src), queue.after(Fault::CopyIgnoresEvents, after))
            }
            BufferWork::Read((from, offset), dst) => {
                let offset = queue.first(Fault::BufferReadFirst, offset);
                (BufferWork::Read((from, offset), dst), queue.after(Fault::CopyIgnoresEvents, after))
            }
            BufferWork::Fill((to, offset), pattern) => {
                let offset = queue.first(Fault::BufferFillFirst, offset);
                (BufferWork::Fill((to, offset), pattern), queue.after(Fault::FillIgnoresEvents, after))
            }
            BufferWork::Copy(to, (from, offset)) => {
                let offset = queue.first(Fault::BufferCopyFirst, offset);
                (BufferWork::Copy(to, (from, offset)), queue.after(Fault::CopyIgnoresEvents, after))
            }
        };
        // SAFETY: the caller's promise.
        let event = unsafe { Mock::submit(&queue.mock, work, len, &after) };
        Ok(queue.event(event?))
    }
}

// SAFETY: there is no function to launch.
unsafe impl Programmable for Faulty {
    type Module = Infallible;
    type Function = Infallible;

    fn formats(_: &FaultyContext) -> Formats {
        Formats::empty()
    }

    fn build(_: &FaultyContext, code: &Code<'_>, _: &str) -> core::result::Result<Infallible, BuildError> {
        let (given, taken, backend) = (code.format(), Formats::empty(), BackendKind::Mock);
        Err(BuildError::Format { format: given, formats: taken, backend })
    }

    fn function(
        module: &Infallible,
        _: &CStr,
    ) -> core::result::Result<(Infallible, FunctionInfo), BuildError> {
        match *module {}
    }

    unsafe fn launch(
        _: &FaultyQueue,
        function: &Infallible,
        _: &usm_kernel::backend::Grid,
        _: &[usm_kernel::backend::Slot<'_>],
        _: &[FaultyEvent],
    ) -> Result<FaultyEvent> {
        match *function {}
    }
}
