//! Members of structures, as views.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::array::dtype::PyDtype;
use crate::array::members::{Member, Members};
use crate::array::view::{MAX_DIMS, View};
use crate::text::error::Class;

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
fn member(view: &View, descr: &Members, name: &Bound<'_, PyString>) -> PyResult<View> {
    let field_name = name.to_str()?;
    let places = descr.places()?;
    let Some(member) = places.iter().find(|member| *member.name == *field_name) else {
        let names: Vec<String> = places.iter().map(|member| format!("{:?}", member.name)).collect();
        let text = format!("no member {field_name:?}: the members are {}", names.join(", "));
        return Err(PyValueError::new_err(text));
    };
    part(view, member, name)
}

/// A member of each element, of which `name` is the name.
pub(crate) fn part(view: &View, member: &Member, name: &Bound<'_, PyString>) -> PyResult<View> {
    if view.ndim() + member.axes.len() > MAX_DIMS {
        let text = format!("member {:?}: more than {MAX_DIMS} dimensions", member.name);
        return Err(Class::Request.error(text));
    }
    let (mut shape, mut strides) = (view.shape().clone(), view.strides().clone());
    for (extent, stride) in &member.axes {
        shape.push(*extent);
        strides.push(*stride);
    }
    // Inside of the element. Without elements there is no place to move to.
    let offset = if view.nbytes() == 0 { view.offset() } else { view.offset() + member.offset };
    let dtype = dtype_of(view, member, name)?;
    let mut part = View::imported(dtype.dtype, shape, strides, offset);
    part.descr = dtype.descr;
    Ok(part)
}

/// The type of a member; NumPy lists the members of a structure inside of a structure.
fn dtype_of(view: &View, member: &Member, name: &Bound<'_, PyString>) -> PyResult<PyDtype> {
    if !member.is_structure {
        return Ok(member.dtype.into());
    }
    let whole = PyDtype::of_view(view).dtype(name.py())?;
    PyDtype::of(&whole.get_item(name)?.getattr("base")?)
}
