//! The only source of locks, so that the models (`tests/loom.rs`) and valgrind can substitute
//! theirs.

#[cfg(not(any(loom, usm_valgrind)))]
pub(crate) use spin::mutex::SpinMutex as Mutex;
#[cfg(any(loom, usm_valgrind))]
pub(crate) use usm_core::substitute::Mutex;

/// Loom's own: its models make these values anew in each run.
#[cfg(feature = "std")]
pub(crate) mod atomics {
    #[cfg(not(loom))]
    pub(crate) use core::sync::atomic::{AtomicBool, fence};
    #[cfg(loom)]
    pub(crate) use loom::sync::atomic::{AtomicBool, fence};
}

/// Lets other threads run.
#[cfg(feature = "std")]
pub(crate) fn yield_now() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::thread::yield_now();
}

#[cfg(feature = "std")]
pub(crate) use usm_core::ends::in_arena;
/// Runs a few instructions on an arena. Without `std` no process forks.
#[cfg(not(feature = "std"))]
pub(crate) fn in_arena<R>(call: impl FnOnce() -> R) -> R {
    call()
}
