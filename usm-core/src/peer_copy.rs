//! Copies between the device memory of two contexts.

use alloc::vec::Vec;

use crate::access::Access;
use crate::allocation::Allocation;
use crate::backend::{Backend, Peer};
use crate::checks::check_same_context;
use crate::error::{ErrorKind, Result};
use crate::event::Event;
use crate::queue::{Queue, Usage};
use crate::{AllocKind, Kind, UsmVec};

impl<B: Backend> Queue<B> {
    /// Copies all elements of `src`, device memory of another context, to `dst`, device memory of
    /// the queue's context, without a way through the process. The copy is ordered like every
    /// other: it follows the earlier work on both arrays, and their later work follows it.
    ///
    /// # Errors
    /// [`ErrorKind::LengthMismatch`], and as [`copy_bytes_from_peer`](Self::copy_bytes_from_peer).
    pub fn copy_from_peer<T: crate::Element, K1: Kind, K2: Kind>(
        &self,
        dst: &mut UsmVec<T, K1, B>,
        src: &UsmVec<T, K2, B>,
    ) -> Result<Event<B>> {
        let (expected, found) = (dst.len(), src.len());
        if expected != found {
            return Err(ErrorKind::LengthMismatch { expected, found }.into());
        }
        let bytes = src.bytes();
        // SAFETY: only bytes of the same type are written.
        let memory = unsafe { dst.allocation_mut() };
        self.copy_bytes_from_peer((memory, 0), (src.allocation(), 0), bytes)
    }

    /// Copies `len` bytes of another context's device memory. Access of one device to the other's
    /// memory need not be [enabled](crate::Context::enable_peer_access).
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the runtime has no such copies, for memory of other kinds or
    /// from a queue, and between two libraries: copy through the program's memory.
    /// [`ErrorKind::OutOfBounds`], [`ErrorKind::WrongContext`] if `dst` is not of the queue's
    /// context, and the runtime's.
    pub fn copy_bytes_from_peer(
        &self,
        (dst, dst_offset): (&mut Allocation<B>, usize),
        (src, src_offset): (&Allocation<B>, usize),
        len: usize,
    ) -> Result<Event<B>> {
        // SAFETY: `dst` is borrowed exclusively, and writers of `src` need exclusive access.
        unsafe { self.copy_shared_from_peer((dst, dst_offset), (src, src_offset), len) }
    }

    /// As [`copy_bytes_from_peer`](Self::copy_bytes_from_peer), for memory with several handles.
    ///
    /// # Safety
    /// Until the call returns, no other thread submits work over the two allocations; and code that
    /// uses the bytes without this crate does so only before the call or after the event.
    ///
    /// # Errors
    /// As for that function.
    pub unsafe fn copy_shared_from_peer(
        &self,
        (dst, dst_offset): (&Allocation<B>, usize),
        (src, src_offset): (&Allocation<B>, usize),
        len: usize,
    ) -> Result<Event<B>> {
        dst.check_range(dst_offset, len)?;
        src.check_range(src_offset, len)?;
        check_same_context(self.context().id(), dst.context().id())?;
        let are_plain = [dst, src].iter().all(|end| end.kind() == AllocKind::Device && !end.is_of_queue());
        if !are_plain || src.context().id() == dst.context().id() {
            return Err(ErrorKind::Unsupported { operation: "a peer copy of this memory" }.into());
        }
        if len == 0 {
            return self.barrier_with_usages(&[Usage::write(dst)], &[]);
        }
        // A launch's failure is reported in its own context.
        if !src.unreported(Access::Read).is_empty() {
            src.wait_for_uses(Access::Read)?;
        }
        let (to, from) = (dst.as_ptr().wrapping_add(dst_offset), src.as_ptr().wrapping_add(src_offset));
        let (ours, theirs) = (self.context(), src.context());
        let _admitted = (ours.shared().submit()?, theirs.shared().submit()?);
        let usages = [Usage::write(dst), Usage::read(src)];
        let submit = |_: &B::Context, peer: &B::Context| {
            let mut after = Vec::new();
            let serials = [
                usages[0].dependencies(self.id(), &mut after)?,
                usages[1].dependencies(self.id(), &mut after)?,
            ];
            // SAFETY: checked ranges of live device memory in two contexts of one library; both
            // allocations keep the event, and the copy follows their earlier work.
            let copy = || unsafe { B::Peer::copy(self.raw(), peer, (to, from.cast_const()), len, &after) };
            let (event, position) = self.clock().position(copy)?;
            for (usage, serial) in usages.iter().zip(serials) {
                usage.record(position, event.clone(), serial);
            }
            Ok(Event::of(event, ours.shared()))
        };
        let other_library = || Err(ErrorKind::Unsupported { operation: "a copy between libraries" }.into());
        ours.with_peer(theirs, submit).unwrap_or_else(other_library)
    }
}
