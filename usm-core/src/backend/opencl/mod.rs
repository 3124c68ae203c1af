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

mod buffer;
mod device;
mod error;
mod loader;
mod memory;
mod queue;
pub mod raw;

use std::path::Path;

pub use buffer::OpenClBuffer;
pub use device::OpenClDevice;
pub use memory::OpenClContext;
pub use queue::{OpenClEvent, OpenClQueue};

use crate::backend::{Backend, Unsupported};
use crate::error::Result;

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

    fn create_context(&self, device: &OpenClDevice) -> Result<OpenClContext> {
        OpenClContext::over(device)
    }
}
