//! Export and import of native handles, for programs and crates that also call SYCL or its C
//! library themselves.
//!
//! | what | out | in | owner afterwards |
//! |---|---|---|---|
//! | device | [`DpctlDevice::as_raw`] | – | ours |
//! | context | [`DpctlContext::as_raw`] | [`DpctlContext::from_raw`], [`DpctlContext::of_queue`] | copied: each side deletes its own object |
//! | queue | [`DpctlQueue::as_raw`] | [`DpctlQueue::from_raw`] | copied |
//! | event | [`DpctlEvent::as_raw`] | [`DpctlEvent::from_raw`] | copied |
//! | allocation | [`Allocation::as_ptr`] | [`borrow_allocation`] | the owner's, which is dropped after the last use |
//! | | | [`take_allocation`] | ours: freed with the allocation |
//!
//! A handle from `as_raw` lives as long as its object here; `copy_native` returns an object that
//! the receiver owns, as capsules hold it. Copies of an object refer to the same context, queue or
//! event. Submit work over allocations of this crate by [`submit`] inside
//! [`Queue::submit`](usm_core::Queue::submit), so that it is ordered.

use alloc::boxed::Box;
use core::any::Any;
use core::ffi::{CStr, c_void};
use core::ptr::NonNull;

use crate::error::{self, not_null};
use crate::loader::Handle;
use crate::memory::devices_of;
use crate::queue::{context_of, device_of};
use crate::{Dpctl, DpctlContext, DpctlDevice, DpctlEvent, DpctlQueue, device, event};
use usm_core::backend::{Block, ContextOps, QueueOrder};
use usm_core::driver::process;
use usm_core::{AllocKind, Allocation, Context, ErrorKind, Result};

/// `DPCTLSyclDeviceRef`, not NULL.
pub type DPCTLSyclDeviceRef = NonNull<c_void>;
/// `DPCTLSyclContextRef`, not NULL: a `sycl::context*`.
pub type DPCTLSyclContextRef = NonNull<c_void>;
/// `DPCTLSyclQueueRef`, not NULL: a `sycl::queue*`.
pub type DPCTLSyclQueueRef = NonNull<c_void>;
/// `DPCTLSyclEventRef`, not NULL: a `sycl::event*`.
pub type DPCTLSyclEventRef = NonNull<c_void>;

impl Dpctl {
    /// Deletes a result of [`DpctlQueue::copy_native`].
    ///
    /// # Safety
    /// `native` came from `copy_native` of a queue of this library, and is not used afterwards.
    pub unsafe fn delete_native_queue(&self, native: DPCTLSyclQueueRef) {
        // SAFETY: the caller's promise.
        unsafe { (self.library.queue_delete)(native.as_ptr()) };
    }

    /// Deletes a result of [`DpctlContext::copy_native`].
    ///
    /// # Safety
    /// `native` came from `copy_native` of a context of this library, and is not used afterwards.
    pub unsafe fn delete_native_context(&self, native: DPCTLSyclContextRef) {
        // SAFETY: the caller's promise.
        unsafe { (self.library.context_delete)(native.as_ptr()) };
    }
}

impl DpctlDevice {
    /// `DPCTLSyclDeviceRef`.
    #[must_use]
    pub fn as_raw(&self) -> DPCTLSyclDeviceRef {
        self.handle().not_null()
    }
}

impl DpctlContext {
    /// `DPCTLSyclContextRef`.
    #[must_use]
    pub fn as_raw(&self) -> DPCTLSyclContextRef {
        self.native().not_null()
    }

    /// A copy of a foreign `sycl::context`, with its first device.
    ///
    /// # Safety
    /// `context` points to a live `sycl::context` of the library that `backend` opened.
    ///
    /// # Errors
    /// [`ErrorKind::Native`] naming the function that failed.
    pub unsafe fn from_raw(backend: &Dpctl, context: DPCTLSyclContextRef) -> Result<Self> {
        let _inside = process::work()?;
        let library = backend.library;
        // SAFETY: the caller's promise.
        let copy = not_null("DPCTLContext_Copy", unsafe { (library.context_copy)(context.as_ptr()) })?;
        // SAFETY: we own the copy.
        let copy = unsafe { Handle::new(library, copy, library.context_delete) };
        let (devices, _) = devices_of(&copy)?;
        // SAFETY: a live vector; a context has at least one device, and the call is checked
        // otherwise.
        let first = unsafe { (library.device_vector_at)(devices.raw(), 0) };
        // SAFETY: we own the element, which is a copy.
        let device = unsafe { DpctlDevice::take(library, not_null("DPCTLDeviceVector_GetAt", first)?) }?;
        Self::new(device, copy)
    }

    /// The context of a foreign `sycl::queue`, with the queue's device. Only queries `queue`.
    ///
    /// # Safety
    /// `queue` points to a live `sycl::queue` of the library that `backend` opened.
    ///
    /// # Errors
    /// [`ErrorKind::Native`] naming the function that failed.
    pub unsafe fn of_queue(backend: &Dpctl, queue: DPCTLSyclQueueRef) -> Result<Self> {
        let _inside = process::work()?;
        let library = backend.library;
        // SAFETY: the caller's promise; we own the reference.
        let device = unsafe { device_of(library, queue.as_ptr()) }?;
        // SAFETY: as above.
        Self::new(device, unsafe { context_of(library, queue.as_ptr()) }?)
    }

    /// Whether the native context and device behind `self` are those of a foreign `sycl::queue`.
    ///
    /// # Safety
    /// `queue` points to a live `sycl::queue` of the library that this context's backend opened.
    ///
    /// # Errors
    /// [`ErrorKind::Native`] naming the function that failed.
    pub unsafe fn serves_queue(&self, queue: DPCTLSyclQueueRef) -> Result<bool> {
        let library = self.library();
        // SAFETY: the caller's promise.
        let context = unsafe { context_of(library, queue.as_ptr()) }?;
        // SAFETY: both are live contexts of this library.
        if !unsafe { (library.context_equal)(self.native().raw(), context.raw()) } {
            return Ok(false);
        }
        // SAFETY: the caller's promise.
        let device = not_null("DPCTLQueue_GetDevice", unsafe { (library.queue_device)(queue.as_ptr()) })?;
        // SAFETY: we own the reference.
        let device = unsafe { Handle::new(library, device, library.device_delete) };
        Ok(device::is_same_device(&device, self.device().handle()))
    }

    /// Whether the native context behind `self` is the foreign `sycl::context`.
    ///
    /// # Safety
    /// `context` points to a live `sycl::context` of the library that this context's backend
    /// opened.
    #[must_use]
    pub unsafe fn serves_context(&self, context: DPCTLSyclContextRef) -> bool {
        // SAFETY: both are live contexts, by the caller's promise.
        unsafe { (self.library().context_equal)(self.native().raw(), context.as_ptr()) }
    }

    /// A new `sycl::context` object that refers to the same native context, as a `SyclContextRef`
    /// capsule holds it. The receiver deletes it with [`Dpctl::delete_native_context`].
    ///
    /// # Errors
    /// [`ErrorKind::Native`] if the runtime cannot copy it.
    pub fn copy_native(&self) -> Result<DPCTLSyclContextRef> {
        let _inside = process::ask()?;
        // SAFETY: a live context.
        not_null("DPCTLContext_Copy", unsafe { (self.library().context_copy)(self.native().raw()) })
    }
}

impl DpctlQueue {
    /// `DPCTLSyclQueueRef`.
    #[must_use]
    pub fn as_raw(&self) -> DPCTLSyclQueueRef {
        self.native_for_use().not_null()
    }

    /// A copy of a foreign `sycl::queue` and its order, as
    /// [`Queue::from_raw`](usm_core::Queue::from_raw) takes them. Both sides submit to the same
    /// queue.
    ///
    /// # Safety
    /// `queue` points to a live `sycl::queue` of the library that the context's backend opened.
    ///
    /// # Errors
    /// [`ErrorKind::WrongContext`] if it belongs to another native context or device than
    /// `context`; [`ErrorKind::Native`] naming the function that failed.
    pub unsafe fn from_raw(context: &DpctlContext, queue: DPCTLSyclQueueRef) -> Result<(Self, QueueOrder)> {
        let _inside = process::work()?;
        // SAFETY: the caller's promise.
        if !unsafe { context.serves_queue(queue) }? {
            let expected = context.shared().id();
            return Err(error::of(ErrorKind::WrongContext { expected, found: 0 }));
        }
        let library = context.library();
        // SAFETY: the caller's promise.
        let copy = not_null("DPCTLQueue_Copy", unsafe { (library.queue_copy)(queue.as_ptr()) })?;
        // SAFETY: we own the copy.
        let handle = unsafe { Handle::new(library, copy, library.queue_delete) };
        // SAFETY: a live queue.
        let order = match unsafe { (library.queue_in_order)(handle.raw()) } {
            true => QueueOrder::InOrder,
            false => QueueOrder::OutOfOrder,
        };
        Ok((Self::from_handle(handle, context, order), order))
    }

    /// A new `sycl::queue` object that refers to the same queue, as a `SyclQueueRef` capsule holds
    /// it. The receiver deletes it with [`Dpctl::delete_native_queue`].
    ///
    /// # Errors
    /// [`ErrorKind::Native`] if the runtime cannot copy it.
    pub fn copy_native(&self) -> Result<DPCTLSyclQueueRef> {
        let _inside = process::ask()?;
        let handle = self.native();
        // SAFETY: a live queue.
        not_null("DPCTLQueue_Copy", unsafe { (handle.library().queue_copy)(handle.raw()) })
    }
}

impl DpctlEvent {
    /// `DPCTLSyclEventRef`.
    #[must_use]
    pub fn as_raw(&self) -> DPCTLSyclEventRef {
        self.native().not_null()
    }

    /// A copy of a foreign `sycl::event`. [`Event::from_raw`](usm_core::Event::from_raw) makes it
    /// an event that submissions can wait for.
    ///
    /// # Safety
    /// `event` points to a live `sycl::event` of the context's library and native context.
    ///
    /// # Errors
    /// [`ErrorKind::Native`] if the runtime cannot copy it.
    pub unsafe fn from_raw(context: &DpctlContext, event: DPCTLSyclEventRef) -> Result<Self> {
        let _inside = process::work()?;
        let library = context.library();
        // SAFETY: the caller's promise.
        let copy = unsafe { (library.event_copy)(event.as_ptr()) };
        // SAFETY: we own the copy.
        Ok(Self::of(unsafe { event::owned(library, "DPCTLEvent_Copy", copy) }?))
    }
}

/// The library's function of this name, if it exists.
#[must_use]
pub fn function(context: &DpctlContext, name: &CStr) -> Option<NonNull<c_void>> {
    context.library().function(name)
}

/// `DPCTLSyclContextRef` of the context, which keeps it alive.
#[must_use]
pub fn context(context: &DpctlContext) -> *mut c_void {
    context.native().raw()
}

/// `DPCTLSyclDeviceRef` of the context's device; the context keeps it alive.
#[must_use]
pub fn device(context: &DpctlContext) -> *mut c_void {
    context.device().handle().raw()
}

/// Submits by `call`, which gets the `DPCTLSyclQueueRef`, the events to wait for and their number,
/// and returns the `DPCTLSyclEventRef` of the work, or NULL.
///
/// # Safety
/// `call` passes all three to one function that submits, with valid arguments, and returns its
/// result. The caller keeps the operation's memory valid, as
/// [`Queue::submit`](usm_core::Queue::submit) does.
///
/// # Errors
/// [`ErrorKind::Native`] naming `operation`.
pub unsafe fn submit(
    queue: &DpctlQueue,
    operation: &'static str,
    after: &[DpctlEvent],
    call: impl FnOnce(*mut c_void, *const *mut c_void, usize) -> *mut c_void,
) -> Result<DpctlEvent> {
    // SAFETY: the caller's promise.
    unsafe { queue.submit(operation, after, call) }
}

/// `size` bytes of foreign USM memory at `pointer`. `owner` keeps it alive and is dropped after the
/// last use.
///
/// # Safety
/// `size` bytes at `pointer` lie in one USM allocation that is live until `owner` is dropped; SYCL
/// has no query for the size. The caller must order accesses made outside this crate.
///
/// # Errors
/// [`ErrorKind::WrongContext`] if `pointer` is no USM pointer of the context.
pub unsafe fn borrow_allocation(
    context: &Context<Dpctl>,
    pointer: NonNull<u8>,
    size: usize,
    owner: Box<dyn Any + Send + Sync>,
) -> Result<Allocation<Dpctl>> {
    let block = block_at(context, pointer, size)?;
    // SAFETY: the runtime names the kind; the rest is the caller's promise.
    Ok(unsafe { Allocation::foreign(context.clone(), block, owner) })
}

/// Foreign USM memory whose ownership passes to the context: freed in the context after the last
/// use.
///
/// # Safety
/// `pointer` comes from an allocation function for `size` bytes, is not yet freed, and no other
/// code uses or frees it.
///
/// # Errors
/// As [`borrow_allocation`]; the memory is then still the caller's.
pub unsafe fn take_allocation(
    context: &Context<Dpctl>,
    pointer: NonNull<u8>,
    size: usize,
) -> Result<Allocation<Dpctl>> {
    let block = block_at(context, pointer, size)?;
    // SAFETY: the runtime names the kind; the rest is the caller's promise.
    Ok(unsafe { Allocation::taken(context.clone(), block) })
}

fn block_at(context: &Context<Dpctl>, pointer: NonNull<u8>, size: usize) -> Result<Block> {
    let address = pointer.as_ptr() as usize;
    let info = context.raw().query(address)?;
    if info.kind == AllocKind::Unknown {
        return Err(error::of(ErrorKind::WrongContext { expected: context.id(), found: 0 }));
    }
    let alignment = 1 << address.trailing_zeros().min(usize::BITS - 2);
    Ok(Block { pointer, size, alignment, kind: info.kind })
}
