//! Events, used again once nobody needs them: no heap and no driver object for each operation.
//!
//! What waits for an event names the record that was there when it began to wait, so an event may be recorded anew as soon as no handle is
//! left: the driver keeps to the records of earlier calls.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::ManuallyDrop;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use super::error::{self, check};
use super::loader::{Code, Driver, Raw};
use super::memory::{Current, Native};
use crate::BackendKind;
use crate::backend::roster::Completion;
use crate::backend::{EventStatus, poll};
use crate::error::Result;
use crate::sync::Mutex;

/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: u32 = 2;

/// A `CUevent`, shared by all clones of the handle.
#[derive(Debug)]
pub struct CudaEvent(ManuallyDrop<Arc<Slot>>);

/// An event of the driver.
#[derive(Debug)]
pub(super) struct Slot {
    raw: Raw,
    driver: &'static Driver,
    /// Whether the driver was seen to say so.
    complete: AtomicBool,
    /// The call that failed after work was under way, and why: that work can then never be known to be complete.
    unrecorded: Option<(&'static str, Code)>,
    /// Where it goes when its last handle does; none while it is there, and for somebody else's.
    home: Option<Arc<Events>>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

/// How far the calls of one operation came.
pub(super) enum Submitted {
    All,
    /// The named call failed after others had succeeded.
    Part(&'static str, Code),
    /// The first call failed.
    Nothing(&'static str, Code),
}

/// The events of one context.
#[derive(Debug)]
pub(super) struct Events {
    native: Arc<Native>,
    /// Each the only handle of its slot.
    free: Mutex<Vec<Arc<Slot>>>,
}

impl Events {
    pub(super) fn new(native: &Arc<Native>) -> Arc<Self> {
        Arc::new(Self { native: Arc::clone(native), free: Mutex::default() })
    }

    pub(super) fn native(&self) -> &Native {
        &self.native
    }

    /// An event after everything that `stream` was given up to the end of `work`.
    ///
    /// The event is there first: when there is none, nothing was submitted. When recording it fails, or a later one of several
    /// calls, work is under way: there is an event all the same, one that never completes.
    pub(super) fn record(
        self: &Arc<Self>,
        stream: Raw,
        current: &Current,
        work: impl FnOnce() -> Submitted,
    ) -> Result<CudaEvent> {
        let mut slot = self.take(current)?;
        let unrecorded = match work() {
            Submitted::All => {
                // SAFETY: live event and stream.
                let code = unsafe { (slot.driver.record_event)(slot.raw, stream) };
                (code != error::SUCCESS).then_some(("cuEventRecord", code))
            }
            Submitted::Part(operation, code) => Some((operation, code)),
            Submitted::Nothing(operation, code) => {
                self.free.lock().push(slot);
                return Err(error::native(operation, code));
            }
        };
        // Always: the list holds only handles, and a new slot has one.
        if let Some(only) = Arc::get_mut(&mut slot) {
            *only.complete.get_mut() = false;
            only.unrecorded = unrecorded;
            only.home = Some(Arc::clone(self));
        }
        Ok(CudaEvent(ManuallyDrop::new(slot)))
    }

    fn take(&self, _: &Current) -> Result<Arc<Slot>> {
        let free = self.free.lock().pop();
        if let Some(slot) = free {
            return Ok(slot);
        }
        let (mut raw, driver) = (ptr::null_mut(), self.native.driver());
        // SAFETY: the context is current, room for the answer.
        check("cuEventCreate", unsafe { (driver.create_event)(&raw mut raw, DISABLE_TIMING) })?;
        let complete = AtomicBool::new(false);
        Ok(Arc::new(Slot { raw, driver, complete, unrecorded: None, home: None }))
    }
}

impl Drop for Events {
    /// Every slot is here: each that is elsewhere keeps this alive.
    fn drop(&mut self) {
        for slot in self.free.get_mut().drain(..) {
            // SAFETY: owned, destroyed once. A failure could not be acted on.
            let _ = unsafe { (slot.driver.destroy_event)(slot.raw) };
        }
    }
}

impl CudaEvent {
    /// A foreign event, which is neither recorded nor destroyed.
    ///
    /// # Safety
    /// `raw` is a live event of `driver`, recorded, and outlives the result and its clones.
    pub(super) unsafe fn borrowing(driver: &'static Driver, raw: Raw) -> Self {
        let complete = AtomicBool::new(false);
        Self(ManuallyDrop::new(Arc::new(Slot { raw, driver, complete, unrecorded: None, home: None })))
    }

    /// Of work after which no event can be had: it is never known to be complete.
    pub(super) fn unknown(driver: &'static Driver, operation: &'static str, code: Code) -> Self {
        let (raw, complete) = (ptr::null_mut(), AtomicBool::new(false));
        let unrecorded = Some((operation, code));
        Self(ManuallyDrop::new(Arc::new(Slot { raw, driver, complete, unrecorded, home: None })))
    }

    pub(super) fn handle(&self) -> Raw {
        self.0.raw
    }

    pub(super) fn status(&self) -> Result<EventStatus> {
        if self.0.complete.load(Ordering::Acquire) {
            return Ok(EventStatus::Complete);
        }
        if let Some((operation, code)) = self.0.unrecorded {
            return Err(error::native(operation, code));
        }
        // SAFETY: a live event.
        match unsafe { (self.0.driver.query_event)(self.0.raw) } {
            error::SUCCESS => {
                // Somebody else's may be recorded anew.
                if self.0.home.is_some() {
                    self.0.complete.store(true, Ordering::Release);
                }
                Ok(EventStatus::Complete)
            }
            error::NOT_READY => Ok(EventStatus::Pending),
            code => Err(error::native("the operation of an event", code)),
        }
    }
}

impl Completion for CudaEvent {
    fn is_complete(&self) -> bool {
        matches!(self.status(), Ok(EventStatus::Complete))
    }

    fn wait(&self, limit: Duration) -> Result<()> {
        poll::until_complete(limit, || self.status()).map_err(|error| error.in_backend(BackendKind::Cuda))
    }
}

impl Clone for CudaEvent {
    fn clone(&self) -> Self {
        Self(ManuallyDrop::new(Arc::clone(&self.0)))
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        // SAFETY: this is the end of the handle, nothing uses it afterwards.
        let mut slot = unsafe { ManuallyDrop::take(&mut self.0) };
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
            let (raw, driver, complete) = (self.raw, self.driver, AtomicBool::new(false));
            let slot = Self { raw, driver, complete, unrecorded: None, home: None };
            home.free.lock().push(Arc::new(slot));
        }
    }
}
