//! Blocks of memory that Python's handles share, and the transfers between them.

pub(crate) mod cache;
pub(crate) mod file;
pub(crate) mod handle;
#[cfg(target_os = "linux")]
mod large_pages;
pub(crate) mod memory;
pub(crate) mod origin;
pub(crate) mod pool;
pub(crate) mod reserve;
pub(crate) mod side;
pub(crate) mod snapshot;
pub(crate) mod source;
pub(crate) mod stats;
pub(crate) mod track;
pub(crate) mod transfer;

use std::any::Any;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use usm_array::Owner;
use usm_core::backend::Dyn;
use usm_core::{AllocKind, Allocation, BackendKind, Context, Request};

use crate::device::runtime::Stream;
use crate::storage::source::Source;
use crate::storage::track::BlockCounts;
use crate::text::error::Failure;

type Result<T> = std::result::Result<T, Failure>;

/// Memory of this package in terms of `usm-array`.
pub(crate) type Shared = usm_array::Storage<Dyn, Care>;

/// The turns of several blocks.
pub(crate) type Turns<'s> = usm_array::Turns<'s, Dyn, Care>;

/// The blocks of a launch.
pub(crate) type LaunchMark<'s> = usm_array::LaunchMark<'s, Dyn, Care>;

/// A handle to memory that several arrays may share. Dropping the last handle frees the memory.
#[derive(Clone, Debug)]
pub(crate) struct Storage(Shared);

/// What Python adds to memory.
#[derive(Debug, Default)]
pub(crate) struct Care {
    /// The object that foreign memory was imported from.
    object: Option<Py<PyAny>>,
    /// Whether later arrays get the memory without the driver's free, which waits for the device.
    skips_free: bool,
    /// Whether others know the address: their work on the device is unknown here.
    has_escaped: AtomicBool,
    _tracked: BlockCounts,
}

impl Owner<Dyn> for Care {
    /// Frees the block. Our own memory is freed detached from the interpreter, because a driver's
    /// free may block on a thread that needs the interpreter. Foreign memory is released attached,
    /// at once. At the end of the process, where there is no interpreter, the block is freed too.
    fn release(mut self, memory: Allocation<Dyn>, is_foreign: bool) {
        let must_wait = self.skips_free && *self.has_escaped.get_mut();
        let free = |memory: Allocation<Dyn>| {
            // Without the wait the memory is lost, because others may still use it.
            match must_wait && !cache::wait_for_the_device(memory.context()) {
                true => std::mem::forget(memory),
                false => drop(memory),
            }
        };
        if !is_foreign && memory.context().info().backend == BackendKind::Host {
            return free(memory);
        }
        let mut memory = Some(memory);
        let _ = Python::try_attach(|py| {
            let Some(memory) = memory.take() else { return };
            if is_foreign {
                free(memory);
                drop(self.object.take());
            } else {
                py.detach(|| free(memory));
            }
        });
        if let Some(memory) = memory {
            free(memory);
        }
    }
}

impl Deref for Storage {
    type Target = Shared;

    #[inline]
    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Storage {
    /// Allocates `size` bytes for work of `stream`, at least one byte: an array without elements
    /// has an address too. Alignment 0 means the default. The caller may or may not be attached to
    /// the interpreter.
    pub(crate) fn allocate(
        stream: &Stream,
        kind: AllocKind,
        size: usize,
        alignment: usize,
    ) -> usm_core::Result<Self> {
        Self::allocate_from(&Source::outside_blocks(stream, kind), stream, kind, size, alignment)
    }

    /// [`allocate`](Self::allocate) from a pool, if there is one.
    pub(crate) fn allocate_from(
        source: &Source,
        stream: &Stream,
        kind: AllocKind,
        size: usize,
        alignment: usize,
    ) -> usm_core::Result<Self> {
        let request = Request::new(kind, size.max(1)).aligned_to(alignment);
        Self::made(source, stream, source.allocate(stream, &request))
    }

    /// [`allocate_from`](Self::allocate_from), with zeros. Large blocks of the host come zero from the
    /// system; others are filled by the queue, and later uses follow that.
    pub(crate) fn allocate_zeroed(
        source: &Source,
        stream: &Stream,
        kind: AllocKind,
        size: usize,
        alignment: usize,
    ) -> Result<Self> {
        let request = Request::new(kind, size.max(1)).aligned_to(alignment);
        let (mut is_zero, allocation) = match source.allocate_zeroed(stream, &request) {
            Ok((allocation, is_zero)) => (is_zero, Ok(allocation)),
            Err(error) => (false, Err(error)),
        };
        let storage = Self::made(source, stream, allocation)?;
        is_zero |= size == 0;
        if !is_zero {
            drop(storage.submit_fill(&stream.queue, 0, size, &[0])?);
        }
        Ok(storage)
    }

    fn made(
        source: &Source,
        stream: &Stream,
        result: usm_core::Result<Allocation<Dyn>>,
    ) -> usm_core::Result<Self> {
        let note = origin::note(
            (stream.number, stream.context()),
            result.as_ref().map_or(0, |allocation| allocation.block().address()),
        );
        let allocation = result?;
        #[cfg(target_os = "linux")]
        if stream.is_host() && !source.is_pool() {
            large_pages::advise(&allocation);
        }
        let track = BlockCounts::allocation(allocation.size(), note);
        let skips_free = source.is_pool() && cache::is_free_a_wait(stream.context());
        let care = Care { skips_free, _tracked: track, ..Care::default() };
        // SAFETY: any bytes of a driver's memory are values, and `empty` says so of the host's.
        Ok(Self(unsafe { Shared::new(allocation, care) }))
    }

    /// Writable memory of another owner. `keeper` keeps it alive until the last operation is
    /// complete; `object` is the one that it was imported from.
    ///
    /// # Safety
    /// As [`Shared::lent`].
    pub(crate) unsafe fn foreign(
        context: &Context<Dyn>,
        memory: (AllocKind, NonNull<u8>, usize),
        object: Option<Py<PyAny>>,
        keeper: Box<dyn Any + Send + Sync>,
    ) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { Shared::lent(context, memory, keeper, Care { object, ..Care::default() }) })
    }

    /// Memory of another process.
    pub(crate) fn of_other_process(allocation: Allocation<Dyn>) -> Self {
        // SAFETY: as of memory that `allocation` has.
        Self(unsafe { Shared::of_other_process(allocation, Care::default()) })
    }

    /// The same memory, read-only if `readonly` is set or the memory was read-only before.
    pub(crate) fn restricted(self, readonly: bool) -> Self {
        Self(self.0.restricted(readonly))
    }

    /// The block with its record of work.
    ///
    /// # Safety
    /// As [`Shared::allocation`].
    pub(crate) unsafe fn allocation(&self) -> &Allocation<Dyn> {
        // SAFETY: the caller's promise.
        unsafe { self.0.allocation() }
    }

    /// The producer of imported memory, `None` for our own.
    pub(crate) fn owner(&self) -> Option<&Py<PyAny>> {
        self.0.owner().object.as_ref()
    }

    /// Notes that others know the address from now on. When the memory is dropped, later arrays get
    /// it only after all work of the device.
    pub(crate) fn escape(&self) {
        self.0.owner().has_escaped.store(true, Ordering::Relaxed);
    }

    /// [`escape`](Self::escape) for an address without any order: nothing of earlier arrays uses the
    /// memory then. Call it detached from the interpreter.
    pub(crate) fn escape_unordered(&self) -> usm_core::Result<()> {
        self.escape();
        self.wait_for_earlier_owners()
    }
}

/// The turns of all blocks. Call it detached from the interpreter: another thread may hold a turn
/// while it waits for a device.
///
/// # Errors
/// As of [`Turns::of`].
pub(crate) fn turns_of<'s>(storages: &[&'s Storage]) -> usm_core::Result<Turns<'s>> {
    let storages: Vec<&Shared> = storages.iter().map(|storage| &storage.0).collect();
    Turns::of(&storages)
}
