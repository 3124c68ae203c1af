//! Queues whose handles are gone, released a while after their work has finished.
//!
//! Intel's CPU runtime drops its last reference to an out-of-order queue on the worker thread that
//! has just completed the queue's last command, and the queue's destructor then waits for that very
//! command: the worker never comes back, and with it the device. So the last reference waits,
//! [after](crate::After) an event that counts as complete only when the worker must be done with
//! the command.

use core::time::Duration;
use std::sync::OnceLock;
use std::time::Instant;

use super::poll;
use crate::backend::{EventOps, EventStatus};
use crate::error::Result;

/// From the completion of a queue's last event to its release. The runtime needs microseconds, on a
/// machine with many more runnable threads than processors a few turns of the scheduler.
const PATIENCE: Duration = Duration::from_secs(4);

/// The last event of a queue, complete a while after it was first seen to be.
#[derive(Debug)]
pub struct Rested<E> {
    event: E,
    complete_since: OnceLock<Instant>,
}

impl<E> Rested<E> {
    /// Of the last event of a queue.
    #[must_use]
    pub fn new(event: E) -> Self {
        Self { event, complete_since: OnceLock::new() }
    }
}

impl<E: EventOps> EventOps for Rested<E> {
    fn status(&self) -> Result<EventStatus> {
        if self.complete_since.get().is_none() && self.event.status()? == EventStatus::Pending {
            return Ok(EventStatus::Pending);
        }
        let rested = self.complete_since.get_or_init(Instant::now).elapsed() > PATIENCE;
        Ok(if rested { EventStatus::Complete } else { EventStatus::Pending })
    }

    fn wait(&self, limit: Duration) -> Result<()> {
        poll::until_complete(limit, || self.status())
    }
}
