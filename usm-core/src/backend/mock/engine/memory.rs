//! The simulated driver's memory: blocks, the period in which work may access a queue-allocated
//! block, and misuse.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::ops::Range;
use core::ptr::NonNull;

use super::state::{
    Chunk, Engine, EventState, Life, Live, MockEvent, QueuedOperation, State, Submission, Touch, Violation,
};
use crate::AllocKind;
use crate::backend::mock::script::Operation;
use crate::backend::{Block, QueueOrder};
use crate::error::{ErrorKind, Result};
use crate::sync::Mutex;

impl Engine {
    pub(in crate::backend::mock) fn allocate(
        &self,
        kind: AllocKind,
        layout: Layout,
        context: u64,
        opaque: bool,
    ) -> Result<NonNull<u8>> {
        self.call(Operation::Allocate, layout.size(), 0)?;
        if layout.size() == 0 {
            return Err(ErrorKind::ZeroSize.into());
        }
        // SAFETY: the size is not zero.
        let pointer = unsafe { alloc::alloc::alloc(layout) };
        let memory_type = crate::MemoryType::of(kind);
        let requested = layout.size() as u64;
        let pointer = NonNull::new(pointer).ok_or(ErrorKind::OutOfMemory { memory_type, requested })?;
        // Driver memory has arbitrary content, so a test that relies on zeros fails. SAFETY: fresh
        // memory of that size.
        unsafe { pointer.as_ptr().write_bytes(0xCB, layout.size()) };
        self.state.lock().live.push(Live {
            base: pointer.as_ptr().expose_provenance(),
            layout,
            kind,
            context,
            opaque,
            life: None,
        });
        Ok(pointer)
    }

    /// Allocates memory in the order of the queue.
    pub(in crate::backend::mock) fn allocate_in_order(
        self: &Arc<Self>,
        queue: u64,
        order: QueueOrder,
        context: u64,
        layout: Layout,
    ) -> Result<(NonNull<u8>, MockEvent)> {
        let delayed_error = self.call(Operation::AllocateInOrder, layout.size(), 0)?;
        if layout.size() == 0 {
            return Err(ErrorKind::ZeroSize.into());
        }
        let (begins, in_order) =
            (EventState::pending(), if order == QueueOrder::InOrder { queue } else { 0 });
        let pointer = {
            // One lock for the memory and the submission: another thread frees to the list and
            // allocates from it in the order in which the queue gets the operations.
            let mut state = self.state.lock();
            let chunk = state.chunks.iter().position(|chunk| chunk.can_serve(layout, in_order));
            let (pointer, layout) = match chunk.map(|index| state.chunks.swap_remove(index)) {
                Some(chunk) => (core::ptr::with_exposed_provenance_mut(chunk.base), chunk.layout),
                // SAFETY: the size is not zero.
                None => (unsafe { alloc::alloc::alloc(layout) }, layout),
            };
            let (memory_type, requested) = (crate::MemoryType::UsmDevice, layout.size() as u64);
            let pointer = NonNull::new(pointer).ok_or(ErrorKind::OutOfMemory { memory_type, requested })?;
            let base = pointer.as_ptr().expose_provenance();
            let life = Arc::new(Life {
                block: base..base + layout.size(),
                begins: Arc::clone(&begins),
                ends: Mutex::new(None),
            });
            let kind = AllocKind::Device;
            state.live.push(Live { base, layout, kind, context, opaque: false, life: Some(life) });
            let submission = Submission {
                operation: Operation::AllocateInOrder,
                queue,
                order,
                context,
                bytes: layout.size(),
                after: &[],
                touches: Vec::new(),
            };
            let work = overwrite(pointer, layout.size(), 0xCB);
            self.enqueue(&mut state, submission, delayed_error, &begins, None, work);
            pointer
        };
        Ok((pointer, self.submitted(begins)))
    }

    /// A later allocation from the same in-order queue may get this memory.
    ///
    /// # Safety
    /// As [`QueueMemory::free`](crate::backend::QueueMemory::free).
    pub(in crate::backend::mock) unsafe fn free_in_order(
        self: &Arc<Self>,
        queue: u64,
        order: QueueOrder,
        context: u64,
        block: &Block,
        after: &[MockEvent],
    ) -> Result<()> {
        let delayed_error = self.call(Operation::FreeInOrder, block.size, after.len())?;
        let free_event = EventState::pending();
        {
            let mut state = self.state.lock();
            let live = match state.freeable(block, context) {
                Ok(index) if state.live[index].life.is_some() => state.live.swap_remove(index),
                _ => {
                    state.violations.push((block.address(), block.size));
                    return Ok(());
                }
            };
            if let Some(life) = &live.life {
                *life.ends.lock() = Some(Arc::clone(&free_event));
            }
            let in_order = if order == QueueOrder::InOrder { queue } else { 0 };
            let (base, layout) = (live.base, live.layout);
            state.chunks.push(Chunk { base, layout, queue: in_order, free_event: Arc::clone(&free_event) });
            let submission = Submission {
                operation: Operation::FreeInOrder,
                queue,
                order,
                context,
                bytes: block.size,
                after,
                touches: Vec::new(),
            };
            let work = overwrite(block.pointer, block.size, 0xDE);
            self.enqueue(&mut state, submission, delayed_error, &free_event, live.life, work);
        }
        let _ = self.submitted(free_event);
        Ok(())
    }

    /// # Safety
    /// As [`ContextOps::free`](crate::backend::ContextOps::free). A visible misuse is reported and
    /// frees nothing.
    pub(in crate::backend::mock) unsafe fn free(&self, block: &Block, context: u64) {
        let _ = self.call(Operation::Free, block.size, 0);
        let (start, end) = (block.address(), block.address() + block.size);
        let freed_block = {
            let mut state = self.state.lock();
            let touches = |operation: &QueuedOperation| {
                operation.touches.iter().any(|touch| touch.range.start < end && start < touch.range.end)
            };
            // A finished operation leaves the queue a moment after its event is complete.
            let used = |operation: &QueuedOperation| touches(operation) && operation.event.is_pending();
            let in_use = !state.is_lost && state.operations.iter().any(used);
            let live = match state.freeable(block, context) {
                Ok(index) if !in_use => state.live.swap_remove(index),
                _ => {
                    state.violations.push((start, block.size));
                    return;
                }
            };
            if live.life.is_some() {
                // Queue-allocated memory returns to its list.
                let (base, layout, free_event) = (live.base, live.layout, EventState::complete());
                state.chunks.push(Chunk { base, layout, queue: 0, free_event });
                return;
            }
            // SAFETY: allocated here, exclusively ours now.
            unsafe { block.pointer.as_ptr().write_bytes(0xDE, block.size) };
            state.quarantine.push(live.base, live.layout)
        };
        if let Some((base, layout)) = freed_block {
            // SAFETY: allocated here with this layout, and no owner is left.
            unsafe { alloc::alloc::dealloc(core::ptr::with_exposed_provenance_mut(base), layout) };
        }
    }

    /// (base, size, kind) of the live block of `context` that contains `address`.
    pub(in crate::backend::mock) fn find(
        &self,
        address: usize,
        context: u64,
    ) -> Option<(usize, usize, AllocKind)> {
        let state = self.state.lock();
        let is_known = |live: &Live| live.context == context || state.opened_bases.contains(&live.base);
        let ours = |live: &&Live| !live.opaque && live.contains(address) && is_known(live);
        let block = state.live.iter().find(ours)?;
        Some((block.base, block.layout.size(), block.kind))
    }

    /// Whether this is a whole live block of `context`. Reports anything else.
    pub(in crate::backend::mock) fn is_block(&self, block: &Block, context: u64) -> bool {
        let mut state = self.state.lock();
        match state.freeable(block, context) {
            Ok(_) => true,
            Err(wrong) => {
                state.violations.push(wrong);
                false
            }
        }
    }

    /// Opens the live block at `base`, whatever its context; false when there is none.
    pub(in crate::backend::mock) fn open_block(&self, base: usize) -> bool {
        let mut state = self.state.lock();
        let is_live = state.live.iter().any(|live| live.base == base);
        if is_live {
            state.opened_bases.push(base);
        }
        is_live
    }

    pub(in crate::backend::mock) fn close_block(&self, base: usize) {
        let mut state = self.state.lock();
        if let Some(index) = state.opened_bases.iter().position(|address| *address == base) {
            state.opened_bases.swap_remove(index);
        }
    }

    pub(in crate::backend::mock) fn opened_blocks(&self) -> usize {
        self.state.lock().opened_bases.len()
    }
}

impl Drop for Engine {
    /// Dropping the driver frees memory that contexts leaked, as the end of a process does: no
    /// handle is left.
    fn drop(&mut self) {
        let mut state = self.state.lock();
        // First drops work that never ran, because it may own what it would have used.
        state.operations.clear();
        let live = core::mem::take(&mut state.live).into_iter().map(|live| (live.base, live.layout));
        let chunks = core::mem::take(&mut state.chunks).into_iter().map(|chunk| (chunk.base, chunk.layout));
        let quarantine = core::mem::take(&mut state.quarantine).0;
        for (base, layout) in live.chain(chunks).chain(quarantine) {
            // SAFETY: allocated here with this layout, not freed, and every context that could name
            // it is dropped.
            unsafe { alloc::alloc::dealloc(core::ptr::with_exposed_provenance_mut(base), layout) };
        }
    }
}

impl State {
    /// The live queue-allocated blocks in these ranges, and the ranges that a queue has freed.
    pub(super) fn blocks_in(&self, touches: &[Touch]) -> (Vec<Arc<Life>>, Vec<Violation>) {
        let meets = |block: &Range<usize>| {
            touches.iter().any(|touch| touch.range.start < block.end && block.start < touch.range.end)
        };
        let lives = self.live.iter().filter_map(|live| live.life.clone());
        let free_ranges = self.chunks.iter().map(|chunk| chunk.base..chunk.base + chunk.layout.size());
        (
            lives.filter(|life| meets(&life.block)).collect(),
            free_ranges.filter(meets).map(|block| (block.start, block.len())).collect(),
        )
    }

    /// The queue-allocated blocks that an operation must not access or free now.
    pub(super) fn misused_by(&self, index: usize) -> Vec<Violation> {
        let operation = &self.operations[index];
        let mut wrong: Vec<_> = operation
            .lives
            .iter()
            .filter(|life| !life.is_accessible())
            .map(|life| life.violation())
            .collect();
        if let Some(ends) = &operation.ends {
            let uses =
                |operation: &QueuedOperation| operation.lives.iter().any(|life| Arc::ptr_eq(life, ends));
            let in_use =
                self.operations.iter().any(|operation| uses(operation) && operation.event.is_pending());
            wrong.extend((!ends.begins.is_complete() || in_use).then(|| ends.violation()));
        }
        wrong
    }
}

/// Work that makes the memory's content arbitrary, so a test that relies on it fails.
fn overwrite(pointer: NonNull<u8>, len: usize, byte: u8) -> impl FnOnce() + Send + 'static {
    let base = pointer.as_ptr().expose_provenance();
    move || {
        let pointer: *mut u8 = core::ptr::with_exposed_provenance_mut(base);
        // SAFETY: memory of that size that lives as long as the engine; by the queue's order no
        // other work accesses it now.
        unsafe { pointer.write_bytes(byte, len) };
        #[cfg(usm_valgrind)]
        crate::sync::memcheck::without_values(pointer, len);
    }
}
