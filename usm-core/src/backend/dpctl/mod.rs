//! SYCL through the C library that the Python package dpctl ships.
//!
//! The library (`libDPCTLSyclInterface.so`) is opened at run time by its full path; no SYCL toolkit is needed to build.
//! Memory, queues and contexts are the very objects that dpctl and dpnp use, so pointers pass both ways without a copy.
//!
//! # What the library asks of its caller
//! - Some of its functions let C++ exceptions out (`DPCTLmalloc_host`, `DPCTLaligned_alloc_host`, the frees,
//!   `DPCTLUSM_GetPointerType`, `DPCTLUSM_GetPointerDevice`), which ends the process. They are called only with input
//!   for which they do not throw: device aspects are checked before an allocation, a pointer's type before its device,
//!   and only blocks of the library's own are freed.
//! - It prints the reason of a failure to standard error when `DPCTL_VERBOSITY` says so and answers NULL; errors here
//!   name the function that did.
//! - A failure is passed on only to what names the failed event, on another queue or an out-of-order one: SYCL drops such names on an in-order
//!   queue, and forgets them at a barrier. Events here remember what they follow. The library tells no code of a failed event.
//! - It is never closed: finalisers of other owners may run at any time up to the end of the process.
//! - The runtime's threads do not survive `fork`; a child must not use what its parent has opened.
//!
//! # Finding devices
//! The OpenCL CPU runtime from PyPI (`intel-opencl-rt`) is not registered with the loader by `pip install`. When
//! `OCL_ICD_FILENAMES` is unset, [`use_opencl_runtime_beside`] points it there; call it before the library is opened.

mod device;
mod error;
mod event;
mod line;
mod loader;
mod memory;
mod queue;
pub mod raw;
mod sharing;

use std::path::Path;

pub use device::DpctlDevice;
pub use event::DpctlEvent;
pub use loader::{find_library, opencl_runtime_beside, use_opencl_runtime_beside};
pub use memory::DpctlContext;
pub use queue::DpctlQueue;

use crate::backend::{Backend, Unsupported};
use crate::error::{ErrorKind, Result};

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

    /// Opens the library at `path`, which must be the file inside an installed package: its own dependencies are found
    /// relative to it. A path opened before gives the same library.
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

    /// Version of the SYCL compiler that built the library, as it says itself.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.library.version
    }
}

// SAFETY: the runtime gives disjoint memory of the kind asked for, and its alignment is verified (2); copies take their
// dependencies, fills and hints come after a barrier over theirs (3); NULL results mean that nothing was enqueued (4);
// submission flushes, and a wait is for the status or for a thread that waits, up to the limit (5, 6); blocks are freed by the context that
// allocated them, which needs no queue to live (7); an unknown pointer is never passed on beyond the type query (8);
// the context drains its list when dropped (9); events remember what they follow (11).
unsafe impl Backend for Dpctl {
    const SYNCHRONOUS: bool = false;
    const COUNTED: bool = true;

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
        DpctlContext::over(device)
    }
}
