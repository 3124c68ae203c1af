//! Members of structures, as views.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use usm_interface::text::Lexer;
use usm_interface::{Field, MissingData, Policy, descr, members};

use crate::array::dtype::PyDtype;
use crate::array::view::{MAX_DIMS, View};
use crate::exchange::dictionary::table;
use crate::text::error::{Class, OrRaise};

/// The elements of a Python index, or the member of this name.
pub(crate) fn selected(view: &View, key: &Bound<'_, PyAny>) -> PyResult<View> {
    if let Some(descr) = &view.descr
        && let Ok(name) = key.cast::<PyString>()
    {
        return member(view, descr, name);
    }
    view.indexed(key)
}

/// The member of each element. Dimensions of a member that is an array come last.
fn member(view: &View, descr: &str, name: &Bound<'_, PyString>) -> PyResult<View> {
    let wanted = name.to_str()?;
    let policy = Policy { missing_data: MissingData::Allow, ..Policy::default() };
    let mut table = table(descr);
    let structure = descr::parse(Lexer::new(descr), false, &policy, &mut table).or_raise()?;
    let named = || members(structure.fields()).map(|(field, _)| field).filter(|field| !field.is_padding());
    let Some(field) = named().find(|field| field.name().to_string() == wanted) else {
        let names: Vec<String> = named().map(|field| format!("{:?}", field.name().to_string())).collect();
        let text = format!("no member {wanted:?}: the members are {}", names.join(", "));
        return Err(PyValueError::new_err(text));
    };
    let (mut shape, mut strides) = (view.shape.to_vec(), view.strides.to_vec());
    let mut step = (field.dtype().itemsize() as isize) * field.shape().count().unwrap_or(0) as isize;
    for extent in field.shape().dims() {
        step = step.checked_div(*extent as isize).unwrap_or(0);
        shape.push(*extent as isize);
        strides.push(step);
    }
    if shape.len() > MAX_DIMS {
        return Err(Class::Request.error(format!("member {wanted:?}: more than {MAX_DIMS} dimensions")));
    }
    // Inside of the element. Without elements there is no place to move to.
    let offset = if view.nbytes() == 0 { view.offset } else { view.offset + field.offset() as usize };
    let dtype = dtype_of(view, field, name)?;
    let mut part = View::imported(dtype.dtype, shape[..].into(), strides[..].into(), offset);
    part.descr = dtype.descr;
    Ok(part)
}

/// The type of a member; NumPy lists the members of a structure inside of a structure.
fn dtype_of(view: &View, field: &Field<'_>, name: &Bound<'_, PyString>) -> PyResult<PyDtype> {
    if !field.is_nested() {
        return Ok(field.dtype().into());
    }
    let whole = PyDtype::of_view(view).dtype(name.py())?;
    PyDtype::of(&whole.get_item(name)?.getattr("base")?)
}
