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

use std::path::Path;

pub use device::LevelZeroDevice;
pub use event::LevelZeroEvent;
pub use memory::LevelZeroContext;
pub use queue::LevelZeroQueue;
pub use sharing::LevelZeroIpcMemory;

use crate::backend::{Backend, Unsupported};
use crate::error::Result;

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

    fn create_context(&self, device: &LevelZeroDevice) -> Result<LevelZeroContext> {
        LevelZeroContext::over(device)
    }
}
