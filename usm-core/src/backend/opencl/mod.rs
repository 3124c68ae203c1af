//! OpenCL with the extension `cl_intel_unified_shared_memory`.
//!
//! The loader (`libOpenCL.so.1`, or the file that `USM_OPENCL_LIBRARY` names) is opened at run time. The extension's functions
//! belong to a platform and are asked of it; a platform without them is listed with no capabilities, serves
//! buffers, and answers [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) to USM.
//!
//! # What drivers do
//! - Success does not mean aligned: some honour alignments up to 8 KiB only. The pointer is checked.
//! - Work that was never flushed may never start. Asking for an event flushes its queue, and so does naming it in another queue.
//! - A failed operation need not stop the next one of an in-order queue; here each names the one before.
//! - What follows an event that a program set to a failure may be called complete, or end the process; here operations remember
//!   such events, and what comes after a failed one is refused.
//! - Building contexts and queues blocks for as long as the driver takes.

mod device;
mod error;
mod loader;
mod memory;
mod queue;
pub mod raw;

use core::alloc::Layout;
use core::ptr::NonNull;
use core::time::Duration;
use std::path::Path;

pub use device::OpenClDevice;
pub use memory::{OpenClBuffer, OpenClContext};
pub use queue::{OpenClEvent, OpenClQueue};

use crate::backend::roster::Completion;
use crate::backend::{
    Advice, Backend, Block, Buffers, EventStatus, MemAdvice, PointerInfo, QueueOrder, Unsupported,
};
use crate::deferred::Deferred;
use crate::error::Result;
use crate::shared::Shared;
use crate::{AllocKind, DeviceInfo};

/// The backend: the opened loader.
#[derive(Clone, Copy, Debug)]
pub struct OpenCl {
    library: &'static loader::Library,
}

impl OpenCl {
    /// Opens the file that `USM_OPENCL_LIBRARY` names, else the loader under its usual name.
    ///
    /// # Errors
    /// [`ErrorKind::LibraryNotFound`](crate::ErrorKind::LibraryNotFound),
    /// [`ErrorKind::SymbolMissing`](crate::ErrorKind::SymbolMissing).
    pub fn load() -> Result<Self> {
        loader::open_usual().map(|library| Self { library })
    }

    /// Opens the loader at `path`. A path opened before gives the same library.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn open(path: &Path) -> Result<Self> {
        loader::open(path).map(|library| Self { library })
    }

    /// The file that was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.library.path
    }
}

// SAFETY: the runtime gives disjoint memory of the kind asked for, and its alignment is verified (2); every call takes a
// wait list (3); a status other than success means that nothing was enqueued (4); waiting polls the status up to the
// limit and flushes first (5, 6); blocks are freed in the context that allocated them (7); unknown pointers are a value
// (8); the context drains its list (9); operations of an in-order queue name their predecessor, and
// those behind events of a program remember them (11).
unsafe impl Backend for OpenCl {
    const SYNCHRONOUS: bool = false;
    const COUNTED: bool = true;

    type Device = OpenClDevice;
    type Context = OpenClContext;
    type Queue = OpenClQueue;
    type Event = OpenClEvent;
    type Buffers = Self;
    type HostTasks = Unsupported;
    type Advice = Self;
    type Ipc = Unsupported;
    type Peer = Unsupported;
    type QueueMemory = Unsupported;

    fn for_each_device(&self, visit: &mut dyn FnMut(OpenClDevice)) -> Result<()> {
        device::for_each(self.library, visit)
    }

    fn device_info(device: &OpenClDevice) -> DeviceInfo {
        device.info()
    }

    fn create_context(&self, device: &OpenClDevice) -> Result<OpenClContext> {
        OpenClContext::over(device)
    }

    fn shared(context: &OpenClContext) -> &Shared {
        context.shared()
    }

    fn deferred(context: &OpenClContext) -> Option<&Deferred<Self>> {
        Some(context.deferred())
    }

    fn create_queue(context: &OpenClContext, order: QueueOrder) -> Result<OpenClQueue> {
        OpenClQueue::create(context, order)
    }

    fn allocate(context: &OpenClContext, kind: AllocKind, layout: Layout) -> Result<NonNull<u8>> {
        context.allocate(kind, layout)
    }

    unsafe fn free(context: &OpenClContext, block: &Block) {
        // SAFETY: the caller's promise.
        unsafe { context.free(block) };
    }

    fn query(context: &OpenClContext, address: usize) -> Result<PointerInfo> {
        context.query(address)
    }

    unsafe fn copy(
        queue: &OpenClQueue,
        dst: *mut u8,
        src: *const u8,
        len: usize,
        after: &[OpenClEvent],
    ) -> Result<OpenClEvent> {
        // SAFETY: the caller's promise.
        unsafe { queue.copy(dst, src, len, after) }
    }

    unsafe fn fill(
        queue: &OpenClQueue,
        dst: *mut u8,
        pattern: &[u8],
        len: usize,
        after: &[OpenClEvent],
    ) -> Result<OpenClEvent> {
        // SAFETY: the caller's promise.
        unsafe { queue.fill(dst, pattern, len, after) }
    }

    unsafe fn barrier(queue: &OpenClQueue, after: &[OpenClEvent]) -> Result<OpenClEvent> {
        queue.barrier(after)
    }

    fn status(event: &OpenClEvent) -> Result<EventStatus> {
        event.status()
    }

    fn wait(event: &OpenClEvent, limit: Duration) -> Result<()> {
        event.wait(limit)
    }

    fn synchronize(context: &OpenClContext, limit: Duration) -> Result<()> {
        context.synchronize(limit)
    }

    fn settle(context: &OpenClContext, limit: Duration) -> Result<()> {
        context.settle(limit)
    }

    fn for_each_pending(
        context: &OpenClContext,
        limit: Duration,
        visit: &mut dyn FnMut(OpenClEvent),
    ) -> Result<()> {
        context.submitted(limit)?.into_iter().for_each(visit);
        Ok(())
    }
}

impl Buffers<Self> for OpenCl {
    type Raw = OpenClBuffer;

    fn create(context: &OpenClContext, size: usize) -> Result<OpenClBuffer> {
        context.create_buffer(size)
    }

    fn argument(raw: &OpenClBuffer) -> Option<usize> {
        Some(raw.as_raw() as usize)
    }

    fn place(raw: &OpenClBuffer) -> (usize, usize) {
        raw.place
    }

    unsafe fn destroy(_: &OpenClContext, raw: OpenClBuffer) {
        drop(raw);
    }

    unsafe fn write(
        queue: &OpenClQueue,
        raw: &OpenClBuffer,
        offset: usize,
        src: *const u8,
        len: usize,
        after: &[OpenClEvent],
    ) -> Result<OpenClEvent> {
        // SAFETY: the caller's promise.
        unsafe { queue.write_buffer(raw.as_raw(), offset, src, len, after) }
    }

    unsafe fn read(
        queue: &OpenClQueue,
        raw: &OpenClBuffer,
        offset: usize,
        dst: *mut u8,
        len: usize,
        after: &[OpenClEvent],
    ) -> Result<OpenClEvent> {
        // SAFETY: the caller's promise.
        unsafe { queue.read_buffer(raw.as_raw(), offset, dst, len, after) }
    }

    unsafe fn fill(
        queue: &OpenClQueue,
        raw: &OpenClBuffer,
        offset: usize,
        pattern: &[u8],
        len: usize,
        after: &[OpenClEvent],
    ) -> Result<OpenClEvent> {
        // SAFETY: the caller's promise.
        unsafe { queue.fill_buffer(raw.as_raw(), offset, pattern, len, after) }
    }

    unsafe fn copy(
        queue: &OpenClQueue,
        (dst, to): (&OpenClBuffer, usize),
        (src, from): (&OpenClBuffer, usize),
        len: usize,
        after: &[OpenClEvent],
    ) -> Result<OpenClEvent> {
        // SAFETY: the caller's promise.
        unsafe { queue.copy_buffer((dst.as_raw(), to), (src.as_raw(), from), len, after) }
    }
}

impl Advice<Self> for OpenCl {
    unsafe fn prefetch(
        queue: &OpenClQueue,
        pointer: *const u8,
        len: usize,
        after: &[OpenClEvent],
    ) -> Result<OpenClEvent> {
        // SAFETY: the caller's promise.
        unsafe { queue.migrate(pointer, len, after) }
    }

    /// The extension names no advice: values are the vendor's own, and drivers disagree on 0.
    unsafe fn advise(
        _: &OpenClQueue,
        _: *const u8,
        _: usize,
        _: MemAdvice,
        _: &[OpenClEvent],
    ) -> Result<OpenClEvent> {
        Err(error::unsupported("memory advice"))
    }
}
