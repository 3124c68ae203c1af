//! Blocks of the built-in allocator: of Rust's global allocator, or of the installed one.
//!
//! ```text
//! base                 block (what callers hold)      data
//! | padding | Prefix 16 | head bytes (0 or MemInfo 48) | size bytes
//! ```
//! The prefix (`prefix.rs`) stores the layout, so that `free` needs no size. Behind a MemInfo the
//! data starts 64 bytes after the base. Small blocks have a class (`class.rs`) and are kept for
//! reuse.

use core::alloc::Layout;
use core::ptr::{self, NonNull};

mod builtin;
mod class;
mod free_block;
mod installed;
mod prefix;
mod raw;
#[cfg(feature = "std")]
mod slab;

pub use builtin::BUILTIN;
#[cfg(feature = "capi")]
pub(crate) use builtin::{allocate_plain, reallocate_plain};
pub(crate) use class::{allocate_counted, class_for, keep_counted};
pub(crate) use free_block::FreeBlock;
#[cfg(feature = "std")]
pub(crate) use free_block::{Chain, Stack};
pub(crate) use prefix::PREFIX;
use prefix::{Prefix, place, prefix_of};
use raw::{alloc, dealloc, realloc};
// Locks that forks leave free.
#[cfg(all(feature = "std", unix, not(miri)))]
pub(crate) use slab::CENTRAL;
#[cfg(feature = "std")]
pub(crate) use slab::{begin_generation, counts as kept_counts, give_back};
use usm_core::AllocKind;

use crate::allocator;
use crate::error::Error;
use crate::local;
#[cfg(feature = "debug")]
use crate::misuse;
use crate::system::{self, Switches};

/// Alignment of every block in bytes; C code expects it of `malloc`.
pub(crate) const MIN_ALIGN: usize = 16;
/// Largest alignment in bytes that padding supplies. The system allocator supplies larger ones.
pub(crate) const MAX_PADDED_ALIGN: usize = 64;
/// Largest supported alignment in bytes. C's `unsigned` holds no larger power of two.
const MAX_ALIGN: usize = 1 << 31;

/// Largest size in bytes for [`allocate_padded`]: prefix, head and padding then always fit.
pub(crate) const MAX_PADDED_SIZE: usize = isize::MAX as usize - 1024;

/// Allocates a block of `head + size` bytes; `block + head` is the data. The data is aligned to
/// `align` bytes, the block to at least 16. `head` is a small multiple of 16.
pub(crate) fn allocate(head: usize, size: usize, align: usize) -> Result<NonNull<u8>, Error> {
    let block = allocate_any(head, size, align)?;
    #[cfg(feature = "debug")]
    misuse::record_new(block);
    Ok(block)
}

fn allocate_any(head: usize, size: usize, align: usize) -> Result<NonNull<u8>, Error> {
    if !align.is_power_of_two() {
        return Err(Error::InvalidAlignment { align });
    }
    if align > MAX_ALIGN {
        return Err(Error::SizeOverflow { size, align });
    }
    let align = align.max(MIN_ALIGN);
    let switches = system::switches();
    if switches.allocator() != 0 {
        let block = installed::allocate_small_or_large(head, size, align, switches);
        if block.is_err() && system::switches().allocator() != switches.allocator() {
            // The allocator was removed meanwhile: the next one serves the request.
            return allocate_any(head, size, align);
        }
        return block;
    }
    allocate_own(head, size, align, switches)
}

/// [`allocate`] without an installed allocator. `align` is a power of two from `MIN_ALIGN` to
/// `MAX_ALIGN`.
fn allocate_own(head: usize, size: usize, align: usize, switches: Switches) -> Result<NonNull<u8>, Error> {
    if align > MAX_PADDED_ALIGN {
        return allocate_overaligned(head, size, align);
    }
    if size > MAX_PADDED_SIZE {
        return Err(Error::SizeOverflow { size, align });
    }
    let class = if switches.is_cached() { class::class_for(head, size, align) } else { None };
    let block = match class.zip(class.and_then(|_| local::cache_if_enabled())) {
        Some((class, cache)) => class::allocate(class, cache),
        None => allocate_padded(head, size, align),
    };
    block.ok_or(Error::OutOfMemory { size })
}

/// [`allocate`] from the global allocator, for alignments of 16 to 64 bytes and sizes up to
/// [`MAX_PADDED_SIZE`]. `None` if it has no memory.
#[inline(always)]
pub(crate) fn allocate_padded(head: usize, size: usize, align: usize) -> Option<NonNull<u8>> {
    debug_assert!((MIN_ALIGN..=MAX_PADDED_ALIGN).contains(&align) && size <= MAX_PADDED_SIZE);
    let data = data_offset(head, align);
    // Above 16 bytes the system allocator takes a slow path (100 ns instead of 8); up to a cache
    // line, padding is cheaper.
    let total = data + size + (align - MIN_ALIGN);
    // SAFETY: a power of two, and at most `isize::MAX` because the size is no larger than
    // MAX_PADDED_SIZE.
    let layout = unsafe { Layout::from_size_align_unchecked(total, MIN_ALIGN) };
    // SAFETY: the layout is not empty: it holds at least the prefix.
    let base = NonNull::new(unsafe { alloc(layout) })?;
    // The compiler does not know the allocator's alignment.
    let shift = if align == MIN_ALIGN { 0 } else { base.addr().get().wrapping_neg() & (align - 1) };
    let lead = data - head + shift;
    // SAFETY: `lead >= PREFIX` and `lead + head + size <= total`, because the shift is at most the
    // padding.
    Some(unsafe { place(base, Prefix::new(total, lead, MIN_ALIGN, 0)) })
}

/// [`allocate`] for alignments above 64 bytes.
fn allocate_overaligned(head: usize, size: usize, align: usize) -> Result<NonNull<u8>, Error> {
    let overflow = Error::SizeOverflow { size, align };
    let data = data_offset(head, align);
    let total = data.checked_add(size).ok_or(overflow)?;
    let layout = Layout::from_size_align(total, align).map_err(|_| overflow)?;
    // SAFETY: the layout is not empty: it holds at least the prefix.
    let base = NonNull::new(unsafe { alloc(layout) }).ok_or(Error::OutOfMemory { size })?;
    // SAFETY: `PREFIX <= data - head`, and the data ends with the block.
    Ok(unsafe { place(base, Prefix::new(total, data - head, align, 0)) })
}

/// Bytes from an aligned base to the data. At most `MAX_ALIGN + 64`, so the sum cannot overflow.
#[inline(always)]
const fn data_offset(head: usize, align: usize) -> usize {
    (PREFIX + head + align - 1) & !(align - 1)
}

/// Frees a block.
///
/// # Safety
/// `block` came from this module and is freed once.
#[inline]
pub(crate) unsafe fn free(block: NonNull<u8>) {
    // SAFETY: same contract.
    unsafe { free_with(block, system::switches()) }
}

/// [`free`] for a caller that has read the switches.
///
/// # Safety
/// As for [`free`].
#[inline(always)]
pub(crate) unsafe fn free_with(block: NonNull<u8>, switches: Switches) {
    // SAFETY: same contract.
    if !unsafe { free_usual(block, switches) } {
        // SAFETY: same contract; the block is still live.
        unsafe { free_unusual(block, switches) }
    }
}

/// Frees a block of the global allocator that has a class or the usual alignment. Calls nothing but
/// the global allocator. Otherwise returns false and does nothing.
///
/// # Safety
/// As for [`free`].
#[inline(always)]
pub(crate) unsafe fn free_usual(block: NonNull<u8>, switches: Switches) -> bool {
    #[cfg(feature = "debug")]
    misuse::record_free(block, "free");
    // SAFETY: the block is live.
    let prefix = unsafe { prefix_of(block) };
    if prefix.is_of_class() {
        // SAFETY: a block of a class, which the caller gives up.
        unsafe { class::free(block, prefix, switches) };
        return true;
    }
    if prefix.word == Prefix::USUAL {
        // The base is predicted by the branch instead of computed from the loaded prefix, so
        // freeing does not wait for the load.
        // SAFETY: the distance in the usual prefix.
        let base = unsafe { block.sub(PREFIX) };
        // SAFETY: the layout that the block was allocated with, valid then.
        unsafe { release(base, Prefix { total: prefix.total, word: Prefix::USUAL }) };
        return true;
    }
    false
}

/// Frees the blocks that [`free_usual`] refuses, and kept ones: blocks of another alignment, or of
/// an installed allocator. A separate function, so that the usual path does not save its registers.
/// # Safety
/// As for [`free`].
#[inline(never)]
pub(crate) unsafe fn free_unusual(block: NonNull<u8>, switches: Switches) {
    // SAFETY: the block is live.
    let prefix = unsafe { prefix_of(block) };
    #[cfg(feature = "std")]
    if prefix.is_slabbed() {
        // SAFETY: same contract.
        return unsafe { slab::free(block, prefix, switches) };
    }
    #[cfg(not(feature = "std"))]
    let _ = switches;
    // SAFETY: `lead` is the distance from the base.
    let base = unsafe { block.sub(prefix.lead()) };
    if prefix.allocator() != 0 {
        // SAFETY: the base of a block of that allocator.
        unsafe { installed::free(prefix.allocator(), base) }
    } else {
        // SAFETY: the layout that the block was allocated with, valid then.
        unsafe { release(base, prefix) }
    }
}

/// Frees a base through the global allocator.
///
/// # Safety
/// `base` was allocated with the size and alignment of `prefix`.
#[inline(always)]
unsafe fn release(base: NonNull<u8>, prefix: Prefix) {
    // SAFETY: size and alignment made a valid layout at allocation.
    let layout = unsafe { Layout::from_size_align_unchecked(prefix.total, prefix.align()) };
    // SAFETY: same layout as at allocation.
    unsafe { dealloc(base.as_ptr(), layout) }
}

/// Resizes a block of alignment 16 without a head, or allocates if `block` is null. On failure the
/// old block is unchanged.
///
/// # Safety
/// `block` is null or came from `allocate(0, _, 16)`. On success the caller gives it up.
pub(crate) unsafe fn reallocate(block: *mut u8, size: usize) -> Result<NonNull<u8>, Error> {
    let Some(block) = NonNull::new(block) else {
        return allocate(0, size, MIN_ALIGN);
    };
    #[cfg(feature = "debug")]
    misuse::check_block(block, "reallocate");
    // SAFETY: same contract.
    let new = unsafe { reallocate_any(block, size) };
    #[cfg(feature = "debug")]
    misuse::record_new(*new.as_ref().unwrap_or(&block));
    new
}

/// # Safety
/// As for [`reallocate`].
unsafe fn reallocate_any(block: NonNull<u8>, size: usize) -> Result<NonNull<u8>, Error> {
    // SAFETY: the block is live.
    let mut prefix = unsafe { prefix_of(block) };
    if prefix.allocator() != 0 {
        // SAFETY: same contract.
        return unsafe { installed::reallocate(block, prefix, size) };
    }
    let lead = prefix.lead();
    let overflow = Error::SizeOverflow { size, align: MIN_ALIGN };
    let total = lead.checked_add(size).ok_or(overflow)?;
    if prefix.class() != 0 {
        if total <= prefix.total {
            return Ok(block);
        }
        // The block stays with the global allocator, even if another one was installed meanwhile.
        let new = allocate_own(0, size, MIN_ALIGN, system::switches())?;
        // SAFETY: both blocks are live and distinct; the old one has `total - lead` bytes, the new
        // one more.
        unsafe { ptr::copy_nonoverlapping(block.as_ptr(), new.as_ptr(), prefix.total - lead) };
        // SAFETY: a block of this module, which the caller gives up.
        unsafe { free(block) };
        return Ok(new);
    }
    let align = prefix.align();
    Layout::from_size_align(total, align).map_err(|_| overflow)?;
    // SAFETY: valid at allocation.
    let old = unsafe { Layout::from_size_align_unchecked(prefix.total, align) };
    // SAFETY: `lead` is the distance from the base.
    let base = unsafe { block.sub(lead) };
    // Before the call: afterwards another thread may own the address. The caller knows the outcome.
    #[cfg(feature = "debug")]
    misuse::record_free(block, "reallocate");
    // SAFETY: same base and layout as at allocation; the new size is not zero and was just checked.
    let base =
        NonNull::new(unsafe { realloc(base.as_ptr(), old, total) }).ok_or(Error::OutOfMemory { size })?;
    prefix.total = total;
    // SAFETY: `total >= lead >= PREFIX`; the base keeps its alignment, so `lead` keeps its meaning.
    Ok(unsafe { place(base, prefix) })
}

/// The kind of memory of the block's installed allocator; `None` for the global one.
///
/// # Safety
/// `block` is a live block of this module.
pub(crate) unsafe fn kind_of(block: NonNull<u8>) -> Option<AllocKind> {
    // SAFETY: as the caller promises.
    allocator::kind_of(unsafe { prefix_of(block) }.allocator())
}
