//! A kernel for arguments of certain types: nodes, what was proven of them, and code of devices.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use usm_core::Context;
use usm_core::backend::Dyn;
use usm_kernel::{BuildError, Code as Text, Formats, Function, Module};
use usm_kernel_ir::proof::{Claims, bounds, claims};
use usm_kernel_ir::{Kernel, Literal, Parameter, Refusal, Scalar, Value, emit, length, text, verify};

use super::argument::{Argument, Memory};
use super::compiled::Compiled;
use super::kept;
use crate::error::Class;
use crate::runtime::Stream;

/// The origin of a parameter of the nodes: the position of an argument, and a dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    Array(usize),
    Scalar(usize),
    Extent(usize, usize),
    Stride(usize, usize),
    Offset(usize),
    /// A table in constant memory, by its position.
    Table(usize),
    /// The array in which an item records an index outside.
    Fault,
    /// An array without memory, for proofs only. It is as long as a dimension of an argument, or as
    /// the number.
    Bound(Option<usize>, usize),
}

/// Verified nodes.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) ir: Kernel,
    /// One for each parameter of the nodes.
    pub(crate) sources: Vec<Source>,
    pub(crate) tables: Vec<Vec<u8>>,
    /// The checked indices: place in the source, name of the array, argument and dimension.
    pub(crate) indices: Vec<(String, String, usize, usize)>,
    pub(crate) bounds: Claims,
    /// The conditions for `bounds` and for the absence of races, or the reason why there are none.
    pub(crate) claims: Result<Claims, Refusal>,
    /// Whether no two arrays share memory.
    apart: bool,
    /// Whether the kernel writes each parameter.
    written: Vec<bool>,
    /// Machine code of the host, after the first use; `None` inside where the kernel is
    /// interpreted.
    host: Mutex<Option<Result<Option<Arc<Compiled>>, String>>>,
    /// Functions by the number of their context.
    functions: Mutex<Vec<(u64, Function<Dyn>)>>,
}

/// Words of the array that records an index outside: its number from 1, and the index.
pub(crate) const FAULT_WORDS: u64 = 2;

/// The result of `usm._kernel`: text of the nodes, sources as `(sort, argument, dimension)`, tables
/// and indices. An array that the kernel writes has dimension 1, other arrays have 0.
type Made = (String, Vec<(u8, usize, usize)>, Vec<Vec<u8>>, Vec<(String, String, usize, usize)>);

impl Code {
    /// `apart` says that no two arrays share memory.
    pub(crate) fn new(made: &Bound<'_, PyAny>, apart: bool) -> PyResult<Self> {
        let (nodes, sources, tables, indices): Made = made.extract()?;
        let ir = text::parse(&nodes).map_err(|refusal| Class::Kernel.error(format!("nodes: {refusal}")))?;
        let refused = |refusal: &Refusal| {
            let mut message = format!("{}: {}", ir.locate(refusal.place), refusal.message);
            if let Some(other) = refusal.other {
                message += &format!(" (see {})", ir.locate(other));
            }
            Class::Kernel.error(message)
        };
        verify(&ir).map_err(|refusal| refused(&refusal))?;
        let source = |(sort, argument, dimension): &(u8, usize, usize)| match sort {
            0 => Source::Array(*argument),
            1 => Source::Scalar(*argument),
            2 => Source::Extent(*argument, *dimension),
            3 => Source::Stride(*argument, *dimension),
            4 => Source::Offset(*argument),
            6 => Source::Fault,
            7 => Source::Bound(Some(*argument), *dimension),
            8 => Source::Bound(None, *dimension),
            _ => Source::Table(*argument),
        };
        let written = sources.iter().map(|(sort, _, changes)| *sort == 0 && *changes == 1).collect();
        let sources: Vec<Source> = sources.iter().map(source).collect();
        if sources.len() != ir.parameters.len() {
            return Err(Class::Kernel.error("nodes: as many sources as parameters are needed"));
        }
        Ok(Self {
            written,
            apart,
            indices,
            bounds: bounds(&ir),
            claims: claims(&ir),
            functions: Mutex::new(Vec::new()),
            host: Mutex::new(None),
            sources,
            tables,
            ir,
        })
    }

    /// The message with the place of the kernel in front.
    pub(crate) fn error(&self, message: &str) -> PyErr {
        Class::Kernel.error(format!("{}: kernel {}: {message}", self.ir.locate(self.ir.place), self.ir.name))
    }

    pub(crate) fn writes(&self, parameter: usize) -> bool {
        self.written.get(parameter).copied().unwrap_or(false)
    }

    /// The scalars of a launch, in the order of the nodes' values.
    pub(crate) fn values(&self, arguments: &[Argument]) -> PyResult<Vec<Literal>> {
        let mut values: Vec<Literal> =
            self.ir.values.iter().map(|value| Literal::integer(value.ty, 0)).collect();
        for (source, parameter) in self.sources.iter().zip(&self.ir.parameters) {
            let Parameter::Value(id) = parameter else { continue };
            let value = self.ir.value(*id);
            values[id.0 as usize] = self.value(*source, value, arguments)?;
        }
        Ok(values)
    }

    fn value(&self, source: Source, value: &Value, arguments: &[Argument]) -> PyResult<Literal> {
        let number = match (source, self.of(source, arguments)) {
            (Source::Scalar(_), Some(Argument::Scalar(literal))) if literal.ty == value.ty => {
                return Ok(*literal);
            }
            (Source::Extent(_, dimension), Some(Argument::Array(memory))) => {
                memory.side.view.shape.get(dimension).copied()
            }
            (Source::Extent(_, dimension), Some(Argument::Local(_, shape))) => {
                shape.get(dimension).map(|extent| *extent as isize)
            }
            (Source::Stride(_, dimension), Some(Argument::Array(memory))) => {
                let stride = memory.side.view.strides.get(dimension).copied();
                stride.map(|stride| stride / memory.element.bytes() as isize)
            }
            (Source::Offset(_), Some(Argument::Array(memory))) => Some(memory.offset() as isize),
            _ => None,
        };
        let number = number.filter(|_| value.ty == Scalar::U64 || value.ty == Scalar::I64);
        let number = number.ok_or_else(|| self.error(&format!("`{}` has no argument", value.name)))?;
        Ok(Literal::integer(value.ty, number as u64))
    }

    fn of<'a>(&self, source: Source, arguments: &'a [Argument]) -> Option<&'a Argument> {
        match source {
            Source::Array(place)
            | Source::Scalar(place)
            | Source::Extent(place, _)
            | Source::Stride(place, _)
            | Source::Offset(place) => arguments.get(place),
            Source::Bound(place, _) => arguments.get(place?),
            Source::Table(_) | Source::Fault => None,
        }
    }

    /// The array of a source.
    pub(crate) fn memory<'a>(&self, source: Source, arguments: &'a [Argument]) -> PyResult<&'a Memory> {
        match self.of(source, arguments) {
            Some(Argument::Array(memory)) => Ok(memory),
            _ => Err(self.error("a parameter without an array")),
        }
    }

    /// The length of each array of the nodes, in elements; 0 for local and private ones.
    pub(crate) fn lengths(&self, arguments: &[Argument]) -> PyResult<Vec<u64>> {
        let mut lengths = vec![0; self.ir.arrays.len()];
        for (source, parameter) in self.sources.iter().zip(&self.ir.parameters) {
            let Parameter::Array(id) = parameter else { continue };
            lengths[id.0 as usize] = match source {
                Source::Table(place) => {
                    let bytes = self.tables.get(*place).map_or(0, Vec::len) as u64;
                    bytes / self.ir.array(*id).element.bytes()
                }
                Source::Fault => FAULT_WORDS,
                Source::Bound(None, extent) => *extent as u64,
                Source::Bound(Some(_), dimension) => match self.of(*source, arguments) {
                    Some(Argument::Array(memory)) => memory
                        .side
                        .view
                        .shape
                        .get(*dimension)
                        .map_or(0, |extent| extent.unsigned_abs() as u64),
                    Some(Argument::Local(_, shape)) => shape.get(*dimension).copied().unwrap_or(0),
                    _ => 0,
                },
                _ => {
                    let memory = self.memory(*source, arguments)?;
                    memory.span().1 as u64 / memory.element.bytes()
                }
            };
        }
        Ok(lengths)
    }

    /// The local memory of a group in bytes, as far as it is known without a launch.
    pub(crate) fn local_bytes(&self) -> u64 {
        let locals = emit::locals(&self.ir);
        locals.iter().map(|(element, len)| length(len, &[], &[], &[]).saturating_mul(element.bytes())).sum()
    }

    /// The most work-items of a group on all devices that the code was built for.
    pub(crate) fn group_limit(&self, py: Python<'_>) -> Option<u64> {
        let functions = self.functions.lock_py_attached(py).ok()?;
        functions.iter().map(|(_, function)| function.info().max_work_group_size).min()
    }

    /// Machine code of the host, compiled once; `None` where the kernel is interpreted.
    pub(crate) fn compiled(&self, py: Python<'_>) -> PyResult<Option<Arc<Compiled>>> {
        let mut host = self.host.lock_py_attached(py).map_err(|_| self.error("a compilation that failed"))?;
        let found = host.get_or_insert_with(|| {
            let made = py.detach(|| Compiled::of(&self.ir, self.apart));
            made.map(|compiled| compiled.map(Arc::new))
        });
        found.clone().map_err(|reason| self.error(&reason))
    }

    /// Builds the function for a device, from the cache if possible, and caches the runtime's code.
    fn build(&self, context: &Context<Dyn>) -> Result<Function<Dyn>, BuildError> {
        let (name, formats) = (emit::function(&self.ir), Module::formats(context));
        let (text, bytes);
        let source = if formats.contains(Formats::OPENCL_C) {
            text = emit::opencl_c(&self.ir);
            Text::OpenClC(&text)
        } else if formats.contains(Formats::SPIR_V) {
            bytes = emit::spirv(&self.ir);
            Text::SpirV(&bytes)
        } else {
            text = emit::cuda_c(&self.ir);
            Text::CudaC(&text)
        };
        let info = context.info();
        let device =
            [&info.name, &info.vendor, &info.platform, &info.driver_version].map(ToString::to_string);
        let file = kept::name_of((source, info.backend.to_string(), device));
        let known = kept::read(&file).and_then(|code| Module::build_native(context, &code).ok());
        // Cached code that the driver refuses is built again.
        if let Some(function) = known.and_then(|module| module.function(&name).ok()) {
            return Ok(function);
        }
        let module = Module::build(context, source)?;
        if let Some(code) = module.native() {
            kept::write(&file, &code);
        }
        module.function(&name)
    }

    /// The code for the device of a queue, built once for its context.
    pub(crate) fn function(&self, py: Python<'_>, stream: &Arc<Stream>) -> PyResult<Function<Dyn>> {
        let context = stream.context();
        let mut functions =
            self.functions.lock_py_attached(py).map_err(|_| self.error("a build that failed"))?;
        if let Some((_, function)) = functions.iter().find(|(id, _)| *id == context.id()) {
            return Ok(function.clone());
        }
        let built = py.detach(|| self.build(context));
        let function = built.map_err(|error| self.error(&error.to_string()))?;
        functions.push((context.id(), function.clone()));
        Ok(function)
    }
}
