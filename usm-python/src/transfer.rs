//! Copies between arrays, memory objects and the host.

use std::sync::Arc;

use pyo3::prelude::*;
use usm_core::backend::Dyn;
use usm_core::{Access, AllocKind, Event, Result};
use usm_interface::Dtype;

use crate::array::Array;
use crate::axes::Axes;
use crate::error::{Class, OrRaise};
use crate::import;
use crate::memory::Memory;
use crate::runtime::Stream;
use crate::storage::{self, Storage};
use crate::view::{View, copy_elements};

/// One side of a copy.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub(crate) storage: Arc<Storage>,
    pub(crate) stream: Arc<Stream>,
    pub(crate) view: View,
    pub(crate) readonly: bool,
}

impl Side {
    /// An array or a memory object of ours, or whatever can be imported without a copy.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.cast::<Array>() {
            return Ok(array.get().side());
        }
        if let Ok(memory) = object.cast::<Memory>() {
            return memory.get().side();
        }
        import::any(object)
    }

    fn refuse_readonly(&self) -> PyResult<()> {
        if self.readonly { Err(Class::Access.error("the destination is read-only")) } else { Ok(()) }
    }

    fn same_type(&self, other: Dtype) -> PyResult<()> {
        if self.view.dtype == other {
            return Ok(());
        }
        Err(Class::Request.error(format!(
            "elements of type {other} are copied to elements of type {}: usm moves memory and does not convert",
            self.view.dtype
        )))
    }

    /// Bytes from the storage's start at which this side's bytes begin, and how many there are.
    fn span(&self) -> (usize, usize) {
        let span = self.view.span();
        (span.start, span.len())
    }
}

/// Copies elements; `src` is broadcast to the shape of `dst`. Returns when it is done.
pub(crate) fn copy(py: Python<'_>, dst: &Side, src: &Side) -> PyResult<()> {
    dst.refuse_readonly()?;
    dst.same_type(src.view.dtype)?;
    let view = src.view.broadcast_to(&dst.view.shape)?;
    let src = Side { view, ..src.clone() };
    if dst.view.nbytes() == 0 {
        return Ok(());
    }
    py.detach(|| copy_sides(dst, &src)).or_raise()
}

fn copy_sides(dst: &Side, src: &Side) -> Result<()> {
    let ((to, len), (from, src_len)) = (dst.span(), src.span());
    let packed = dst.view.is_c_contiguous() && src.view.is_c_contiguous();
    let apart = {
        let (to, from) = (dst.storage.address() + to, src.storage.address() + from);
        to + len <= from || from + src_len <= to
    };
    if packed && apart && dst.stream.context().id() == src.stream.context().id() {
        return storage::copy(&dst.stream.queue, (&dst.storage, to), (&src.storage, from), len)?.wait();
    }
    if packed {
        // Two contexts, or one range over itself: by way of the host.
        let bytes = src.storage.read(&src.stream.queue, from, len, vec![0; len])?;
        return dst.storage.write(&dst.stream.queue, to, bytes);
    }
    let source = src.storage.read(&src.stream.queue, from, src_len, vec![0; src_len])?;
    store_elements(dst, &source, &src.view, from)
}

/// Puts elements that lie in host memory into `dst`. `shift` is the byte that `source` starts with, in terms of `view`.
fn store_elements(dst: &Side, source: &[u8], view: &View, shift: usize) -> Result<()> {
    let (to, len) = dst.span();
    let mut target = vec![0; len];
    if !dst.view.is_c_contiguous() {
        // What lies between the elements stays as it is.
        target = dst.storage.read(&dst.stream.queue, to, len, target)?;
    }
    // SAFETY: both vectors hold exactly the spans of the views, which are relative to the shifts; they are apart.
    unsafe { copy_elements(target.as_mut_ptr(), (&dst.view, to), source.as_ptr(), (view, shift)) };
    dst.storage.write(&dst.stream.queue, to, target)
}

/// Sets every element to the same bytes, one element's.
pub(crate) fn fill(py: Python<'_>, dst: &Side, element: &[u8]) -> PyResult<()> {
    dst.refuse_readonly()?;
    if dst.view.nbytes() == 0 {
        return Ok(());
    }
    let zero = element.iter().all(|byte| *byte == element[0]);
    if zero && dst.view.is_c_contiguous() {
        let (to, len) = dst.span();
        return py.detach(|| dst.storage.fill(&dst.stream.queue, to, len, element[0])?.wait()).or_raise();
    }
    let ndim = dst.view.ndim();
    let (shape, strides) = (Axes::filled(ndim, 1), Axes::filled(ndim, 0));
    let one = View { shape, strides, offset: 0, ..dst.view.clone() };
    let view = one.broadcast_to(&dst.view.shape)?;
    py.detach(|| store_elements(dst, element, &view, 0)).or_raise()
}

/// The elements in C order.
pub(crate) fn to_bytes(py: Python<'_>, src: &Side) -> PyResult<Vec<u8>> {
    let packed = vec![0; src.view.nbytes()];
    if packed.is_empty() {
        return Ok(packed);
    }
    py.detach(|| {
        let (from, len) = src.span();
        if src.view.is_c_contiguous() {
            return src.storage.read(&src.stream.queue, from, len, packed);
        }
        let span = src.storage.read(&src.stream.queue, from, len, vec![0; len])?;
        let mut packed = packed;
        let strides = contiguous_strides(&src.view);
        let target = View { strides, offset: 0, ..src.view.clone() };
        // SAFETY: `packed` has room for all elements, `span` holds the view's span; they are apart.
        unsafe { copy_elements(packed.as_mut_ptr(), (&target, 0), span.as_ptr(), (&src.view, from)) };
        Ok(packed)
    })
    .or_raise()
}

fn contiguous_strides(view: &View) -> Axes {
    let mut strides = Axes::filled(view.ndim(), 0);
    let mut step = view.itemsize() as isize;
    for (stride, extent) in strides.iter_mut().zip(&view.shape).rev() {
        *stride = step;
        step *= *extent;
    }
    strides
}

/// A C-contiguous copy in memory of `kind` of the stream's context.
pub(crate) fn duplicate(
    py: Python<'_>,
    src: &Side,
    stream: &Arc<Stream>,
    kind: AllocKind,
    alignment: usize,
) -> PyResult<Side> {
    let extents: Vec<i64> = src.view.shape.iter().map(|extent| *extent as i64).collect();
    let view = View { descr: src.view.descr.clone(), ..View::contiguous(src.view.dtype, &extents)? };
    let storage =
        py.detach(|| Storage::allocate(stream.context(), kind, view.nbytes(), alignment)).or_raise()?;
    let side = Side { storage, stream: Arc::clone(stream), view, readonly: false };
    copy(py, &side, src)?;
    Ok(side)
}

/// Submits the copy of one contiguous run and does not wait.
pub(crate) fn copy_async(
    py: Python<'_>,
    stream: &Stream,
    dst: &Bound<'_, PyAny>,
    src: &Bound<'_, PyAny>,
) -> PyResult<Event<Dyn>> {
    let (dst, src) = (Side::of(dst)?, Side::of(src)?);
    dst.refuse_readonly()?;
    if !dst.view.is_c_contiguous() || !src.view.is_c_contiguous() {
        return Err(Class::Request.error("a queue copies C-contiguous memory; usm.copy takes any"));
    }
    if dst.view.nbytes() != src.view.nbytes() {
        let (to, from) = (dst.view.nbytes(), src.view.nbytes());
        return Err(Class::Request.error(format!("the destination has {to} bytes, the source {from}")));
    }
    let ((to, len), (from, _)) = (dst.span(), src.span());
    py.detach(|| storage::copy(&stream.queue, (&dst.storage, to), (&src.storage, from), len)).or_raise()
}

/// Waits until the memory may be shown to somebody who knows nothing of our events, and says where it is.
pub(crate) fn expose(py: Python<'_>, storage: &Storage) -> PyResult<()> {
    py.detach(|| storage.settle()).or_raise()
}

/// As [`expose`], for a host that wants to look.
pub(crate) fn expose_to_host(py: Python<'_>, storage: &Storage) -> PyResult<()> {
    py.detach(|| storage.allocation().wait_for_host(Access::Write)).or_raise()
}
