//! Copies between arrays, memory objects and the host.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use usm_core::backend::Dyn;
use usm_core::{Access, AllocKind, BackendKind, DeviceType, Error, ErrorKind, Event, Number};
use usm_interface::Kind;

use crate::array::Array;
use crate::array::axes::Axes;
use crate::array::content::Holding;
use crate::array::dtype::PyDtype;
use crate::array::scalar::MAX_BYTES;
use crate::array::view::{View, scatter};
use crate::device::runtime::Stream;
use crate::exchange::import;
use crate::storage::memory::Memory;
use crate::storage::pool::Source;
use crate::storage::reserve::{self, Blank};
use crate::storage::{self, Storage};
use crate::text::argument;
use crate::text::error::{Class, Failure, OrRaise};

type Result<T> = std::result::Result<T, Failure>;

/// One side of a copy.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub(crate) storage: Storage,
    pub(crate) stream: Arc<Stream>,
    pub(crate) view: View,
}

impl Side {
    /// An array or memory object of ours, or any object that can be imported without a copy.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.cast::<Array>() {
            return Ok(array.get().side());
        }
        if let Ok(memory) = object.cast::<Memory>() {
            return memory.get().side();
        }
        import::require_side(object)
    }

    /// Refuses different element types. Bytes without members (`|V8`) may be copied to and from
    /// structures of their size.
    fn same_type(&self, other: &View) -> PyResult<()> {
        let (here, there) = (PyDtype::of_view(&self.view), PyDtype::of_view(other));
        let raw = here.descr.is_none() || there.descr.is_none();
        if here.dtype == there.dtype && (raw || here == there) {
            return Ok(());
        }
        Err(Class::Request.error(format!(
            "elements of type {there} are copied to elements of type {here}: usm moves memory and does not convert"
        )))
    }

    /// Calls `copy` with this side, memory of the process, as memory of the other side's context.
    fn in_context_of<R>(&self, other: &Self, copy: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        let range = (self.storage.address() as *mut u8, self.storage.size());
        let keeper = Box::new(self.storage.clone());
        // SAFETY: the keeper keeps the bytes until the last copy is complete.
        let storage = unsafe { Storage::of_process(other.stream.context(), range, keeper) }?;
        let here = Self { storage, stream: Arc::clone(&other.stream), view: self.view.clone() };
        // Refuses memory that a launch of the parent of this process had begun to write.
        self.storage.with_turn(|| ())?;
        copy(&here)
    }

    /// Whether the memory is nearer to a device than to the host. On a device that is the
    /// processor, NumPy's loops are faster than code of the device.
    fn is_far(&self) -> bool {
        let is_of_processor =
            matches!(self.stream.context().info().device_type, DeviceType::Cpu | DeviceType::Host);
        !is_of_processor && matches!(self.storage.kind(), AllocKind::Device | AllocKind::Shared)
    }

    /// The offset of this side's bytes from the storage's start, and their number.
    fn span(&self) -> (usize, usize) {
        let span = self.view.span();
        (span.start, span.len())
    }
}

/// The two ends of a copy. An error names the argument.
pub(crate) fn both_sides(dst: &Bound<'_, PyAny>, src: &Bound<'_, PyAny>) -> PyResult<(Side, Side)> {
    let side = |name, object: &Bound<'_, PyAny>| {
        Side::of(object).map_err(|error| argument::named(object.py(), name, error))
    };
    Ok((side("dst", dst)?, side("src", src)?))
}

/// Whether code of the device could convert the elements of `src` to `wanted`: numbers, in memory
/// that the host does not convert as fast.
pub(crate) fn may_convert(src: &Side, wanted: &PyDtype) -> bool {
    src.is_far() && number(wanted).is_some() && number(&PyDtype::of_view(&src.view)).is_some()
}

/// The elements of `src` converted by code of the device, in new memory beside it. `None` if it has
/// no code for these.
pub(crate) fn converted(py: Python<'_>, src: &Side, wanted: &PyDtype) -> PyResult<Option<Side>> {
    let side = empty_beside(py, src, wanted)?;
    Ok(convert(py, &side, src)?.then_some(side))
}

/// New memory of the kind and the shape of `src`, for elements of another type; from the open pool,
/// if there is one.
pub(crate) fn empty_beside(py: Python<'_>, src: &Side, wanted: &PyDtype) -> PyResult<Side> {
    empty_of(py, &src.stream, src.storage.kind(), &PyDtype::from(wanted.dtype), &src.view.shape)
}

/// New memory of this kind for elements in C order; from the open pool, if there is one.
pub(crate) fn empty_of(
    py: Python<'_>,
    stream: &Arc<Stream>,
    kind: AllocKind,
    element: &PyDtype,
    shape: &[isize],
) -> PyResult<Side> {
    let extents: Vec<i64> = shape.iter().map(|extent| *extent as i64).collect();
    let view = View { descr: element.descr.clone(), ..View::contiguous(element.dtype, &extents)? };
    let source = Source::of(py, stream, kind)?;
    let make = || Storage::allocate_from(&source, stream, kind, view.nbytes(), 0);
    let storage = py.detach(make).or_raise()?;
    Ok(Side { storage, stream: Arc::clone(stream), view })
}

/// Converts the elements of `src`, broadcast to the shape of `dst`, by code of the device, and
/// waits. False if it has no code for these, or the ends are of two contexts.
pub(crate) fn convert(py: Python<'_>, dst: &Side, src: &Side) -> PyResult<bool> {
    dst.storage.writable().or_raise()?;
    let numbers = [&dst.view, &src.view].map(|view| number(&PyDtype::of_view(view)));
    let [Some(to_number), Some(from_number)] = numbers else { return Ok(false) };
    if dst.stream.context().id() != src.stream.context().id() {
        return Ok(false);
    }
    let from_view = src.view.broadcast_to(&dst.view.shape)?;
    let outcome = py.detach(|| {
        dst.view.strided(|to| {
            from_view.strided(|from| {
                let ends = ((&dst.storage, to, to_number), (&src.storage, from, from_number));
                storage::convert(&dst.stream.queue, ends.0, ends.1)?.wait().map_err(Failure::from)
            })
        })
    });
    match outcome {
        Ok(()) => Ok(true),
        Err(Failure::Core(Error {
            kind:
                ErrorKind::Unsupported { .. } | ErrorKind::Overlap { .. } | ErrorKind::DestinationAliases { .. },
            ..
        })) => Ok(false),
        Err(error) => Err(error).or_raise(),
    }
}

/// The type for conversions.
fn number(of: &PyDtype) -> Option<Number> {
    if of.descr.is_some() || !of.dtype.is_native() {
        return None;
    }
    Some(match (of.dtype.kind(), of.dtype.itemsize()) {
        (Kind::Bool, 1) => Number::Bool,
        (Kind::Int, 1) => Number::I8,
        (Kind::Int, 2) => Number::I16,
        (Kind::Int, 4) => Number::I32,
        (Kind::Int, 8) => Number::I64,
        (Kind::Uint, 1) => Number::U8,
        (Kind::Uint, 2) => Number::U16,
        (Kind::Uint, 4) => Number::U32,
        (Kind::Uint, 8) => Number::U64,
        (Kind::Float, 4) => Number::F32,
        (Kind::Float, 8) => Number::F64,
        (Kind::Complex, 8) => Number::C64,
        (Kind::Complex, 16) => Number::C128,
        _ => return None,
    })
}

/// Bytes after which a copy looks for signals: the interpreter's handlers run between two pieces.
const PIECE: usize = 256 << 20;

/// Copies elements; `src` is broadcast to the shape of `dst`. Returns when the copy is complete.
pub(crate) fn copy(py: Python<'_>, dst: &Side, src: &Side) -> PyResult<()> {
    let Some(src) = prepare(dst, src)? else { return Ok(()) };
    if dst.view.nbytes() > PIECE && !dst.storage.overlaps(&src.storage) {
        return copy_in_pieces(py, dst, &src);
    }
    py.detach(|| copy_sides(dst, &src)).or_raise()
}

/// Copies large layouts in pieces along the first axis that has several elements.
fn copy_in_pieces(py: Python<'_>, dst: &Side, src: &Side) -> PyResult<()> {
    let total = dst.view.nbytes();
    let Some(axis) = dst.view.shape.iter().position(|extent| *extent > 1) else {
        return py.detach(|| copy_sides(dst, src)).or_raise();
    };
    let extent = dst.view.shape[axis] as usize;
    let step = (PIECE / (total / extent)).max(1);
    for start in (0..extent).step_by(step) {
        let count = step.min(extent - start);
        let piece = |side: &Side| Side { view: side.view.part_of_axis(axis, start, count), ..side.clone() };
        let (dst, src) = (piece(dst), piece(src));
        py.detach(|| copy_sides(&dst, &src)).or_raise()?;
        if let Err(raised) = py.check_signals() {
            let copied = total / extent * (start + count);
            // Not in Python 3.10.
            let note = format!("usm: {copied} of {total} bytes were copied");
            let _ = raised.value(py).call_method1("add_note", (note,));
            return Err(raised);
        }
    }
    Ok(())
}

/// As [`copy`], without waiting where a queue can copy. Memory of the process is kept alive until
/// the copy is complete.
pub(crate) fn submit_copy(py: Python<'_>, dst: &Side, src: &Side) -> PyResult<Event<Dyn>> {
    let src = prepare(dst, src)?;
    py.detach(|| match &src {
        Some(src) => submit_sides(dst, src),
        None => Ok(dst.stream.queue.barrier(&[])?),
    })
    .or_raise()
}

/// The source in the shape of `dst`, after the checks; `None` if there is nothing to copy.
fn prepare(dst: &Side, src: &Side) -> PyResult<Option<Side>> {
    dst.storage.writable().or_raise()?;
    dst.same_type(&src.view)?;
    let view = src.view.broadcast_to(&dst.view.shape)?;
    Ok((dst.view.nbytes() != 0).then(|| Side { view, ..src.clone() }))
}

fn submit_sides(dst: &Side, src: &Side) -> Result<Event<Dyn>> {
    if dst.stream.context().id() != src.stream.context().id() {
        if src.stream.is_host() {
            return src.in_context_of(dst, |src| submit_sides(dst, src));
        }
        if dst.stream.is_host() {
            return dst.in_context_of(src, |dst| submit_sides(dst, src));
        }
    }
    let submitted = dst.view.strided(|to| {
        src.view.strided(|from| {
            storage::submit_strided(&dst.stream.queue, (&dst.storage, to), (&src.storage, from))
        })
    });
    match submitted {
        // No queue takes these, so the copy is complete before its event.
        Err(Failure::Core(Error {
            kind: ErrorKind::DestinationAliases { .. } | ErrorKind::WrongContext { .. },
            ..
        })) => {
            copy_sides(dst, src)?;
            Ok(dst.stream.queue.barrier(&[])?)
        }
        submitted => submitted,
    }
}

fn copy_sides(dst: &Side, src: &Side) -> Result<()> {
    let ((to, len), (from, _)) = (dst.span(), src.span());
    let are_dense = dst.view.is_c_contiguous() && src.view.is_c_contiguous();
    if are_dense && storage::copy_by_processor((&dst.storage, to), (&src.storage, from), len)? {
        return Ok(());
    }
    // No queue can access the memory of two contexts.
    if dst.stream.context().id() != src.stream.context().id() {
        // Memory of the process is an end of copies in every context.
        if src.stream.is_host() {
            return src.in_context_of(dst, |src| copy_sides(dst, src));
        }
        if dst.stream.is_host() {
            return dst.in_context_of(src, |dst| copy_sides(dst, src));
        }
        if copy_from_peer(dst, src)? {
            return Ok(());
        }
        return if are_dense { relay(dst, src) } else { store(dst, packed(src)?) };
    }
    let copied = dst.view.strided(|to| {
        src.view.strided(|from| {
            storage::copy_strided(&dst.stream.queue, (&dst.storage, to), (&src.storage, from))
        })
    });
    match copied {
        Ok(event) => Ok(event.map_or(Ok(()), |event| event.wait())?),
        Err(Failure::Core(Error { kind: ErrorKind::DestinationAliases { .. }, .. })) => {
            store_in_order(dst, &packed(src)?)
        }
        Err(error) => Err(error),
    }
}

/// Copies device memory of another context without a way through the process. False if the runtime
/// has no such copy.
fn copy_from_peer(dst: &Side, src: &Side) -> Result<bool> {
    let kinds = [dst, src].map(|side| (side.stream.context().info().backend, side.storage.kind()));
    let has_peers = matches!(kinds[0].0, BackendKind::Cuda | BackendKind::Hip);
    if !has_peers || kinds[0] != kinds[1] || kinds[0].1 != AllocKind::Device || dst.view.may_overlap_itself()
    {
        return Ok(false);
    }
    let beside = |side: &Side| -> Result<Side> {
        let storage = Storage::allocate(&side.stream, AllocKind::Device, side.view.nbytes(), 0)?;
        Ok(dense(side, storage, &side.view))
    };
    // Strided layouts are packed on their device.
    let packed = if src.view.is_c_contiguous() { None } else { Some(beside(src)?) };
    if let Some(packed) = &packed {
        copy_sides(packed, src)?;
    }
    let landed = if dst.view.is_c_contiguous() { None } else { Some(beside(dst)?) };
    let (to, from) = (landed.as_ref().unwrap_or(dst), packed.as_ref().unwrap_or(src));
    let ((start, len), (from_start, _)) = (to.span(), from.span());
    let ends = ((&to.storage, start), (&from.storage, from_start));
    match storage::copy_from_peer(&dst.stream.queue, ends.0, ends.1, len) {
        Ok(event) => event.wait()?,
        Err(Failure::Core(Error { kind: ErrorKind::Unsupported { .. }, .. })) => return Ok(false),
        Err(error) => return Err(error),
    }
    landed.map_or(Ok(()), |landed| copy_sides(dst, &landed))?;
    Ok(true)
}

/// Bytes of a part between two contexts.
const RELAYED: usize = 16 << 20;

/// Copies dense memory between two contexts through the process: one thread reads the next part
/// while this one writes the last, so that both devices copy.
fn relay(dst: &Side, src: &Side) -> Result<()> {
    let ((to, len), (from, _)) = (dst.span(), src.span());
    let read = &|start: usize, target: Vec<u8>| {
        src.storage.read(&src.stream.queue, from + start, RELAYED.min(len - start), target)
    };
    let mut part = Arc::new(read(0, reserve::zeroed(RELAYED.min(len))?)?);
    let mut spare = reserve::zeroed(RELAYED.min(len.saturating_sub(RELAYED)))?;
    for start in (0..len).step_by(RELAYED) {
        let next = start + RELAYED;
        let (wrote, ahead) = std::thread::scope(|scope| {
            let target = std::mem::take(&mut spare);
            let reader = (next < len).then(|| scope.spawn(move || read(next, target)));
            let count = RELAYED.min(len - start);
            let wrote = dst.storage.write(&dst.stream.queue, to + start, Part(Arc::clone(&part), count));
            (wrote, reader.map(|reader| reader.join()))
        });
        wrote?;
        if let Some(ahead) = ahead {
            let ahead = ahead.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            let written = std::mem::replace(&mut part, Arc::new(ahead));
            spare = Arc::into_inner(written).unwrap_or_default();
        }
    }
    Ok(())
}

/// The first bytes of a buffer.
struct Part(Arc<Vec<u8>>, usize);

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

/// The elements in C order, in memory of the process.
fn packed(src: &Side) -> Result<Vec<u8>> {
    let size = src.view.nbytes();
    if src.view.is_c_contiguous() {
        return src.storage.read(&src.stream.queue, src.view.offset, size, reserve::zeroed(size)?);
    }
    let mut bytes = reserve::reserved(size)?;
    // SAFETY: the bytes outlive the copy, or are never freed.
    let storage =
        unsafe { Storage::of_process(src.stream.context(), (bytes.as_mut_ptr(), size), Box::new(())) }?;
    match copy_sides(&dense(src, storage, &src.view), src) {
        Ok(()) => {
            // SAFETY: the copy is complete and initialised all of them.
            unsafe { bytes.set_len(size) };
            Ok(bytes)
        }
        // The device may still write them.
        Err(error) => {
            std::mem::forget(bytes);
            Err(error)
        }
    }
}

/// Writes packed elements to `dst`.
fn store(dst: &Side, bytes: Vec<u8>) -> Result<()> {
    if dst.view.is_c_contiguous() {
        return dst.storage.write(&dst.stream.queue, dst.view.offset, bytes);
    }
    copy_sides(dst, &dense(dst, of_bytes(dst, bytes)?, &dst.view))
}

/// Writes the elements of `dst` from the bytes of its storage from `start` on, and leaves those
/// between them.
pub(crate) fn store_elements(py: Python<'_>, dst: &Side, start: usize, bytes: Vec<u8>) -> PyResult<()> {
    let view = View { offset: dst.view.offset - start, ..dst.view.clone() };
    let store = || {
        let src = Side { storage: of_bytes(dst, bytes)?, stream: Arc::clone(&dst.stream), view };
        copy_sides(dst, &src)
    };
    py.detach(store).or_raise()
}

/// Bytes as memory of the side's context, until the last copy that reads them is complete.
fn of_bytes(side: &Side, mut bytes: Vec<u8>) -> usm_core::Result<Storage> {
    let range = (bytes.as_mut_ptr(), bytes.len());
    // SAFETY: the keeper owns the bytes, which keep their place when it moves.
    unsafe { Storage::of_process(side.stream.context(), range, Box::new(bytes)) }
}

/// The elements of `view` in C order, in their storage.
fn dense(side: &Side, storage: Storage, view: &View) -> Side {
    let view = View { strides: view.shape.packed_strides(view.itemsize()), offset: 0, ..view.clone() };
    Side { storage, stream: Arc::clone(&side.stream), view }
}

/// Writes packed elements to a layout in which several may share bytes; the last one in C order
/// stays. Core's copies refuse such destinations, because they promise no order. They also refuse
/// layouts whose axes interleave without overlap.
fn store_in_order(dst: &Side, bytes: &[u8]) -> Result<()> {
    let span = dst.view.span();
    // The bytes between the elements stay unchanged.
    let mut target = reserve::zeroed(span.len())?;
    target = dst.storage.read(&dst.stream.queue, span.start, span.len(), target)?;
    scatter(&mut target, &dst.view, span.start, bytes);
    dst.storage.write(&dst.stream.queue, span.start, target)
}

/// Sets every element to the bytes of one element.
pub(crate) fn fill(py: Python<'_>, dst: &Side, bytes: [u8; MAX_BYTES]) -> PyResult<()> {
    dst.storage.writable().or_raise()?;
    let size = dst.view.itemsize().min(MAX_BYTES);
    if dst.view.len() == 1 && dst.storage.write_at_once(dst.view.offset, &bytes[..size]) {
        return Ok(());
    }
    let element = One::new(bytes, size);
    if dst.view.nbytes() == 0 {
        return Ok(());
    }
    py.detach(|| {
        if dst.view.len() == 1 {
            return dst.storage.write(&dst.stream.queue, dst.view.offset, element);
        }
        let element = element.as_ref();
        if dst.view.is_c_contiguous() {
            let (to, len) = dst.span();
            let is_uniform = element.iter().all(|byte| *byte == element[0]);
            let pattern = if is_uniform { &element[..1] } else { element };
            if dst.storage.takes_pattern(to, pattern) {
                return dst.storage.fill(&dst.stream.queue, to, len, pattern);
            }
        }
        let ndim = dst.view.ndim();
        let (shape, strides) = (Axes::filled(ndim, 1), Axes::filled(ndim, 0));
        // Where the device copies strided layouts itself, one element crosses the bus.
        let storage = match dst.storage.is_host_accessible() {
            true => of_bytes(dst, Vec::from(element))?,
            false => {
                let one = Storage::allocate(&dst.stream, dst.storage.kind(), element.len(), 0)?;
                one.write(&dst.stream.queue, 0, Vec::from(element))?;
                one
            }
        };
        let mut one = dense(dst, storage, &View { shape, strides, ..dst.view.clone() });
        // The same element everywhere.
        (one.view.shape, one.view.strides) = (dst.view.shape.clone(), Axes::filled(ndim, 0));
        copy_sides(dst, &one)
    })
    .or_raise()
}

/// The bytes of one number, at a place that stays: after a wait that ended too early the device may
/// still access them, and they are never freed.
pub(crate) struct One(Box<[u8; MAX_BYTES]>, usize);

impl One {
    /// The first `size` bytes, at most all.
    pub(crate) fn new(bytes: [u8; MAX_BYTES], size: usize) -> Self {
        Self(Box::new(bytes), size.min(MAX_BYTES))
    }
}

impl AsRef<[u8]> for One {
    fn as_ref(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

impl AsMut<[u8]> for One {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0[..self.1]
    }
}

/// The bytes of the element at an offset of the storage, as many as its size.
///
/// # Errors
/// [`ErrorKind::OutOfBounds`] for an element above the size of a number.
pub(crate) fn read_one(py: Python<'_>, holding: &Holding, offset: usize) -> PyResult<[u8; MAX_BYTES]> {
    let storage = holding.storage();
    let (mut bytes, size) = ([0; MAX_BYTES], holding.view.itemsize());
    if let Some(target) = bytes.get_mut(..size)
        && storage.read_at_once(offset, target)
    {
        return Ok(bytes);
    }
    let one = One::new(bytes, size);
    let read = || storage.read(&holding.stream.queue, offset, size, one);
    py.detach(read).or_raise().map(|one| *one.0)
}

/// The elements in C order, as an object of Python's.
pub(crate) fn to_object<'py>(py: Python<'py>, src: &Side) -> PyResult<Bound<'py, PyBytes>> {
    let (size, storage) = (src.view.nbytes(), &src.storage);
    if size < 2 || !src.view.is_c_contiguous() {
        return reserve::bytes(py, &to_bytes(py, src)?);
    }
    let blank = Blank::new(py, size)?;
    // SAFETY: the object keeps its bytes.
    let read = || unsafe { storage.read_to(&src.stream.queue, src.view.offset, blank.room(), blank) };
    let content = py.detach(read).or_raise()?;
    // SAFETY: the copy is complete, and wrote all of them.
    Ok(unsafe { content.into_bytes(py) })
}

/// The elements in C order.
pub(crate) fn to_bytes(py: Python<'_>, src: &Side) -> PyResult<Vec<u8>> {
    if src.view.nbytes() == 0 {
        return Ok(Vec::new());
    }
    py.detach(|| packed(src)).or_raise()
}

/// Reads bytes that lie inside of the storage; at once where nothing else uses the memory.
pub(crate) fn read_block(
    py: Python<'_>,
    holding: &Holding,
    offset: usize,
    target: &mut [u8],
) -> PyResult<()> {
    let storage = holding.storage();
    if storage.read_at_once(offset, target) {
        return Ok(());
    }
    let view = View { offset, ..View::contiguous(PyDtype::of_text("uint8")?.dtype, &[target.len() as i64])? };
    target.copy_from_slice(&to_bytes(py, &holding.with_view(view))?);
    Ok(())
}

/// A C-contiguous copy in memory of `kind` in the stream's context.
pub(crate) fn duplicate(
    py: Python<'_>,
    src: &Side,
    stream: &Arc<Stream>,
    kind: AllocKind,
    alignment: usize,
) -> PyResult<Side> {
    let extents: Vec<i64> = src.view.shape.iter().map(|extent| *extent as i64).collect();
    let view = View { descr: src.view.descr.clone(), ..View::contiguous(src.view.dtype, &extents)? };
    let source = Source::of(py, stream, kind)?;
    let make = || Storage::allocate_from(&source, stream, kind, view.nbytes(), alignment);
    let storage = py.detach(make).or_raise()?;
    let side = Side { storage, stream: Arc::clone(stream), view };
    copy(py, &side, src)?;
    Ok(side)
}

/// Submits the copy of one contiguous range without waiting.
pub(crate) fn copy_async(
    py: Python<'_>,
    stream: &Stream,
    dst: &Bound<'_, PyAny>,
    src: &Bound<'_, PyAny>,
) -> PyResult<Event<Dyn>> {
    let (dst, src) = both_sides(dst, src)?;
    if !dst.view.is_c_contiguous() || !src.view.is_c_contiguous() {
        return Err(Class::Request.error("a queue copies C-contiguous memory; usm.copy takes any"));
    }
    if dst.view.nbytes() != src.view.nbytes() {
        let (to, from) = (dst.view.nbytes(), src.view.nbytes());
        return Err(Class::Request.error(format!("the destination has {to} bytes, the source {from}")));
    }
    let ((to, len), (from, _)) = (dst.span(), src.span());
    let copied = py.detach(|| storage::copy(&stream.queue, (&dst.storage, to), (&src.storage, from), len));
    copied.or_else(|failure| match &failure {
        Failure::Core(Error { kind: ErrorKind::WrongContext { .. }, .. }) => {
            let place = |stream: &Stream| {
                let context = stream.context();
                format!("{} (context {})", usm_core::Selector::of(context.info()), context.id())
            };
            let (here, to, from) = (place(stream), place(&dst.stream), place(&src.stream));
            Err(Class::Request.error(format!(
                "the queue is of {here}, the destination of {to}, the source of {from}: a queue copies \
                 memory of its own context, usm.copy that of any other and NumPy's"
            )))
        }
        _ => Err(failure).or_raise(),
    })
}

/// Waits until a consumer that does not know our events may access the memory. Returns its address.
pub(crate) fn expose(py: Python<'_>, storage: &Storage) -> PyResult<()> {
    storage.escape();
    py.detach(|| storage.wait_for_uses()).or_raise()
}

/// [`expose`] for access by the host. The duration of that access is unknown: for memory without
/// concurrent access, Python code must separate its launches from its own accesses, as with every
/// library.
pub(crate) fn expose_to_host(py: Python<'_>, storage: &Storage) -> PyResult<()> {
    py.detach(|| storage.allocation().wait_for_host(Access::Write).map(drop)).or_raise()
}
