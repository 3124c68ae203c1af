//! Makes arrays from existing objects: `usm.asarray`, `usm.copy`, `usm.to_numpy`.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyTuple};
use usm_core::AllocKind;
use usm_interface::Dtype;

use crate::argument::Kind;
use crate::array::Array;
use crate::dlpack;
use crate::dtype::PyDtype;
use crate::error::{Class, Failure, OrRaise};
use crate::import;
use crate::memory::Memory;
use crate::room;
use crate::runtime::{self, Stream};
use crate::scalar;
use crate::storage::Storage;
use crate::transfer::{self, Side};
use crate::view::{MAX_DIMS, View};

/// Any object as an array, without a copy if the object's protocol and the options allow it.
///
/// `kind`, `device` and `queue` request memory of a kind, of a device and of a queue's context;
/// other memory is copied. `copy` True always copies. False never copies, and raises if a copy
/// would be needed.
#[pyfunction]
#[pyo3(signature = (obj, *, dtype=None, kind=None, device=None, queue=None, copy=None))]
pub(crate) fn asarray<'py>(
    obj: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    kind: Option<Kind>,
    device: Option<&Bound<'py, PyAny>>,
    queue: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, Array>> {
    if dtype.is_none()
        && kind.is_none()
        && device.is_none()
        && queue.is_none()
        && copy != Some(true)
        && let Some(array) = as_it_is(obj)?
    {
        return Ok(array);
    }
    let place = import::place(obj.py(), device, queue)?;
    construct_with_options(obj, dtype, kind, place, copy).and_then(|array| Bound::new(obj.py(), array))
}

/// The memory that the object already has; an array is returned as it is.
fn as_it_is<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Array>>> {
    if let Ok(array) = obj.cast_exact::<Array>() {
        return Ok(Some(array.clone()));
    }
    if let Ok(memory) = obj.cast::<Memory>() {
        return Bound::new(obj.py(), Array::new(memory.get().side()?)).map(Some);
    }
    import::without_copy(obj)
}

/// `asarray` with all options.
#[cold]
fn construct_with_options(
    obj: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    kind: Option<Kind>,
    place: Option<Arc<Stream>>,
    copy: Option<bool>,
) -> PyResult<Array> {
    let py = obj.py();
    let element = dtype.map(PyDtype::of).transpose()?;
    let dtype = element.as_ref().map(|element| element.dtype);
    let kind = kind.map(|kind| kind.0);
    let (side, fresh) = match Side::of_existing(obj)? {
        Some(side) => (side, false),
        None => (of_values(obj, dtype)?, true),
    };
    let same = |wanted: &PyDtype| {
        let here = PyDtype::of_view(&side.view);
        wanted.dtype == here.dtype && (wanted.descr.is_none() || *wanted == here)
    };
    if let Some(wanted) = element.filter(|wanted| !same(wanted)) {
        let here = PyDtype::of_view(&side.view);
        return Err(Class::Request.error(format!(
            "elements are {here}, {wanted} was asked for: usm moves memory and does not convert"
        )));
    }
    let stream = match place {
        Some(place) => Some(place),
        // Values outside of USM go to the default device: numbers always, and foreign host memory
        // if it must become another kind.
        None if fresh => Some(import::stream(py, None)?),
        None if side.storage.is_foreign() && side.stream.is_host() => {
            let other = kind.is_some_and(|kind| kind != side.storage.kind());
            other.then(|| import::stream(py, None)).transpose()?
        }
        None => None,
    };
    let elsewhere = stream.as_ref().is_some_and(|stream| stream.context().id() != side.stream.context().id());
    let other_kind = kind.is_some_and(|kind| kind != side.storage.kind());
    if copy == Some(false) && (fresh || elsewhere || other_kind) {
        let reason = match (fresh, elsewhere) {
            (true, _) => "the values are in no memory that could be shared",
            (false, true) => "the memory belongs to another context than the queue's",
            (false, false) => "the memory is of another kind",
        };
        return Err(Class::Access.error(format!("copy=False, but a copy is needed: {reason}")));
    }
    if !fresh && !elsewhere && !other_kind && copy != Some(true) {
        return Ok(Array::new(side));
    }
    let stream = stream.unwrap_or_else(|| Arc::clone(&side.stream));
    let default = if fresh || elsewhere { AllocKind::Shared } else { side.storage.kind() };
    transfer::duplicate(py, &side, &stream, kind.unwrap_or(default), 0).map(Array::new)
}

impl Side {
    /// The memory that the object already has.
    #[inline]
    fn of_existing(obj: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(array) = obj.cast_exact::<Array>() {
            return Ok(Some(array.get().side()));
        }
        if let Ok(memory) = obj.cast::<Memory>() {
            return memory.get().side().map(Some);
        }
        Ok(import::without_copy(obj)?.map(|array| array.get().side()))
    }
}

/// Numbers and nested sequences of numbers, in host memory.
pub(crate) fn of_values(obj: &Bound<'_, PyAny>, dtype: Option<Dtype>) -> PyResult<Side> {
    let mut extents = Vec::new();
    let mut values = Vec::new();
    flatten(obj, 0, &mut extents, &mut values)?;
    let dtype = match dtype {
        Some(dtype) => dtype,
        None => infer(&values)?,
    };
    let itemsize = dtype.itemsize() as usize;
    let mut bytes = room::reserved(values.len().saturating_mul(itemsize)).or_raise()?;
    for value in &values {
        bytes.extend_from_slice(&scalar::store(dtype, value)?[..itemsize]);
    }
    let stream = Arc::clone(runtime::host_stream()?);
    let view = View::contiguous(dtype, &extents)?;
    let storage = Storage::allocate(&stream, AllocKind::Host, bytes.len(), 0).or_raise()?;
    storage.write(&stream.queue, 0, bytes).or_raise()?;
    Ok(Side { storage, stream, view })
}

fn flatten<'py>(
    value: &Bound<'py, PyAny>,
    depth: usize,
    extents: &mut Vec<i64>,
    values: &mut Vec<Bound<'py, PyAny>>,
) -> PyResult<()> {
    let items: Vec<Bound<'py, PyAny>> = if let Ok(list) = value.cast::<PyList>() {
        list.iter().collect()
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        tuple.iter().collect()
    } else {
        if depth != extents.len() {
            return Err(PyValueError::new_err("the sequences are nested unevenly"));
        }
        values.try_reserve(1).map_err(|_| Failure::NoMemory(values.len() + 1)).or_raise()?;
        values.push(value.clone());
        return Ok(());
    };
    if depth == MAX_DIMS {
        return Err(PyValueError::new_err("sequences are nested more than 64 deep"));
    }
    let extent = items.len() as i64;
    match extents.get(depth) {
        None if values.is_empty() => extents.push(extent),
        Some(known) if *known == extent => {}
        _ => return Err(PyValueError::new_err("the sequences are nested unevenly")),
    }
    items.iter().try_for_each(|item| flatten(item, depth + 1, extents, values))
}

pub(crate) fn infer(values: &[Bound<'_, PyAny>]) -> PyResult<Dtype> {
    let rank = |value: &Bound<'_, PyAny>| -> PyResult<u8> {
        if value.is_instance_of::<PyBool>() {
            Ok(0)
        } else if value.is_instance_of::<PyInt>() {
            Ok(1)
        } else if value.is_instance_of::<PyFloat>() {
            Ok(2)
        } else if value.is_instance_of::<PyComplex>() {
            Ok(3)
        } else {
            let name = value.get_type().name()?;
            Err(Class::Interface.error(format!(
                "an object of type {name} is no number, no sequence of numbers, and exposes none of \
                 __sycl_usm_array_interface__, __array_interface__, __cuda_array_interface__, __dlpack__ and the \
                 buffer protocol"
            )))
        }
    };
    let highest = values
        .iter()
        .map(rank)
        .try_fold(None, |highest: Option<u8>, rank| Ok::<_, PyErr>(highest.max(Some(rank?))))?;
    use usm_interface::Kind as Of;
    let (kind, size) = match highest {
        Some(0) => (Of::Bool, 1),
        Some(1) => (Of::Int, 8),
        Some(3) => (Of::Complex, 16),
        _ => (Of::Float, 8),
    };
    Dtype::number(kind, size).ok_or_else(|| Class::Request.error("no such element type"))
}

/// Checks an object's `__sycl_usm_array_interface__`, `__array_interface__` or
/// `__cuda_array_interface__` as `asarray` would, without access to the memory or a runtime.
/// Returns the size of its elements in bytes.
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
    let array = import::entered(obj.py(), || dlpack::import(obj, request))?;
    array.ok_or_else(|| Class::Interface.error("the object has no __dlpack__"))
}

/// Copies the elements of `src` to `dst`, across kinds, devices and contexts, and waits. Shapes are
/// broadcast; element types must be equal.
#[pyfunction]
pub(crate) fn copy(py: Python<'_>, dst: &Bound<'_, PyAny>, src: &Bound<'_, PyAny>) -> PyResult<()> {
    transfer::copy(py, &Side::of(dst)?, &Side::of(src)?)
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
        .import(intern!(py, "numpy"))?
        .call_method1(intern!(py, "asarray"), (Bound::new(py, Array::new(side))?,))?;
    if is_extended { array.call_method1(intern!(py, "view"), (element.dtype(py)?,)) } else { Ok(array) }
}
