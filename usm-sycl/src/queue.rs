//! Queues.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ffi::{c_int, c_void};

use crate::Dpctl;
use crate::chain::{Lane, TrackedOperation};
use crate::device::DpctlDevice;
use crate::error::{self, not_null};
use crate::event::{self, DpctlEvent, Operation};
use crate::loader::{Handle, Library, Raw};
use crate::memory::DpctlContext;
use usm_core::backend::{Advice, MemAdvice, QueueOps, QueueOrder};
#[cfg(feature = "kernel")]
use usm_core::backend::{Conversion, StridedCopy};
use usm_core::driver::delayed_event::DelayedEvent;
use usm_core::driver::sync::{AtomicBool, Ordering};
use usm_core::driver::{After, process};
use usm_core::{ErrorKind, Result};
#[cfg(feature = "kernel")]
use usm_kernel::backend::driver::StridedCopies;

/// `DPCTL_ENABLE_PROFILING` and `DPCTL_IN_ORDER` of the C headers.
pub(super) const TIMED: c_int = 1;
const IN_ORDER: c_int = 1 << 1;

/// Dropped queues of the whole process, because a queue may outlive its context's last handle.
static DROPPED_QUEUES: After<Arc<Handle>, DelayedEvent<DpctlEvent>> = After::new();

/// A SYCL queue.
#[derive(Clone, Debug)]
pub struct DpctlQueue(Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    handle: Arc<Handle>,
    context: DpctlContext,
    /// Set for an in-order queue.
    lane: Option<Lane<Operation>>,
    /// Whether work may have been submitted through this handle.
    used: AtomicBool,
    #[cfg(feature = "kernel")]
    copies: StridedCopies<Dpctl>,
}

/// `more` are properties beside the order.
pub(super) fn create_native(
    context: &Handle,
    device: &DpctlDevice,
    order: QueueOrder,
    more: c_int,
) -> Result<Handle> {
    let library = context.library();
    let properties = match order {
        QueueOrder::InOrder => IN_ORDER | more,
        QueueOrder::OutOfOrder => more,
    };
    // SAFETY: live references; any thread may call the handler.
    let raw = unsafe {
        (library.queue_create)(context.raw(), device.handle().raw(), Some(error::on_async_error), properties)
    };
    // SAFETY: we own the reference.
    Ok(unsafe { Handle::new(library, not_null("DPCTLQueue_Create", raw)?, library.queue_delete) })
}

/// # Safety
/// `queue` is a live queue of `library`.
pub(super) unsafe fn device_of(library: &'static Library, queue: Raw) -> Result<DpctlDevice> {
    // SAFETY: the caller's promise.
    let raw = not_null("DPCTLQueue_GetDevice", unsafe { (library.queue_device)(queue) })?;
    // SAFETY: we own the reference.
    unsafe { DpctlDevice::take(library, raw) }
}

/// # Safety
/// `queue` is a live queue of `library`.
pub(super) unsafe fn context_of(library: &'static Library, queue: Raw) -> Result<Handle> {
    // SAFETY: the caller's promise.
    let raw = not_null("DPCTLQueue_GetContext", unsafe { (library.queue_context)(queue) })?;
    // SAFETY: we own the reference.
    Ok(unsafe { Handle::new(library, raw, library.context_delete) })
}

impl DpctlQueue {
    pub(super) fn create(context: &DpctlContext, order: QueueOrder, more: c_int) -> Result<Self> {
        let handle = create_native(context.native(), context.device(), order, more)?;
        Ok(Self::from_handle(handle, context, order))
    }

    pub(super) fn from_handle(handle: Handle, context: &DpctlContext, order: QueueOrder) -> Self {
        let lane = (order == QueueOrder::InOrder).then(Lane::new);
        let (handle, used) = (Arc::new(handle), AtomicBool::new(false));
        #[cfg(feature = "kernel")]
        let copies = context.strided_copies();
        let inner = Arc::new(Inner {
            handle,
            context: context.clone(),
            lane,
            used,
            #[cfg(feature = "kernel")]
            copies,
        });
        context.queue_list().insert(&inner);
        Self(inner)
    }

    pub(super) fn native(&self) -> &Handle {
        &self.0.handle
    }

    /// The native queue for callers that submit work themselves.
    pub(super) fn native_for_use(&self) -> &Handle {
        self.0.used.store(true, Ordering::Relaxed);
        &self.0.handle
    }

    /// Submits by `call`, which gets the queue and the events to wait for.
    ///
    /// # Safety
    /// `call` passes them to one function that submits, with valid arguments, and returns its event
    /// or NULL.
    pub(super) unsafe fn submit(
        &self,
        operation: &'static str,
        after: &[DpctlEvent],
        call: impl FnOnce(Raw, *const Raw, usize) -> Raw,
    ) -> Result<DpctlEvent> {
        let events = native_events(after);
        // SAFETY: the caller's promise.
        unsafe {
            self.0.submit_call(operation, after, true, |queue| Ok(call(queue, events.as_ptr(), events.len())))
        }
    }
}

impl QueueOps<Dpctl> for DpctlQueue {
    unsafe fn copy(
        &self,
        dst: *mut u8,
        src: *const u8,
        len: usize,
        after: &[DpctlEvent],
    ) -> Result<DpctlEvent> {
        let function = self.0.handle.library().queue_memcpy;
        let call = |queue, events, count| {
            // SAFETY: the caller's promise for the ranges; a live queue and live events.
            unsafe { function(queue, dst.cast(), src.cast(), len, events, count) }
        };
        // SAFETY: it returns the event of the copy.
        unsafe { self.submit("DPCTLQueue_MemcpyWithEvents", after, call) }
    }

    #[cfg(feature = "kernel")]
    unsafe fn copy_strided(&self, copy: &StridedCopy<'_>, after: &[DpctlEvent]) -> Result<DpctlEvent> {
        // SAFETY: the caller's promise.
        unsafe { self.0.copies.copy(&self.0.context, self, copy, after) }
    }

    #[cfg(feature = "kernel")]
    unsafe fn convert(&self, conversion: &Conversion<'_>, after: &[DpctlEvent]) -> Result<DpctlEvent> {
        // SAFETY: the caller's promise.
        unsafe { self.0.copies.convert(&self.0.context, self, conversion, after) }
    }

    unsafe fn fill(
        &self,
        dst: *mut u8,
        pattern: &[u8],
        len: usize,
        after: &[DpctlEvent],
    ) -> Result<DpctlEvent> {
        let library = self.0.handle.library();
        let dst = dst.cast::<c_void>();
        // In each call the range is valid by the caller's promise, and its length is a multiple of
        // the pattern's; the library counts elements.
        let operation = match pattern.len() {
            1 => "DPCTLQueue_Memset",
            2 => "DPCTLQueue_Fill16",
            4 => "DPCTLQueue_Fill32",
            8 => "DPCTLQueue_Fill64",
            16 => "DPCTLQueue_Fill128",
            width => return Err(error::of(ErrorKind::BadPattern { width, len })),
        };
        let call = |queue: Raw| match *pattern {
            // SAFETY: see above.
            [byte] => unsafe { (library.queue_memset)(queue, dst, byte, len) },
            [a, b] => {
                let value = u16::from_ne_bytes([a, b]);
                // SAFETY: see above.
                unsafe { (library.queue_fill16)(queue, dst, value, len / 2) }
            }
            [a, b, c, d] => {
                let value = u32::from_ne_bytes([a, b, c, d]);
                // SAFETY: see above.
                unsafe { (library.queue_fill32)(queue, dst, value, len / 4) }
            }
            [a, b, c, d, e, f, g, h] => {
                let value = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
                // SAFETY: see above.
                unsafe { (library.queue_fill64)(queue, dst, value, len / 8) }
            }
            _ => {
                let mut value = [0_u64; 2];
                usm_core::bytemuck::bytes_of_mut(&mut value).copy_from_slice(pattern);
                // SAFETY: see above; sixteen bytes, and the two words are read before the call
                // returns.
                unsafe { (library.queue_fill128)(queue, dst, value.as_mut_ptr(), len / 16) }
            }
        };
        // SAFETY: it returns the event of the fill.
        unsafe { self.0.submit_after_barrier(operation, after, call) }
    }

    unsafe fn barrier(&self, after: &[DpctlEvent]) -> Result<DpctlEvent> {
        self.0.end_event(after)
    }
}

impl Advice<Self> for Dpctl {
    unsafe fn prefetch(
        queue: &DpctlQueue,
        pointer: *const u8,
        len: usize,
        after: &[DpctlEvent],
    ) -> Result<DpctlEvent> {
        let function = queue.0.handle.library().queue_prefetch;
        // SAFETY: the caller's promise; a live queue.
        let call = |raw| unsafe { function(raw, pointer.cast(), len) };
        // SAFETY: it returns the event of the prefetch.
        unsafe { queue.0.submit_after_barrier("DPCTLQueue_Prefetch", after, call) }
    }

    /// SYCL defines only the value 0, which resets to the default. The others are device specific.
    unsafe fn advise(
        queue: &DpctlQueue,
        pointer: *const u8,
        len: usize,
        advice: MemAdvice,
        after: &[DpctlEvent],
    ) -> Result<DpctlEvent> {
        let MemAdvice::Reset = advice else {
            return Err(error::of(ErrorKind::Unsupported { operation: "memory advice other than reset" }));
        };
        let function = queue.0.handle.library().queue_advise;
        // SAFETY: the caller's promise; a live queue.
        let call = |raw| unsafe { function(raw, pointer.cast(), len, 0) };
        // SAFETY: it returns the event of the advice.
        unsafe { queue.0.submit_after_barrier("DPCTLQueue_MemAdvise", after, call) }
    }
}

/// The events in the library's form.
fn native_events(events: &[DpctlEvent]) -> Vec<Raw> {
    events.iter().map(|event| event.native().raw()).collect()
}

impl Inner {
    /// An event after `after` or, if it is empty, after everything in the queue. Works also after a
    /// failure; the event then fails.
    pub(super) fn end_event(&self, after: &[DpctlEvent]) -> Result<DpctlEvent> {
        let operation =
            if after.is_empty() { "DPCTLQueue_SubmitBarrier" } else { "DPCTLQueue_SubmitBarrierForEvents" };
        // SAFETY: a barrier accesses no memory.
        unsafe { self.submit_call(operation, after, false, |_| self.native_barrier(after)) }
    }

    fn native_barrier(&self, after: &[DpctlEvent]) -> Result<Raw> {
        let (library, queue) = (self.handle.library(), self.handle.raw());
        if after.is_empty() {
            // SAFETY: a live queue.
            return Ok(unsafe { (library.queue_barrier)(queue) });
        }
        let after = native_events(after);
        // SAFETY: a live queue and live events.
        Ok(unsafe { (library.queue_barrier_for)(queue, after.as_ptr(), after.len()) })
    }

    /// For calls that take no events: submits a barrier over `after`, which all later submissions
    /// wait for.
    ///
    /// # Safety
    /// As [`submit_call`](Self::submit_call).
    unsafe fn submit_after_barrier(
        &self,
        operation: &'static str,
        after: &[DpctlEvent],
        call: impl FnOnce(Raw) -> Raw,
    ) -> Result<DpctlEvent> {
        let behind = |queue| {
            if !after.is_empty() {
                let barrier = self.native_barrier(after)?;
                let operation = "DPCTLQueue_SubmitBarrierForEvents";
                // SAFETY: we own the event and do not need it.
                drop(unsafe { event::owned(self.handle.library(), operation, barrier) }?);
            }
            Ok(call(queue))
        };
        // SAFETY: the caller's promise.
        unsafe { self.submit_call(operation, after, true, behind) }
    }

    /// Submits by `call`, which gets the queue and returns the event or NULL. If `refuse`, fails
    /// after a known failure of the queue.
    ///
    /// # Safety
    /// `call` submits one operation with valid arguments, after `after`, and we own its event.
    unsafe fn submit_call(
        &self,
        operation: &'static str,
        after: &[DpctlEvent],
        refuse: bool,
        call: impl FnOnce(Raw) -> Result<Raw>,
    ) -> Result<DpctlEvent> {
        let follows =
            after.iter().map(|event| &event.0).filter(|event| !event.is_known_complete()).cloned().collect();
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        let call = || {
            let raw = call(self.handle.raw())?;
            // SAFETY: the caller's promise.
            unsafe { event::owned(self.handle.library(), operation, raw) }
        };
        let event = match &self.lane {
            Some(lane) => lane.submit(refuse, follows, call)?,
            None => TrackedOperation::new(call()?, follows),
        };
        Ok(DpctlEvent(event))
    }
}

impl Drop for Inner {
    /// A queue's work outlives it, so the context keeps the last event, and the queue is released
    /// some time after that event. An imported queue without own work is released at once.
    fn drop(&mut self) {
        let Ok(_inside) = process::ask() else { return };
        DROPPED_QUEUES.collect(drop);
        if !self.used.load(Ordering::Relaxed) {
            return self.context.queue_list().remove(self, Ok(None));
        }
        let last = self.end_event(&[]);
        match &last {
            Ok(event) => {
                DROPPED_QUEUES.push(Arc::clone(&self.handle), vec![DelayedEvent::new(event.clone())])
            }
            // Without an event it is unknown when the queue may be released.
            Err(_) => core::mem::forget(Arc::clone(&self.handle)),
        }
        self.context.queue_list().remove(self, last.map(Some));
    }
}
