//! Blocks of an installed allocator.

use core::ptr::{self, NonNull};

use super::{MIN_ALIGN, PREFIX, Prefix, place};
use crate::allocator;
use crate::error::Error;
#[cfg(feature = "debug")]
use crate::misuse;
use crate::system::{self, Switches};

/// [`super::allocate`] while an allocator is installed: from a slab if the block is small and the
/// allocator was installed with slabs.
#[inline(never)]
pub(super) fn allocate_small_or_large(
    head: usize,
    size: usize,
    align: usize,
    switches: Switches,
) -> Result<NonNull<u8>, Error> {
    #[cfg(feature = "std")]
    if let Some(block) = super::slab::allocate(head, size, align, switches) {
        return Ok(block);
    }
    allocate(switches.allocator(), head, size, align)
}

/// [`super::allocate`] from an installed allocator, whose blocks may have any alignment.
#[cold]
#[inline(never)]
pub(super) fn allocate(allocator: u8, head: usize, size: usize, align: usize) -> Result<NonNull<u8>, Error> {
    let total = total_bytes(head, size, align)?;
    let functions = allocator::installed(allocator).ok_or(Error::IncompleteAllocator)?;
    let malloc = functions.malloc.ok_or(Error::IncompleteAllocator)?;
    // SAFETY: the allocator's own function with its own opaque pointer.
    let base = unsafe { malloc(total, functions.opaque) };
    let base = NonNull::new(base.cast::<u8>()).ok_or(Error::OutOfMemory { size })?;
    let prefix = Prefix::installed(total, leading_bytes(base, head, align), allocator);
    // SAFETY: `total` has room for the prefix, the head, the data and the padding up to its
    // alignment.
    Ok(unsafe { place(base, prefix) })
}

/// Bytes that hold prefix, head and data at any alignment of the base.
fn total_bytes(head: usize, size: usize, align: usize) -> Result<usize, Error> {
    let overflow = Error::SizeOverflow { size, align };
    let total = size.checked_add(PREFIX + head + align - 1).ok_or(overflow)?;
    if total > isize::MAX as usize { Err(overflow) } else { Ok(total) }
}

/// Bytes from the base to the block, such that the data behind the head is aligned.
fn leading_bytes(base: NonNull<u8>, head: usize, align: usize) -> usize {
    let end_of_head = base.addr().get() + PREFIX + head;
    PREFIX + (end_of_head.wrapping_neg() & (align - 1))
}

/// # Safety
/// `base` came from that allocator and is freed once.
pub(super) unsafe fn free(allocator: u8, base: NonNull<u8>) {
    let Some(functions) = allocator::installed(allocator) else { return };
    if let Some(free) = functions.free {
        // SAFETY: the allocator's own function, with its block and its opaque pointer.
        unsafe { free(base.as_ptr().cast(), functions.opaque) }
    }
}

/// [`super::reallocate`] of a block of an installed allocator. The block stays with that allocator.
///
/// # Safety
/// As for [`super::reallocate`]; `prefix` is the block's.
pub(super) unsafe fn reallocate(
    block: NonNull<u8>,
    prefix: Prefix,
    size: usize,
) -> Result<NonNull<u8>, Error> {
    if prefix.is_slabbed() {
        // SAFETY: same contract.
        return unsafe { move_from_slab(block, prefix, size) };
    }
    let (allocator, lead) = (prefix.allocator(), prefix.lead());
    let total = total_bytes(0, size, MIN_ALIGN)?;
    let copy_len = (prefix.total - lead).min(size);
    // SAFETY: `lead` is the distance from the base.
    let base = unsafe { block.sub(lead) };
    let functions = allocator::installed(allocator).ok_or(Error::IncompleteAllocator)?;
    let new_base = functions.realloc.and_then(|realloc| {
        // Before the call: afterwards another thread may own the address.
        #[cfg(feature = "debug")]
        misuse::record_free(block, "reallocate");
        // SAFETY: the allocator's own function, with its block and its opaque pointer.
        NonNull::new(unsafe { realloc(base.as_ptr().cast(), total, functions.opaque) }.cast::<u8>())
    });
    let Some(base) = new_base else {
        #[cfg(feature = "debug")]
        misuse::record_new(block);
        // No `realloc`, or it refused: allocate, copy, free.
        let new = allocate(allocator, 0, size, MIN_ALIGN)?;
        // SAFETY: both blocks are live and distinct, and hold `copy_len` bytes.
        unsafe { ptr::copy_nonoverlapping(block.as_ptr(), new.as_ptr(), copy_len) };
        // SAFETY: a block of this module, which the caller gives up.
        unsafe { super::free(block) };
        return Ok(new);
    };
    let new_lead = leading_bytes(base, 0, MIN_ALIGN);
    if new_lead != lead {
        // SAFETY: the contents kept their old distance from the base.
        let from = unsafe { base.add(lead) };
        // SAFETY: inside the block: `moved < PREFIX + MIN_ALIGN`.
        let to = unsafe { base.add(new_lead) };
        // SAFETY: `copy_len` bytes lie inside the block at both distances.
        unsafe { ptr::copy(from.as_ptr(), to.as_ptr(), copy_len) };
    }
    // SAFETY: `total` has room for the prefix, the data and the padding up to its alignment.
    Ok(unsafe { place(base, Prefix::installed(total, new_lead, allocator)) })
}

/// [`reallocate`] of a block in a slab.
///
/// # Safety
/// As for [`reallocate`].
unsafe fn move_from_slab(block: NonNull<u8>, prefix: Prefix, size: usize) -> Result<NonNull<u8>, Error> {
    let room = prefix.total - prefix.slab_lead();
    if size <= room {
        return Ok(block);
    }
    let switches = system::switches();
    let new = if switches.allocator() == prefix.allocator() {
        allocate_small_or_large(0, size, MIN_ALIGN, switches)?
    } else {
        allocate(prefix.allocator(), 0, size, MIN_ALIGN)?
    };
    // SAFETY: both blocks are live and distinct; the old one has `room` bytes, the new one more.
    unsafe { ptr::copy_nonoverlapping(block.as_ptr(), new.as_ptr(), room) };
    // SAFETY: a block of this module, which the caller gives up.
    unsafe { super::free(block) };
    Ok(new)
}
