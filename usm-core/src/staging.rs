//! Staging memory for copies whose source or destination the processor cannot access.

use crate::AllocKind;
use crate::allocation::Allocation;
use crate::backend::Backend;
use crate::context::Context;
use crate::error::Result;

/// The element of the heap blocks. It has the alignment of every allocator's blocks, so no
/// allocator does extra work.
#[cfg(feature = "alloc")]
type Word = core::mem::MaybeUninit<u128>;

/// Uninitialised memory of the process, as source or destination of copies of the context. Like
/// every allocation it lives until the last of them is complete. No ledger counts it, because the
/// runtime did not allocate it.
///
/// # Safety
/// Only the host and the runtime's copies access it: it is not USM, so no other device code may get
/// its address.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
#[cfg(feature = "alloc")]
pub(crate) unsafe fn staging<B: Backend>(context: &Context<B>, bytes: usize) -> Result<Allocation<B>> {
    use alloc::boxed::Box;
    use alloc::vec::Vec;
    use core::ptr::NonNull;

    use crate::MemoryType;
    use crate::backend::Block;
    use crate::error::{Error, ErrorKind};

    let out_of_memory = || {
        let (memory_type, requested) = (MemoryType::UsmHost, bytes as u64);
        Error::from(ErrorKind::OutOfMemory { memory_type, requested }).in_backend(context.info().backend)
    };
    let mut heap = Vec::<Word>::new();
    heap.try_reserve_exact(bytes.div_ceil(size_of::<Word>())).map_err(|_| out_of_memory())?;
    let pointer = NonNull::new(heap.as_mut_ptr()).ok_or_else(out_of_memory)?.cast();
    let block = Block { pointer, size: bytes, alignment: align_of::<Word>(), kind: AllocKind::Host };
    // SAFETY: the bytes live as long as the heap block, which only the allocation knows and keeps
    // until its last operation is complete. They are not USM, which the caller respects.
    Ok(unsafe { Allocation::foreign(context.clone(), block, Box::new(heap)) })
}

/// Without a heap this is host memory of the context.
#[cfg(not(feature = "alloc"))]
pub(crate) unsafe fn staging<B: Backend>(context: &Context<B>, bytes: usize) -> Result<Allocation<B>> {
    use crate::source::{MemorySource as _, Request};

    context.allocate(&Request::new(AllocKind::Host, bytes))
}
