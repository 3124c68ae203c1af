//! Memory on the way: where the processor does its part of a copy when it does not reach an end of
//! it.

use crate::AllocKind;
use crate::allocation::Allocation;
use crate::backend::Backend;
use crate::context::Context;
use crate::error::Result;

/// Elements of the heap blocks: as aligned as any allocator's blocks are, so that none does more
/// than usual for them.
#[cfg(feature = "alloc")]
type Word = core::mem::MaybeUninit<u128>;

/// Uninitialised memory of the process that operations of the context copy from and to. It lives
/// until the last of them is complete, as every allocation. No ledger counts it: it is not the
/// runtime's.
///
/// # Safety
/// Only copies of the runtime touch it, and the host: it is not USM, and no device may be given its
/// address otherwise.
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
    // SAFETY: the bytes live as long as the heap block, which the allocation keeps until its last
    // operation is done and which nobody else knows. They are no USM, which the caller minds.
    Ok(unsafe { Allocation::foreign(context.clone(), block, Box::new(heap)) })
}

/// Without a heap, host memory of the context.
#[cfg(not(feature = "alloc"))]
pub(crate) unsafe fn staging<B: Backend>(context: &Context<B>, bytes: usize) -> Result<Allocation<B>> {
    use crate::source::{MemorySource as _, Request};

    context.allocate(&Request::new(AllocKind::Host, bytes))
}
