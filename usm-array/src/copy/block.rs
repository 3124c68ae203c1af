//! Copies between two blocks of memory, in the turns of both.

use usm_core::backend::{Backend, QueueOps as _};
use usm_core::{ErrorKind, Event, Number, Queue, Strided, Usage};

use crate::error::Result;
use crate::storage::{Owner, Storage};
use crate::turns;

/// Starts a copy of `len` bytes between two blocks of one context, from an offset of each; the
/// ranges must not overlap.
///
/// # Errors
/// [`Error::ReadOnly`](crate::Error::ReadOnly); `OutOfBounds`, `Overlap`, `WrongContext`, and the
/// failures of the copy.
pub fn range<B: Backend + 'static, O: Owner<B>>(
    queue: &Queue<B>,
    (dst, dst_offset): (&Storage<B, O>, usize),
    (src, src_offset): (&Storage<B, O>, usize),
    len: usize,
) -> Result<Event<B>> {
    let to = dst.target(dst_offset, len)?;
    let from = src.source(src_offset, len)?;
    if (to as usize).abs_diff(from as usize) < len {
        return Err(ErrorKind::Overlap { dst: to as usize, src: from as usize, len }.into());
    }
    let _turns = turns::of_two(dst, src)?;
    let usages = [Usage::write(dst.block_of_turns()), Usage::read(src.block_of_turns())];
    let copy = |queue: &B::Queue, after: &[B::Event]| match len {
        // SAFETY: the events are of the queue's context.
        0 => unsafe { queue.barrier(after) },
        // SAFETY: both ranges lie inside live blocks of the queue's context (`submit` checks that),
        // do not overlap, and the usages keep both alive and ordered; the turns keep other
        // submissions over them apart.
        _ => unsafe { queue.copy(to, from, len, after) },
    };
    // SAFETY: the copy uses both blocks as the usages say, after the events that it is given.
    Ok(unsafe { queue.submit(&usages, &[], copy) }?)
}

/// Copies `len` bytes between two blocks of any contexts by the processor, at once. False unless it
/// is the device of both and reaches them.
pub(super) fn by_processor<B: Backend + 'static, O: Owner<B>>(
    (dst, to): (&Storage<B, O>, usize),
    (src, from): (&Storage<B, O>, usize),
    len: usize,
) -> Result<bool> {
    dst.writable()?;
    let _turns = turns::of_two(dst, src)?;
    // SAFETY: as in `strided`.
    match unsafe { dst.block_of_turns().copy_by_processor(to, src.block_of_turns(), from, len) } {
        Some(outcome) => Ok(outcome.map(|()| true)?),
        None => Ok(false),
    }
}

/// Copies between two layouts in blocks of one context, which may overlap. `None`: the copy is
/// complete already.
pub(super) fn strided<B: Backend + 'static, O: Owner<B>>(
    queue: &Queue<B>,
    (dst, to): (&Storage<B, O>, &Strided<'_>),
    (src, from): (&Storage<B, O>, &Strided<'_>),
) -> Result<Option<Event<B>>> {
    dst.writable()?;
    let _turns = turns::of_two(dst, src)?;
    // SAFETY: until the call returns, the turns keep other submissions and our host writes to both
    // blocks away. Code that uses an exported address synchronises its own threads, as with every
    // array.
    Ok(unsafe { queue.copy_strided_shared(dst.block_of_turns(), to, src.block_of_turns(), from) }?)
}

/// As [`strided`], for callers that do not wait.
pub(super) fn submit_strided<B: Backend + 'static, O: Owner<B>>(
    queue: &Queue<B>,
    (dst, to): (&Storage<B, O>, &Strided<'_>),
    (src, from): (&Storage<B, O>, &Strided<'_>),
) -> Result<Event<B>> {
    dst.writable()?;
    let _turns = turns::of_two(dst, src)?;
    // SAFETY: as in `strided`; later submissions follow the copy by the records of the blocks.
    Ok(unsafe { queue.submit_strided_shared(dst.block_of_turns(), to, src.block_of_turns(), from) }?)
}

/// Converts numbers between two layouts in blocks of one context.
///
/// # Safety
/// The bytes of `src` are values of its type.
pub(super) unsafe fn convert<B: Backend + 'static, O: Owner<B>>(
    queue: &Queue<B>,
    (dst, to, to_number): (&Storage<B, O>, &Strided<'_>, Number),
    (src, from, from_number): (&Storage<B, O>, &Strided<'_>, Number),
) -> Result<Event<B>> {
    dst.writable()?;
    let _turns = turns::of_two(dst, src)?;
    let (dst, src) = (dst.block_of_turns(), src.block_of_turns());
    // SAFETY: the caller's promise; the turns keep other submissions over both blocks apart, and
    // later ones follow by the records of the blocks.
    Ok(unsafe { queue.convert_strided_shared((dst, to, to_number), (src, from, from_number)) }?)
}

/// Starts a copy of device memory of another context.
pub(super) fn from_peer<B: Backend + 'static, O: Owner<B>>(
    queue: &Queue<B>,
    (dst, dst_offset): (&Storage<B, O>, usize),
    (src, src_offset): (&Storage<B, O>, usize),
    len: usize,
) -> Result<Event<B>> {
    dst.writable()?;
    let _turns = turns::of_two(dst, src)?;
    let (dst, src) = (dst.block_of_turns(), src.block_of_turns());
    // SAFETY: as in `submit_strided`.
    Ok(unsafe { queue.copy_shared_from_peer((dst, dst_offset), (src, src_offset), len) }?)
}
