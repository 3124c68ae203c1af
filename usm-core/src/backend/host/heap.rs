//! Host memory from the global allocator.

use alloc::sync::Arc;
use core::alloc::Layout;
use core::ptr::NonNull;
use core::time::Duration;

use super::synchronous::Synchronous;
use super::{HostDevice, HostEvent, HostQueue, state};
use crate::backend::{Backend, Block, ContextOps, PointerInfo, QueueOrder, Unsupported};
use crate::context::Context;
use crate::context_state::ContextState;
use crate::error::{ErrorKind, Result};
use crate::{AllocKind, MemoryType};

/// Host memory from the global allocator. All three kinds are plain memory; device memory has no
/// host view here either.
#[derive(Clone, Copy, Debug)]
pub struct HostHeap {
    device: HostDevice,
}

/// The context of [`HostHeap`].
#[derive(Debug)]
pub struct HostContext {
    shared: ContextState,
}

impl Default for HostHeap {
    fn default() -> Self {
        Self::new()
    }
}

impl HostHeap {
    /// The host with the machine's memory, if its size is known.
    #[must_use]
    pub fn new() -> Self {
        Self::with_memory(physical_memory().unwrap_or(isize::MAX as u64))
    }

    /// The host with a limit (bytes) on the sum of allocations and on a single one.
    #[must_use]
    pub fn with_memory(bytes: u64) -> Self {
        Self { device: HostDevice::with_memory(bytes) }
    }

    /// A context over the machine.
    #[must_use]
    pub fn context(&self) -> Context<Self> {
        Context::from_raw(Arc::new(HostContext { shared: state(self.device.info) }))
    }
}

/// Bytes of physical memory, from the Linux kernel's table.
#[cfg(feature = "std")]
fn physical_memory() -> Option<u64> {
    let table = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kibibytes: u64 = table.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(not(feature = "std"))]
fn physical_memory() -> Option<u64> {
    None
}

// SAFETY: memory comes from the global allocator with the layout asked for, which keeps points 2
// and 7; operations run on the calling thread and have finished when they return (3 to 6 and 10);
// the rest holds trivially.
unsafe impl Backend for HostHeap {
    const SYNCHRONOUS: bool = true;

    type Device = HostDevice;
    type Context = Arc<HostContext>;
    type Queue = HostQueue;
    type Event = HostEvent;
    type Buffers = Synchronous;
    type HostTasks = Synchronous;
    type Advice = Synchronous;
    type Ipc = Unsupported;
    type Peer = Synchronous;
    type QueueMemory = Unsupported;

    fn for_each_device(&self, visit: &mut dyn FnMut(HostDevice)) -> Result<()> {
        visit(self.device);
        Ok(())
    }

    fn create_context(&self, device: &HostDevice) -> Result<Arc<HostContext>> {
        Ok(Arc::new(HostContext { shared: state(device.info) }))
    }
}

impl ContextOps<HostHeap> for Arc<HostContext> {
    fn shared(&self) -> &ContextState {
        &self.shared
    }

    fn create_queue(&self, _: QueueOrder) -> Result<HostQueue> {
        Ok(HostQueue)
    }

    fn allocate(&self, kind: AllocKind, layout: Layout) -> Result<NonNull<u8>> {
        // SAFETY: `allocate_by` checks the size.
        allocate_by(kind, layout, |layout| unsafe { alloc::alloc::alloc(layout) })
    }

    /// Large blocks come from the system, which zeroes their pages at the first access.
    fn allocate_zeroed(&self, kind: AllocKind, layout: Layout) -> Result<(NonNull<u8>, bool)> {
        // SAFETY: `allocate_by` checks the size.
        let pointer = allocate_by(kind, layout, |layout| unsafe { alloc::alloc::alloc_zeroed(layout) });
        pointer.map(|pointer| (pointer, true))
    }

    unsafe fn free(&self, block: &Block) {
        // SAFETY: size and alignment are those of the allocation, which succeeded with this layout.
        let layout = unsafe { Layout::from_size_align_unchecked(block.size, block.alignment) };
        // SAFETY: the caller's promise: from `allocate`, once, unused.
        unsafe { alloc::alloc::dealloc(block.pointer.as_ptr(), layout) };
    }

    fn query(&self, address: usize) -> Result<PointerInfo> {
        // The heap answers no pointer query. Only the registry can.
        Ok(self.shared.find(address).unwrap_or(PointerInfo::UNKNOWN))
    }

    fn synchronize(&self, _: Duration) -> Result<()> {
        Ok(())
    }

    fn for_each_pending(&self, _: Duration, _: &mut dyn FnMut(HostEvent)) -> Result<()> {
        Ok(())
    }
}

/// A block of the global allocator. `allocate` is called with a size that is not zero.
fn allocate_by(
    kind: AllocKind,
    layout: Layout,
    allocate: impl FnOnce(Layout) -> *mut u8,
) -> Result<NonNull<u8>> {
    if layout.size() == 0 {
        // The contract excludes it, but the callers are safe, so any code may call them.
        return Err(ErrorKind::ZeroSize.into());
    }
    let requested = layout.size() as u64;
    NonNull::new(allocate(layout))
        .ok_or_else(|| ErrorKind::OutOfMemory { memory_type: MemoryType::of(kind), requested }.into())
}
