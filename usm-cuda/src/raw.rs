//! Export and import of native handles, for programs and crates that also call the driver
//! themselves.
//!
//! | what | out | in | owner afterwards |
//! |---|---|---|---|
//! | device | [`CudaDevice::as_raw`] | – | the driver's |
//! | context | [`CudaContext::as_raw`] | [`CudaContext::from_raw`] | borrowed: it outlives what is made of it |
//! | stream | [`CudaQueue::as_raw`] | [`CudaQueue::from_raw`] | borrowed: it outlives the queue and the memory from it |
//! | pool of a device | [`memory_pool`] | – | ours: lives as long as the context |
//! | event | [`CudaEvent::as_raw`] | [`CudaEvent::from_raw`] | borrowed |
//! | allocation | [`Allocation::as_ptr`] | [`borrow_allocation`] | the owner's, which is dropped after the last use |
//! | | | [`take_allocation`] | ours: freed with the allocation |
//!
//! For HIP they are `hipDevice_t`, `hipStream_t`, `hipEvent_t` and a pointer. HIP's contexts are
//! deprecated, so the device number plus one stands for a context in both directions.
//!
//! Driver objects have no reference count, so nothing is retained. A handle from `as_raw` lives as
//! long as its object here. Submit work over allocations of this crate by [`submit`] inside
//! [`Queue::submit`](usm_core::Queue::submit), so that it is ordered.

#![allow(non_camel_case_types, reason = "the names of the driver's header")]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::ffi::{CStr, c_void};
use core::ptr::NonNull;

use crate::native::Current;
use crate::{Cuda, CudaContext, CudaDevice, CudaEvent, CudaQueue, device};
use usm_core::backend::{Block, ContextOps, QueueOrder};
use usm_core::driver::process;
use usm_core::{Allocation, Context, ErrorKind, Result};

/// `CUdevice`.
pub type CUdevice = i32;
/// `CUcontext`.
pub type CUcontext = *mut c_void;
/// `CUstream`.
pub type CUstream = *mut c_void;
/// `CUevent`.
pub type CUevent = *mut c_void;
/// `CUmemoryPool`.
pub type CUmemoryPool = *mut c_void;
/// `CUresult`.
pub type CUresult = i32;

impl CudaDevice {
    /// `CUdevice`.
    #[must_use]
    pub fn as_raw(&self) -> CUdevice {
        self.id()
    }
}

impl CudaContext {
    /// `CUcontext`: the device's primary context, or the foreign one. For HIP the device number
    /// plus one.
    #[must_use]
    pub fn as_raw(&self) -> CUcontext {
        self.handle()
    }

    /// A context over a borrowed foreign one. [`Context::new`](usm_core::Context::new) already
    /// shares the device's primary context, which the CUDA runtime uses.
    ///
    /// # Safety
    /// `context` is a live `CUcontext` of `backend`'s driver, and outlives the result, its clones
    /// and everything made from them.
    ///
    /// # Errors
    /// [`ErrorKind::Native`] naming the call that failed, [`ErrorKind::NoDevice`].
    pub unsafe fn from_raw(backend: &Cuda, context: CUcontext) -> Result<Self> {
        let _inside = process::work()?;
        let driver = backend.driver;
        let mut id = 0;
        // SAFETY: the caller's promise.
        let current = unsafe { Current::push(driver, context) }?;
        // SAFETY: a context is current; space for the value.
        driver.check(driver.names().context_device, unsafe { (driver.context_device)(&raw mut id) })?;
        drop(current);
        let mut match_of_id = None;
        device::for_each(driver, &mut |device| {
            match_of_id = match_of_id.or((device.id() == id).then_some(device))
        })?;
        let device = match_of_id.ok_or_else(|| driver.error(ErrorKind::NoDevice))?;
        // SAFETY: the caller's promise.
        Ok(unsafe { Self::borrowing(&device, context) })
    }
}

impl CudaQueue {
    /// `CUstream` of an in-order queue; otherwise the first of several.
    #[must_use]
    pub fn as_raw(&self) -> CUstream {
        self.first_stream()
    }

    /// An in-order queue over a borrowed foreign stream, as
    /// [`Queue::from_raw`](usm_core::Queue::from_raw) takes it.
    ///
    /// # Safety
    /// `stream` is a live `CUstream` of the native context behind `context`, and outlives the
    /// queue, its clones, its work, and all memory allocated from it. That memory is freed on the
    /// stream, also after the queue was dropped.
    #[must_use]
    pub unsafe fn from_raw(context: &CudaContext, stream: CUstream) -> (Self, QueueOrder) {
        // SAFETY: the caller's promise; a stream is in order.
        (unsafe { Self::borrowing(context, stream) }, QueueOrder::InOrder)
    }
}

impl CudaEvent {
    /// `CUevent`.
    #[must_use]
    pub fn as_raw(&self) -> CUevent {
        self.handle()
    }

    /// A borrowed foreign event. [`Event::from_raw`](usm_core::Event::from_raw) makes it an event
    /// that submissions can wait for.
    ///
    /// # Safety
    /// `event` is a live `CUevent` of the native context behind `context`, has been recorded, and
    /// outlives the result and its clones.
    #[must_use]
    pub unsafe fn from_raw(context: &CudaContext, event: CUevent) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::borrowing(context.driver(), event) }
    }
}

/// The driver's function of this name, if it exists.
#[must_use]
pub fn function(context: &CudaContext, name: &CStr) -> Option<NonNull<c_void>> {
    context.driver().function(name)
}

/// `CUdevice` of the context's device.
#[must_use]
pub fn device(context: &CudaContext) -> CUdevice {
    context.device().as_raw()
}

/// The pool of queue memory, one for all contexts over the device. Makes it if there is none. By
/// default it keeps all memory; a program can call the driver to set another threshold or to trim
/// it. If other code allocates from it, [`Context::query`] does not know that memory at addresses
/// where a queue's memory was before.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if the driver has no pools, [`ErrorKind::Native`] if it cannot make
/// one.
pub fn memory_pool(context: &CudaContext) -> Result<CUmemoryPool> {
    let _inside = process::ask()?;
    context.pool().map(|pool| pool.raw())
}

/// Calls `work` with the context current on this thread.
///
/// # Errors
/// If the context cannot be made current; `work` is not called then.
pub fn with_current<R>(context: &CudaContext, work: impl FnOnce() -> R) -> Result<R> {
    let _inside = process::ask()?;
    let _current = context.make_current()?;
    Ok(work())
}

/// Events after all work submitted before to queues of this context, dropped ones included. For
/// objects that such work may use and that the driver does not keep alive.
///
/// # Errors
/// [`ErrorKind::Native`] if the driver gives no event.
pub fn pending(context: &CudaContext) -> Result<Vec<CudaEvent>> {
    let _inside = process::ask()?;
    context.pending()
}

/// Enqueues by `call`, which gets a `CUstream` that waits for `after`, runs with the context
/// current, and returns the `CUresult`.
///
/// # Safety
/// `call` submits only to that stream, with valid arguments, and has submitted nothing if it
/// returns an error. The caller keeps the operation's memory valid, as
/// [`Queue::submit`](usm_core::Queue::submit) does.
///
/// # Errors
/// [`ErrorKind::Native`] with the code, naming `operation`.
#[inline]
pub unsafe fn submit(
    queue: &CudaQueue,
    operation: &'static str,
    after: &[CudaEvent],
    call: impl FnOnce(CUstream) -> CUresult,
) -> Result<CudaEvent> {
    queue.submit(operation, after, call)
}

/// Foreign memory, from `pointer` to the end of the driver's allocation. `owner` keeps it alive and
/// is dropped after the last use.
///
/// # Safety
/// The memory is live until `owner` is dropped. The caller must order accesses made outside this
/// crate.
///
/// # Errors
/// [`ErrorKind::WrongContext`] if the driver knows no allocation at `pointer`, or the query's
/// error. Also for an address that a queue freed here, the pool returned to the system, and other
/// code has allocated since.
pub unsafe fn borrow_allocation(
    context: &Context<Cuda>,
    pointer: NonNull<u8>,
    owner: Box<dyn Any + Send + Sync>,
) -> Result<Allocation<Cuda>> {
    let block = block_at(context, pointer)?;
    // SAFETY: the driver names kind and size; the rest is the caller's promise.
    Ok(unsafe { Allocation::foreign(context.clone(), block, owner) })
}

/// Foreign memory whose ownership passes to the context: freed after the last use, by the driver's
/// free for its kind (`cuMemFreeHost` or `cuMemFree`; not for memory of a pool or of
/// `cuMemHostRegister`).
///
/// # Safety
/// `pointer` comes from `cuMemAlloc`, `cuMemAllocManaged` or `cuMemHostAlloc`, is not yet freed,
/// and no other code uses or frees it.
///
/// # Errors
/// As [`borrow_allocation`]; the memory is then still the caller's.
pub unsafe fn take_allocation(context: &Context<Cuda>, pointer: NonNull<u8>) -> Result<Allocation<Cuda>> {
    let block = block_at(context, pointer)?;
    // SAFETY: the driver names kind and size; the rest is the caller's promise.
    Ok(unsafe { Allocation::taken(context.clone(), block) })
}

fn block_at(context: &Context<Cuda>, pointer: NonNull<u8>) -> Result<Block> {
    let address = pointer.as_ptr() as usize;
    let info = context.raw().query(address)?;
    let context_error = ErrorKind::WrongContext { expected: context.id(), found: info.context };
    Block::of_query(&info, pointer).ok_or_else(|| context.raw().driver().error(context_error))
}
