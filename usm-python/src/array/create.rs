//! Makes new arrays: `usm.empty`, `usm.zeros`, `usm.full` and the `_like` variants.

use std::sync::Arc;

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use usm_core::{Access, AllocKind};

use crate::array::Array;
use crate::array::construct;
use crate::array::dtype::PyDtype;
use crate::array::scalar;
use crate::array::structures;
use crate::array::view::{MAX_DIMS, View};
use crate::device::choice;
use crate::device::runtime::Stream;
use crate::process::once::name;
use crate::process::wait;
use crate::storage::Storage;
use crate::storage::handle::Memory;
use crate::storage::side::Side;
use crate::storage::source::Source;
use crate::storage::transfer;
use crate::text::argument::{self, Kind};
use crate::text::error::{Class, Failure, OrRaise};

/// Reads the argument `shape`. One extent above the limit is enough for the error about them.
pub(crate) fn shape(value: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let overflow_error = |error: PyErr| match error.is_instance_of::<PyOverflowError>(value.py()) {
        true => Class::Request.error("shape: an extent does not fit 63 bits"),
        false => {
            let wrong = || argument::type_error("shape", value, "an integer or a sequence of integers");
            argument::conversion_error(value.py(), error, wrong)
        }
    };
    // The usual forms, before an exception says that a tuple is no integer.
    let extent = match value.is_exact_instance_of::<PyTuple>() || value.is_exact_instance_of::<PyList>() {
        true => None,
        false => Some(value.extract::<i64>()),
    };
    match extent {
        Some(Ok(extent)) => Ok(vec![extent]),
        Some(Err(error))
            if !error.is_instance_of::<PyTypeError>(value.py()) || value.is_instance_of::<PyString>() =>
        {
            Err(overflow_error(error))
        }
        _ => {
            let place = std::cell::Cell::new(0_usize);
            let read = |extent: &Bound<'_, PyAny>| {
                let at = place.replace(place.get() + 1);
                extent.extract().map_err(|error: PyErr| {
                    match error.is_instance_of::<PyTypeError>(value.py()) {
                        true => argument::type_error(&format!("shape[{at}]"), extent, "an integer"),
                        false => error,
                    }
                })
            };
            argument::items(value, MAX_DIMS + 1, read).map_err(|error| match place.get() {
                0 => overflow_error(error),
                _ if error.is_instance_of::<PyTypeError>(value.py()) => error,
                _ => overflow_error(error),
            })
        }
    }
}

/// The place and kind of a new array.
struct Place {
    stream: Arc<Stream>,
    kind: AllocKind,
    alignment: usize,
}

impl Place {
    fn new(
        py: Python<'_>,
        kind: Option<Kind>,
        device: Option<&Bound<'_, PyAny>>,
        queue: Option<&Bound<'_, PyAny>>,
        alignment: usize,
    ) -> PyResult<Self> {
        let stream = match choice::queue_of_arguments(py, device, queue)? {
            Some(stream) => stream,
            None => choice::stream(py, None)?,
        };
        Ok(Self { stream, kind: kind.map_or(AllocKind::Shared, |kind| kind.0), alignment })
    }

    /// A new array with uninitialised elements.
    fn make(self, py: Python<'_>, element: PyDtype, extents: &[i64]) -> PyResult<Side> {
        self.make_by(py, element, extents, |place, source, size| {
            let make = || Storage::allocate_from(source, &place.stream, place.kind, size, place.alignment);
            match source.is_quick(&place.stream, size) {
                true => Ok(make()?),
                false => Ok(py.detach(make)?),
            }
        })
    }

    /// A new array of zeros.
    fn make_zeroed(self, py: Python<'_>, element: PyDtype, extents: &[i64]) -> PyResult<Side> {
        let side = self.make_by(py, element, extents, |place, source, size| {
            let make = || Storage::allocate_zeroed(source, &place.stream, place.kind, size, place.alignment);
            if source.is_quick(&place.stream, size) { make() } else { py.detach(make) }
        })?;
        // Memory in use by a fill would not be free when the program drops the array.
        wait::for_uses(py, &side.storage, Access::Write)?;
        Ok(side)
    }

    /// A new array of one value.
    fn make_filled(
        self,
        py: Python<'_>,
        element: PyDtype,
        extents: &[i64],
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Side> {
        if element.descr.is_some() {
            let result = structures::of_values(value, &element);
            let values = result.map_err(|error| argument::named(py, "fill_value", error))?;
            let side = self.make(py, element, extents)?;
            transfer::copy(py, &side, &values)?;
            return Ok(side);
        }
        let outcome = scalar::store(element.dtype, value);
        let bytes = outcome.map_err(|error| argument::named(py, "fill_value", error))?;
        if bytes.iter().all(|byte| *byte == 0) {
            return self.make_zeroed(py, element, extents);
        }
        let side = self.make(py, element, extents)?;
        transfer::fill(py, &side, bytes)?;
        Ok(side)
    }

    fn make_by(
        self,
        py: Python<'_>,
        element: PyDtype,
        extents: &[i64],
        allocate: impl FnOnce(&Self, &Source, usize) -> Result<Storage, Failure>,
    ) -> PyResult<Side> {
        let PyDtype { dtype, descr } = element;
        let view = View { descr, ..View::contiguous(dtype, extents)? };
        let source = Source::of(py, &self.stream, self.kind)?;
        let storage = allocate(&self, &source, view.nbytes()).or_raise()?;
        Ok(Side { storage, stream: self.stream, view })
    }
}

/// A new array with uninitialised elements; `dtype` defaults to float64. `alignment` is in bytes;
/// 0 means 16.
///
/// >>> array = usm.empty((2, 3), "float32", kind="device", device="host")
/// >>> array.nbytes, array.kind
/// (24, 'device')
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, *, kind=None, device=None, queue=None, alignment=0))]
pub(crate) fn empty<'py>(
    py: Python<'py>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    kind: Option<Kind>,
    device: Option<&Bound<'_, PyAny>>,
    queue: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = argument::alignment)] alignment: usize,
) -> PyResult<Bound<'py, Array>> {
    let element = dtype.map_or_else(PyDtype::double, PyDtype::of)?;
    let extents = self::shape(shape)?;
    let side = Place::new(py, kind, device, queue, alignment)?.make(py, element, &extents)?;
    Array::new(side).into_object(py)
}

/// A new array of zeros; `dtype` defaults to float64.
///
/// >>> usm.zeros(3, "i4", device="host").tolist()
/// [0, 0, 0]
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, *, kind=None, device=None, queue=None, alignment=0))]
pub(crate) fn zeros<'py>(
    py: Python<'py>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    kind: Option<Kind>,
    device: Option<&Bound<'_, PyAny>>,
    queue: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = argument::alignment)] alignment: usize,
) -> PyResult<Bound<'py, Array>> {
    let element = dtype.map_or_else(PyDtype::double, PyDtype::of)?;
    let extents = self::shape(shape)?;
    let side = Place::new(py, kind, device, queue, alignment)?.make_zeroed(py, element, &extents)?;
    Array::new(side).into_object(py)
}

/// The type of a single value: a Python number, or a scalar of NumPy's.
fn of_value(value: &Bound<'_, PyAny>) -> PyResult<PyDtype> {
    let value_error = match construct::infer(std::slice::from_ref(value), false) {
        Ok(dtype) => return Ok(dtype.into()),
        Err(error) => error,
    };
    match value.getattr_opt(name!(value.py(), "dtype"))? {
        Some(dtype) => PyDtype::of(&dtype),
        None => {
            let wrong = || argument::type_error("fill_value", value, "a bool, int, float or complex");
            Err(argument::conversion_error(value.py(), value_error, wrong))
        }
    }
}

/// A new array with one value everywhere; `dtype` defaults to the value's.
///
/// >>> usm.full((2, 2), 1.5, device="host").tolist()
/// [[1.5, 1.5], [1.5, 1.5]]
#[pyfunction]
#[pyo3(signature = (shape, fill_value, dtype=None, *, kind=None, device=None, queue=None, alignment=0))]
#[expect(clippy::too_many_arguments, reason = "the surface of Python")]
pub(crate) fn full<'py>(
    py: Python<'py>,
    shape: &Bound<'_, PyAny>,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    kind: Option<Kind>,
    device: Option<&Bound<'_, PyAny>>,
    queue: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = argument::alignment)] alignment: usize,
) -> PyResult<Bound<'py, Array>> {
    let element = match dtype {
        Some(dtype) => PyDtype::of(dtype)?,
        None => of_value(fill_value)?,
    };
    let extents = self::shape(shape)?;
    let place = Place::new(py, kind, device, queue, alignment)?;
    Array::new(place.make_filled(py, element, &extents, fill_value)?).into_object(py)
}

/// The place, type and shape of a new array like `obj`: by default its type, kind, device and
/// context. Foreign host memory has no device; the default device is used for it.
fn like(
    obj: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    kind: Option<Kind>,
    device: Option<&Bound<'_, PyAny>>,
    queue: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Place, PyDtype, Vec<i64>)> {
    let py = obj.py();
    let ours = obj.is_instance_of::<Array>() || obj.is_instance_of::<Memory>();
    let side = Side::of(obj)?;
    let has_place = ours || !side.stream.is_host();
    let own_kind = kind.map_or_else(|| side.storage.kind(), |kind| kind.0);
    let place = if has_place && device.is_none() && queue.is_none() {
        // No other device is looked for, or opened.
        Place { stream: Arc::clone(&side.stream), kind: own_kind, alignment: 0 }
    } else {
        let place = Place::new(py, kind, device, queue, 0)?;
        if has_place { Place { kind: own_kind, ..place } } else { place }
    };
    let element = match dtype {
        Some(dtype) => PyDtype::of(dtype)?,
        None => PyDtype::of_view(&side.view),
    };
    let extents = side.view.shape().iter().map(|extent| *extent as i64).collect();
    Ok((place, element, extents))
}

/// A new array like another, with uninitialised elements.
#[pyfunction]
#[pyo3(signature = (obj, dtype=None, *, kind=None, device=None, queue=None))]
pub(crate) fn empty_like<'py>(
    obj: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    kind: Option<Kind>,
    device: Option<&Bound<'_, PyAny>>,
    queue: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, Array>> {
    let (place, element, extents) = like(obj, dtype, kind, device, queue)?;
    Array::new(place.make(obj.py(), element, &extents)?).into_object(obj.py())
}

/// A new array of zeros like another.
#[pyfunction]
#[pyo3(signature = (obj, dtype=None, *, kind=None, device=None, queue=None))]
pub(crate) fn zeros_like<'py>(
    obj: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    kind: Option<Kind>,
    device: Option<&Bound<'_, PyAny>>,
    queue: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, Array>> {
    let (place, element, extents) = like(obj, dtype, kind, device, queue)?;
    Array::new(place.make_zeroed(obj.py(), element, &extents)?).into_object(obj.py())
}

/// A new array like another, with one value everywhere.
///
/// >>> like = usm.zeros(3, "i2", kind="shared", device="host")
/// >>> array = usm.full_like(like, 7)
/// >>> array.tolist(), array.kind
/// ([7, 7, 7], 'shared')
#[pyfunction]
#[pyo3(signature = (obj, fill_value, dtype=None, *, kind=None, device=None, queue=None))]
pub(crate) fn full_like<'py>(
    obj: &Bound<'py, PyAny>,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    kind: Option<Kind>,
    device: Option<&Bound<'_, PyAny>>,
    queue: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, Array>> {
    let (place, element, extents) = like(obj, dtype, kind, device, queue)?;
    Array::new(place.make_filled(obj.py(), element, &extents, fill_value)?).into_object(obj.py())
}
