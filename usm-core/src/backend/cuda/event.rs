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
    /// Where it goes when its last handle does; none for somebody else's.
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
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    /// Each the only handle of its slot. They keep this alive, until it is closed.
    slots: Vec<Arc<Slot>>,
    closed: bool,
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
                drop(CudaEvent(ManuallyDrop::new(slot)));
                return Err(error::native(operation, code));
            }
        };
        // Nobody else has the slot yet.
        slot.complete.store(false, Ordering::Relaxed);
        if unrecorded.is_some() {
            let (raw, driver, complete) = (ptr::null_mut(), slot.driver, AtomicBool::new(false));
            // The event itself goes back; this one stands for nothing else ever.
            drop(CudaEvent(ManuallyDrop::new(slot)));
            slot = Arc::new(Slot { raw, driver, complete, unrecorded, home: None });
        }
        Ok(CudaEvent(ManuallyDrop::new(slot)))
    }

    #[inline]
    fn take(self: &Arc<Self>, current: &Current) -> Result<Arc<Slot>> {
        let free = self.free.lock().slots.pop();
        match free {
            Some(slot) => Ok(slot),
            None => self.create(current),
        }
    }

    #[cold]
    fn create(self: &Arc<Self>, _: &Current) -> Result<Arc<Slot>> {
        let (mut raw, driver) = (ptr::null_mut(), self.native.driver());
        // SAFETY: the context is current, room for the answer.
        check("cuEventCreate", unsafe { (driver.create_event)(&raw mut raw, DISABLE_TIMING) })?;
        let complete = AtomicBool::new(false);
        let home = Some(Arc::clone(self));
        Ok(Arc::new(Slot { raw, driver, complete, unrecorded: None, home }))
    }

    /// For the end of the context: what is here is destroyed, and from now on what would come back.
    pub(super) fn close(&self) {
        let mut free = self.free.lock();
        free.closed = true;
        let slots = core::mem::take(&mut free.slots);
        drop(free);
        drop(slots);
    }

    /// Takes a slot that nobody else has. No reference: the slot may be what kept `home`.
    ///
    /// # Safety
    /// `home` is the slot's.
    unsafe fn put(home: *const Self, slot: Arc<Slot>) {
        // SAFETY: the slot keeps its home alive; once it is in the list, the context does, which closes the list before it goes.
        let mut free = unsafe { (*home).free.lock() };
        if !free.closed {
            return free.slots.push(slot);
        }
        drop(free);
        drop(slot);
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
                // Somebody else's may be recorded anew by them.
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
        // Asked first without an atomic operation: most handles are not the last one.
        if Arc::strong_count(&slot) != 1 || Arc::get_mut(&mut slot).is_none() {
            return;
        }
        // Nobody else holds the slot, so nobody else can begin to.
        if let Some(home) = slot.home.as_ref().map(Arc::as_ptr) {
            // SAFETY: the home of this slot.
            unsafe { Events::put(home, slot) };
        }
    }
}

impl Drop for Slot {
    /// At the end of the context, or when two handles went at the same moment, neither of which was the only one.
    fn drop(&mut self) {
        if self.home.is_some() {
            // SAFETY: owned, destroyed once. A failure could not be acted on.
            let _ = unsafe { (self.driver.destroy_event)(self.raw) };
        }
    }
}
