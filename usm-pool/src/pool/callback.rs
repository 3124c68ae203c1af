//! The program's function that frees memory for a pool that has none.

use alloc::sync::Arc;

/// Frees memory for a request of so many bytes; whether to try again.
pub(super) type Callback = Arc<dyn Fn(u64) -> bool + Send + Sync>;

/// Calls the function, without a lock. False inside of another such call of this thread: a function
/// that allocates would call itself without end.
pub(super) fn call(free: &Callback, bytes: u64) -> bool {
    match Inside::enter() {
        Some(_inside) => free(bytes),
        None => false,
    }
}

/// While this lives, the thread is inside a call; also until a panic leaves it.
struct Inside;

#[cfg(feature = "std")]
mod flag {
    use core::cell::Cell;

    std::thread_local! {
        static INSIDE: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn replace(value: bool) -> bool {
        INSIDE.replace(value)
    }
}

/// Without `std` threads are unknown: one call at a time, as far as two threads see each other.
#[cfg(not(feature = "std"))]
mod flag {
    use core::sync::atomic::{AtomicBool, Ordering};

    static INSIDE: AtomicBool = AtomicBool::new(false);

    // Not by an exchange, which some targets lack.
    pub(super) fn replace(value: bool) -> bool {
        let before = INSIDE.load(Ordering::Relaxed);
        INSIDE.store(value, Ordering::Relaxed);
        before
    }
}

impl Inside {
    fn enter() -> Option<Self> {
        (!flag::replace(true)).then_some(Self)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        flag::replace(false);
    }
}
