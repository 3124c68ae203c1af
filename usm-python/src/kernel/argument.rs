//! The arguments of a kernel.

use std::ops::Range;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyTuple};
use usm_core::AllocKind;
use usm_interface::{Dtype, Extended, Kind};
use usm_kernel_ir::{Literal, Scalar};

use crate::array::Array;
use crate::array::dtype::PyDtype;
use crate::array::view::View;
use crate::device::runtime::Stream;
use crate::exchange::import;
use crate::exchange::ndarray;
use crate::process::once::name;
use crate::storage::Storage;
use crate::storage::side::Side;
use crate::storage::transfer;
use crate::text::error::{Class, OrRaise};

/// An argument of a kernel.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all are arrays, and a launch has few")]
pub(crate) enum Argument {
    /// Memory, and the type of its elements.
    Array(Memory),
    Scalar(Literal),
    /// A complex number: its real and its imaginary part.
    Complex([Literal; 2]),
    /// Local memory: the type of its elements, and its extents in elements. Parts of complex
    /// numbers lie along one more dimension.
    Local {
        element: Scalar,
        is_complex: bool,
        shape: Vec<u64>,
    },
    /// Structures, which [`arguments`](super::structure::arguments) replaces by their fields.
    Structures(Side),
}

/// An array that is passed to a kernel.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) element: Scalar,
    /// Whether the elements are the parts of complex numbers, along one more dimension.
    pub(super) is_complex: bool,
    pub(crate) side: Side,
    /// Whether it is plain memory of the process, of which a device gets a copy.
    pub(crate) of_process: bool,
    /// The original, if `side` is a copy.
    pub(crate) origin: Option<Side>,
    /// Whether it was plain memory, and is now a view of another argument's memory.
    pub(crate) is_view_of_other: bool,
    /// Its place in the structures that it is a field of.
    pub(super) field: Option<Field>,
}

/// The place of a field in structures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    /// Bytes from the start of a structure.
    pub(super) offset: usize,
    /// Bytes of a structure.
    pub(super) size: usize,
    /// The dimensions of the array of structures.
    pub(super) dimensions: usize,
}

impl Argument {
    /// Reads an argument. `name` names it in messages.
    pub(crate) fn of(object: &Bound<'_, PyAny>, name: &dyn Fn() -> String) -> PyResult<Self> {
        let py = object.py();
        if let Ok(array) = object.cast_exact::<Array>() {
            return Self::of_side(array.get().side(), name);
        }
        if let Ok(value) = object.cast_exact::<PyBool>() {
            return Ok(Self::Scalar(Literal::bool(value.is_true())));
        }
        if object.is_exact_instance_of::<PyInt>() {
            let value: i64 = object.extract().map_err(|_| {
                Class::Kernel.error(format!("{}: {object} does not fit int64; pass numpy.uint64", name()))
            })?;
            return Ok(Self::Scalar(Literal::integer(Scalar::I64, value as u64)));
        }
        if object.is_exact_instance_of::<PyFloat>() {
            return Ok(Self::Scalar(Literal::f64(object.extract()?)));
        }
        if let Ok(value) = object.cast_exact::<PyComplex>() {
            return Ok(Self::Complex([value.real(), value.imag()].map(Literal::f64)));
        }
        if let Some(shape) = object.getattr_opt(name!(py, "_usm_local_shape"))? {
            let shape = shape.cast_into::<PyTuple>().map_err(PyErr::from)?;
            let mut shape: Vec<u64> = shape.extract()?;
            let dtype = PyDtype::of(&object.getattr(name!(py, "dtype"))?)?.dtype;
            let part = part(&dtype);
            shape.extend(part.map(|_| 2));
            let element = element_of(&dtype, name)?;
            return Ok(Self::Local { element, is_complex: part.is_some(), shape });
        }
        let array = import::without_copy(object).map_err(|error| {
            // The exceptions of a foreign object's own code pass.
            if let Some(field) = object_field(object) {
                Class::Kernel.error(format!(
                    "{}: field `{field}` is a Python object, which no kernel reads; pass the other fields, \
                     such as `x[\"name\"]`",
                    name()
                ))
            } else if Class::Interface.is_of(&error, py) {
                Class::Kernel.error(format!("{}: {}", name(), error.value(py)))
            } else {
                error
            }
        })?;
        let Some(array) = array else {
            let class = object.get_type().name().map(|name| name.to_string()).unwrap_or_default();
            return Err(Class::Kernel.error(format!(
                "{}: an object of type {class} is no argument; arrays of usm, NumPy, dpctl, CuPy, and \
                 numbers are",
                name()
            )));
        };
        match Self::of_side(array.get().side(), name)? {
            Self::Array(memory) if memory.of_process && memory.shape().is_empty() => memory.scalar(py),
            other => Ok(other),
        }
    }

    fn of_side(side: Side, name: &dyn Fn() -> String) -> PyResult<Self> {
        if side.view.descr.is_some() {
            return Ok(Self::Structures(side));
        }
        Memory::new(side, name).map(Self::Array)
    }

    /// The kind and the type of the argument in one number, for the key of generated code.
    pub(crate) fn key(&self) -> u32 {
        match self {
            Self::Array(memory) => {
                let view = &memory.side.view;
                let (is_strided, readonly) = (!view.is_c_contiguous(), memory.is_readonly());
                let ty = type_key(memory.element, memory.is_complex);
                array_key(ty, memory.shape().len() as u32, is_strided, readonly)
            }
            Self::Scalar(literal) => type_key(literal.ty, false),
            Self::Complex([re, _]) => type_key(re.ty, true),
            Self::Local { element, is_complex, shape } => {
                let dimensions = (shape.len() - usize::from(*is_complex)) as u32;
                2 << 24 | dimensions << 16 | type_key(*element, *is_complex)
            }
            // Its fields have keys.
            Self::Structures(_) => 0,
        }
    }
}

impl Memory {
    pub(super) fn new(mut side: Side, name: &dyn Fn() -> String) -> PyResult<Self> {
        let is_complex = split_parts(&mut side.view);
        let element = scalar(&side.view.dtype, name)?;
        let size = side.view.itemsize() as isize;
        if side.view.nbytes() != 0 && side.view.strides().iter().any(|stride| stride % size != 0) {
            return Err(Class::Kernel.error(format!(
                "{}: strides of {:?} bytes are no multiples of the {size} bytes of an element; pass a copy",
                name(),
                side.view.strides()
            )));
        }
        let of_process = side.storage.is_foreign() && side.stream.is_host();
        Ok(Self { element, is_complex, side, of_process, origin: None, is_view_of_other: false, field: None })
    }

    /// The number that an array without dimensions has: a NumPy scalar.
    pub(super) fn scalar(&self, py: Python<'_>) -> PyResult<Argument> {
        let bytes = transfer::to_bytes(py, &self.side)?;
        let of = |bytes: &[u8]| Literal::from_ne_bytes(self.element, bytes);
        Ok(match bytes.split_at(bytes.len() / 2) {
            (re, im) if self.is_complex => Argument::Complex([of(re), of(im)]),
            _ => Argument::Scalar(of(&bytes)),
        })
    }

    /// The shape of the array that a dimension belongs to: that of the structures, or of the field.
    pub(crate) fn shape_at(&self, dimension: usize) -> &[isize] {
        match self.field {
            Some(field) if dimension < field.dimensions => &self.shape()[..field.dimensions],
            _ => self.shape(),
        }
    }

    /// The shape that the program gave the array.
    pub(crate) fn shape(&self) -> &[isize] {
        let shape = self.side.view.shape();
        &shape[..shape.len() - usize::from(self.is_complex)]
    }

    /// What is wrong with the address of the elements, which every target wants at a multiple of
    /// their size. Strides are multiples of it.
    pub(crate) fn misalignment(&self) -> Option<String> {
        let Side { storage, view, .. } = &self.side;
        let (address, size) = (storage.address().wrapping_add(view.offset()), self.element.bytes() as usize);
        (view.nbytes() != 0 && !address.is_multiple_of(size)).then(|| {
            format!(
                "its elements of {size} bytes begin at address {address:#x}, no multiple of that; pass a copy"
            )
        })
    }

    pub(crate) fn is_readonly(&self) -> bool {
        self.origin.as_ref().unwrap_or(&self.side).storage.is_readonly()
    }

    fn move_to(&mut self, copy: Side) {
        self.origin = Some(std::mem::replace(&mut self.side, copy));
    }

    /// The addresses from the lowest element to the end of the highest.
    pub(super) fn addresses(&self) -> Range<usize> {
        let (start, len) = self.span();
        let start = self.side.storage.address().wrapping_add(start);
        start..start.wrapping_add(len)
    }

    /// Whether an element shares bytes with one of another array. True where there are too many to
    /// compare.
    pub(crate) fn shares_bytes(&self, other: &Self) -> bool {
        const MOST: usize = 1 << 19;
        if self.side.view.len().max(other.side.view.len()) > MOST {
            return true;
        }
        let bytes = |memory: &Self| {
            let Side { storage, view, .. } = &memory.side;
            let mut places = vec![storage.address().wrapping_add(view.offset())];
            for (extent, stride) in view.shape().iter().zip(view.strides()) {
                let steps = 0..*extent;
                let all = places.iter().flat_map(|place| {
                    steps.clone().map(move |step| place.wrapping_add_signed(step * stride))
                });
                places = all.collect();
            }
            let size = view.itemsize();
            places.into_iter().flat_map(move |place| (0..size).map(move |byte| place + byte))
        };
        let own: std::collections::HashSet<usize> = bytes(self).collect();
        bytes(other).any(|byte| own.contains(&byte))
    }

    /// Whether no element shares bytes with one of another array because they alternate: fields of
    /// the same structures, or real and imaginary parts.
    pub(crate) fn alternates_with(&self, other: &Self) -> bool {
        let strides = self.side.view.strides().iter().chain(other.side.view.strides().iter());
        strides.map(|stride| stride.unsigned_abs()).any(|step| {
            let Some([one, two]) = self.within(step).zip(other.within(step)).map(<[_; 2]>::from) else {
                return false;
            };
            let distance = (two.start % step + step - one.start % step) % step;
            distance >= one.len() && distance + two.len() <= step
        })
    }

    /// The addresses of the elements at index 0 of all dimensions whose strides are multiples of
    /// `step`. All others are whole steps away. `None` for a step of 0.
    fn within(&self, step: usize) -> Option<Range<usize>> {
        let view = &self.side.view;
        let start = self.side.storage.address().wrapping_add(view.offset());
        let mut bytes_span = start..start + self.side.view.itemsize();
        for (extent, stride) in view.shape().iter().zip(view.strides()) {
            if stride.unsigned_abs().checked_rem(step)? != 0 {
                let reach = (*extent as usize).saturating_sub(1).checked_mul(stride.unsigned_abs())?;
                match stride {
                    ..0 => bytes_span.start = bytes_span.start.checked_sub(reach)?,
                    _ => bytes_span.end = bytes_span.end.checked_add(reach)?,
                }
            }
        }
        Some(bytes_span)
    }

    /// The bytes from the start of the storage to the lowest element, and the bytes from there to
    /// the end of the highest.
    pub(crate) fn span(&self) -> (usize, usize) {
        let span = self.side.view.span();
        (span.start, span.len())
    }

    /// Elements from the lowest one to the one with all indices 0; structures for a field.
    pub(crate) fn offset(&self) -> u64 {
        (self.side.view.offset() - self.span().0) as u64 / self.step(0) as u64
    }

    /// Elements from an index of a dimension to the next one; structures in their dimensions.
    pub(crate) fn stride(&self, dimension: usize) -> Option<isize> {
        self.side.view.strides().get(dimension).map(|stride| stride / self.step(dimension) as isize)
    }

    /// Bytes of what strides of a dimension count.
    fn step(&self, dimension: usize) -> usize {
        match self.field {
            Some(field) if dimension < field.dimensions => field.size,
            _ => self.element.bytes() as usize,
        }
    }

    /// The name of the element with this number, counted from the lowest one: its index in each
    /// dimension, or the number if there is one dimension or the number does not determine them.
    pub(crate) fn element_name(&self, number: u64) -> String {
        match (self.indices(number), self.is_complex) {
            (Some(indices), is_complex) => match &indices[..indices.len() - usize::from(is_complex)] {
                [index] => index.to_string(),
                indices => format!("{indices:?}"),
            },
            (None, is_complex) => (number >> u32::from(is_complex)).to_string(),
        }
    }

    /// The indices of the element with this number, counted from the lowest one; `None` if the
    /// number does not tell them: no dimension, elements that share bytes, or steps backwards.
    fn indices(&self, number: u64) -> Option<Vec<isize>> {
        let view = &self.side.view;
        let mut axes: Vec<usize> = (0..view.ndim()).filter(|axis| view.shape()[*axis] > 1).collect();
        let is_backwards = |axis: &usize| view.strides()[*axis] <= 0;
        if view.ndim() == 0 || view.may_overlap_itself() || axes.iter().any(is_backwards) {
            return None;
        }
        axes.sort_by_key(|axis| std::cmp::Reverse(view.strides()[*axis]));
        let mut rest = isize::try_from(number.checked_mul(self.element.bytes())?).ok()?;
        let mut indices = vec![0; view.ndim()];
        for axis in axes {
            indices[axis] = rest / view.strides()[axis];
            rest %= view.strides()[axis];
        }
        let is_inside = indices.iter().zip(view.shape()).all(|(index, extent)| index < extent);
        (rest == 0 && is_inside).then_some(indices)
    }
}

/// Refuses arguments whose memory Python code has replaced since they were read: NumPy's
/// `resize(refcheck=False)` in code of another argument, or in another thread.
/// Arguments come with the place of the program's argument and the object that each is.
pub(crate) fn check_unmoved<'a, 'py>(
    arguments: impl Iterator<Item = (usize, Bound<'py, PyAny>, &'a Argument)>,
    error: &dyn Fn(usize, &str) -> PyErr,
) -> PyResult<()> {
    for (place, object, argument) in arguments {
        let Argument::Array(memory) = argument else { continue };
        let Side { storage, view, .. } = memory.origin.as_ref().unwrap_or(&memory.side);
        let (start, shape) = match memory.field {
            Some(field) => (field.offset, memory.shape_at(0)),
            None => (0, memory.shape()),
        };
        let address = storage.address().wrapping_add(view.offset()).wrapping_sub(start);
        if view.nbytes() != 0 && storage.is_foreign() && ndarray::is_moved(&object, address, shape) {
            return Err(error(place, "was resized meanwhile, so its memory is no longer there"));
        }
    }
    Ok(())
}

/// Makes an array in plain memory, which lies within another argument's memory on the launch's
/// queue, a view of that: NumPy's view of a `usm.Array` is one. A copy would not see what the
/// kernel writes to the other argument, and would overwrite it afterwards.
fn join_views(
    arguments: &mut [Argument],
    error: &dyn Fn(&str) -> PyErr,
    name: &dyn Fn(usize) -> String,
) -> PyResult<()> {
    let memory = |argument: &Argument| match argument {
        Argument::Array(memory) => Some((memory.addresses(), memory.of_process)),
        _ => None,
    };
    for place in 0..arguments.len() {
        let Some((Range { start, end }, true)) = memory(&arguments[place]) else { continue };
        let meets = |argument: &Argument| match argument {
            Argument::Array(other) if !other.of_process && other.side.storage.is_host_accessible() => {
                let bytes_span = other.addresses();
                start < bytes_span.end && bytes_span.start < end
            }
            _ => false,
        };
        let Some(position) = arguments.iter().position(meets) else { continue };
        let Argument::Array(Memory { side: Side { storage, stream, .. }, .. }) = &arguments[position] else {
            continue;
        };
        let low = storage.address();
        let (storage, stream) = (storage.clone(), Arc::clone(stream));
        let Argument::Array(memory) = &mut arguments[place] else { continue };
        if start < low || end > low + storage.size() {
            let (one, other) = (name(place), name(position));
            return Err(error(&format!("{one} lies partly in the memory of {other}: pass a copy")));
        }
        let view = memory.side.view.clone();
        let offset = start - low + (view.offset() - memory.span().0);
        let storage = storage.restricted(memory.is_readonly());
        memory.side = Side { storage, stream, view: view.moved_to(offset) };
        (memory.of_process, memory.is_view_of_other) = (false, true);
    }
    Ok(())
}

/// Copies plain memory of the process to the device of `stream`, if that is not the host. Arrays
/// that share bytes, with each other or among their own elements, share one copy, so that each sees
/// what the kernel writes to the others.
pub(crate) fn move_to_device(
    py: Python<'_>,
    arguments: &mut [Argument],
    stream: &Arc<Stream>,
    error: &dyn Fn(&str) -> PyErr,
    name: &dyn Fn(usize) -> String,
) -> PyResult<()> {
    if stream.is_host() {
        return Ok(());
    }
    join_views(arguments, error, name)?;
    let of_process = |argument| match argument {
        &mut Argument::Array(ref mut memory @ Memory { of_process: true, .. }) => Some(memory),
        _ => None,
    };
    let mut all: Vec<&mut Memory> = arguments.iter_mut().filter_map(of_process).collect();
    all.sort_by_key(|memory| memory.addresses().start);
    let mut rest = all.as_mut_slice();
    while let Some(first) = rest.first() {
        let mut end = first.addresses().end;
        let meets = |memory: &&&mut Memory| {
            let Range { start, end: other } = memory.addresses();
            let meets = start < end;
            if meets {
                end = end.max(other);
            }
            meets
        };
        let count = 1 + rest[1..].iter().take_while(meets).count();
        let (group, others) = rest.split_at_mut(count);
        let shares = group.len() > 1 || group.iter().any(|memory| memory.side.view.may_overlap_itself());
        // Code for structures knows their size.
        let is_field = group.iter().any(|memory| memory.field.is_some());
        if is_field || (shares && group.iter().any(|memory| !memory.is_readonly())) {
            move_together(py, group, end, stream, error)?;
        } else {
            for memory in group {
                let copy = transfer::duplicate(py, &memory.side, stream, AllocKind::Device, 0)?;
                memory.move_to(copy);
            }
        }
        rest = others;
    }
    Ok(())
}

/// Copies arrays that share bytes. The first one has the lowest address; the last byte is before
/// `end`. Each keeps its strides.
fn move_together(
    py: Python<'_>,
    group: &mut [&mut Memory],
    end: usize,
    stream: &Arc<Stream>,
    error: &dyn Fn(&str) -> PyErr,
) -> PyResult<()> {
    /// The elements keep their alignment.
    const ALIGNMENT: usize = 64;
    let byte = Dtype::void(1).ok_or_else(|| error("no type of one byte"))?;
    let base = group.first().map_or(end, |first| first.addresses().start) & !(ALIGNMENT - 1);
    let storage =
        py.detach(|| Storage::allocate(stream, AllocKind::Device, end - base, ALIGNMENT)).or_raise()?;
    let mut copy_count = 0;
    for memory in group {
        let ((from, len), to) = (memory.span(), memory.addresses().start - base);
        let size = memory.element.bytes() as usize;
        if to % size != 0 {
            return Err(error(&format!(
                "two arrays share memory, and the elements of one are not at multiples of their {size} \
                 bytes: pass a copy"
            )));
        }
        let side = |storage: &Storage, stream: &Arc<Stream>, view| Side {
            storage: storage.clone(),
            stream: Arc::clone(stream),
            view,
        };
        // The rest has come with an earlier array.
        let start = copy_count.max(to);
        if start < to + len {
            let bytes = View::contiguous(byte, &[(to + len - start) as i64])?;
            let offset = from + (start - to);
            let source = side(&memory.side.storage, &memory.side.stream, bytes.moved_to(offset));
            transfer::copy(py, &side(&storage, stream, bytes.moved_to(start)), &source)?;
            copy_count = to + len;
        }
        let view = memory.side.view.clone();
        let offset = view.offset() - from + to;
        memory.move_to(side(&storage, stream, view.moved_to(offset)));
    }
    Ok(())
}

/// The kind and the type of an array in one number, of which `ty` is a [`type_key`].
pub(crate) fn array_key(ty: u32, dimensions: u32, is_strided: bool, readonly: bool) -> u32 {
    1 << 24 | dimensions << 16 | u32::from(readonly) << 9 | u32::from(is_strided) << 8 | ty
}

/// A type in one number: that of a real number, or of a complex one by its parts.
pub(super) const fn type_key(element: Scalar, is_complex: bool) -> u32 {
    (is_complex as u32) << 10 | element as u32
}

/// The [`type_key`] of a type by its name in NumPy.
pub(crate) fn named_type(name: &str) -> Option<u32> {
    match name {
        "complex64" => Some(type_key(Scalar::F32, true)),
        "complex128" => Some(type_key(Scalar::F64, true)),
        _ => TYPES
            .iter()
            .find(|(type_name, _)| *type_name == name)
            .map(|(_, element)| type_key(*element, false)),
    }
}

/// The type of a part of complex numbers of this type; `None` for any other type.
fn part(dtype: &Dtype) -> Option<Dtype> {
    let is_pair = dtype.kind() == Kind::Complex && matches!(dtype.itemsize(), 8 | 16) && dtype.is_native();
    is_pair.then(|| Dtype::number(Kind::Float, dtype.itemsize() / 2)).flatten()
}

/// Makes a view of complex numbers one of their parts, along one more dimension. False for a view
/// of anything else.
fn split_parts(view: &mut View) -> bool {
    let Some(part) = part(&view.dtype) else { return false };
    let (mut shape, mut strides) = (view.shape().clone(), view.strides().clone());
    shape.push(2);
    strides.push(part.itemsize() as isize);
    *view = View::imported(part, shape, strides, view.offset());
    true
}

/// Types by their names in NumPy.
const TYPES: [(&str, Scalar); 14] = [
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
    ("float16", Scalar::F16),
    ("bfloat16", Scalar::Bf16),
];

/// A field of Python objects.
fn object_field(object: &Bound<'_, PyAny>) -> Option<String> {
    let dtype = object.getattr("dtype").ok()?;
    let names: Vec<String> = dtype.getattr("names").ok()?.extract().ok()?;
    let is_object =
        |name: &String| -> PyResult<bool> { dtype.get_item(name)?.getattr("hasobject")?.extract() };
    names.into_iter().find(|name| is_object(name).unwrap_or(false))
}

/// The type of an element's value, or of each part of complex numbers.
pub(super) fn element_of(dtype: &Dtype, name: &dyn Fn() -> String) -> PyResult<Scalar> {
    scalar(&part(dtype).unwrap_or(*dtype), name)
}

fn scalar(dtype: &Dtype, name: &dyn Fn() -> String) -> PyResult<Scalar> {
    let scalar = match (dtype.kind(), dtype.itemsize()) {
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
        (Kind::Float, 2) => Some(Scalar::F16),
        (Kind::Extended(Extended::Bfloat16), _) => Some(Scalar::Bf16),
        (Kind::Float, 4) => Some(Scalar::F32),
        (Kind::Float, 8) => Some(Scalar::F64),
        _ => None,
    };
    scalar.ok_or_else(|| {
        let remedy = match dtype.kind() {
            Kind::Void => "; of structures, pass fields such as `x[\"name\"]`".to_owned(),
            _ if !dtype.is_native() => {
                format!(
                    "; swap the bytes with `x.astype(\"{}\")`",
                    dtype.to_string().replace(['<', '>'], "=")
                )
            }
            _ => String::new(),
        };
        Class::Kernel.error(format!(
            "{}: elements of type {dtype} are not for kernels; bool, int8 to int64, uint8 to uint64, float16 \
             to float64, bfloat16, complex64 and complex128 are{remedy}",
            name()
        ))
    })
}
