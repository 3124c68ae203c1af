//! Export and import of native handles, for programs and crates that also call OpenCL themselves.
//!
//! | what | out | in | owner afterwards |
//! |---|---|---|---|
//! | device | [`OpenClDevice::as_raw`] | – | the runtime's |
//! | context | [`OpenClContext::as_raw`] | [`OpenClContext::from_raw`] | retained: both sides release their own reference |
//! | queue | [`OpenClQueue::as_raw`] | [`OpenClQueue::from_raw`] | retained |
//! | event | [`OpenClEvent::as_raw`] | [`OpenClEvent::from_raw`] | retained |
//! | program | `OpenClModule::as_raw` | – | ours |
//! | buffer | [`OpenClBuffer::as_raw`] | [`borrow_buffer`], [`OpenClBuffer::from_raw`] | retained; not in the ledger |
//! | | | [`take_buffer`] | ours: the caller's reference is released with the buffer |
//! | allocation | [`Allocation::as_ptr`] | [`borrow_allocation`] | the owner's, which is dropped after the last use |
//! | | | [`take_allocation`] | ours: freed with the allocation |
//!
//! A handle from `as_raw` has no reference of its own and lives as long as its object here. Submit
//! work over allocations of this crate by [`submit`] inside
//! [`Queue::submit`](usm_core::Queue::submit), so that it is ordered.

#![allow(non_camel_case_types, reason = "the names of the OpenCL headers")]

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::Any;
use core::ffi::{CStr, c_void};
use core::ptr::{self, NonNull};

use crate::error::{self, check, object};
use crate::loader::{Handle, Raw};
use crate::queue::OUT_OF_ORDER;
use crate::{OpenCl, OpenClBuffer, OpenClContext, OpenClDevice, OpenClEvent, OpenClQueue, device};
use usm_core::backend::{Block, ContextOps, QueueOrder};
use usm_core::driver::process;
use usm_core::{Allocation, Buffer, Context, ErrorKind, Result};

/// `cl_device_id`.
pub type cl_device_id = *mut c_void;
/// `cl_context`.
pub type cl_context = *mut c_void;
/// `cl_command_queue`.
pub type cl_command_queue = *mut c_void;
/// `cl_event`.
pub type cl_event = *mut c_void;
/// `cl_program`.
pub type cl_program = *mut c_void;
/// `cl_mem`.
pub type cl_mem = *mut c_void;
/// `cl_int`.
pub type cl_int = i32;
/// `cl_uint`.
pub type cl_uint = u32;

const CONTEXT_DEVICES: cl_uint = 0x1081;
const QUEUE_PROPERTIES: cl_uint = 0x1093;
const EVENT_QUEUE: cl_uint = 0x11D0;
const MEM_TYPE: cl_uint = 0x1100;
const MEM_SIZE: cl_uint = 0x1102;
const MEM_CONTEXT: cl_uint = 0x1106;
const MEM_ASSOCIATED: cl_uint = 0x1107;
const MEM_OFFSET: cl_uint = 0x1108;
const MEM_OBJECT_BUFFER: cl_uint = 0x10F0;

impl OpenClDevice {
    /// `cl_device_id`.
    #[must_use]
    pub fn as_raw(&self) -> cl_device_id {
        self.native()
    }
}

impl OpenClContext {
    /// `cl_context`, without a reference of its own.
    #[must_use]
    pub fn as_raw(&self) -> cl_context {
        self.native().raw()
    }

    /// A foreign context with its first device. The context is retained.
    ///
    /// # Safety
    /// `context` is a live `cl_context` of the loader that `backend` opened.
    ///
    /// # Errors
    /// [`ErrorKind::Native`] naming the call that failed, [`ErrorKind::NoDevice`].
    pub unsafe fn from_raw(backend: &OpenCl, context: cl_context) -> Result<Self> {
        let _inside = process::work()?;
        let library = backend.library;
        let mut bytes = 0;
        // SAFETY: the caller's promise; this queries only the size.
        let status =
            unsafe { (library.context_info)(context, CONTEXT_DEVICES, 0, ptr::null_mut(), &raw mut bytes) };
        check("clGetContextInfo", status)?;
        let mut devices = alloc::vec![ptr::null_mut::<c_void>(); bytes / size_of::<Raw>()];
        let room = devices.as_mut_ptr().cast();
        // SAFETY: the caller's promise; space for as many bytes as the runtime reported.
        let status =
            unsafe { (library.context_info)(context, CONTEXT_DEVICES, bytes, room, ptr::null_mut()) };
        check("clGetContextInfo", status)?;
        let first = devices.first().ok_or_else(|| error::of(ErrorKind::NoDevice))?;
        let device = device::find(library, *first)?;
        // SAFETY: the caller's promise.
        let context = object("clRetainContext", context, unsafe { (library.retain_context)(context) })?;
        // SAFETY: the reference was just taken.
        Ok(Self::new(device, unsafe { Handle::new(library, context, library.release_context) }))
    }
}

impl OpenClQueue {
    /// `cl_command_queue`, without a reference of its own.
    #[must_use]
    pub fn as_raw(&self) -> cl_command_queue {
        self.native_for_use().raw()
    }

    /// A foreign queue and its order, as [`Queue::from_raw`](usm_core::Queue::from_raw) takes them.
    /// The queue is retained; both sides submit to the same one.
    ///
    /// # Safety
    /// `queue` is a live `cl_command_queue` of the native context behind `context`.
    ///
    /// # Errors
    /// [`ErrorKind::Native`] naming the call that failed.
    pub unsafe fn from_raw(context: &OpenClContext, queue: cl_command_queue) -> Result<(Self, QueueOrder)> {
        let _inside = process::work()?;
        let library = context.library();
        let mut properties = 0_u64;
        let answer = (&raw mut properties).cast();
        // SAFETY: the caller's promise; space for the value.
        let status = unsafe {
            (library.queue_info)(queue, QUEUE_PROPERTIES, size_of::<u64>(), answer, ptr::null_mut())
        };
        check("clGetCommandQueueInfo", status)?;
        // SAFETY: the caller's promise.
        let queue = object("clRetainCommandQueue", queue, unsafe { (library.retain_queue)(queue) })?;
        let order = if properties & OUT_OF_ORDER == 0 { QueueOrder::InOrder } else { QueueOrder::OutOfOrder };
        // SAFETY: the reference was just taken.
        let handle = unsafe { Handle::new(library, queue, library.release_queue) };
        Ok((Self::from_handle(handle, context, order), order))
    }
}

impl OpenClEvent {
    /// `cl_event`, without a reference of its own.
    #[must_use]
    pub fn as_raw(&self) -> cl_event {
        self.native().raw()
    }

    /// A foreign event, retained. [`Event::from_raw`](usm_core::Event::from_raw) makes it an event
    /// that submissions can wait for.
    ///
    /// # Safety
    /// `event` is a live `cl_event` of the native context behind `context`.
    ///
    /// # Errors
    /// [`ErrorKind::Native`] naming the call that failed.
    pub unsafe fn from_raw(context: &OpenClContext, event: cl_event) -> Result<Self> {
        let _inside = process::work()?;
        let library = context.library();
        let mut queue: Raw = ptr::null_mut();
        let answer = (&raw mut queue).cast();
        // SAFETY: the caller's promise; space for the value.
        let status =
            unsafe { (library.event_info)(event, EVENT_QUEUE, size_of::<Raw>(), answer, ptr::null_mut()) };
        check("clGetEventInfo", status)?;
        let queue = if queue.is_null() {
            None // A user event has no queue to flush.
        } else {
            // SAFETY: the runtime has just returned it as the queue of a live event.
            let queue = object("clRetainCommandQueue", queue, unsafe { (library.retain_queue)(queue) })?;
            // SAFETY: the reference was just taken.
            Some(Arc::new(unsafe { Handle::new(library, queue, library.release_queue) }))
        };
        // SAFETY: the caller's promise.
        let event = object("clRetainEvent", event, unsafe { (library.retain_event)(event) })?;
        // SAFETY: the reference was just taken.
        Ok(Self::new(unsafe { Handle::new(library, event, library.release_event) }, queue))
    }
}

#[cfg(feature = "kernel")]
impl crate::OpenClModule {
    /// `cl_program`, without a reference of its own.
    #[must_use]
    pub fn as_raw(&self) -> cl_program {
        self.program()
    }
}

impl OpenClBuffer {
    /// `cl_mem`, without a reference of its own.
    #[must_use]
    pub fn as_raw(&self) -> cl_mem {
        self.native().raw()
    }

    /// A foreign buffer and its size in bytes, as [`Buffer::foreign`] takes them. The buffer is
    /// retained; it may be a sub-buffer.
    ///
    /// # Safety
    /// `buffer` is a live `cl_mem` of the loader that the context's backend opened, and every byte
    /// of it has a value.
    ///
    /// # Errors
    /// [`ErrorKind::WrongContext`] if it belongs to another native context,
    /// [`ErrorKind::Unsupported`] if it is an image or a pipe, [`ErrorKind::Native`] naming the
    /// call that failed.
    pub unsafe fn from_raw(context: &OpenClContext, buffer: cl_mem) -> Result<(Self, usize)> {
        let _inside = process::work()?;
        // SAFETY: the caller's promise; its context is a pointer.
        let owner = unsafe { mem_info::<usize>(context, buffer, MEM_CONTEXT) }?;
        if owner != context.as_raw() as usize {
            return Err(error::of(ErrorKind::WrongContext { expected: context.shared().id(), found: 0 }));
        }
        // SAFETY: as above; its type is a number of 32 bits.
        if unsafe { mem_info::<cl_uint>(context, buffer, MEM_TYPE) }? != MEM_OBJECT_BUFFER {
            return Err(error::unsupported("a memory object that is no buffer"));
        }
        // SAFETY: as above; its bytes are a `size_t`.
        let size = unsafe { mem_info::<usize>(context, buffer, MEM_SIZE) }?;
        // SAFETY: as above; its parent is a pointer, NULL for none.
        let whole = unsafe { mem_info::<usize>(context, buffer, MEM_ASSOCIATED) }?;
        // SAFETY: as above; its offset in the parent is a `size_t`, 0 without a parent.
        let offset = unsafe { mem_info::<usize>(context, buffer, MEM_OFFSET) }?;
        let place = if whole == 0 { (buffer as usize, 0) } else { (whole, offset) };
        let library = context.library();
        // SAFETY: the caller's promise.
        let buffer = object("clRetainMemObject", buffer, unsafe { (library.retain_buffer)(buffer) })?;
        // SAFETY: the reference was just taken.
        let handle = unsafe { Handle::new(library, buffer, library.release_buffer) };
        Ok((Self::sub_buffer(handle, place), size))
    }
}

/// # Safety
/// `buffer` is a live `cl_mem` of the context's loader, and the value of `query` has the size of
/// `T`.
unsafe fn mem_info<T: usm_core::bytemuck::Pod>(
    context: &OpenClContext,
    buffer: cl_mem,
    query: cl_uint,
) -> Result<T> {
    let mut value = T::zeroed();
    let (room, answer) = (size_of::<T>(), (&raw mut value).cast());
    // SAFETY: the caller's promise; space for the value.
    let status = unsafe { (context.library().buffer_info)(buffer, query, room, answer, ptr::null_mut()) };
    check("clGetMemObjectInfo", status)?;
    Ok(value)
}

/// The loader's function of this name, if it exists.
#[must_use]
pub fn function(context: &OpenClContext, name: &CStr) -> Option<NonNull<c_void>> {
    context.library().function(name)
}

/// The extension's function on the context's platform.
#[must_use]
pub fn extension_function(context: &OpenClContext, name: &CStr) -> Option<NonNull<c_void>> {
    let _inside = process::ask().ok()?;
    let platform = device::platform(context.device()) as Raw;
    // SAFETY: the platform of a device of this library.
    unsafe { context.library().extension(platform, name) }
}

/// `cl_device_id` of the context's device.
#[must_use]
pub fn device(context: &OpenClContext) -> cl_device_id {
    context.device().as_raw()
}

/// Enqueues by `call`, which gets the `cl_command_queue`, the length of the wait list, the wait
/// list and a pointer to the new `cl_event`, and returns the status. On an in-order queue the list
/// includes the previous operation.
///
/// # Safety
/// `call` passes all four to one enqueue function, with valid arguments, and returns its status.
/// The caller keeps the operation's memory valid, as [`Queue::submit`](usm_core::Queue::submit)
/// does.
///
/// # Errors
/// [`ErrorKind::Native`] with the status, naming `operation`.
pub unsafe fn submit(
    queue: &OpenClQueue,
    operation: &'static str,
    after: &[OpenClEvent],
    call: impl FnOnce(cl_command_queue, cl_uint, *const cl_event, *mut cl_event) -> cl_int,
) -> Result<OpenClEvent> {
    queue.submit(operation, after, call)
}

/// Foreign USM memory, from `pointer` to the end of the runtime's allocation. `owner` keeps it
/// alive and is dropped after the last use.
///
/// # Safety
/// The memory is live until `owner` is dropped. The caller must order accesses made outside this
/// crate.
///
/// # Errors
/// [`ErrorKind::WrongContext`] if `pointer` is no USM pointer of the context, or the query's error.
pub unsafe fn borrow_allocation(
    context: &Context<OpenCl>,
    pointer: NonNull<u8>,
    owner: Box<dyn Any + Send + Sync>,
) -> Result<Allocation<OpenCl>> {
    let block = block_at(context, pointer)?;
    // SAFETY: the runtime names kind and size; the rest is the caller's promise.
    Ok(unsafe { Allocation::foreign(context.clone(), block, owner) })
}

/// Foreign USM memory whose ownership passes to the context: `clMemFreeINTEL` frees it after the
/// last use.
///
/// # Safety
/// `pointer` comes from an allocation function of the extension, is not yet freed, and no other
/// code uses or frees it.
///
/// # Errors
/// As [`borrow_allocation`]; the memory is then still the caller's.
pub unsafe fn take_allocation(context: &Context<OpenCl>, pointer: NonNull<u8>) -> Result<Allocation<OpenCl>> {
    let block = block_at(context, pointer)?;
    // SAFETY: the runtime names kind and size; the rest is the caller's promise.
    Ok(unsafe { Allocation::taken(context.clone(), block) })
}

/// A foreign buffer, retained until its last use here.
///
/// # Safety
/// As [`OpenClBuffer::from_raw`]. The caller must order accesses made outside this crate, also
/// through another memory object over the same bytes.
///
/// # Errors
/// As [`OpenClBuffer::from_raw`].
pub unsafe fn borrow_buffer(context: &Context<OpenCl>, buffer: cl_mem) -> Result<Buffer<OpenCl>> {
    // SAFETY: the caller's promise.
    let (raw, size) = unsafe { OpenClBuffer::from_raw(context.raw(), buffer) }?;
    // SAFETY: of that context and size, as the runtime says; the rest is the caller's promise.
    Ok(unsafe { Buffer::foreign(context.clone(), raw, size) })
}

/// A foreign buffer whose ownership, with the caller's reference, passes to the context: the ledger
/// counts it, and it is released after its last use.
///
/// # Safety
/// As [`OpenClBuffer::from_raw`]; the caller gives up one reference, and no other code uses the
/// buffer.
///
/// # Errors
/// As [`OpenClBuffer::from_raw`]. The reference is then still the caller's.
pub unsafe fn take_buffer(context: &Context<OpenCl>, buffer: cl_mem) -> Result<Buffer<OpenCl>> {
    // SAFETY: the caller's promise.
    let (raw, size) = unsafe { OpenClBuffer::from_raw(context.raw(), buffer) }?;
    // SAFETY: the caller gave up this reference, and `raw` has its own.
    let _ = unsafe { (context.raw().library().release_buffer)(buffer) };
    // SAFETY: of that context and size, as the runtime says; the rest is the caller's promise.
    Ok(unsafe { Buffer::taken(context.clone(), raw, size) })
}

fn block_at(context: &Context<OpenCl>, pointer: NonNull<u8>) -> Result<Block> {
    let address = pointer.as_ptr() as usize;
    let info = context.raw().query(address)?;
    Block::of_query(&info, pointer)
        .ok_or_else(|| error::of(ErrorKind::WrongContext { expected: context.id(), found: info.context }))
}
