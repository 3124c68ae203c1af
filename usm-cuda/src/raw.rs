//! Native handles, both ways: for programs and crates that call the driver themselves beside this
//! one.
//!
//! | what | out | in | whose it is then |
//! |---|---|---|---|
//! | device | [`CudaDevice::as_raw`] | – | the driver's |
//! | context | [`CudaContext::as_raw`] | [`CudaContext::from_raw`] | borrowed: it outlives what is made of it |
//! | stream | [`CudaQueue::as_raw`] | [`CudaQueue::from_raw`] | borrowed: it outlives the queue and the memory from it |
//! | pool of a device | [`memory_pool`] | – | ours: it lives as long as the context that was asked |
//! | event | [`CudaEvent::as_raw`] | [`CudaEvent::from_raw`] | borrowed |
//! | allocation | [`Allocation::as_ptr`] | [`borrow_allocation`] | the owner's, which is dropped after the last use |
//! | | | [`take_allocation`] | ours: freed with the allocation |
//!
//! For HIP they are `hipDevice_t`, `hipStream_t`, `hipEvent_t` and a pointer. HIP's contexts are
//! deprecated and are no handles here: the device number plus one stands for a context, both ways.
//!
//! Driver objects have no reference count, so nothing is retained. A handle from `as_raw` lives as
//! long as its object here. Work over allocations of this crate goes through
//! [`Queue::submit`](usm_core::Queue::submit), inside it through [`submit`], so that it is ordered.

#![allow(non_camel_case_types, reason = "the names of the driver's header")]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::ffi::{CStr, c_void};
use core::ptr::NonNull;

use crate::device;
use crate::native::Current;
use crate::{Cuda, CudaContext, CudaDevice, CudaEvent, CudaQueue};
use usm_core::Allocation;
use usm_core::Context;
use usm_core::backend::{Block, ContextOps, QueueOrder};
use usm_core::driver::process;
use usm_core::{ErrorKind, Result};

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
    /// `CUcontext`: the device's primary context, or the foreign one. Of HIP the number of the
    /// device and one more.
    #[must_use]
    pub fn as_raw(&self) -> CUcontext {
        self.handle()
    }

    /// A context over a foreign one, which is borrowed. [`Context::new`](usm_core::Context::new)
    /// shares the primary context of a device, which the CUDA runtime uses, and needs none of this.
    ///
    /// # Safety
    /// `context` is a live `CUcontext` of `backend`'s driver, and outlives the result, its clones
    /// and everything made of them.
    ///
    /// # Errors
    /// [`ErrorKind::Native`] naming the call that failed, [`ErrorKind::NoDevice`].
    pub unsafe fn from_raw(backend: &Cuda, context: CUcontext) -> Result<Self> {
        let _inside = process::work()?;
        let driver = backend.driver;
        let mut id = 0;
        // SAFETY: the caller's promise.
        let current = unsafe { Current::push(driver, context) }?;
        // SAFETY: a context is current; room for the answer.
        driver.check(driver.names().context_device, unsafe { (driver.context_device)(&raw mut id) })?;
        drop(current);
        let mut found = None;
        device::for_each(driver, &mut |device| found = found.or((device.id() == id).then_some(device)))?;
        let device = found.ok_or_else(|| driver.error(ErrorKind::NoDevice))?;
        // SAFETY: the caller's promise.
        Ok(unsafe { Self::borrowing(&device, context) })
    }
}

impl CudaQueue {
    /// `CUstream` of an in-order queue, the first of several otherwise.
    #[must_use]
    pub fn as_raw(&self) -> CUstream {
        self.first()
    }

    /// An in-order queue over a foreign stream, which is borrowed;
    /// [`Queue::from_raw`](usm_core::Queue::from_raw) takes it.
    ///
    /// # Safety
    /// `stream` is a live `CUstream` of the native context behind `context`, and outlives the
    /// queue, its clones, its work, and all memory that was allocated from it: that is freed on the
    /// stream, whether or not the queue is still there.
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

    /// A foreign event, which is borrowed. [`Event::from_raw`](usm_core::Event::from_raw) makes it
    /// one that submissions wait for.
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

/// The driver's function of this name, if it has one.
#[must_use]
pub fn function(context: &CudaContext, name: &CStr) -> Option<NonNull<c_void>> {
    context.driver().function(name)
}

/// `CUdevice` of the context.
#[must_use]
pub fn device(context: &CudaContext) -> CUdevice {
    context.device().as_raw()
}

/// The pool of queue memory, one for all contexts over the device, made if there is none yet. By
/// default it keeps everything; a program that wants another threshold, or a trim, calls the
/// driver. If other code allocates from it, [`Context::query`] does not know memory at addresses
/// where memory of a queue was before.
///
/// # Errors
/// [`ErrorKind::Unsupported`] where there are no pools, [`ErrorKind::Native`] when it cannot be
/// made.
pub fn memory_pool(context: &CudaContext) -> Result<CUmemoryPool> {
    context.pool().map(|pool| pool.raw())
}

/// Calls `work` with the context current on this thread.
///
/// # Errors
/// When the context cannot be made current; `work` has not been called then.
pub fn with_current<R>(context: &CudaContext, work: impl FnOnce() -> R) -> Result<R> {
    let _current = context.current()?;
    Ok(work())
}

/// Events after all work that was submitted before to queues of this context, those that are gone
/// included: for what such work may use without the driver keeping it.
///
/// # Errors
/// [`ErrorKind::Native`] when an event cannot be had.
pub fn pending(context: &CudaContext) -> Result<Vec<CudaEvent>> {
    context.pending()
}

/// Enqueues by `call`, which gets a `CUstream` that waits for `after`, with the context current,
/// and gives the `CUresult`.
///
/// # Safety
/// `call` submits to that stream only, with valid arguments; an error of it means that nothing was
/// submitted. What the operation touches is the caller's to keep valid;
/// [`Queue::submit`](usm_core::Queue::submit) does that.
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
/// The memory is live as long as `owner` is not dropped. The caller must order accesses made
/// outside this crate.
///
/// # Errors
/// [`ErrorKind::WrongContext`] when the driver knows no allocation at `pointer`, or the query's.
/// Also for an address that a queue freed here, that the pool gave back to the system, and that
/// other code allocated since.
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
    let elsewhere = ErrorKind::WrongContext { expected: context.id(), found: info.context };
    Block::of_query(&info, pointer).ok_or_else(|| context.raw().driver().error(elsewhere))
}
