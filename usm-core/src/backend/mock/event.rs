//! Events of the simulated driver.

use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;
use std::time::Instant;

use super::engine::Engine;
use crate::backend::{EventOps, EventStatus};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::{AtomicU32, Mutex, Ordering};

const PENDING: u32 = 0;
const COMPLETE: u32 = 1;
const FAILED: u32 = 2;

/// The state of one operation.
pub(super) struct EventState {
    state: AtomicU32,
    error: Mutex<Option<Error>>,
}

impl EventState {
    pub(super) fn pending() -> Arc<Self> {
        Self::new(PENDING)
    }

    pub(super) fn complete() -> Arc<Self> {
        Self::new(COMPLETE)
    }

    fn new(state: u32) -> Arc<Self> {
        let event = Arc::new(Self { state: AtomicU32::new(state), error: Mutex::new(None) });
        #[cfg(loom)]
        event.state.store(state, Ordering::Relaxed);
        event
    }

    /// The error of an operation that ran and failed.
    pub(super) fn failure(&self) -> Option<Error> {
        *self.error.lock()
    }

    pub(super) fn is_pending(&self) -> bool {
        self.state.load(Ordering::Acquire) == PENDING
    }

    pub(super) fn is_complete(&self) -> bool {
        self.state.load(Ordering::Acquire) == COMPLETE
    }

    pub(super) fn finish(&self, outcome: Result<()>) {
        match outcome {
            Ok(()) => self.state.store(COMPLETE, Ordering::Release),
            Err(error) => {
                *self.error.lock() = Some(error);
                self.state.store(FAILED, Ordering::Release);
            }
        }
    }
}

/// The completion of one queued operation. The queued operation holds only the state: an event that
/// the driver holds must not hold the driver, or work that never runs would keep both.
#[derive(Clone)]
pub struct MockEvent {
    pub(super) state: Arc<EventState>,
    pub(super) engine: Arc<Engine>,
}

impl fmt::Debug for MockEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockEvent").field("state", &self.state.state.load(Ordering::Relaxed)).finish()
    }
}

impl EventOps for MockEvent {
    fn status(&self) -> Result<EventStatus> {
        let _inside = crate::process::ask()?;
        match self.state.state.load(Ordering::Acquire) {
            COMPLETE => Ok(EventStatus::Complete),
            FAILED => Err(self.state.error.lock().unwrap_or(ErrorKind::DeviceLost.into())),
            _ if self.engine.is_lost() => Err(ErrorKind::DeviceLost.into()),
            _ => Ok(EventStatus::Pending),
        }
    }

    fn wait(&self, limit: Duration) -> Result<()> {
        // Host tasks run in here, and may end the process.
        let _inside = crate::process::ask()?;
        let start = Instant::now();
        while self.status()? == EventStatus::Pending {
            let moved = self.engine.step_for_a_wait();
            if !moved {
                if start.elapsed() >= limit {
                    return Err(Error::timeout(limit));
                }
                crate::sync::pause();
            }
        }
        Ok(())
    }
}
