//! Events, which remember the user events of programs that they follow.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use crate::error::{self, Status, check};
use crate::loader::Handle;
use usm_core::backend::{EventOps, EventStatus};
use usm_core::driver::{NOT_TIMED, process, waiter};
use usm_core::{BackendKind, EventTimes, Result};

const EVENT_STATUS: u32 = 0x11D3;
/// `CL_PROFILING_COMMAND_START` and `CL_PROFILING_COMMAND_END`: nanoseconds.
const STARTED: u32 = 0x1282;
const ENDED: u32 = 0x1283;
const COMPLETE: Status = 0;

/// An OpenCL event.
#[derive(Clone, Debug)]
pub struct OpenClEvent(Arc<EventInner>);

/// In cache lines of its own, because each launch writes one and the runtime's threads write its
/// neighbours in the heap.
#[derive(Debug)]
#[repr(align(64))]
struct EventInner {
    handle: Handle,
    /// The queue to flush at the first query of the event, because unflushed work may never start.
    /// A foreign event may have none.
    queue: Option<Arc<Handle>>,
    is_flushed: AtomicBool,
    /// User events that the operation follows, directly or indirectly. Intel's CPU runtime forgets
    /// their failures: an operation that waited for a failed one is reported complete, whether it
    /// ran or not.
    user_events: UserEvents,
}

/// Usually empty, and then without a heap block and without queries.
pub(super) type UserEvents = Option<Arc<[OpenClEvent]>>;

impl OpenClEvent {
    /// An event of `queue`; `None` for a user event.
    pub(super) fn new(handle: Handle, queue: Option<Arc<Handle>>) -> Self {
        Self::with_user_events(handle, queue, None)
    }

    pub(super) fn with_user_events(
        handle: Handle,
        queue: Option<Arc<Handle>>,
        user_events: UserEvents,
    ) -> Self {
        Self(Arc::new(EventInner { handle, queue, is_flushed: AtomicBool::new(false), user_events }))
    }

    /// Another event of the same queue. If this event has no other handle, reuses its heap block
    /// and releases its reference.
    pub(super) fn next_event(mut self, handle: Handle, queue: &Arc<Handle>, user_events: UserEvents) -> Self {
        match Arc::get_mut(&mut self.0) {
            Some(inner) => {
                (inner.handle, inner.is_flushed, inner.user_events) =
                    (handle, AtomicBool::new(false), user_events);
                self
            }
            None => Self::with_user_events(handle, Some(Arc::clone(queue)), user_events),
        }
    }

    /// Whether the event is of an operation in this queue.
    pub(super) fn is_of(&self, queue: &Arc<Handle>) -> bool {
        self.0.queue.as_ref().is_some_and(|own| Arc::ptr_eq(own, queue))
    }

    /// Whether the operation follows a user event.
    pub(super) fn follows_user_events(&self) -> bool {
        self.0.user_events.is_some()
    }

    /// The user events that this event follows, including itself.
    fn followed_user_events(&self) -> &[Self] {
        match (&self.0.queue, &self.0.user_events) {
            (None, _) => core::slice::from_ref(self),
            (Some(_), Some(user_events)) => user_events,
            (Some(_), None) => &[],
        }
    }

    /// A wait without a limit; `None` for a user event.
    fn unlimited_wait(&self) -> Option<waiter::Blocking> {
        let is_up_to_a_program = self.0.queue.is_none() || self.0.user_events.is_some();
        let event = self.clone();
        let block = move || {
            let Ok(_inside) = process::ask() else { return };
            let raw = event.as_raw();
            // SAFETY: a live event. A later query asks whether it failed.
            let _ = unsafe { (event.0.handle.library().wait_for_events)(1, &raw const raw) };
        };
        (!is_up_to_a_program).then(|| Box::new(block) as waiter::Blocking)
    }

    pub(super) fn native(&self) -> &Handle {
        &self.0.handle
    }

    /// One of the event's times.
    fn time(&self, which: u32) -> Result<Duration> {
        let mut nanoseconds: u64 = 0;
        let answer = (&raw mut nanoseconds).cast();
        // SAFETY: a live event, space for the value.
        let status = unsafe {
            let call = self.0.handle.library().event_times;
            call(self.as_raw(), which, size_of::<u64>(), answer, ptr::null_mut())
        };
        match status {
            error::PROFILING_INFO_NOT_AVAILABLE => Err(error::unsupported(NOT_TIMED)),
            status => check("clGetEventProfilingInfo", status).map(|()| Duration::from_nanos(nanoseconds)),
        }
    }

    pub(super) fn flush(&self) -> Result<()> {
        let Some(queue) = &self.0.queue else { return Ok(()) };
        if !self.0.is_flushed.load(Ordering::Relaxed) {
            // SAFETY: a live queue.
            check("clFlush", unsafe { (self.0.handle.library().flush)(queue.raw()) })?;
            self.0.is_flushed.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The user events that an operation after these events follows, or the error of one that has
/// already failed.
pub(super) fn user_events_of<'e>(events: impl Iterator<Item = &'e OpenClEvent>) -> Result<UserEvents> {
    let mut pending: Vec<OpenClEvent> = Vec::new();
    for event in events.flat_map(OpenClEvent::followed_user_events) {
        let is_listed = pending.iter().any(|other| Arc::ptr_eq(&other.0, &event.0));
        if !is_listed && event.status()? == EventStatus::Pending {
            pending.push(event.clone());
        }
    }
    Ok((!pending.is_empty()).then(|| pending.into()))
}

impl EventOps for OpenClEvent {
    fn status(&self) -> Result<EventStatus> {
        let _inside = process::ask()?;
        self.flush()?;
        let mut status: Status = 0;
        let answer = (&raw mut status).cast();
        // SAFETY: a live event, space for the value.
        let code = unsafe {
            let call = self.0.handle.library().event_info;
            call(self.as_raw(), EVENT_STATUS, size_of::<Status>(), answer, ptr::null_mut())
        };
        check("clGetEventInfo", code)?;
        match status {
            COMPLETE => {
                for event in self.0.user_events.iter().flat_map(|user_events| user_events.iter()) {
                    event.status()?;
                }
                Ok(EventStatus::Complete)
            }
            status if status > COMPLETE => Ok(EventStatus::Pending),
            failure => Err(error::native("the operation of an event", failure)),
        }
    }

    fn wait(&self, limit: Duration) -> Result<()> {
        waiter::until_complete(limit, || self.status(), || self.unlimited_wait())
            .map_err(|error| error.in_backend(BackendKind::OpenCl))
    }

    fn times(&self) -> Result<EventTimes> {
        let _inside = process::ask()?;
        Ok(EventTimes { started: self.time(STARTED)?, ended: self.time(ENDED)? })
    }
}
