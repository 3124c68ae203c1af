//! The only source of the lock, so that the models (`tests/loom.rs`) and valgrind can substitute
//! theirs.

#[cfg(not(any(loom, usm_valgrind)))]
pub(crate) use spin::mutex::SpinMutex as Mutex;
#[cfg(any(loom, usm_valgrind))]
pub(crate) use usm_core::substitute::Mutex;
