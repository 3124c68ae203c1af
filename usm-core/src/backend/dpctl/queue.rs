//! Queues and events.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::{c_int, c_void};
use core::time::Duration;

use super::device::DpctlDevice;
use super::error::{self, not_null};
use super::loader::{Handle, Library, Raw};
use super::memory::DpctlContext;
use crate::BackendKind;
use crate::backend::retired::Retired;
use crate::backend::roster::Completion;
use crate::backend::{EventStatus, QueueOrder, waiter};
use crate::error::{ErrorKind, Result};

/// `DPCTL_IN_ORDER` of the C headers.
const IN_ORDER: c_int = 1 << 1;

static RETIRED: Retired<Arc<Handle>, DpctlEvent> = Retired::new();

/// A SYCL queue.
#[derive(Clone, Debug)]
pub struct DpctlQueue(Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    handle: Arc<Handle>,
    context: DpctlContext,
}

/// A SYCL event.
#[derive(Clone, Debug)]
pub struct DpctlEvent(Arc<Handle>);

pub(super) fn create_native(context: &Handle, device: &DpctlDevice, order: QueueOrder) -> Result<Handle> {
    let library = context.library();
    let properties = match order {
        QueueOrder::InOrder => IN_ORDER,
        QueueOrder::OutOfOrder => 0,
    };
    // SAFETY: live references; the handler is callable from any thread.
    let raw = unsafe {
        (library.queue_create)(context.raw(), device.handle().raw(), Some(error::on_async_error), properties)
    };
    // SAFETY: the reference is the caller's.
    Ok(unsafe { Handle::new(library, not_null("DPCTLQueue_Create", raw)?, library.queue_delete) })
}

/// # Safety
/// `queue` is a live queue of `library`.
pub(super) unsafe fn device_of(library: &'static Library, queue: Raw) -> Result<DpctlDevice> {
    // SAFETY: the caller's promise; the reference is ours.
    unsafe { DpctlDevice::take(library, not_null("DPCTLQueue_GetDevice", (library.queue_device)(queue))?) }
}

/// # Safety
/// `queue` is a live queue of `library`.
pub(super) unsafe fn context_of(library: &'static Library, queue: Raw) -> Result<Handle> {
    // SAFETY: the caller's promise.
    let raw = not_null("DPCTLQueue_GetContext", unsafe { (library.queue_context)(queue) })?;
    // SAFETY: the reference is ours.
    Ok(unsafe { Handle::new(library, raw, library.context_delete) })
}

impl DpctlQueue {
    pub(super) fn create(context: &DpctlContext, order: QueueOrder) -> Result<Self> {
        let handle = create_native(context.native(), context.device(), order)?;
        Ok(Self::known(handle, context))
    }

    pub(super) fn known(handle: Handle, context: &DpctlContext) -> Self {
        let inner = Arc::new(Inner { handle: Arc::new(handle), context: context.clone() });
        context.roster().remember(&inner);
        Self(inner)
    }

    pub(super) fn native(&self) -> &Handle {
        &self.0.handle
    }

    /// # Safety
    /// As [`Backend::copy`](crate::Backend::copy).
    pub(super) unsafe fn copy(
        &self,
        dst: *mut u8,
        src: *const u8,
        len: usize,
        after: &[DpctlEvent],
    ) -> Result<DpctlEvent> {
        let after = native_events(after);
        let handle = &self.0.handle;
        // SAFETY: the caller's promise for the ranges; a live queue and live events.
        let raw = unsafe {
            let call = handle.library().queue_memcpy;
            call(handle.raw(), dst.cast(), src.cast(), len, after.as_ptr(), after.len())
        };
        // SAFETY: the event is the caller's.
        unsafe { DpctlEvent::take(handle.library(), "DPCTLQueue_MemcpyWithEvents", raw) }
    }

    /// # Safety
    /// As [`Backend::fill`](crate::Backend::fill).
    pub(super) unsafe fn fill(
        &self,
        dst: *mut u8,
        pattern: &[u8],
        len: usize,
        after: &[DpctlEvent],
    ) -> Result<DpctlEvent> {
        self.0.order_after(after)?;
        let library = self.0.handle.library();
        let queue = self.0.handle.raw();
        let dst = dst.cast::<c_void>();
        // In each call the range is the caller's promise, its length a multiple of the pattern's; the library counts
        // elements.
        let (operation, raw) = match *pattern {
            // SAFETY: see above.
            [byte] => ("DPCTLQueue_Memset", unsafe { (library.queue_memset)(queue, dst, byte, len) }),
            [a, b] => {
                let value = u16::from_ne_bytes([a, b]);
                // SAFETY: see above.
                ("DPCTLQueue_Fill16", unsafe { (library.queue_fill16)(queue, dst, value, len / 2) })
            }
            [a, b, c, d] => {
                let value = u32::from_ne_bytes([a, b, c, d]);
                // SAFETY: see above.
                ("DPCTLQueue_Fill32", unsafe { (library.queue_fill32)(queue, dst, value, len / 4) })
            }
            _ => match (pattern.first_chunk::<16>(), pattern.first_chunk::<8>()) {
                (Some(wide), _) => {
                    let mut value = [0_u64; 2];
                    bytemuck::bytes_of_mut(&mut value).copy_from_slice(wide);
                    // SAFETY: see above; the two words are read before the call returns.
                    ("DPCTLQueue_Fill128", unsafe {
                        (library.queue_fill128)(queue, dst, value.as_mut_ptr(), len / 16)
                    })
                }
                (None, Some(bytes)) => {
                    let value = u64::from_ne_bytes(*bytes);
                    // SAFETY: see above.
                    ("DPCTLQueue_Fill64", unsafe { (library.queue_fill64)(queue, dst, value, len / 8) })
                }
                (None, None) => {
                    return Err(error::of(ErrorKind::BadPattern { width: pattern.len(), len }));
                }
            },
        };
        // SAFETY: the event is the caller's.
        unsafe { DpctlEvent::take(library, operation, raw) }
    }

    /// # Safety
    /// As [`Advice::prefetch`](crate::backend::Advice::prefetch).
    pub(super) unsafe fn prefetch(
        &self,
        pointer: *const u8,
        len: usize,
        after: &[DpctlEvent],
    ) -> Result<DpctlEvent> {
        self.0.order_after(after)?;
        let handle = &self.0.handle;
        // SAFETY: the caller's promise; a live queue.
        let raw = unsafe { (handle.library().queue_prefetch)(handle.raw(), pointer.cast(), len) };
        // SAFETY: the event is the caller's.
        unsafe { DpctlEvent::take(handle.library(), "DPCTLQueue_Prefetch", raw) }
    }

    /// # Safety
    /// As [`Advice::advise`](crate::backend::Advice::advise).
    pub(super) unsafe fn advise(
        &self,
        pointer: *const u8,
        len: usize,
        advice: c_int,
        after: &[DpctlEvent],
    ) -> Result<DpctlEvent> {
        self.0.order_after(after)?;
        let handle = &self.0.handle;
        // SAFETY: the caller's promise; a live queue.
        let raw = unsafe { (handle.library().queue_advise)(handle.raw(), pointer.cast(), len, advice) };
        // SAFETY: the event is the caller's.
        unsafe { DpctlEvent::take(handle.library(), "DPCTLQueue_MemAdvise", raw) }
    }

    pub(super) fn barrier(&self, after: &[DpctlEvent]) -> Result<DpctlEvent> {
        self.0.barrier(after)
    }

    /// Submits by `call`, which gets the queue and the events to wait for.
    ///
    /// # Safety
    /// `call` passes them on to a function that submits, with valid arguments, and gives its event or NULL.
    pub(super) unsafe fn submit(
        &self,
        operation: &'static str,
        after: &[DpctlEvent],
        call: impl FnOnce(Raw, *const Raw, usize) -> Raw,
    ) -> Result<DpctlEvent> {
        let after = native_events(after);
        let handle = &self.0.handle;
        let raw = call(handle.raw(), after.as_ptr(), after.len());
        // SAFETY: the event is the caller's.
        unsafe { DpctlEvent::take(handle.library(), operation, raw) }
    }
}

impl Inner {
    pub(super) fn barrier(&self, after: &[DpctlEvent]) -> Result<DpctlEvent> {
        let library = self.handle.library();
        if after.is_empty() {
            // SAFETY: a live queue.
            let raw = unsafe { (library.queue_barrier)(self.handle.raw()) };
            // SAFETY: the event is the caller's.
            return unsafe { DpctlEvent::take(library, "DPCTLQueue_SubmitBarrier", raw) };
        }
        let after = native_events(after);
        // SAFETY: a live queue and live events.
        let raw = unsafe { (library.queue_barrier_for)(self.handle.raw(), after.as_ptr(), after.len()) };
        // SAFETY: the event is the caller's.
        unsafe { DpctlEvent::take(library, "DPCTLQueue_SubmitBarrierForEvents", raw) }
    }

    /// For calls that take no events: a barrier over `after` holds back whatever is submitted next.
    fn order_after(&self, after: &[DpctlEvent]) -> Result<()> {
        if after.is_empty() { Ok(()) } else { self.barrier(after).map(drop) }
    }
}

impl Drop for Inner {
    /// A queue's work outlives it; the context remembers what to wait for, and the queue is released well after it.
    fn drop(&mut self) {
        let last = self.barrier(&[]).ok();
        if let Some(event) = &last {
            RETIRED.retire(Arc::clone(&self.handle), event.clone());
        }
        self.context.roster().leave(self, last);
    }
}

fn native_events(events: &[DpctlEvent]) -> Vec<Raw> {
    events.iter().map(|event| event.0.raw()).collect()
}

impl DpctlEvent {
    pub(super) fn native(&self) -> &Handle {
        &self.0
    }

    /// # Safety
    /// `raw` is NULL or an event of `library` that the caller owns.
    pub(super) unsafe fn take(library: &'static Library, operation: &'static str, raw: Raw) -> Result<Self> {
        let raw = not_null(operation, raw)?;
        // SAFETY: the caller's promise.
        Ok(Self(Arc::new(unsafe { Handle::new(library, raw, library.event_delete) })))
    }

    pub(super) fn status(&self) -> Result<EventStatus> {
        // SAFETY: a live event.
        match unsafe { (self.0.library().event_status)(self.0.raw()) } {
            3 => Ok(EventStatus::Complete),
            1 | 2 => Ok(EventStatus::Pending),
            _ => Err(error::native("DPCTLEvent_GetCommandExecutionStatus")),
        }
    }
}

impl Completion for DpctlEvent {
    fn is_complete(&self) -> bool {
        matches!(self.status(), Ok(EventStatus::Complete))
    }

    /// Submitting has flushed already.
    fn wait(&self, limit: Duration) -> Result<()> {
        waiter::until_complete(&self.0, limit, || self.status())
            .map_err(|error| error.in_backend(BackendKind::Sycl))
    }
}

impl waiter::Blocking for Handle {
    fn block(&self) {
        // SAFETY: only events are waited for; the function lets no exception out.
        unsafe { (self.library().event_wait)(self.raw()) };
    }
}
