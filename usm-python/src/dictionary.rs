//! From a dictionary of Python's to the codec's borrowed fields: each key is looked up once, nothing is called twice.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple};
use usm_interface::value::Str;
use usm_interface::{
    Data, Error, ErrorKind, Field, Interface, Key, Layout, Path, Policy, Protocol, Raw, SyclObject, descr,
    text::Lexer,
};

use crate::error::OrRaise;
use crate::view::MAX_DIMS;

/// Members that a structured type may have, padding included.
pub(crate) const MAX_FIELDS: usize = 256;

/// What is kept of a dictionary once it is checked.
pub(crate) struct Checked<'py> {
    pub(crate) layout: Layout<MAX_DIMS>,
    pub(crate) address: Option<u64>,
    pub(crate) readonly: bool,
    pub(crate) descr: Option<Arc<str>>,
    pub(crate) syclobj: Option<Bound<'py, PyAny>>,
}

/// Reads and checks one dictionary. `classify` says which of the documented variants a `syclobj` is.
pub(crate) fn read<'py>(
    dict: &Bound<'py, PyDict>,
    protocol: Protocol,
    policy: &Policy,
    classify: impl Fn(&Bound<'py, PyAny>) -> SyclObject<'static>,
) -> PyResult<Checked<'py>> {
    let py = dict.py();
    let mut shape = [0; MAX_DIMS];
    let shape = match dict.get_item(intern!(py, "shape"))? {
        Some(value) => Some(integers(&value, Key::Shape, &mut shape)?),
        None => None,
    };
    let mut strides = [0; MAX_DIMS];
    let strides = match present(dict.get_item(intern!(py, "strides"))?) {
        Some(value) => Some(integers(&value, Key::Strides, &mut strides)?),
        None => None,
    };
    let typestr = match dict.get_item(intern!(py, "typestr"))? {
        Some(value) => Some(
            value
                .cast_into::<PyString>()
                .map_err(|error| wrong(Key::Typestr.path(), "a type string", &error.into_inner()))?,
        ),
        None => None,
    };
    let typestr = typestr.as_ref().map(|text| text.to_str()).transpose()?;
    let data = match present(dict.get_item(intern!(py, "data"))?) {
        Some(value) => data(&value)?,
        None => Data::Absent,
    };
    let integer_of = |name: &Bound<'py, PyString>, key: Key| -> PyResult<Option<i64>> {
        present(dict.get_item(name)?).map(|value| integer(&value, key.path())).transpose()
    };
    let version = integer_of(intern!(py, "version"), Key::Version)?;
    let (offset, syclobj) = if protocol == Protocol::Sycl {
        (integer_of(intern!(py, "offset"), Key::Offset)?, dict.get_item(intern!(py, "syclobj"))?)
    } else {
        (None, None)
    };
    let mask = present(dict.get_item(intern!(py, "mask"))?).is_some();
    let raw = Raw {
        shape,
        typestr: typestr.map(Str::new),
        data,
        strides,
        offset,
        mask,
        version,
        syclobj: syclobj.as_ref().map(classify),
        ..Raw::default()
    };

    // Only structures need their members; for numbers a `descr` says what the type string says.
    let text = match typestr {
        Some(typestr) if typestr.as_bytes().get(1) == Some(&b'V') => descr_text(dict, protocol)?,
        _ => None,
    };
    let (interface, descr) = match text {
        None => (raw.validate::<MAX_DIMS>(protocol, policy).or_raise()?.into(), None),
        Some(text) => structure(raw, &text, protocol, policy)?,
    };
    let Bounds { layout, address, readonly } = interface;
    Ok(Checked { layout, address, readonly, descr, syclobj })
}

/// What is kept of an interface, without its borrows.
struct Bounds {
    layout: Layout<MAX_DIMS>,
    address: Option<u64>,
    readonly: bool,
}

impl From<Interface<'_, '_, MAX_DIMS>> for Bounds {
    fn from(interface: Interface<'_, '_, MAX_DIMS>) -> Self {
        let (address, readonly) = (interface.address(), interface.readonly());
        Self { layout: *interface.layout(), address, readonly }
    }
}

/// The slow half: members and the table for them, which is some 20 KiB. Gives the text back when it says more than the
/// type string.
#[cold]
#[inline(never)]
fn structure(
    raw: Raw<'_, '_>,
    text: &str,
    protocol: Protocol,
    policy: &Policy,
) -> PyResult<(Bounds, Option<Arc<str>>)> {
    let mut table = vec![Field::EMPTY; MAX_FIELDS];
    let native_bar = protocol == Protocol::Sycl;
    let descr = Some(descr::parse(Lexer::new(text), native_bar, policy, &mut table).or_raise()?);
    let interface = Raw { descr, ..raw }.validate::<MAX_DIMS>(protocol, policy).or_raise()?;
    let kept = (!interface.fields().is_empty()).then(|| Arc::from(text));
    Ok((interface.into(), kept))
}

/// The text of `descr` (`typedescr` in SYCL's dictionary): its `repr`, a literal unless somebody plays tricks, which the
/// codec then refuses.
fn descr_text(dict: &Bound<'_, PyDict>, protocol: Protocol) -> PyResult<Option<String>> {
    let py = dict.py();
    let names = [intern!(py, "typedescr"), intern!(py, "descr")];
    for name in &names[usize::from(protocol != Protocol::Sycl)..] {
        if let Some(value) = present(dict.get_item(name)?) {
            return Ok(Some(value.repr()?.to_str()?.to_owned()));
        }
    }
    Ok(None)
}

fn present(value: Option<Bound<'_, PyAny>>) -> Option<Bound<'_, PyAny>> {
    value.filter(|value| !value.is_none())
}

#[cold]
fn wrong(path: Path, expected: &'static str, found: &Bound<'_, PyAny>) -> PyErr {
    let found = if found.is_none() { "None" } else { "another object" };
    crate::error::interface(Error::new(ErrorKind::WrongType { expected, found }, path))
}

/// An integer through `__index__`; a boolean is none.
fn integer(value: &Bound<'_, PyAny>, path: Path) -> PyResult<i64> {
    if value.is_instance_of::<PyBool>() {
        return Err(wrong(path, "an integer", value));
    }
    let range =
        |_| crate::error::interface(Error::new(ErrorKind::IntegerRange { range: "-2^63..2^63" }, path));
    if let Ok(exact) = value.cast_exact::<PyInt>() {
        return exact.extract().map_err(range);
    }
    let index =
        value.getattr(intern!(value.py(), "__index__")).map_err(|_| wrong(path, "an integer", value))?;
    index.call0()?.extract().map_err(range)
}

/// A tuple or list of at most [`MAX_DIMS`] integers.
fn integers<'a>(value: &Bound<'_, PyAny>, key: Key, buffer: &'a mut [i64; MAX_DIMS]) -> PyResult<&'a [i64]> {
    let tuple;
    let values = if let Ok(tuple) = value.cast::<PyTuple>() {
        tuple
    } else if let Ok(list) = value.cast::<PyList>() {
        // A copy: `__index__` of an entry may change the list.
        tuple = list.to_tuple();
        &tuple
    } else {
        return Err(wrong(key.path(), "a tuple of integers", value));
    };
    if values.len() > MAX_DIMS {
        let kind = ErrorKind::TooManyDims { limit: MAX_DIMS };
        return Err(crate::error::interface(Error::new(kind, key.path())));
    }
    for (index, (slot, value)) in buffer.iter_mut().zip(values.iter()).enumerate() {
        *slot = integer(&value, key.at(index))?;
    }
    Ok(&buffer[..values.len()])
}

/// `(address, flag)`.
fn data(value: &Bound<'_, PyAny>) -> PyResult<Data> {
    let expected = "(address, flag) or None";
    let pair = match value.cast::<PyTuple>() {
        Ok(pair) => pair.clone(),
        Err(_) => value.cast::<PyList>().map_err(|_| wrong(Key::Data.path(), expected, value))?.to_tuple(),
    };
    if pair.len() != 2 {
        let kind = ErrorKind::WrongLength { expected: 2 };
        return Err(crate::error::interface(Error::new(kind, Key::Data.path())));
    }
    let address = pair.get_item(0)?;
    if address.is_instance_of::<PyBool>() || !address.is_instance_of::<PyInt>() {
        return Err(wrong(Key::Data.at(0), "an address", &address));
    }
    let address = address.extract().map_err(|_| {
        crate::error::interface(Error::new(ErrorKind::IntegerRange { range: "0..2^64" }, Key::Data.at(0)))
    })?;
    let flag = pair.get_item(1)?;
    let flag = match flag.cast::<PyBool>() {
        Ok(flag) => flag.is_true(),
        Err(_) => return Err(wrong(Key::Data.at(1), "a boolean", &flag)),
    };
    Ok(Data::Pointer { address, flag })
}
