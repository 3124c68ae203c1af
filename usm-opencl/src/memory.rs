//! Contexts: allocation, freeing, pointer queries.

use alloc::sync::Arc;
use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::time::Duration;

use crate::OpenCl;
use crate::device::{self, OpenClDevice};
use crate::error::{self, Status, check, object};
use crate::event::OpenClEvent;
use crate::loader::{Handle, Library, Usm};
use crate::queue::{self, OpenClQueue};
use usm_core::backend::{Block, ContextOps, DeviceOps, PointerInfo, QueueOrder};
use usm_core::driver::placed_blocks::PlacedBlocks;
use usm_core::driver::queue_list::QueueList;
use usm_core::driver::{ledgers, process};
use usm_core::{AllocKind, BackendKind, ContextState, Deferred, ErrorKind, MemoryType, Result};

/// Constants of the extension's headers.
mod info {
    pub(super) const TYPE: u32 = 0x419A;
    pub(super) const BASE: u32 = 0x419B;
    pub(super) const SIZE: u32 = 0x419C;
    pub(super) const HOST: u32 = 0x4197;
    pub(super) const DEVICE: u32 = 0x4198;
    pub(super) const SHARED: u32 = 0x4199;
}

const CONTEXT_PLATFORM: isize = 0x1084;

/// An OpenCL context over one device.
#[derive(Clone, Debug)]
pub struct OpenClContext(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: ContextState,
    deferred: Deferred<OpenCl>,
    #[cfg(feature = "kernel")]
    strided_code: usm_kernel::backend::driver::StridedCode<OpenCl>,
    queue_list: Arc<QueueList<queue::Inner, OpenClEvent>>,
    placed_blocks: PlacedBlocks,
    device: OpenClDevice,
    context: Handle,
}

impl OpenClContext {
    /// For a new queue.
    #[cfg(feature = "kernel")]
    pub(super) fn strided_copies(&self) -> usm_kernel::backend::driver::StridedCopies<OpenCl> {
        self.0.strided_code.copies()
    }

    pub(super) fn create(device: &OpenClDevice) -> Result<Self> {
        let _inside = process::work()?;
        let library = device.library();
        let properties = [CONTEXT_PLATFORM, device::platform(device), 0];
        let id = device.as_raw();
        let mut status = error::SUCCESS;
        // SAFETY: one device, a list of properties that ends in 0, no callback.
        let raw = unsafe {
            let call = library.create_context;
            call(properties.as_ptr(), 1, &raw const id, None, ptr::null_mut(), &raw mut status)
        };
        let raw = object("clCreateContext", raw, status)?;
        // SAFETY: we own the reference.
        Ok(Self::new(*device, unsafe { Handle::new(library, raw, library.release_context) }))
    }

    pub(super) fn new(device: OpenClDevice, context: Handle) -> Self {
        let ledger = ledgers::of(BackendKind::OpenCl, device.library(), device.as_raw().addr());
        let queue_list = Arc::new(QueueList::new());
        let all = Arc::clone(&queue_list);
        let idle = move |limit| all.synchronize(limit, |queue: &Arc<queue::Inner>| queue.marker(&[]));
        Self(Arc::new(Inner {
            shared: ContextState::with_shared_ledger(device.info(), ledger).with_idle_wait(idle),
            deferred: Deferred::new(),
            #[cfg(feature = "kernel")]
            strided_code: usm_kernel::backend::driver::StridedCode::default(),
            queue_list,
            placed_blocks: PlacedBlocks::new(),
            device,
            context,
        }))
    }

    pub(super) fn native(&self) -> &Handle {
        &self.0.context
    }

    pub(super) fn library(&self) -> &'static Library {
        self.0.context.library()
    }

    pub(super) fn device(&self) -> &OpenClDevice {
        &self.0.device
    }

    pub(super) fn queue_list(&self) -> &QueueList<queue::Inner, OpenClEvent> {
        &self.0.queue_list
    }

    pub(super) fn usm(&self) -> Result<&Usm> {
        self.0.device.usm.as_ref().ok_or_else(|| error::unsupported("unified shared memory on this platform"))
    }

    #[inline]
    fn allocate_bytes(&self, usm: &Usm, kind: AllocKind, size: usize, alignment: u32) -> Result<usize> {
        let (context, device) = (self.as_raw(), self.0.device.as_raw());
        let mut status = error::SUCCESS;
        let (properties, room) = (ptr::null(), &raw mut status);
        let raw = match kind {
            // SAFETY: a live context, no properties, a size that is not zero.
            AllocKind::Host => unsafe { (usm.allocate_host)(context, properties, size, alignment, room) },
            AllocKind::Device => {
                // SAFETY: as above, and a device of the context.
                unsafe { (usm.allocate_device)(context, device, properties, size, alignment, room) }
            }
            AllocKind::Shared | AllocKind::Unknown => {
                // SAFETY: as above.
                unsafe { (usm.allocate_shared)(context, device, properties, size, alignment, room) }
            }
        };
        if raw.is_null() { allocation_error(kind, size, status) } else { Ok(raw.expose_provenance()) }
    }

    fn alloc_info<T: usm_core::bytemuck::Pod>(&self, usm: &Usm, address: usize, query: u32) -> Result<T> {
        let mut value = T::zeroed();
        let answer = (&raw mut value).cast();
        // SAFETY: a live context, space for the value; the address is looked up, not dereferenced.
        let status = unsafe {
            (usm.alloc_info)(
                self.as_raw(),
                address as *const c_void,
                query,
                size_of::<T>(),
                answer,
                ptr::null_mut(),
            )
        };
        check("clGetMemAllocInfoINTEL", status)?;
        Ok(value)
    }
}

impl ContextOps<OpenCl> for OpenClContext {
    fn shared(&self) -> &ContextState {
        &self.0.shared
    }

    fn deferred(&self) -> Option<&Deferred<OpenCl>> {
        Some(&self.0.deferred)
    }

    fn create_queue(&self, order: QueueOrder) -> Result<OpenClQueue> {
        OpenClQueue::create(self, order, 0)
    }

    fn create_timed_queue(&self, order: QueueOrder) -> Result<OpenClQueue> {
        OpenClQueue::create(self, order, queue::TIMED)
    }

    fn allocate(&self, kind: AllocKind, layout: Layout) -> Result<NonNull<u8>> {
        let usm = self.usm()?;
        let Ok(alignment) = u32::try_from(layout.align()) else {
            return Err(error::of(ErrorKind::BadAlignment { alignment: layout.align() }));
        };
        // The call requests the alignment, but drivers may succeed without honouring it.
        let address = self.0.placed_blocks.allocate(
            layout,
            |bytes| self.allocate_bytes(usm, kind, bytes, alignment),
            // SAFETY: just allocated in this context and not used yet.
            |base| unsafe { self.0.free_at(base) },
        )?;
        let pointer = NonNull::new(ptr::with_exposed_provenance_mut(address));
        // `allocate_bytes` never returns 0.
        pointer.ok_or_else(|| error::of(ErrorKind::SizeOverflow))
    }

    unsafe fn free(&self, block: &Block) {
        // SAFETY: the caller's promise.
        unsafe { self.0.free(block) };
    }

    fn query(&self, address: usize) -> Result<PointerInfo> {
        let Some(usm) = &self.0.device.usm else { return Ok(PointerInfo::UNKNOWN) };
        if address == 0 {
            // Some drivers return an error for NULL.
            return Ok(PointerInfo::UNKNOWN);
        }
        let kind = match self.alloc_info::<u32>(usm, address, info::TYPE)? {
            info::HOST => AllocKind::Host,
            info::DEVICE => AllocKind::Device,
            info::SHARED => AllocKind::Shared,
            // Unknown, and kinds that later versions add.
            _ => return Ok(PointerInfo::UNKNOWN),
        };
        let base = self.alloc_info(usm, address, info::BASE)?;
        let size = self.alloc_info(usm, address, info::SIZE)?;
        let Some((base, size)) = self.0.placed_blocks.narrow(address, base, size) else {
            return Ok(PointerInfo::UNKNOWN);
        };
        Ok(PointerInfo {
            kind,
            base,
            size,
            device: (kind != AllocKind::Host).then_some(self.0.shared.info().ordinal),
            context: self.0.shared.id(),
        })
    }

    fn synchronize(&self, limit: Duration) -> Result<()> {
        self.0.queue_list.synchronize(limit, |queue| queue.marker(&[]))
    }

    fn report_failures(&self, limit: Duration) -> Result<()> {
        self.0.queue_list.report_failures(limit, |queue| queue.marker(&[]))
    }

    fn for_each_pending(&self, limit: Duration, visit: &mut dyn FnMut(OpenClEvent)) -> Result<()> {
        let events = self.0.queue_list.pending_unreported(limit, |queue| queue.marker(&[]).map(Some))?;
        events.into_iter().for_each(visit);
        Ok(())
    }
}

pub(super) fn is_exhaustion(status: Status) -> bool {
    matches!(
        status,
        error::OUT_OF_HOST_MEMORY | error::OUT_OF_RESOURCES | error::MEM_OBJECT_ALLOCATION_FAILURE
    )
}

#[cold]
fn allocation_error(kind: AllocKind, size: usize, status: Status) -> Result<usize> {
    if is_exhaustion(status) {
        let kind = ErrorKind::OutOfMemory { memory_type: MemoryType::of(kind), requested: size as u64 };
        return Err(error::of(kind).with_native(i64::from(status)));
    }
    let operation = match kind {
        AllocKind::Host => "clHostMemAllocINTEL",
        AllocKind::Device => "clDeviceMemAllocINTEL",
        AllocKind::Shared | AllocKind::Unknown => "clSharedMemAllocINTEL",
    };
    Err(error::native(operation, status))
}

impl Inner {
    /// # Safety
    /// As [`ContextOps::free`](usm_core::backend::ContextOps::free).
    unsafe fn free(&self, block: &Block) {
        // SAFETY: the caller's promise.
        unsafe { self.free_at(self.placed_blocks.take(block)) };
    }

    /// # Safety
    /// `base` comes from the driver and is not freed, and no operation uses it.
    unsafe fn free_at(&self, base: usize) {
        if let Some(usm) = &self.device.usm {
            // SAFETY: the caller's promise. A failure has no remedy, because the owner is dropped.
            let _ = unsafe { (usm.free)(self.context.raw(), ptr::with_exposed_provenance_mut(base)) };
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the list passes blocks of this context, once, after their events.
        let free = |block: &Block| unsafe { self.free(block) };
        // SAFETY: the state of this context, to which the blocks return.
        unsafe { self.deferred.drain(&self.shared, self.shared.wait_limit(), free, drop) };
    }
}
