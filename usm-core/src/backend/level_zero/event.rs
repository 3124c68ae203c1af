//! Events, used again once nobody needs them: no heap and no driver object for each operation.
//!
//! A driver's event is a place that the device writes to. It may be given to another operation when its own is complete
//! and every command that waits for it is; queues see to that by [keeping](super::queue) both until then.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::ManuallyDrop;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use level_zero_sys::*;

use super::error;
use super::memory::Native;
use crate::BackendKind;
use crate::backend::roster::Completion;
use crate::backend::{EventStatus, poll};
use crate::error::Result;
use crate::sync::{Mutex, sleeping};

/// Events of one pool of the driver.
const POOL_SIZE: u32 = 128;

/// An event of Level Zero, shared by all clones of the handle.
#[derive(Debug)]
pub struct LevelZeroEvent(ManuallyDrop<Arc<Slot>>);

/// An event of the driver.
#[derive(Debug)]
pub(super) struct Slot {
    raw: ze_event_handle_t,
    functions: &'static Functions,
    /// [`PENDING`] until the driver was seen to say otherwise, [`COMPLETE`], or the code of a failure.
    state: AtomicU32,
    /// Whether it was signalled before.
    used: bool,
    /// Where it goes when its last handle does; none while it is there, and for somebody else's.
    home: Option<Arc<Events>>,
}

const PENDING: u32 = ZE_RESULT_NOT_READY.0;
const COMPLETE: u32 = ZE_RESULT_SUCCESS.0;

/// The events of one context, of one sort.
#[derive(Debug)]
pub(super) struct Events {
    native: Arc<Native>,
    sort: Sort,
    /// Each the only handle of its slot.
    free: Mutex<Vec<Arc<Slot>>>,
    /// Held over calls of the driver.
    pools: sleeping::Mutex<Pools>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    /// Places of pools, reset by the host before they are used again.
    Pooled,
    /// Counters of in-order lists, which need no reset.
    Counting,
}

#[derive(Debug, Default)]
struct Pools {
    all: Vec<ze_event_pool_handle_t>,
    /// Places taken of the last.
    taken: u32,
}

impl Events {
    /// Events of pools: for every list.
    pub(super) fn pooled(native: &Arc<Native>) -> Arc<Self> {
        Self::new(native, Sort::Pooled)
    }

    /// Counting events, for lists that are in order by themselves; none where the driver has no such events.
    pub(super) fn counting(native: &Arc<Native>) -> Option<Arc<Self>> {
        native.functions().zeEventCounterBasedCreate?;
        let events = Self::new(native, Sort::Counting);
        let first = Arc::new(events.create().ok()?);
        events.free.lock().push(first);
        Some(events)
    }

    fn new(native: &Arc<Native>, sort: Sort) -> Arc<Self> {
        let native = Arc::clone(native);
        Arc::new(Self { native, sort, free: Mutex::default(), pools: sleeping::Mutex::default() })
    }

    /// An event that is not signalled.
    pub(super) fn take(self: &Arc<Self>) -> Result<LevelZeroEvent> {
        let free = self.free.lock().pop();
        let mut slot = match free {
            Some(slot) => slot,
            None => Arc::new(self.create()?),
        };
        // Always: the list holds only handles, and a new slot has one.
        if let Some(only) = Arc::get_mut(&mut slot) {
            if only.used && self.sort == Sort::Pooled {
                // SAFETY: a live event that no command refers to any more.
                if let Err(error) = unsafe { self.native.functions().zeEventHostReset(only.raw) } {
                    self.free.lock().push(slot);
                    return Err(error::call(error));
                }
            }
            *only.state.get_mut() = PENDING;
            only.used = true;
            only.home = Some(Arc::clone(self));
        }
        Ok(LevelZeroEvent(ManuallyDrop::new(slot)))
    }

    fn create(&self) -> Result<Slot> {
        let mut raw = ze_event_handle_t::NULL;
        let functions = self.native.functions();
        // What an event follows is visible to the host and to every command after it.
        let (signal, wait) = (ZE_EVENT_SCOPE_FLAG_HOST, ZE_EVENT_SCOPE_FLAG_DEVICE);
        match self.sort {
            Sort::Counting => {
                let flags = ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE | ZE_EVENT_COUNTER_BASED_FLAG_HOST_VISIBLE;
                let description = ze_event_counter_based_desc_t { flags, signal, wait, ..Default::default() };
                let (context, device) = (self.native.context(), self.native.device());
                // SAFETY: a live context and a device of it, room for the answer.
                unsafe {
                    functions.zeEventCounterBasedCreate(context, device, &raw const description, &raw mut raw)
                }
            }
            Sort::Pooled => {
                let (pool, index) = self.place()?;
                let description = ze_event_desc_t { index, signal, wait, ..Default::default() };
                // SAFETY: a live pool, a place of it that nobody else has, room for the answer.
                unsafe { functions.zeEventCreate(pool, &raw const description, &raw mut raw) }
            }
        }
        .map_err(error::call)?;
        Ok(Slot { raw, functions, state: AtomicU32::new(PENDING), used: false, home: None })
    }

    /// A place of a pool that was never given out.
    fn place(&self) -> Result<(ze_event_pool_handle_t, u32)> {
        let mut pools = self.pools.lock();
        let last = match pools.all.last() {
            Some(last) if pools.taken < POOL_SIZE => *last,
            _ => {
                let description = ze_event_pool_desc_t {
                    flags: ZE_EVENT_POOL_FLAG_HOST_VISIBLE,
                    count: POOL_SIZE,
                    ..Default::default()
                };
                let (mut device, mut pool) = (self.native.device(), ze_event_pool_handle_t::NULL);
                let (context, functions) = (self.native.context(), self.native.functions());
                // SAFETY: a live context, one device of it, room for the answer.
                unsafe {
                    functions.zeEventPoolCreate(
                        context,
                        &raw const description,
                        1,
                        &raw mut device,
                        &raw mut pool,
                    )
                }
                .map_err(error::call)?;
                pools.taken = 0;
                pools.all.push(pool);
                pool
            }
        };
        pools.taken += 1;
        Ok((last, pools.taken - 1))
    }
}

impl Drop for Events {
    /// Every slot is here: each that is elsewhere keeps this alive.
    fn drop(&mut self) {
        let functions = self.native.functions();
        for slot in self.free.get_mut().drain(..) {
            // SAFETY: a live event that no command refers to. A failure could not be acted on.
            let _ = unsafe { functions.zeEventDestroy(slot.raw) };
        }
        for pool in self.pools.get_mut().all.drain(..) {
            // SAFETY: a live pool whose events are destroyed.
            let _ = unsafe { functions.zeEventPoolDestroy(pool) };
        }
    }
}

impl LevelZeroEvent {
    /// A foreign event, which is neither reset nor destroyed.
    ///
    /// # Safety
    /// `event` is live as long as the result and its clones, and what waits for them.
    pub(super) unsafe fn borrowing(functions: &'static Functions, event: ze_event_handle_t) -> Self {
        let state = AtomicU32::new(PENDING);
        Self(ManuallyDrop::new(Arc::new(Slot { raw: event, functions, state, used: true, home: None })))
    }

    /// Of work after which no event can be had: it is never known to be complete. With the code of the failure.
    pub(super) fn unknown(functions: &'static Functions, code: Option<i64>) -> Self {
        let code = code.and_then(|code| u32::try_from(code).ok()).unwrap_or(ZE_RESULT_ERROR_UNKNOWN.0);
        let (raw, state) = (ze_event_handle_t::NULL, AtomicU32::new(code));
        Self(ManuallyDrop::new(Arc::new(Slot { raw, functions, state, used: true, home: None })))
    }

    pub(super) fn handle(&self) -> ze_event_handle_t {
        self.0.raw
    }

    /// Whether the driver was seen to say that it is complete; does not ask.
    pub(super) fn is_known_complete(&self) -> bool {
        self.0.state.load(Ordering::Acquire) == COMPLETE
    }

    /// Of an operation that is under way although nothing will signal this: it is never complete.
    pub(super) fn fail(&self, error: &Error) {
        let code = match error {
            Error::Call { result, .. } => result.0,
            _ => ZE_RESULT_ERROR_UNKNOWN.0,
        };
        self.0.state.store(code, Ordering::Release);
    }

    /// Refuses what would follow a failed operation.
    pub(super) fn check(&self) -> Result<()> {
        match self.0.state.load(Ordering::Acquire) {
            PENDING | COMPLETE => Ok(()),
            code => Err(error::native("the operation of an event", ze_result_t(code))),
        }
    }

    pub(super) fn status(&self) -> Result<EventStatus> {
        if self.is_known_complete() {
            return Ok(EventStatus::Complete);
        }
        self.check()?;
        // SAFETY: a live event. The wait with a limit would not do: some drivers answer success although nothing ran.
        match unsafe { self.0.functions.zeEventQueryStatus(self.0.raw) }.map_err(error::call)? {
            ZE_RESULT_SUCCESS => {
                self.0.state.store(COMPLETE, Ordering::Release);
                Ok(EventStatus::Complete)
            }
            _ => Ok(EventStatus::Pending),
        }
    }
}

impl Completion for LevelZeroEvent {
    fn is_complete(&self) -> bool {
        matches!(self.status(), Ok(EventStatus::Complete))
    }

    fn wait(&self, limit: Duration) -> Result<()> {
        poll::until_complete(limit, || self.status())
            .map_err(|error| error.in_backend(BackendKind::LevelZero))
    }
}

impl Clone for LevelZeroEvent {
    fn clone(&self) -> Self {
        Self(ManuallyDrop::new(Arc::clone(&self.0)))
    }
}

impl Drop for LevelZeroEvent {
    fn drop(&mut self) {
        // SAFETY: this is the end of the handle, nothing uses it afterwards.
        let mut slot = unsafe { ManuallyDrop::take(&mut self.0) };
        // Asked first without an atomic operation: most handles are not the last one.
        if Arc::strong_count(&slot) != 1 {
            return;
        }
        // Nobody else holds the slot, so nobody else can begin to.
        if let Some(home) = Arc::get_mut(&mut slot).and_then(|only| only.home.take()) {
            home.free.lock().push(slot);
        }
    }
}

impl Drop for Slot {
    /// Two handles that went at the same moment: neither was the only one.
    fn drop(&mut self) {
        if let Some(home) = self.home.take() {
            let state = AtomicU32::new(COMPLETE);
            let slot = Self { raw: self.raw, functions: self.functions, state, used: self.used, home: None };
            home.free.lock().push(Arc::new(slot));
        }
    }
}

/// No event, where a call takes one or none.
pub(super) const NO_EVENTS: *mut ze_event_handle_t = ptr::null_mut();
