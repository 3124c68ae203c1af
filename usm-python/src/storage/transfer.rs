//! Copies between arrays, memory objects and the host.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use usm_array::{StableBytes, copy};
use usm_core::backend::Dyn;
use usm_core::{Access, AllocKind, DeviceType, Error, ErrorKind, Event, Number, Queue};
use usm_interface::Kind;

use crate::array::Array;
use crate::array::content::Holding;
use crate::array::dtype::PyDtype;
use crate::array::scalar::MAX_BYTES;
use crate::array::view::View;
use crate::device::runtime::Stream;
use crate::exchange::import;
use crate::process::wait::{self, Protocol};
use crate::storage::handle::Memory;
use crate::storage::reserve::{self, Blank};
use crate::storage::side::Side;
use crate::storage::source::Source;
use crate::storage::{Care, Storage};
use crate::text::argument;
use crate::text::error::{Class, Failure, OrRaise};

type End<'a> = usm_array::End<'a, Dyn, Care>;

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
        let (own_type, other_type) = (PyDtype::of_view(&self.view), PyDtype::of_view(other));
        let raw = own_type.descr.is_none() || other_type.descr.is_none();
        if own_type.dtype == other_type.dtype && (raw || own_type == other_type) {
            return Ok(());
        }
        Err(Class::Request.error(format!(
            "elements of type {other_type} are copied to elements of type {own_type}: usm moves memory and does not convert"
        )))
    }

    /// Calls `call` with this side as an end of copies.
    fn with_end<R>(&self, call: impl FnOnce(&End<'_>) -> R) -> R {
        let scratch = |_: &Queue<Dyn>, kind, size| Ok(Storage::allocate(&self.stream, kind, size, 0)?.0);
        call(&End::new(&self.storage, &self.stream.queue, &self.view.layout).with_scratch(&scratch))
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

/// Whether code of the device could convert the elements of `src` to `target`: numbers, in memory
/// that the host does not convert as fast.
pub(crate) fn may_convert(src: &Side, target: &PyDtype) -> bool {
    src.is_far() && number(target).is_some() && number(&PyDtype::of_view(&src.view)).is_some()
}

/// The elements of `src` converted by code of the device, in new memory beside it. `None` if it has
/// no code for these.
pub(crate) fn converted(py: Python<'_>, src: &Side, target: &PyDtype) -> PyResult<Option<Side>> {
    let side = empty_beside(py, src, target)?;
    Ok(convert(py, &side, src)?.then_some(side))
}

/// New memory of the kind and the shape of `src`, for elements of another type; from the open pool,
/// if there is one.
pub(crate) fn empty_beside(py: Python<'_>, src: &Side, target: &PyDtype) -> PyResult<Side> {
    empty_of(py, &src.stream, src.storage.kind(), &PyDtype::from(target.dtype), src.view.shape())
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
    let from_view = src.view.broadcast_to(dst.view.shape())?;
    let src = Side { view: from_view, ..src.clone() };
    wait_for_both(py, dst, &src)?;
    let convert = || {
        dst.with_end(|to| {
            // SAFETY: the memory is a driver's, so any bytes in it are values.
            src.with_end(|from| unsafe { copy::convert((to, to_number), (from, from_number)) })
        })
    };
    py.detach(convert).or_raise()
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
    copy_piece(py, dst, &src)
}

/// Copies elements, and waits in a way that Ctrl-C ends.
fn copy_piece(py: Python<'_>, dst: &Side, src: &Side) -> PyResult<()> {
    let by_processor = match dst.stream.context().info().device_type {
        DeviceType::Host => true,
        DeviceType::Cpu => [dst, src].iter().all(|side| side.view.is_c_contiguous()),
        _ => false,
    };
    if dst.stream.context().id() == src.stream.context().id() && !by_processor {
        let submit = || dst.with_end(|to| src.with_end(|from| copy::submit(to, from)));
        let event = py.detach(submit).or_raise()?;
        dst.stream.note(&event);
        return wait::for_event(py, &event);
    }
    wait_for_both(py, dst, src)?;
    py.detach(|| dst.with_end(|to| src.with_end(|from| copy::elements(to, from)))).or_raise()
}

/// Waits for work that a copy would wait for, in a way that Ctrl-C ends.
fn wait_for_both(py: Python<'_>, dst: &Side, src: &Side) -> PyResult<()> {
    wait::for_access(py, &src.storage, &src.stream, Access::Read)?;
    wait::for_access(py, &dst.storage, &dst.stream, Access::Write)
}

/// Copies large layouts in pieces along the first axis that has several elements.
fn copy_in_pieces(py: Python<'_>, dst: &Side, src: &Side) -> PyResult<()> {
    let total = dst.view.nbytes();
    let Some(axis) = dst.view.shape().iter().position(|extent| *extent > 1) else {
        return copy_piece(py, dst, src);
    };
    let extent = dst.view.shape()[axis] as usize;
    let step = (PIECE / (total / extent)).max(1);
    for start in (0..extent).step_by(step) {
        let count = step.min(extent - start);
        let piece = |side: &Side| Side { view: side.view.part_of_axis(axis, start, count), ..side.clone() };
        let (dst, src) = (piece(dst), piece(src));
        copy_piece(py, &dst, &src)?;
        if let Err(exception) = py.check_signals() {
            let progress = total / extent * (start + count);
            // Not in Python 3.10.
            let note = format!("usm: {progress} of {total} bytes were copied");
            let _ = exception.value(py).call_method1("add_note", (note,));
            return Err(exception);
        }
    }
    Ok(())
}

/// As [`copy`], without waiting where a queue can copy. Memory of the process is kept alive until
/// the copy is complete.
pub(crate) fn submit_copy(py: Python<'_>, dst: &Side, src: &Side) -> PyResult<Event<Dyn>> {
    let src = prepare(dst, src)?;
    // SAFETY: Python code that changes memory of the process before the event is complete separates
    // its accesses, as with NumPy's arrays in every library.
    let submit = |to: &End<'_>, from: &End<'_>| unsafe { copy::submit_unordered(to, from) };
    py.detach(|| match &src {
        Some(src) => dst.with_end(|to| src.with_end(|from| submit(to, from))),
        None => Ok(dst.stream.queue.barrier(&[])?),
    })
    .or_raise()
    .inspect(|event| dst.stream.note(event))
}

/// The source in the shape of `dst`, after the checks; `None` if there is nothing to copy.
fn prepare(dst: &Side, src: &Side) -> PyResult<Option<Side>> {
    dst.storage.writable().or_raise()?;
    dst.same_type(&src.view)?;
    let view = src.view.broadcast_to(dst.view.shape())?;
    Ok((dst.view.nbytes() != 0).then(|| Side { view, ..src.clone() }))
}

/// Writes the elements of `dst` from the bytes of its storage from `start` on, and leaves those
/// between them.
pub(crate) fn store_elements(py: Python<'_>, dst: &Side, start: usize, bytes: Vec<u8>) -> PyResult<()> {
    wait::for_access(py, &dst.storage, &dst.stream, Access::Write)?;
    py.detach(|| dst.with_end(|end| copy::store_elements(end, start, bytes))).or_raise()
}

/// Sets every element to the bytes of one element.
pub(crate) fn fill(py: Python<'_>, dst: &Side, bytes: [u8; MAX_BYTES]) -> PyResult<()> {
    dst.storage.writable().or_raise()?;
    let size = dst.view.itemsize().min(MAX_BYTES);
    if dst.view.len() == 1 && dst.storage.write_at_once(dst.view.offset(), &bytes[..size]) {
        return Ok(());
    }
    let element = One::new(bytes, size);
    if dst.view.nbytes() == 0 {
        return Ok(());
    }
    if dst.view.len() == 1 || !dst.view.is_c_contiguous() {
        wait::for_access(py, &dst.storage, &dst.stream, Access::Write)?;
    }
    let fill = || dst.with_end(|end| copy::submit_fill(end, element.as_ref()));
    py.detach(fill).or_raise()?.map_or(Ok(()), |event| {
        dst.stream.note(&event);
        wait::for_event(py, &event)
    })
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

// SAFETY: the bytes are in a box of their own.
unsafe impl StableBytes for One {}

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
pub(crate) fn read_one(py: Python<'_>, content: &Holding, offset: usize) -> PyResult<[u8; MAX_BYTES]> {
    let storage = content.storage();
    let (mut bytes, size) = ([0; MAX_BYTES], content.view.itemsize());
    if let Some(target) = bytes.get_mut(..size)
        && storage.read_at_once(offset, target)
    {
        return Ok(bytes);
    }
    wait::for_access(py, storage, &content.stream, Access::Read)?;
    let one = One::new(bytes, size);
    let read = || storage.read(&content.stream.queue, offset, size, one);
    py.detach(read).or_raise().map(|one| *one.0)
}

/// The elements in C order, as an object of Python's.
pub(crate) fn to_object<'py>(py: Python<'py>, src: &Side) -> PyResult<Bound<'py, PyBytes>> {
    let (size, storage) = (src.view.nbytes(), &src.storage);
    if size < 2 || !src.view.is_c_contiguous() {
        return reserve::bytes(py, &to_bytes(py, src)?);
    }
    wait::for_access(py, storage, &src.stream, Access::Read)?;
    let blank = Blank::new(py, size)?;
    // SAFETY: the object keeps its bytes.
    let read = || unsafe { storage.read_to(&src.stream.queue, src.view.offset(), blank.room(), blank) };
    let content = py.detach(read).or_raise()?;
    // SAFETY: the copy is complete, and wrote all of them.
    Ok(unsafe { content.into_bytes(py) })
}

/// The elements in C order.
pub(crate) fn to_bytes(py: Python<'_>, src: &Side) -> PyResult<Vec<u8>> {
    if src.view.nbytes() == 0 {
        return Ok(Vec::new());
    }
    wait::for_access(py, &src.storage, &src.stream, Access::Read)?;
    py.detach(|| src.with_end(copy::packed::<u8, _, _>)).or_raise()
}

/// Reads bytes that lie inside of the storage; at once where nothing else uses the memory.
pub(crate) fn read_block(
    py: Python<'_>,
    content: &Holding,
    offset: usize,
    target: &mut [u8],
) -> PyResult<()> {
    let storage = content.storage();
    if storage.read_at_once(offset, target) {
        return Ok(());
    }
    let view = View::contiguous(PyDtype::of_text("uint8")?.dtype, &[target.len() as i64])?.moved_to(offset);
    target.copy_from_slice(&to_bytes(py, &content.with_view(view))?);
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
    let extents: Vec<i64> = src.view.shape().iter().map(|extent| *extent as i64).collect();
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
    let outcome = py.detach(|| copy::range(&stream.queue, (&dst.storage, to), (&src.storage, from), len));
    outcome.inspect(|event| stream.note(event)).or_else(|failure| match &failure {
        Failure::Core(Error { kind: ErrorKind::WrongContext { .. }, .. }) => {
            let place = |stream: &Stream| {
                let context = stream.context();
                format!("{} (context {})", usm_core::Selector::of(context.info()), context.id())
            };
            let (own_place, to, from) = (place(stream), place(&dst.stream), place(&src.stream));
            Err(Class::Request.error(format!(
                "the queue is of {own_place}, the destination of {to}, the source of {from}: a queue copies \
                 memory of its own context, usm.copy that of any other and NumPy's"
            )))
        }
        _ => Err(failure).or_raise(),
    })
}

/// Waits until a consumer that does not know our events may access the memory. Returns its address.
pub(crate) fn expose(py: Python<'_>, storage: &Storage) -> PyResult<()> {
    storage.escape();
    wait::for_uses(py, storage, Access::Write)
}

/// [`expose`] for access by the host. The duration of that access is unknown: for memory without
/// concurrent access, Python code must separate its launches from its own accesses, as with every
/// library.
pub(crate) fn expose_to_host(py: Python<'_>, storage: &Storage, protocol: Protocol) -> PyResult<()> {
    wait::for_export(py, storage, protocol)?;
    // SAFETY: it only waits.
    let wait = || unsafe { storage.allocation() }.wait_for_host(Access::Write).map(drop);
    py.detach(wait).or_raise()
}
