//! Events: the completion of one operation.

#[cfg(feature = "alloc")]
use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use crate::backend::{Backend, EventOps, EventStatus};
use crate::context::Context;
use crate::context_state::ContextState;
use crate::error::Result;
#[cfg(feature = "alloc")]
use crate::watch::Watch;

/// When a device worked on an operation, by the runtime's own clock. Its zero is the same for all
/// events of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventTimes {
    /// When the device began the operation.
    pub started: Duration,
    /// When it had finished.
    pub ended: Duration,
}

impl EventTimes {
    /// How long the device worked on the operation.
    #[must_use]
    pub const fn elapsed(&self) -> Duration {
        self.ended.saturating_sub(self.started)
    }
}

/// The completion of one operation. Dropping or forgetting it changes nothing: the operation's
/// allocations remember it.
#[must_use = "an event orders later work; drop it explicitly if no work needs to wait for it"]
pub struct Event<B: Backend> {
    pub(crate) raw: B::Event,
    pub(crate) context: u64,
    limit_ms: u32,
    #[cfg(feature = "alloc")]
    watch: Option<Box<Watch<B>>>,
}

impl<B: Backend> Clone for Event<B> {
    fn clone(&self) -> Self {
        Self {
            raw: self.raw.clone(),
            context: self.context,
            limit_ms: self.limit_ms,
            #[cfg(feature = "alloc")]
            watch: self.watch.clone(),
        }
    }
}

impl<B: Backend> fmt::Debug for Event<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("context", &self.context).field("raw", &self.raw).finish()
    }
}

impl<B: Backend> Event<B> {
    /// Wraps a backend's own event.
    ///
    /// # Safety
    /// `raw` is an event of `context`'s native context.
    pub unsafe fn from_raw(context: &Context<B>, raw: B::Event) -> Self {
        Self::of(raw, context.shared())
    }

    pub(crate) fn of(raw: B::Event, shared: &ContextState) -> Self {
        Self {
            raw,
            context: shared.id(),
            limit_ms: shared.wait_limit_ms(),
            #[cfg(feature = "alloc")]
            watch: None,
        }
    }

    /// The same event, which also fails with the outcome of its record.
    #[cfg(feature = "alloc")]
    pub(crate) fn with_watched(self, watch: Watch<B>) -> Self {
        Self { watch: Some(Box::new(watch)), ..self }
    }

    #[cfg(feature = "alloc")]
    fn check(&self) -> Result<()> {
        let limit = Duration::from_millis(u64::from(self.limit_ms));
        self.watch.as_ref().map_or(Ok(()), |watch| watch.check(limit))
    }

    #[cfg(not(feature = "alloc"))]
    #[allow(clippy::unused_self, reason = "the same call with and without `alloc`")]
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Whether the operation has finished; never blocks.
    ///
    /// # Errors
    /// When the operation failed or the device is lost.
    pub fn status(&self) -> Result<EventStatus> {
        let status = self.raw.status()?;
        if status == EventStatus::Complete {
            self.check()?;
        }
        Ok(status)
    }

    /// Blocks until the operation has finished, at most the wait limit that the context had when
    /// the operation was submitted: [`set_wait_limit`](Context::set_wait_limit).
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout), or the operation's failure.
    pub fn wait(&self) -> Result<()> {
        self.wait_for(Duration::from_millis(u64::from(self.limit_ms)))
    }

    /// Blocks until the operation has finished, at most `limit`.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_for(&self, limit: Duration) -> Result<()> {
        self.raw.wait(limit)?;
        self.check()
    }

    /// When the device worked on the operation. Waits for it first, as [`wait`](Self::wait) does.
    /// An operation that the runtime gets in several parts, such as a strided copy, has the times
    /// of its last part.
    ///
    /// # Errors
    /// As [`wait`](Self::wait); [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the
    /// event's queue is not [timed](Context::timed_queue).
    pub fn times(&self) -> Result<EventTimes> {
        self.wait()?;
        self.raw.times()
    }

    /// The backend's own event.
    #[must_use]
    pub fn raw(&self) -> &B::Event {
        &self.raw
    }
}
