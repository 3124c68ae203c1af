//! `usm.asarray`, `usm.empty`, `usm.zeros`, `usm.copy`, `usm.to_numpy`.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyString, PyTuple};
use usm_core::AllocKind;
use usm_interface::{Dtype, Kind, Mode, typestr};

use crate::array::Array;
use crate::dlpack;
use crate::error::{Class, OrRaise};
use crate::import;
use crate::memory::Memory;
use crate::runtime;
use crate::scalar;
use crate::storage::Storage;
use crate::transfer::{self, Side};
use crate::view::{MAX_DIMS, View};

/// An element type from a type string, `numpy.dtype`, or Python's `bool`, `int`, `float`, `complex`.
fn dtype(value: &Bound<'_, PyAny>) -> PyResult<Dtype> {
    let py = value.py();
    let of_class = [
        (py.get_type::<PyBool>(), "|b1"),
        (py.get_type::<PyInt>(), "<i8"),
        (py.get_type::<PyFloat>(), "<f8"),
        (py.get_type::<PyComplex>(), "<c16"),
    ];
    let word = of_class.iter().find(|(class, _)| value.is(class)).map(|(_, word)| *word);
    let text: String = match word {
        Some(word) => word.to_owned(),
        None if value.is_instance_of::<PyString>() => value.extract()?,
        None => match value.getattr_opt(intern!(py, "str"))? {
            // A `numpy.dtype` has its type string there; a scalar class such as `numpy.float32` gives one.
            Some(text) if text.is_instance_of::<PyString>() => text.extract()?,
            _ => py.import("numpy")?.getattr("dtype")?.call1((value,))?.getattr("str")?.extract()?,
        },
    };
    let named = [
        ("bool", "|b1"),
        ("int8", "|i1"),
        ("int16", "<i2"),
        ("int32", "<i4"),
        ("int64", "<i8"),
        ("uint8", "|u1"),
        ("uint16", "<u2"),
        ("uint32", "<u4"),
        ("uint64", "<u8"),
        ("float16", "<f2"),
        ("float32", "<f4"),
        ("float64", "<f8"),
        ("complex64", "<c8"),
        ("complex128", "<c16"),
    ];
    let word = named.iter().find(|(name, _)| *name == text).map_or(text.as_str(), |(_, word)| *word);
    let parsed = typestr::parse(word, Mode::Numpy, None)
        .map_err(|error| Class::Request.error(format!("dtype {text:?}: {error}")))?;
    if parsed.kind() == Kind::Object {
        return Err(Class::Request.error("USM memory cannot hold Python objects"));
    }
    Ok(parsed)
}

fn shape(value: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    if let Ok(extent) = value.extract::<i64>() {
        return Ok(vec![extent]);
    }
    value.extract()
}

/// A new array without values.
fn new_side(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    kind: &str,
    queue: Option<&Bound<'_, PyAny>>,
    alignment: usize,
) -> PyResult<Side> {
    let dtype = match dtype {
        Some(dtype) => self::dtype(dtype)?,
        None => self::dtype(py.get_type::<PyFloat>().as_any())?,
    };
    let kind = import::kind(kind)?;
    let view = View::contiguous(dtype, &self::shape(shape)?)?;
    let stream = import::stream(py, queue)?;
    let storage =
        py.detach(|| Storage::allocate(stream.context(), kind, view.nbytes(), alignment)).or_raise()?;
    Ok(Side { storage, stream, view })
}

/// A new array whose elements are not set; `dtype` is float64 when it is not given.
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, *, kind="shared", queue=None, alignment=0))]
pub(crate) fn empty(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    kind: &str,
    queue: Option<&Bound<'_, PyAny>>,
    alignment: usize,
) -> PyResult<Array> {
    let side = new_side(py, shape, dtype, kind, queue, alignment)?;
    Ok(Array::new(side))
}

/// A new array of zeros; `dtype` is float64 when it is not given.
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, *, kind="shared", queue=None, alignment=0))]
pub(crate) fn zeros(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    kind: &str,
    queue: Option<&Bound<'_, PyAny>>,
    alignment: usize,
) -> PyResult<Array> {
    let side = new_side(py, shape, dtype, kind, queue, alignment)?;
    let len = side.view.nbytes();
    py.detach(|| side.storage.fill(&side.stream.queue, 0, len, 0)).or_raise()?;
    Ok(Array::new(side))
}

/// Anything as an array: without a copy where the object's protocol and the wishes allow it.
///
/// `kind` and `queue` ask for memory of a kind and of a queue's context; what is not there already is copied. `copy`
/// True always copies, False never: it raises where a copy would be needed.
#[pyfunction]
#[pyo3(signature = (obj, *, dtype=None, kind=None, queue=None, copy=None))]
pub(crate) fn asarray<'py>(
    obj: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    kind: Option<&str>,
    queue: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, Array>> {
    if dtype.is_none()
        && kind.is_none()
        && queue.is_none()
        && copy != Some(true)
        && let Some(array) = as_it_is(obj)?
    {
        return Ok(array);
    }
    asked(obj, dtype, kind, queue, copy).and_then(|array| Bound::new(obj.py(), array))
}

/// Memory that the object holds already; an array is itself.
fn as_it_is<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Array>>> {
    if let Ok(array) = obj.cast_exact::<Array>() {
        return Ok(Some(array.clone()));
    }
    if let Ok(memory) = obj.cast::<Memory>() {
        return Bound::new(obj.py(), Array::new(memory.get().side()?)).map(Some);
    }
    import::without_copy(obj)
}

/// With everything that can be asked for.
#[cold]
fn asked(
    obj: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    kind: Option<&str>,
    queue: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Array> {
    let py = obj.py();
    let dtype = dtype.map(self::dtype).transpose()?;
    let kind = kind.map(import::kind).transpose()?;
    let queue = queue.filter(|queue| !queue.is_none());
    let (side, fresh) = match Side::of_existing(obj)? {
        Some(side) => (side, false),
        None => (of_values(obj, dtype)?, true),
    };
    if let Some(wanted) = dtype.filter(|wanted| *wanted != side.view.dtype) {
        return Err(Class::Request.error(format!(
            "elements are {}, {wanted} was asked for: usm moves memory and does not convert",
            side.view.dtype
        )));
    }
    let stream = match queue {
        Some(queue) => Some(import::stream(py, Some(queue))?),
        // Values that are in no USM memory yet go to the default device: numbers always, foreign host memory when it is
        // to become another kind.
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
    /// Memory that the object holds already.
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
    let mut bytes = Vec::with_capacity(values.len() * itemsize);
    for value in &values {
        bytes.extend_from_slice(&scalar::store(dtype, value)?[..itemsize]);
    }
    let stream = Arc::clone(runtime::host_stream()?);
    let view = View::contiguous(dtype, &extents)?;
    let storage = Storage::allocate(stream.context(), AllocKind::Host, bytes.len(), 0).or_raise()?;
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

fn infer(values: &[Bound<'_, PyAny>]) -> PyResult<Dtype> {
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
    let (kind, size) = match highest {
        Some(0) => (Kind::Bool, 1),
        Some(1) => (Kind::Int, 8),
        Some(3) => (Kind::Complex, 16),
        _ => (Kind::Float, 8),
    };
    Dtype::number(kind, size).ok_or_else(|| Class::Request.error("no such element type"))
}

/// Checks the dictionary of an object's `__sycl_usm_array_interface__`, `__array_interface__` or
/// `__cuda_array_interface__` as `asarray` would, without touching the memory or asking a runtime: bytes of its elements.
#[pyfunction]
pub(crate) fn validate(obj: &Bound<'_, PyAny>) -> PyResult<u64> {
    import::validate(obj)
}

/// Memory behind an object's `__dlpack__`, without a copy unless `copy` or another device asks the producer for one.
#[pyfunction]
#[pyo3(signature = (obj, *, dl_device=None, copy=None))]
pub(crate) fn from_dlpack<'py>(
    obj: &Bound<'py, PyAny>,
    dl_device: Option<(i32, i32)>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, Array>> {
    let array = dlpack::import(obj, dlpack::Request { dl_device, copy })?;
    array.ok_or_else(|| Class::Interface.error("the object has no __dlpack__"))
}

/// Copies the elements of `src` into `dst`, across kinds, devices and contexts, and waits for it. Shapes are broadcast;
/// element types must be equal.
#[pyfunction]
pub(crate) fn copy(py: Python<'_>, dst: &Bound<'_, PyAny>, src: &Bound<'_, PyAny>) -> PyResult<()> {
    transfer::copy(py, &Side::of(dst)?, &Side::of(src)?)
}

/// A NumPy array: over the same memory where the host may look, a copy of device memory.
#[pyfunction]
pub(crate) fn to_numpy<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let mut side = Side::of(array)?;
    if !side.storage.is_host_accessible() {
        let stream = Arc::clone(runtime::host_stream()?);
        side = transfer::duplicate(py, &side, &stream, AllocKind::Host, 0)?;
    }
    py.import(intern!(py, "numpy"))?
        .call_method1(intern!(py, "asarray"), (Bound::new(py, Array::new(side))?,))
}
