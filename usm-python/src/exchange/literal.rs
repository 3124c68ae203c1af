//! The text of a `descr` that a producer gives as objects. One object may stand in many places, so
//! a few objects can make a text longer than any memory: the text has a limit while it is written.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyString, PyTuple};
use usm_interface::{Error, Key, LimitError};

use crate::text::error::Class;

/// Bytes that the text may have. 256 members, which is all that an array may have, need about 20
/// each and their names.
const BYTES: usize = 4 << 20;

/// Lists and tuples that may stand in each other.
const DEPTH: usize = 128;

/// The `repr` of lists, tuples, strings and integers. The codec refuses placeholders of other
/// objects.
///
/// # Errors
/// [`LimitError`] for a text that is too long or nested too deep, and any exception of a
/// `__repr__`.
pub(crate) fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut text = String::new();
    write(value, 0, &mut text)?;
    Ok(text)
}

fn write(value: &Bound<'_, PyAny>, depth: usize, text: &mut String) -> PyResult<()> {
    // Names and types of members, which are most of a text, need no `__repr__`.
    if let Ok(string) = value.cast_exact::<PyString>()
        && let Ok(string) = string.to_str()
        && string.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'\'' && byte != b'\\')
    {
        push(text, "'")?;
        push(text, string)?;
        return push(text, "'");
    }
    if depth > DEPTH {
        let kind = LimitError::TooDeep { limit: DEPTH };
        return Err(crate::text::error::interface(Error::new(kind, Key::Descr.path())));
    }
    if let Ok(list) = value.cast::<PyList>() {
        push(text, "[")?;
        // By index, because a `__repr__` may change the list.
        let mut index = 0;
        while let Ok(item) = list.get_item(index) {
            write_item(&item, index, depth, text)?;
            index += 1;
        }
        return push(text, "]");
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        push(text, "(")?;
        for (index, item) in tuple.iter_borrowed().enumerate() {
            write_item(&item, index, depth, text)?;
        }
        return push(text, if tuple.len() == 1 { ",)" } else { ")" });
    }
    if let Ok(string) = value.cast::<PyString>()
        && string.len()? > BYTES
    {
        return Err(too_long());
    }
    let is_leaf = value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyInt>()
        || value.is_none()
        || value.hasattr("__index__")?;
    if is_leaf {
        return push(text, value.repr()?.to_str()?);
    }
    push(text, "<")?;
    push(text, value.get_type().name()?.to_str()?)?;
    push(text, ">")
}

fn write_item(item: &Bound<'_, PyAny>, index: usize, depth: usize, text: &mut String) -> PyResult<()> {
    if index > 0 {
        push(text, ", ")?;
    }
    write(item, depth + 1, text)
}

fn push(text: &mut String, more: &str) -> PyResult<()> {
    if text.len().saturating_add(more.len()) > BYTES {
        return Err(too_long());
    }
    text.push_str(more);
    Ok(())
}

#[cold]
fn too_long() -> PyErr {
    Class::Interface.error(format!("descr: more than {BYTES} bytes of text"))
}
