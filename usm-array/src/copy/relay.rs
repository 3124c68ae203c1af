//! Copies between two contexts that are not the process's.

use std::sync::Arc;

use usm_core::backend::Backend;
use usm_core::{AllocKind, BackendKind, Error as CoreError, ErrorKind};

use super::{End, block, now};
use crate::access::StableBytes;
use crate::error::{Error, Result};
use crate::reserve;
use crate::storage::Owner;

/// Copies device memory of another context without a way through the process. False if the runtime
/// has no such copy.
pub(super) fn from_peer<B: Backend + 'static, O: Owner<B>>(
    dst: &End<'_, B, O>,
    src: &End<'_, B, O>,
) -> Result<bool> {
    let kinds = [dst, src].map(|end| (end.backend(), end.storage.kind()));
    let has_peers = matches!(kinds[0].0, BackendKind::Cuda | BackendKind::Hip);
    if !has_peers
        || kinds[0] != kinds[1]
        || kinds[0].1 != AllocKind::Device
        || dst.layout.may_overlap_itself()
    {
        return Ok(false);
    }
    let beside = |end: &End<'_, B, O>| end.scratch(AllocKind::Device, end.layout.nbytes());
    // Strided layouts are packed on their device.
    let packed_src = if src.layout.is_c_contiguous() { None } else { Some(beside(src)?) };
    if let Some(buffer) = &packed_src {
        src.in_order(buffer, |dst| now(dst, src))?;
    }
    let packed_dst = if dst.layout.is_c_contiguous() { None } else { Some(beside(dst)?) };
    let len = dst.layout.nbytes();
    let to = packed_dst.as_ref().map_or((dst.storage, dst.span().0), |buffer| (buffer, 0));
    let from = packed_src.as_ref().map_or((src.storage, src.span().0), |buffer| (buffer, 0));
    match block::from_peer(dst.queue, to, from, len) {
        Ok(event) => event.wait()?,
        Err(Error::Core(CoreError { kind: ErrorKind::Unsupported { .. }, .. })) => return Ok(false),
        Err(error) => return Err(error),
    }
    packed_dst.map_or(Ok(()), |buffer| dst.in_order(&buffer, |src| now(dst, src)))?;
    Ok(true)
}

/// Bytes of a part between two contexts.
const PART: usize = 16 << 20;

/// Copies dense memory between two contexts through the process: one thread reads the next part
/// while this one writes the last, so that both devices copy.
pub(super) fn through_process<B: Backend + 'static, O: Owner<B>>(
    dst: &End<'_, B, O>,
    src: &End<'_, B, O>,
) -> Result<()> {
    let ((to, len), (from, _)) = (dst.span(), src.span());
    let (storage, queue) = (src.storage, src.queue);
    let read =
        &|start: usize, target: Vec<u8>| storage.read(queue, from + start, PART.min(len - start), target);
    let mut part = Arc::new(read(0, reserve::zeroed(PART.min(len))?)?);
    let mut spare = reserve::zeroed(PART.min(len.saturating_sub(PART)))?;
    for start in (0..len).step_by(PART) {
        let next = start + PART;
        let (outcome, prefetch) = std::thread::scope(|scope| {
            let target = std::mem::take(&mut spare);
            let reader = (next < len).then(|| scope.spawn(move || read(next, target)));
            let count = PART.min(len - start);
            let outcome = dst.storage.write(dst.queue, to + start, Head(Arc::clone(&part), count));
            (outcome, reader.map(|reader| reader.join()))
        });
        outcome?;
        if let Some(prefetch) = prefetch {
            let prefetch = prefetch.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            let last = std::mem::replace(&mut part, Arc::new(prefetch));
            spare = Arc::into_inner(last).unwrap_or_default();
        }
    }
    Ok(())
}

/// The first bytes of a buffer.
struct Head(Arc<Vec<u8>>, usize);

// SAFETY: the elements of the vector are on the heap, and it is not changed while it is shared.
unsafe impl StableBytes for Head {}

impl AsRef<[u8]> for Head {
    fn as_ref(&self) -> &[u8] {
        &self.0[..self.1]
    }
}
