//! Opaque memory objects in the manner of `cl_mem`.

use core::fmt;
use core::mem::ManuallyDrop;

use crate::backend::{Backend, Buffers};
use crate::context::Context;
use crate::error::{ErrorKind, Result};
use crate::uses::Uses;

/// A memory object without an address: only copies reach its content.
pub struct Buffer<B: Backend> {
    context: Context<B>,
    raw: ManuallyDrop<<B::Buffers as Buffers<B>>::Raw>,
    size: usize,
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
        Self { context, raw: ManuallyDrop::new(raw), size, uses: Uses::new() }
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
        let pending = self.uses.take();
        // SAFETY: drop runs once, and nothing reads `raw` afterwards.
        let raw = unsafe { ManuallyDrop::take(&mut self.raw) };
        #[cfg(feature = "alloc")]
        crate::allocation::settle(&self.context, crate::deferred::Release::Buffer(raw, self.size), pending);
        #[cfg(not(feature = "alloc"))]
        {
            let _nothing_in_flight = pending;
            // SAFETY: created by this context, dropped once, and without `alloc` nothing is in flight.
            let destroy = || unsafe { B::Buffers::destroy(self.context.raw(), raw) };
            self.context.shared().free(crate::MemoryType::Buffer, None, self.size, false, destroy);
        }
    }
}
