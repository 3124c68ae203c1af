//! The one door to the lock, so that the models (`tests/loom.rs`) and valgrind can have one of
//! theirs.

#[cfg(not(any(loom, usm_valgrind)))]
pub(crate) use spin::mutex::SpinMutex as Mutex;
#[cfg(any(loom, usm_valgrind))]
pub(crate) use usm_core::stand_in::Mutex;
