//! Contexts: allocation, freeing and pointer queries.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::ffi::c_void;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};
use core::time::Duration;

use super::Cuda;
use super::device::CudaDevice;
use super::error::{self, check};
use super::event::{CudaEvent, Events};
use super::loader::{Driver, Raw};
use super::queue;
use crate::backend::placed::Placed;
use crate::backend::roster::Roster;
use crate::backend::{Block, Counted, KeepsBooks, PointerInfo, accounts};
use crate::deferred::Deferred;
use crate::error::{ErrorKind, Result};
use crate::shared::Shared;
use crate::{AllocKind, BackendKind, MemoryType};

/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`.
const PORTABLE_AND_MAPPED: u32 = 1 | 2;
/// `CU_MEM_ATTACH_GLOBAL`.
const ATTACH_GLOBAL: u32 = 1;

/// A native context: the primary one of a device, which the CUDA runtime and every library on it use, or a foreign one.
#[derive(Debug)]
pub(super) struct Native {
    device: CudaDevice,
    raw: Raw,
    /// Whether this is the primary context, retained. A foreign one is borrowed.
    primary: bool,
}

// SAFETY: the driver's contexts may be made current on any thread.
unsafe impl Send for Native {}
// SAFETY: as above.
unsafe impl Sync for Native {}

impl Native {
    fn primary(device: &CudaDevice) -> Result<Arc<Self>> {
        let mut raw = ptr::null_mut();
        // SAFETY: a device of the driver, room for the answer.
        let code = unsafe { (device.driver().retain_context)(&raw mut raw, device.id()) };
        check("cuDevicePrimaryCtxRetain", code)?;
        Ok(Arc::new(Self { device: *device, raw, primary: true }))
    }

    pub(super) fn driver(&self) -> &'static Driver {
        self.device.driver()
    }

    /// Makes the context current on this thread until the guard is dropped.
    #[inline]
    pub(super) fn current(&self) -> Result<Current> {
        // SAFETY: a live context.
        unsafe { Current::push(self.driver(), self.raw) }
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        if self.primary {
            // SAFETY: retained once. A failure could not be acted on.
            let _ = unsafe { (self.driver().release_context)(self.device.id()) };
        }
    }
}

/// A context is current on this thread, and only there.
#[derive(Debug)]
pub(super) struct Current {
    driver: &'static Driver,
    /// Whether it was not before.
    pushed: bool,
    stays_on_its_thread: PhantomData<*const ()>,
}

impl Current {
    /// # Safety
    /// `raw` is a live context of the driver, and stays so while the guard lives.
    #[inline]
    pub(super) unsafe fn push(driver: &'static Driver, raw: Raw) -> Result<Self> {
        let mut before = ptr::null_mut();
        // SAFETY: room for the answer. Where it cannot be had, the context is pushed.
        let asked = unsafe { (driver.current_context)(&raw mut before) };
        let pushed = asked != error::SUCCESS || before != raw;
        if pushed {
            // SAFETY: the caller's promise.
            check("cuCtxPushCurrent", unsafe { (driver.push_context)(raw) })?;
        }
        Ok(Self { driver, pushed, stays_on_its_thread: PhantomData })
    }
}

impl Drop for Current {
    #[inline]
    fn drop(&mut self) {
        if !self.pushed {
            return;
        }
        let mut popped = ptr::null_mut();
        // SAFETY: pushed on this thread, which the guard cannot leave.
        let _ = unsafe { (self.driver.pop_context)(&raw mut popped) };
    }
}

/// A context over one CUDA device. All made here share the device's primary context, hence its pointers.
#[derive(Clone, Debug)]
pub struct CudaContext(Counted<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Shared,
    deferred: Deferred<Cuda>,
    roster: Arc<Roster<queue::Inner, CudaEvent>>,
    placed: Placed,
    events: Arc<Events>,
    native: Arc<Native>,
}

/// `CUpointer_attribute`.
mod attribute {
    pub(super) const MEMORY_TYPE: i32 = 2;
    pub(super) const IS_MANAGED: i32 = 8;
    pub(super) const DEVICE_ORDINAL: i32 = 9;
    pub(super) const RANGE_START: i32 = 11;
    pub(super) const RANGE_SIZE: i32 = 12;
}

impl CudaContext {
    pub(super) fn over(device: &CudaDevice) -> Result<Self> {
        Native::primary(device).map(Self::new)
    }

    /// Over a foreign context, which is borrowed.
    ///
    /// # Safety
    /// `raw` is a live context over `device`, and outlives whatever is made of the result.
    pub(super) unsafe fn borrowing(device: &CudaDevice, raw: Raw) -> Self {
        Self::new(Arc::new(Native { device: *device, raw, primary: false }))
    }

    fn new(native: Arc<Native>) -> Self {
        let info = native.device.info();
        let account = accounts::of(BackendKind::Cuda, native.driver(), info.ordinal as usize);
        let roster = Arc::new(Roster::new());
        let all = Arc::clone(&roster);
        let idle = move |limit| all.synchronize(limit, |queue: &Arc<queue::Inner>| queue.barrier(&[]));
        Self(Counted::new(Inner {
            shared: Shared::on(info, account).idle_by(idle),
            deferred: Deferred::new(),
            roster,
            placed: Placed::new(),
            events: Events::new(&native),
            native,
        }))
    }

    pub(super) fn driver(&self) -> &'static Driver {
        self.0.native.driver()
    }

    pub(super) fn native(&self) -> &Arc<Native> {
        &self.0.native
    }

    pub(super) fn events(&self) -> &Arc<Events> {
        &self.0.events
    }

    pub(super) fn handle(&self) -> Raw {
        self.0.native.raw
    }

    #[inline]
    pub(super) fn current(&self) -> Result<Current> {
        self.0.native.current()
    }

    pub(super) fn device(&self) -> &CudaDevice {
        &self.0.native.device
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.0.shared
    }

    pub(super) fn deferred(&self) -> &Deferred<Cuda> {
        &self.0.deferred
    }

    pub(super) fn roster(&self) -> &Roster<queue::Inner, CudaEvent> {
        &self.0.roster
    }

    pub(super) fn allocate(&self, kind: AllocKind, layout: Layout) -> Result<NonNull<u8>> {
        let address = self.0.placed.allocate(
            layout,
            |bytes| self.allocate_bytes(kind, bytes),
            // SAFETY: just allocated in this context, used by nobody.
            |base| unsafe { self.0.free_at(kind, base) },
        )?;
        let pointer = NonNull::new(ptr::with_exposed_provenance_mut(address));
        // `allocate_bytes` never gives 0.
        pointer.ok_or_else(|| error::of(ErrorKind::SizeOverflow))
    }

    fn allocate_bytes(&self, kind: AllocKind, size: usize) -> Result<usize> {
        let driver = self.driver();
        let _current = self.current()?;
        let mut address: usize = 0;
        let (operation, code) = match kind {
            AllocKind::Device => {
                // SAFETY: the context is current, room for the answer.
                ("cuMemAlloc", unsafe { (driver.allocate_device)(&raw mut address, size) })
            }
            AllocKind::Shared | AllocKind::Unknown => {
                // SAFETY: as above.
                let code = unsafe { (driver.allocate_managed)(&raw mut address, size, ATTACH_GLOBAL) };
                ("cuMemAllocManaged", code)
            }
            AllocKind::Host => {
                let mut pointer: *mut c_void = ptr::null_mut();
                // SAFETY: as above.
                let code = unsafe { (driver.allocate_host)(&raw mut pointer, size, PORTABLE_AND_MAPPED) };
                address = pointer as usize;
                ("cuMemHostAlloc", code)
            }
        };
        match code {
            error::SUCCESS if address != 0 => Ok(address),
            error::OUT_OF_MEMORY => {
                let (memory_type, requested) = (MemoryType::of(kind), size as u64);
                let kind = ErrorKind::OutOfMemory { memory_type, requested };
                Err(error::of(kind).with_native(i64::from(code)))
            }
            _ => Err(error::native(operation, code)),
        }
    }

    /// May block until the device is idle: the driver says that its own frees may.
    ///
    /// # Safety
    /// As [`Backend::free`](crate::Backend::free).
    pub(super) unsafe fn free(&self, block: &Block) {
        // SAFETY: the caller's promise.
        unsafe { self.0.free(block) };
    }

    /// Where the driver's allocation around a block starts.
    pub(super) fn driver_base(&self, block: &Block) -> usize {
        self.0.placed.base_of(block)
    }

    pub(super) fn query(&self, address: usize) -> Result<PointerInfo> {
        const HOST: u32 = 1;
        const DEVICE: u32 = 2;
        let (mut memory_type, mut managed, mut ordinal) = (0_u32, 0_u32, -1_i32);
        let (mut start, mut size) = (0_usize, 0_usize);
        let which = [
            attribute::MEMORY_TYPE,
            attribute::IS_MANAGED,
            attribute::DEVICE_ORDINAL,
            attribute::RANGE_START,
            attribute::RANGE_SIZE,
        ];
        let answers: [*mut c_void; 5] = [
            (&raw mut memory_type).cast(),
            (&raw mut managed).cast(),
            (&raw mut ordinal).cast(),
            (&raw mut start).cast(),
            (&raw mut size).cast(),
        ];
        let _current = self.current()?;
        // SAFETY: as many answers as questions, each with room for its type; the address is looked up only.
        let code = unsafe {
            let call = self.driver().pointer_attributes;
            call(which.len() as u32, which.as_ptr(), answers.as_ptr(), address)
        };
        match code {
            error::SUCCESS => {}
            // Some drivers refuse pointers that they do not know.
            error::INVALID_VALUE => return Ok(PointerInfo::UNKNOWN),
            _ => return Err(error::native("cuPointerGetAttributes", code)),
        }
        let kind = match (memory_type, managed != 0) {
            (HOST | DEVICE, true) => AllocKind::Shared,
            (HOST, false) => AllocKind::Host,
            (DEVICE, false) => AllocKind::Device,
            _ => return Ok(PointerInfo::UNKNOWN),
        };
        // Ordinary memory of a machine whose GPU reaches it is "host" without a range: not an allocation of the driver.
        if kind == AllocKind::Host && size == 0 {
            return Ok(PointerInfo::UNKNOWN);
        }
        let Some((start, size)) = self.0.placed.narrow(address, start, size) else {
            return Ok(PointerInfo::UNKNOWN);
        };
        let device = (kind != AllocKind::Host).then(|| u32::try_from(ordinal).ok()).flatten();
        Ok(PointerInfo { kind, base: start, size, device, context: self.0.shared.id() })
    }

    /// Events after all work that was submitted before.
    pub(super) fn pending(&self) -> Result<Vec<CudaEvent>> {
        self.0.roster.pending(self.0.shared.wait_limit(), |queue| queue.unfinished())
    }

    pub(super) fn synchronize(&self, limit: Duration) -> Result<()> {
        self.0.roster.synchronize(limit, |queue| queue.barrier(&[]))
    }
}

impl Inner {
    /// # Safety
    /// As [`Backend::free`](crate::Backend::free).
    unsafe fn free(&self, block: &Block) {
        let base = self.placed.take(block);
        // SAFETY: the caller's promise.
        unsafe { self.free_at(block.kind, base) };
    }

    /// # Safety
    /// The driver gave `base` for `kind`, it was not freed yet, and no operation uses it.
    unsafe fn free_at(&self, kind: AllocKind, base: usize) {
        let driver = self.native.driver();
        // A failure could not be acted on: the owner is gone.
        let Ok(_current) = self.native.current() else { return };
        // SAFETY: the caller's promise; host memory has a free of its own.
        let _ = unsafe {
            match kind {
                AllocKind::Host => (driver.free_host)(ptr::with_exposed_provenance_mut(base)),
                _ => (driver.free_device)(base),
            }
        };
    }
}

// SAFETY: a field, moved in when the context was made, and never replaced.
unsafe impl KeepsBooks for Inner {
    fn shared(&self) -> &Shared {
        &self.shared
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.deferred.drain(
            &self.shared,
            self.shared.wait_limit(),
            // SAFETY: the list hands out blocks of this context, once, after their events.
            |block| unsafe { self.free(block) },
            |buffer| match buffer {},
        );
    }
}
