//! Events, reused after their last handle: no heap and no driver object for each operation.
//!
//! A wait refers to the record that the event had when the wait was submitted. So an event without
//! handles may be recorded again: earlier waits keep their record.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ptr;
use core::time::Duration;

use crate::error::{self, is_fault};
use crate::loader::Driver;
use crate::native::Native;
use crate::table::{Code, Raw};
use usm_core::backend::{EventOps, EventStatus};
use usm_core::driver::slots::{SlotHandle, Slots};
use usm_core::driver::sync::{AtomicBool, Ordering};
use usm_core::driver::{NOT_TIMED, poll, process};
use usm_core::{Error, ErrorKind, EventTimes, Result};

/// `CU_EVENT_DISABLE_TIMING`, `hipEventDisableTiming`.
const DISABLE_TIMING: u32 = 2;
/// No flag.
const TIMED: u32 = 0;

/// A `CUevent` or `hipEvent_t`, shared by all clones of the handle.
#[derive(Clone, Debug)]
pub struct CudaEvent(SlotHandle<Object>);

/// An event of the driver.
#[derive(Debug)]
pub(super) struct Object {
    raw: Raw,
    driver: &'static Driver,
    /// Whether the driver has reported the event complete.
    complete: AtomicBool,
    /// The call that failed after work was submitted, and its code. The outcome of that work is
    /// unknown.
    record_failure: Option<(&'static str, Code)>,
    /// Set for an event of a timed queue.
    timing: Option<Timing>,
    /// The event's context, kept as long as the event. `None` for a foreign event, which is not
    /// destroyed.
    native: Option<Arc<Native>>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

/// The event from which the times of other events are measured.
#[derive(Debug)]
struct Timing {
    /// Recorded before the operation.
    began: Box<Object>,
    /// Recorded once, when the queue was made.
    zero: Arc<Object>,
}

/// How many calls of one operation succeeded.
pub(super) enum SubmitOutcome {
    All,
    /// The named call failed after others succeeded.
    Part(&'static str, Code),
    /// The first call failed.
    Nothing(&'static str, Code),
}

/// The events of one context.
#[derive(Debug)]
pub(super) struct Events {
    slots: Slots<Object>,
    /// Set where the events are timed.
    zero: Option<Arc<Object>>,
    native: Arc<Native>,
}

impl Events {
    pub(super) fn new(native: &Arc<Native>) -> Arc<Self> {
        Arc::new(Self { slots: Slots::new(), zero: None, native: Arc::clone(native) })
    }

    /// Events of the same context that are timed.
    pub(super) fn timed(of: &Self) -> Result<Arc<Self>> {
        let native = Arc::clone(&of.native);
        let zero = Some(Arc::new(Object::create(&native, TIMED)?));
        Ok(Arc::new(Self { slots: Slots::new(), zero, native }))
    }

    /// Records what times are measured from, in an idle stream of the queue. The default stream may
    /// be busy with work of others, and times would have to wait for it.
    pub(super) fn record_zero_time(&self, stream: Raw) -> Result<()> {
        let Some(zero) = &self.zero else { return Ok(()) };
        // SAFETY: live event and stream.
        let code = self.native.call_by_stream(|| unsafe { (zero.driver.record_event)(zero.raw, stream) });
        zero.driver.check(zero.driver.names().record_event, code)
    }

    pub(super) fn native(&self) -> &Native {
        &self.native
    }

    /// An event after everything submitted to `stream` up to the end of `work`.
    ///
    /// Makes the event first: without one, nothing is submitted. If its record or a later one of
    /// several calls fails, work is already running; the result is then an event that never
    /// completes.
    #[inline]
    pub(super) fn record(&self, stream: Raw, work: impl FnOnce() -> SubmitOutcome) -> Result<CudaEvent> {
        let event = self.take()?;
        if let Some(Timing { began, .. }) = &event.timing {
            // SAFETY: live event and stream.
            let code =
                self.native.call_by_stream(|| unsafe { (began.driver.record_event)(began.raw, stream) });
            began.driver.check(began.driver.names().record_event, code)?;
        }
        let work_code = match work() {
            SubmitOutcome::All => {
                // SAFETY: live event and stream.
                match self.native.call_by_stream(|| unsafe { (event.driver.record_event)(event.raw, stream) })
                {
                    error::SUCCESS => None,
                    code => Some((event.driver.names().record_event, code)),
                }
            }
            SubmitOutcome::Part(operation, code) => Some((operation, code)),
            SubmitOutcome::Nothing(operation, code) => return Err(event.driver.native(operation, code)),
        };
        if let Some((operation, code)) = work_code {
            // The slot takes its event back; the result stands only for this work.
            return Ok(CudaEvent::unknown(event.driver, operation, code));
        }
        // No other handle exists.
        event.complete.store(false, Ordering::Relaxed);
        Ok(CudaEvent(event))
    }

    #[inline]
    fn take(&self) -> Result<SlotHandle<Object>> {
        match self.slots.take() {
            Some(used) => Ok(used),
            None => self.create(),
        }
    }

    #[cold]
    fn create(&self) -> Result<SlotHandle<Object>> {
        let Some(zero) = &self.zero else {
            return Ok(self.slots.add(Object::create(&self.native, DISABLE_TIMING)?));
        };
        let began = Box::new(Object::create(&self.native, TIMED)?);
        let mut event = Object::create(&self.native, TIMED)?;
        event.timing = Some(Timing { began, zero: Arc::clone(zero) });
        Ok(self.slots.add(event))
    }
}

impl Object {
    fn create(native: &Arc<Native>, flags: u32) -> Result<Self> {
        let (mut raw, driver) = (ptr::null_mut(), native.driver());
        let _current = native.make_current()?;
        // SAFETY: the context is current, space for the value.
        let code = unsafe { (driver.create_event)(&raw mut raw, flags) };
        driver.check(driver.names().create_event, code)?;
        let (complete, native) = (AtomicBool::new(false), Some(Arc::clone(native)));
        Ok(Self { raw, driver, complete, record_failure: None, timing: None, native })
    }

    /// The time from this event to a later one. Both are timed and complete.
    fn time_to(&self, end: &Self) -> Result<Duration> {
        let mut milliseconds = 0.0;
        // SAFETY: live events, space for the value.
        let code = unsafe { (self.driver.elapsed)(&raw mut milliseconds, self.raw, end.raw) };
        self.driver.check(self.driver.names().elapsed, code)?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }
}

impl CudaEvent {
    /// Wraps a foreign event, which is neither recorded nor destroyed.
    ///
    /// # Safety
    /// `raw` is a live event of `driver`, recorded, and outlives the result and its clones.
    pub(super) unsafe fn borrowing(driver: &'static Driver, raw: Raw) -> Self {
        Self::without_slots(driver, raw, None)
    }

    /// Stands for work without an event, whose outcome is unknown: never complete.
    pub(super) fn unknown(driver: &'static Driver, operation: &'static str, code: Code) -> Self {
        Self::without_slots(driver, ptr::null_mut(), Some((operation, code)))
    }

    fn without_slots(
        driver: &'static Driver,
        raw: Raw,
        record_failure: Option<(&'static str, Code)>,
    ) -> Self {
        let complete = AtomicBool::new(false);
        let (timing, native) = (None, None);
        Self(SlotHandle::without_slots(Object { raw, driver, complete, record_failure, timing, native }))
    }

    /// The failed call and its code, if this stands for work with an unknown outcome.
    #[inline]
    pub(super) fn unknown_outcome(&self) -> Option<(&'static str, Code)> {
        self.0.record_failure
    }

    pub(super) fn handle(&self) -> Raw {
        self.0.raw
    }
}

impl EventOps for CudaEvent {
    fn status(&self) -> Result<EventStatus> {
        if self.0.complete.load(Ordering::Acquire) {
            return Ok(EventStatus::Complete);
        }
        if let Some((operation, code)) = self.0.record_failure {
            return Err(self.0.driver.native(operation, code));
        }
        let _inside = process::ask()?;
        // SAFETY: a live event.
        match unsafe { (self.0.driver.query_event)(self.0.raw) } {
            error::SUCCESS => {
                // The owner of a foreign event may record it again.
                if self.0.native.is_some() {
                    self.0.complete.store(true, Ordering::Release);
                }
                Ok(EventStatus::Complete)
            }
            error::NOT_READY => Ok(EventStatus::Pending),
            code => Err(self.0.driver.native("the operation of an event", code)),
        }
    }

    fn wait(&self, limit: Duration) -> Result<()> {
        poll::until_complete(limit, || self.status())
            .map_err(|error| error.in_backend(self.0.driver.vendor.backend))
    }

    /// The start is exact to the driver's single precision; the time from start to end is exact to
    /// that of a time as short as it.
    fn times(&self) -> Result<EventTimes> {
        let _inside = process::ask()?;
        let Some(Timing { began, zero }) = &self.0.timing else {
            return Err(self.0.driver.error(ErrorKind::Unsupported { operation: NOT_TIMED }));
        };
        let start = zero.time_to(began)?;
        Ok(EventTimes { started: start, ended: start + began.time_to(&self.0)? })
    }

    fn is_for_good(&self, error: &Error) -> bool {
        error.native.is_some_and(is_fault)
    }
}

impl Drop for Object {
    /// Runs at the end of the context or later.
    fn drop(&mut self) {
        let Ok(_inside) = process::ask() else { return };
        if self.native.is_some() {
            // SAFETY: owned, destroyed once. A failure has no remedy.
            let _ = unsafe { (self.driver.destroy_event)(self.raw) };
        }
    }
}
