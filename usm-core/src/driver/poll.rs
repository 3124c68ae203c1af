//! The shared wait of backends whose driver has no wait with a limit.

use core::time::Duration;
use std::thread;
use std::time::Instant;

use crate::backend::EventStatus;
use crate::error::{Error, Result};

/// Number of polls before a wait starts to sleep: about the time of a small kernel.
const SPINS: u32 = 64;
const FIRST_SLEEP: Duration = Duration::from_micros(10);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// Polls `status` until it is `Complete`, at most `limit`: first yields between polls, then sleeps
/// for growing times.
pub fn until_complete(limit: Duration, status: impl Fn() -> Result<EventStatus>) -> Result<()> {
    if status()? == EventStatus::Complete {
        return Ok(());
    }
    let start = Instant::now();
    let mut sleep = FIRST_SLEEP;
    let mut round = 0;
    while status()? == EventStatus::Pending {
        let elapsed = start.elapsed();
        if elapsed >= limit {
            return Err(Error::timeout(limit));
        }
        if round < SPINS {
            round += 1;
            thread::yield_now();
        } else {
            thread::sleep(sleep.min(limit - elapsed));
            sleep = (sleep * 2).min(LONGEST_SLEEP);
        }
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::cell::Cell;

    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_wait_ends_with_the_work_its_failure_or_the_limit() {
        let left = Cell::new(SPINS + 8);
        let status = || {
            let now = left.get();
            left.set(now.saturating_sub(1));
            Ok(if now == 0 { EventStatus::Complete } else { EventStatus::Pending })
        };
        assert_eq!(until_complete(Duration::MAX, status), Ok(()));
        let none = Duration::ZERO;
        assert_eq!(until_complete(none, || Ok(EventStatus::Complete)), Ok(()));
        assert_eq!(until_complete(none, || Ok(EventStatus::Pending)), Err(Error::timeout(none)));
        let lost = || Err(Error::from(ErrorKind::DeviceLost));
        assert_eq!(until_complete(Duration::MAX, lost), lost().map(drop::<EventStatus>));
    }
}
