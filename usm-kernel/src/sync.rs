//! The one door to the lock, so that the models and valgrind can have one of theirs. Held over calls of a driver: it sleeps. Without the
//! standard library's poison: what it guards is whole between any two statements.

#[cfg(any(loom, usm_valgrind))]
pub(crate) use usm_core::stand_in::Mutex;

#[cfg(not(any(loom, usm_valgrind)))]
pub(crate) use sleeping::Mutex;

#[cfg(not(any(loom, usm_valgrind)))]
mod sleeping {
    use std::sync::{self, MutexGuard, PoisonError};

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        #[cfg(feature = "level-zero")]
        pub(crate) fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
        }
    }
}
