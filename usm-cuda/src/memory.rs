//! Contexts: allocation, freeing and pointer queries.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::time::Duration;
use std::sync::OnceLock;

use crate::adapter::Description;
use crate::device::CudaDevice;
use crate::event::{CudaEvent, Events};
use crate::loader::Driver;
use crate::native::{Current, Native};
use crate::pool::{self, Pool, Share};
use crate::queue::{CudaQueue, Queues};
use crate::table::{Code, Raw};
use crate::{Cuda, error};
use usm_core::backend::{Block, ContextOps, DeviceOps, PointerInfo, QueueOrder};
use usm_core::driver::placed_blocks::PlacedBlocks;
use usm_core::driver::{Deadline, ledgers, process};
use usm_core::{AllocKind, ContextState, Deferred, ErrorKind, MemoryType, Result, driver as after};

/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`,
/// `hipHostMallocPortable | hipHostMallocMapped`.
const PORTABLE_AND_MAPPED: u32 = 1 | 2;
/// `CU_MEM_ATTACH_GLOBAL`, `hipMemAttachGlobal`.
const ATTACH_GLOBAL: u32 = 1;

/// A context over one device. All contexts made here share the device's primary context and so its
/// pointers.
#[derive(Clone, Debug)]
pub struct CudaContext(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: ContextState,
    deferred: Deferred<Cuda>,
    #[cfg(feature = "kernel")]
    strided_code: usm_kernel::backend::driver::StridedCode<Cuda>,
    queue_list: Arc<Queues>,
    placed_blocks: PlacedBlocks,
    events: Arc<Events>,
    /// Set by the first allocation of a queue.
    share: OnceLock<Share>,
    native: Arc<Native>,
}

impl CudaContext {
    /// For a new queue.
    #[cfg(feature = "kernel")]
    pub(super) fn strided_copies(&self) -> usm_kernel::backend::driver::StridedCopies<Cuda> {
        self.0.strided_code.copies()
    }

    pub(super) fn create(device: &CudaDevice) -> Result<Self> {
        Native::primary(device).map(Self::new)
    }

    /// Wraps a borrowed foreign context.
    ///
    /// # Safety
    /// `raw` is a live context over `device` and outlives everything made from the result.
    pub(super) unsafe fn borrowing(device: &CudaDevice, raw: Raw) -> Self {
        // SAFETY: the caller's promise.
        Self::new(unsafe { Native::borrowing(device, raw) })
    }

    fn new(native: Arc<Native>) -> Self {
        let info = native.device().info();
        let ledger = ledgers::of(native.driver().vendor.backend, native.driver(), info.ordinal as usize);
        let queue_list = Arc::new(Queues::new());
        let all = Arc::clone(&queue_list);
        let idle = move |limit| pool::Work::synchronize(&*all, limit);
        Self(Arc::new(Inner {
            shared: ContextState::with_shared_ledger(info, ledger)
                .of_library(ptr::from_ref(native.driver()).addr())
                .with_idle_wait(idle),
            deferred: Deferred::new(),
            #[cfg(feature = "kernel")]
            strided_code: usm_kernel::backend::driver::StridedCode::default(),
            queue_list,
            placed_blocks: PlacedBlocks::new(),
            events: Events::new(&native),
            share: OnceLock::new(),
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
        self.0.native.raw()
    }

    #[inline]
    pub(super) fn make_current(&self) -> Result<Current> {
        self.0.native.make_current()
    }

    pub(super) fn device(&self) -> &CudaDevice {
        self.0.native.device()
    }

    pub(super) fn queue_list(&self) -> &Queues {
        &self.0.queue_list
    }

    /// The pool of the device, for memory of queues.
    #[inline]
    pub(super) fn pool(&self) -> Result<&Pool> {
        match self.0.share.get() {
            Some(share) => Ok(share.pool()),
            None => self.open_pool(),
        }
    }

    #[cold]
    fn open_pool(&self) -> Result<&Pool> {
        // Some drivers need an existing context for this.
        let _current = self.make_current()?;
        let share = pool::share_of_device(self.device(), self.0.queue_list.clone())?;
        // If several threads make one, the others drop their share here.
        Ok(self.0.share.get_or_init(|| share).pool())
    }

    /// Makes a call that allocates device memory. If there is none, repeats the call after trimming
    /// the pool, and a last time after waiting for the pool's users, within the wait limit.
    #[inline]
    pub(super) fn allocate_with_retries(&self, mut call: impl FnMut() -> Code) -> Code {
        match call() {
            error::OUT_OF_MEMORY => self.retry_after_trim(call),
            code => code,
        }
    }

    #[cold]
    fn retry_after_trim(&self, mut call: impl FnMut() -> Code) -> Code {
        if !pool::trim(self.device()) {
            return error::OUT_OF_MEMORY;
        }
        match call() {
            error::OUT_OF_MEMORY => {}
            code => return code,
        }
        pool::wait_for_users(self.device(), Deadline::after(self.0.shared.wait_limit()));
        pool::trim(self.device());
        call()
    }

    pub(super) fn placed(&self) -> &PlacedBlocks {
        &self.0.placed_blocks
    }

    fn allocate_bytes(&self, kind: AllocKind, size: usize) -> Result<usize> {
        let driver = self.driver();
        let names = driver.names();
        let _current = self.make_current()?;
        let mut address: usize = 0;
        let (operation, code) = match kind {
            AllocKind::Device => {
                let code = self.allocate_with_retries(|| {
                    // SAFETY: the context is current, space for the value.
                    unsafe { (driver.allocate_device)(&raw mut address, size) }
                });
                (names.allocate_device, code)
            }
            AllocKind::Shared | AllocKind::Unknown => {
                let code = self.allocate_with_retries(|| {
                    // SAFETY: as above.
                    unsafe { (driver.allocate_managed)(&raw mut address, size, ATTACH_GLOBAL) }
                });
                (names.allocate_managed, code)
            }
            // No pool keeps host memory.
            AllocKind::Host => {
                let mut pointer: *mut c_void = ptr::null_mut();
                // SAFETY: as above.
                let code = unsafe { (driver.allocate_host)(&raw mut pointer, size, PORTABLE_AND_MAPPED) };
                address = pointer as usize;
                (names.allocate_host, code)
            }
        };
        match code {
            error::SUCCESS if address != 0 => Ok(address),
            error::OUT_OF_MEMORY => {
                let (memory_type, requested) = (MemoryType::of(kind), size as u64);
                let kind = ErrorKind::OutOfMemory { memory_type, requested };
                Err(driver.error(kind).with_native(i64::from(code)))
            }
            _ => Err(driver.native(operation, code)),
        }
    }

    /// Start of the driver's allocation that contains a block.
    pub(super) fn driver_base(&self, block: &Block) -> usize {
        self.0.placed_blocks.base_of(block)
    }

    /// Events after all previously submitted work.
    pub(super) fn pending(&self) -> Result<Vec<CudaEvent>> {
        self.0.queue_list.pending(self.0.shared.wait_limit(), |queue| queue.unfinished())
    }
}

impl ContextOps<Cuda> for CudaContext {
    fn shared(&self) -> &ContextState {
        &self.0.shared
    }

    fn deferred(&self) -> Option<&Deferred<Cuda>> {
        Some(&self.0.deferred)
    }

    fn create_queue(&self, order: QueueOrder) -> Result<CudaQueue> {
        CudaQueue::create(self, order, self.events())
    }

    fn create_timed_queue(&self, order: QueueOrder) -> Result<CudaQueue> {
        CudaQueue::create(self, order, &Events::timed(self.events())?)
    }

    fn allocate(&self, kind: AllocKind, layout: Layout) -> Result<NonNull<u8>> {
        let address = self.0.placed_blocks.allocate(
            layout,
            |bytes| self.allocate_bytes(kind, bytes),
            // SAFETY: just allocated in this context and not used yet.
            |base| unsafe { self.0.free_at(kind, base) },
        )?;
        let pointer = NonNull::new(ptr::with_exposed_provenance_mut(address));
        // `allocate_bytes` never returns 0.
        pointer.ok_or_else(|| self.driver().error(ErrorKind::SizeOverflow))
    }

    /// May block until the device is idle, as the driver documents for its frees.
    unsafe fn free(&self, block: &Block) {
        // SAFETY: the caller's promise.
        unsafe { self.0.free(block) };
    }

    fn query(&self, address: usize) -> Result<PointerInfo> {
        let driver = self.driver();
        if let Some(ours) = pool::find(driver, address) {
            // Memory that a trim returned may be allocated again, outside of any pool.
            let of_device = || {
                let ordinal = self.device().info().ordinal as usize;
                ledgers::of(driver.vendor.backend, driver, ordinal).find_any(address)
            };
            let (ours, context) = (ours.or_else(of_device), self.0.shared.id());
            return Ok(ours.map_or(PointerInfo::UNKNOWN, |info| PointerInfo { context, ..info }));
        }
        let current = self.make_current()?;
        let (code, description) = driver.describe(address);
        drop(current);
        match code {
            error::SUCCESS => {}
            // Some drivers return an error for unknown pointers.
            error::INVALID_VALUE => return Ok(PointerInfo::UNKNOWN),
            _ => return Err(driver.native(driver.names().pointer_attributes, code)),
        }
        let constants = &driver.constants;
        let host = description.memory_type == constants.host_memory;
        let kind = match description.is_managed != 0 {
            _ if !host && description.memory_type != constants.device_memory => {
                return Ok(PointerInfo::UNKNOWN);
            }
            true => AllocKind::Shared,
            false if host => AllocKind::Host,
            false => AllocKind::Device,
        };
        let Description { ordinal, start, size, .. } = description;
        // If the GPU can access ordinary memory, the driver calls it "host" without a range. It is
        // no allocation of the driver.
        if kind == AllocKind::Host && size == 0 {
            return Ok(PointerInfo::UNKNOWN);
        }
        let Some((start, size)) = self.0.placed_blocks.narrow(address, start, size) else {
            return Ok(PointerInfo::UNKNOWN);
        };
        let device = (kind != AllocKind::Host).then(|| u32::try_from(ordinal).ok()).flatten();
        Ok(PointerInfo { kind, base: start, size, device, context: self.0.shared.id() })
    }

    fn free_memory(&self) -> Result<u64> {
        let _current = self.make_current()?;
        let (driver, mut free, mut total) = (self.device().driver(), 0, 0);
        // SAFETY: space for both values; a context is current.
        let code = unsafe { (driver.free_memory)(&raw mut free, &raw mut total) };
        driver.check(driver.names().free_memory, code)?;
        Ok(free as u64)
    }

    fn synchronize(&self, limit: Duration) -> Result<()> {
        self.0.synchronize(limit)
    }

    fn report_failures(&self, limit: Duration) -> Result<()> {
        self.0.queue_list.report_failures(limit, |queue| queue.event_after(&[]))
    }

    fn for_each_pending(&self, limit: Duration, visit: &mut dyn FnMut(CudaEvent)) -> Result<()> {
        let events = self.0.queue_list.pending_unreported(limit, |queue| queue.event_after(&[]).map(Some))?;
        events.into_iter().for_each(visit);
        Ok(())
    }
}

impl Inner {
    fn synchronize(&self, limit: Duration) -> Result<()> {
        pool::Work::synchronize(&*self.queue_list, limit)
    }

    /// # Safety
    /// As [`ContextOps::free`](usm_core::backend::ContextOps::free).
    unsafe fn free(&self, block: &Block) {
        let base = self.placed_blocks.take(block);
        // SAFETY: the caller's promise.
        unsafe { self.free_at(block.kind, base) };
    }

    /// # Safety
    /// `base` comes from the driver for `kind` and is not freed, and no operation uses it.
    unsafe fn free_at(&self, kind: AllocKind, base: usize) {
        let driver = self.native.driver();
        let Ok(_current) = self.native.make_current() else {
            // SAFETY: this is the backend, and the block stays.
            return unsafe { self.shared.leaked() };
        };
        // A failure has no remedy, because the owner is dropped.
        let _ = match kind {
            // SAFETY: the caller's promise; host memory has its own free.
            AllocKind::Host => unsafe { (driver.free_host)(ptr::with_exposed_provenance_mut(base)) },
            // SAFETY: the caller's promise.
            _ => unsafe { (driver.free_device)(base) },
        };
    }
}

impl Drop for Inner {
    /// No list has the work on memory that is freed in stream order, and the driver's context must
    /// outlive that work.
    fn drop(&mut self) {
        let Ok(_inside) = process::ask() else { return };
        let mut deadline = Deadline::after(self.shared.wait_limit());
        let idle = deadline.wait(|left| self.synchronize(left));
        // Work that timed out may run for ever, and work without an event runs unobserved. After a
        // fault no work runs, but the device serves no call either, so nothing can be freed.
        if idle.is_err() {
            after::give_up((Arc::clone(&self.native), self.share.take()));
        }
        // SAFETY: the list passes blocks of this context, once, after their events.
        let free = |block: &Block| unsafe { self.free(block) };
        // SAFETY: the state of this context, to which the blocks return.
        unsafe { self.deferred.drain(&self.shared, deadline.remaining(), free, |buffer| match buffer {}) };
        // This may destroy the pool, after all memory and before the driver's context.
        drop(self.share.take());
    }
}
