//! Shared by both host backends: the calling thread runs each operation at once.

use core::time::Duration;

use super::{BUFFER_KIND, HostBuffer, HostDevice, HostEvent, HostQueue};
use crate::DeviceInfo;
use crate::backend::{
    Advice, Backend, Block, BufferWork, Buffers, ContextOps, DeviceOps, EventOps, EventStatus, HostTasks,
    MemAdvice, Peer, QueueOps,
};
use crate::error::Result;
use crate::memcpy;
use crate::runs::fill_pattern;

/// The abilities of a host backend.
#[derive(Clone, Copy, Debug)]
pub struct Synchronous;

impl DeviceOps for HostDevice {
    fn info(&self) -> DeviceInfo {
        self.info
    }
}

impl EventOps for HostEvent {
    fn status(&self) -> Result<EventStatus> {
        Ok(EventStatus::Complete)
    }

    fn wait(&self, _: Duration) -> Result<()> {
        Ok(())
    }
}

impl<B: Backend<Queue = Self, Event = HostEvent>> QueueOps<B> for HostQueue {
    unsafe fn copy(&self, dst: *mut u8, src: *const u8, len: usize, _: &[HostEvent]) -> Result<HostEvent> {
        // SAFETY: the caller's promise: live, disjoint, no conflicting access.
        unsafe { memcpy::copy(dst, src, len) };
        Ok(HostEvent)
    }

    unsafe fn fill(&self, dst: *mut u8, pattern: &[u8], len: usize, _: &[HostEvent]) -> Result<HostEvent> {
        // SAFETY: the caller's promise; a pattern is the caller's own bytes, which no device memory
        // has.
        unsafe { fill_pattern(dst, pattern, len) };
        Ok(HostEvent)
    }

    unsafe fn barrier(&self, _: &[HostEvent]) -> Result<HostEvent> {
        Ok(HostEvent)
    }
}

impl<B: Backend<Queue = HostQueue, Event = HostEvent>> Buffers<B> for Synchronous {
    type Raw = HostBuffer;

    fn create(context: &B::Context, size: usize) -> Result<HostBuffer> {
        let layout = crate::Request::new(BUFFER_KIND, size).layout()?;
        let pointer = context.allocate(BUFFER_KIND, layout)?;
        // An opaque object has defined content from the start: reading it back is safe.
        // SAFETY: fresh memory of that size.
        unsafe { pointer.as_ptr().write_bytes(0, size) };
        Ok(HostBuffer { block: Block { pointer, size, alignment: layout.align(), kind: BUFFER_KIND } })
    }

    fn place(raw: &HostBuffer) -> (usize, usize) {
        (raw.block.address(), 0)
    }

    unsafe fn destroy(context: &B::Context, raw: HostBuffer) {
        // SAFETY: allocated by `create`; the caller promises that nothing uses it.
        unsafe { context.free(&raw.block) };
    }

    unsafe fn submit(
        queue: &HostQueue,
        work: BufferWork<'_, HostBuffer>,
        len: usize,
        after: &[HostEvent],
    ) -> Result<HostEvent> {
        // SAFETY: the caller's promise.
        unsafe { work.in_memory::<B>(queue, |raw| raw.block.pointer.as_ptr(), len, after) }
    }
}

impl<B: Backend<Queue = HostQueue, Event = HostEvent>> HostTasks<B> for Synchronous {
    unsafe fn run<F: FnOnce() + Send + 'static>(
        _: &HostQueue,
        _: &[HostEvent],
        task: F,
    ) -> Result<HostEvent> {
        task();
        Ok(HostEvent)
    }
}

/// There is one device, the machine, so every peer is the same device.
impl<B: Backend> Peer<B> for Synchronous {
    unsafe fn can_access(_: &B::Context, _: &B::Context) -> Result<bool> {
        Ok(true)
    }

    unsafe fn enable(_: &B::Context, _: &B::Context) -> Result<()> {
        Ok(())
    }

    unsafe fn disable(_: &B::Context, _: &B::Context) -> Result<()> {
        Ok(())
    }
}

impl<B: Backend<Queue = HostQueue, Event = HostEvent>> Advice<B> for Synchronous {
    unsafe fn prefetch(_: &HostQueue, _: *const u8, _: usize, _: &[HostEvent]) -> Result<HostEvent> {
        Ok(HostEvent)
    }

    unsafe fn advise(
        _: &HostQueue,
        _: *const u8,
        _: usize,
        _: MemAdvice,
        _: &[HostEvent],
    ) -> Result<HostEvent> {
        Ok(HostEvent)
    }
}
