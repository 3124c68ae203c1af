//! What threads keep for themselves, and how another thread may take it: values that any thread can
//! list, access without an atomic instruction, and the barrier that makes both sound. For usm-nrt's
//! blocks and usm-pool's caches. No part of the interface.

#![allow(clippy::new_without_default, reason = "one constructor for each type, `const` where possible")]

mod barrier;
mod claims;
mod owner;
mod turn;

/// Loom's own: its models make these values anew in each run.
mod atomics {
    #[cfg(loom)]
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};

    #[cfg(not(loom))]
    pub(super) use crate::sync::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
}

pub use barrier::{in_all_threads, prepare};
pub use claims::{Claim, Claims};
pub use turn::{Turn, take_all};
