//! Copies between arrays, and between arrays and memory of the process, in any layouts, kinds and
//! contexts.

mod block;
mod element;
mod relay;

use std::fmt;

use usm_core::backend::Backend;
use usm_core::{
    AllocKind, BackendKind, Element, Error as CoreError, ErrorKind, Event, MemorySource as _, Number, Queue,
    Request,
};

use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::reserve;
use crate::storage::{Owner, Storage};
use crate::turns;

pub use block::range;
pub use element::{fill, store, store_elements, submit_fill};

/// Makes memory for a step of a copy, of so many bytes. Nobody has written it.
pub type Scratch<'a, B, O> = dyn Fn(&Queue<B>, AllocKind, usize) -> usm_core::Result<Storage<B, O>> + 'a;

/// One end of a copy: a layout in memory, and the queue for work on it.
pub struct End<'a, B: Backend + 'static, O: Owner<B>> {
    storage: &'a Storage<B, O>,
    queue: &'a Queue<B>,
    layout: &'a Layout,
    scratch: &'a Scratch<'a, B, O>,
}

impl<B: Backend + 'static, O: Owner<B>> Clone for End<'_, B, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend + 'static, O: Owner<B>> Copy for End<'_, B, O> {}

impl<B: Backend + 'static, O: Owner<B>> fmt::Debug for End<'_, B, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("End")
            .field("storage", &self.storage)
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

fn of_context<B: Backend + 'static, O: Owner<B>>(
    queue: &Queue<B>,
    kind: AllocKind,
    size: usize,
) -> usm_core::Result<Storage<B, O>> {
    let allocation = queue.context().allocate(&Request::new(kind, size.max(1)))?;
    // SAFETY: a copy writes scratch memory before it reads it.
    Ok(unsafe { Storage::new(allocation, O::default()) })
}

impl<'a, B: Backend + 'static, O: Owner<B>> End<'a, B, O> {
    /// The elements of `layout` in `storage`. Elements beyond the memory are refused by each copy.
    #[must_use]
    pub fn new(storage: &'a Storage<B, O>, queue: &'a Queue<B>, layout: &'a Layout) -> Self {
        Self { storage, queue, layout, scratch: &of_context::<B, O> }
    }

    /// Takes memory for the steps of copies from `scratch` instead of the queue's context.
    #[must_use]
    pub fn with_scratch(self, scratch: &'a Scratch<'a, B, O>) -> Self {
        Self { scratch, ..self }
    }

    /// Another layout of the same memory.
    #[must_use]
    pub fn with_layout(self, layout: &'a Layout) -> Self {
        Self { layout, ..self }
    }

    fn is_host(&self) -> bool {
        self.backend() == BackendKind::Host
    }

    fn backend(&self) -> BackendKind {
        self.queue.context().info().backend
    }

    /// The offset of this end's bytes from the storage's start, and their number.
    fn span(&self) -> (usize, usize) {
        let span = self.layout.span();
        (span.start, span.len())
    }

    fn scratch(&self, kind: AllocKind, size: usize) -> Result<Storage<B, O>> {
        Ok((self.scratch)(self.queue, kind, size)?)
    }

    /// This end with other memory, in which its elements lie in C order.
    fn in_order<R>(&self, storage: &Storage<B, O>, call: impl FnOnce(&End<'_, B, O>) -> R) -> R {
        let layout = self.layout.packed();
        call(&End { storage, layout: &layout, ..*self })
    }

    /// Refuses a queue of another context than that of the memory, and elements beyond it.
    fn check(&self) -> usm_core::Result<()> {
        let (expected, found) = (self.queue.context().id(), self.storage.context().id());
        if expected != found {
            return Err(ErrorKind::WrongContext { expected, found }.into());
        }
        let (start, len) = self.span();
        self.storage.check_range(start, len)
    }

    /// Calls `copy` with this end, memory of the process, as memory of the other end's context. The
    /// caller has the turn of this end's memory, or the promise of its own caller.
    fn in_context_of<R>(&self, other: &Self, copy: impl FnOnce(&End<'_, B, O>) -> Result<R>) -> Result<R> {
        let range = (self.storage.address() as *mut u8, self.storage.size());
        let keeper = Box::new(self.storage.clone());
        // SAFETY: the keeper keeps the bytes until the last copy is complete.
        let storage = unsafe { Storage::of_process(other.queue.context(), range, keeper) }?;
        let storage = storage.restricted(self.storage.is_readonly());
        copy(&End { storage: &storage, queue: other.queue, layout: self.layout, scratch: other.scratch })
    }
}

/// Copies elements, and returns when that is complete. Both ends have one shape and elements of one
/// size; they may be of two contexts, and may overlap. Where several elements of `dst` share bytes,
/// the last one in C order stays.
///
/// # Errors
/// [`Error::ReadOnly`]; [`Error::Core`] with `ShapeMismatch` or `LengthMismatch` for two shapes,
/// `OutOfBounds` for elements beyond the memory, and the failures of copies.
pub fn elements<B: Backend + 'static, O: Owner<B>>(dst: &End<'_, B, O>, src: &End<'_, B, O>) -> Result<()> {
    check(dst, src)?;
    if dst.layout.nbytes() == 0 {
        return Ok(());
    }
    now(dst, src)
}

/// As [`elements`], without waiting where a queue can copy and the two ends are of one context.
///
/// # Errors
/// As [`elements`].
pub fn submit<B: Backend + 'static, O: Owner<B>>(
    dst: &End<'_, B, O>,
    src: &End<'_, B, O>,
) -> Result<Event<B>> {
    if dst.queue.context().id() != src.queue.context().id() {
        elements(dst, src)?;
        return Ok(dst.queue.barrier(&[])?);
    }
    // SAFETY: the one context knows of the copy.
    unsafe { submit_unordered(dst, src) }
}

/// As [`submit`], also without waiting where one end is memory of a host context, which is kept
/// alive until the copy is complete.
///
/// # Safety
/// Until the event is complete, nobody writes the elements of `src`, or uses those of `dst`,
/// through the host context: it does not know of the copy.
///
/// # Errors
/// As [`elements`].
pub unsafe fn submit_unordered<B: Backend + 'static, O: Owner<B>>(
    dst: &End<'_, B, O>,
    src: &End<'_, B, O>,
) -> Result<Event<B>> {
    check(dst, src)?;
    if dst.layout.nbytes() == 0 {
        return Ok(dst.queue.barrier(&[])?);
    }
    later(dst, src)
}

fn check<B: Backend + 'static, O: Owner<B>>(dst: &End<'_, B, O>, src: &End<'_, B, O>) -> Result<()> {
    dst.storage.writable()?;
    let (to, from) = (dst.layout, src.layout);
    if to.ndim() != from.ndim() {
        return Err(ErrorKind::LengthMismatch { expected: to.ndim(), found: from.ndim() }.into());
    }
    let mut extents = to.shape().iter().zip(from.shape()).map(|(to, from)| (*to, *from));
    let differs = extents.position(|(to, from)| to != from);
    let (axis, expected, found) = match differs {
        Some(axis) => (axis, to.shape()[axis].unsigned_abs(), from.shape()[axis].unsigned_abs()),
        None => (to.ndim(), to.itemsize(), from.itemsize()),
    };
    if expected != found {
        return Err(ErrorKind::ShapeMismatch { axis, expected, found }.into());
    }
    dst.check()?;
    Ok(src.check()?)
}

fn later<B: Backend + 'static, O: Owner<B>>(dst: &End<'_, B, O>, src: &End<'_, B, O>) -> Result<Event<B>> {
    if dst.queue.context().id() != src.queue.context().id() && dst.is_host() != src.is_host() {
        let host = if src.is_host() { src } else { dst };
        // Refuses memory that a launch of the parent of this process had begun to write.
        drop(turns::of_one(host.storage)?);
        return match src.is_host() {
            true => src.in_context_of(dst, |src| later(dst, src)),
            false => dst.in_context_of(src, |dst| later(dst, src)),
        };
    }
    let outcome = dst.layout.strided(|to| {
        src.layout.strided(|from| block::submit_strided(dst.queue, (dst.storage, to), (src.storage, from)))
    });
    match outcome {
        // No queue takes these, so the copy is complete before its event.
        Err(Error::Core(CoreError {
            kind: ErrorKind::DestinationAliases { .. } | ErrorKind::WrongContext { .. },
            ..
        })) => {
            now(dst, src)?;
            Ok(dst.queue.barrier(&[])?)
        }
        outcome => outcome,
    }
}

/// The copy of elements of one size and one shape, and its end.
fn now<B: Backend + 'static, O: Owner<B>>(dst: &End<'_, B, O>, src: &End<'_, B, O>) -> Result<()> {
    let ((to, len), (from, _)) = (dst.span(), src.span());
    let are_dense = dst.layout.is_c_contiguous() && src.layout.is_c_contiguous();
    if are_dense && block::by_processor((dst.storage, to), (src.storage, from), len)? {
        return Ok(());
    }
    // No queue can access the memory of two contexts.
    if dst.queue.context().id() != src.queue.context().id() {
        // Memory of the process is an end of copies in every context. Its turn lasts until the copy
        // is complete. Turns of host memory come before those of devices, and two of them in order.
        match (dst.is_host(), src.is_host()) {
            (true, true) => {
                let _turns = turns::of_two(dst.storage, src.storage)?;
                return dst.in_context_of(dst, |dst| src.in_context_of(dst, |src| now(dst, src)));
            }
            (false, true) => {
                let _turn = turns::of_one(src.storage)?;
                return src.in_context_of(dst, |src| now(dst, src));
            }
            (true, false) => {
                let _turn = turns::of_one(dst.storage)?;
                return dst.in_context_of(src, |dst| now(dst, src));
            }
            (false, false) => {}
        }
        if relay::from_peer(dst, src)? {
            return Ok(());
        }
        return if are_dense {
            relay::through_process(dst, src)
        } else {
            element::store_packed(dst, packed(src)?)
        };
    }
    let outcome = dst.layout.strided(|to| {
        src.layout.strided(|from| block::strided(dst.queue, (dst.storage, to), (src.storage, from)))
    });
    match outcome {
        Ok(event) => Ok(event.map_or(Ok(()), |event| event.wait())?),
        Err(Error::Core(CoreError { kind: ErrorKind::DestinationAliases { .. }, .. })) => {
            element::store_in_order(dst, &packed(src)?)
        }
        Err(error) => Err(error),
    }
}

/// Converts the numbers of `src`, in the shape of `dst`, by code of the device, and waits. False if
/// the device has no code for these, or the ends are of two contexts.
///
/// # Safety
/// The bytes of `src` are values of the type `from`: a byte of [`Number::Bool`] is 0 or 1 unless
/// the memory is a driver's.
///
/// # Errors
/// [`Error::ReadOnly`], and the failures of the conversion.
pub unsafe fn convert<B: Backend + 'static, O: Owner<B>>(
    (dst, to): (&End<'_, B, O>, Number),
    (src, from): (&End<'_, B, O>, Number),
) -> Result<bool> {
    dst.storage.writable()?;
    dst.check()?;
    src.check()?;
    if dst.queue.context().id() != src.queue.context().id() {
        return Ok(false);
    }
    let outcome = dst.layout.strided(|to_layout| {
        src.layout.strided(|from_layout| {
            let ends = ((dst.storage, to_layout, to), (src.storage, from_layout, from));
            // SAFETY: the caller's promise.
            unsafe { block::convert(dst.queue, ends.0, ends.1) }?.wait().map_err(Error::from)
        })
    });
    match outcome {
        Ok(()) => Ok(true),
        Err(Error::Core(CoreError {
            kind:
                ErrorKind::Unsupported { .. } | ErrorKind::Overlap { .. } | ErrorKind::DestinationAliases { .. },
            ..
        })) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The elements in C order, in memory of the process; as bytes for `T` of 1 byte. The size of `T`
/// divides that of the elements, whose bytes are values of `T`.
///
/// # Errors
/// [`Error::NoMemory`], `OutOfBounds` for elements beyond the memory, and the failures of copies.
pub fn packed<T: Element, B: Backend + 'static, O: Owner<B>>(src: &End<'_, B, O>) -> Result<Vec<T>> {
    src.check()?;
    let size = src.layout.nbytes();
    let Some(len) = size.checked_div(size_of::<T>()).filter(|len| len * size_of::<T>() == size) else {
        return Err(ErrorKind::LengthMismatch { expected: size_of::<T>(), found: size }.into());
    };
    let mut values = reserve::reserved::<T>(len)?;
    let room = (values.as_mut_ptr().cast::<u8>(), len * size_of::<T>());
    if src.layout.is_c_contiguous() {
        // SAFETY: the vector keeps its elements in place when it moves.
        values = unsafe { src.storage.read_to(src.queue, src.layout.offset(), room, values) }?;
        // SAFETY: the copy is complete and initialised all of them.
        unsafe { values.set_len(len) };
        return Ok(values);
    }
    // SAFETY: the elements outlive the copy, or are never freed.
    let storage = unsafe { Storage::of_process(src.queue.context(), room, Box::new(())) }?;
    match src.in_order(&storage, |dst| now(dst, src)) {
        Ok(()) => {
            // SAFETY: as above.
            unsafe { values.set_len(len) };
            Ok(values)
        }
        // The device may still write them.
        Err(error) => {
            std::mem::forget(values);
            Err(error)
        }
    }
}
