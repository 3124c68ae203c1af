//! Contexts: allocation, freeing and pointer queries.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::alloc::Layout;
use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use core::time::Duration;

use level_zero_sys::*;

use crate::device::{self, LevelZeroDevice};
use crate::event::{Events, LevelZeroEvent};
use crate::native::Native;
use crate::queue::{self, DroppedQueue, LevelZeroQueue};
use crate::{LevelZero, error};
use usm_core::backend::{Block, ContextOps, DeviceOps, PointerInfo, QueueOrder};
use usm_core::driver::placed_blocks::PlacedBlocks;
use usm_core::driver::queue_list::QueueList;
use usm_core::driver::sync::sleeping::Mutex;
use usm_core::driver::{self as after, After, Deadline, ledgers, process};
use usm_core::{AllocKind, BackendKind, ContextState, Deferred, ErrorKind, MemoryType, Result};

/// The live contexts. Intel's driver knows a pointer in every context of the driver, so this list
/// finds the pointer's own context.
static CONTEXTS: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

/// Dropping the last handle of a context takes time, so it happens without the lock.
fn live_contexts() -> Vec<Arc<Inner>> {
    CONTEXTS.lock().iter().filter_map(Weak::upgrade).collect()
}

/// A Level Zero context, used with one device.
#[derive(Clone, Debug)]
pub struct LevelZeroContext(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: ContextState,
    deferred: Deferred<LevelZero>,
    #[cfg(feature = "kernel")]
    strided_code: usm_kernel::backend::driver::StridedCode<LevelZero>,
    queue_list: Arc<QueueList<queue::Inner, LevelZeroEvent>>,
    placed_blocks: PlacedBlocks,
    /// The lists and events of dropped queues with unfinished work.
    dropped_queues: After<DroppedQueue, LevelZeroEvent>,
    event_pool: Arc<Events>,
    counting_events: Option<Arc<Events>>,
    native: Arc<Native>,
}

impl LevelZeroContext {
    /// For a new queue.
    #[cfg(feature = "kernel")]
    pub(super) fn strided_copies(&self) -> usm_kernel::backend::driver::StridedCopies<LevelZero> {
        self.0.strided_code.copies()
    }

    pub(super) fn create(device: &LevelZeroDevice) -> Result<Self> {
        let _inside = process::work()?;
        Ok(Self::new(Native::create(device)?))
    }

    /// Wraps a foreign context, which is not destroyed.
    ///
    /// # Safety
    /// `context` is a live context of `device`'s driver that includes the device, and outlives
    /// everything made from the result.
    pub(super) unsafe fn borrowing(device: &LevelZeroDevice, context: ze_context_handle_t) -> Self {
        Self::new(Native::borrowing(device, context))
    }

    fn new(native: Arc<Native>) -> Self {
        let device = native.device.handle();
        let ledger = ledgers::of(BackendKind::LevelZero, native.device.library(), device.0.addr());
        let queue_list = Arc::new(QueueList::new());
        let all = Arc::clone(&queue_list);
        let idle = move |limit| all.synchronize(limit, |queue: &Arc<queue::Inner>| queue.end_event(&[]));
        let inner = Arc::new(Inner {
            shared: ContextState::with_shared_ledger(native.device.info(), ledger)
                .of_library(native.device.driver().0.addr())
                .with_idle_wait(idle),
            deferred: Deferred::new(),
            #[cfg(feature = "kernel")]
            strided_code: usm_kernel::backend::driver::StridedCode::default(),
            queue_list,
            placed_blocks: PlacedBlocks::new(),
            dropped_queues: After::new(),
            event_pool: Events::pooled(&native),
            counting_events: Events::counting(&native),
            native,
        });
        let mut contexts = CONTEXTS.lock();
        contexts.retain(|context| context.strong_count() > 0);
        contexts.push(Arc::downgrade(&inner));
        Self(inner)
    }

    /// Whether the address belongs to another native context.
    fn belongs_to_another(&self, address: usize) -> bool {
        let (contexts, ours) = (live_contexts(), self.0.native.context());
        let mut others = contexts.iter().filter(|candidate| candidate.native.context() != ours);
        others.any(|other| other.shared.find(address).is_some())
    }

    pub(super) fn native(&self) -> &Arc<Native> {
        &self.0.native
    }

    pub(super) fn device(&self) -> &LevelZeroDevice {
        &self.0.native.device
    }

    pub(super) fn queue_list(&self) -> &QueueList<queue::Inner, LevelZeroEvent> {
        &self.0.queue_list
    }

    /// Events for every list.
    pub(super) fn pooled(&self) -> &Arc<Events> {
        &self.0.event_pool
    }

    /// Events for in-order lists.
    pub(super) fn counting(&self) -> Option<&Arc<Events>> {
        self.0.counting_events.as_ref()
    }

    pub(super) fn dropped_queues(&self) -> &After<DroppedQueue, LevelZeroEvent> {
        &self.0.dropped_queues
    }

    fn allocate_bytes(&self, kind: AllocKind, size: usize, alignment: usize) -> Result<usize> {
        let pointer = match self.allocate_native(kind, size, alignment) {
            // This crate then places the block inside a larger one.
            Err(Error::Call { result: ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT, .. }) => {
                self.allocate_native(kind, size, 0)
            }
            answer => answer,
        };
        match pointer {
            Ok(pointer) if !pointer.is_null() => Ok(pointer.expose_provenance()),
            Ok(_) => Err(error::native("an allocation without an address", ZE_RESULT_SUCCESS)),
            Err(error) => Err(match error::exhaustion(&error) {
                Some(code) => {
                    let (memory_type, requested) = (MemoryType::of(kind), size as u64);
                    error::of(ErrorKind::OutOfMemory { memory_type, requested })
                        .with_native(i64::from(code.0))
                }
                None => error::call(error),
            }),
        }
    }

    fn allocate_native(
        &self,
        kind: AllocKind,
        size: usize,
        alignment: usize,
    ) -> core::result::Result<*mut c_void, Error> {
        let (functions, context, device) =
            (self.0.native.functions(), self.0.native.context(), self.0.native.device());
        let on_host = ze_host_mem_alloc_desc_t::default();
        let on_device = ze_device_mem_alloc_desc_t::default();
        let (on_host, on_device) = (&raw const on_host, &raw const on_device);
        let mut pointer = ptr::null_mut();
        let out = &raw mut pointer;
        // SAFETY of each: a live context, a device of it, a size that is not zero, space for the
        // value.
        match kind {
            // SAFETY: see above.
            AllocKind::Host => unsafe { functions.zeMemAllocHost(context, on_host, size, alignment, out) },
            // SAFETY: see above.
            AllocKind::Device => unsafe {
                functions.zeMemAllocDevice(context, on_device, size, alignment, device, out)
            },
            // SAFETY: see above.
            AllocKind::Shared | AllocKind::Unknown => unsafe {
                functions.zeMemAllocShared(context, on_device, on_host, size, alignment, device, out)
            },
        }?;
        Ok(pointer)
    }

    /// Start of the driver's allocation that contains a block.
    pub(super) fn driver_base(&self, block: &Block) -> usize {
        self.0.placed_blocks.base_of(block)
    }

    /// Events after all previously submitted work.
    pub(super) fn pending(&self) -> Result<Vec<LevelZeroEvent>> {
        self.0.queue_list.pending(self.0.shared.wait_limit(), |queue| queue.unfinished())
    }
}

impl ContextOps<LevelZero> for LevelZeroContext {
    fn shared(&self) -> &ContextState {
        &self.0.shared
    }

    fn deferred(&self) -> Option<&Deferred<LevelZero>> {
        Some(&self.0.deferred)
    }

    fn create_queue(&self, order: QueueOrder) -> Result<LevelZeroQueue> {
        LevelZeroQueue::create(self, order)
    }

    fn allocate(&self, kind: AllocKind, layout: Layout) -> Result<NonNull<u8>> {
        // The call requests the alignment, but drivers may succeed without honouring it.
        let address = self.0.placed_blocks.allocate(
            layout,
            |bytes| self.allocate_bytes(kind, bytes, layout.align()),
            // SAFETY: just allocated in this context and not used yet.
            |base| _ = unsafe { self.0.free_at(base) },
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
        if address == 0 {
            // The validation layer reports a query of NULL as an error.
            return Ok(PointerInfo::UNKNOWN);
        }
        let functions = self.0.native.functions();
        let pointer = address as *const c_void;
        let mut properties = ze_memory_allocation_properties_t::default();
        let mut owner = ze_device_handle_t::NULL;
        // SAFETY: a live context, space for the values; the address is looked up, not dereferenced.
        unsafe {
            functions.zeMemGetAllocProperties(
                self.0.native.context(),
                pointer,
                &raw mut properties,
                &raw mut owner,
            )
        }
        .map_err(error::call)?;
        let kind = match properties.type_ {
            ZE_MEMORY_TYPE_HOST => AllocKind::Host,
            ZE_MEMORY_TYPE_DEVICE => AllocKind::Device,
            ZE_MEMORY_TYPE_SHARED => AllocKind::Shared,
            // Unknown, imported foreign memory, and kinds that later versions add.
            _ => return Ok(PointerInfo::UNKNOWN),
        };
        let (mut base, mut size) = (ptr::null_mut(), 0);
        // SAFETY: as above.
        unsafe {
            functions.zeMemGetAddressRange(self.0.native.context(), pointer, &raw mut base, &raw mut size)
        }
        .map_err(error::call)?;
        let Some((base, size)) = self.0.placed_blocks.narrow(address, base as usize, size) else {
            return Ok(PointerInfo::UNKNOWN);
        };
        if self.belongs_to_another(address) {
            return Ok(PointerInfo::UNKNOWN);
        }
        let device = match owner {
            _ if kind == AllocKind::Host || owner.is_null() => None,
            ours if ours == self.device().handle() => Some(self.0.shared.info().ordinal),
            other => device::ordinal_of(self.device().library(), other),
        };
        Ok(PointerInfo { kind, base, size, device, context: self.0.shared.id() })
    }

    fn synchronize(&self, limit: Duration) -> Result<()> {
        self.0.queue_list.synchronize(limit, |queue| queue.end_event(&[]))?;
        self.0.dropped_queues.collect(drop);
        Ok(())
    }

    fn report_failures(&self, limit: Duration) -> Result<()> {
        self.0.queue_list.report_failures(limit, |queue| queue.end_event(&[]))?;
        self.0.dropped_queues.collect(drop);
        Ok(())
    }

    fn for_each_pending(&self, limit: Duration, visit: &mut dyn FnMut(LevelZeroEvent)) -> Result<()> {
        let events = self.0.queue_list.pending_unreported(limit, |queue| queue.end_event(&[]).map(Some))?;
        events.into_iter().for_each(visit);
        Ok(())
    }
}

impl Inner {
    /// A block that the driver does not take back is leaked and counted.
    ///
    /// # Safety
    /// As [`ContextOps::free`](usm_core::backend::ContextOps::free).
    unsafe fn free(&self, block: &Block) {
        // SAFETY: the caller's promise.
        if !unsafe { self.free_at(self.placed_blocks.take(block)) } {
            // SAFETY: this is the block's context, and nothing frees the block again.
            unsafe { self.shared.leaked() };
        }
    }

    /// Whether the driver took the memory back. Otherwise its context stays for good.
    ///
    /// # Safety
    /// `base` comes from the driver and is not freed, and no operation uses it.
    unsafe fn free_at(&self, base: usize) -> bool {
        let pointer = ptr::with_exposed_provenance_mut(base);
        // SAFETY: the caller's promise.
        let code = unsafe { self.native.functions().zeMemFree(self.native.context(), pointer) };
        if code.is_err() {
            self.native.keep_memory();
        }
        code.is_ok()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Ok(_inside) = process::ask() else { return };
        let mut deadline = Deadline::after(self.shared.wait_limit());
        // Runs before owners of foreign memory, which may panic: lists with unfinished work must
        // not be destroyed.
        self.dropped_queues
            .drain(&mut deadline, drop, |queue| after::give_up(ManuallyDrop::into_inner(queue)));
        // SAFETY: the list passes blocks of this context, once, after their events.
        let free = |block: &Block| unsafe { self.free(block) };
        // SAFETY: the state of this context, to which the blocks return.
        unsafe { self.deferred.drain(&self.shared, deadline.remaining(), free, |buffer| match buffer {}) };
    }
}
