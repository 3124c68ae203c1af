//! Converts arrays to nested lists and to text.

use std::fmt::Write;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use usm_plan::units;

use crate::array::content::Holding;
use crate::array::dtype::{self, PyDtype};
use crate::array::scalar;
use crate::array::view::View;
use crate::process::once::name;
use crate::storage::reserve;
use crate::storage::transfer;
use crate::text::html;

/// Nested lists of packed elements in C order. NumPy makes those that Python has no scalar for,
/// such as structures, in one call. Only a program that has imported NumPy has such types.
pub(crate) fn list<'py>(py: Python<'py>, view: &View, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let has_scalar = |element: &[u8]| scalar::load(py, view.dtype, element).is_ok();
    let is_numpys = bytes.get(..view.itemsize()).is_some_and(|element| !has_scalar(element));
    match dtype::numpy(py)?.filter(|_| is_numpys && !bytes.is_empty()) {
        Some(numpy) => {
            let dtype = PyDtype::of_view(view).dtype(py)?;
            let flat = numpy.call_method1(name!(py, "frombuffer"), (reserve::bytes(py, bytes)?, dtype))?;
            let shape = PyTuple::new(py, view.shape().iter())?;
            flat.call_method1(name!(py, "reshape"), (shape,))?.call_method0(name!(py, "tolist"))
        }
        None => nested(py, view, view.shape(), bytes),
    }
}

/// Nested lists of elements in C order.
fn nested<'py>(py: Python<'py>, view: &View, shape: &[isize], bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let Some((extent, inner)) = shape.split_first() else {
        return element(py, view, bytes);
    };
    let extent = extent.unsigned_abs();
    let step = bytes.len().checked_div(extent).unwrap_or(0);
    if inner.is_empty()
        && let Some(row) = scalar::loader(view.dtype)
    {
        return Ok(reserve::list(py, extent, |index| row(py, &bytes[index * step..][..step]))?.into_any());
    }
    let rows = reserve::list(py, extent, |index| nested(py, view, inner, &bytes[index * step..][..step]))?;
    Ok(rows.into_any())
}

/// Bytes between two looks at the memory, a multiple of each element that has a loader.
const BLOCK: usize = 4096;

/// Nested lists of the elements of an array, in C order.
pub(crate) fn list_of<'py>(py: Python<'py>, content: &Holding) -> PyResult<Bound<'py, PyAny>> {
    let view = &content.view;
    let is_plain = view.descr.is_none() && view.nbytes() > 0 && view.is_c_contiguous();
    match scalar::loader(view.dtype).filter(|_| is_plain && view.ndim() > 0 && content.stream.is_host()) {
        Some(load) => in_place(py, content, load, view.shape(), view.offset()),
        None => list(py, view, &transfer::to_bytes(py, &content.side())?),
    }
}

/// Nested lists of elements without gaps from an offset on, which are read a block at a time.
fn in_place<'py>(
    py: Python<'py>,
    content: &Holding,
    load: scalar::Loader,
    shape: &[isize],
    offset: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let size = content.view.itemsize();
    let [extent, inner @ ..] = shape else { return element_at(py, content, offset) };
    let extent = extent.unsigned_abs();
    if !inner.is_empty() {
        let step = size * inner.iter().product::<isize>().unsigned_abs();
        let row = |index| in_place(py, content, load, inner, offset + index * step);
        return Ok(reserve::list(py, extent, row)?.into_any());
    }
    let (mut block, count) = ([0; BLOCK], BLOCK / size);
    let item = |index: usize| {
        let at = (index & (count - 1)) * size;
        if at == 0 {
            let len = count.min(extent - index) * size;
            transfer::read_block(py, content, offset + index * size, &mut block[..len])?;
        }
        load(py, &block[at..at + size])
    };
    Ok(reserve::list(py, extent, item)?.into_any())
}

/// One element: Python's scalar, or NumPy's `item()` of a type that Python has no scalar for, such
/// as a structure. Only a program that has imported NumPy has such types.
pub(crate) fn element<'py>(py: Python<'py>, view: &View, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    scalar::load(py, view.dtype, bytes).or_else(|error| match dtype::numpy(py)? {
        Some(numpy) => {
            let dtype = PyDtype::of_view(view).dtype(py)?;
            let one = numpy.call_method1(name!(py, "frombuffer"), (PyBytes::new(py, bytes), dtype));
            one?.call_method0(name!(py, "item"))
        }
        None => Err(error),
    })
}

/// The element at an offset of the storage.
pub(crate) fn element_at<'py>(
    py: Python<'py>,
    content: &Holding,
    offset: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let view = &content.view;
    match view.itemsize() {
        size @ 0..=scalar::MAX_BYTES => element(py, view, &transfer::read_one(py, content, offset)?[..size]),
        _ => {
            let view = View { descr: view.descr.clone(), ..View::element(view.dtype, offset) };
            element(py, &view, &transfer::to_bytes(py, &content.with_view(view.clone()))?)
        }
    }
}

/// Largest number of elements that is shown in full. Above it only the ends of each axis are shown.
const SHOWN: usize = 48;
/// Number of entries at each end of an axis.
const EDGE: usize = 3;
/// Largest number of axes of which the ends are shown: more axes would give hundreds of ends.
const AXES: usize = 4;

/// Values, shape, type, kind and device. Reads only the shown elements, after the work on them.
/// Copies them if the host cannot access the memory. Elements that cannot be read are not shown.
pub(crate) fn describe(py: Python<'_>, content: &Holding) -> String {
    let view = &content.view;
    let selector = usm_core::Selector::of(content.stream.context().info());
    format!(
        "usm.Array({}, shape={}, dtype={}, kind={:?}, device=\"{selector}\")",
        values(py, content),
        shape(view),
        argument(view),
        content.kind().name()
    )
}

/// The same for a notebook: one line for each row of the first axis.
pub(crate) fn page(py: Python<'_>, content: &Holding) -> String {
    let view = &content.view;
    let table = html::properties(&[
        ("shape", shape(view)),
        ("dtype", PyDtype::of_view(view).to_string()),
        ("kind", content.kind().name().to_owned()),
        ("device", usm_core::Selector::of(content.stream.context().info()).to_string()),
        ("size", units::shown(view.nbytes() as u64)),
    ]);
    table + &html::preformatted(&values(py, content).replace("], [", "],\n ["))
}

/// The values, or three dots.
fn values(py: Python<'_>, content: &Holding) -> String {
    let view = &content.view;
    let mut values = String::new();
    let too_many = view.ndim() > AXES && view.len() > SHOWN;
    if too_many || elements(py, content, view, &mut values).is_err() {
        "...".clone_into(&mut values);
    }
    values
}

/// The argument that makes the type again: a text, or the list of members.
fn argument(view: &View) -> String {
    let dtype = PyDtype::of_view(view);
    if dtype.descr.is_some() { dtype.to_string() } else { format!("{:?}", dtype.text()) }
}

/// The shape in Python's spelling of a tuple.
fn shape(view: &View) -> String {
    let shape: Vec<_> = view.shape().iter().map(ToString::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    format!("({}{comma})", shape.join(", "))
}

fn elements(py: Python<'_>, content: &Holding, view: &View, text: &mut String) -> PyResult<()> {
    let Some(extent) = view.shape().first().map(|extent| extent.unsigned_abs()) else {
        let bytes = transfer::to_bytes(py, &content.with_view(view.clone()))?;
        let value = element(py, view, &bytes)?;
        // Writing to a string cannot fail.
        let _ = write!(text, "{}", value.repr()?);
        return Ok(());
    };
    // There may be any number of rows without elements.
    if content.view.len() == 0 {
        text.push_str("[]");
        return Ok(());
    }
    text.push('[');
    if content.view.len() <= SHOWN || extent <= 2 * EDGE {
        run(py, content, view, 0..extent, text)?;
    } else {
        run(py, content, view, 0..EDGE, text)?;
        text.push_str(", ..., ");
        run(py, content, view, extent - EDGE..extent, text)?;
    }
    text.push(']');
    Ok(())
}

/// Some entries of the first axis.
fn run(
    py: Python<'_>,
    content: &Holding,
    view: &View,
    range: std::ops::Range<usize>,
    text: &mut String,
) -> PyResult<()> {
    let part = view.part_of_axis(0, range.start, range.len());
    if view.ndim() == 1 {
        let bytes = transfer::to_bytes(py, &content.with_view(part.clone()))?;
        let values = list(py, &part, &bytes)?.repr()?;
        text.push_str(values.to_str()?.trim_matches(['[', ']']));
        return Ok(());
    }
    for row in 0..range.len() {
        if row > 0 {
            text.push_str(", ");
        }
        elements(py, content, &part.row(row), text)?;
    }
    Ok(())
}
