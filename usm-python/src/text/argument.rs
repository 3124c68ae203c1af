//! Arguments of the wrong type: a `TypeError` with the argument's name, the given type, and the
//! accepted ones.

use std::path::PathBuf;

use pyo3::exceptions::{PyAttributeError, PyOverflowError, PyTypeError, PyUnicodeEncodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySequence, PyString};
use usm_core::AllocKind;
use usm_plan::escape::EscapedText;

use crate::text::error::Class;

/// Accepted values of an argument `queue`.
pub(crate) const QUEUE: &str = "a usm.Queue, usm.Context or usm.Device, a device selector (str), a queue of dpctl's, or an object with \
     __cuda_stream__";
/// Accepted values of an argument `device`.
pub(crate) const DEVICE: &str = "a usm.Device or a device selector (str)";

/// Looks up Python's class of sequences at import, where a failure is an error. At the first shape
/// that is neither list nor tuple a failure would be a panic: a program can remove the class, or
/// leave no room for a call.
pub(crate) fn cache_sequence_class(py: Python<'_>) -> PyResult<()> {
    py.import("collections.abc")?.getattr("Sequence")?;
    // PyO3 keeps the attribute's name behind a lock: see `process::once`.
    py.get_type::<PySequence>().name().map(drop)
}

/// Reads the first `most` items of a sequence by `read`. PyO3 would reserve memory for the length
/// that the sequence claims; this function does not.
pub(crate) fn items<'py, T>(
    value: &Bound<'py, PyAny>,
    most: usize,
    read: impl Fn(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    // SAFETY: a live object, and the caller is attached to the interpreter.
    if unsafe { pyo3::ffi::PySequence_Check(value.as_ptr()) } == 0 || value.is_instance_of::<PyString>() {
        let class = EscapedText(value.get_type().name()?);
        return Err(PyTypeError::new_err(format!("'{class}' object is not a sequence")));
    }
    let mut all = Vec::new();
    for item in value.try_iter()?.take(most) {
        all.push(read(&item?)?);
    }
    Ok(all)
}

/// The error for a value of the wrong type.
#[cold]
pub(crate) fn type_error(name: &str, value: &Bound<'_, PyAny>, fits: &str) -> PyErr {
    let class = value.get_type().name().map(|class| class.to_string()).unwrap_or_default();
    let class = EscapedText(class);
    PyTypeError::new_err(format!("{name}: an object of type {class} does not fit; {fits} does"))
}

/// Reads a text. Python's texts may have lone surrogates, which are no characters.
pub(crate) fn text<'a>(name: &str, value: &'a Bound<'_, PyAny>, fits: &str) -> PyResult<&'a str> {
    let text = value.cast::<PyString>().map_err(|_| type_error(name, value, fits))?;
    text.to_str().map_err(|error| conversion_error(value.py(), error, || surrogate_error(name, fits)))
}

#[cold]
fn surrogate_error(name: &str, fits: &str) -> PyErr {
    let reason = "a text with a lone surrogate, which is no character, does not fit";
    Class::Request.error(format!("{name}: {reason}; {fits} does"))
}

/// Reads the path of a file.
pub(crate) fn file(name: &str, value: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let fits = "a path (str or os.PathLike)";
    value.extract().map_err(|error: PyErr| match error.is_instance_of::<PyUnicodeEncodeError>(value.py()) {
        true => surrogate_error(name, fits),
        false => conversion_error(value.py(), error, || type_error(name, value, fits)),
    })
}

/// Reads the argument `path`.
pub(crate) fn path(value: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    file("path", value)
}

/// Reads values by name, in the order of the names.
pub(crate) fn by_name<'py>(
    name: &str,
    value: Option<&Bound<'py, PyAny>>,
    fits: &str,
) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let dictionary = value.cast::<PyDict>().map_err(|_| type_error(name, value, fits))?;
    let entry = |(key, value): (Bound<'py, PyAny>, _)| {
        Ok((text(&format!("{name}: a key"), &key, "a name (str)")?.to_owned(), value))
    };
    let mut all: Vec<_> = dictionary.iter().map(entry).collect::<PyResult<_>>()?;
    all.sort_by(|one: &(String, _), other| one.0.cmp(&other.0));
    Ok(all)
}

/// Readers of arguments that are texts: function and argument, and the accepted values.
macro_rules! texts {
    ($($read:ident = $fits:literal;)*) => {
        $(
            #[doc = concat!("Reads the argument `", stringify!($read), "`.")]
            pub(crate) fn $read<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
                text(stringify!($read), value, $fits)
            }
        )*
    };
}

texts! {
    casting = "the name of a rule of NumPy's, such as \"same_kind\",";
    order = "\"C\", \"F\" or \"A\"";
    options = "a text of options for the compiler";
    signature = "a text of types such as \"float32[:,:], int64\"";
    strategy = "the name of a strategy (str)";
    target = "\"opencl-c\", \"cuda-c\", \"spir-v\" or \"ir\"";
}

/// Replaces an error of a conversion by `ours`. Other exceptions, such as `KeyboardInterrupt`, come
/// from code of the program, which the conversion ran, and propagate.
#[cold]
pub(crate) fn conversion_error(py: Python<'_>, error: PyErr, ours: impl FnOnce() -> PyErr) -> PyErr {
    let of_conversion = error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyAttributeError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyOverflowError>(py);
    if of_conversion { ours() } else { error }
}

/// Readers of arguments that are numbers: function, argument, type, and the accepted values. A file
/// has those of its own functions; the ones below have several users.
macro_rules! numbers {
    ($($read:ident = $name:literal: $type:ty, $fits:literal;)*) => {
        $(
            #[doc = concat!("Reads the argument `", $name, "`.")]
            pub(crate) fn $read(value: &Bound<'_, PyAny>) -> PyResult<$type> {
                value.extract().map_err(|error: PyErr| {
                    $crate::text::argument::number_error($name, value, error, $fits)
                })
            }
        )*
    };
}

pub(crate) use numbers;

numbers! {
    address = "address": usize, "an address";
    alignment = "alignment": usize, "a number of bytes, 0 or a power of two,";
    bytes = "bytes": usize, "a number of bytes, not negative,";
    keep = "keep": Option<usize>, "a number of records, not negative,";
    limit = "limit": Option<usize>, "a number of bytes, not negative,";
    ndim = "ndim": u32, "a number of dimensions from 1 to 3";
    pointer = "pointer": usize, "an address";
    records = "records": usize, "a number of records, not negative,";
    size = "size": usize, "a number of bytes, not negative,";
    threads = "threads": usize, "a number of threads";
    timeout = "timeout": f64, "a number of seconds";
}

/// The error for a value that could not be read as a number: a `TypeError` if it is none, a
/// `RequestError` if it is outside of the range.
#[cold]
pub(crate) fn number_error(name: &str, value: &Bound<'_, PyAny>, error: PyErr, fits: &str) -> PyErr {
    let py = value.py();
    if !error.is_instance_of::<PyOverflowError>(py) {
        return conversion_error(py, error, || type_error(name, value, fits));
    }
    // The text of a long integer may be an error of its own.
    let number = value.extract::<i128>().map_or_else(|_| "the number".to_owned(), |n| n.to_string());
    Class::Request.error(format!("{name}: {number} does not fit; {fits} does"))
}

/// The error with a note that names the argument, as errors of PyO3 have one.
#[cold]
pub(crate) fn named(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    match error.value(py).call_method1("add_note", (format!("while processing '{name}'"),)) {
        Ok(_) => error,
        Err(note_error) => note_error,
    }
}

/// The kind with this name.
pub(crate) fn kind(word: &str) -> PyResult<AllocKind> {
    AllocKind::from_name(word)
        .filter(|kind| *kind != AllocKind::Unknown)
        .ok_or_else(|| Class::Request.error(format!("kind {word:?} is not one of host, device, shared")))
}

/// Reads the argument `kind`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind(pub(crate) AllocKind);

impl<'py> FromPyObject<'_, 'py> for Kind {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        kind(text("kind", &value, "\"host\", \"device\" or \"shared\"")?).map(Self)
    }
}
