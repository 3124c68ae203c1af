//! Parts that every runtime crate needs and that belong to no single runtime.
//!
//! This module comes with the feature `driver` and is **exempt from semver**: any version of
//! usm-core may change it. The crates of this workspace are always released together with the
//! usm-core that they need. A backend of your own needs none of it: the traits of
//! [`backend`](crate::backend) are enough, as `examples/backend.rs` shows.
//!
//! | what | for |
//! |---|---|
//! | [`process`] | marks around calls of a runtime: no call begins once the process ends or after a fork |
//! | [`library`], [`table!`] | a vendor's library: opened by its names, its functions found by theirs |
//! | [`sync`] | locks and atomics, with substitutes under loom and valgrind |
//! | [`ledgers`], [`Ledger`] | the memory in use on a device, counted for all its contexts |
//! | [`handle`] | reference-counted native objects, released with their last owner |
//! | [`slots`] | native objects that are reused |
//! | [`PlacedBlocks`](placed_blocks::PlacedBlocks) | alignments that a driver does not honour |
//! | [`QueueList`](queue_list::QueueList) | the queues of a context, and the last events of dropped ones |
//! | [`After`], [`give_up`] | values that are released once events are complete |
//! | [`DelayedEvent`](delayed_event::DelayedEvent) | an event that reports complete with a delay |
//! | [`poll`], [`waiter`], [`Deadline`] | waits with a limit, for runtimes without them |
//! | [`per_thread`] | values of each thread that another thread may take, rarely |
//! | [`Few`] | a list that mostly has one element |
//!
//! This module names no runtime.

#![allow(clippy::new_without_default, reason = "one constructor for each type, `const` where possible")]

pub mod delayed_event;
pub mod handle;
pub mod ledgers;
pub mod library;
pub mod placed_blocks;
pub mod poll;
pub mod queue_list;
pub mod slots;
mod table;
pub mod waiter;

pub use crate::after::{After, give_up};
#[doc(hidden)]
pub use crate::backend::NOT_TIMED;
pub use crate::deadline::Deadline;
pub use crate::few::Few;
pub use crate::ledger::Ledger;
#[doc(hidden)]
pub use crate::per_thread;
pub use table::table;
#[doc(hidden)]
pub use table::{needed, symbol};

/// Marks around calls of a runtime. The core already makes its calls inside a mark, except those of
/// [`EventOps`](crate::backend::EventOps). A [`Drop`], the list of devices, the creation of a
/// context and the functions of the runtime's own crate need their own marks.
pub mod process {
    pub use crate::process::fork::Opening;
    pub use crate::process::{Inside, ask, work};
}

/// Locks and atomics: the standard ones, or substitutes under loom and valgrind.
pub mod sync {
    pub use crate::sync::{
        AtomicBool, AtomicU32, AtomicUsize, Mutex, Ordering, next_id, spin, take_out, yield_thread,
    };

    /// Locks that are held over a call of a driver. A waiting thread sleeps.
    pub mod sleeping {
        pub use crate::sync::sleeping::{Mutex, MutexGuard};
    }
}
