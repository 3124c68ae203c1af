//! Plain host memory: on the heap, or in a fixed arena of the caller's. Operations finish when
//! their call returns.

mod arena;
mod blocks;
mod fixed_pool;
#[cfg(feature = "alloc")]
mod heap;
mod synchronous;

pub use arena::{Arena, FixedHost};
pub use blocks::FixedNode;
pub use fixed_pool::FixedPool;
#[cfg(feature = "alloc")]
pub use heap::{HostContext, HostHeap};
pub use synchronous::Synchronous;

use crate::context_state::ContextState;
use crate::{AllocKind, BackendKind, DeviceInfo, DeviceType};

/// The one device of a host backend: the machine.
#[derive(Clone, Copy, Debug)]
pub struct HostDevice {
    info: DeviceInfo,
}

impl HostDevice {
    fn with_memory(bytes: u64) -> Self {
        let mut info = DeviceInfo::new(BackendKind::Host, DeviceType::Host, "host memory");
        info.global_mem_size = bytes;
        info.max_alloc_size = info.max_alloc_size.min(bytes);
        Self { info }
    }
}

/// Stands for the library of all host contexts.
static LIBRARY: u8 = 0;

/// The state of a host context.
fn state(info: DeviceInfo) -> ContextState {
    let state = ContextState::new(info).of_library((&raw const LIBRARY).addr());
    #[cfg(feature = "alloc")]
    let state = state.of_synchronous();
    state
}

/// A queue of a host backend, without state: its work runs during the call.
#[derive(Clone, Copy, Debug)]
pub struct HostQueue;

/// An event of a host backend: always complete.
#[derive(Clone, Copy, Debug)]
pub struct HostEvent;

/// A buffer of a host backend.
#[derive(Debug)]
pub struct HostBuffer {
    block: crate::backend::Block,
}

/// The kind that a host buffer's memory has.
const BUFFER_KIND: AllocKind = AllocKind::Host;
