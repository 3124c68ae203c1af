//! Export and import of native handles, for programs and crates that also call Level Zero
//! themselves, with the types of [`level_zero_sys`].
//!
//! | what | out | in | owner afterwards |
//! |---|---|---|---|
//! | driver, device | [`LevelZeroDevice::driver_as_raw`], [`LevelZeroDevice::as_raw`] | – | the driver's |
//! | context | [`LevelZeroContext::as_raw`] | [`LevelZeroContext::from_raw`] | borrowed: it outlives what is made of it |
//! | immediate list | [`LevelZeroQueue::as_raw`] | [`LevelZeroQueue::from_raw`] | borrowed |
//! | event | [`LevelZeroEvent::as_raw`] | [`LevelZeroEvent::from_raw`] | borrowed |
//! | allocation | [`Allocation::as_ptr`] | [`borrow_allocation`] | the owner's, which is dropped after the last use |
//! | | | [`take_allocation`] | ours: freed with the allocation |
//!
//! Level Zero objects have no reference count, so nothing is retained. A handle from `as_raw` lives
//! as long as its object here; an event is reused for another operation afterwards. A list takes
//! one thread at a time. Submit work over allocations of this crate by [`submit`] inside
//! [`Queue::submit`](usm_core::Queue::submit), so that it is ordered.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::ffi::{CStr, c_void};
use core::ptr::NonNull;

use level_zero_sys::{
    Error, Functions, ze_command_list_handle_t, ze_context_handle_t, ze_device_handle_t, ze_driver_handle_t,
    ze_event_handle_t, ze_result_t,
};

use crate::{LevelZero, LevelZeroContext, LevelZeroDevice, LevelZeroEvent, LevelZeroQueue, error};
use usm_core::backend::{Block, ContextOps, QueueOrder};
use usm_core::driver::process;
use usm_core::{Allocation, Context, ErrorKind, Result};

impl LevelZeroDevice {
    /// `ze_device_handle_t`.
    #[must_use]
    pub fn as_raw(&self) -> ze_device_handle_t {
        self.handle()
    }

    /// `ze_driver_handle_t`.
    #[must_use]
    pub fn driver_as_raw(&self) -> ze_driver_handle_t {
        self.driver()
    }
}

impl LevelZeroContext {
    /// `ze_context_handle_t`.
    #[must_use]
    pub fn as_raw(&self) -> ze_context_handle_t {
        self.native().context()
    }

    /// A context over a borrowed foreign one, with one of its devices: Level Zero does not list a
    /// context's devices.
    ///
    /// # Safety
    /// `context` is a live context of `device`'s driver that includes the device, and outlives the
    /// result, its clones and everything made of them.
    #[must_use]
    pub unsafe fn from_raw(device: &LevelZeroDevice, context: ze_context_handle_t) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::borrowing(device, context) }
    }
}

impl LevelZeroQueue {
    /// `ze_command_list_handle_t` of the immediate list.
    #[must_use]
    pub fn as_raw(&self) -> ze_command_list_handle_t {
        self.handle()
    }

    /// A queue over a borrowed foreign immediate list, and its order, as
    /// [`Queue::from_raw`](usm_core::Queue::from_raw) takes them.
    ///
    /// # Safety
    /// `list` is a live immediate list of the native context behind `context` and its device,
    /// asynchronous, and an in-order list if `order` says so. It outlives the queue, its clones and
    /// its work, and no other thread uses it during a call. Memory from the queue belongs to the
    /// context and does not use the list.
    #[must_use]
    pub unsafe fn from_raw(
        context: &LevelZeroContext,
        list: ze_command_list_handle_t,
        order: QueueOrder,
    ) -> (Self, QueueOrder) {
        // SAFETY: the caller's promise.
        (unsafe { Self::borrowing(context, list, order) }, order)
    }
}

impl LevelZeroEvent {
    /// `ze_event_handle_t`.
    #[must_use]
    pub fn as_raw(&self) -> ze_event_handle_t {
        self.handle()
    }

    /// A borrowed foreign event. [`Event::from_raw`](usm_core::Event::from_raw) makes it an event
    /// that submissions can wait for.
    ///
    /// # Safety
    /// `event` is a live event of the native context behind `context`, will be signalled, is not
    /// reset while it is used here, and outlives the result, its clones and all work that waits for
    /// them.
    #[must_use]
    pub unsafe fn from_raw(context: &LevelZeroContext, event: ze_event_handle_t) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::borrowing(context.native().functions(), event) }
    }
}

/// The functions of the loader.
#[must_use]
pub fn functions(context: &LevelZeroContext) -> &'static Functions {
    context.native().functions()
}

/// The extension's function in the context's driver.
#[must_use]
pub fn extension_function(context: &LevelZeroContext, name: &CStr) -> Option<NonNull<c_void>> {
    let _inside = process::ask().ok()?;
    let (functions, driver) = (functions(context), context.device().driver());
    let mut address = core::ptr::null_mut();
    // SAFETY: a driver of the loader, a name that ends in NUL, space for the value.
    unsafe { functions.zeDriverGetExtensionFunctionAddress(driver, name.as_ptr(), &raw mut address) }.ok()?;
    NonNull::new(address)
}

/// `ze_device_handle_t` of the context's device.
#[must_use]
pub fn device(context: &LevelZeroContext) -> ze_device_handle_t {
    context.device().handle()
}

/// Events after all work submitted before to queues of this context, dropped ones included. For
/// objects that such work may use and that the driver does not keep alive.
///
/// # Errors
/// [`ErrorKind::Native`] if the driver gives no event.
pub fn pending(context: &LevelZeroContext) -> Result<Vec<LevelZeroEvent>> {
    let _inside = process::ask()?;
    context.pending()
}

/// Appends by `call`, which gets the immediate list, the event to signal, the number of events to
/// wait for and those events, and returns the result. On an in-order queue the events include that
/// of the previous operation.
///
/// # Safety
/// `call` passes all four to one append function, with valid arguments, and returns its result. The
/// caller keeps the operation's memory valid, as [`Queue::submit`](usm_core::Queue::submit) does.
///
/// # Errors
/// [`ErrorKind::DeviceLost`], or [`ErrorKind::Native`] with the code, naming `operation`.
pub unsafe fn submit(
    queue: &LevelZeroQueue,
    operation: &'static str,
    after: &[LevelZeroEvent],
    call: impl FnOnce(ze_command_list_handle_t, ze_event_handle_t, u32, *mut ze_event_handle_t) -> ze_result_t,
) -> Result<LevelZeroEvent> {
    queue.submit(after, |to| {
        let result = call(to.list, to.signal, to.count, to.waits);
        if result.is_success() { Ok(result) } else { Err(Error::Call { function: operation, result }) }
    })
}

/// Foreign USM memory, from `pointer` to the end of the driver's allocation. `owner` keeps it alive
/// and is dropped after the last use.
///
/// # Safety
/// The memory is live until `owner` is dropped. The caller must order accesses made outside this
/// crate.
///
/// # Errors
/// [`ErrorKind::WrongContext`] if `pointer` is no USM pointer of the context, or the query's error.
pub unsafe fn borrow_allocation(
    context: &Context<LevelZero>,
    pointer: NonNull<u8>,
    owner: Box<dyn Any + Send + Sync>,
) -> Result<Allocation<LevelZero>> {
    let block = block_at(context, pointer)?;
    // SAFETY: the driver names kind and size; the rest is the caller's promise.
    Ok(unsafe { Allocation::foreign(context.clone(), block, owner) })
}

/// Foreign USM memory whose ownership passes to the context: `zeMemFree` frees it after the last
/// use.
///
/// # Safety
/// `pointer` comes from an allocation function of the context, is not yet freed, and no other code
/// uses or frees it.
///
/// # Errors
/// As [`borrow_allocation`]; the memory is then still the caller's.
pub unsafe fn take_allocation(
    context: &Context<LevelZero>,
    pointer: NonNull<u8>,
) -> Result<Allocation<LevelZero>> {
    let block = block_at(context, pointer)?;
    // SAFETY: the driver names kind and size; the rest is the caller's promise.
    Ok(unsafe { Allocation::taken(context.clone(), block) })
}

fn block_at(context: &Context<LevelZero>, pointer: NonNull<u8>) -> Result<Block> {
    let address = pointer.as_ptr() as usize;
    let info = context.raw().query(address)?;
    Block::of_query(&info, pointer)
        .ok_or_else(|| error::of(ErrorKind::WrongContext { expected: context.id(), found: info.context }))
}
