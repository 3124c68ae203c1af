//! The text of a graph that is a dict, as `graph.json` has it. What no such text can have is
//! refused with its place, such as `tensors[1].size`.

use core::fmt::{self, Write as _};

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyString, PyTuple};
use usm_plan::escape::EscapedText;

use crate::text::argument;
use crate::text::error::Class;

/// Levels of lists and dicts: a graph has four. A list that contains itself has no end.
const DEPTH: usize = 16;

/// The text of a dict.
///
/// # Errors
/// `TypeError` for an object that has no form in JSON, and `usm.RequestError` for a number or a
/// text that has none.
pub(crate) fn text(graph: &Bound<'_, PyDict>) -> PyResult<String> {
    let mut text = String::new();
    write(&mut text, graph, &Place { within: None, step: Step::Input, depth: 0 })?;
    Ok(text)
}

/// A place in the graph.
struct Place<'a> {
    within: Option<&'a Place<'a>>,
    step: Step<'a>,
    depth: usize,
}

enum Step<'a> {
    Input,
    Key(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    fn at(&'a self, step: Step<'a>) -> Self {
        Self { within: Some(self), step, depth: self.depth + 1 }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(within) = self.within {
            within.fmt(f)?;
        }
        match self.step {
            Step::Input => f.write_str("input"),
            Step::Key(key) if self.depth == 1 => write!(f, ": {key}"),
            Step::Key(key) => write!(f, ".{key}"),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn write(text: &mut String, value: &Bound<'_, PyAny>, place: &Place<'_>) -> PyResult<()> {
    if let Ok(string) = value.cast::<PyString>() {
        quote(text, argument::text(&place.to_string(), string, "a text")?);
    } else if let Ok(list) = value.cast::<PyList>() {
        list_of(text, list.iter(), place)?;
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        list_of(text, tuple.iter(), place)?;
    } else if let Ok(dictionary) = value.cast::<PyDict>() {
        dict_of(text, dictionary, place)?;
    } else if let Ok(truth) = value.cast::<PyBool>() {
        text.push_str(if truth.is_true() { "true" } else { "false" });
    } else if value.is_none() {
        text.push_str("null");
    } else if let Ok(float) = value.cast::<PyFloat>() {
        number(text, float.value(), place)?;
    } else {
        integer(text, value, place)?;
    }
    Ok(())
}

fn list_of<'py>(
    text: &mut String,
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    place: &Place<'_>,
) -> PyResult<()> {
    check_depth(place)?;
    text.push('[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            text.push(',');
        }
        write(text, &item, &place.at(Step::Index(index)))?;
    }
    text.push(']');
    Ok(())
}

fn dict_of(text: &mut String, dictionary: &Bound<'_, PyDict>, place: &Place<'_>) -> PyResult<()> {
    check_depth(place)?;
    text.push('{');
    // A number's `__index__` is code of the program, which may change the dict.
    let entries: Vec<_> = dictionary.iter().collect();
    for (index, (key, value)) in entries.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        let key = argument::text(&format!("{place}: a key"), &key, "a name (str)")?;
        quote(text, key);
        text.push(':');
        write(text, &value, &place.at(Step::Key(key)))?;
    }
    text.push('}');
    Ok(())
}

fn check_depth(place: &Place<'_>) -> PyResult<()> {
    match place.depth < DEPTH {
        true => Ok(()),
        false => {
            Err(Class::Request
                .error(format!("{}: lists and dicts more than {DEPTH} deep", EscapedText(place))))
        }
    }
}

fn number(text: &mut String, number: f64, place: &Place<'_>) -> PyResult<()> {
    if !number.is_finite() {
        return Err(Class::Request.error(format!("{}: {number} is no number of a graph", EscapedText(place))));
    }
    // As JSON has it, with a point or an exponent.
    let _ = write!(text, "{number:?}");
    Ok(())
}

/// An int, or what counts as one, such as a number of NumPy's.
fn integer(text: &mut String, value: &Bound<'_, PyAny>, place: &Place<'_>) -> PyResult<()> {
    if let Ok(number) = value.extract::<u64>() {
        let _ = write!(text, "{number}");
        return Ok(());
    }
    let number: i64 = value.extract().map_err(|error: PyErr| {
        let place = EscapedText(place).to_string();
        match error.is_instance_of::<PyOverflowError>(value.py()) {
            true => Class::Request.error(format!("{place}: the number exceeds 64 bits")),
            false => argument::conversion_error(value.py(), error, || {
                argument::type_error(&place, value, "a number, a text, a list or a dict")
            }),
        }
    })?;
    let _ = write!(text, "{number}");
    Ok(())
}

fn quote(text: &mut String, string: &str) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            '\0'..='\u{1f}' => {
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            _ => text.push(character),
        }
    }
    text.push('"');
}
