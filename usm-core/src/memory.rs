//! Memory of any of the four types, by one call.

use core::fmt;

use crate::MemoryType;
use crate::allocation::Allocation;
use crate::backend::{Backend, Buffers};
use crate::buffer::Buffer;
use crate::context::Context;
use crate::error::{ErrorKind, Result};
use crate::limits::Fallback;
use crate::source::{MemorySource as _, Request};

/// Result of [`Context::allocate_memory`]: one of the four memory types.
pub enum Memory<B: Backend> {
    /// USM memory; the allocation knows its kind.
    Usm(Allocation<B>),
    /// An opaque buffer.
    Buffer(Buffer<B>),
}

impl<B: Backend> fmt::Debug for Memory<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usm(allocation) => allocation.fmt(f),
            Self::Buffer(buffer) => buffer.fmt(f),
        }
    }
}

impl<B: Backend> Memory<B> {
    /// The memory's type.
    #[must_use]
    pub fn memory_type(&self) -> MemoryType {
        match self {
            Self::Usm(allocation) => MemoryType::of(allocation.kind()),
            Self::Buffer(_) => MemoryType::Buffer,
        }
    }
}

impl<B: Backend> Context<B> {
    /// Memory of any of the four types by one call: an opaque buffer or USM memory of a kind.
    ///
    /// `alignment` in bytes (0: default) applies to USM memory. If device memory is full and
    /// `fallback` allows it, the result is host memory instead, also for a buffer;
    /// [`Memory::memory_type`] tells which.
    ///
    /// # Errors
    /// The request's, the limits', the runtime's; [`ErrorKind::Unsupported`] for buffers on a
    /// backend without them.
    pub fn allocate_memory(
        &self,
        memory_type: MemoryType,
        size: usize,
        alignment: usize,
        fallback: Fallback,
    ) -> Result<Memory<B>> {
        let _entered = self.shared().work()?;
        let Some(kind) = memory_type.kind() else {
            return match self.reserve(memory_type, size, fallback)? {
                MemoryType::Buffer => self.create_buffer(size).map(Memory::Buffer),
                _ => self.allocate_memory(MemoryType::UsmHost, size, alignment, fallback),
            };
        };
        let request = Request { kind, size, alignment, fallback };
        self.allocate(&request).map(Memory::Usm)
    }

    /// The bytes are already reserved.
    fn create_buffer(&self, size: usize) -> Result<Buffer<B>> {
        let raw_buffer =
            if size == 0 { Err(ErrorKind::ZeroSize.into()) } else { B::Buffers::create(&self.raw, size) };
        match raw_buffer {
            Ok(raw) => {
                let record = self.shared().count_buffer(size);
                let buffer = Buffer::new(self.clone(), raw, size);
                self.shared().record_allocation(record);
                Ok(buffer)
            }
            Err(error) => {
                self.shared().unreserve(MemoryType::Buffer, size);
                Err(error.in_backend(self.info().backend))
            }
        }
    }
}
