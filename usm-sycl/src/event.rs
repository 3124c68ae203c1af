//! Events, including the failures that SYCL forgets.
//!
//! SYCL passes a failure on only to copies and launches that wait for the failed event from another
//! queue or on an out-of-order one. On an in-order queue it drops such dependencies as redundant,
//! and the runtime below does not stop a queue after a failure. A barrier over events completes
//! once it has queried them, whatever their state. So each operation here keeps its predecessors,
//! see [`chain`](super::chain).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ffi::c_int;
use core::fmt;
use core::time::Duration;

use crate::chain::TrackedOperation;
use crate::error::{self, not_null};
use crate::loader::{Handle, Library, Raw};
use usm_core::backend::{EventOps, EventStatus};
use usm_core::driver::{NOT_TIMED, poll, process, waiter};
use usm_core::{BackendKind, ErrorKind, EventTimes, Result};

/// The library's event states for success and for pending operations.
const COMPLETE: c_int = 3;
const SUBMITTED: c_int = 1;
const RUNNING: c_int = 2;

/// A SYCL event.
#[derive(Clone)]
pub struct DpctlEvent(pub(super) TrackedOperation<Operation>);

/// An event of the library, which knows only its own operation.
#[derive(Debug)]
pub(super) struct Operation(Handle);

impl fmt::Debug for DpctlEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DpctlEvent").field(self.native()).finish()
    }
}

/// Takes an event from the library.
///
/// # Safety
/// `raw` is NULL or an event of `library` that the caller owns.
pub(super) unsafe fn owned(
    library: &'static Library,
    operation: &'static str,
    raw: Raw,
) -> Result<Operation> {
    let raw = not_null(operation, raw)?;
    // SAFETY: the caller's promise.
    Ok(Operation(unsafe { Handle::new(library, raw, library.event_delete) }))
}

impl DpctlEvent {
    /// A foreign event, without known predecessors.
    pub(super) fn of(operation: Operation) -> Self {
        Self(TrackedOperation::new(operation, Vec::new()))
    }

    pub(super) fn native(&self) -> &Handle {
        &self.0.inner().operation().0
    }

    /// A wait without a limit.
    fn unlimited_wait(&self) -> waiter::Blocking {
        let event = self.clone();
        Box::new(move || {
            let Ok(_inside) = process::ask() else { return };
            let handle = event.native();
            // SAFETY: a live event; the function lets no exception escape.
            unsafe { (handle.library().event_wait)(handle.raw()) };
        })
    }
}

impl EventOps for Operation {
    fn status(&self) -> Result<EventStatus> {
        let _inside = process::ask()?;
        // SAFETY: a live event.
        match unsafe { (self.0.library().event_status)(self.0.raw()) } {
            COMPLETE => Ok(EventStatus::Complete),
            SUBMITTED | RUNNING => Ok(EventStatus::Pending),
            _ => Err(error::native("DPCTLEvent_GetCommandExecutionStatus")),
        }
    }

    fn wait(&self, limit: Duration) -> Result<()> {
        poll::until_complete(limit, || self.status())
    }
}

impl EventOps for DpctlEvent {
    fn status(&self) -> Result<EventStatus> {
        self.0.status()
    }

    /// The submission has already flushed.
    fn wait(&self, limit: Duration) -> Result<()> {
        waiter::until_complete(limit, || self.status(), || Some(self.unlimited_wait()))
            .map_err(|error| error.in_backend(BackendKind::Sycl))
    }

    fn times(&self) -> Result<EventTimes> {
        let _inside = process::ask()?;
        let (event, library) = (self.native().raw(), self.native().library());
        // SAFETY: a live event.
        let start = unsafe { (library.event_started)(event) };
        // SAFETY: as above.
        let end = unsafe { (library.event_ended)(event) };
        // The library answers 0 where SYCL throws.
        if end == 0 {
            return Err(error::of(ErrorKind::Unsupported { operation: NOT_TIMED }));
        }
        let time = |nanoseconds: usize| Duration::from_nanos(nanoseconds as u64);
        Ok(EventTimes { started: time(start), ended: time(end) })
    }
}
