//! A limit for several waits together.

use core::time::Duration;
#[cfg(feature = "std")]
use std::time::Instant;

use crate::error::{Error, ErrorKind, Result};

/// The remaining time of a limit. Without `std` there is no clock: each wait then has the whole
/// limit, until the first one that times out.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    limit: Duration,
    #[cfg(feature = "std")]
    start: Instant,
    timed_out: bool,
}

impl Deadline {
    /// Starts the time.
    pub fn after(limit: Duration) -> Self {
        Self {
            limit,
            #[cfg(feature = "std")]
            start: Instant::now(),
            timed_out: false,
        }
    }

    /// The whole limit.
    #[cfg(feature = "alloc")]
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Whether a wait timed out. Further waits are then pointless.
    #[cfg(feature = "alloc")]
    pub fn has_passed(&self) -> bool {
        self.timed_out
    }

    /// The limit of the next wait.
    pub fn remaining(&self) -> Duration {
        if self.timed_out {
            return Duration::ZERO;
        }
        #[cfg(feature = "std")]
        return self.limit.saturating_sub(self.start.elapsed());
        #[cfg(not(feature = "std"))]
        self.limit
    }

    /// Calls `wait` with the remaining time. A timeout error names the whole limit.
    pub fn wait(&mut self, wait: impl FnOnce(Duration) -> Result<()>) -> Result<()> {
        wait(self.remaining()).map_err(|error| match error.kind {
            ErrorKind::Timeout { .. } => {
                self.timed_out = true;
                Error { kind: Error::timeout(self.limit).kind, ..error }
            }
            _ => error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_wait_that_ran_out_nothing_is_left() {
        let limit = Duration::from_secs(7);
        let mut deadline = Deadline::after(limit);
        let mut first = Duration::ZERO;
        let outcome = deadline.wait(|left| {
            first = left;
            Err(Error::timeout(Duration::from_secs(1)))
        });
        assert!(!first.is_zero() && first <= limit);
        assert_eq!(outcome, Err(Error::timeout(limit)));
        assert!(deadline.timed_out && deadline.remaining().is_zero());
    }

    #[test]
    fn a_failure_ends_no_deadline() {
        let mut deadline = Deadline::after(Duration::from_secs(7));
        assert_eq!(deadline.wait(|_| Err(ErrorKind::DeviceLost.into())), Err(ErrorKind::DeviceLost.into()));
        assert!(!deadline.timed_out && !deadline.remaining().is_zero());
    }
}
