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

/// A process-wide counter of ids; 0 is never given.
pub(crate) fn next_id() -> u64 {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed) as u64
}
