//! Host memory from a fixed region of the caller's: no heap, no system.

use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::time::Duration;

use super::blocks::{Blocks, FixedNode, LiveBlock};
use super::synchronous::Synchronous;
use super::{HostDevice, HostEvent, HostQueue, state};
use crate::AllocKind;
use crate::backend::{Backend, Block, ContextOps, PointerInfo, QueueOrder, Unsupported};
use crate::context::Context;
use crate::context_state::ContextState;
use crate::error::Result;
use crate::sync::Mutex;

/// The blocks of an arena, with their records.
#[derive(Debug)]
struct Table<const BLOCKS: usize> {
    blocks: Blocks,
    nodes: [[FixedNode; 2]; BLOCKS],
}

/// A fixed region of memory with at most `BLOCKS` live allocations, as a
/// [`FixedPool`](super::FixedPool) places them.
///
/// ```
/// use core::mem::MaybeUninit;
///
/// use usm_core::backend::host::Arena;
/// use usm_core::{Host, QueueOrder, UsmVec};
///
/// let mut memory = [MaybeUninit::uninit(); 4096];
/// let arena = Arena::<16>::new(&mut memory);
/// let queue = arena.context().queue(QueueOrder::InOrder)?;
/// let array = UsmVec::<f32, Host, _>::from_slice(&queue, &[1.0, 2.0])?;
/// assert_eq!(array.read()?[1], 2.0);
/// # Ok::<(), usm_core::Error>(())
/// ```
pub struct Arena<'m, const BLOCKS: usize> {
    base: NonNull<u8>,
    table: Mutex<Table<BLOCKS>>,
    device: HostDevice,
    shared: ContextState,
    memory: PhantomData<&'m mut [u8]>,
    len: usize,
}

// SAFETY: the arena borrows the region exclusively for its lifetime, and allocates its parts under
// the lock.
unsafe impl<const BLOCKS: usize> Send for Arena<'_, BLOCKS> {}
// SAFETY: as above.
unsafe impl<const BLOCKS: usize> Sync for Arena<'_, BLOCKS> {}

impl<const BLOCKS: usize> fmt::Debug for Arena<'_, BLOCKS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").field("base", &self.base).field("bytes", &self.len).finish_non_exhaustive()
    }
}

impl<'m, const BLOCKS: usize> Arena<'m, BLOCKS> {
    /// An arena over `memory`. Its bytes may be uninitialised, and may be so afterwards, because
    /// written values may have padding. So a slice of plain bytes is refused.
    ///
    /// ```compile_fail,E0308
    /// let mut bytes = [0_u8; 64];
    /// let arena = usm_core::backend::host::Arena::<4>::new(&mut bytes);
    /// ```
    #[must_use]
    pub fn new(memory: &'m mut [MaybeUninit<u8>]) -> Self {
        let (base, len) = (NonNull::from(&mut *memory).cast(), memory.len());
        let device = HostDevice::with_memory(len as u64);
        let mut nodes = [[FixedNode::VACANT; 2]; BLOCKS];
        let blocks = Blocks::new(nodes.as_flattened_mut(), base.as_ptr() as usize, len);
        Self {
            base,
            table: Mutex::new(Table { blocks, nodes }),
            device,
            shared: state(device.info),
            memory: PhantomData,
            len,
        }
    }

    /// The context of the arena. Every call returns a handle to the same one.
    #[must_use]
    pub fn context(&self) -> Context<FixedHost<'_, BLOCKS>> {
        Context::from_raw(self)
    }

    /// Runs `call` on the table. A fork leaves the table free in the child.
    fn with_table<R>(&self, call: impl FnOnce(&mut Blocks, &mut [FixedNode]) -> R) -> R {
        let guarded_call = || {
            let Table { blocks, nodes } = &mut *self.table.lock();
            call(blocks, nodes.as_flattened_mut())
        };
        #[cfg(feature = "std")]
        return crate::process::in_arena(guarded_call);
        #[cfg(not(feature = "std"))]
        guarded_call()
    }

    fn place(&self, layout: Layout, kind: AllocKind) -> Result<NonNull<u8>> {
        let start = self.with_table(|blocks, nodes| blocks.allocate(nodes, layout, kind))?;
        // SAFETY: blocks lie inside the region.
        Ok(unsafe { self.base.add(start - self.base.as_ptr() as usize) })
    }

    fn find(&self, address: usize) -> PointerInfo {
        let block = self.with_table(|_, nodes| Blocks::find(nodes, address));
        block.map_or(PointerInfo::UNKNOWN, |LiveBlock { start, bytes, kind }| PointerInfo {
            kind,
            base: start,
            size: bytes,
            device: (kind != AllocKind::Host).then_some(self.shared.info().ordinal),
            context: self.shared.id(),
        })
    }
}

/// The backend of an [`Arena`]; its context is a borrow of the arena.
#[derive(Clone, Copy, Debug)]
pub struct FixedHost<'a, const BLOCKS: usize>(&'a Arena<'a, BLOCKS>);

impl<'a, const BLOCKS: usize> FixedHost<'a, BLOCKS> {
    /// The backend of `arena`.
    #[must_use]
    pub fn new(arena: &'a Arena<'a, BLOCKS>) -> Self {
        Self(arena)
    }
}

// SAFETY: blocks are disjoint parts of a region that the arena borrows exclusively, aligned by
// address (2); a block leaves the table only when it is freed (7); operations run on the calling
// thread (3 to 6 and 10).
unsafe impl<'a, const BLOCKS: usize> Backend for FixedHost<'a, BLOCKS> {
    const SYNCHRONOUS: bool = true;

    type Device = HostDevice;
    type Context = &'a Arena<'a, BLOCKS>;
    type Queue = HostQueue;
    type Event = HostEvent;
    type Buffers = Synchronous;
    type HostTasks = Synchronous;
    type Advice = Synchronous;
    type Ipc = Unsupported;
    type Peer = Synchronous;
    type QueueMemory = Unsupported;

    fn for_each_device(&self, visit: &mut dyn FnMut(HostDevice)) -> Result<()> {
        visit(self.0.device);
        Ok(())
    }

    fn create_context(&self, _: &HostDevice) -> Result<&'a Arena<'a, BLOCKS>> {
        Ok(self.0)
    }
}

impl<'a, const BLOCKS: usize> ContextOps<FixedHost<'a, BLOCKS>> for &'a Arena<'a, BLOCKS> {
    fn shared(&self) -> &ContextState {
        &self.shared
    }

    fn create_queue(&self, _: QueueOrder) -> Result<HostQueue> {
        Ok(HostQueue)
    }

    fn allocate(&self, kind: AllocKind, layout: Layout) -> Result<NonNull<u8>> {
        self.place(layout, kind)
    }

    unsafe fn free(&self, block: &Block) {
        let _ = self.with_table(|blocks, nodes| blocks.free(nodes, block.address()));
    }

    fn query(&self, address: usize) -> Result<PointerInfo> {
        Ok(self.find(address))
    }

    fn synchronize(&self, _: Duration) -> Result<()> {
        Ok(())
    }

    fn for_each_pending(&self, _: Duration, _: &mut dyn FnMut(HostEvent)) -> Result<()> {
        Ok(())
    }
}
