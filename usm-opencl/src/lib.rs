#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../README.md")]
#![warn(clippy::multiple_unsafe_ops_per_block)]
// Conversions that can fail return the array, as `Vec` and `String` conversions do.
#![allow(clippy::result_large_err)]

extern crate alloc;

mod buffer;
mod device;
mod error;
mod event;
#[cfg(feature = "kernel")]
mod kernel;
mod loader;
mod memory;
mod queue;
pub mod raw;

#[cfg(feature = "kernel")]
use core::any::{Any, TypeId};
use std::path::Path;

pub use buffer::OpenClBuffer;
pub use device::OpenClDevice;
pub use event::OpenClEvent;
#[cfg(feature = "kernel")]
pub use kernel::{OpenClFunction, OpenClModule};
pub use memory::OpenClContext;
pub use queue::OpenClQueue;

use usm_core::Result;
use usm_core::backend::{Backend, Unsupported};

/// The backend: the opened loader.
#[derive(Clone, Copy, Debug)]
pub struct OpenCl {
    library: &'static loader::Library,
}

impl OpenCl {
    /// Opens the file that `USM_OPENCL_LIBRARY` names, else the loader under its usual name.
    ///
    /// # Errors
    /// [`ErrorKind::LibraryNotFound`](usm_core::ErrorKind::LibraryNotFound),
    /// [`ErrorKind::SymbolMissing`](usm_core::ErrorKind::SymbolMissing).
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
        self.library.path()
    }
}

// SAFETY: the runtime returns disjoint memory of the requested kind, and its alignment is verified
// (2); every call takes a wait list (3); a status other than success means that nothing was
// enqueued (4); waiting polls the status up to the limit and flushes first (5, 6); blocks are freed
// in the context that allocated them (7); unknown pointers are a value (8); the context drains its
// list (9); operations of an in-order queue name their predecessor, and operations after a
// program's events remember these (11).
unsafe impl Backend for OpenCl {
    const SYNCHRONOUS: bool = false;

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
        OpenClContext::create(device)
    }

    #[cfg(feature = "kernel")]
    fn extension(type_id: TypeId) -> Option<&'static dyn Any> {
        usm_kernel::backend::Kernels::extension::<Self>(type_id)
    }
}
