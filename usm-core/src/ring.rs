//! Copies between memory of the program and a device through a ring of pinned blocks.
//!
//! A driver copies memory that is not pinned through small blocks of its own, with one thread. Here
//! several threads each have a block of the ring: while the driver copies one, the threads fill or
//! empty the others. The blocks are made at the first need and belong to the queue; a second copy
//! at the same time finds none and is left to the driver.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::access::Access;
use crate::allocation::Allocation;
use crate::backend::{Backend, QueueOps as _};
use crate::context::Context;
use crate::error::Result;
use crate::queue::{Queue, Usage};
use crate::source::{MemorySource as _, Request};
use crate::sync::sleeping::Mutex;
use crate::{AllocKind, DeviceType};

/// Bytes of a block.
const BLOCK: usize = 2 << 20;
/// A smaller copy does not repay the start of the threads.
const LEAST: usize = 4 << 20;
/// More threads than these fill no bus.
const MOST_THREADS: usize = 12;

/// The ring of a queue.
pub(crate) struct Ring<B: Backend>(Arc<State<B>>);

struct State<B: Backend> {
    /// The blocks that no copy uses now.
    blocks: Mutex<Vec<Allocation<B>>>,
}

impl<B: Backend> Default for Ring<B> {
    fn default() -> Self {
        Self(Arc::new(State { blocks: Mutex::new(Vec::new()) }))
    }
}

impl<B: Backend> Clone for Ring<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Threads of a copy: as many as of other work, else as processors. One, and so no ring, where the
/// number that a user stated is none: the work that must refuse it does.
fn count_threads() -> usize {
    #[cfg(feature = "threads")]
    let count = crate::threads::count().map_or(1, usize::from);
    #[cfg(not(feature = "threads"))]
    let count = thread::available_parallelism().map_or(1, usize::from);
    count.min(MOST_THREADS)
}

impl<B: Backend> Ring<B> {
    /// At least `count` blocks, for [`give`](Self::give) to take back; `None` without memory.
    fn take(&self, context: &Context<B>, count: usize) -> Option<Vec<Allocation<B>>> {
        let mut blocks = core::mem::take(&mut *self.0.blocks.lock());
        while blocks.len() < count {
            blocks.push(context.allocate(&Request::new(AllocKind::Host, BLOCK)).ok()?);
        }
        Some(blocks)
    }

    fn give(&self, blocks: Vec<Allocation<B>>) {
        let mut rest = self.0.blocks.lock();
        rest.extend(blocks);
        rest.truncate(MOST_THREADS);
    }
}

/// Where a copy through the ring is: offsets into both ends, and bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) to: usize,
    pub(crate) from: usize,
    pub(crate) len: usize,
}

/// An address that threads share.
#[derive(Clone, Copy)]
struct Shared(*mut u8);

// SAFETY: each thread copies other bytes.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    fn at(self, offset: usize) -> *mut u8 {
        self.0.wrapping_add(offset)
    }
}

impl<B: Backend> Queue<B> {
    /// Copies a span between memory of the process, which the device does not reach, and memory of
    /// the device, and waits. `None` if that is not worth it, or there are no pinned blocks.
    ///
    /// The caller has checked the ranges and has exclusive access to the destination.
    pub(crate) fn copy_through_ring(
        &self,
        dst: &Allocation<B>,
        src: &Allocation<B>,
        span: Span,
    ) -> Option<Result<()>> {
        let is_up = dst.kind() == AllocKind::Device;
        let (device, process) = if is_up { (dst, src) } else { (src, dst) };
        let fits = device.kind() == AllocKind::Device
            && process.kind() == AllocKind::Host
            && !process.is_reached_by_device()
            && span.len >= LEAST
            && self.context().info().device_type == DeviceType::Gpu;
        let threads = if fits { count_threads() } else { 1 };
        if threads < 2 {
            return None;
        }
        let blocks = self.ring().take(self.context(), threads.min(span.len / BLOCK))?;
        let outcome = self.copy_by_threads(&blocks, (dst, src), span, is_up);
        if outcome.is_ok() {
            self.ring().give(blocks);
        }
        Some(outcome)
    }

    fn copy_by_threads(
        &self,
        blocks: &[Allocation<B>],
        (dst, src): (&Allocation<B>, &Allocation<B>),
        span: Span,
        is_up: bool,
    ) -> Result<()> {
        let process = if is_up { src } else { dst };
        let _guard = process.host_guard(if is_up { Access::Read } else { Access::Write })?;
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        // Submissions of several threads over one allocation would miss each other's events.
        let turn = Mutex::new(());
        let to = Shared(dst.as_ptr().wrapping_add(span.to));
        let from = Shared(src.as_ptr().wrapping_add(span.from));
        let submit =
            |(to, to_of): (*mut u8, &Allocation<B>), (from, from_of): (*mut u8, &Allocation<B>), len| {
                let _turn = turn.lock();
                let usages = [Usage::write(to_of), Usage::read(from_of)];
                let copy = |queue: &B::Queue, after: &[B::Event]| {
                    // SAFETY: a part of the device's memory that no other thread copies, and the
                    // thread's own block: live, apart, and ordered by the usages.
                    unsafe { queue.copy(to, from, len, after) }
                };
                // SAFETY: the copy accesses what the usages declare, and the caller has exclusive
                // access to the destination.
                unsafe { self.submit(&usages, &[], copy) }
            };
        let work = |block: &Allocation<B>| -> Result<()> {
            while !failed.load(Ordering::Relaxed) {
                let start = next.fetch_add(1, Ordering::Relaxed) * BLOCK;
                if start >= span.len {
                    break;
                }
                let len = BLOCK.min(span.len - start);
                if is_up {
                    // The last copy from the block.
                    block.wait_for_uses(Access::Write)?;
                    // SAFETY: live memory of the process and the thread's own block, which no work
                    // uses.
                    unsafe { block.as_ptr().copy_from_nonoverlapping(from.at(start), len) };
                    let _ = submit((to.at(start), dst), (block.as_ptr(), block), len)?;
                } else {
                    submit((block.as_ptr(), block), (from.at(start), src), len)?.wait()?;
                    // SAFETY: as above; the device has written the block.
                    unsafe { to.at(start).copy_from_nonoverlapping(block.as_ptr(), len) };
                }
            }
            block.wait_for_uses(Access::Write)
        };
        let guarded = |block| work(block).inspect_err(|_| failed.store(true, Ordering::Relaxed));
        let [first, others @ ..] = blocks else { return Ok(()) };
        thread::scope(|scope| {
            let guarded = &guarded;
            let others: Vec<_> = others
                .iter()
                .filter_map(|block| thread::Builder::new().spawn_scoped(scope, move || guarded(block)).ok())
                .collect();
            let mut outcome = guarded(first);
            for other in others {
                let ended = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                outcome = outcome.and(ended);
            }
            outcome
        })
    }
}
