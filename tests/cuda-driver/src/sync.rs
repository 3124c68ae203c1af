//! The one door to the lock and to the conditions, so that valgrind can have some that it understands.

#[cfg(usm_valgrind)]
#[allow(dead_code, unreachable_pub, reason = "the file that usm-core has for that")]
#[path = "../../../usm-core/src/sync/pthread.rs"]
mod pthread;

#[cfg(usm_valgrind)]
pub(crate) use pthread::{Condvar, Mutex, MutexGuard};
#[cfg(not(usm_valgrind))]
pub(crate) use {
    sleeping::{Condvar, Mutex},
    std::sync::MutexGuard,
};

/// The standard library's, without its poison.
#[cfg(not(usm_valgrind))]
mod sleeping {
    use std::sync::{self, MutexGuard, PoisonError};

    pub(crate) struct Mutex<T>(sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    pub(crate) struct Condvar(sync::Condvar);

    impl Condvar {
        pub(crate) const fn new() -> Self {
            Self(sync::Condvar::new())
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }

        pub(crate) fn wait<'m, T>(&self, guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
            self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
        }
    }
}
