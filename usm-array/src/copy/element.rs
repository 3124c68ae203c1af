//! Elements from memory of the process.

use usm_core::backend::Backend;
use usm_core::{ErrorKind, Event};

use super::{End, now};
use crate::error::Result;
use crate::layout::Layout;
use crate::reserve;
use crate::storage::{Owner, Storage};

/// Sets every element to `element`, and waits.
///
/// # Errors
/// [`Error::ReadOnly`](crate::Error::ReadOnly); `LengthMismatch` for another number of bytes than
/// an element has, `OutOfBounds` for elements beyond the memory, and the failures of copies.
pub fn fill<B: Backend + 'static, O: Owner<B>>(dst: &End<'_, B, O>, element: &[u8]) -> Result<()> {
    Ok(submit_fill(dst, element)?.map_or(Ok(()), |event| event.wait())?)
}

/// [`fill`] that does not wait where the queue fills: it returns the event. Later uses of the
/// memory follow it.
///
/// # Errors
/// As of [`fill`].
pub fn submit_fill<B: Backend + 'static, O: Owner<B>>(
    dst: &End<'_, B, O>,
    element: &[u8],
) -> Result<Option<Event<B>>> {
    let expected = dst.layout.itemsize();
    if element.len() != expected {
        return Err(ErrorKind::LengthMismatch { expected, found: element.len() }.into());
    }
    dst.storage.writable()?;
    if dst.layout.nbytes() == 0 {
        return Ok(None);
    }
    dst.check()?;
    let (start, len) = dst.span();
    if dst.layout.len() == 1 {
        return dst.storage.write(dst.queue, dst.layout.offset(), copy_of(element)?).map(|()| None);
    }
    if dst.layout.is_c_contiguous() {
        let is_uniform = element.iter().all(|byte| *byte == element[0]);
        let pattern = if is_uniform { &element[..1] } else { element };
        if dst.storage.takes_pattern(start, pattern) {
            return dst.storage.submit_fill(dst.queue, start, len, pattern).map(Some);
        }
    }
    // Where the device copies strided layouts itself, one element crosses the bus.
    let storage = match dst.storage.is_host_accessible() {
        true => of_bytes(dst, copy_of(element)?)?,
        false => {
            let one = dst.scratch(dst.storage.kind(), element.len())?;
            one.write(dst.queue, 0, copy_of(element)?)?;
            one
        }
    };
    let layout = dst.layout.repeated();
    now(dst, &End { storage: &storage, layout: &layout, ..*dst }).map(|()| None)
}

fn copy_of(element: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = reserve::reserved(element.len())?;
    bytes.extend_from_slice(element);
    Ok(bytes)
}

/// Writes elements, in C order, to `dst`, and waits.
///
/// # Errors
/// [`Error::ReadOnly`](crate::Error::ReadOnly); `LengthMismatch` for another number of bytes,
/// `OutOfBounds` for elements beyond the memory, and the failures of copies.
pub fn store<B: Backend + 'static, O: Owner<B>>(dst: &End<'_, B, O>, elements: &[u8]) -> Result<()> {
    let (expected, found) = (dst.layout.nbytes(), elements.len());
    if expected != found {
        return Err(ErrorKind::LengthMismatch { expected, found }.into());
    }
    dst.storage.writable()?;
    dst.check()?;
    if expected == 0 {
        return Ok(());
    }
    store_packed(dst, copy_of(elements)?)
}

/// Writes packed elements to `dst`, and waits.
pub(super) fn store_packed<B: Backend + 'static, O: Owner<B>>(
    dst: &End<'_, B, O>,
    bytes: Vec<u8>,
) -> Result<()> {
    if dst.layout.is_c_contiguous() {
        return dst.storage.write(dst.queue, dst.layout.offset(), bytes);
    }
    let storage = of_bytes(dst, bytes)?;
    dst.in_order(&storage, |src| now(dst, src))
}

/// Writes the elements of `dst` from `bytes`, those of its memory from byte `start` on, and leaves
/// what lies between them.
///
/// # Errors
/// `OutOfBounds` for an element that `bytes` or the memory lacks, and the failures of copies.
pub fn store_elements<B: Backend + 'static, O: Owner<B>>(
    dst: &End<'_, B, O>,
    start: usize,
    bytes: Vec<u8>,
) -> Result<()> {
    let size = bytes.len();
    let span = dst.layout.span();
    let fits = span.start >= start && span.end - start <= size;
    if !fits {
        let (offset, len) = (span.start, span.len());
        return Err(ErrorKind::OutOfBounds { offset, len, size: start.saturating_add(size) }.into());
    }
    let layout: Layout = dst.layout.moved_to(dst.layout.offset() - start);
    let storage = of_bytes(dst, bytes)?;
    super::elements(dst, &End { storage: &storage, layout: &layout, ..*dst })
}

/// Bytes as memory of the end's context, until the last copy that reads them is complete.
fn of_bytes<B: Backend + 'static, O: Owner<B>>(
    end: &End<'_, B, O>,
    mut bytes: Vec<u8>,
) -> usm_core::Result<Storage<B, O>> {
    let range = (bytes.as_mut_ptr(), bytes.len());
    // SAFETY: the keeper owns the bytes, which keep their place when it moves.
    unsafe { Storage::of_process(end.queue.context(), range, Box::new(bytes)) }
}

/// Writes packed elements to a layout in which several may share bytes; the last one in C order
/// stays. Copies by queues refuse such destinations, because they promise no order. They also
/// refuse layouts whose axes interleave without overlap.
pub(super) fn store_in_order<B: Backend + 'static, O: Owner<B>>(
    dst: &End<'_, B, O>,
    bytes: &[u8],
) -> Result<()> {
    let span = dst.layout.span();
    // The bytes between the elements stay unchanged.
    let mut target = reserve::zeroed(span.len())?;
    target = dst.storage.read(dst.queue, span.start, span.len(), target)?;
    dst.layout.scatter(&mut target, span.start, bytes);
    dst.storage.write(dst.queue, span.start, target)
}
