//! Contexts: allocation, freeing and pointer queries.

use alloc::sync::Arc;
use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::NonNull;
use core::time::Duration;

use crate::Dpctl;
use crate::device::{self, DpctlDevice};
use crate::error::{self, not_null};
use crate::event::DpctlEvent;
use crate::loader::{Handle, Library};
use crate::queue::{self, DpctlQueue};
use usm_core::backend::{Block, ContextOps, DeviceOps, PointerInfo, QueueOrder};
use usm_core::driver::placed_blocks::PlacedBlocks;
use usm_core::driver::queue_list::QueueList;
use usm_core::driver::{ledgers, process};
use usm_core::{AllocKind, BackendKind, ContextState, Deferred, ErrorKind, MemoryType, Result};

/// A context over one SYCL device. Contexts made from a device use the runtime's default context of
/// that device, the one in which dpctl and dpnp allocate.
#[derive(Clone, Debug)]
pub struct DpctlContext(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: ContextState,
    deferred: Deferred<Dpctl>,
    #[cfg(feature = "kernel")]
    strided_code: usm_kernel::backend::driver::StridedCode<Dpctl>,
    queue_list: Arc<QueueList<queue::Inner, DpctlEvent>>,
    placed_blocks: PlacedBlocks,
    device: DpctlDevice,
    /// Whether the context has only this device, so that pointer queries need not ask for the
    /// device.
    sole_device: bool,
    /// The C library's allocation functions take a queue; this one runs no work.
    allocator: Handle,
    context: Handle,
}

impl DpctlContext {
    /// For a new queue.
    #[cfg(feature = "kernel")]
    pub(super) fn strided_copies(&self) -> usm_kernel::backend::driver::StridedCopies<Dpctl> {
        self.0.strided_code.copies()
    }

    /// The default context of `device`.
    pub(super) fn create(device: &DpctlDevice) -> Result<Self> {
        let _inside = process::work()?;
        let library = device.handle().library();
        // SAFETY: a live device reference.
        let raw = unsafe { (library.cached_context)(device.handle().raw()) };
        let raw = not_null("DPCTLDeviceMgr_GetCachedContext", raw)?;
        // SAFETY: we own the reference.
        let context = unsafe { Handle::new(library, raw, library.context_delete) };
        Self::new(device.clone(), context)
    }

    pub(super) fn new(device: DpctlDevice, context: Handle) -> Result<Self> {
        let allocator = queue::create_native(&context, &device, usm_core::QueueOrder::InOrder, 0)?;
        let info = device.info();
        // Sub-devices come after all root devices and count as one device.
        let ledger = ledgers::of(BackendKind::Sycl, context.library(), info.ordinal as usize);
        let queue_list = Arc::new(QueueList::new());
        let all = Arc::clone(&queue_list);
        let idle = move |limit| all.synchronize(limit, |queue: &Arc<queue::Inner>| queue.end_event(&[]));
        Ok(Self(Arc::new(Inner {
            shared: ContextState::with_shared_ledger(info, ledger)
                .of_library(core::ptr::from_ref(context.library()).addr())
                .with_idle_wait(idle),
            deferred: Deferred::new(),
            #[cfg(feature = "kernel")]
            strided_code: usm_kernel::backend::driver::StridedCode::default(),
            queue_list,
            placed_blocks: PlacedBlocks::new(),
            sole_device: devices_of(&context)?.1 == 1,
            device,
            allocator,
            context,
        })))
    }

    pub(super) fn library(&self) -> &'static Library {
        self.0.context.library()
    }

    pub(super) fn native(&self) -> &Handle {
        &self.0.context
    }

    pub(super) fn device(&self) -> &DpctlDevice {
        &self.0.device
    }

    #[cfg(feature = "opencl")]
    pub(super) fn has_sole_device(&self) -> bool {
        self.0.sole_device
    }

    pub(super) fn queue_list(&self) -> &QueueList<queue::Inner, DpctlEvent> {
        &self.0.queue_list
    }

    /// Ordinal of the device that owns a pointer whose type is known.
    fn owner_of(&self, pointer: *const c_void) -> Option<u32> {
        if self.0.sole_device {
            return Some(self.0.device.info().ordinal);
        }
        let library = self.library();
        // SAFETY: the type query has just found that the pointer belongs to the context. A free by
        // another thread must not come in between; the registry answers for this crate's blocks, so
        // only foreign pointers get here, and only in contexts with several devices.
        let raw = NonNull::new(unsafe { (library.pointer_device)(pointer, self.0.context.raw()) })?;
        // SAFETY: we own the reference.
        let device = unsafe { Handle::new(library, raw, library.device_delete) };
        device::is_same_device(&device, self.0.device.handle()).then(|| self.0.device.info().ordinal)
    }
}

impl ContextOps<Dpctl> for DpctlContext {
    fn shared(&self) -> &ContextState {
        &self.0.shared
    }

    fn deferred(&self) -> Option<&Deferred<Dpctl>> {
        Some(&self.0.deferred)
    }

    fn create_queue(&self, order: QueueOrder) -> Result<DpctlQueue> {
        DpctlQueue::create(self, order, 0)
    }

    fn create_timed_queue(&self, order: QueueOrder) -> Result<DpctlQueue> {
        DpctlQueue::create(self, order, queue::TIMED)
    }

    fn allocate(&self, kind: AllocKind, layout: Layout) -> Result<NonNull<u8>> {
        let library = self.library();
        if !self.0.device.allocates(kind) {
            // Otherwise the library would throw through C.
            return Err(error::of(ErrorKind::Unsupported { operation: "this kind of USM memory" }));
        }
        let call = match kind {
            AllocKind::Host => library.allocate_host,
            AllocKind::Device => library.allocate_device,
            AllocKind::Shared | AllocKind::Unknown => library.allocate_shared,
        };
        let address = self.0.placed_blocks.allocate(
            layout,
            |bytes| {
                // SAFETY: a live queue, a power of two, a size that is not zero, and the device has
                // the kind's aspect.
                let raw = unsafe { call(layout.align(), bytes, self.0.allocator.raw()) };
                if raw.is_null() {
                    let (memory_type, requested) = (MemoryType::of(kind), bytes as u64);
                    return Err(error::of(ErrorKind::OutOfMemory { memory_type, requested }));
                }
                Ok(raw.expose_provenance())
            },
            // SAFETY: just allocated in this context and not used yet.
            |base| unsafe { self.0.free_at(base) },
        )?;
        let pointer = NonNull::new(core::ptr::with_exposed_provenance_mut(address));
        // The call above never returns 0.
        pointer.ok_or_else(|| error::of(ErrorKind::SizeOverflow))
    }

    unsafe fn free(&self, block: &Block) {
        // SAFETY: the caller's promise; the block is of this context, so that the library does not
        // throw.
        unsafe { self.0.free(block) };
    }

    /// Kind and device. SYCL knows neither base nor size, so both are 0 here and only the registry
    /// has them.
    fn query(&self, address: usize) -> Result<PointerInfo> {
        let library = self.library();
        let pointer = address as *const c_void;
        if pointer.is_null() {
            return Ok(PointerInfo::UNKNOWN);
        }
        // SAFETY: a live context; the address is looked up, not dereferenced.
        let kind = match unsafe { (library.pointer_type)(pointer, self.0.context.raw()) } {
            1 => AllocKind::Device,
            2 => AllocKind::Shared,
            3 => AllocKind::Host,
            _ => return Ok(PointerInfo::UNKNOWN),
        };
        let device = (kind != AllocKind::Host).then(|| self.owner_of(pointer)).flatten();
        Ok(PointerInfo { kind, base: 0, size: 0, device, context: self.0.shared.id() })
    }

    fn synchronize(&self, limit: Duration) -> Result<()> {
        self.0.queue_list.synchronize(limit, |queue| queue.end_event(&[]))
    }

    fn report_failures(&self, limit: Duration) -> Result<()> {
        self.0.queue_list.report_failures(limit, |queue| queue.end_event(&[]))
    }

    fn for_each_pending(&self, limit: Duration, visit: &mut dyn FnMut(DpctlEvent)) -> Result<()> {
        let events = self.0.queue_list.pending_unreported(limit, |queue| queue.end_event(&[]).map(Some))?;
        events.into_iter().for_each(visit);
        Ok(())
    }
}

/// The devices of a context, as a vector of the library, and their number.
pub(super) fn devices_of(context: &Handle) -> Result<(Handle, usize)> {
    let library = context.library();
    // SAFETY: a live context.
    let devices = not_null("DPCTLContext_GetDevices", unsafe { (library.context_devices)(context.raw()) })?;
    // SAFETY: we own the vector.
    let devices = unsafe { Handle::new(library, devices, library.device_vector_delete) };
    // SAFETY: a live vector.
    let count = unsafe { (library.device_vector_size)(devices.raw()) };
    Ok((devices, count))
}

impl Inner {
    /// # Safety
    /// As [`ContextOps::free`](usm_core::backend::ContextOps::free).
    unsafe fn free(&self, block: &Block) {
        // SAFETY: the caller's promise.
        unsafe { self.free_at(self.placed_blocks.take(block)) };
    }

    /// # Safety
    /// `base` comes from the library in this context and is not freed, and no operation uses it.
    unsafe fn free_at(&self, base: usize) {
        let pointer = core::ptr::with_exposed_provenance_mut(base);
        // SAFETY: the caller's promise; memory of this context, so that the library does not throw.
        unsafe { (self.context.library().free_with_context)(pointer, self.context.raw()) };
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let limit = self.shared.wait_limit();
        // SAFETY: the list passes blocks of this context, once, after their events.
        let free = |block: &Block| unsafe { self.free(block) };
        // SAFETY: the state of this context, to which the blocks return.
        unsafe { self.deferred.drain(&self.shared, limit, free, |buffer| match buffer {}) };
    }
}
