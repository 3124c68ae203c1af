#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../README.md")]
#![warn(clippy::multiple_unsafe_ops_per_block)]
// Conversions that can fail return the array, as `Vec` and `String` conversions do.
#![allow(clippy::result_large_err)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod access;
#[cfg(feature = "alloc")]
#[cfg_attr(not(feature = "driver"), allow(unreachable_pub, reason = "for runtimes"))]
mod after;
mod allocation;
pub mod backend;
mod buffer;
mod checks;
mod context;
mod context_memory;
mod context_state;
mod conversion;
#[cfg_attr(not(feature = "driver"), allow(unreachable_pub, reason = "for runtimes"))]
mod deadline;
#[cfg(feature = "alloc")]
mod deferred;
mod device;
mod divided;
#[cfg(feature = "driver")]
pub mod driver;
mod element;
mod error;
mod event;
#[cfg(feature = "alloc")]
#[cfg_attr(not(feature = "driver"), allow(unreachable_pub, reason = "for runtimes"))]
mod few;
mod gate;
pub mod history;
#[cfg(feature = "std")]
mod host_memory;
pub mod ipc;
pub mod kind;
#[cfg(feature = "alloc")]
mod lazy_box;
#[cfg_attr(not(feature = "driver"), allow(unreachable_pub, reason = "for runtimes"))]
mod ledger;
mod lender;
#[cfg(feature = "alloc")]
mod lending;
pub mod limits;
mod memcpy;
mod memory;
#[cfg(feature = "alloc")]
mod outcome;
#[cfg(feature = "alloc")]
mod peer_copy;
mod pending;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod per_thread;
#[cfg(feature = "std")]
#[cfg_attr(
    not(feature = "driver"),
    allow(dead_code, unreachable_pub, reason = "without a runtime there are no calls to mark")
)]
mod process;
mod program_memory;
mod queue;
mod queue_memory;
#[cfg(feature = "alloc")]
mod registry;
#[cfg(feature = "driver")]
mod ring;
#[cfg(feature = "alloc")]
mod run_record;
mod run_report;
mod runs;
#[cfg(feature = "alloc")]
#[doc(hidden)]
pub mod segment;
mod selector;
mod source;
mod staging;
mod stats;
#[cfg(any(feature = "driver", feature = "threads"))]
mod stores;
mod strided;
mod strided_copy;
#[cfg_attr(not(feature = "driver"), allow(unreachable_pub, reason = "for runtimes"))]
mod sync;
#[cfg(feature = "alloc")]
mod system;
#[cfg(feature = "threads")]
pub mod threads;
mod typed;
mod uses;
mod view;
#[cfg(feature = "alloc")]
mod watch;

/// Whether calls may still enter the runtimes, and the hook at the end of the process. For
/// usm-kernel, which makes such calls too, usm-pool, whose arenas survive forks, usm, which opens
/// runtimes once, and usm-python, whose interpreter ends before the process. No part of the
/// interface.
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod ends {
    pub use crate::process::{
        Build, ForkOnce, Inside, Loading, ask, delay_forks, finish_work, guard_lock, in_arena, watch_forks,
        work,
    };
}

/// The locks for models and valgrind, and requests to memory checkers, for usm-pool. No part of
/// the interface.
#[cfg(any(loom, usm_valgrind, usm_asan))]
#[doc(hidden)]
pub mod substitute {
    #[cfg(any(usm_valgrind, usm_asan))]
    pub use crate::sync::checker::{hide, show};
    #[cfg(usm_valgrind)]
    pub use crate::sync::memcheck::without_values;
    #[cfg(loom)]
    pub use crate::sync::model::{Mutex, MutexGuard};
    #[cfg(usm_valgrind)]
    pub use crate::sync::pthread::{Mutex, MutexGuard};
}

/// Elements must be [`Pod`](bytemuck::Pod), which this crate defines.
pub use bytemuck;

pub use access::{Access, AccessFlags, Capabilities};
pub use allocation::Allocation;
pub use backend::{Backend, Block, EventStatus, MemAdvice, PointerInfo, QueueOrder};
pub use buffer::Buffer;
pub use context::Context;
pub use context_state::{ContextState, DEFAULT_WAIT_LIMIT};
pub use conversion::{Number, Numeric};
#[cfg(feature = "alloc")]
pub use deferred::Deferred;
pub use device::{BackendKind, DeviceInfo, DeviceType, Name};
pub use element::Element;
pub use error::{Error, ErrorKind, Partial, Result};
pub use event::{Event, EventTimes};
pub use gate::ViewGuard;
pub use kind::{AllocKind, AnyKind, Device, Host, HostAccessible, Kind, KnownKind, MemoryType, Shared};
#[doc(hidden)]
pub use lender::{Inherited, Lender};
pub use limits::Fallback;
pub use memory::Memory;
pub use pending::Pending;
pub use queue::{Queue, Usage};
#[cfg(feature = "alloc")]
pub use registry::Registry;
#[cfg(feature = "alloc")]
pub use run_record::RunRecord;
pub use run_report::{ReportText, RunReport};
pub use selector::{Selector, SelectorError};
pub use source::{MemorySource, Request};
pub use stats::{Counters, Stats};
pub use strided::Strided;
#[cfg(feature = "alloc")]
pub use typed::OwnedCopy;
pub use typed::{UninitVec, UsmVec};
pub use view::{ReadView, WriteView};
