//! The atomics and locks of all modelled code, so that the models in `tests/loom.rs` check the
//! shipped code.

#[cfg(all(not(loom), target_has_atomic = "ptr"))]
pub(crate) use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, fence};
/// Atomics of a target without compare-and-swap.
#[cfg(all(not(loom), not(target_has_atomic = "ptr")))]
pub(crate) use portable_atomic::{AtomicPtr, AtomicUsize, Ordering, fence};

#[cfg(not(loom))]
pub(crate) use spin::Mutex;

/// Counted owners and the atomics of statics, which outlive every model.
pub(crate) mod lasting {
    #[cfg(target_has_atomic = "ptr")]
    pub(crate) use alloc::sync::{Arc, Weak};
    #[cfg(target_has_atomic = "ptr")]
    pub(crate) use core::sync::atomic::{AtomicU32, AtomicUsize};
    #[cfg(not(target_has_atomic = "ptr"))]
    pub(crate) use portable_atomic::{AtomicU32, AtomicUsize};
    #[cfg(not(target_has_atomic = "ptr"))]
    pub(crate) use portable_atomic_util::{Arc, Weak};
}

/// Loom's lock with the interface of this crate's.
#[cfg(loom)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

#[cfg(loom)]
impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
