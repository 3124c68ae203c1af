//! The one place that names atomics and locks, so that a target without compare-and-swap, or a model checker, can be
//! served by changing this file alone.

pub(crate) use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

/// A spin lock: critical sections of this crate are a few instructions long and never call user code or a driver.
pub(crate) type Mutex<T> = spin::Mutex<T>;

/// Takes the elements that `leave` out of a list, in their order: to be dropped once the list's lock is released.
#[cfg(feature = "alloc")]
pub(crate) fn take_out<T>(list: &mut alloc::vec::Vec<T>, leave: impl Fn(&T) -> bool) -> alloc::vec::Vec<T> {
    let (gone, kept) = core::mem::take(list).into_iter().partition(leave);
    *list = kept;
    gone
}

/// A process-wide counter of ids; 0 is never given, and none twice: 64 bits on every target.
#[cfg(target_has_atomic = "64")]
pub(crate) fn next_id() -> u64 {
    static NEXT: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// As above, where no atomic is that wide.
#[cfg(not(target_has_atomic = "64"))]
pub(crate) fn next_id() -> u64 {
    static NEXT: spin::Mutex<u64> = spin::Mutex::new(0);
    let mut last = NEXT.lock();
    *last += 1;
    *last
}
