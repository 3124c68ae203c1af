//! The ground of a pool: its lock, its context, and its end.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::sync::atomic::Ordering;
#[cfg(not(feature = "std"))]
use core::sync::atomic::fence;

use usm_core::backend::ContextOps;
use usm_core::segment::Segment;
use usm_core::{Backend, Error, ErrorKind, Pending, Result};

#[cfg(feature = "std")]
use super::bins::Flow;
use super::choice::{Ground, Status};
use super::space::Garbage;
#[cfg(feature = "std")]
use super::threads;
use super::{Shared, SpaceOf, bins};
#[cfg(feature = "std")]
use crate::sync::atomics::fence;

impl<B: Backend + 'static> Ground for Shared<B> {
    type Uses = Pending<B>;
    type Memory = Segment<B>;
    type Error = Error;

    /// A fork leaves the space free in the child.
    fn with<R>(&self, call: impl FnOnce(&mut SpaceOf<B>) -> R) -> R {
        let mut space = self.space.lock();
        let result = call(&mut space);
        let keeps = !space.is_closed && space.counters.reserved <= self.keep;
        let room = if keeps { bins::room(space.counters.reserved) } else { 0 };
        // Other threads read it all the time, so that a write of the same number costs them a miss.
        if self.room.get() != room {
            self.room.set(room);
        }
        result
    }

    fn gather(&self) {
        self.take_in(|space, garbage| {
            space.empty_store(garbage);
        });
        #[cfg(feature = "std")]
        {
            let mut chains = Vec::new();
            threads::take_all(self.id, |cache| chains.push(cache.bins().empty(&self.table, false)));
            self.take_in(|space, garbage| {
                chains.into_iter().for_each(|chain| space.take_chain(chain, garbage))
            });
        }
    }

    fn status(&self, uses: &Pending<B>) -> Status {
        if uses.has_failed() {
            Status::Failed
        } else if uses.is_done() {
            Status::Complete
        } else {
            Status::Pending
        }
    }

    fn copy(&self, uses: &Pending<B>) -> Pending<B> {
        uses.clone()
    }

    fn wait(&self, all: &[(u32, Pending<B>)]) {
        let mut all_of_them = Pending::none();
        all.iter().for_each(|(_, uses)| drop(all_of_them.join(uses.clone())));
        // A failure or a timeout shows when the operations are asked.
        let _ = all_of_them.wait(self.context.raw().shared().wait_limit());
    }

    fn grow(&self, bytes: u64, alignment: u64) -> Result<(u64, Segment<B>)> {
        let too_large = |_| Error::from(ErrorKind::SizeOverflow);
        let (size, alignment) =
            (usize::try_from(bytes).map_err(too_large)?, usize::try_from(alignment).map_err(too_large)?);
        let layout = Layout::from_size_align(size, alignment).map_err(|_| ErrorKind::SizeOverflow)?;
        let memory = Segment::allocate(&self.context, self.kind, layout)?;
        Ok((memory.block().address() as u64, memory))
    }

    fn is_shortage(error: &Error) -> bool {
        matches!(
            error.kind,
            ErrorKind::OutOfMemory { .. }
                | ErrorKind::OverMemory { .. }
                | ErrorKind::OverMaxAlloc { .. }
                | ErrorKind::TooManyBlocks { .. }
                | ErrorKind::SizeOverflow
        )
    }

    fn pause(&self) {
        #[cfg(feature = "std")]
        crate::sync::yield_now();
        #[cfg(not(feature = "std"))]
        core::hint::spin_loop();
    }
}

/// Each segment is freed after the operations on its bytes.
impl<B: Backend + 'static> Drop for Shared<B> {
    fn drop(&mut self) {
        self.report();
        let mut garbage = Vec::new();
        let all = self.with(|space| space.end(&mut garbage));
        for (memory, uses) in all {
            memory.free_after(uses);
        }
    }
}

/// The last of these closes the pool.
pub(super) struct Handle<B: Backend + 'static>(pub(super) Arc<Shared<B>>);

impl<B: Backend + 'static> Drop for Handle<B> {
    fn drop(&mut self) {
        let shared = &self.0;
        shared.with(|space| space.is_closed = true);
        fence(Ordering::SeqCst);
        shared.close();
        let count_of_all = Arc::clone(shared);
        let ends_with_last = shared.with(|space| {
            space.ends_with_last = space.counters.blocks_out > 0;
            space.ends_with_last
        });
        if ends_with_last {
            core::mem::forget(count_of_all);
        }
    }
}

impl<B: Backend + 'static> Shared<B> {
    /// Takes blocks and sums of all caches: none of them serves the pool any more.
    pub(super) fn close(&self) {
        #[cfg(feature = "std")]
        {
            let mut contents = Vec::new();
            threads::take_all(self.id, |cache| {
                let flow = Flow::new();
                flow.add(&cache.flow);
                contents.push((cache.bins().empty(&self.table, false), flow));
                cache.clear();
            });
            self.take_in(|space, garbage| {
                for (chain, flow) in contents {
                    space.take_chain(chain, garbage);
                    space.flow.add(&flow);
                }
            });
        }
        self.take_in(|space, garbage| space.empty_store(garbage));
    }

    /// Takes blocks into the space. The caller has a count of its own: the last block of a closed
    /// pool releases that of all blocks.
    pub(super) fn take_in(&self, call: impl FnOnce(&mut SpaceOf<B>, &mut Garbage<Pending<B>>)) {
        let (mut garbage, mut idle) = (Vec::new(), Vec::new());
        let is_last = self.with(|space| {
            call(space, &mut garbage);
            while space.counters.reserved > self.keep {
                let Some((segment, memory)) = space.remove_idle_segment() else { break };
                space.unreserve(segment.bytes);
                idle.push(memory);
            }
            let is_last = space.ends_with_last && space.counters.blocks_out == 0;
            space.ends_with_last &= !is_last;
            is_last
        });
        drop((garbage, idle));
        if is_last {
            // SAFETY: in an `Arc`, whose count the last handle left for the blocks; this was the
            // last one, and the flag above says so once.
            unsafe { Arc::decrement_strong_count(core::ptr::from_ref(self)) };
        }
    }
}
