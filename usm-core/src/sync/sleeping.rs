//! Locks that sleep, for what is held over a call of a driver, and the conditions that go with them: the standard library's, without its
//! poison. What they guard is whole between any two statements.

use std::sync::{self, PoisonError};

pub(crate) use std::sync::MutexGuard;

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(any(feature = "opencl", feature = "level-zero", feature = "dpctl"))]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(any(feature = "opencl", feature = "dpctl"))]
#[derive(Debug, Default)]
pub(crate) struct Condvar(sync::Condvar);

#[cfg(any(feature = "opencl", feature = "dpctl"))]
impl Condvar {
    pub(crate) const fn new() -> Self {
        Self(sync::Condvar::new())
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn wait<'m, T>(&self, guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Comes back when notified, after `limit`, or now and then for no reason.
    pub(crate) fn wait_timeout<'m, T>(
        &self,
        guard: MutexGuard<'m, T>,
        limit: core::time::Duration,
    ) -> MutexGuard<'m, T> {
        self.0.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner).0
    }
}
