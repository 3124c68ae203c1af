//! The rule of every wait for a runtime: how long it stays awake, and how long it sleeps then.
//!
//! A wait ends when the work ends, at most 5 % and 5 microseconds late, and occupies no core beyond
//! a millisecond (`docs/adr/0070-waits-sleep-for-a-share.md`). First it asks again and again. After
//! a millisecond it sleeps between queries, for a share of the time that has passed, so a long wait
//! may be late by more. If a query comes back late, another thread had the processor: the machine
//! counts as busy for a while, and waits then do not stay awake at all.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use crate::backend::EventStatus;
use crate::error::{Error, Result};
use crate::sync::sleeping::Mutex;

/// How long a wait stays awake.
pub(super) const AWAKE: Duration = Duration::from_millis(1);
/// A sleep takes at most this part of the time that has passed: 4 %.
const SHARE: u32 = 25;
/// By how much a sleep is longer than it was asked for: Linux joins timers of 50 microseconds.
const SLACK: Duration = Duration::from_micros(50);
const SHORTEST_SLEEP: Duration = Duration::from_micros(1);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// If a query is this late, another thread had the processor, because a scheduler's turn is longer.
pub(super) const LATE: Duration = Duration::from_micros(500);
/// How long the machine counts as busy after a late query. Each further late query in a row doubles
/// the time, because detection costs some turns of the scheduler.
const FIRST_BUSY: Duration = Duration::from_millis(16);
const LONGEST_BUSY: Duration = Duration::from_millis(512);

/// The time until which the machine counts as busy, and the length of that period.
static BUSY: Mutex<Option<(Instant, Duration)>> = Mutex::new(None);
/// Whether the machine may count as busy. Most waits find `false` here and take no lock.
static MAY_BE_BUSY: AtomicBool = AtomicBool::new(false);

/// Number of pauses of the processor between two queries of work on another device.
const PAUSES: u32 = 20;

/// Polls `status` until it is `Complete`, at most `limit`: first awake, then with sleeps. For work
/// on a device that is not this processor.
pub fn until_complete(limit: Duration, status: impl Fn() -> Result<EventStatus>) -> Result<()> {
    if status()? == EventStatus::Complete {
        return Ok(());
    }
    let start = Instant::now();
    // A thread that yields on a busy machine comes back after turns of all others, 4 ms and more.
    let pause = || (0..PAUSES).for_each(|_| core::hint::spin_loop());
    if stay_awake(start, limit, &status, pause)? {
        return Ok(());
    }
    with_sleeps(start, limit, status)
}

/// The time to sleep before the next query of a wait that has taken `elapsed`.
pub(super) fn pause(elapsed: Duration) -> Duration {
    (elapsed / SHARE).saturating_sub(SLACK).clamp(SHORTEST_SLEEP, LONGEST_SLEEP)
}

/// Polls with sleeps until `limit` has passed since `start`.
pub(super) fn with_sleeps(
    start: Instant,
    limit: Duration,
    status: impl Fn() -> Result<EventStatus>,
) -> Result<()> {
    while status()? == EventStatus::Pending {
        let elapsed = start.elapsed();
        if elapsed >= limit {
            return Err(Error::timeout(limit));
        }
        thread::sleep(pause(elapsed).min(limit - elapsed));
    }
    Ok(())
}

/// Polls for a short time with `pause` between queries, or not at all on a busy machine. Returns
/// whether the work is complete.
pub(super) fn stay_awake(
    start: Instant,
    limit: Duration,
    status: impl Fn() -> Result<EventStatus>,
    pause: impl Fn(),
) -> Result<bool> {
    if may_be_busy() && BUSY.lock().is_some_and(|(until, _)| start < until) {
        return Ok(false);
    }
    let mut last_query = start;
    while last_query.duration_since(start) < AWAKE.min(limit) {
        pause();
        let complete = status()? == EventStatus::Complete;
        let now = Instant::now();
        let is_late = now.duration_since(last_query) > LATE;
        if complete || is_late {
            record_lateness(is_late.then_some(now));
            return Ok(complete);
        }
        last_query = now;
    }
    Ok(false)
}

pub(super) fn may_be_busy() -> bool {
    MAY_BE_BUSY.load(Ordering::Relaxed)
}

/// Records that the machine was busy at the time `time`, or was not busy if `None`.
fn record_lateness(time: Option<Instant>) {
    if time.is_none() && !may_be_busy() {
        return;
    }
    MAY_BE_BUSY.store(time.is_some(), Ordering::Relaxed);
    let mut busy = BUSY.lock();
    *busy = time.map(|now| {
        let hold = busy.map_or(FIRST_BUSY, |(_, hold)| (hold * 2).min(LONGEST_BUSY));
        (now + hold, hold)
    });
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::cell::Cell;

    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_wait_ends_with_the_work_its_failure_or_the_limit() {
        let start = Instant::now();
        // Long enough that the wait sleeps too.
        let status = || {
            let over = start.elapsed() > AWAKE * 4;
            Ok(if over { EventStatus::Complete } else { EventStatus::Pending })
        };
        assert_eq!(until_complete(Duration::MAX, status), Ok(()));
        let none = Duration::ZERO;
        assert_eq!(until_complete(none, || Ok(EventStatus::Complete)), Ok(()));
        assert_eq!(until_complete(none, || Ok(EventStatus::Pending)), Err(Error::timeout(none)));
        let short = AWAKE * 3;
        assert_eq!(until_complete(short, || Ok(EventStatus::Pending)), Err(Error::timeout(short)));
        let lost = || Err(Error::from(ErrorKind::DeviceLost));
        assert_eq!(until_complete(Duration::MAX, lost), lost().map(drop::<EventStatus>));
    }

    /// In the time of the wait itself: whenever the work ends, the next query comes soon after.
    #[test]
    fn no_sleep_makes_a_wait_late_by_more_than_a_twentieth_and_five_microseconds() {
        let passed = Cell::new(AWAKE);
        let mut sleeps = 0_u32;
        while passed.get() < Duration::from_secs(10) {
            let late = pause(passed.get()) + SLACK;
            assert!(late <= passed.get() / 20 + Duration::from_micros(5), "{late:?} at {passed:?}");
            passed.set(passed.get() + late);
            sleeps += 1;
        }
        // Each costs a few microseconds: no busy core.
        assert!(sleeps < 12_000, "{sleeps}");
    }
}
