//! Imports columns: `__arrow_c_device_array__`, `__arrow_c_array__`, `__arrow_c_stream__`.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use usm_interface::Extent;
use usm_interface::arrow::Column;
use usm_interface::arrow::abi::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowSchema, ImportedColumn, OwnedStructure,
};
use usm_interface::dlpack::{Device, DeviceType};
use usm_interface::{Error, ErrorKind, Key, ProtocolError};

use super::capsule;
use crate::array::Array;
use crate::array::content::{Keeper, Owner};
use crate::array::view::{FEW_DIMS, MAX_DIMS, View};
use crate::exchange::{adoption, cuda, dlpack};
use crate::process::attribute;
use crate::process::once::name;
use crate::text::error::{self, Class};
use usm_array::Axes;

/// Why a column is no array.
enum ImportRefusal {
    /// Entries are missing. A copy would need a value for each, which is not ours to choose.
    Missing(PyErr),
    Other(PyErr),
}

impl From<PyErr> for ImportRefusal {
    fn from(error: PyErr) -> Self {
        Self::Other(error)
    }
}

/// The column of an object without a copy; `None` if the object has none of the methods, or if
/// another protocol of it can copy what Arrow cannot share. Arrow's memory is read-only.
pub(crate) fn import<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Array>>> {
    match whole(object) {
        Err(ImportRefusal::Other(error)) if Class::Interface.is_of(&error, object.py()) => {
            match has_array(object)? {
                true => Ok(None),
                false => Err(error),
            }
        }
        Err(ImportRefusal::Other(error) | ImportRefusal::Missing(error)) => Err(error),
        Ok(array) => Ok(array),
    }
}

/// [`import`] of an object whose DLPack was refused by its own exception `refusal`: pyarrow's has
/// numbers alone. Other errors stay.
#[cold]
pub(crate) fn import_beyond_dlpack<'py>(
    object: &Bound<'py, PyAny>,
    refusal: PyErr,
) -> PyResult<Option<Bound<'py, Array>>> {
    let py = object.py();
    let of_producer = cuda::is_of_producer(py, &refusal) && !Class::Interface.is_of(&refusal, py);
    if !of_producer || attribute::get(object, name!(py, "__arrow_c_array__"))?.is_none() {
        return Err(refusal);
    }
    import(object)
}

/// Refuses an object whose column lacks entries: its DLPack may have values in their places.
///
/// # Errors
/// The refusal of the column.
pub(crate) fn check_entries(object: &Bound<'_, PyAny>) -> PyResult<()> {
    if attribute::get(object, name!(object.py(), "__arrow_c_array__"))?.is_none() {
        return Ok(());
    }
    let column = match column_of(object) {
        Ok(Some(column)) => column,
        Ok(None) => return Ok(()),
        // An object may have reasons to be no column; its program's Ctrl-C is none.
        Err(ImportRefusal::Other(error) | ImportRefusal::Missing(error)) => {
            let is_exception = error.is_instance_of::<PyException>(object.py());
            return if is_exception { Ok(()) } else { Err(error) };
        }
    };
    match column.column::<MAX_DIMS>() {
        Err(error) if matches!(error.kind(), ErrorKind::Protocol(ProtocolError::Nulls { .. })) => {
            Err(error::interface(error))
        }
        _ => Ok(()),
    }
}

/// Why the object is no column, in place of `error`, which its copy ended with.
#[cold]
pub(crate) fn reason(object: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    match whole(object) {
        Err(ImportRefusal::Other(reason) | ImportRefusal::Missing(reason)) => reason,
        Ok(_) => error,
    }
}

fn whole<'py>(object: &Bound<'py, PyAny>) -> Result<Option<Bound<'py, Array>>, ImportRefusal> {
    if object.is_instance_of::<PyType>() {
        return Ok(None);
    }
    column_of(object)?.map(|column| adopt(object, column)).transpose()
}

fn has_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    attribute::get(object, name!(object.py(), "__array__")).map(|method| method.is_some())
}

/// The structures that the object hands over, by the first method that it has.
fn column_of(object: &Bound<'_, PyAny>) -> Result<Option<ImportedColumn>, ImportRefusal> {
    let py = object.py();
    // The attribute is read first, because the call of a missing method costs an exception.
    if attribute::get(object, name!(py, "__arrow_c_device_array__"))?.is_some()
        && let Some(pair) = attribute::call(object, name!(py, "__arrow_c_device_array__"), None)?
    {
        let method = "__arrow_c_device_array__";
        let (schema, array) = pair_of(&pair, method)?;
        let schema = capsule::take::<ArrowSchema>(&schema, method)?;
        return Ok(Some(ImportedColumn::new(schema, capsule::take::<ArrowDeviceArray>(&array, method)?)));
    }
    if let Some(pair) = attribute::call(object, name!(py, "__arrow_c_array__"), None)? {
        let method = "__arrow_c_array__";
        let (schema, array) = pair_of(&pair, method)?;
        let schema = capsule::take::<ArrowSchema>(&schema, method)?;
        return Ok(Some(ImportedColumn::on_host(schema, capsule::take::<ArrowArray>(&array, method)?)));
    }
    match attribute::call(object, name!(py, "__arrow_c_stream__"), None)? {
        Some(stream) => of_stream(object, capsule::take(&stream, "__arrow_c_stream__")?).map(Some),
        None => Ok(None),
    }
}

fn pair_of<'py>(pair: &Bound<'py, PyAny>, method: &str) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let pair = pair.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
    let pair = pair.ok_or_else(|| Class::Interface.error(format!("{method}() gave no pair of capsules")))?;
    Ok((pair.get_item(0)?, pair.get_item(1)?))
}

/// The only chunk of a stream. Several chunks lie in several places. Where the object can copy
/// them, all are read first: none may have missing entries.
fn of_stream(
    object: &Bound<'_, PyAny>,
    mut stream: OwnedStructure<ArrowArrayStream>,
) -> Result<ImportedColumn, ImportRefusal> {
    let stream_error = |stream: &mut OwnedStructure<ArrowArrayStream>, code| {
        let words = stream.last_error().map(|words| words.to_string_lossy().into_owned());
        let words = words.unwrap_or_else(|| "no reason given".to_owned());
        Class::Interface.error(format!("the Arrow stream failed with errno {code}: {words}"))
    };
    let schema = stream.schema().map_err(|code| stream_error(&mut stream, code))?;
    let (mut single_chunk, mut entries, mut null_count) =
        (None::<OwnedStructure<ArrowArray>>, 0_usize, 0_i64);
    let mut lacks_below = false;
    // A producer may compute chunks; its Python code, if it has any, takes the interpreter itself.
    while let Some(chunk) = stream.next_chunk().map_err(|code| stream_error(&mut stream, code))? {
        object.py().check_signals()?;
        // Empty chunks are no place.
        if chunk.get().length <= 0 && single_chunk.is_some() {
            continue;
        }
        entries += usize::from(chunk.get().length > 0);
        // -1: the producer did not count.
        let count = chunk.get().null_count;
        null_count = if count < 0 || null_count < 0 { -1 } else { null_count.saturating_add(count) };
        lacks_below |= count == 0 && chunk.may_lack_entries(&schema);
        single_chunk = Some(chunk);
        if entries > 1 && !has_array(object)? {
            break;
        }
    }
    if entries > 1 && null_count != 0 {
        return Err(refused(Error::new(ProtocolError::Nulls { count: null_count }, Key::NullCount.path())));
    }
    if entries > 1 {
        let chunks = Class::Interface.error(
            "the column has several chunks, which lie in several places: make one of them \
             (combine_chunks() of pyarrow, rechunk() of polars)",
        );
        return Err(if lacks_below { ImportRefusal::Missing(chunks) } else { ImportRefusal::Other(chunks) });
    }
    let none = || Class::Interface.error("the column has no chunk, so no memory that could be shared");
    Ok(ImportedColumn::on_host(schema, single_chunk.ok_or_else(none)?))
}

/// The array over a column's memory.
fn adopt<'py>(
    object: &Bound<'py, PyAny>,
    import: ImportedColumn,
) -> Result<Bound<'py, Array>, ImportRefusal> {
    let py = object.py();
    let few = import.column::<FEW_DIMS>().map(|column| parts(&column));
    let all = few.or_else(|_| import.column::<MAX_DIMS>().map(|column| parts(&column)));
    let (address, device, extent, view) = all.map_err(|error| match import.may_lack_entries() {
        true => ImportRefusal::Missing(error::interface(error)),
        false => refused(error),
    })?;
    let event = import.sync_event();
    let keeper = Keeper::Column(Box::new(import));
    let owner = Owner { object: Some(object.clone().unbind()), keeper };
    let (stream, kind) = dlpack::place(py, device, extent, address)?;
    if !event.is_null() {
        // SAFETY: the structure says that its device type's event is there, recorded and alive.
        let wait_event = unsafe { cuda::wait_for_event(py, &stream, event) }?;
        if !wait_event {
            return Err(refused(Error::new(ProtocolError::SyncEvent, Key::SyncEvent.path())));
        }
    }
    if extent.high == 0 {
        return Ok(adoption::empty(py, stream, kind, view, true)?);
    }
    if device.kind == DeviceType::Cpu {
        // SAFETY: the producer owns the bytes until the column is released.
        return Ok(unsafe { adoption::adopt_host(py, owner, address, (view, extent), true) }?);
    }
    // SAFETY: the runtime reports the bytes as memory of that kind; the column keeps them alive.
    Ok(unsafe { adoption::adopt(py, owner, stream, kind, address, (view, extent), true) }?)
}

fn refused(error: Error) -> ImportRefusal {
    let (kind, exception) = (error.kind(), error::interface(error));
    match kind {
        ErrorKind::Protocol(ProtocolError::Nulls { .. }) => ImportRefusal::Missing(exception),
        _ => ImportRefusal::Other(exception),
    }
}

/// Address, device, size and layout.
fn parts<const N: usize>(column: &Column<N>) -> (u64, Device, Extent, View) {
    let shape: Axes = column.shape().iter().map(|extent| *extent as isize).collect();
    let mut step = column.dtype().itemsize() as isize;
    let mut strides = shape.clone();
    for (stride, extent) in strides.iter_mut().zip(&shape).rev() {
        *stride = step;
        step *= (*extent).max(1);
    }
    let extent = Extent { low: 0, high: column.nbytes() as i64 };
    (column.address(), column.device(), extent, View::imported(column.dtype(), shape, strides, 0))
}
