//! Small blocks, which a thread keeps for its next ones (see [`local`]). All blocks of a class have
//! the same size and alignment, so that any of them serves whoever asks for the class.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::kept::Kept;
use super::raw::alloc;
use super::{MIN_ALIGN, PREFIX, Prefix, data_offset, place, prefix_of};
use crate::local;
use crate::stats::Event;
use crate::system::Switches;

/// Alignment of what a class holds, in bytes: of its prefix, and of the data behind a header. What
/// compiled code asks for arrays. The padding for it is the difference to what the global allocator
/// aligns to: asking that one for more costs ten times the block.
const CLASS_ALIGN: usize = 32;
const PADDING: usize = CLASS_ALIGN - MIN_ALIGN;

/// The class that holds such a block: sizes as for [`super::allocate_padded`], `align` a power of
/// two. In front of the data are `CLASS_ALIGN` bytes or a multiple, or the alignment is no more
/// than any block has.
#[inline(always)]
pub(crate) fn class_for(head: usize, size: usize, align: usize) -> Option<u8> {
    let data = data_offset(head, align);
    if align <= CLASS_ALIGN && data - head == PREFIX { local::class_of(data + size) } else { None }
}

/// A block of `class` that this thread has kept, counted if somebody counts as a header with its
/// memory.
#[inline(always)]
pub(crate) fn allocate_counted(class: u8, switches: Switches) -> Option<NonNull<u8>> {
    local::take(class, switches.is_counted(), [Event::Alloc, Event::MiAlloc]).map(Kept::into_block)
}

/// A block of `class`, kept by this thread or fresh; `None` when there is no memory.
pub(super) fn allocate(class: u8, keeper: &local::Cache) -> Option<NonNull<u8>> {
    if let Some(kept) = keeper.take(class) {
        return Some(kept.into_block());
    }
    let total = local::class_size(class) + PADDING;
    let layout = Layout::from_size_align(total, MIN_ALIGN).ok()?;
    // SAFETY: a class is never empty.
    let base = NonNull::new(unsafe { alloc(layout) })?;
    let shift = base.addr().get().wrapping_neg() & (CLASS_ALIGN - 1);
    // SAFETY: the shift is at most the padding, and a class has room for more than the prefix.
    Some(unsafe { place(base, Prefix::new(total, PREFIX + shift, MIN_ALIGN, class)) })
}

/// Keeps a block, if it is of a class and the thread may, counted if somebody counts as a header
/// with its memory. False, and nothing done, if not.
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
    // SAFETY: a block of a class, which the caller gives up; what is not kept is the caller's
    // again.
    let kept = unsafe { Kept::new(block) };
    local::put(prefix.class(), kept, switches.is_counted(), [Event::Free, Event::MiFree]).is_none()
}

/// Frees a block of a class: the thread keeps it if it may.
///
/// # Safety
/// As for [`super::free`]; the prefix is the block's and says a class.
#[inline(always)]
pub(super) unsafe fn free(block: NonNull<u8>, prefix: Prefix, switches: Switches) {
    // SAFETY: a block of a class, which the caller gives up.
    let kept = unsafe { Kept::new(block) };
    let left = if switches.is_cached() { local::put(prefix.class(), kept, false, []) } else { Some(kept) };
    if let Some(kept) = left {
        free_rest(kept, prefix.class(), switches);
    }
}

#[cold]
#[inline(never)]
fn free_rest(kept: Kept, class: u8, switches: Switches) {
    match local::keeper() {
        // The first block of a thread finds nothing prepared.
        Some(keeper) if switches.is_cached() => keeper.put(class, kept),
        _ => kept.free(),
    }
}
