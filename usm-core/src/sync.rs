//! The one place that names atomics and locks, so that a target without compare-and-swap, or a
//! model checker, can be served by changing this file alone.

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
#[allow(dead_code, reason = "a backend alone uses a part")]
pub(crate) mod sleeping;
#[cfg(usm_valgrind)]
mod valgrind;

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
#[cfg(loom)]
pub(crate) use model as sleeping;
#[cfg(loom)]
pub use model::{AtomicBool, AtomicU32, AtomicUsize, Mutex, Ordering};
#[cfg(usm_valgrind)]
pub(crate) use pthread as sleeping;
#[cfg(usm_valgrind)]
pub use pthread::Mutex;

/// A spin lock: critical sections of this crate are a few instructions long and never call user
/// code or a driver.
#[cfg(not(any(loom, usm_valgrind)))]
pub type Mutex<T> = spin::mutex::SpinMutex<T>;

/// A pause in a loop that waits for another thread, a few instructions long.
pub fn spin() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    core::hint::spin_loop();
}

/// A pause in a loop that waits for another thread, which may be in a driver's call.
#[cfg(feature = "driver")]
pub fn give_way() {
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

/// Takes the elements that `leave` out of a list, in their order: to be dropped once the list's
/// lock is released.
#[cfg(feature = "alloc")]
pub fn take_out<T>(list: &mut alloc::vec::Vec<T>, leave: impl Fn(&T) -> bool) -> alloc::vec::Vec<T> {
    let (gone, kept) = core::mem::take(list).into_iter().partition(leave);
    *list = kept;
    gone
}

/// A process-wide counter of ids; 0 is never given, and none twice: 64 bits on every target.
#[cfg(target_has_atomic = "64")]
pub fn next_id() -> u64 {
    // Outlives every model of loom's, and no model depends on which ids there are.
    static NEXT: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// As above, on targets without such a wide atomic.
#[cfg(not(target_has_atomic = "64"))]
pub fn next_id() -> u64 {
    static NEXT: spin::Mutex<u64> = spin::Mutex::new(0);
    let mut last = NEXT.lock();
    *last += 1;
    *last
}
