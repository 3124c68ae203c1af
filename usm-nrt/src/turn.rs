//! Whose turn it is on things of a thread that another one may, rarely, have to take away.
//!
//! Three designs were weighed. A lock costs the thread a locked instruction for each use (5 ns
//! here, and there are two a block). Only asking threads to give their things back, and waiting for
//! them to look, leaves those of a thread that sleeps for ever. Here the owner says *busy* with a
//! plain store and looks whether it was *closed* out; who closes pays for both sides: a barrier in
//! all threads of the process (`local/barrier.rs`) makes sure that the owner either sees that it is
//! closed, or is seen to be busy.

#[cfg(not(loom))]
use core::sync::atomic::compiler_fence;

use crate::claims::Claims;
#[cfg(loom)]
use crate::sync::fence;
use crate::sync::{AtomicBool, Ordering};

/// A turn on something that one thread, its owner, uses all the time.
#[derive(Debug)]
pub struct Turn {
    busy: AtomicBool,
    closed: AtomicBool,
}

impl Turn {
    /// Open, and nobody is at it.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self { busy: AtomicBool::new(false), closed: AtomicBool::new(false) }
    }

    /// Open, and nobody is at it.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { busy: AtomicBool::new(false), closed: AtomicBool::new(false) }
    }

    /// The owner begins; false when it is closed: then it must leave the thing alone.
    #[inline(always)]
    pub fn enter(&self) -> bool {
        self.busy.store(true, Ordering::Relaxed);
        light();
        if self.closed.load(Ordering::Acquire) {
            self.leave();
            return false;
        }
        true
    }

    /// The owner is done.
    #[inline(always)]
    pub fn leave(&self) {
        self.busy.store(false, Ordering::Release);
    }

    /// Somebody else is about to take it. One at a time, and nothing may be touched before a
    /// barrier in all threads and [`is_idle`](Self::is_idle) after it.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Whether the owner is not at it.
    pub fn is_idle(&self) -> bool {
        !self.busy.load(Ordering::Acquire)
    }

    /// The owner may go on.
    pub fn open(&self) {
        self.closed.store(false, Ordering::Release);
    }
}

/// Takes from each what its owner is not at just then, while that one is closed out. One caller at
/// a time. `barrier`: every other thread has passed a full barrier since the call; without one
/// nothing is taken. What is claimed anew meanwhile is left alone.
pub fn take_all<T: Sync + 'static>(
    claims: &Claims<T>,
    turn: impl Fn(&T) -> &Turn,
    barrier: impl FnOnce() -> bool,
    mut take: impl FnMut(&T),
) {
    /// Looks at a thread that is at its thing, which takes it some instructions.
    const LOOKS: usize = if cfg!(loom) { 0 } else { 1000 };
    // The same ones each time: one that came later was not closed.
    let all = claims.iter();
    all.clone().for_each(|claim| turn(claim).close());
    let ordered = barrier();
    for claim in all {
        let mut looks = 0;
        while ordered && !turn(claim).is_idle() && looks < LOOKS {
            looks += 1;
            std::thread::yield_now();
        }
        if ordered && turn(claim).is_idle() {
            take(claim);
        }
        turn(claim).open();
    }
}

/// The owner's half of the barrier: the processor is kept in order by the other half, the compiler
/// here.
#[inline(always)]
fn light() {
    #[cfg(not(loom))]
    compiler_fence(Ordering::SeqCst);
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}
