//! The lock of a block's turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use usm_core::{ErrorKind, Result};

use crate::fork;

/// A lock that a forked child does not wait for if a thread of its parent holds it. Forks wait
/// until no lock of this kind is held, but not for ever: see [`fork`].
///
/// Take it between [`fork::enter`] and the drop of its value.
#[derive(Debug)]
pub(crate) struct TurnLock {
    lock: Mutex<()>,
    /// Twice the number of forks up to the process that saw the lock free; one more while a thread
    /// of that process looks.
    seen: AtomicUsize,
}

impl TurnLock {
    pub(crate) fn new() -> Self {
        Self { lock: Mutex::new(()), seen: AtomicUsize::new(2 * fork::count()) }
    }

    /// # Errors
    /// [`ErrorKind::Forked`] if a thread held the lock that this process does not have.
    #[inline]
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, ()>> {
        if fork::lost_threads() {
            self.check_held_at_fork()?;
        }
        Ok(self.lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Finds out whether the lock was held at the fork. The first thread of this process to take
    /// the lock looks; until then no other one of it can hold the lock.
    #[cold]
    fn check_held_at_fork(&self) -> Result<()> {
        let free = 2 * fork::count();
        loop {
            let seen = self.seen.load(Ordering::Acquire);
            if seen == free {
                return Ok(());
            }
            let looks = free + 1;
            let order = (Ordering::Acquire, Ordering::Relaxed);
            if seen == looks || self.seen.compare_exchange(seen, looks, order.0, order.1).is_err() {
                std::thread::yield_now();
                continue;
            }
            let held = matches!(self.lock.try_lock(), Err(TryLockError::WouldBlock));
            self.seen.store(if held { seen } else { free }, Ordering::Release);
            return if held { Err(ErrorKind::Forked.into()) } else { Ok(()) };
        }
    }
}
