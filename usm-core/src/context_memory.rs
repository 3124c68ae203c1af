//! Memory from a context: the driver's call between reservation, count and record.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::allocation::Allocation;
use crate::backend::{Backend, Block, ContextOps};
use crate::context::Context;
#[cfg(feature = "driver")]
use crate::context_state::RING_SERIAL;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Fallback;
use crate::source::{MemorySource, Request};
use crate::{AllocKind, MemoryType};

/// A driver's call that allocates.
type AllocateCall<'c, B> = dyn FnMut(&<B as Backend>::Context, AllocKind, Layout) -> Result<NonNull<u8>> + 'c;

impl<B: Backend> MemorySource<B> for Context<B> {
    /// Each path returns its own allocation. A shared result would be written, copied and read
    /// again, which costs as much as one of the locks.
    #[inline]
    fn allocate(&self, request: &Request) -> Result<Allocation<B>> {
        self.allocate_by(request, B::Context::allocate)
    }

    fn allocate_zeroed(&self, request: &Request) -> Result<(Allocation<B>, bool)> {
        let mut is_zeroed = false;
        let allocation = self.allocate_by(request, |raw, kind, layout| {
            let pointer;
            (pointer, is_zeroed) = raw.allocate_zeroed(kind, layout)?;
            Ok(pointer)
        })?;
        #[cfg(usm_valgrind)]
        if is_zeroed {
            crate::sync::memcheck::with_values(allocation.as_ptr(), allocation.size());
        }
        Ok((allocation, is_zeroed))
    }

    fn context(&self) -> &Context<B> {
        self
    }
}

impl<B: Backend> Context<B> {
    /// A block of the ring, which is counted apart.
    #[cfg(feature = "driver")]
    pub(crate) fn allocate_for_ring(&self, bytes: usize) -> Result<Allocation<B>> {
        let kind = AllocKind::Host;
        let layout = Request::new(kind, bytes).layout()?;
        let _entered = self.shared().work()?;
        let pointer = self.raw.allocate(kind, layout)?;
        self.shared().count_ring_block(bytes);
        let block = Block { pointer, size: bytes, alignment: layout.align(), kind };
        Ok(self.allocation_of(block, RING_SERIAL))
    }

    /// Gives idle segments of pools and pinned blocks of copies back, for an allocation that found
    /// no memory. Returns whether there were any.
    #[cold]
    pub(crate) fn trim_for(&self, error: &Error) -> bool {
        let is_shortage = matches!(
            error.kind,
            ErrorKind::OutOfMemory { .. } | ErrorKind::OverMemory { .. } | ErrorKind::TooManyBlocks { .. }
        );
        #[cfg(feature = "alloc")]
        if is_shortage && self.shared().trim_pools() > 0 {
            return true;
        }
        #[cfg(feature = "driver")]
        return matches!(error.kind, ErrorKind::OutOfMemory { .. }) && self.trim() > 0;
        #[cfg(not(feature = "driver"))]
        {
            let _ = is_shortage;
            false
        }
    }

    /// Calls the driver, and once more if memory could be given back meanwhile.
    #[inline(always)]
    fn call(
        &self,
        call: &mut (impl FnMut(&B::Context, AllocKind, Layout) -> Result<NonNull<u8>> + ?Sized),
        kind: AllocKind,
        layout: Layout,
    ) -> Result<NonNull<u8>> {
        match call(&self.raw, kind, layout) {
            Err(error) if self.trim_for(&error) => call(&self.raw, kind, layout),
            outcome => outcome,
        }
    }

    /// Allocates for the request by a call of the driver.
    #[inline(always)]
    fn allocate_by(
        &self,
        request: &Request,
        mut call: impl FnMut(&B::Context, AllocKind, Layout) -> Result<NonNull<u8>>,
    ) -> Result<Allocation<B>> {
        let layout = request.layout()?;
        let (shared, kind) = (self.shared(), request.kind);
        let _entered = shared.work()?;
        if !shared.needs_no_reservation(layout.size()) || kind == AllocKind::Unknown || shared.is_watched() {
            return self.allocate_reserved(request, layout, &mut call);
        }
        self.collect();
        let pointer = match self.call(&mut call, kind, layout) {
            Ok(pointer) => pointer,
            Err(error) => {
                if let Ok(memory_type) = MemoryType::try_from(kind) {
                    shared.record_refusal(memory_type, layout.size());
                }
                return Err(error.in_backend(shared.info().backend));
            }
        };
        let block = Block { pointer, size: layout.size(), alignment: layout.align(), kind };
        match shared.allocated_within(&block) {
            Some(serial) => Ok(self.allocation_of(block, serial)),
            // SAFETY: just allocated and unused.
            None => unsafe { self.retry_reserved(request, block, &mut call) },
        }
    }
    /// Reserves bytes within the limits. First frees memory that only waits to be freed, and before
    /// a refusal or a fallback what pools hold without use. Nothing is reserved during that, so a
    /// panic of a foreign owner leaves no reservation.
    pub(crate) fn reserve(
        &self,
        memory_type: MemoryType,
        bytes: usize,
        fallback: Fallback,
    ) -> Result<MemoryType> {
        self.collect();
        let refusal = match self.shared().reserve(memory_type, bytes, Fallback::Refuse) {
            Ok(memory_type) => return Ok(memory_type),
            Err(error) => error,
        };
        if !self.trim_for(&refusal) && fallback == Fallback::Refuse {
            return Err(refusal);
        }
        self.shared().reserve(memory_type, bytes, fallback)
    }

    /// Allocates again after other threads took the rest of the memory.
    ///
    /// # Safety
    /// `block` was just allocated for the request, and nothing uses it.
    #[cold]
    unsafe fn retry_reserved(
        &self,
        request: &Request,
        block: Block,
        call: &mut AllocateCall<'_, B>,
    ) -> Result<Allocation<B>> {
        // SAFETY: the caller's promise.
        unsafe { self.raw.free(&block) };
        self.allocate_reserved(request, request.layout()?, call)
    }

    /// Reserves the bytes before asking the driver, and records the allocation.
    #[cold]
    fn allocate_reserved(
        &self,
        request: &Request,
        layout: Layout,
        call: &mut AllocateCall<'_, B>,
    ) -> Result<Allocation<B>> {
        let wanted_type = MemoryType::try_from(request.kind)?;
        let record_refusal = |_: &Error| self.shared().record_refusal(wanted_type, layout.size());
        let memory_type =
            self.reserve(wanted_type, layout.size(), request.fallback).inspect_err(record_refusal)?;
        let kind = memory_type.kind().unwrap_or(request.kind);
        match self.call(&mut *call, kind, layout) {
            Ok(pointer) => {
                let block = Block { pointer, size: layout.size(), alignment: layout.align(), kind };
                let (serial, record) = self.shared().allocated(&block);
                let allocation = self.allocation_of(block, serial);
                self.shared().record_allocation(record);
                Ok(allocation)
            }
            Err(error) => {
                self.shared().unreserve(memory_type, layout.size());
                record_refusal(&error);
                Err(error.in_backend(self.info().backend))
            }
        }
    }

    /// The owner of a block that was just allocated.
    #[inline(always)]
    fn allocation_of(&self, block: Block, serial: u64) -> Allocation<B> {
        #[cfg(usm_valgrind)]
        crate::sync::memcheck::without_values(block.pointer.as_ptr(), block.size);
        Allocation::owned(self.clone(), block, serial)
    }
}
