//! The arguments of a kernel.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyTuple};
use usm_core::AllocKind;
use usm_interface::{Dtype, Kind};
use usm_kernel_ir::{Literal, Scalar};

use crate::array::Array;
use crate::dtype::PyDtype;
use crate::error::Class;
use crate::import;
use crate::runtime::Stream;
use crate::transfer::{self, Side};

/// An argument of a kernel.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all are arrays, and a launch has few")]
pub(crate) enum Argument {
    /// Memory, and the type of its elements.
    Array(Memory),
    Scalar(Literal),
    /// Local memory: the type of its elements, and its extents in elements.
    Local(Scalar, Vec<u64>),
}

/// An array that is passed to a kernel.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) element: Scalar,
    pub(crate) side: Side,
    /// Whether it is plain memory of the process, of which a device gets a copy.
    pub(crate) of_process: bool,
    /// The original, if `side` is a copy.
    pub(crate) origin: Option<Side>,
}

impl Argument {
    /// Reads an argument. `name` names it in messages.
    pub(crate) fn of(given: &Bound<'_, PyAny>, name: &dyn Fn() -> String) -> PyResult<Self> {
        let py = given.py();
        if let Ok(array) = given.cast_exact::<Array>() {
            return Memory::new(array.get().side(), name).map(Self::Array);
        }
        if let Ok(value) = given.cast_exact::<PyBool>() {
            return Ok(Self::Scalar(Literal::bool(value.is_true())));
        }
        if given.is_exact_instance_of::<PyInt>() {
            let value: i64 = given.extract().map_err(|_| {
                Class::Kernel.error(format!("{}: {given} does not fit int64; pass numpy.uint64", name()))
            })?;
            return Ok(Self::Scalar(Literal::integer(Scalar::I64, value as u64)));
        }
        if given.is_exact_instance_of::<PyFloat>() {
            return Ok(Self::Scalar(Literal::f64(given.extract()?)));
        }
        if let Some(shape) = given.getattr_opt(intern!(py, "_usm_local_shape"))? {
            let shape = shape.cast_into::<PyTuple>().map_err(PyErr::from)?.extract()?;
            let dtype = PyDtype::of(&given.getattr(intern!(py, "dtype"))?)?;
            return Ok(Self::Local(scalar(&dtype.dtype, name)?, shape));
        }
        let Some(array) = import::without_copy(given)? else {
            let class = given.get_type().name().map(|name| name.to_string()).unwrap_or_default();
            return Err(Class::Kernel.error(format!(
                "{}: an object of type {class} is no argument; arrays of usm, NumPy, dpctl, CuPy, and \
                 numbers are",
                name()
            )));
        };
        let memory = Memory::new(array.get().side(), name)?;
        if memory.of_process && memory.side.view.ndim() == 0 {
            // A NumPy scalar.
            let bytes = transfer::to_bytes(py, &memory.side)?;
            return Ok(Self::Scalar(Literal::from_ne_bytes(memory.element, &bytes)));
        }
        Ok(Self::Array(memory))
    }

    /// The kind and the type of the argument in one number, for the key of generated code.
    pub(crate) fn key(&self) -> u32 {
        match self {
            Self::Array(memory) => {
                let view = &memory.side.view;
                let (strided, readonly) = (!view.is_c_contiguous(), memory.is_readonly());
                array_key(memory.element, view.ndim() as u32, strided, readonly)
            }
            Self::Scalar(literal) => literal.ty as u32,
            Self::Local(element, shape) => 2 << 24 | (shape.len() as u32) << 16 | *element as u32,
        }
    }
}

impl Memory {
    fn new(side: Side, name: &dyn Fn() -> String) -> PyResult<Self> {
        let element = scalar(&side.view.dtype, name)?;
        let size = side.view.itemsize() as isize;
        if side.view.nbytes() != 0 && side.view.strides.iter().any(|stride| stride % size != 0) {
            return Err(Class::Kernel.error(format!(
                "{}: strides of {:?} bytes are no multiples of the {size} bytes of an element; pass a copy",
                name(),
                side.view.strides
            )));
        }
        let of_process = side.storage.is_foreign() && side.stream.is_host();
        Ok(Self { element, side, of_process, origin: None })
    }

    pub(crate) fn is_readonly(&self) -> bool {
        self.origin.as_ref().unwrap_or(&self.side).storage.is_readonly()
    }

    /// Copies plain memory of the process to the device of `stream`, if that is not the host.
    pub(crate) fn move_to(&mut self, py: Python<'_>, stream: &Arc<Stream>) -> PyResult<()> {
        if self.of_process && !stream.is_host() {
            let copy = transfer::duplicate(py, &self.side, stream, AllocKind::Device, 0)?;
            self.origin = Some(std::mem::replace(&mut self.side, copy));
        }
        Ok(())
    }

    /// The bytes from the start of the storage to the lowest element, and the bytes from there to
    /// the end of the highest.
    pub(crate) fn span(&self) -> (usize, usize) {
        let span = self.side.view.span();
        (span.start, span.len())
    }

    /// Elements from the lowest one to the one with all indices 0.
    pub(crate) fn offset(&self) -> u64 {
        (self.side.view.offset - self.span().0) as u64 / self.element.bytes()
    }
}

/// The kind and the type of an array in one number.
pub(crate) fn array_key(element: Scalar, dimensions: u32, strided: bool, readonly: bool) -> u32 {
    1 << 24 | dimensions << 16 | u32::from(readonly) << 9 | u32::from(strided) << 8 | element as u32
}

/// Types by their names in NumPy.
pub(crate) const TYPES: [(&str, Scalar); 12] = [
    ("bool", Scalar::Bool),
    ("bool_", Scalar::Bool),
    ("int8", Scalar::I8),
    ("int16", Scalar::I16),
    ("int32", Scalar::I32),
    ("int64", Scalar::I64),
    ("uint8", Scalar::U8),
    ("uint16", Scalar::U16),
    ("uint32", Scalar::U32),
    ("uint64", Scalar::U64),
    ("float32", Scalar::F32),
    ("float64", Scalar::F64),
];

fn scalar(dtype: &Dtype, name: &dyn Fn() -> String) -> PyResult<Scalar> {
    let found = match (dtype.kind(), dtype.itemsize()) {
        _ if !dtype.is_native() => None,
        (Kind::Bool, _) => Some(Scalar::Bool),
        (Kind::Int, 1) => Some(Scalar::I8),
        (Kind::Int, 2) => Some(Scalar::I16),
        (Kind::Int, 4) => Some(Scalar::I32),
        (Kind::Int, 8) => Some(Scalar::I64),
        (Kind::Uint, 1) => Some(Scalar::U8),
        (Kind::Uint, 2) => Some(Scalar::U16),
        (Kind::Uint, 4) => Some(Scalar::U32),
        (Kind::Uint, 8) => Some(Scalar::U64),
        (Kind::Float, 4) => Some(Scalar::F32),
        (Kind::Float, 8) => Some(Scalar::F64),
        _ => None,
    };
    found.ok_or_else(|| {
        Class::Kernel.error(format!(
            "{}: elements of type {dtype} are not for kernels; bool, int8 to int64, uint8 to uint64, float32 \
             and float64 are",
            name()
        ))
    })
}
