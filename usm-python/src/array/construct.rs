//! Makes arrays from existing objects: `usm.asarray`, `usm.copy`, `usm.to_numpy`.

use std::collections::HashSet;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyRange, PySequence, PyTuple};
use usm_core::AllocKind;
use usm_interface::Dtype;

use crate::array::Array;
use crate::array::dtype::PyDtype;
use crate::array::scalar;
use crate::array::structures;
use crate::array::uniform;
use crate::array::view::{MAX_DIMS, View};
use crate::device::choice;
use crate::device::queue::PyEvent;
use crate::device::runtime::{self, Stream};
use crate::exchange::array_method::{self, Offer};
use crate::exchange::arrow;
use crate::exchange::dlpack;
use crate::exchange::import;
use crate::process::once::name;
use crate::storage::Storage;
use crate::storage::handle::Memory;
use crate::storage::reserve;
use crate::storage::side::Side;
use crate::storage::transfer;
use crate::text::argument::Kind;
use crate::text::error::{Class, Failure, OrRaise};

/// Any object as an array, without a copy if the object's protocol and the options allow it.
///
/// `kind`, `device` and `queue` request memory of a kind, of a device and of a queue's context;
/// other memory is copied. Work on the array goes to the given queue, also without a copy. `copy`
/// True always copies. False never copies, and raises if a copy would be needed.
///
/// >>> data = bytearray(b"abc")
/// >>> array = usm.asarray(data)
/// >>> array[0] = 65
/// >>> data
/// bytearray(b'Abc')
#[pyfunction]
#[pyo3(signature = (obj, dtype=None, *, kind=None, device=None, queue=None, copy=None))]
pub(crate) fn asarray<'py>(
    obj: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    kind: Option<Kind>,
    device: Option<&Bound<'py, PyAny>>,
    queue: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, Array>> {
    let is_plain =
        dtype.is_none() && kind.is_none() && device.is_none() && queue.is_none() && copy != Some(true);
    let offer = match (existing(obj)?, is_plain) {
        (Offer::Shared(array), true) => return Ok(array),
        (offer, _) => offer,
    };
    let place = choice::queue_of_arguments(obj.py(), device, queue)?;
    let place = Place { stream: place, is_queue: queue.is_some() };
    let array = construct_with_options(obj, &offer, dtype, kind, place, copy)?;
    array.into_object(obj.py())
}

/// The memory that the object already has; an array is returned as it is.
fn existing<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Offer<'py>> {
    if let Ok(array) = obj.cast_exact::<Array>() {
        return Ok(Offer::Shared(array.clone()));
    }
    if let Ok(memory) = obj.cast::<Memory>() {
        return Array::new(memory.get().side()?).into_object(obj.py()).map(Offer::Shared);
    }
    import::find(obj)
}

/// Where an array is asked for.
struct Place {
    stream: Option<Arc<Stream>>,
    /// Whether the caller named a queue, and not only its device.
    is_queue: bool,
}

/// `asarray` with all options.
#[cold]
fn construct_with_options(
    obj: &Bound<'_, PyAny>,
    offer: &Offer<'_>,
    dtype: Option<&Bound<'_, PyAny>>,
    kind: Option<Kind>,
    place: Place,
    copy: Option<bool>,
) -> PyResult<Array> {
    let py = obj.py();
    let element = dtype.map(PyDtype::of).transpose()?;
    let kind = kind.map(|kind| kind.0);
    let (side, fresh) = match (offer, &element) {
        (Offer::Shared(array), _) => (array.get().side(), false),
        (Offer::Copied(array), _) => (of_copy(obj, array)?, true),
        (Offer::Nothing, Some(element)) if element.descr.is_some() && is_sequence(obj) => {
            (structures::of_values(obj, element)?, true)
        }
        (Offer::Nothing, _) => (of_values(obj, element.as_ref().map(|element| element.dtype))?, true),
    };
    let same = |requested: &PyDtype| {
        let own = PyDtype::of_view(&side.view);
        requested.dtype == own.dtype && (requested.descr.is_none() || *requested == own)
    };
    if let Some(requested) = element.filter(|target| !same(target)) {
        let own = PyDtype::of_view(&side.view);
        return Err(Class::Request.error(format!(
            "elements are {own}, {requested} was asked for: usm moves memory and does not convert; \
             astype converts values, view reads the same bytes as another type"
        )));
    }
    let stream = match place.stream {
        Some(stream) => Some(stream),
        // Values outside of USM go to the default device: numbers always, and foreign host memory
        // if it must become another kind.
        None if fresh => Some(choice::stream(py, None)?),
        None if side.storage.is_foreign() && side.stream.is_host() => {
            let other = kind.is_some_and(|kind| kind != side.storage.kind());
            other.then(|| choice::stream(py, None)).transpose()?
        }
        None => None,
    };
    let other_context =
        stream.as_ref().is_some_and(|stream| stream.context().id() != side.stream.context().id());
    let other_kind = kind.is_some_and(|kind| kind != side.storage.kind());
    if copy == Some(false) && (fresh || other_context || other_kind) {
        let reason = match (fresh, other_context) {
            (true, _) => "the values are in no memory that could be shared",
            (false, true) => "the memory belongs to another context than the queue's",
            (false, false) => "the memory is of another kind",
        };
        return Err(Class::Access.error(format!("copy=False, but a copy is needed: {reason}")));
    }
    if !fresh && !other_context && !other_kind && copy != Some(true) {
        // The context counts what is in flight on the memory, so any of its queues may go on.
        let queue = stream.filter(|_| place.is_queue).unwrap_or_else(|| Arc::clone(&side.stream));
        return Ok(Array::new(Side { stream: queue, ..side }));
    }
    let stream = stream.unwrap_or_else(|| Arc::clone(&side.stream));
    let default = if fresh || other_context { AllocKind::Shared } else { side.storage.kind() };
    transfer::duplicate(py, &side, &stream, kind.unwrap_or(default), 0).map(Array::new)
}

/// The elements of an object that copies them into a new ndarray.
fn of_copy(obj: &Bound<'_, PyAny>, array: &Bound<'_, PyAny>) -> PyResult<Side> {
    import::require_side(array).map_err(|error| arrow::reason(obj, error))
}

/// Whether [`of_values`] takes the object as several values.
pub(crate) fn is_sequence(obj: &Bound<'_, PyAny>) -> bool {
    obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>() || obj.is_exact_instance_of::<PyRange>()
}

/// Numbers, and nested lists and tuples of numbers, in host memory. A range counts as a list.
pub(crate) fn of_values(obj: &Bound<'_, PyAny>, dtype: Option<Dtype>) -> PyResult<Side> {
    // A dataset of a file, for example, whose `__array__` reads it anew each time.
    if !is_sequence(obj)
        && let Some(array) = array_method::ask(obj)?
    {
        return of_copy(obj, &array);
    }
    let obj = &match obj.is_exact_instance_of::<PyRange>() {
        true => obj.cast::<PySequence>()?.to_list()?.into_any(),
        false => obj.clone(),
    };
    if let Some(side) = uniform::of_numbers(obj, dtype)? {
        return Ok(side);
    }
    let mut walk = Walk { extents: Vec::new(), values: count_announced(obj)?, barren: HashSet::new() };
    walk.flatten(obj, 0)?;
    let Walk { extents, values, .. } = walk;
    let dtype = match dtype {
        Some(dtype) => dtype,
        None => infer(&values, !extents.is_empty())?,
    };
    let itemsize = dtype.itemsize() as usize;
    let mut bytes = reserve::reserved(values.len().saturating_mul(itemsize)).or_raise()?;
    for value in &values {
        bytes.extend_from_slice(&scalar::store(dtype, value)?[..itemsize]);
    }
    let stream = Arc::clone(runtime::host_stream()?);
    let view = View::contiguous(dtype, &extents)?;
    let storage = Storage::allocate(&stream, AllocKind::Host, bytes.len(), 0).or_raise()?;
    storage.write(&stream.queue, 0, bytes).or_raise()?;
    Ok(Side { storage, stream, view })
}

/// The number of values that the first sequences of each depth announce: all others have the same
/// length. A short text can announce more than any memory holds, because one object may occur many
/// times. It is refused here, before any walk.
fn count_announced<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut count = 1_usize;
    let mut first = obj.clone();
    for depth in 0.. {
        let (extent, next) = if let Ok(list) = first.cast::<PyList>() {
            (list.len(), list.get_item(0).ok())
        } else if let Ok(tuple) = first.cast::<PyTuple>() {
            (tuple.len(), tuple.get_item(0).ok())
        } else {
            break;
        };
        if depth == MAX_DIMS {
            return Err(too_deep_error());
        }
        count = count.saturating_mul(extent);
        let Some(next) = next else { break };
        first = next;
    }
    reserve::reserved(count).or_raise()
}

/// The walk through nested sequences.
struct Walk<'py> {
    /// Lengths of the sequences, by depth.
    extents: Vec<i64>,
    values: Vec<Bound<'py, PyAny>>,
    /// Sequences that had no value in them, with their depth. One that stands in many places is
    /// walked through once. All live as long as the outermost one, which holds them.
    barren: HashSet<(usize, *mut ffi::PyObject)>,
}

impl<'py> Walk<'py> {
    fn flatten(&mut self, value: &Bound<'py, PyAny>, depth: usize) -> PyResult<()> {
        let mut items: Vec<_>;
        if let Ok(list) = value.cast::<PyList>() {
            items = reserve::reserved(list.len()).or_raise()?;
            items.extend(list.iter());
        } else if let Ok(tuple) = value.cast::<PyTuple>() {
            items = reserve::reserved(tuple.len()).or_raise()?;
            items.extend(tuple.iter());
        } else {
            if depth != self.extents.len() {
                return Err(uneven_error());
            }
            self.values.try_reserve(1).map_err(|_| Failure::NoMemory(self.values.len() + 1)).or_raise()?;
            self.values.push(value.clone());
            return Ok(());
        }
        if depth == MAX_DIMS {
            return Err(too_deep_error());
        }
        let extent = items.len() as i64;
        match self.extents.get(depth) {
            None if self.values.is_empty() => self.extents.push(extent),
            Some(length) if *length == extent => {}
            _ => return Err(uneven_error()),
        }
        let place = (depth, value.as_ptr());
        if self.barren.contains(&place) {
            return Ok(());
        }
        items.iter().try_for_each(|item| self.flatten(item, depth + 1))?;
        if self.values.is_empty() {
            self.barren.try_reserve(1).map_err(|_| Failure::NoMemory(self.barren.len() + 1)).or_raise()?;
            self.barren.insert(place);
        }
        Ok(())
    }
}

#[cold]
fn too_deep_error() -> PyErr {
    PyValueError::new_err("sequences are nested more than 64 deep")
}

#[cold]
fn uneven_error() -> PyErr {
    PyValueError::new_err("the sequences are nested unevenly")
}

/// The type of elements that hold all of these numbers: Python's, and NumPy's scalars.
///
/// `inside`: they stand in a list or tuple.
pub(crate) fn infer(values: &[Bound<'_, PyAny>], inside: bool) -> PyResult<Dtype> {
    let (mut highest, mut of_numpy) = (None, Vec::new());
    for value in values {
        let rank = if value.is_instance_of::<PyBool>() {
            0
        } else if value.is_instance_of::<PyInt>() {
            1
        } else if value.is_instance_of::<PyFloat>() {
            2
        } else if value.is_instance_of::<PyComplex>() {
            3
        } else {
            let dtype = scalar::number_of_numpy(value)?.ok_or_else(|| no_number(value, inside))?;
            if !of_numpy.contains(&dtype) {
                of_numpy.push(dtype);
            }
            continue;
        };
        highest = highest.max(Some(rank));
    }
    use usm_interface::Kind as Of;
    let (kind, size) = match highest {
        Some(0) => (Of::Bool, 1),
        Some(1) => (Of::Int, 8),
        Some(3) => (Of::Complex, 16),
        _ => (Of::Float, 8),
    };
    let of_python = || Dtype::number(kind, size).ok_or_else(|| Class::Request.error("no such element type"));
    match (&of_numpy[..], highest) {
        ([], _) => of_python(),
        ([dtype], None) => Ok(*dtype),
        _ => {
            of_numpy.extend(highest.is_some().then(of_python).transpose()?);
            promoted(values[0].py(), &of_numpy)
        }
    }
}

/// NumPy's promotion of its types.
fn promoted(py: Python<'_>, types: &[Dtype]) -> PyResult<Dtype> {
    let types = types.iter().map(|dtype| PyDtype::from(*dtype).dtype(py)).collect::<PyResult<Vec<_>>>()?;
    let numpy = py.import(name!(py, "numpy"))?;
    let common_type = numpy.call_method1(name!(py, "result_type"), PyTuple::new(py, types)?)?;
    Ok(PyDtype::of(&common_type)?.dtype)
}

#[cold]
fn no_number(value: &Bound<'_, PyAny>, inside: bool) -> PyErr {
    let name = value.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    if inside {
        return Class::Interface.error(format!(
            "an object of type {name} in a list or tuple is no number, no list and no tuple"
        ));
    }
    Class::Interface.error(format!(
        "an object of type {name} is no number, no list or tuple of numbers, and exposes none of \
         __sycl_usm_array_interface__, __array_interface__, __cuda_array_interface__, __dlpack__, __array__, \
         __arrow_c_array__ and the buffer protocol"
    ))
}

/// Checks an object's `__sycl_usm_array_interface__`, `__array_interface__` or
/// `__cuda_array_interface__` as `asarray` would, without access to the memory or a runtime.
/// Returns the size of its elements in bytes.
///
/// >>> usm.validate(usm.zeros((2, 3), "f4", device="host"))
/// 24
#[pyfunction]
pub(crate) fn validate(obj: &Bound<'_, PyAny>) -> PyResult<u64> {
    import::validate(obj)
}

/// Memory behind an object's `__dlpack__`, without a copy unless `copy` or another device asks the
/// producer for one.
#[pyfunction]
#[pyo3(signature = (obj, *, dl_device=None, copy=None))]
pub(crate) fn from_dlpack<'py>(
    obj: &Bound<'py, PyAny>,
    dl_device: Option<(i32, i32)>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, Array>> {
    let request = dlpack::Request { dl_device, copy };
    let array = import::with_recursion_guard(obj.py(), || dlpack::import(obj, request, |_| Ok(false)))?;
    array.ok_or_else(|| Class::Interface.error("the object has no __dlpack__"))
}

/// Copies the elements of `src` to `dst`, across kinds, devices and contexts, and waits. Shapes are
/// broadcast; element types must be equal.
///
/// >>> rows = usm.zeros((2, 3), "i4", kind="device", device="host")
/// >>> usm.copy(rows, usm.asarray([1, 2, 3], dtype="i4", device="host"))
/// >>> rows.tolist()
/// [[1, 2, 3], [1, 2, 3]]
///
/// With `wait=False` the copy may go on, and the result is its event. Later work on our arrays
/// follows it. The memory of other objects is kept alive, but must not be written (`src`) or used
/// (`dst`) before the event is complete.
///
/// >>> usm.copy(rows, usm.asarray([4, 5, 6], dtype="i4", device="host"), wait=False).wait()
/// >>> rows[0].tolist()
/// [4, 5, 6]
#[pyfunction]
#[pyo3(signature = (dst, src, *, wait=true))]
pub(crate) fn copy(
    py: Python<'_>,
    dst: &Bound<'_, PyAny>,
    src: &Bound<'_, PyAny>,
    wait: bool,
) -> PyResult<Option<PyEvent>> {
    let (dst, src) = transfer::both_sides(dst, src)?;
    if wait {
        return transfer::copy(py, &dst, &src).map(|()| None);
    }
    transfer::submit_copy(py, &dst, &src).map(|event| Some(PyEvent(event)))
}

/// A NumPy array: on the same memory if the host can access it, otherwise a copy.
#[pyfunction]
pub(crate) fn to_numpy<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let mut side = Side::of(array)?;
    if !side.storage.is_host_accessible() {
        let stream = Arc::clone(runtime::host_stream()?);
        side = transfer::duplicate(py, &side, &stream, AllocKind::Host, 0)?;
    }
    let element = PyDtype::of_view(&side.view);
    let is_extended = matches!(element.dtype.kind(), usm_interface::Kind::Extended(_));
    if is_extended {
        // As bytes, which NumPy then views as elements of ml_dtypes.
        let bytes = Dtype::void(element.dtype.itemsize());
        side.view.dtype = bytes.ok_or_else(|| Class::Request.error("elements without bytes"))?;
    }
    let array = py
        .import(name!(py, "numpy"))?
        .call_method1(name!(py, "asarray"), (Array::new(side).into_object(py)?,))?;
    if is_extended { array.call_method1(name!(py, "view"), (element.dtype(py)?,)) } else { Ok(array) }
}
