//! The lock of a block's turn.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use usm_core::{ErrorKind, Result};

use crate::fork;

/// A lock that a forked child does not wait for if a thread of its parent holds it. Forks wait
/// until no lock of this kind is held, but not for ever: see [`fork`].
///
/// Take it between [`enter`](fork::enter) and the drop of its value.
#[derive(Debug)]
pub(crate) struct TurnLock {
    lock: Mutex<()>,
    /// `2 * forks` once the process after so many forks found the lock free; one more while a
    /// thread of that process checks.
    fork_mark: AtomicUsize,
    /// The launches of one process that are under way, and may release the lock in between: their
    /// number in the lower half, the number of forks up to that process in the upper half.
    launches: AtomicU64,
}

impl TurnLock {
    pub(crate) fn new() -> Self {
        let fork_mark = AtomicUsize::new(2 * fork::count());
        Self { lock: Mutex::new(()), fork_mark, launches: AtomicU64::new(0) }
    }

    /// Begins a launch that may release the lock in between. A child that is forked meanwhile is
    /// refused the memory, which the launch has written in part.
    pub(crate) fn begin_launch(&self) {
        let process = (fork::count() as u64) << 32;
        let one_more = |launches: u64| match launches >> 32 == process >> 32 {
            true => Some(launches + 1),
            false => Some(process + 1),
        };
        let _ = self.launches.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_more);
    }

    pub(crate) fn end_launch(&self) {
        let process = fork::count() as u64;
        let one_less = |launches: u64| (launches >> 32 == process).then(|| launches - 1);
        let _ = self.launches.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_less);
    }

    /// Whether a launch of another process, which this one was forked from, was under way.
    fn is_in_launch_of_parent(&self) -> bool {
        let launches = self.launches.load(Ordering::Acquire);
        launches as u32 != 0 && launches >> 32 != fork::count() as u64
    }

    /// # Errors
    /// [`ErrorKind::Forked`] if a thread held the lock that this process does not have, or used the
    /// memory in a launch.
    #[inline]
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, ()>> {
        if fork::count() != 0 && self.is_in_launch_of_parent() {
            return Err(ErrorKind::Forked.into());
        }
        if fork::lost_threads() {
            self.check_held_at_fork()?;
        }
        Ok(self.lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The lock if that takes no wait; `None` also where [`lock`](Self::lock) would fail.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, ()>> {
        if fork::lost_threads() || (fork::count() != 0 && self.is_in_launch_of_parent()) {
            return None;
        }
        match self.lock.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Finds out whether the lock was held at the fork. The first thread of this process to take
    /// the lock looks; until then no other one of it can hold the lock.
    #[cold]
    fn check_held_at_fork(&self) -> Result<()> {
        let free = 2 * fork::count();
        loop {
            let fork_mark = self.fork_mark.load(Ordering::Acquire);
            if fork_mark == free {
                return Ok(());
            }
            let looks = free + 1;
            let order = (Ordering::Acquire, Ordering::Relaxed);
            if fork_mark == looks
                || self.fork_mark.compare_exchange(fork_mark, looks, order.0, order.1).is_err()
            {
                std::thread::yield_now();
                continue;
            }
            let is_held = matches!(self.lock.try_lock(), Err(TryLockError::WouldBlock));
            self.fork_mark.store(if is_held { fork_mark } else { free }, Ordering::Release);
            return if is_held { Err(ErrorKind::Forked.into()) } else { Ok(()) };
        }
    }
}
