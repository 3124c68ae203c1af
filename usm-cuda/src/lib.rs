#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../README.md")]
#![warn(clippy::multiple_unsafe_ops_per_block)]
// Conversions that can fail return the array, as `Vec` and `String` conversions do.
#![allow(clippy::result_large_err)]

extern crate alloc;

mod adapter;
mod device;
mod error;
mod event;
#[cfg(feature = "kernel")]
mod kernel;
mod loader;
mod memory;
mod native;
mod ordered;
mod pool;
mod pool_pages;
mod queue;
pub mod raw;
mod sharing;
mod table;
mod vendor;

#[cfg(feature = "kernel")]
use core::any::{Any, TypeId};
use std::path::Path;

pub use device::CudaDevice;
pub use event::CudaEvent;
#[cfg(feature = "kernel")]
pub use kernel::{CudaFunction, CudaModule};
pub use memory::CudaContext;
pub use queue::CudaQueue;
pub use sharing::CudaIpcMemory;

use usm_core::BackendKind;
use usm_core::Result;
use usm_core::backend::{Backend, Unsupported};

/// The backend: the opened driver, of CUDA or of HIP.
#[derive(Clone, Copy, Debug)]
pub struct Cuda {
    driver: &'static loader::Driver,
}

impl Cuda {
    /// Opens and initialises the file that `USM_CUDA_LIBRARY` names, else the driver under its
    /// usual name. A driver without a device is no error.
    ///
    /// # Errors
    /// [`ErrorKind::LibraryNotFound`](usm_core::ErrorKind::LibraryNotFound),
    /// [`ErrorKind::SymbolMissing`](usm_core::ErrorKind::SymbolMissing), or `cuInit`'s.
    pub fn load() -> Result<Self> {
        loader::open_default(&vendor::NVIDIA).map(|driver| Self { driver })
    }

    /// Opens the driver at `path`. The same path returns the same driver.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn open(path: &Path) -> Result<Self> {
        loader::open(&vendor::NVIDIA, path).map(|driver| Self { driver })
    }

    /// Opens and initialises HIP: the file that `USM_HIP_LIBRARY` names, else on Linux a
    /// `libamdhip64.so` that the process has already loaded (packages bring their own, and a second
    /// copy would not know their memory), else the first one found. It has never run on an AMD GPU
    /// (see the page of this module).
    ///
    /// # Errors
    /// As [`load`](Self::load), in the names of HIP.
    pub fn load_hip() -> Result<Self> {
        loader::open_default(&vendor::AMD).map(|driver| Self { driver })
    }

    /// Opens HIP at `path`, as [`open`](Self::open) does CUDA.
    ///
    /// # Errors
    /// As [`load_hip`](Self::load_hip).
    pub fn open_hip(path: &Path) -> Result<Self> {
        loader::open(&vendor::AMD, path).map(|driver| Self { driver })
    }

    /// [`BackendKind::Cuda`] or [`BackendKind::Hip`].
    #[must_use]
    pub fn kind(&self) -> BackendKind {
        self.driver.vendor.backend
    }

    /// The path of the opened file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.driver.path()
    }
}

// SAFETY: the driver returns disjoint memory of the requested kind, and larger alignments than its
// own come from larger allocations (2); a stream waits for every event (3); work whose event could
// not be recorded is never reported complete, and a refused operation was not enqueued (4, 6);
// waiting polls the event up to the limit, and streams need no flush (5); blocks are freed by the
// call for their kind (7); pointers that the driver does not know are a value (8); the context
// drains its list (9); a failure poisons the whole context, so no later operation succeeds (11).
unsafe impl Backend for Cuda {
    const SYNCHRONOUS: bool = false;

    type Device = CudaDevice;
    type Context = CudaContext;
    type Queue = CudaQueue;
    type Event = CudaEvent;
    type Buffers = Unsupported;
    type HostTasks = Unsupported;
    type Advice = Self;
    type Ipc = Self;
    type Peer = Self;
    type QueueMemory = Self;

    fn for_each_device(&self, visit: &mut dyn FnMut(CudaDevice)) -> Result<()> {
        device::for_each(self.driver, visit)
    }

    fn create_context(&self, device: &CudaDevice) -> Result<CudaContext> {
        CudaContext::create(device)
    }

    #[cfg(feature = "kernel")]
    fn extension(type_id: TypeId) -> Option<&'static dyn Any> {
        usm_kernel::backend::Kernels::extension::<Self>(type_id)
    }
}
