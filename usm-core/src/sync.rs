//! The only place that names atomics and locks. A target without compare-and-swap, or a model
//! checker, needs changes only in this file.

#[cfg(any(usm_valgrind, usm_asan))]
pub(crate) mod checker;
#[cfg(feature = "alloc")]
pub(crate) mod helgrind;
#[cfg(usm_valgrind)]
pub(crate) mod memcheck;
#[cfg(loom)]
pub(crate) mod model;
#[cfg(usm_valgrind)]
pub(crate) mod pthread;
/// Locks held over a call of a driver.
#[cfg(all(not(any(loom, usm_valgrind)), feature = "driver"))]
#[allow(dead_code, reason = "some parts are only for backends")]
pub(crate) mod sleeping;
#[cfg(usm_valgrind)]
mod valgrind;

#[cfg(all(not(loom), feature = "std"))]
pub use core::sync::atomic::AtomicBool;
#[cfg(all(not(loom), feature = "std"))]
pub(crate) use core::sync::atomic::AtomicPtr;
#[cfg(all(not(loom), target_has_atomic = "ptr"))]
pub use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
#[cfg(loom)]
pub(crate) use model as sleeping;
#[cfg(loom)]
pub use model::{AtomicBool, AtomicU32, AtomicUsize, Mutex, Ordering};
/// Atomics of a target without compare-and-swap.
#[cfg(all(not(loom), not(target_has_atomic = "ptr")))]
pub use portable_atomic::{AtomicU32, AtomicUsize, Ordering};
#[cfg(usm_valgrind)]
pub(crate) use pthread as sleeping;
#[cfg(usm_valgrind)]
pub use pthread::Mutex;

/// A spin lock: critical sections of this crate are a few instructions long and never call user
/// code or a driver.
#[cfg(not(any(loom, usm_valgrind)))]
pub type Mutex<T> = spin::mutex::SpinMutex<T>;

/// A pause of a few instructions in a loop that waits for another thread.
pub fn spin() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    core::hint::spin_loop();
}

/// A pause in a loop that waits for a thread that may be inside a driver's call.
#[cfg(feature = "driver")]
pub fn yield_thread() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::thread::yield_now();
}

/// A pause in a loop that waits for a device, possibly long.
#[cfg(feature = "mock")]
pub(crate) fn pause() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::thread::sleep(core::time::Duration::from_micros(200));
}

/// Removes the elements for which `leave` holds from a list, in order. Drop the result after
/// releasing the list's lock.
#[cfg(feature = "alloc")]
pub fn take_out<T>(list: &mut alloc::vec::Vec<T>, leave: impl Fn(&T) -> bool) -> alloc::vec::Vec<T> {
    let (removed_entries, rest) = core::mem::take(list).into_iter().partition(leave);
    *list = rest;
    removed_entries
}

/// A counter that threads share, 64 bits on every target.
#[cfg(target_has_atomic = "64")]
pub(crate) struct Counter(core::sync::atomic::AtomicU64);

#[cfg(target_has_atomic = "64")]
impl Counter {
    pub(crate) const fn new(first: u64) -> Self {
        Self(core::sync::atomic::AtomicU64::new(first))
    }

    /// The next number. Whoever gets a later one sees what came before this call.
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::AcqRel)
    }
}

/// As above, for targets without a 64-bit atomic.
#[cfg(not(target_has_atomic = "64"))]
pub(crate) struct Counter(spin::Mutex<u64>);

#[cfg(not(target_has_atomic = "64"))]
impl Counter {
    pub(crate) const fn new(first: u64) -> Self {
        Self(spin::Mutex::new(first))
    }

    pub(crate) fn next(&self) -> u64 {
        let mut next = self.0.lock();
        *next += 1;
        *next - 1
    }
}

/// A process-wide counter of ids, 64 bits on every target. Never returns 0 or the same id twice.
pub fn next_id() -> u64 {
    // Outlives every loom model, and no model depends on the ids.
    static NEXT: Counter = Counter::new(1);
    NEXT.next()
}
