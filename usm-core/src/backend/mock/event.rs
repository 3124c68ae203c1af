//! Events of the simulated driver.

use core::fmt;
use core::time::Duration;
use std::time::Instant;

use super::engine::MockEvent;
use crate::backend::{EventOps, EventStatus};
use crate::error::{Error, ErrorKind, Result};

impl fmt::Debug for MockEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockEvent").field("outcome", &self.state.outcome()).finish()
    }
}

impl EventOps for MockEvent {
    fn status(&self) -> Result<EventStatus> {
        let _inside = crate::process::ask()?;
        match self.state.outcome() {
            Some(outcome) => outcome.map(|()| EventStatus::Complete),
            None if self.engine.is_lost() => Err(ErrorKind::DeviceLost.into()),
            None => Ok(EventStatus::Pending),
        }
    }

    fn wait(&self, limit: Duration) -> Result<()> {
        // Host tasks run here and may end the process.
        let _inside = crate::process::ask()?;
        let start = Instant::now();
        while self.status()? == EventStatus::Pending {
            let has_advanced = self.engine.step_in_wait();
            if !has_advanced {
                if start.elapsed() >= limit {
                    return Err(Error::timeout(limit));
                }
                crate::sync::pause();
            }
        }
        Ok(())
    }
}
