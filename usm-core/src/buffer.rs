//! Opaque memory objects in the manner of `cl_mem`.

use core::fmt;
use core::mem::ManuallyDrop;

use crate::backend::{Backend, Buffers};
use crate::context::Context;
#[cfg(feature = "alloc")]
use crate::deferred::{Release, release_after};
use crate::error::{ErrorKind, Result};
use crate::uses::Uses;

mod copy;

/// A memory object without an address: only copies and kernels reach its content. Every byte is
/// zero at creation, so reading a byte that was not written is safe.
pub struct Buffer<B: Backend> {
    context: Context<B>,
    raw: ManuallyDrop<<B::Buffers as Buffers<B>>::Raw>,
    size: usize,
    /// Whether the ledger counts it.
    is_counted: bool,
    uses: Uses<B>,
}

impl<B: Backend> fmt::Debug for Buffer<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("backend", &self.context.info().backend)
            .field("bytes", &self.size)
            .finish()
    }
}

impl<B: Backend> Buffer<B> {
    pub(crate) fn new(context: Context<B>, raw: <B::Buffers as Buffers<B>>::Raw, size: usize) -> Self {
        Self { context, raw: ManuallyDrop::new(raw), size, is_counted: true, uses: Uses::new() }
    }

    /// A foreign buffer that `raw` keeps. [`Buffers::destroy`] gives it back after every operation
    /// that uses it. The ledger does not count it.
    ///
    /// # Safety
    /// `raw` is a buffer of `context`'s native context with `size` bytes, and every byte has a
    /// value. The caller must order accesses made outside this crate, also through another object
    /// over the same bytes if [`Buffers::place`] does not know of it.
    #[must_use]
    pub unsafe fn foreign(context: Context<B>, raw: <B::Buffers as Buffers<B>>::Raw, size: usize) -> Self {
        let mut buffer = Self::new(context, raw, size);
        buffer.is_counted = false;
        buffer
    }

    /// A foreign buffer whose ownership passes to the context: the ledger counts it and it is
    /// destroyed with this. The limits count it and do not refuse it.
    ///
    /// # Safety
    /// As [`foreign`](Self::foreign), and no other code uses it any more.
    #[must_use]
    pub unsafe fn taken(context: Context<B>, raw: <B::Buffers as Buffers<B>>::Raw, size: usize) -> Self {
        let record = context.shared().count_foreign_buffer(size);
        let buffer = Self::new(context, raw, size);
        buffer.context.shared().record_allocation(record);
        buffer
    }

    /// The context.
    #[must_use]
    pub fn context(&self) -> &Context<B> {
        &self.context
    }

    /// Bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The backend's own handle.
    #[must_use]
    pub fn raw(&self) -> &<B::Buffers as Buffers<B>>::Raw {
        &self.raw
    }

    /// The handle as a kernel's argument; `None` if kernels take no buffers.
    #[must_use]
    pub fn argument(&self) -> Option<usize> {
        B::Buffers::argument(&self.raw)
    }

    pub(crate) fn uses(&self) -> &Uses<B> {
        &self.uses
    }

    pub(crate) fn check_range(&self, offset: usize, len: usize) -> Result<()> {
        match offset.checked_add(len) {
            Some(end) if end <= self.size => Ok(()),
            _ => Err(ErrorKind::OutOfBounds { offset, len, size: self.size }.into()),
        }
    }
}

impl<B: Backend> Drop for Buffer<B> {
    fn drop(&mut self) {
        let pending = self.uses.take(self.context.id());
        // SAFETY: drop runs once, and nothing reads `raw` afterwards.
        let raw = unsafe { ManuallyDrop::take(&mut self.raw) };
        let is_counted = self.is_counted.then_some(self.size);
        #[cfg(feature = "alloc")]
        release_after::<B>(self.context.raw(), Release::Buffer(raw, is_counted), pending);
        #[cfg(not(feature = "alloc"))]
        {
            let _nothing_in_flight = pending;
            // SAFETY: created by this context, dropped once, and without `alloc` nothing is in
            // flight.
            let destroy = || unsafe { B::Buffers::destroy(self.context.raw(), raw) };
            match is_counted {
                Some(bytes) => {
                    self.context.shared().free(crate::MemoryType::Buffer, None, bytes, destroy);
                }
                None => destroy(),
            }
        }
    }
}
