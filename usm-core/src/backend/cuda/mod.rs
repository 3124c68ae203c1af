//! The CUDA driver (`libcuda.so.1`, or the file that `USM_CUDA_LIBRARY` names), opened at run time; and HIP, AMD's twin of it.
//!
//! Host memory is page-locked and mapped, shared memory is managed memory, device memory is plain device memory; each
//! has its own call to free it. All contexts of a device share its primary context, the one of the CUDA runtime.
//!
//! # What the driver does
//! - A stream is in order. An out-of-order queue deals work out to several streams, and events order what must be.
//! - Alignments above its own 256 bytes cannot be asked for: more is allocated and the block placed inside.
//! - `cuMemFree` may wait for the device; blocks are freed after their events, so it waits for others' work at most. Memory from a queue goes in the
//!   order of its stream instead, and waits for nothing; it is of a pool of our own, one for each device (`pool.rs`).
//! - Where there is no memory, that pool gives back what it keeps and the call is made once more; a last time once what was freed in order is done.
//! - Fills of page-locked and managed memory may finish before their call returns.
//! - Events are recorded anew as soon as nobody has them: a wait keeps to the record that was there when it began.
//! - After a fault inside a kernel every call of the process on that device fails.
//! - A context that is not known to be idle when its last handle goes is never released, with its share in the pool.
//!
//! # HIP
//! AMD's library has the same functions under other names, so it fills the same table ([`Cuda::load_hip`]); what differs (signatures, numbers,
//! the absence of contexts) is in two files, and nothing above sees it. Devices say `hip` and AMD. **It has never run on an AMD GPU**: it is
//! tested on a library of our own with HIP's names, signatures and numbers, and opened on AMD's library on a machine without a GPU.
//! HIP 5, 6 and 7 are known; names of types and functions in this module's documentation are CUDA's.

mod adapter;
mod device;
mod error;
mod event;
mod loader;
mod memory;
mod native;
mod ordered;
mod pool;
mod queue;
pub mod raw;
mod sharing;
mod territory;
mod vendor;

use std::path::Path;

pub use device::CudaDevice;
pub use event::CudaEvent;
pub use memory::CudaContext;
pub use queue::CudaQueue;
pub use sharing::CudaIpcMemory;

use crate::BackendKind;
use crate::backend::{Backend, Unsupported};
use crate::error::Result;

/// The backend: the opened driver, of CUDA or of HIP.
#[derive(Clone, Copy, Debug)]
pub struct Cuda {
    driver: &'static loader::Driver,
}

impl Cuda {
    /// Opens and initialises the file that `USM_CUDA_LIBRARY` names, else the driver under its usual name. A driver without a device is no error.
    ///
    /// # Errors
    /// [`ErrorKind::LibraryNotFound`](crate::ErrorKind::LibraryNotFound),
    /// [`ErrorKind::SymbolMissing`](crate::ErrorKind::SymbolMissing), or `cuInit`'s.
    pub fn load() -> Result<Self> {
        loader::open_usual(&vendor::NVIDIA).map(|driver| Self { driver })
    }

    /// Opens the driver at `path`. A path opened before gives the same driver.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn open(path: &Path) -> Result<Self> {
        loader::open(&vendor::NVIDIA, path).map(|driver| Self { driver })
    }

    /// Opens and initialises HIP: the file that `USM_HIP_LIBRARY` names, else the `libamdhip64.so` that the process has already under
    /// one of its names (packages bring their own, and a second copy would not know their memory; on Linux), else the first that is found. It has never
    /// run on an AMD GPU (see the page of this module).
    ///
    /// # Errors
    /// As [`load`](Self::load), in the names of HIP.
    pub fn load_hip() -> Result<Self> {
        loader::open_usual(&vendor::AMD).map(|driver| Self { driver })
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

    /// The file that was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.driver.path
    }
}

// SAFETY: the driver gives disjoint memory of the kind asked for, and alignments above its own are made by allocating more
// (2); a stream waits for every event (3); work whose event could not be recorded is never reported complete, and
// what was refused was not enqueued (4, 6); waiting polls the event up to the limit, and streams need no flush (5);
// blocks are freed by the call that belongs to their kind (7); pointers that the driver does not know are a value (8);
// the context drains its list (9); a failure poisons the whole context, so that nothing after it succeeds (11).
unsafe impl Backend for Cuda {
    const SYNCHRONOUS: bool = false;
    const COUNTED: bool = true;

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
        CudaContext::over(device)
    }
}
