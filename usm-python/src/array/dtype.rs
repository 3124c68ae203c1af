//! `usm.DType`: the type of an array's elements.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use usm_interface::text::Lexer;
use usm_interface::value::Str;
use usm_interface::{Dtype, Extended, Kind, MissingData, Mode, Policy, Protocol, Raw, descr, typestr};

use crate::array::members::{MAX_FIELDS, Members, literal, table};
use crate::array::view::View;
use crate::process::attribute;
use crate::process::once::{LazyCell, name};
use crate::process::pickled;
use crate::text::argument;
use crate::text::error::{Class, OrRaise};

/// The type of elements. ``DType(value)`` accepts a type string such as ``"<f4"``, a name such as
/// ``"float32"``, Python's ``bool``, ``int``, ``float`` and ``complex``, and NumPy's types.
///
/// It equals all of these with the same meaning, and NumPy accepts it in place of a type. Only
/// equal objects of this class have equal hashes: a text has its own.
///
/// >>> usm.DType("float32") == "<f4", usm.float32.itemsize
/// (True, 4)
#[pyclass(frozen, weakref, module = "usm", name = "DType")]
#[derive(Clone, Debug)]
pub(crate) struct PyDtype {
    pub(crate) dtype: Dtype,
    /// The members of a structured type, as a `descr` that the codec accepted.
    pub(crate) descr: Option<Arc<Members>>,
}

/// Accepted values of an argument `dtype`.
const FITS: &str = "a type string such as \"<f4\", a name such as \"float32\", a usm.DType, a type of NumPy's, a list of members (read by NumPy), or bool, int, float, complex";

/// NumPy's names of types in native byte order.
const NAMES: [(&str, Kind, u32); 15] = [
    ("bool", Kind::Bool, 1),
    ("bool_", Kind::Bool, 1),
    ("int8", Kind::Int, 1),
    ("int16", Kind::Int, 2),
    ("int32", Kind::Int, 4),
    ("int64", Kind::Int, 8),
    ("uint8", Kind::Uint, 1),
    ("uint16", Kind::Uint, 2),
    ("uint32", Kind::Uint, 4),
    ("uint64", Kind::Uint, 8),
    ("float16", Kind::Float, 2),
    ("float32", Kind::Float, 4),
    ("float64", Kind::Float, 8),
    ("complex64", Kind::Complex, 8),
    ("complex128", Kind::Complex, 16),
];

impl From<Dtype> for PyDtype {
    fn from(dtype: Dtype) -> Self {
        Self { dtype, descr: None }
    }
}

/// Members are compared by meaning, because producers spell them differently.
impl PartialEq for PyDtype {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.descr, &other.descr) {
            (Some(left), Some(right)) => left == right || same_members(left, right),
            (left, right) => left.is_none() && right.is_none(),
        };
        self.dtype == other.dtype && same
    }
}

impl Eq for PyDtype {}

impl Hash for PyDtype {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.dtype.hash(state);
        self.descr.is_some().hash(state);
    }
}

/// Whether two `descr` texts have members of equal names, types and offsets.
fn same_members(left_text: &str, right_text: &str) -> bool {
    let policy = Policy { missing_data: MissingData::Allow, ..Policy::default() };
    let (mut one, mut two) = (table(left_text), table(right_text));
    let left = descr::parse(Lexer::new(left_text), false, &policy, &mut one);
    let right = descr::parse(Lexer::new(right_text), false, &policy, &mut two);
    matches!((left, right), (Ok(left), Ok(right)) if left.fields() == right.fields())
}

impl fmt::Display for PyDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.descr {
            Some(members) => f.write_str(members),
            None => f.write_str(&self.text()),
        }
    }
}

impl PyDtype {
    /// The type of a view's elements.
    pub(crate) fn of_view(view: &View) -> Self {
        Self { dtype: view.dtype, descr: view.descr.clone() }
    }

    /// float64, the default type.
    pub(crate) fn double() -> PyResult<Self> {
        Self::of_text("float64")
    }

    /// The type of a value.
    ///
    /// # Errors
    /// `TypeError` for an object that is no type; [`Class::Request`] for a text or type that usm
    /// has no elements of.
    pub(crate) fn of(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(dtype) = value.cast::<Self>() {
            return Ok(dtype.get().clone());
        }
        if value.is_instance_of::<PyString>() {
            return Self::of_text(argument::text("dtype", value, FITS)?);
        }
        let py = value.py();
        if let Some(dtype) = numpy_number(value) {
            return Ok(dtype.into());
        }
        let classes = [
            (py.get_type::<PyBool>(), "bool"),
            (py.get_type::<PyInt>(), "int64"),
            (py.get_type::<PyFloat>(), "float64"),
            (py.get_type::<PyComplex>(), "complex128"),
        ];
        if let Some((_, name)) = classes.iter().find(|(class, _)| value.is(class)) {
            return Self::of_text(name);
        }
        let numpy = match value.is_instance_of::<PyList>() {
            // Only NumPy reads a list of members.
            true => match py.import(name!(py, "numpy")) {
                Ok(numpy) => Some(numpy.into_any()),
                Err(error) if error.is_instance_of::<PyImportError>(py) => {
                    let reason = "dtype: only NumPy reads a list of members, and it is not installed";
                    return Err(PyTypeError::new_err(format!("{reason}; {FITS} does fit")));
                }
                Err(error) => return Err(error),
            },
            false if is_numpy_object(value)? => numpy(py)?,
            false => None,
        };
        match numpy {
            Some(numpy) => {
                remember_numbers(&numpy)?;
                let misfit = |error| {
                    let ours = || argument::type_error("dtype", value, FITS);
                    argument::conversion_error(py, error, ours)
                };
                let numpy_dtype = numpy.getattr(name!(py, "dtype"))?.call1((value,)).map_err(misfit)?;
                Self::of_numpy(&numpy_dtype)
            }
            None => Err(argument::type_error("dtype", value, FITS)),
        }
    }

    pub(crate) fn of_text(text: &str) -> PyResult<Self> {
        // NumPy's names for integers of the pointer's size, and C's `long`.
        let text = match text {
            "int" | "int_" | "intp" => "int64",
            "uint" | "uintp" => "uint64",
            "long" | "l" => {
                if cfg!(windows) {
                    "int32"
                } else {
                    "int64"
                }
            }
            "ulong" | "L" => {
                if cfg!(windows) {
                    "uint32"
                } else {
                    "uint64"
                }
            }
            text => text,
        };
        if let Some(byte_type) = whole_bytes(text) {
            return Ok(Dtype::extended(byte_type).into());
        }
        if let Some((_, kind, size)) = NAMES.iter().find(|(name, ..)| *name == text)
            && let Some(dtype) = Dtype::number(*kind, *size)
        {
            return Ok(dtype.into());
        }
        let dtype = typestr::parse(text, Mode::Numpy, None)
            .map_err(|error| Class::Request.error(format!("dtype {text:?}: {error}")))?;
        if dtype.kind() == Kind::Object {
            return Err(Class::Request.error("USM memory cannot hold Python objects"));
        }
        Ok(dtype.into())
    }

    /// From an object of `numpy.dtype`.
    fn of_numpy(dtype: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = dtype.py();
        let text: String = dtype.getattr(name!(py, "str"))?.extract()?;
        if let Some(byte_type) = extended(dtype)? {
            return Ok(Dtype::extended(byte_type).into());
        }
        let element = Self::of_text(&text)?;
        if dtype.getattr(name!(py, "names"))?.is_none() {
            return Ok(element);
        }
        if members_of(dtype, &mut HashMap::new())? > MAX_FIELDS {
            return Err(Class::Request.error(format!("more than {MAX_FIELDS} structure members")));
        }
        let no_descr = |error: PyErr| {
            let reason = format!("dtype: members that `descr` cannot list: {}", error.value(py));
            argument::conversion_error(py, error, || Class::Request.error(reason))
        };
        let members = dtype.getattr(name!(py, "descr")).map_err(no_descr)?.repr()?;
        Self::structure(&text, members.to_str()?)
    }

    /// The type string, or the name of a type without one: the argument that makes it again.
    pub(crate) fn text(&self) -> String {
        match self.dtype.kind() {
            Kind::Extended(kind) => kind.name().to_owned(),
            _ => self.dtype.to_string(),
        }
    }

    /// A structure with the members of a `descr`.
    pub(crate) fn structure(text: &str, members: &str) -> PyResult<Self> {
        let element = Self::of_text(text)?;
        let policy = Policy { missing_data: MissingData::Allow, ..Policy::default() };
        let mut table = table(members);
        let descr = Some(descr::parse(Lexer::new(members), false, &policy, &mut table).or_raise()?);
        let raw = Raw { shape: Some(&[]), typestr: Some(Str::new(text)), descr, ..Raw::default() };
        raw.validate::<1>(Protocol::Array, &policy).or_raise()?;
        Ok(Self { descr: Some(Arc::new(members.into())), ..element })
    }
}

/// NumPy's classes of numbers and its objects for their types, which are compared in kernels and
/// loops: a comparison of addresses instead of three attributes.
static NUMBERS: LazyCell<Vec<(Py<PyAny>, Dtype)>> = LazyCell::new();

fn numpy_number(value: &Bound<'_, PyAny>) -> Option<Dtype> {
    let numbers = NUMBERS.get()?;
    numbers.iter().find(|(object, _)| object.is(value)).map(|(_, dtype)| *dtype)
}

/// Remembers NumPy's classes of numbers.
fn remember_numbers(numpy: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = numpy.py();
    let make = || {
        let mut numbers = Vec::new();
        for (name, kind, size) in NAMES {
            let Some(dtype) = Dtype::number(kind, size) else { continue };
            // NumPy 1 has no class `bool`.
            let name = if name == "bool" { "bool_" } else { name };
            let class = numpy.getattr(name)?;
            numbers.push((numpy.getattr(name!(py, "dtype"))?.call1((&class,))?.unbind(), dtype));
            numbers.push((class.unbind(), dtype));
        }
        Ok(numbers)
    };
    NUMBERS.get_or_try_make(py, make).map(drop)
}

/// Members of a `numpy.dtype` and of their structures, which NumPy would list one by one. A type
/// may be that of many members, and is counted once; the outermost type holds all of them.
fn members_of(dtype: &Bound<'_, PyAny>, counts: &mut HashMap<usize, usize>) -> PyResult<usize> {
    let py = dtype.py();
    let place = dtype.as_ptr().addr();
    if let Some(count) = counts.get(&place) {
        return Ok(*count);
    }
    let element = dtype.getattr(name!(py, "base"))?;
    let fields = element.getattr(name!(py, "fields"))?;
    let mut count = 0_usize;
    if !fields.is_none() {
        for field in fields.call_method0(name!(py, "values"))?.try_iter()? {
            count = count.saturating_add(1).saturating_add(members_of(&field?.get_item(0)?, counts)?);
        }
    }
    counts.insert(place, count);
    Ok(count)
}

/// The type of an ml_dtypes name, for elements of whole bytes.
fn whole_bytes(name: &str) -> Option<Extended> {
    Extended::from_name(name).filter(|it| u32::from(it.bits()) == 8 * it.itemsize())
}

/// The ml_dtypes type of a `numpy.dtype` object; its type string is ambiguous.
pub(crate) fn extended(dtype: &Bound<'_, PyAny>) -> PyResult<Option<Extended>> {
    let py = dtype.py();
    if !dtype.getattr(name!(py, "isbuiltin"))?.eq(REGISTERED)? {
        return Ok(None);
    }
    let name = dtype.getattr(name!(py, "name"))?;
    Ok(name.cast::<PyString>().ok().and_then(|name| whole_bytes(name.to_str().ok()?)))
}

/// The type that an object's attribute `dtype` names, ours or NumPy's, if a type string cannot.
#[cold]
pub(crate) fn hint(object: &Bound<'_, PyAny>) -> PyResult<Option<Extended>> {
    let py = object.py();
    let Some(dtype) = attribute::get(object, name!(py, "dtype"))? else { return Ok(None) };
    if let Ok(ours) = dtype.cast::<PyDtype>() {
        return Ok(match ours.get().dtype.kind() {
            Kind::Extended(kind) => Some(kind),
            _ => None,
        });
    }
    let Some(numpy) = numpy(py)? else { return Ok(None) };
    match dtype.is_instance(&numpy.getattr(name!(py, "dtype"))?)? {
        true => extended(&dtype),
        false => Ok(None),
    }
}

/// The value of `numpy.dtype.isbuiltin` for types that other packages registered.
const REGISTERED: u8 = 2;

/// Adds `usm.float32` and the other types.
pub(crate) fn add_names(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let names = NAMES.iter().map(|(name, ..)| *name).filter(|name| *name != "bool");
    for name in names.chain(["bfloat16"]) {
        module.add(name, PyDtype::of_text(name)?)?;
    }
    Ok(())
}

/// NumPy, if it is imported: a program with a NumPy type has imported it.
pub(crate) fn numpy(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let modules = py.import(name!(py, "sys"))?.getattr(name!(py, "modules"))?;
    let numpy_module = modules.cast::<PyDict>()?.get_item(name!(py, "numpy"))?;
    Ok(numpy_module.filter(|module| !module.is_none()))
}

/// Whether a value is a type by NumPy's rules: its own types, classes of scalars, or those of
/// ml_dtypes.
fn is_numpy_object(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let class = match value.cast::<PyType>() {
        Ok(class) => class.clone(),
        Err(_) => value.get_type(),
    };
    let module = class.getattr(name!(value.py(), "__module__"))?;
    let module = module.cast::<PyString>().map(|module| module.to_string()).unwrap_or_default();
    let module = module.split('.').next().unwrap_or_default();
    Ok(module == "ml_dtypes" || (module == "numpy" && (value.is_instance_of::<PyType>() || has_str(value)?)))
}

/// Whether a NumPy object is a type instead of a value.
fn has_str(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(value.getattr_opt(name!(value.py(), "str"))?.is_some_and(|text| text.is_instance_of::<PyString>()))
}

/// A function and its arguments.
type Rebuild<'py> = (Bound<'py, PyAny>, (String, Option<String>));

#[pymethods]
impl PyDtype {
    #[new]
    fn new(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::of(value)
    }

    /// The type string; `"|V12"` and similar for structures.
    #[getter]
    pub(crate) fn str(&self) -> String {
        self.dtype.to_string()
    }

    /// NumPy's name, or the type string if it has none.
    #[getter]
    fn name(&self) -> String {
        if let Kind::Extended(kind) = self.dtype.kind() {
            return kind.name().to_owned();
        }
        let own = (self.dtype.kind(), self.dtype.itemsize());
        let name = NAMES.iter().find(|(_, kind, size)| (*kind, *size) == own);
        match name.filter(|_| self.descr.is_none()) {
            Some((name, ..)) => (*name).to_owned(),
            None => self.str(),
        }
    }

    /// NumPy's letter: `b` bool, `i` and `u` integers, `f`, `c`, `V` structures and raw bytes, and
    /// so on.
    #[getter]
    fn kind(&self) -> String {
        self.str().chars().nth(1).map(String::from).unwrap_or_default()
    }

    /// Size of one element in bytes.
    #[getter]
    fn itemsize(&self) -> usize {
        self.dtype.itemsize() as usize
    }

    /// NumPy's letter of the byte order: `=` native, `<`, `>`, or `|` where there is none.
    #[getter]
    fn byteorder(&self) -> char {
        match self.str().chars().next() {
            Some('<' | '>') if self.dtype.is_native() => '=',
            letter => letter.unwrap_or('|'),
        }
    }

    /// Whether the bytes are in this machine's order.
    #[getter]
    fn isnative(&self) -> bool {
        self.byteorder() == '=' || self.byteorder() == '|'
    }

    /// NumPy's letter of the type. Imports NumPy.
    #[getter]
    fn char<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.dtype(py)?.getattr(name!(py, "char"))
    }

    /// NumPy's number of the type. Imports NumPy.
    #[getter]
    fn num<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.dtype(py)?.getattr(name!(py, "num"))
    }

    /// NumPy's class of the elements. Imports NumPy.
    #[getter(r#type)]
    fn class<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.dtype(py)?.getattr(name!(py, "type"))
    }

    /// The type itself: an element is no array of others.
    #[getter]
    fn base<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }

    /// `()`: an element is no array of others.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> Bound<'py, PyTuple> {
        PyTuple::empty(py)
    }

    /// `None`: an element is no array of others.
    #[getter]
    fn subdtype(&self) -> Option<u8> {
        None
    }

    /// Names of a structure's members, `None` for other types. Imports NumPy for a structure.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.descr.as_ref().map(|_| self.dtype(py)?.getattr(name!(py, "names"))).transpose()
    }

    /// Members of a structure by name, as NumPy lists them; `None` for other types. Imports NumPy
    /// for a structure.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.descr.as_ref().map(|_| self.dtype(py)?.getattr(name!(py, "fields"))).transpose()
    }

    /// `False`: USM memory cannot hold Python objects.
    #[getter]
    fn hasobject(&self) -> bool {
        false
    }

    /// NumPy's object for the type, for NumPy 2.4 and later.
    #[getter]
    fn __numpy_dtype__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.dtype(py)
    }

    /// The members as in `__array_interface__`; a number has one without a name.
    #[getter]
    fn descr<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.descr {
            Some(text) => literal(py, text),
            None => Ok(PyList::new(py, [("", self.str())])?.into_any()),
        }
    }

    /// NumPy's object for the type. Imports NumPy, which asks for it.
    #[getter]
    pub(crate) fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.descr.is_some() {
            // NumPy knows that members without a name are padding.
            let format = py.import("numpy.lib.format")?;
            return format.getattr("descr_to_dtype")?.call1((self.descr(py)?,));
        }
        let numpy = py.import("numpy")?.getattr("dtype")?;
        match self.dtype.kind() {
            Kind::Extended(kind) => {
                let name = kind.name();
                let package = py.import("ml_dtypes").map_err(|error| {
                    if !error.is_instance_of::<PyImportError>(py) {
                        return error;
                    }
                    let import_error = PyImportError::new_err(format!(
                        "NumPy has the type {name} only with the package ml_dtypes: pip install ml_dtypes"
                    ));
                    import_error.set_cause(py, Some(error));
                    import_error
                })?;
                numpy.call1((package.getattr(name)?,))
            }
            _ => numpy.call1((self.str(),)),
        }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        // A value that is no type is unequal, whatever exception it raises.
        Self::of(other).is_ok_and(|other| other == *self)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    fn __str__(&self) -> String {
        self.to_string()
    }

    fn __repr__(&self) -> String {
        match &self.descr {
            Some(members) => format!("usm.DType({})", &***members),
            None => format!("usm.DType({:?})", self.text()),
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Rebuild<'py>> {
        let rebuild = py.import("usm._usm")?.getattr("_rebuild_dtype")?;
        Ok((rebuild, (self.text(), self.descr.as_deref().map(|members| str::to_owned(members)))))
    }
}

/// The counterpart of `DType.__reduce__`.
#[pyfunction]
pub(crate) fn _rebuild_dtype(
    text: &Bound<'_, PyAny>,
    members: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyDtype> {
    pickled::read(text.py(), "a dtype", || {
        let text = pickled::text("text", text)?;
        match members {
            Some(members) => PyDtype::structure(text, pickled::text("members", members)?),
            None => PyDtype::of_text(text),
        }
    })
}
