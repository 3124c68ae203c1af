//! Converts a Python dictionary to the codec's borrowed fields. Looks up each key once, and calls
//! nothing twice.

use std::sync::Arc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple};
use usm_interface::value::{Int, Str};
use usm_interface::{
    ByteOrder, Data, Dtype, EntryError, Error, ErrorKind, Extent, Interface, Key, Kind, LayoutError,
    LimitError, Mode, Path, Policy, Protocol, Raw, Stream, SyclObject, TypeError, ValueKind, descr,
    text::Lexer, typestr,
};

use crate::array::members::{Members, table};
use crate::array::view::{FEW_DIMS, MAX_DIMS, View};
use crate::exchange::buffer::HeldBuffer;
use crate::exchange::literal;
use crate::process::once::name;
use crate::text::argument;
use crate::text::error::{Class, OrRaise};

/// The result of a checked dictionary.
pub(crate) struct CheckedArray<'py> {
    /// The view, on a storage that starts at the lowest byte.
    pub(crate) view: View,
    /// Bytes from `data[0]`; an empty range for an array without bytes.
    pub(crate) extent: Extent,
    /// Address of `data[0]`, or of the buffer's first byte.
    pub(crate) address: u64,
    pub(crate) readonly: bool,
    pub(crate) syclobj: Option<Bound<'py, PyAny>>,
    /// The stream of CUDA's dictionary.
    pub(crate) stream: Stream,
    /// The buffer that replaces `data`.
    pub(crate) buffer: Option<HeldBuffer>,
}

/// The entries of a protocol at one moment: no Python code runs while they are collected.
#[derive(Default)]
struct Entries<'py> {
    values: [Option<Bound<'py, PyAny>>; KEYS],
}

const KEYS: usize = 10;
const DATA: usize = 0;
const STRIDES: usize = 1;
const DESCR: usize = 2;
const TYPESTR: usize = 3;
const SHAPE: usize = 4;
const VERSION: usize = 5;
const SYCLOBJ: usize = 6;
const OFFSET: usize = 7;
const MASK: usize = 8;
const TYPEDESCR: usize = 9;
/// CUDA's dictionary has no `syclobj`.
const STREAM: usize = SYCLOBJ;
/// A larger dictionary is searched for each key instead of being walked.
const WALKED: isize = 16;

impl<'py> Entries<'py> {
    fn of(dict: &Bound<'py, PyDict>, protocol: Protocol) -> PyResult<Self> {
        let py = dict.py();
        let names = [
            name!(py, "data"),
            name!(py, "strides"),
            name!(py, "descr"),
            name!(py, "typestr"),
            name!(py, "shape"),
            name!(py, "version"),
            if protocol == Protocol::Cuda { name!(py, "stream") } else { name!(py, "syclobj") },
            name!(py, "offset"),
            name!(py, "mask"),
            name!(py, "typedescr"),
        ];
        let mut entries = Self::default();
        let mut next = 0;
        // Keys in programs are interned, so a walk that compares addresses finds them all in half
        // the time of as many lookups. A key with another address may still be equal.
        let mut all = dict.len() as isize <= WALKED;
        if all {
            let (mut position, mut key, mut value) = (0, std::ptr::null_mut(), std::ptr::null_mut());
            // SAFETY: a dictionary, which does not change meanwhile; both results are borrowed from
            // it.
            while unsafe { ffi::PyDict_Next(dict.as_ptr(), &raw mut position, &raw mut key, &raw mut value) }
                != 0
            {
                // Producers write keys in similar orders, so the search continues where the last
                // key was found.
                let behind = (next..KEYS).find(|name| names[*name].as_ptr() == key);
                let Some(name) = behind.or_else(|| (0..next).find(|name| names[*name].as_ptr() == key))
                else {
                    all = false;
                    continue;
                };
                next = name + 1;
                // SAFETY: an entry of the dictionary.
                entries.values[name] = Some(unsafe { Bound::from_borrowed_ptr(py, value) });
            }
        }
        if !all {
            for (name, slot) in names.iter().zip(&mut entries.values) {
                if slot.is_none() {
                    *slot = dict.get_item(name)?;
                }
            }
        }
        Ok(entries)
    }

    /// Takes an entry out.
    fn take(&mut self, key: usize) -> Option<Bound<'py, PyAny>> {
        self.values[key].take()
    }

    /// An entry for which None means absence.
    fn present(&mut self, key: usize) -> Option<Bound<'py, PyAny>> {
        self.take(key).filter(|value| !value.is_none())
    }
}

/// Reads and checks a dictionary of `producer`, whose buffer replaces a missing `data`. `classify`
/// identifies the documented variant of a `syclobj`.
#[inline]
pub(crate) fn read<'py>(
    producer: &Bound<'py, PyAny>,
    dict: &Bound<'py, PyDict>,
    protocol: Protocol,
    policy: &Policy,
    classify: impl Fn(&Bound<'py, PyAny>) -> SyclObject<'static>,
) -> PyResult<CheckedArray<'py>> {
    let mut entries = Entries::of(dict, protocol)?;
    let shape = sequence(entries.take(SHAPE), Key::Shape)?;
    match shape.as_ref().map_or(0, |shape| shape.len()) {
        few if few <= FEW_DIMS => {
            read_dimensions::<FEW_DIMS>(producer, entries, protocol, policy, shape, classify)
        }
        0..=MAX_DIMS => read_dimensions::<MAX_DIMS>(producer, entries, protocol, policy, shape, classify),
        _ => Err(codec_error(LimitError::TooManyDims { limit: MAX_DIMS }, Key::Shape.path())),
    }
}

/// The rest of the check, with room for `N` dimensions.
#[inline]
fn read_dimensions<'py, const N: usize>(
    producer: &Bound<'py, PyAny>,
    mut entries: Entries<'py>,
    protocol: Protocol,
    policy: &Policy,
    shape: Option<Bound<'py, PyTuple>>,
    classify: impl Fn(&Bound<'py, PyAny>) -> SyclObject<'static>,
) -> PyResult<CheckedArray<'py>> {
    let mut extents = [0; N];
    let shape = match &shape {
        Some(shape) => Some(integers(shape, Key::Shape, &mut extents)?),
        None => None,
    };
    let mut steps = [0; N];
    let strides = sequence(entries.present(STRIDES), Key::Strides)?;
    let strides = match (&strides, shape) {
        (Some(strides), Some(shape)) if strides.len() != shape.len() => {
            let kind = LayoutError::StrideCount { strides: strides.len(), shape: shape.len() };
            return Err(codec_error(kind, Key::Strides.path()));
        }
        (Some(strides), Some(_)) => Some(integers(strides, Key::Strides, &mut steps)?),
        _ => None,
    };
    let typestr = match entries.take(TYPESTR) {
        Some(value) => {
            let refusal = |value: &Bound<'_, PyAny>| wrong_type(Key::Typestr.path(), "a type string", value);
            Some(value.cast_into::<PyString>().map_err(|error| refusal(&error.into_inner()))?)
        }
        None => None,
    };
    let typestr = match &typestr {
        // Lone surrogates have no UTF-8.
        Some(text) => {
            Some(text.to_str().map_err(|_| wrong_type(Key::Typestr.path(), "a type string", text.as_any()))?)
        }
        None => None,
    };
    let mut integer_of = |place: usize, key: Key| -> PyResult<Option<i64>> {
        entries.present(place).map(|value| integer(&value, key.path())).transpose()
    };
    let version = integer_of(VERSION, Key::Version)?;
    let offset = integer_of(OFFSET, Key::Offset)?;
    let mask = entries.present(MASK).is_some();
    let (syclobj, stream) = match protocol {
        Protocol::Sycl => (entries.take(SYCLOBJ), None),
        Protocol::Cuda => (None, entries.present(STREAM).map(|value| stream(&value)).transpose()?),
        Protocol::Array => (None, None),
    };
    let (data, buffer) = data(producer, entries.present(DATA), protocol)?;
    let raw = Raw {
        shape,
        typestr: typestr.map(Str::new),
        data,
        strides,
        offset,
        mask,
        version,
        stream,
        syclobj: syclobj.as_ref().map(classify),
        ..Raw::default()
    };

    // Only structures need their members; for a number `descr` repeats the type string.
    let text = match typestr {
        Some(typestr) if typestr.as_bytes().get(1) == Some(&b'V') => descr_text(entries, protocol)?,
        _ => None,
    };
    let mut array = match text {
        None => number::<N>(&raw, protocol, policy)?,
        Some(text) => structure(raw, &text, protocol, policy)?,
    };
    array.syclobj = syclobj;
    array.buffer = buffer;
    Ok(array)
}

/// The codec's checks and the kept part of their result, separate from the entries. Inlined
/// together, neither would stay in registers, and the loop over the dimensions would make calls.
#[inline(never)]
fn number<'py, const N: usize>(
    raw: &Raw<'_, '_>,
    protocol: Protocol,
    policy: &Policy,
) -> PyResult<CheckedArray<'py>> {
    match raw.validate::<N>(protocol, policy) {
        Ok(interface) if is_unnamed(interface.layout().dtype()) => Err(unnamed_error()),
        Ok(interface) => Ok(to_checked(&interface, None)),
        Err(error) => Err(crate::text::error::interface(error)),
    }
}

/// Whether these are bytes with a byte order, which raw bytes do not have: ml_dtypes, torch and
/// CuPy write `<V2` for bfloat16 and `<V1` for most types of 8 bits, as if they had no names.
fn is_unnamed(dtype: Dtype) -> bool {
    dtype.kind() == Kind::Void && dtype.byte_order() != ByteOrder::None
}

#[cold]
fn unnamed_error() -> PyErr {
    codec_error(TypeError::NeedsHint, Key::Typestr.path())
}

/// Whether a dictionary's type string has no meaning without a word of the producer's.
#[cold]
pub(crate) fn is_ambiguous(dict: &Bound<'_, PyDict>) -> PyResult<bool> {
    let text = dict.get_item(name!(dict.py(), "typestr"))?;
    let text = text.as_ref().and_then(|text| text.cast::<PyString>().ok()?.to_str().ok());
    Ok(text.is_some_and(|text| match typestr::parse(text, Mode::Strict, None) {
        Ok(dtype) => is_unnamed(dtype),
        Err(error) => error == TypeError::NeedsHint,
    }))
}

/// The part that outlives the borrowed fields.
#[inline]
fn to_checked<'py, const N: usize>(
    interface: &Interface<'_, '_, N>,
    descr: Option<Arc<Members>>,
) -> CheckedArray<'py> {
    let layout = interface.layout();
    CheckedArray {
        view: View { descr, ..View::of_layout(layout) },
        extent: layout.extent(),
        address: interface.address().unwrap_or(0),
        readonly: interface.readonly(),
        syclobj: None,
        stream: interface.stream(),
        buffer: None,
    }
}

/// The slow part: members and their table. Returns the text if it contains more
/// than the type string.
#[cold]
#[inline(never)]
fn structure<'py>(
    raw: Raw<'_, '_>,
    text: &str,
    protocol: Protocol,
    policy: &Policy,
) -> PyResult<CheckedArray<'py>> {
    let mut table = table(text);
    let native_bar = protocol == Protocol::Sycl;
    let descr = Some(descr::parse(Lexer::new(text), native_bar, policy, &mut table).or_raise()?);
    let interface = Raw { descr, ..raw }.validate::<MAX_DIMS>(protocol, policy).or_raise()?;
    if interface.fields().is_empty() && is_unnamed(interface.layout().dtype()) {
        return Err(unnamed_error());
    }
    Ok(to_checked(&interface, (!interface.fields().is_empty()).then(|| Arc::new(text.into()))))
}

/// The text of `descr` (`typedescr` in SYCL's dictionary).
#[cold]
fn descr_text(mut entries: Entries<'_>, protocol: Protocol) -> PyResult<Option<String>> {
    let mut text = |place: usize| -> PyResult<Option<String>> {
        entries.present(place).map(|value| literal::text(&value)).transpose()
    };
    let descr = text(DESCR)?;
    if protocol != Protocol::Sycl {
        return Ok(descr);
    }
    match (text(TYPEDESCR)?, descr) {
        (Some(sycl), Some(numpy)) if sycl != numpy => {
            Err(Class::Interface.error("typedescr: differs from descr, and only one of them can be right"))
        }
        (sycl, numpy) => Ok(sycl.or(numpy)),
    }
}

#[cold]
fn codec_error(kind: impl Into<ErrorKind>, path: Path) -> PyErr {
    crate::text::error::interface(Error::new(kind, path))
}

#[cold]
fn wrong_type(path: Path, expected: &'static str, found: &Bound<'_, PyAny>) -> PyErr {
    let kind = if found.is_none() { ValueKind::None } else { ValueKind::Object };
    codec_error(EntryError::WrongType { expected, found: kind }, path)
}

/// The value of an exact `int` that fits. No Python code runs.
#[inline]
fn exact_int(value: &Bound<'_, PyAny>) -> Option<i64> {
    let value = value.cast_exact::<PyInt>().ok()?;
    let mut overflow = 0;
    // SAFETY: exactly an integer, so no exception is set.
    let number = unsafe { ffi::PyLong_AsLongLongAndOverflow(value.as_ptr(), &raw mut overflow) };
    (overflow == 0).then_some(number)
}

/// An integer through `__index__`; a boolean is refused.
#[cold]
fn index<'py>(value: &Bound<'py, PyAny>, path: Path, expected: &'static str) -> PyResult<Bound<'py, PyAny>> {
    if value.is_instance_of::<PyBool>() {
        return Err(wrong_type(path, expected, value));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(value.clone());
    }
    let method = value.getattr(name!(value.py(), "__index__"));
    let method = method.map_err(|error| {
        argument::conversion_error(value.py(), error, || wrong_type(path, expected, value))
    })?;
    method.call0()
}

fn integer(value: &Bound<'_, PyAny>, path: Path) -> PyResult<i64> {
    if let Some(number) = exact_int(value) {
        return Ok(number);
    }
    let range = |_| codec_error(EntryError::IntegerRange { range: "-2^63..2^63" }, path);
    index(value, path, "an integer")?.extract().map_err(range)
}

/// A CUDA stream.
fn stream(value: &Bound<'_, PyAny>) -> PyResult<Int> {
    let value = index(value, Key::Stream.path(), "a stream number")?;
    match value.extract::<i64>() {
        Ok(number) => Ok(Int::from(number)),
        Err(_) => Ok(Int::new(false, value.extract().ok())),
    }
}

/// A tuple, or a copy of a list: an entry's `__index__` may change the list.
fn sequence<'py>(value: Option<Bound<'py, PyAny>>, key: Key) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let Some(value) = value else { return Ok(None) };
    match value.cast_into::<PyTuple>() {
        Ok(tuple) => Ok(Some(tuple)),
        Err(error) => {
            let value = error.into_inner();
            let list = value.cast::<PyList>();
            let list = list.map_err(|_| wrong_type(key.path(), "a tuple of integers", &value))?;
            Ok(Some(list.to_tuple()))
        }
    }
}

/// The integers of a tuple with at most `N` entries.
#[inline]
fn integers<'a, const N: usize>(
    values: &Bound<'_, PyTuple>,
    key: Key,
    buffer: &'a mut [i64; N],
) -> PyResult<&'a [i64]> {
    for (place, (slot, value)) in buffer.iter_mut().zip(values.iter_borrowed()).enumerate() {
        *slot = match exact_int(&value) {
            Some(number) => number,
            None => integer(&value, key.at(place))?,
        };
    }
    Ok(&buffer[..values.len().min(N)])
}

/// `(address, flag)`. In protocols with buffers also an object with a buffer, and the producer
/// itself for None.
fn data(
    producer: &Bound<'_, PyAny>,
    value: Option<Bound<'_, PyAny>>,
    protocol: Protocol,
) -> PyResult<(Data, Option<HeldBuffer>)> {
    let Some(value) = value else {
        return match protocol {
            Protocol::Cuda => Ok((Data::Absent, None)),
            _ => buffer_as_data(producer, true),
        };
    };
    let pair = match value.cast::<PyTuple>() {
        Ok(pair) => pair.clone(),
        Err(_) => match value.cast::<PyList>() {
            Ok(list) => list.to_tuple(),
            Err(_) if protocol == Protocol::Array => return buffer_as_data(&value, false),
            Err(_) => return Err(wrong_type(Key::Data.path(), "(address, flag) or None", &value)),
        },
    };
    if pair.len() != 2 {
        return Err(codec_error(EntryError::WrongLength { expected: 2 }, Key::Data.path()));
    }
    let address = pair.get_borrowed_item(0)?;
    let address = match exact_int(&address).map(u64::try_from) {
        Some(Ok(address)) => address,
        _ => {
            let range = |_| codec_error(EntryError::IntegerRange { range: "0..2^64" }, Key::Data.at(0));
            index(&address, Key::Data.at(0), "an address")?.extract().map_err(range)?
        }
    };
    let flag = pair.get_borrowed_item(1)?;
    match flag.cast::<PyBool>() {
        Ok(flag) => Ok((Data::Pointer { address, flag: flag.is_true() }, None)),
        Err(_) => Err(wrong_type(Key::Data.at(1), "a boolean", &flag)),
    }
}

/// Uses an object's buffer instead of an address.
#[cold]
fn buffer_as_data(object: &Bound<'_, PyAny>, own: bool) -> PyResult<(Data, Option<HeldBuffer>)> {
    let py = object.py();
    // SAFETY: an object.
    if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 0 {
        return Err(match own {
            true => {
                Class::Interface.error("data: missing, and the producer has no buffer to use in its place")
            }
            false => {
                wrong_type(Key::Data.path(), "(address, flag), an object with a buffer, or None", object)
            }
        });
    }
    let buffer = HeldBuffer::new(object, false).map_err(|error| {
        let exception =
            Class::Interface.error(format!("data: the buffer is not available: {}", error.value(py)));
        exception.set_cause(py, Some(error));
        exception
    })?;
    let (address, len) = (buffer.pointer() as u64, buffer.len() as u64);
    let readonly = buffer.raw().readonly != 0;
    Ok((Data::Buffer { address, len, readonly }, Some(buffer)))
}
