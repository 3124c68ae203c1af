#![no_std]
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::multiple_unsafe_ops_per_block)]

extern crate alloc;
// Tests and benchmarks share files that name the crate as a user does.
#[cfg(test)]
extern crate self as usm_nrt;
#[cfg(feature = "std")]
extern crate std;

#[cfg_attr(not(loom), expect(unreachable_pub, reason = "only the models of `tests/loom.rs` reach it"))]
mod counters;
mod fallible;
mod refcount;
mod symbols;
mod sync;

#[cfg(loom)]
pub use counters::{Counters, Event};
pub use refcount::{MAX_REFCOUNT, RefCount, Release};
pub use symbols::{Slot, SlotError, SlotTable};

// The models of `tests/loom.rs` replace the atomics, and loom's have no C layout.
#[cfg(not(loom))]
mod runtime {
    #[cfg(feature = "std")]
    pub use crate::allocator::{KeptCounts, kept_counts};
    pub use crate::allocator::{
        PlainFree, PlainMalloc, PlainRealloc, set_allocator, set_allocator_of_kind, set_kept_allocator,
        set_plain_allocator,
    };
    pub use crate::block::BUILTIN;
    pub use crate::destructor::{DEAD, Dtor, FRESH, ManagedDtor, Owner, OwnerTag};
    pub use crate::error::Error;
    pub use crate::external::{ExternalAllocator, FreeFn, MallocFn, ReallocFn};
    pub use crate::handle::MemRef;
    #[cfg(feature = "std")]
    pub use crate::local::drain_thread_cache;
    pub use crate::meminfo::{MemInfo, Request};
    /// Rust owners panic in [`MemRef`]'s drop; a [`SourceAllocator`]'s source may panic too.
    pub use crate::panics::caught_panics;
    pub use crate::source::{SourceAllocator, allocate_block, free_block, holds_blocks};
    pub use crate::stats::Stats;
    pub use crate::system::{
        is_shutdown, set_shutdown, set_stats, set_thread_cache, stats_enabled, thread_cache_enabled,
    };
    pub use crate::track::{
        LiveBlock, foreign_frees, forget_tracked, live_blocks, sequence_of, set_tracking,
    };
}
#[cfg(not(loom))]
pub use runtime::*;

#[cfg(not(loom))]
mod address_hash;
#[cfg(not(loom))]
mod allocator;
#[cfg(not(loom))]
pub mod api;
#[cfg(not(loom))]
mod block;
#[cfg(all(feature = "capi", not(loom)))]
pub mod capi;
#[cfg(all(feature = "capi", not(loom)))]
pub mod container;
#[cfg(not(loom))]
mod destructor;
#[cfg(not(loom))]
mod error;
#[cfg(all(feature = "capi", not(loom)))]
mod export;
#[cfg(not(loom))]
mod external;
#[cfg(not(loom))]
mod fork;
#[cfg(not(loom))]
mod handle;
#[cfg(all(feature = "capi", not(loom)))]
pub mod helper;
#[cfg(not(loom))]
mod local;
#[cfg(not(loom))]
mod meminfo;
#[cfg(all(feature = "debug", not(loom)))]
mod misuse;
#[cfg(not(loom))]
mod panics;
#[cfg(not(loom))]
mod source;
#[cfg(not(loom))]
mod stats;
#[cfg(not(loom))]
mod system;
#[cfg(not(loom))]
mod track;
#[cfg(not(loom))]
mod varsize;
