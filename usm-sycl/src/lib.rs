#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../README.md")]
#![warn(clippy::multiple_unsafe_ops_per_block)]
// Conversions that can fail return the array, as `Vec` and `String` conversions do.
#![allow(clippy::result_large_err)]

extern crate alloc;

mod chain;
mod device;
mod error;
mod event;
#[cfg(feature = "kernel")]
mod kernel;
mod loader;
mod memory;
mod queue;
pub mod raw;
mod sharing;

#[cfg(feature = "kernel")]
use core::any::{Any, TypeId};
use std::path::Path;

pub use device::DpctlDevice;
pub use event::DpctlEvent;
#[cfg(feature = "kernel")]
pub use kernel::{DpctlFunction, DpctlModule};
pub use loader::{find_library, opencl_runtime_beside, use_opencl_runtime_beside};
pub use memory::DpctlContext;
pub use queue::DpctlQueue;

use usm_core::backend::{Backend, Unsupported};
use usm_core::{ErrorKind, Result};

/// The backend: the opened library.
#[derive(Clone, Copy, Debug)]
pub struct Dpctl {
    library: &'static loader::Library,
}

impl Dpctl {
    /// Opens the library that [`find_library`] finds.
    ///
    /// # Errors
    /// [`ErrorKind::LibraryNotFound`], [`ErrorKind::SymbolMissing`], [`ErrorKind::LibraryVersion`].
    pub fn load() -> Result<Self> {
        match find_library() {
            Some(path) => Self::open(&path),
            None => Err(error::of(ErrorKind::LibraryNotFound {
                library: loader::LIBRARY,
                reason: "USM_DPCTL_LIBRARY names no file, and no Python of VIRTUAL_ENV or PATH has dpctl",
            })),
        }
    }

    /// Opens the library at `path`, which must be the file inside an installed package, because it
    /// finds its own dependencies relative to itself. The same path returns the same library.
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

    /// Version of the SYCL compiler that built the library, as the library reports it.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.library.version
    }
}

// SAFETY: the runtime returns disjoint memory of the requested kind, and its alignment is verified
// (2); copies take their dependencies, fills and hints come after a barrier over theirs (3); NULL
// results mean that nothing was enqueued (4); submission flushes, and a wait polls the status or
// waits for the waiting thread, up to the limit (5, 6); blocks are freed by the context that
// allocated them, without a live queue (7); an unknown pointer goes no further than the type query
// (8); the context drains its list when dropped (9); events keep their predecessors (11).
unsafe impl Backend for Dpctl {
    const SYNCHRONOUS: bool = false;

    type Device = DpctlDevice;
    type Context = DpctlContext;
    type Queue = DpctlQueue;
    type Event = DpctlEvent;
    type Buffers = Unsupported;
    type HostTasks = Unsupported;
    type Advice = Self;
    type Ipc = Unsupported;
    type Peer = Self;
    type QueueMemory = Unsupported;

    fn for_each_device(&self, visit: &mut dyn FnMut(DpctlDevice)) -> Result<()> {
        device::for_each(self.library, visit)
    }

    fn create_context(&self, device: &DpctlDevice) -> Result<DpctlContext> {
        DpctlContext::create(device)
    }

    #[cfg(feature = "kernel")]
    fn extension(type_id: TypeId) -> Option<&'static dyn Any> {
        usm_kernel::backend::Kernels::extension::<Self>(type_id)
    }
}
