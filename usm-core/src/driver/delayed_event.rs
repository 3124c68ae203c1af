//! Delayed release of dropped queues.
//!
//! A CPU runtime may drop its last reference to an out-of-order queue on the worker thread that
//! has just completed the queue's last command. The queue's destructor then waits for that command,
//! so the worker, and with it the device, hangs for ever. So the last reference is kept in a list
//! [after](super::After) an event that reports complete only when the worker must have finished the
//! command.

use core::time::Duration;
use std::sync::OnceLock;
use std::time::Instant;

use super::poll;
use crate::backend::{EventOps, EventStatus};
use crate::error::Result;

/// Time from the completion of a queue's last event to its release. The runtime needs microseconds,
/// or a few turns of the scheduler on a machine with many more runnable threads than processors.
const PATIENCE: Duration = Duration::from_secs(4);

/// The last event of a queue. Reports complete a fixed time after a query first found it complete.
#[derive(Debug)]
pub struct DelayedEvent<E> {
    event: E,
    complete_since: OnceLock<Instant>,
}

impl<E> DelayedEvent<E> {
    /// Wraps the last event of a queue.
    #[must_use]
    pub fn new(event: E) -> Self {
        Self { event, complete_since: OnceLock::new() }
    }
}

impl<E: EventOps> EventOps for DelayedEvent<E> {
    fn status(&self) -> Result<EventStatus> {
        if self.complete_since.get().is_none() && self.event.status()? == EventStatus::Pending {
            return Ok(EventStatus::Pending);
        }
        let is_over = self.complete_since.get_or_init(Instant::now).elapsed() > PATIENCE;
        Ok(if is_over { EventStatus::Complete } else { EventStatus::Pending })
    }

    fn wait(&self, limit: Duration) -> Result<()> {
        poll::until_complete(limit, || self.status())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::cell::Cell;

    use super::*;

    struct Switch(Cell<EventStatus>);

    impl EventOps for Switch {
        fn status(&self) -> Result<EventStatus> {
            Ok(self.0.get())
        }

        fn wait(&self, _: Duration) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_delay_begins_when_the_event_is_first_found_complete() {
        let rested = DelayedEvent::new(Switch(Cell::new(EventStatus::Pending)));
        assert_eq!(rested.status(), Ok(EventStatus::Pending));
        assert_eq!(rested.complete_since.get(), None);
        rested.event.0.set(EventStatus::Complete);
        assert_eq!(rested.status(), Ok(EventStatus::Pending));
        let since = rested.complete_since.get().copied();
        assert!(since.is_some() && rested.wait(Duration::ZERO).is_err());
        assert_eq!(rested.complete_since.get().copied(), since);
    }

    #[test]
    fn a_rested_event_is_complete() {
        let past = Instant::now().checked_sub(2 * PATIENCE).expect("the system runs longer");
        let event = Switch(Cell::new(EventStatus::Complete));
        let rested = DelayedEvent { event, complete_since: OnceLock::from(past) };
        assert_eq!(rested.status(), Ok(EventStatus::Complete));
        assert_eq!(rested.wait(Duration::ZERO), Ok(()));
    }
}
