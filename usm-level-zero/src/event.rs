//! Events, reused after their last handle: no heap and no driver object for each operation.
//!
//! A driver's event is a location that the device writes to. It may be reused once its operation
//! and every command that waits for it are complete; queues ensure that by [keeping](super::queue)
//! both until then.

use alloc::sync::Arc;
use core::ptr;
use core::time::Duration;

use level_zero_sys::*;

use crate::error;
use crate::native::Native;
use usm_core::backend::{EventOps, EventStatus};
use usm_core::driver::slots::{SlotHandle, Slots};
use usm_core::driver::sync::{AtomicU32, Ordering, sleeping};
use usm_core::driver::{poll, process};
use usm_core::{BackendKind, Result};

/// Number of events in one pool of the driver.
const POOL_SIZE: u32 = 128;

/// An event of Level Zero, shared by all clones of the handle.
#[derive(Clone, Debug)]
pub struct LevelZeroEvent(SlotHandle<Object>);

/// An event of the driver.
#[derive(Debug)]
pub(super) struct Object {
    raw: ze_event_handle_t,
    functions: &'static Functions,
    /// [`PENDING`] until a query returned another state, [`COMPLETE`], or the code of a failure.
    state: AtomicU32,
    /// Dropped after the event.
    place: Place,
}

const PENDING: u32 = ZE_RESULT_NOT_READY.0;
const COMPLETE: u32 = ZE_RESULT_SUCCESS.0;

/// The event's pool, kept as long as the event.
#[derive(Debug)]
#[expect(dead_code, reason = "kept for their drop")]
enum Place {
    Pool(Arc<Pool>),
    Context(Arc<Native>),
    /// A foreign event is not destroyed.
    Elsewhere,
}

/// A pool of the driver, destroyed after its events.
#[derive(Debug)]
struct Pool {
    raw: ze_event_pool_handle_t,
    native: Arc<Native>,
}

/// The events of one sort in one context.
#[derive(Debug)]
pub(super) struct Events {
    slots: Slots<Object>,
    native: Arc<Native>,
    sort: Sort,
    /// The last pool, with the number of used indices. The lock is held during calls of the driver.
    pool: sleeping::Mutex<Option<(Arc<Pool>, u32)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    /// Events of pools, which the host resets before reuse.
    Pooled,
    /// Counting events of in-order lists, which need no reset.
    Counting,
}

impl Events {
    /// Events of pools, for every list.
    pub(super) fn pooled(native: &Arc<Native>) -> Arc<Self> {
        Self::new(native, Sort::Pooled)
    }

    /// Counting events, for in-order lists. `None` if the driver has no such events.
    pub(super) fn counting(native: &Arc<Native>) -> Option<Arc<Self>> {
        native.functions().zeEventCounterBasedCreate?;
        let events = Self::new(native, Sort::Counting);
        // Makes the first event, which shows whether the driver supports them.
        drop(events.slots.add(events.create().ok()?));
        Some(events)
    }

    fn new(native: &Arc<Native>, sort: Sort) -> Arc<Self> {
        let native = Arc::clone(native);
        Arc::new(Self { slots: Slots::new(), native, sort, pool: sleeping::Mutex::default() })
    }

    /// An unsignalled event.
    #[inline]
    pub(super) fn take(&self) -> Result<LevelZeroEvent> {
        let Some(used) = self.slots.take() else {
            return Ok(LevelZeroEvent(self.slots.add(self.create()?)));
        };
        if self.sort == Sort::Pooled {
            // SAFETY: a live event that no command refers to.
            unsafe { self.native.functions().zeEventHostReset(used.raw) }.map_err(error::call)?;
        }
        // No other handle exists.
        used.state.store(PENDING, Ordering::Relaxed);
        Ok(LevelZeroEvent(used))
    }

    #[cold]
    fn create(&self) -> Result<Object> {
        let mut raw = ze_event_handle_t::NULL;
        let functions = self.native.functions();
        // With this scope the host and all later commands see memory effects before the event.
        let (signal, wait) = (ZE_EVENT_SCOPE_FLAG_HOST, ZE_EVENT_SCOPE_FLAG_DEVICE);
        let (creation, place) = match self.sort {
            Sort::Counting => {
                let flags = ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE | ZE_EVENT_COUNTER_BASED_FLAG_HOST_VISIBLE;
                let description = ze_event_counter_based_desc_t { flags, signal, wait, ..Default::default() };
                let (context, device) = (self.native.context(), self.native.device());
                // SAFETY: a live context and a device of it, space for the value.
                let creation = unsafe {
                    functions.zeEventCounterBasedCreate(context, device, &raw const description, &raw mut raw)
                };
                (creation, Place::Context(Arc::clone(&self.native)))
            }
            Sort::Pooled => {
                let (pool, index) = self.place()?;
                let description = ze_event_desc_t { index, signal, wait, ..Default::default() };
                // SAFETY: a live pool, an index in it that no other event has, space for the value.
                let creation =
                    unsafe { functions.zeEventCreate(pool.raw, &raw const description, &raw mut raw) };
                (creation, Place::Pool(pool))
            }
        };
        creation.map_err(error::call)?;
        Ok(Object { raw, functions, state: AtomicU32::new(PENDING), place })
    }

    /// An unused index of a pool.
    fn place(&self) -> Result<(Arc<Pool>, u32)> {
        let mut last = self.pool.lock();
        let (pool, slot_count) = match last.take() {
            Some((pool, slot_count)) if slot_count < POOL_SIZE => (pool, slot_count),
            _ => (Arc::new(Pool::create(&self.native)?), 0),
        };
        *last = Some((Arc::clone(&pool), slot_count + 1));
        Ok((pool, slot_count))
    }
}

impl Pool {
    fn create(native: &Arc<Native>) -> Result<Self> {
        let description = ze_event_pool_desc_t {
            flags: ZE_EVENT_POOL_FLAG_HOST_VISIBLE,
            count: POOL_SIZE,
            ..Default::default()
        };
        let (mut device, mut raw) = (native.device(), ze_event_pool_handle_t::NULL);
        // SAFETY: a live context, one device of it, space for the value.
        unsafe {
            native.functions().zeEventPoolCreate(
                native.context(),
                &raw const description,
                1,
                &raw mut device,
                &raw mut raw,
            )
        }
        .map_err(error::call)?;
        Ok(Self { raw, native: Arc::clone(native) })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let Ok(_inside) = process::ask() else { return };
        // SAFETY: a live pool; its events keep it, so they are destroyed. A failure has no remedy.
        let _ = unsafe { self.native.functions().zeEventPoolDestroy(self.raw) };
    }
}

impl Drop for Object {
    /// Runs at the end of the context or later.
    fn drop(&mut self) {
        if matches!(self.place, Place::Elsewhere) {
            return;
        }
        let Ok(_inside) = process::ask() else { return };
        // SAFETY: owned, destroyed once, and no command refers to it. A failure has no remedy.
        let _ = unsafe { self.functions.zeEventDestroy(self.raw) };
    }
}

impl LevelZeroEvent {
    /// Wraps a foreign event, which is neither reset nor destroyed.
    ///
    /// # Safety
    /// `event` outlives the result, its clones and all work that waits for them.
    pub(super) unsafe fn borrowing(functions: &'static Functions, event: ze_event_handle_t) -> Self {
        Self::without_slots(functions, event, PENDING)
    }

    /// Stands for work without an event, whose outcome is unknown: never complete. Has the code of
    /// the failure.
    pub(super) fn unknown(functions: &'static Functions, code: Option<i64>) -> Self {
        let code = code.and_then(|code| u32::try_from(code).ok()).unwrap_or(ZE_RESULT_ERROR_UNKNOWN.0);
        Self::without_slots(functions, ze_event_handle_t::NULL, code)
    }

    fn without_slots(functions: &'static Functions, raw: ze_event_handle_t, state: u32) -> Self {
        let (state, place) = (AtomicU32::new(state), Place::Elsewhere);
        Self(SlotHandle::without_slots(Object { raw, functions, state, place }))
    }

    /// Stands for a running operation that signals no event: never complete.
    pub(super) fn fail(&self, error: &Error) {
        let code = match error {
            Error::Call { result, .. } => result.0,
            _ => ZE_RESULT_ERROR_UNKNOWN.0,
        };
        self.0.state.store(code, Ordering::Release);
    }

    /// Refuses an operation that would follow a failed one.
    pub(super) fn check(&self) -> Result<()> {
        match self.0.state.load(Ordering::Acquire) {
            PENDING | COMPLETE => Ok(()),
            code => Err(error::native("the operation of an event", ze_result_t(code))),
        }
    }

    pub(super) fn handle(&self) -> ze_event_handle_t {
        self.0.raw
    }

    /// The handle for the wait list of later commands; `None` if the driver has reported the event
    /// complete.
    pub(super) fn handle_to_wait_for(&self) -> Option<ze_event_handle_t> {
        (self.0.state.load(Ordering::Acquire) != COMPLETE).then_some(self.0.raw)
    }
}

impl EventOps for LevelZeroEvent {
    fn status(&self) -> Result<EventStatus> {
        if self.handle_to_wait_for().is_none() {
            return Ok(EventStatus::Complete);
        }
        self.check()?;
        let _inside = process::ask()?;
        // SAFETY: a live event. A query, because the wait with a limit returns success on some
        // drivers although nothing ran.
        match unsafe { self.0.functions.zeEventQueryStatus(self.0.raw) }.map_err(error::call)? {
            ZE_RESULT_SUCCESS => {
                self.0.state.store(COMPLETE, Ordering::Release);
                Ok(EventStatus::Complete)
            }
            _ => Ok(EventStatus::Pending),
        }
    }

    fn wait(&self, limit: Duration) -> Result<()> {
        poll::until_complete(limit, || self.status())
            .map_err(|error| error.in_backend(BackendKind::LevelZero))
    }
}

/// No event, for calls with an optional one.
pub(super) const NO_EVENTS: *mut ze_event_handle_t = ptr::null_mut();
