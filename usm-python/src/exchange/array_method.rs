//! Objects whose only protocol is `__array__`: series of pandas and polars, datasets of files.

use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::array::Array;
use crate::exchange::ndarray;
use crate::process::attribute;
use crate::process::once::name;
use crate::text::error::Class;

/// The ndarray that the object answers with; `None` if it has no such method.
///
/// # Errors
/// The method's, and [`Class::Interface`] for an answer that is no ndarray.
pub(crate) fn ask<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if object.is_instance_of::<PyType>() {
        return Ok(None);
    }
    let Some(method) = attribute::get(object, name!(object.py(), "__array__"))? else { return Ok(None) };
    let array = method.call0()?;
    if !ndarray::is_ndarray(&array) {
        let class = array.get_type().name().map(|name| name.to_string()).unwrap_or_default();
        return Err(
            Class::Interface.error(format!("__array__ returned an object of type {class}, no numpy.ndarray"))
        );
    }
    Ok(Some(array))
}

/// What an object offers to an importer.
pub(crate) enum Offer<'py> {
    /// Memory that it shares.
    Shared(Bound<'py, Array>),
    /// A new ndarray with its elements.
    Copied(Bound<'py, PyAny>),
    Nothing,
}

/// What an object answers with: the array over the memory that it shares, if two answers lie in
/// the same place, or the latest answer of one that copies at each call, such as a dataset of a
/// file, which is read each time. `import` makes the array of an ndarray.
pub(crate) fn find<'py>(
    object: &Bound<'py, PyAny>,
    import: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Array>>>,
) -> PyResult<Offer<'py>> {
    let Some(first) = ask(object)? else { return Ok(Offer::Nothing) };
    // The first answer lives meanwhile, so a second copy lies elsewhere.
    let Some(second) = ask(object)? else { return Ok(Offer::Nothing) };
    let place = |array: &Bound<'py, PyAny>| -> PyResult<(usize, usize)> {
        let address = array.getattr("ctypes")?.getattr("data")?.extract()?;
        Ok((address, array.getattr("nbytes")?.extract()?))
    };
    if place(&first)? != place(&second)? {
        return Ok(Offer::Copied(second));
    }
    Ok(import(&first)?.map_or(Offer::Nothing, Offer::Shared))
}
