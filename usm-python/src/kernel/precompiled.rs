//! `usm.Module`, `usm.Kernel` and `usm.launch`: precompiled or foreign code.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use usm_core::backend::Dyn;
use usm_core::{Access, Event};
use usm_kernel::backend::Slot;
use usm_kernel::{Code, Function, Module, Shape};
use usm_kernel_ir::{Literal, Scalar};
use usm_kernel_jit::device::{DeviceArgument, Space};

use super::argument::{Argument, check_unmoved, move_to_device};
use super::device;
use super::launch::stream;
use super::range::Sizes;
use crate::device::choice;
use crate::device::defaults;
use crate::device::queue::{After, PyEvent};
use crate::process::wait;
use crate::storage::transfer;
use crate::text::argument;
use crate::text::error::Class;

/// Code built for the device of a queue: OpenCL C, CUDA C or PTX as a text, SPIR-V as bytes.
///
/// ``format`` is ``"opencl-c"``, ``"cuda-c"``, ``"ptx"`` or ``"spir-v"``; by default the code
/// determines it. ``module["name"]`` is a `Kernel`. usm does not check such code.
#[pyclass(frozen, weakref, module = "usm", name = "Module")]
#[derive(Debug)]
pub(crate) struct PyModule(Module<Dyn>);

/// A kernel of a `Module`. ``kernel[global, local](*arguments)`` launches it and waits.
#[pyclass(frozen, weakref, module = "usm", name = "Kernel")]
#[derive(Clone, Debug)]
pub(crate) struct PyKernel(Function<Dyn>);

/// A kernel of a module with its range.
#[pyclass(frozen, module = "usm")]
#[derive(Debug)]
pub(crate) struct FinishedLaunch(Function<Dyn>, Sizes);

#[pymethods]
impl PyModule {
    #[new]
    #[pyo3(signature = (code, *, format=None, device=None, queue=None, options=""))]
    fn new(
        py: Python<'_>,
        code: &Bound<'_, PyAny>,
        format: Option<&Bound<'_, PyAny>>,
        device: Option<&Bound<'_, PyAny>>,
        queue: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = argument::options)] options: &str,
    ) -> PyResult<Self> {
        let stream = match choice::queue_of_arguments(py, device, queue)? {
            Some(stream) => stream,
            None => defaults::stream(py)?,
        };
        let read = |name, value| argument::text(name, value, "a text");
        let format = format.map(|format| read("format", format)).transpose()?;
        let bytes = code.cast::<PyBytes>().ok();
        let text = code.is_instance_of::<PyString>().then(|| read("code", code)).transpose()?;
        let language = match text {
            Some(text) if text.contains("__kernel") || text.contains("kernel void") => "opencl-c",
            Some(text) if text.contains(".version") => "ptx",
            Some(_) => "cuda-c",
            None => "spir-v",
        };
        let code = match (format.unwrap_or(language), text, bytes.map(|bytes| bytes.as_bytes())) {
            ("opencl-c", Some(text), _) => Code::OpenClC(text),
            ("cuda-c", Some(text), _) => Code::CudaC(text),
            ("ptx", Some(text), _) => Code::Ptx(text),
            ("spir-v", _, Some(bytes)) => Code::SpirV(bytes),
            (other, text, _) => {
                let objects = if text.is_some() { "a text" } else { "no text" };
                return Err(Class::Kernel.error(format!(
                    "format {other:?} and {objects}: \"opencl-c\", \"cuda-c\" and \"ptx\" are texts, \"spir-v\" is bytes"
                )));
            }
        };
        let module = py.detach(|| Module::build_with(stream.context(), code, options));
        module.map(Self).map_err(|error| Class::Kernel.error(error.to_string()))
    }

    /// The kernel of this name.
    fn __getitem__(&self, name: &Bound<'_, PyAny>) -> PyResult<PyKernel> {
        let name = argument::text("name", name, "the name of a kernel (str)")?;
        self.0.function(name).map(PyKernel).map_err(|error| Class::Kernel.error(error.to_string()))
    }
}

#[pymethods]
impl PyKernel {
    /// The kernel's name in its program.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// Largest number of work-items in a group.
    #[getter]
    fn max_work_group_size(&self) -> u64 {
        self.0.info().max_work_group_size
    }

    /// Size of the kernel's own local memory in bytes.
    #[getter]
    fn local_mem_size(&self) -> u64 {
        self.0.info().local_mem_size
    }

    fn __getitem__(&self, index: &Bound<'_, PyAny>) -> PyResult<FinishedLaunch> {
        Ok(FinishedLaunch(self.0.clone(), Sizes::of(index)?))
    }

    fn __repr__(&self) -> String {
        format!("<usm.Kernel {}>", self.0.name())
    }
}

#[pymethods]
impl FinishedLaunch {
    #[pyo3(signature = (*arguments))]
    fn __call__(&self, py: Python<'_>, arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
        start(py, &self.0, &self.1, arguments, &[]).map(drop)
    }
}

/// Launches a kernel of a `Module` over ``nd_range`` after the events ``after``, and waits.
/// ``args`` are arrays, numbers and `Local` memory, in the order of the kernel's parameters.
#[pyfunction(name = "launch")]
#[pyo3(signature = (kernel, nd_range, args, *, after=After::default()))]
pub(crate) fn launch_finished(
    py: Python<'_>,
    kernel: &Bound<'_, PyAny>,
    nd_range: &Bound<'_, PyAny>,
    args: &Bound<'_, PyAny>,
    after: After,
) -> PyResult<PyEvent> {
    let Ok(kernel) = kernel.cast::<PyKernel>() else {
        let class = kernel.get_type().name().map(|name| name.to_string()).unwrap_or_default();
        return Err(Class::Kernel.error(format!("kernel: an object of type {class} is no usm.Kernel")));
    };
    let args = PyTuple::new(py, args.try_iter()?.collect::<PyResult<Vec<_>>>()?)?;
    start(py, &kernel.get().0, &Sizes::of(nd_range)?, &args, &after.0).map(PyEvent)
}

/// Launches, waits, and copies results back to the process's arrays.
fn start(
    py: Python<'_>,
    function: &Function<Dyn>,
    sizes: &Sizes,
    objects: &Bound<'_, PyTuple>,
    after: &[Event<Dyn>],
) -> PyResult<Event<Dyn>> {
    let error = |message: &str| Class::Kernel.error(format!("kernel {}: {message}", function.name()));
    let name = |place: usize| format!("argument {place}");
    let arguments = objects.iter().enumerate();
    let mut arguments = arguments
        .map(|(place, objects)| {
            Argument::of(&objects, &|| format!("kernel {}: argument {place}", function.name()))
        })
        .collect::<PyResult<Vec<_>>>()?;
    let stream = stream(py, &arguments, &name, &error)?;
    if stream.context().id() != function.context().id() {
        return Err(error("it was built for another context than that of its arrays"));
    }
    let moved_error = |place, message: &str| error(&format!("{} {message}", name(place)));
    check_unmoved(with_objects(objects, &arguments), &moved_error)?;
    move_to_device(py, &mut arguments, &stream, &error, &name)?;
    for (place, argument) in arguments.iter().enumerate() {
        if let Argument::Array(memory) = argument
            && (memory.origin.is_some() || memory.is_view_of_other)
            && !memory.side.view.is_c_contiguous()
        {
            return Err(error(&format!(
                "{} shares memory with another one, or among its elements, and is not contiguous: pass a copy",
                name(place)
            )));
        }
    }
    let shapes = function.info().parameters.as_deref().unwrap_or(&[]);
    let (mut values, mut memory) = (Vec::new(), Vec::new());
    for (place, argument) in arguments.iter().enumerate() {
        values.push(match argument {
            Argument::Structures(_) => {
                let message = format!("{}: of structures, pass fields such as `x[\"name\"]`", name(place));
                return Err(error(&message));
            }
            Argument::Array(array) => {
                let access = if array.is_readonly() { Access::Read } else { Access::Write };
                memory.push((&array.side.storage, access));
                DeviceArgument::Pointer(array.side.storage.address() + array.side.view.offset())
            }
            Argument::Scalar(literal) => {
                DeviceArgument::Value(match_parameter_width(*literal, shapes.get(place)))
            }
            Argument::Complex(_) => {
                return Err(error(&format!(
                    "{}: a complex number is no value for it; pass its parts, or an array of one",
                    name(place)
                )));
            }
            Argument::Local { element, shape, .. } => {
                let bytes = shape.iter().try_fold(element.bytes(), |all, extent| all.checked_mul(*extent));
                let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
                let bytes = bytes
                    .ok_or_else(|| error(&format!("{}: more local memory than there is", name(place))))?;
                DeviceArgument::Local(bytes, element.bytes() as usize)
            }
        });
    }
    let words: Vec<[u8; 8]> = values.iter().map(DeviceArgument::word).collect();
    let slots: Vec<Slot<'_>> = values.iter().zip(&words).map(|(one, word)| one.slot(word)).collect();
    let (global, local) = (sizes.global.as_slice(), sizes.local.as_deref());
    let range = Space { global, local, rounded: false };
    let event = py.detach(|| {
        // SAFETY: foreign code is not checked; its caller guarantees it, as in every package that
        // runs such code. The arrays are live, and their order with other work is kept.
        let event = unsafe { device::submit(&stream, function, range, &slots, &memory, after) };
        event.map_err(|error| error.to_string())
    });
    let event = event.map_err(|message| {
        if !message.contains("the size of the argument") {
            return error(&message);
        }
        // The runtime does not name the argument.
        let scalars = values.iter().enumerate().filter_map(|(place, one)| match one {
            DeviceArgument::Value(literal) => {
                Some(format!("{} has {} bytes", name(place), literal.ty.bytes()))
            }
            _ => None,
        });
        let scalars: Vec<String> = scalars.collect();
        let scalars = scalars.join(", ");
        error(&format!("{message}; {scalars}: pass np.int32(n) for an int, np.float32(x) for a float"))
    })?;
    wait::for_event(py, &event)?;
    check_unmoved(with_objects(objects, &arguments), &moved_error)?;
    for argument in &arguments {
        if let Argument::Array(memory) = argument
            && let Some(origin) = memory.origin.as_ref().filter(|origin| !origin.storage.is_readonly())
        {
            transfer::copy(py, origin, &memory.side)?;
        }
    }
    Ok(event)
}

/// The arguments, each with its place and the object that it is.
fn with_objects<'a, 'py>(
    objects: &Bound<'py, PyTuple>,
    arguments: &'a [Argument],
) -> impl Iterator<Item = (usize, Bound<'py, PyAny>, &'a Argument)> {
    let pairs = objects.iter().zip(arguments).enumerate();
    pairs.map(|(place, (object, argument))| (place, object, argument))
}

/// A Python number with the width of the parameter, if the runtime reports that.
fn match_parameter_width(literal: Literal, shape: Option<&Shape>) -> Literal {
    let (Some(Shape::Value(bytes) | Shape::Bytes(bytes)), Scalar::I64 | Scalar::F64) = (shape, literal.ty)
    else {
        return literal;
    };
    match (literal.ty, bytes) {
        (Scalar::F64, 4) => Literal::f32(literal.to_f64() as f32),
        (Scalar::I64, 1) => Literal::integer(Scalar::I8, literal.bits),
        (Scalar::I64, 2) => Literal::integer(Scalar::I16, literal.bits),
        (Scalar::I64, 4) => Literal::integer(Scalar::I32, literal.bits),
        _ => literal,
    }
}
