//! Copies and pickles of arrays: `copy`, `deepcopy`, and every pickle protocol.

use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use usm_core::{AllocKind, Selector};
use usm_interface::Extent;

use crate::array::Array;
use crate::array::content::{Keeper, Owner};
use crate::array::dtype::PyDtype;
use crate::array::view::{MAX_DIMS, View};
use crate::device::defaults;
use crate::device::runtime::{self, Stream};
use crate::exchange::adoption;
use crate::exchange::buffer::HeldBuffer;
use crate::process::pickled;
use crate::storage::Storage;
use crate::storage::handle::Memory;
use crate::storage::memory;
use crate::storage::reserve;
use crate::storage::side::Side;
use crate::storage::transfer;
use crate::text::argument;
use crate::text::error::{Class, OrRaise};

/// The first pickle protocol with buffers outside of the pickle.
const OUT_OF_BAND: i64 = 5;

#[pymethods]
impl Array {
    /// With protocol 5 the elements are a buffer, outside of the pickle if the receiver accepts
    /// buffers. Older protocols store bytes in the pickle. Only the visible elements are stored, in
    /// C order.
    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, protocol: i64) -> PyResult<Bound<'py, PyTuple>> {
        let (py, side) = (slf.py(), slf.get().side());
        let rebuild = py.import("usm._usm")?.getattr("_rebuild_array")?;
        let element = PyDtype::of_view(&side.view);
        let shape = PyTuple::new(py, side.view.shape().iter())?;
        let selector = Selector::of(side.stream.context().info()).to_string();
        let (kind, readonly) = (side.storage.kind().name(), side.storage.is_readonly());
        let state = (elements_of(py, side, protocol)?, shape, element, kind, selector, readonly);
        PyTuple::new(py, [rebuild, state.into_pyobject(py)?.into_any()])
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        Self::__reduce_ex__(slf, 2)
    }

    /// A writable copy of the elements in memory of the same kind and context.
    fn __copy__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Self>> {
        let side = self.side();
        Self::new(transfer::duplicate(py, &side, &side.stream, side.storage.kind(), 0)?).into_object(py)
    }

    fn __deepcopy__<'py>(&self, py: Python<'py>, memo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        let _ = memo;
        self.__copy__(py)
    }
}

/// The elements in C order. Does not copy if they lie in that order in memory that the host can
/// read.
fn elements_of(py: Python<'_>, side: Side, protocol: i64) -> PyResult<Bound<'_, PyAny>> {
    let in_place = side.storage.is_host_accessible() && side.view.is_c_contiguous() && side.view.nbytes() > 0;
    if protocol < OUT_OF_BAND {
        return Ok(transfer::to_object(py, &side)?.into_any());
    }
    let exporter = if in_place {
        memory::wrap(py, Memory::of_span(side))?
    } else {
        reserve::bytearray(py, &transfer::to_bytes(py, &side)?)?.into_any()
    };
    py.import("pickle")?.getattr("PickleBuffer")?.call1((exporter,))
}

/// The unpickler: an array of the elements in `content`, on the device that `selector` names if it
/// exists, otherwise on the default device.
///
/// # Errors
/// [`Class::Interface`] for content that no pickle of an array has.
#[pyfunction]
pub(crate) fn _rebuild_array<'py>(
    py: Python<'py>,
    content: &Bound<'py, PyAny>,
    shape: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    kind: &Bound<'py, PyAny>,
    selector: &Bound<'py, PyAny>,
    readonly: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, Array>> {
    pickled::read(py, "an array", || {
        let content_error =
            |what: &str, error: PyErr| Class::Interface.error(format!("{what}: {}", error.value(py)));
        // One extent above the limit is enough for the error about them.
        let extents = argument::items(shape, MAX_DIMS + 1, |extent| extent.extract());
        let extents: Vec<i64> = extents.map_err(|error| content_error("shape", error))?;
        let element = dtype.cast::<PyDtype>().map_err(|error| content_error("dtype", error.into()))?.get();
        let kind = argument::kind(pickled::text("kind", kind)?)?;
        let selector = pickled::text("selector", selector)?;
        let readonly: bool = readonly.extract().map_err(|error| content_error("readonly", error))?;
        let buffer = HeldBuffer::new(content, false).map_err(|error| content_error("content", error))?;
        let view =
            View::contiguous(element.dtype, &extents).map_err(|error| content_error("shape", error))?;
        let view = View { descr: element.descr.clone(), ..view };
        if view.nbytes() != buffer.len() {
            let (has, needs) = (buffer.len(), view.nbytes());
            return Err(Class::Interface.error(format!("content has {has} bytes, the elements need {needs}")));
        }
        let stream = queue_of_pickle(py, selector)?;
        let may_be_shared = readonly || buffer.raw().readonly == 0;
        if stream.is_host() && kind != AllocKind::Device && may_be_shared && buffer.len() > 0 {
            return adopt(py, content, buffer, stream, kind, view, readonly);
        }
        let write = || {
            let storage = Storage::allocate(&stream, kind, buffer.len(), 0)?;
            storage.write(&stream.queue, 0, buffer)?;
            Ok::<_, crate::text::error::Failure>(storage.restricted(readonly))
        };
        let storage = py.detach(write).or_raise()?;
        Array::new(Side { storage, stream, view }).into_object(py)
    })
}

/// Uses the buffer itself as the array's memory.
fn adopt<'py>(
    py: Python<'py>,
    content: &Bound<'py, PyAny>,
    content_buffer: HeldBuffer,
    stream: Arc<Stream>,
    kind: AllocKind,
    view: View,
    readonly: bool,
) -> PyResult<Bound<'py, Array>> {
    let (address, high) = (content_buffer.pointer() as u64, content_buffer.len() as i64);
    debug_assert!(NonNull::new(content_buffer.pointer()).is_some(), "a buffer with bytes has an address");
    let owner = Owner { object: Some(content.clone().unbind()), keeper: Keeper::Buffer(content_buffer) };
    // SAFETY: on the host every kind is plain memory. The exporter keeps these bytes alive and in
    // place while the buffer is held.
    unsafe { adoption::adopt(py, owner, stream, kind, address, (view, Extent { low: 0, high }), readonly) }
}

/// The default queue of the device that a pickle names. If the device does not exist, the default
/// device's queue, with one warning.
fn queue_of_pickle(py: Python<'_>, selector: &str) -> PyResult<Arc<Stream>> {
    static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if let Err(error) = selector.parse::<Selector>() {
        return Err(Class::Interface.error(format!("selector {selector:?}: {error}")));
    }
    let reason = match runtime::select(py, selector) {
        Ok(entry) => return entry.scope()?.queue(),
        Err(error) => error,
    };
    let stream = defaults::stream(py)?;
    if WARNED.lock().unwrap_or_else(PoisonError::into_inner).insert(selector.to_owned()) {
        let text = format!(
            "the array's device {selector} is not here, so it is on {}: {}",
            Selector::of(stream.context().info()),
            reason.value(py)
        );
        py.import("warnings")?.call_method1("warn", (text, py.get_type::<PyRuntimeWarning>(), 2))?;
    }
    Ok(stream)
}
