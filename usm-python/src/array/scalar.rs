//! Conversions of single values between Python and memory.

use core::cmp::Ordering;

use half::{bf16, f16};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt};
use usm_interface::{Dtype, Extended, Kind};

use crate::array::dtype::{self, PyDtype};
use crate::process::once::name;
use crate::text::error::Class;

/// Size in bytes of the largest Python scalar: a complex number of two doubles.
pub(crate) const MAX_BYTES: usize = 16;

fn no_scalar(dtype: Dtype) -> PyErr {
    Class::Request.error(format!("elements of type {dtype} have no Python scalar"))
}

/// Size in bytes of each part that has its own byte order.
fn part(dtype: Dtype) -> usize {
    let size = dtype.itemsize() as usize;
    if dtype.kind() == Kind::Complex { size / 2 } else { size }
}

fn swap(bytes: &mut [u8], dtype: Dtype) {
    if !dtype.is_native() {
        bytes.chunks_exact_mut(part(dtype).max(1)).for_each(<[u8]>::reverse);
    }
}

/// The value of one element.
pub(crate) fn load<'py>(py: Python<'py>, dtype: Dtype, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let mut native = [0; MAX_BYTES];
    let native = native.get_mut(..bytes.len()).ok_or_else(|| no_scalar(dtype))?;
    native.copy_from_slice(bytes);
    swap(native, dtype);
    macro_rules! number {
        ($type:ty, $make:ident) => {
            match native.first_chunk() {
                // SAFETY: a call without preconditions, with the interpreter attached.
                Some(bytes) => unsafe { ffi::$make(<$type>::from_ne_bytes(*bytes).into()) },
                None => return Err(no_scalar(dtype)),
            }
        };
    }
    let object = match (dtype.kind(), native.len()) {
        (Kind::Bool, 1) => return (native[0] != 0).into_bound_py_any(py),
        (Kind::Int, 1) => number!(i8, PyLong_FromLongLong),
        (Kind::Int, 2) => number!(i16, PyLong_FromLongLong),
        (Kind::Int, 4) => number!(i32, PyLong_FromLongLong),
        (Kind::Int, 8) => number!(i64, PyLong_FromLongLong),
        (Kind::Uint, 1) => number!(u8, PyLong_FromUnsignedLongLong),
        (Kind::Uint, 2) => number!(u16, PyLong_FromUnsignedLongLong),
        (Kind::Uint, 4) => number!(u32, PyLong_FromUnsignedLongLong),
        (Kind::Uint, 8) => number!(u64, PyLong_FromUnsignedLongLong),
        (Kind::Float, 2) => number!(f16, PyFloat_FromDouble),
        (Kind::Extended(Extended::Bfloat16), _) => number!(bf16, PyFloat_FromDouble),
        (Kind::Float, 4) => number!(f32, PyFloat_FromDouble),
        (Kind::Float, 8) => number!(f64, PyFloat_FromDouble),
        (Kind::Complex, 8 | 16) => {
            let (re, im) = native.split_at(part(dtype));
            // SAFETY: as above.
            unsafe { ffi::PyComplex_FromDoubles(float(re), float(im)) }
        }
        (Kind::Extended(kind), 1) => match float_of_byte(kind, native[0]) {
            // SAFETY: as above.
            Some(value) => unsafe { ffi::PyFloat_FromDouble(value) },
            None => return Err(no_scalar(dtype)),
        },
        (Kind::Extended(kind), 4) => {
            let [re, im] = [&native[..2], &native[2..]].map(|part| [part[0], part[1]]);
            let (re, im) = match kind {
                Extended::Complex32 => (f16::from_ne_bytes(re).to_f64(), f16::from_ne_bytes(im).to_f64()),
                Extended::Bcomplex32 => (bf16::from_ne_bytes(re).to_f64(), bf16::from_ne_bytes(im).to_f64()),
                _ => return Err(no_scalar(dtype)),
            };
            // SAFETY: as above.
            unsafe { ffi::PyComplex_FromDoubles(re, im) }
        }
        _ => return Err(no_scalar(dtype)),
    };
    // SAFETY: a new reference, or NULL with an exception set if the interpreter has no memory.
    unsafe { Bound::from_owned_ptr_or_err(py, object) }
}

/// Loads an element of one type.
pub(crate) type Loader = for<'py> fn(Python<'py>, &[u8]) -> PyResult<Bound<'py, PyAny>>;

/// The function that loads the elements of a usual type, chosen once for many.
pub(crate) fn loader(dtype: Dtype) -> Option<Loader> {
    macro_rules! of {
        ($type:ty) => {
            |py, bytes| {
                let bytes = bytes.first_chunk().copied().unwrap_or_default();
                <$type>::from_ne_bytes(bytes).into_bound_py_any(py)
            }
        };
    }
    if !dtype.is_native() {
        return None;
    }
    Some(match (dtype.kind(), dtype.itemsize()) {
        (Kind::Float, 8) => of!(f64),
        (Kind::Float, 4) => of!(f32),
        (Kind::Int, 8) => of!(i64),
        (Kind::Int, 4) => of!(i32),
        (Kind::Uint, 8) => of!(u64),
        (Kind::Uint, 1) => of!(u8),
        _ => return None,
    })
}

/// What the largest exponent of a type of 8 bits means.
enum Largest {
    /// As in IEEE 754: infinity and NaN.
    Ieee,
    /// A number; NaN has all bits of exponent and mantissa set.
    Finite,
    /// A number; NaN is in the place of the negative zero.
    NoNegativeZero,
}

/// The value of a byte, by the definitions of ml_dtypes; `None` if the type is no float of 8 bits.
fn float_of_byte(kind: Extended, byte: u8) -> Option<f64> {
    use Largest::{Finite, Ieee, NoNegativeZero};
    let (mantissa_bits, bias, largest) = match kind {
        Extended::Float8E3M4 => (4, 3, Ieee),
        Extended::Float8E4M3 => (3, 7, Ieee),
        Extended::Float8E4M3Fn => (3, 7, Finite),
        Extended::Float8E4M3Fnuz => (3, 8, NoNegativeZero),
        Extended::Float8E4M3B11Fnuz => (3, 11, NoNegativeZero),
        Extended::Float8E5M2 => (2, 15, Ieee),
        Extended::Float8E5M2Fnuz => (2, 16, NoNegativeZero),
        Extended::Float8E8M0Fnu if byte == 0xff => return Some(f64::NAN),
        // An exponent without sign and mantissa.
        Extended::Float8E8M0Fnu => return Some(2_f64.powi(i32::from(byte) - 127)),
        _ => return None,
    };
    let sign = if byte & 0x80 == 0 { 1.0 } else { -1.0 };
    let (rest, full) = (byte & 0x7f, (1_u8 << mantissa_bits) - 1);
    let (exponent, mantissa) = (i32::from(rest >> mantissa_bits), rest & full);
    let is_largest = rest >> mantissa_bits == 0x7f >> mantissa_bits;
    let is_nan = match largest {
        Ieee if is_largest && mantissa == 0 => return Some(sign * f64::INFINITY),
        Ieee => is_largest,
        Finite => rest == 0x7f,
        NoNegativeZero => byte == 0x80,
    };
    if is_nan {
        return Some(f64::NAN);
    }
    // The smallest exponent has no leading one.
    let digits = if exponent == 0 { mantissa } else { mantissa | (full + 1) };
    Some(sign * f64::from(digits) * 2_f64.powi(exponent.max(1) - bias - mantissa_bits))
}

fn float(bytes: &[u8]) -> f64 {
    match (bytes.first_chunk::<8>(), bytes.first_chunk::<4>()) {
        (Some(wide), _) => f64::from_ne_bytes(*wide),
        (None, Some(narrow)) => f64::from(f32::from_ne_bytes(*narrow)),
        (None, None) => 0.0,
    }
}

/// The value if it fits, else the neighbour with an odd last bit. A second rounding, to 16 bits,
/// then has the result of one: no odd neighbour is a tie. (The crate half ignores the lower half of
/// a 64-bit number, and so takes a value just beside a tie for one.)
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let (bits, wide) = (nearest.to_bits(), f64::from(nearest));
    match wide.abs().partial_cmp(&value.abs()) {
        Some(Ordering::Greater) if bits & 1 == 0 => f32::from_bits(bits - 1),
        Some(Ordering::Less) if bits & 1 == 0 => f32::from_bits(bits + 1),
        _ => nearest,
    }
}

/// The bytes of one element, as many as the type's size.
pub(crate) fn store(dtype: Dtype, value: &Bound<'_, PyAny>) -> PyResult<[u8; MAX_BYTES]> {
    let mut bytes = [0; MAX_BYTES];
    let mut put = |part: &[u8]| bytes[..part.len()].copy_from_slice(part);
    macro_rules! integer {
        ($type:ty) => {{
            let value: $type = integer(value)?.extract().map_err(|_| {
                let text = value.repr().map(|text| text.to_string()).unwrap_or_default();
                let text = if text.len() <= 40 { format!(" {text}") } else { String::new() };
                PyOverflowError::new_err(format!("the value{text} does not fit an element of type {dtype}"))
            })?;
            put(&value.to_ne_bytes());
        }};
    }
    match (dtype.kind(), dtype.itemsize()) {
        (Kind::Bool, 1) => put(&[u8::from(value.is_truthy()?)]),
        (Kind::Int, 1) => integer!(i8),
        (Kind::Int, 2) => integer!(i16),
        (Kind::Int, 4) => integer!(i32),
        (Kind::Int, 8) => integer!(i64),
        (Kind::Uint, 1) => integer!(u8),
        (Kind::Uint, 2) => integer!(u16),
        (Kind::Uint, 4) => integer!(u32),
        (Kind::Uint, 8) => integer!(u64),
        (Kind::Float, 2) => put(&f16::from_f32(to_odd(real(value)?)).to_ne_bytes()),
        (Kind::Extended(Extended::Bfloat16), _) => put(&bf16::from_f32(to_odd(real(value)?)).to_ne_bytes()),
        (Kind::Float, 4) => put(&(real(value)? as f32).to_ne_bytes()),
        (Kind::Float, 8) => put(&real(value)?.to_ne_bytes()),
        (Kind::Complex, 8) => {
            let (re, im) = complex(value)?;
            put(&[(re as f32).to_ne_bytes(), (im as f32).to_ne_bytes()].concat());
        }
        (Kind::Complex, 16) => {
            let (re, im) = complex(value)?;
            put(&[re.to_ne_bytes(), im.to_ne_bytes()].concat());
        }
        _ => return Err(no_scalar(dtype)),
    }
    swap(&mut bytes[..dtype.itemsize() as usize], dtype);
    Ok(bytes)
}

/// Reads an integer with `__index__`, so that a float is refused instead of cut.
fn integer<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if value.is_instance_of::<PyInt>() {
        return Ok(value.clone());
    }
    if number_of_numpy(value)?.is_some_and(|dtype| dtype.kind() == Kind::Bool) {
        // Not one by `__index__`, as Python's own bool is.
        return value.is_truthy()?.into_bound_py_any(value.py());
    }
    // SAFETY: an object, with the interpreter attached. The result is a new reference, or NULL with
    // an exception set.
    let index = unsafe { ffi::PyNumber_Index(value.as_ptr()) };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(value.py(), index) }.map_err(|error| {
        match value.cast_exact::<PyFloat>() {
            Ok(float) => PyTypeError::new_err(format!("an integer is needed, {float} is a float")),
            Err(_) => error,
        }
    })
}

/// Reads a real number. NumPy's complex scalars convert to one with a warning, so that a part would
/// be lost.
fn real(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let is_python = value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>();
    if !is_python && number_of_numpy(value)?.is_some_and(|dtype| dtype.kind() == Kind::Complex) {
        return Err(PyTypeError::new_err("must be real number, not complex"));
    }
    value.extract()
}

fn complex(value: &Bound<'_, PyAny>) -> PyResult<(f64, f64)> {
    // Of NumPy's complex scalars `__float__` gives one part only.
    let value = match value.getattr_opt("__complex__")? {
        Some(method) if !value.is_instance_of::<PyComplex>() => method.call0()?,
        _ => value.clone(),
    };
    match value.cast::<PyComplex>() {
        Ok(value) => Ok((value.real(), value.imag())),
        Err(_) => Ok((value.extract()?, 0.0)),
    }
}

/// Whether the value is one of Python's own numbers, and of no class that is derived from them.
pub(crate) fn is_number_of_python(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyComplex>()
}

/// The type of a scalar of NumPy's that is a number.
pub(crate) fn number_of_numpy(value: &Bound<'_, PyAny>) -> PyResult<Option<Dtype>> {
    let Some(numpy) = dtype::numpy(value.py())? else { return Ok(None) };
    if !value.is_instance(&numpy.getattr(name!(value.py(), "generic"))?)? {
        return Ok(None);
    }
    let dtype = PyDtype::of(&value.getattr(name!(value.py(), "dtype"))?)?.dtype;
    let numbers = [Kind::Bool, Kind::Int, Kind::Uint, Kind::Float, Kind::Complex];
    let is_number = numbers.contains(&dtype.kind()) || matches!(dtype.kind(), Kind::Extended(_));
    Ok(is_number.then_some(dtype))
}
