//! What a submission uses.

use core::fmt;

use crate::access::Access;
use crate::allocation::Allocation;
use crate::backend::Backend;
use crate::buffer::Buffer;
use crate::uses::Uses;

/// One memory object that a submission uses, and how.
///
/// Naming a use touches no memory, so a write takes a shared reference too: the object then
/// remembers the work as one that writes. Several threads may name one object at the same time; it
/// remembers all of their work and is freed after all of it. The exception is a usage by
/// [`alone`](Self::alone), which only who has the object for himself can make, and which takes no
/// lock. Who really writes, in code that Rust did not check, promises where that is said
/// ([`Queue::submit`](super::Queue::submit), a launch of such code) that nobody else uses the bytes
/// meanwhile.
pub struct Usage<'a, B: Backend> {
    pub(super) uses: &'a Uses<B>,
    pub(super) context: u64,
    pub(super) bytes: usize,
    access: Access,
    /// Whether nobody else reaches the uses, so that their lock is not needed.
    #[cfg_attr(not(feature = "alloc"), allow(dead_code, reason = "there is no list of uses"))]
    alone: bool,
}

// Not derived: that would ask for a backend that can be copied.
impl<B: Backend> Clone for Usage<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for Usage<'_, B> {}

impl<B: Backend> fmt::Debug for Usage<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Usage")
            .field("access", &self.access)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl<'a, B: Backend> Usage<'a, B> {
    /// A read of an allocation.
    #[must_use]
    pub fn read(allocation: &'a Allocation<B>) -> Self {
        Self::of(allocation, Access::Read)
    }

    /// A write, or read and write, of an allocation.
    #[must_use]
    pub fn write(allocation: &'a Allocation<B>) -> Self {
        Self::of(allocation, Access::Write)
    }

    /// An access of an allocation.
    #[inline]
    #[must_use]
    pub fn of(allocation: &'a Allocation<B>, access: Access) -> Self {
        let (uses, context, bytes) = (allocation.uses(), allocation.context().id(), allocation.size());
        Self { uses, context, bytes, access, alone: false }
    }

    /// As [`of`](Self::of), by somebody who has the allocation for himself, such as through a
    /// `&mut`: a submission then takes no lock for it.
    ///
    /// # Safety
    /// While a submission is given the result or a copy of it, nobody else reaches the allocation,
    /// not even through another usage.
    #[inline]
    #[must_use]
    pub unsafe fn alone(allocation: &'a Allocation<B>, access: Access) -> Self {
        Self { alone: true, ..Self::of(allocation, access) }
    }

    /// An access of a buffer.
    #[must_use]
    pub fn buffer(buffer: &'a Buffer<B>, access: Access) -> Self {
        let (uses, context, bytes) = (buffer.uses(), buffer.context().id(), buffer.size());
        Self { uses, context, bytes, access, alone: false }
    }

    #[cfg(feature = "alloc")]
    #[inline]
    pub(super) fn dependencies(&self, queue: u64, after: &mut alloc::vec::Vec<B::Event>) -> u64 {
        if self.alone {
            // SAFETY: the promise that `alone` was given.
            return unsafe { self.uses.dependencies_alone(self.access, queue, after) };
        }
        self.uses.dependencies(self.access, queue, after)
    }

    #[cfg(feature = "alloc")]
    #[inline]
    pub(super) fn record(&self, queue: u64, event: B::Event, known: u64) {
        if self.alone {
            // SAFETY: the promise that `alone` was given.
            return unsafe { self.uses.record_alone(self.access, queue, event, known) };
        }
        self.uses.record(self.access, queue, event, known);
    }
}
