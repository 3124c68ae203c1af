//! Size classes of small blocks, which a thread keeps for reuse (see [`local`]). All blocks of a
//! class have the same size and alignment, so any of them serves any request of the class.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::free_block::FreeBlock;
use super::raw::alloc;
use super::{MIN_ALIGN, PREFIX, Prefix, data_offset, place, prefix_of};
use crate::local;
use crate::stats::Event;
use crate::system::Switches;

/// Alignment in bytes of a class: of its prefix, and of data behind a header. Compiled code asks
/// for this alignment of arrays. Padding supplies the difference to the global allocator's
/// alignment, because an over-aligned request there costs ten times the block.
const CLASS_ALIGN: usize = 32;
const PADDING: usize = CLASS_ALIGN - MIN_ALIGN;

/// The class for a request; sizes as for [`super::allocate_padded`], `align` a power of two. The
/// bytes in front of the data are a multiple of `CLASS_ALIGN`, or `align` is no more than every
/// block has.
#[inline(always)]
pub(crate) fn class_for(head: usize, size: usize, align: usize) -> Option<u8> {
    let data = data_offset(head, align);
    if align <= CLASS_ALIGN && data - head == PREFIX { local::class_of(data + size) } else { None }
}

/// Takes a kept block of `class` from this thread. If statistics are on, counts it as a header with
/// its memory.
#[inline(always)]
pub(crate) fn allocate_counted(class: u8, switches: Switches) -> Option<NonNull<u8>> {
    local::take(class, switches.is_counted(), [Event::Alloc, Event::MiAlloc]).map(FreeBlock::into_block)
}

/// A block of `class`: kept by this thread, or fresh. `None` if there is no memory.
pub(super) fn allocate(class: u8, cache: &local::Cache) -> Option<NonNull<u8>> {
    if let Some(block) = cache.take(class) {
        return Some(block.into_block());
    }
    let total = local::class_size(class) + PADDING;
    let layout = Layout::from_size_align(total, MIN_ALIGN).ok()?;
    // SAFETY: a class is never empty.
    let base = NonNull::new(unsafe { alloc(layout) })?;
    let shift = base.addr().get().wrapping_neg() & (CLASS_ALIGN - 1);
    // SAFETY: the shift is at most the padding, and a class has room for more than the prefix.
    Some(unsafe { place(base, Prefix::new(total, PREFIX + shift, MIN_ALIGN, class)) })
}

/// Keeps a block if it has a class and the thread may keep it. If statistics are on, counts it as a
/// freed header with its memory. Otherwise returns false and does nothing.
///
/// # Safety
/// As for [`super::free`].
#[inline(always)]
pub(crate) unsafe fn keep_counted(block: NonNull<u8>, switches: Switches) -> bool {
    // SAFETY: the block is live.
    let prefix = unsafe { prefix_of(block) };
    if cfg!(feature = "debug") || !prefix.is_of_class() || !switches.is_cached() {
        return false;
    }
    // SAFETY: a block of a class, which the caller gives up. A block that is not kept is the
    // caller's again.
    let free_block = unsafe { FreeBlock::new(block) };
    local::put(prefix.class(), free_block, switches.is_counted(), [Event::Free, Event::MiFree]).is_none()
}

/// Frees a block of a class; the thread keeps it if it may.
///
/// # Safety
/// As for [`super::free`]; `prefix` is the block's and names a class.
#[inline(always)]
pub(super) unsafe fn free(block: NonNull<u8>, prefix: Prefix, switches: Switches) {
    // SAFETY: a block of a class, which the caller gives up.
    let free_block = unsafe { FreeBlock::new(block) };
    let left = if switches.is_cached() {
        local::put(prefix.class(), free_block, false, [])
    } else {
        Some(free_block)
    };
    if let Some(rest) = left {
        free_rest(rest, prefix.class(), switches);
    }
}

#[cold]
#[inline(never)]
fn free_rest(free_block: FreeBlock, class: u8, switches: Switches) {
    match local::cache_if_enabled() {
        // A thread's first block finds no prepared cache.
        Some(cache) if switches.is_cached() => cache.put(class, free_block),
        _ => free_block.free(),
    }
}
