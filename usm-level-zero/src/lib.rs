#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../README.md")]
#![warn(clippy::multiple_unsafe_ops_per_block)]
// Conversions that can fail return the array, as `Vec` and `String` conversions do.
#![allow(clippy::result_large_err)]

extern crate alloc;

mod device;
mod error;
mod event;
#[cfg(feature = "kernel")]
mod kernel;
mod loader;
mod memory;
mod native;
mod queue;
pub mod raw;
mod sharing;
mod work;

#[cfg(feature = "kernel")]
use core::any::{Any, TypeId};
use std::path::Path;

pub use device::LevelZeroDevice;
pub use event::LevelZeroEvent;
#[cfg(feature = "kernel")]
pub use kernel::{LevelZeroFunction, LevelZeroModule};
pub use memory::LevelZeroContext;
pub use queue::LevelZeroQueue;
pub use sharing::LevelZeroIpcMemory;

use usm_core::Result;
use usm_core::backend::{Backend, Unsupported};

/// The backend: the opened loader.
#[derive(Clone, Copy, Debug)]
pub struct LevelZero {
    library: &'static loader::Library,
}

impl LevelZero {
    /// Opens and initialises the file that `USM_LEVEL_ZERO_LIBRARY` names, else the loader under
    /// its usual name. A loader without a driver is no error.
    ///
    /// # Errors
    /// [`ErrorKind::LibraryNotFound`](usm_core::ErrorKind::LibraryNotFound),
    /// [`ErrorKind::SymbolMissing`](usm_core::ErrorKind::SymbolMissing), or `zeInit`'s.
    pub fn load() -> Result<Self> {
        loader::open_default().map(|library| Self { library })
    }

    /// Opens the loader at `path`. The same path returns the same library.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn open(path: &Path) -> Result<Self> {
        loader::open(path).map(|library| Self { library })
    }

    /// The path of the opened file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.library.path
    }
}

// SAFETY: the driver returns disjoint memory of the requested kind, and its alignment is verified
// (2); every command waits for its events and, on an in-order queue, for the previous one, or its
// list is in order (3); a refused command was not appended, and a hint whose end could not be
// appended is never reported complete (4, 6); waiting polls the event's status up to the limit, and
// immediate lists need no flush (5); blocks are freed in the context that allocated them (7);
// unknown pointers are a value (8); the context drains its list (9); a failure means a lost device,
// and every later call returns that error (11).
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
        LevelZeroContext::create(device)
    }

    #[cfg(feature = "kernel")]
    fn extension(type_id: TypeId) -> Option<&'static dyn Any> {
        usm_kernel::backend::Kernels::extension::<Self>(type_id)
    }
}
