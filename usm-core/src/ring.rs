//! Copies between memory of the program and a device through a ring of pinned blocks.
//!
//! A driver copies memory that is not pinned through small blocks of its own, with one thread. Here
//! several threads fill or empty the blocks of a ring, and one makes the driver's calls: while the
//! driver copies some blocks, the threads have the others. The blocks are made at the first need
//! and belong to the context, which counts them apart; [`Context::trim`] gives them back. A second
//! copy at the same time makes its own.

use alloc::vec::Vec;
use core::mem::MaybeUninit;

use crate::access::Access;
use crate::allocation::Allocation;
use crate::backend::{Backend, ContextOps as _};
use crate::context::Context;
use crate::context_state::RING_SERIAL;
use crate::deferred::Deferred;
use crate::error::{Partial, Result};
use crate::event::Event;
use crate::pending::Pending;
use crate::queue::Queue;
use crate::{AllocKind, DeviceType};
use idle::{Idle, Ring};
use parts::Parts;
use transfer::Transfer;

pub(crate) mod idle;
mod parts;
mod transfer;

/// Bytes of a block: with smaller ones, the driver's calls take longer than the copies.
const BLOCK: usize = 1 << 20;
/// Bytes of the smallest part.
const LEAST_PART: usize = 256 << 10;
/// A smaller copy does not repay waking the threads.
const LEAST: usize = 4 << 20;
/// More threads than these fill no bus.
const MOST_THREADS: usize = 12;
/// Blocks of a thread: one is filled while the other is sent.
const DEPTH: usize = 2;

impl<B: Backend> Ring<B> {
    /// At most `count` blocks, for [`give`](Self::give) to take back; fewer where there is no
    /// pinned memory, which is counted.
    fn take(&self, context: &Context<B>, count: usize) -> Vec<Allocation<B>> {
        let idle = {
            let mut idle = self.0.lock();
            let rest = idle.len().saturating_sub(count);
            idle.split_off(rest)
        };
        let mut blocks: Vec<_> = idle.into_iter().map(|idle| context.allocation_of_idle(idle)).collect();
        while blocks.len() < count {
            match context.allocate_for_ring(BLOCK) {
                Ok(block) => blocks.push(block),
                Err(_) => {
                    context.shared().count_ring_refusal();
                    break;
                }
            }
        }
        blocks
    }

    fn give(&self, blocks: Vec<Allocation<B>>) {
        let most = MOST_THREADS * DEPTH;
        let mut blocks = blocks.into_iter();
        {
            let mut idle = self.0.lock();
            let room = most.saturating_sub(idle.len());
            idle.extend(blocks.by_ref().take(room).filter_map(Allocation::into_idle));
        }
        // Without the lock: a free is a call of the driver.
        drop(blocks);
    }
}

impl<B: Backend> Context<B> {
    fn ring(&self) -> Option<&Ring<B>> {
        self.raw().deferred().map(Deferred::ring)
    }

    /// Gives the pinned blocks back through which [copies](Queue::copy_from_slice) go. The next
    /// copy makes new ones. Returns the bytes; [`Stats::ring`](crate::Stats::ring) counts them. An
    /// allocation that finds no memory does it too.
    pub fn trim(&self) -> usize {
        let Ok(_entered) = self.shared().ask() else { return 0 };
        let idle = self.ring().map(Ring::take_all).unwrap_or_default();
        idle.into_iter().map(|idle| self.allocation_of_idle(idle).size()).sum()
    }

    fn allocation_of_idle(&self, Idle { block, events }: Idle<B>) -> Allocation<B> {
        let allocation = Allocation::owned(self.clone(), block, RING_SERIAL);
        // Events of this context, which is all that is checked.
        let _ = allocation.absorb(Pending::of_events(self.id(), events));
        allocation
    }
}

/// Threads of a copy: as many as of other work, else as processors. One, and so no ring, where the
/// number that a user stated is none: the work that must refuse it does.
fn count_threads() -> usize {
    #[cfg(feature = "threads")]
    let count = crate::threads::count().map_or(1, usize::from);
    #[cfg(not(feature = "threads"))]
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    count.min(MOST_THREADS)
}

/// Writes a part of what is copied: as many bytes as the slice has, from this one on. False if it
/// cannot: then the copy ends. Several threads call it at once.
pub(crate) type Fill<'f> = dyn Fn(usize, &mut [MaybeUninit<u8>]) -> bool + Sync + 'f;

/// The end of a copy that is memory of the process, or what makes its bytes.
#[derive(Clone, Copy)]
pub(crate) enum Process<'p> {
    /// The copy reads it.
    Source(*const u8),
    /// The copy writes it.
    Target(*mut u8),
    /// It writes the pinned blocks itself.
    Fill(&'p Fill<'p>),
}

impl<B: Backend> Queue<B> {
    /// Copies `len` bytes between memory of the process, which the device does not reach, and
    /// memory of the device from `offset` on. `None` if that is not worth it, or there are no
    /// pinned blocks. When it returns, no thread and no device accesses the memory of the process.
    /// A copy to the device may still read the blocks if the caller is not `waits`: then it
    /// returns the event. The next copy waits for that.
    ///
    /// # Safety
    /// The bytes of the process are live, and nothing else writes them, or accesses them if they
    /// are the target. The device's range has been checked. Until the call returns no other thread
    /// submits work over the allocation, and no other code uses the bytes that are written, unless
    /// it waits for the events.
    pub(crate) unsafe fn copy_through_ring(
        &self,
        (device, offset): (&Allocation<B>, usize),
        process: Process<'_>,
        len: usize,
        waits: bool,
    ) -> Option<Result<Option<Event<B>>>> {
        let fits = device.kind() == AllocKind::Device
            && len >= LEAST
            && self.context().info().device_type == DeviceType::Gpu;
        let threads = if fits { count_threads() } else { 1 };
        if threads < 2 {
            return None;
        }
        let ring = self.context().ring()?;
        let even = (len / (2 * threads)).next_multiple_of(64 << 10);
        let part = even.clamp(LEAST_PART, BLOCK);
        // Other work is not the threads' to wait for: they belong to the program too.
        let access = if matches!(process, Process::Target(_)) { Access::Read } else { Access::Write };
        let earlier = if waits { device.wait_for_uses(access) } else { Ok(()) };
        if let Err(error) = earlier {
            return Some(Err(error));
        }
        let blocks = ring.take(self.context(), (DEPTH * threads).min(len.div_ceil(part)));
        if blocks.is_empty() {
            return None;
        }
        let are_free = blocks.iter().try_for_each(|block| block.wait_for_uses(Access::Write));
        if let Err(error) = are_free {
            return Some(Err(error));
        }
        let parts = Parts::new(&blocks, process, len, part);
        let mut transfer = Transfer::new(self, device, offset, &blocks, &parts);
        run(threads, &mut || transfer.drive(waits), &|| parts.work());
        let Transfer { last, error, .. } = transfer;
        if let Some(error) = error {
            // Blocks of unfinished parts live until their work is complete.
            let (copied_bytes, len) = (parts.copied() as u64, core::num::NonZeroU64::new(len as u64));
            return Some(Err(len.map_or(error, |len| error.after(Partial { copied: copied_bytes, len }))));
        }
        ring.give(blocks);
        Some(Ok(last.filter(|_| !waits)))
    }
}

/// Runs `own` on the calling thread, and `help` on other threads of the pool until it returns.
/// Returns when all of them have.
fn run(threads: usize, own: &mut dyn FnMut(), help: &(dyn Fn() + Sync)) {
    #[cfg(feature = "threads")]
    {
        let own_work = |_| {
            own();
            core::ops::ControlFlow::Continue(())
        };
        // The parts of `divide` are all the calling thread's, so none waits for the others.
        let (count, most) = (threads as u64, core::num::NonZeroUsize::new(threads));
        let ran = crate::threads::divide(count, most, own_work, |_| help());
        // Refused for a number of threads that means nothing, which has been checked.
        debug_assert!(ran.is_ok());
    }
    #[cfg(not(feature = "threads"))]
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // Without a thread the calling one does its work.
            let _ = std::thread::Builder::new().spawn_scoped(scope, help);
        }
        own();
    });
}
