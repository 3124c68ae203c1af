//! oneAPI Level Zero.
//!
//! The loader (`libze_loader.so.1`, or the file that `USM_LEVEL_ZERO_LIBRARY` names) is opened at run time. A loader that finds no
//! driver gives no devices. Queues are immediate command lists, and events are used again: neither the heap nor
//! the driver is asked for an object by an operation.
//!
//! # What drivers do
//! - After a failed `zeInit` a loader crashes on any call, so none is made.
//! - Success does not mean aligned: some honour alignments up to 8 KiB only. The pointer is checked.
//! - A pointer may be known in every context of its driver; whose it is, the registries say.
//! - A wait may answer success although nothing ran; only an event's status is believed.
//! - Nothing is kept alive by a command: lists and events in use are kept by us, and never destroyed where their work
//!   does not end within the limit.
//! - A failed operation is a lost device, which every later call says.

mod device;
mod error;
mod event;
mod loader;
mod memory;
mod queue;
pub mod raw;
mod sharing;
mod work;

use core::alloc::Layout;
use core::ptr::NonNull;
use core::time::Duration;
use std::path::Path;

pub use device::LevelZeroDevice;
pub use event::LevelZeroEvent;
pub use memory::LevelZeroContext;
pub use queue::LevelZeroQueue;
pub use sharing::LevelZeroIpcMemory;

use crate::backend::roster::Completion;
use crate::backend::{
    Advice, Backend, Block, EventStatus, MemAdvice, PointerInfo, QueueOrder, Rows, Unsupported,
};
use crate::deferred::Deferred;
use crate::error::Result;
use crate::shared::Shared;
use crate::{AllocKind, DeviceInfo};

/// The backend: the opened loader.
#[derive(Clone, Copy, Debug)]
pub struct LevelZero {
    library: &'static loader::Library,
}

impl LevelZero {
    /// Opens and initialises the file that `USM_LEVEL_ZERO_LIBRARY` names, else the loader under its usual name. A loader
    /// without a driver is no error.
    ///
    /// # Errors
    /// [`ErrorKind::LibraryNotFound`](crate::ErrorKind::LibraryNotFound),
    /// [`ErrorKind::SymbolMissing`](crate::ErrorKind::SymbolMissing), or `zeInit`'s.
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

// SAFETY: the driver gives disjoint memory of the kind asked for, and its alignment is verified (2); every command waits for
// its events, on an in-order queue for the one before too, or its list is in order (3); what was refused was not
// appended, and a hint whose end could not be appended is never reported complete (4, 6); waiting polls the event's
// status up to the limit, and immediate lists need no flush (5); blocks are freed in the context that allocated them (7);
// unknown pointers are a value (8); the context drains its list (9); a failure is a lost device, which every later
// call answers (11).
unsafe impl Backend for LevelZero {
    const SYNCHRONOUS: bool = false;

    type Device = LevelZeroDevice;
    type Context = LevelZeroContext;
    type Queue = LevelZeroQueue;
    type Event = LevelZeroEvent;
    type Buffers = Unsupported;
    type HostTasks = Unsupported;
    type Advice = Self;
    type Ipc = Self;
    type Peer = Self;
    type QueueMemory = Unsupported;

    fn for_each_device(&self, visit: &mut dyn FnMut(LevelZeroDevice)) -> Result<()> {
        device::for_each(self.library, visit)
    }

    fn device_info(device: &LevelZeroDevice) -> DeviceInfo {
        device.info()
    }

    fn create_context(&self, device: &LevelZeroDevice) -> Result<LevelZeroContext> {
        LevelZeroContext::over(device)
    }

    fn shared(context: &LevelZeroContext) -> &Shared {
        context.shared()
    }

    fn deferred(context: &LevelZeroContext) -> Option<&Deferred<Self>> {
        Some(context.deferred())
    }

    fn create_queue(context: &LevelZeroContext, order: QueueOrder) -> Result<LevelZeroQueue> {
        LevelZeroQueue::create(context, order)
    }

    fn allocate(context: &LevelZeroContext, kind: AllocKind, layout: Layout) -> Result<NonNull<u8>> {
        context.allocate(kind, layout)
    }

    unsafe fn free(context: &LevelZeroContext, block: &Block) {
        // SAFETY: the caller's promise.
        unsafe { context.free(block) };
    }

    fn query(context: &LevelZeroContext, address: usize) -> Result<PointerInfo> {
        context.query(address)
    }

    unsafe fn copy(
        queue: &LevelZeroQueue,
        dst: *mut u8,
        src: *const u8,
        len: usize,
        after: &[LevelZeroEvent],
    ) -> Result<LevelZeroEvent> {
        // SAFETY: the caller's promise.
        unsafe { queue.copy(dst, src, len, after) }
    }

    unsafe fn copy_rows(
        queue: &LevelZeroQueue,
        rows: &Rows,
        after: &[LevelZeroEvent],
    ) -> Result<LevelZeroEvent> {
        // SAFETY: the caller's promise.
        unsafe { queue.copy_rows(rows, after) }
    }

    unsafe fn fill(
        queue: &LevelZeroQueue,
        dst: *mut u8,
        pattern: &[u8],
        len: usize,
        after: &[LevelZeroEvent],
    ) -> Result<LevelZeroEvent> {
        // SAFETY: the caller's promise.
        unsafe { queue.fill(dst, pattern, len, after) }
    }

    unsafe fn barrier(queue: &LevelZeroQueue, after: &[LevelZeroEvent]) -> Result<LevelZeroEvent> {
        queue.barrier(after)
    }

    fn status(event: &LevelZeroEvent) -> Result<EventStatus> {
        event.status()
    }

    fn wait(event: &LevelZeroEvent, limit: Duration) -> Result<()> {
        event.wait(limit)
    }

    fn synchronize(context: &LevelZeroContext, limit: Duration) -> Result<()> {
        context.synchronize(limit)
    }

    fn settle(context: &LevelZeroContext, limit: Duration) -> Result<()> {
        context.settle(limit)
    }

    fn for_each_pending(
        context: &LevelZeroContext,
        limit: Duration,
        visit: &mut dyn FnMut(LevelZeroEvent),
    ) -> Result<()> {
        context.submitted(limit)?.into_iter().for_each(visit);
        Ok(())
    }
}

impl Advice<Self> for LevelZero {
    unsafe fn prefetch(
        queue: &LevelZeroQueue,
        pointer: *const u8,
        len: usize,
        after: &[LevelZeroEvent],
    ) -> Result<LevelZeroEvent> {
        // SAFETY: the caller's promise.
        unsafe { queue.prefetch(pointer, len, after) }
    }

    unsafe fn advise(
        queue: &LevelZeroQueue,
        pointer: *const u8,
        len: usize,
        advice: MemAdvice,
        after: &[LevelZeroEvent],
    ) -> Result<LevelZeroEvent> {
        // SAFETY: the caller's promise.
        unsafe { queue.advise(pointer, len, advice, after) }
    }
}
