//! Imports columns: `__arrow_c_device_array__`, `__arrow_c_array__`, `__arrow_c_stream__`.

use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use usm_interface::Extent;
use usm_interface::arrow::Column;
use usm_interface::arrow::abi::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowSchema, Held, Imported,
};
use usm_interface::dlpack::{Device, DeviceType};
use usm_interface::{Key, ProtocolError};

use super::capsule;
use crate::array::Array;
use crate::array::axes::Axes;
use crate::array::content::{Keeper, Owner};
use crate::array::view::{FEW_DIMS, MAX_DIMS, View};
use crate::exchange::{cuda, dlpack, import};
use crate::process::attribute;
use crate::process::once::name;
use crate::text::error::{Class, OrRaise};

/// The column of an object without a copy; `None` if the object has none of the methods, or if
/// another protocol of it can copy what Arrow cannot share. Arrow's memory is read-only.
pub(crate) fn import<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Array>>> {
    if object.is_instance_of::<PyType>() {
        return Ok(None);
    }
    let py = object.py();
    match column_of(object).and_then(|column| column.map(|column| adopt(object, column)).transpose()) {
        Err(error) if Class::Interface.is_of(&error, py) => {
            match attribute::get(object, name!(py, "__array__"))? {
                Some(_) => Ok(None),
                None => Err(error),
            }
        }
        other => other,
    }
}

/// The structures that the object hands over, by the first method that it has.
fn column_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Imported>> {
    let py = object.py();
    // The attribute is read first, because the call of a missing method costs an exception.
    if attribute::get(object, name!(py, "__arrow_c_device_array__"))?.is_some()
        && let Some(pair) = attribute::call(object, name!(py, "__arrow_c_device_array__"), None)?
    {
        let method = "__arrow_c_device_array__";
        let (schema, array) = pair_of(&pair, method)?;
        let schema = capsule::take::<ArrowSchema>(&schema, method)?;
        return Ok(Some(Imported::new(schema, capsule::take::<ArrowDeviceArray>(&array, method)?)));
    }
    if let Some(pair) = attribute::call(object, name!(py, "__arrow_c_array__"), None)? {
        let method = "__arrow_c_array__";
        let (schema, array) = pair_of(&pair, method)?;
        let schema = capsule::take::<ArrowSchema>(&schema, method)?;
        return Ok(Some(Imported::on_host(schema, capsule::take::<ArrowArray>(&array, method)?)));
    }
    match attribute::call(object, name!(py, "__arrow_c_stream__"), None)? {
        Some(stream) => of_stream(py, capsule::take(&stream, "__arrow_c_stream__")?).map(Some),
        None => Ok(None),
    }
}

fn pair_of<'py>(pair: &Bound<'py, PyAny>, method: &str) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let pair = pair.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
    let pair = pair.ok_or_else(|| Class::Interface.error(format!("{method}() gave no pair of capsules")))?;
    Ok((pair.get_item(0)?, pair.get_item(1)?))
}

/// The only chunk of a stream. Several chunks lie in several places.
fn of_stream(py: Python<'_>, mut stream: Held<ArrowArrayStream>) -> PyResult<Imported> {
    let failed = |stream: &mut Held<ArrowArrayStream>, code| {
        let words = stream.last_error().map(|words| words.to_string_lossy().into_owned());
        let words = words.unwrap_or_else(|| "no reason given".to_owned());
        Class::Interface.error(format!("the Arrow stream failed with errno {code}: {words}"))
    };
    let schema = stream.schema().map_err(|code| failed(&mut stream, code))?;
    let mut chunks = Vec::new();
    // A producer may compute chunks; its Python code, if it has any, takes the interpreter itself.
    while let Some(chunk) = stream.next_chunk().map_err(|code| failed(&mut stream, code))? {
        py.check_signals()?;
        // Empty chunks are no place.
        if chunk.get().length > 0 || chunks.is_empty() {
            chunks.retain(|known: &Held<ArrowArray>| known.get().length > 0);
            chunks.push(chunk);
        }
        if chunks.len() > 1 {
            return Err(Class::Interface.error(
                "the column has several chunks, which lie in several places: make one of them \
                 (combine_chunks() of pyarrow, rechunk() of polars)",
            ));
        }
    }
    let none = || Class::Interface.error("the column has no chunk, so no memory that could be shared");
    let chunk = chunks.pop().ok_or_else(none)?;
    Ok(Imported::on_host(schema, chunk))
}

/// The array over a column's memory.
fn adopt<'py>(object: &Bound<'py, PyAny>, imported: Imported) -> PyResult<Bound<'py, Array>> {
    let py = object.py();
    let few = imported.column::<FEW_DIMS>().map(|column| parts(&column));
    let (address, device, extent, view) = match few {
        Ok(parts) => parts,
        Err(_) => parts(&imported.column::<MAX_DIMS>().or_raise()?),
    };
    let event = imported.sync_event();
    let keeper = Keeper::Column(Box::new(imported));
    let owner = Owner { object: Some(object.clone().unbind()), keeper };
    let (stream, kind) = dlpack::place(py, device, extent, address)?;
    if !event.is_null() {
        // SAFETY: the structure says that its device type's event is there, recorded and alive.
        let waited = unsafe { cuda::wait_for_event(py, &stream, event) }?;
        if !waited {
            return Err(Key::SyncEvent.path())
                .map_err(|path| usm_interface::Error::new(ProtocolError::SyncEvent, path))
                .or_raise();
        }
    }
    if extent.high == 0 {
        return import::empty(py, stream, kind, view, true);
    }
    if device.kind == DeviceType::Cpu {
        // SAFETY: the producer owns the bytes until the column is released.
        return unsafe { import::adopt_host(py, owner, address, (view, extent), true) };
    }
    // SAFETY: the runtime reports the bytes as memory of that kind; the column keeps them alive.
    unsafe { import::adopt(py, owner, stream, kind, address, (view, extent), true) }
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
