//! Exclusive access to a thread's data that another thread may, rarely, have to take.
//!
//! Three designs were compared. A lock costs the owner an atomic instruction for each use: 5 ns
//! here, and a block has two uses. Requests that threads answer by themselves fail for a thread
//! that sleeps for ever. So the owner announces *busy* with a plain store and checks whether the
//! data is *closed*; the closing thread pays for both sides. Its barrier in all threads of the
//! process (`barrier.rs`) ensures that the owner sees the data closed, or is seen busy.

#[cfg(not(loom))]
use core::sync::atomic::compiler_fence;

#[cfg(loom)]
use super::atomics::fence;
use super::atomics::{AtomicBool, Ordering};
use super::claims::Claims;

/// The access to a value that one thread, its owner, uses all the time.
#[derive(Debug)]
pub struct Turn {
    busy: AtomicBool,
    is_closed: AtomicBool,
}

impl Turn {
    /// Open and idle.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { busy: AtomicBool::new(false), is_closed: AtomicBool::new(false) }
    }

    /// Open and idle.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { busy: AtomicBool::new(false), is_closed: AtomicBool::new(false) }
    }

    /// The owner begins an access. False if the value is closed; the owner must then leave it
    /// alone.
    #[inline(always)]
    pub fn enter(&self) -> bool {
        self.busy.store(true, Ordering::Relaxed);
        compiler_barrier();
        if self.is_closed.load(Ordering::Acquire) {
            self.leave();
            return false;
        }
        true
    }

    /// The owner ends an access.
    #[inline(always)]
    pub fn leave(&self) {
        self.busy.store(false, Ordering::Release);
    }

    /// Another thread announces that it will take the value. Only one thread may do so at a time.
    /// It must not touch the value before a barrier in all threads and a true
    /// [`is_idle`](Self::is_idle).
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Whether the owner has no access in progress.
    pub fn is_idle(&self) -> bool {
        !self.busy.load(Ordering::Acquire)
    }

    /// Lets the owner access the value again.
    pub fn open(&self) {
        self.is_closed.store(false, Ordering::Release);
    }
}

/// Takes from each claim that is `filter` while it is closed, unless its owner has an access in
/// progress; for one that a fork left behind it does not wait. Only one thread may call it at a
/// time. `barrier` makes every other thread pass a full barrier; if it fails nothing is taken.
/// Claims made meanwhile are skipped. Returns whether it took from all.
pub fn take_all<T: Sync + 'static>(
    claims: &Claims<T>,
    filter: impl Fn(&T) -> bool,
    turn: impl Fn(&T) -> &Turn,
    barrier: impl FnOnce() -> bool,
    mut take: impl FnMut(&T),
) -> bool {
    /// Number of checks of a busy owner; an access takes some instructions.
    const LOOKS: usize = if cfg!(loom) { 0 } else { 1000 };
    // One snapshot for all steps: a later claim was not closed.
    let all = claims.iter();
    let mut closes = false;
    for claim in all.clone().filter(|claim| filter(claim)) {
        turn(claim).close();
        closes = true;
    }
    if !closes {
        return true;
    }
    let is_ordered = barrier();
    let mut took_all = is_ordered;
    // Those that this call closed, whatever was done with the claims meanwhile.
    for claim in all.filter(|claim| turn(claim).is_closed()) {
        let mut looks = 0;
        let is_worth_waiting = is_ordered && !claim.is_left_behind();
        while is_worth_waiting && !turn(claim).is_idle() && looks < LOOKS {
            looks += 1;
            std::thread::yield_now();
        }
        if is_ordered && turn(claim).is_idle() {
            take(claim);
        } else {
            took_all = false;
        }
        turn(claim).open();
    }
    took_all
}

/// The owner's half of the barrier. The other half orders the processor; this one orders the
/// compiler.
#[inline(always)]
fn compiler_barrier() {
    #[cfg(not(loom))]
    compiler_fence(Ordering::SeqCst);
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}
