//! Queues.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::OpenCl;
use crate::error::{self, Status, object};
use crate::event::{OpenClEvent, UserEvents, user_events_of};
use crate::loader::{Bits, Handle, Library, Raw, Usm};
use crate::memory::OpenClContext;
use usm_core::Result;
use usm_core::backend::{Advice, MemAdvice, QueueOps, QueueOrder};
#[cfg(feature = "kernel")]
use usm_core::backend::{Conversion, StridedCopy};
use usm_core::driver::delayed_event::DelayedEvent;
use usm_core::driver::sync::sleeping::Mutex;
use usm_core::driver::{After, process};
#[cfg(feature = "kernel")]
use usm_kernel::backend::driver::StridedCopies;

pub(super) const OUT_OF_ORDER: Bits = 1;
/// `CL_QUEUE_PROFILING_ENABLE`.
pub(super) const TIMED: Bits = 2;
/// No `CL_MIGRATE_MEM_OBJECT_*` flag: migrates to the queue's device.
const TO_DEVICE: Bits = 0;
/// `CL_FALSE`: the call does not wait.
pub(super) const NON_BLOCKING: u32 = 0;

/// Dropped queues of the whole process, because a queue may outlive its context's last handle.
static DROPPED_QUEUES: After<Arc<Handle>, DelayedEvent<OpenClEvent>> = After::new();

/// An OpenCL command queue.
#[derive(Clone, Debug)]
pub struct OpenClQueue(Arc<Inner>);

/// In cache lines of its own, because each launch writes it and the runtime's threads write its
/// neighbours in the heap.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Inner {
    handle: Arc<Handle>,
    context: OpenClContext,
    order: QueueOrder,
    /// Set for an in-order queue. A sleeping lock, because it is held during a call of the driver,
    /// which may be long.
    chain: Mutex<SubmissionChain>,
    /// Whether work may have been submitted to an out-of-order queue through this handle.
    used: AtomicBool,
    #[cfg(feature = "kernel")]
    copies: StridedCopies<OpenCl>,
}

/// The last operations of an in-order queue.
#[derive(Debug, Default)]
struct SubmissionChain {
    /// Event of the last operation. The next operation waits for it, which passes a failure on.
    last: Option<OpenClEvent>,
    /// Event of the operation before the last. If it has no other handle, the next operation reuses
    /// its heap block.
    spare: Option<OpenClEvent>,
}

impl OpenClQueue {
    /// `more` are properties beside the order.
    pub(super) fn create(context: &OpenClContext, order: QueueOrder, more: Bits) -> Result<Self> {
        let library = context.library();
        let properties = match order {
            QueueOrder::InOrder => more,
            QueueOrder::OutOfOrder => OUT_OF_ORDER | more,
        };
        let mut status = error::SUCCESS;
        // SAFETY: live context and a device of it.
        let raw = unsafe {
            (library.create_queue)(context.as_raw(), context.device().as_raw(), properties, &raw mut status)
        };
        let raw = object("clCreateCommandQueue", raw, status)?;
        // SAFETY: we own the reference.
        Ok(Self::from_handle(unsafe { Handle::new(library, raw, library.release_queue) }, context, order))
    }

    pub(super) fn from_handle(handle: Handle, context: &OpenClContext, order: QueueOrder) -> Self {
        let inner = Arc::new(Inner {
            handle: Arc::new(handle),
            context: context.clone(),
            order,
            chain: Mutex::default(),
            used: AtomicBool::new(false),
            #[cfg(feature = "kernel")]
            copies: context.strided_copies(),
        });
        context.queue_list().insert(&inner);
        Self(inner)
    }

    pub(super) fn library(&self) -> &'static Library {
        self.0.handle.library()
    }

    /// The native queue for callers that submit work themselves.
    pub(super) fn native_for_use(&self) -> &Handle {
        self.0.used.store(true, Ordering::Relaxed);
        &self.0.handle
    }

    /// Submits by `call`, which gets the queue, the USM functions, the wait list and a pointer to
    /// the new event, all of them valid during the call. The closure proves its own call of the
    /// runtime and writes an owned event to the pointer.
    pub(super) fn submit_usm(
        &self,
        operation: &'static str,
        after: &[OpenClEvent],
        call: impl FnOnce(Raw, &Usm, u32, *const Raw, *mut Raw) -> Status,
    ) -> Result<OpenClEvent> {
        let usm = self.0.context.usm()?;
        self.0.submit(operation, after, |queue, count, list, event| call(queue, usm, count, list, event))
    }

    /// As [`submit_usm`](Self::submit_usm), for calls that need no extension.
    pub(super) fn submit(
        &self,
        operation: &'static str,
        after: &[OpenClEvent],
        call: impl FnOnce(Raw, u32, *const Raw, *mut Raw) -> Status,
    ) -> Result<OpenClEvent> {
        self.0.submit(operation, after, call)
    }
}

impl QueueOps<OpenCl> for OpenClQueue {
    unsafe fn copy(
        &self,
        dst: *mut u8,
        src: *const u8,
        len: usize,
        after: &[OpenClEvent],
    ) -> Result<OpenClEvent> {
        self.submit_usm("clEnqueueMemcpyINTEL", after, |queue, usm, count, list, event| {
            // SAFETY: the caller's promise for the ranges.
            unsafe { (usm.copy)(queue, NON_BLOCKING, dst.cast(), src.cast(), len, count, list, event) }
        })
    }

    #[cfg(feature = "kernel")]
    unsafe fn copy_strided(&self, copy: &StridedCopy<'_>, after: &[OpenClEvent]) -> Result<OpenClEvent> {
        // SAFETY: the caller's promise.
        unsafe { self.0.copies.copy(&self.0.context, self, copy, after) }
    }

    #[cfg(feature = "kernel")]
    unsafe fn convert(&self, conversion: &Conversion<'_>, after: &[OpenClEvent]) -> Result<OpenClEvent> {
        // SAFETY: the caller's promise.
        unsafe { self.0.copies.convert(&self.0.context, self, conversion, after) }
    }

    unsafe fn fill(
        &self,
        dst: *mut u8,
        pattern: &[u8],
        len: usize,
        after: &[OpenClEvent],
    ) -> Result<OpenClEvent> {
        let (value, width) = (pattern.as_ptr().cast(), pattern.len());
        self.submit_usm("clEnqueueMemFillINTEL", after, |queue, usm, count, list, event| {
            // SAFETY: the caller's promise for the range; the pattern is read before the call
            // returns.
            unsafe { (usm.fill)(queue, dst.cast(), value, width, len, count, list, event) }
        })
    }

    unsafe fn barrier(&self, after: &[OpenClEvent]) -> Result<OpenClEvent> {
        self.0.marker(after)
    }
}

impl Advice<Self> for OpenCl {
    unsafe fn prefetch(
        queue: &OpenClQueue,
        pointer: *const u8,
        len: usize,
        after: &[OpenClEvent],
    ) -> Result<OpenClEvent> {
        let call = |queue, usm: &Usm, count, list, event| {
            // SAFETY: the caller's promise for the range.
            unsafe { (usm.migrate)(queue, pointer.cast(), len, TO_DEVICE, count, list, event) }
        };
        let submission = queue.submit_usm("clEnqueueMigrateMemINTEL", after, call);
        // Intel's CPU runtime does not support migration without a flag.
        submission.map_err(|error| match error.native {
            Some(code) if code == i64::from(error::INVALID_VALUE) => error::unsupported("prefetch"),
            _ => error,
        })
    }

    /// The extension defines no advice values: they are vendor specific, and drivers disagree on 0.
    unsafe fn advise(
        _: &OpenClQueue,
        _: *const u8,
        _: usize,
        _: MemAdvice,
        _: &[OpenClEvent],
    ) -> Result<OpenClEvent> {
        Err(error::unsupported("memory advice"))
    }
}

impl Inner {
    /// As [`OpenClQueue::submit_usm`].
    fn submit(
        &self,
        operation: &'static str,
        after: &[OpenClEvent],
        call: impl FnOnce(Raw, u32, *const Raw, *mut Raw) -> Status,
    ) -> Result<OpenClEvent> {
        let in_order = self.order == QueueOrder::InOrder;
        // Held during the call, so that two threads cannot use the same predecessor.
        let mut chain = in_order.then(|| self.chain.lock());
        if !in_order && !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        let before = chain.as_ref().and_then(|chain| chain.last.as_ref());
        let follows = !after.is_empty() || before.is_some_and(OpenClEvent::follows_user_events);
        let user_events = if follows { user_events_of(after.iter().chain(before))? } else { None };
        let (single_event, many);
        let list: &[Raw] = if after.is_empty() {
            single_event = before.map(OpenClEvent::as_raw);
            single_event.as_slice()
        } else {
            many = self.wait_list(after, before)?;
            &many
        };
        let pointer = if list.is_empty() { ptr::null() } else { list.as_ptr() };
        let mut raw = ptr::null_mut();
        let status = call(self.handle.raw(), list.len() as u32, pointer, &raw mut raw);
        let raw = object(operation, raw, status)?;
        let library = self.handle.library();
        // SAFETY: an event that `call` got from the runtime, with a reference that we own.
        let handle = unsafe { Handle::new(library, raw, library.release_event) };
        Ok(match &mut chain {
            Some(chain) => chain.push_last(handle, self, user_events),
            None => OpenClEvent::with_user_events(handle, Some(Arc::clone(&self.handle)), user_events),
        })
    }

    /// The events as the runtime takes them. Flushes the other queues, or their work might never
    /// start.
    fn wait_list(&self, after: &[OpenClEvent], before: Option<&OpenClEvent>) -> Result<Vec<Raw>> {
        let mut list = Vec::with_capacity(after.len() + 1);
        for event in after {
            if !event.is_of(&self.handle) {
                event.flush()?;
            }
            list.push(event.as_raw());
        }
        list.extend(before.map(OpenClEvent::as_raw));
        Ok(list)
    }

    /// Without events a marker waits for everything in the queue.
    pub(super) fn marker(&self, after: &[OpenClEvent]) -> Result<OpenClEvent> {
        let call = self.handle.library().marker;
        self.submit("clEnqueueMarkerWithWaitList", after, |queue, count, list, event| {
            // SAFETY: live queue and events, and a marker accesses no memory.
            unsafe { call(queue, count, list, event) }
        })
    }
}

impl SubmissionChain {
    /// The event of a new last operation.
    fn push_last(&mut self, handle: Handle, queue: &Inner, user_events: UserEvents) -> OpenClEvent {
        let event = match self.spare.take() {
            Some(spare) => spare.next_event(handle, &queue.handle, user_events),
            None => OpenClEvent::with_user_events(handle, Some(Arc::clone(&queue.handle)), user_events),
        };
        self.spare = self.last.replace(event.clone());
        event
    }
}

impl Drop for Inner {
    /// A queue's work outlives it. The context keeps the queue's last event, and the queue is
    /// released some time after that event.
    fn drop(&mut self) {
        let Ok(_inside) = process::ask() else { return };
        DROPPED_QUEUES.collect(drop);
        let last = match self.chain.get_mut().last.take() {
            Some(event) => Ok(Some(event)),
            None if self.order == QueueOrder::OutOfOrder && *self.used.get_mut() => {
                self.marker(&[]).map(Some)
            }
            None => Ok(None),
        };
        match &last {
            Ok(Some(event)) => {
                DROPPED_QUEUES.push(Arc::clone(&self.handle), vec![DelayedEvent::new(event.clone())])
            }
            Ok(None) => {}
            // Without an event it is unknown when the queue may be released.
            Err(_) => core::mem::forget(Arc::clone(&self.handle)),
        }
        self.context.queue_list().remove(self, last);
    }
}
