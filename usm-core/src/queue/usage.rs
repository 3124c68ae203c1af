//! The memory objects that a submission uses.

use core::fmt;

use crate::access::Access;
use crate::allocation::Allocation;
use crate::backend::Backend;
use crate::buffer::Buffer;
use crate::uses::Uses;

/// A memory object and its access by a submission.
///
/// A usage touches no memory, so a write takes a shared reference too: the object then records the
/// work as a write. Several threads may name one object at the same time; it records all of their
/// work and is freed after all of it. Code that Rust did not check may write through a usage; its
/// caller promises ([`Queue::submit`](super::Queue::submit), a launch of such code) that no other
/// code uses the bytes meanwhile.
pub struct Usage<'a, B: Backend> {
    pub(super) uses: &'a Uses<B>,
    pub(super) context: u64,
    pub(super) bytes: usize,
    access: Access,
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
        Self { uses, context, bytes, access }
    }

    /// An access of a buffer.
    #[must_use]
    pub fn buffer(buffer: &'a Buffer<B>, access: Access) -> Self {
        let (uses, context, bytes) = (buffer.uses(), buffer.context().id(), buffer.size());
        Self { uses, context, bytes, access }
    }

    #[cfg(feature = "alloc")]
    #[inline]
    pub(crate) fn dependencies(
        &self,
        queue: u64,
        after: &mut alloc::vec::Vec<B::Event>,
    ) -> crate::error::Result<u64> {
        self.uses.dependencies(self.access, queue, after)
    }

    #[cfg(feature = "alloc")]
    #[inline]
    pub(crate) fn record(&self, position: crate::pending::Position, event: B::Event, last_serial: u64) {
        self.uses.record(self.access, position, event, last_serial);
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn add_outcome(&self, outcome: &alloc::sync::Arc<crate::outcome::Outcome>) {
        self.uses.add_outcome(self.access, outcome);
    }
}
