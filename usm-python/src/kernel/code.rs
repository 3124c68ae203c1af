//! A kernel for arguments of certain types: nodes, proofs, and device code.

mod build;

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use usm_core::backend::Dyn;
use usm_kernel_ir::emit::checked;
use usm_kernel_ir::{ArrayId, Kernel, Literal, Parameter, Place, Scalar, Value, ValueId, text};
use usm_kernel_jit::device::DeviceCodes;
use usm_kernel_jit::host::HostCodes;
use usm_kernel_jit::program::{Open, Outside, Program};

use super::argument::{Argument, Memory};
use crate::device::runtime::Stream;
use crate::process::fork::ReplacedState;
use crate::text::error::Class;

/// The origin of a parameter of the nodes: the position of an argument, and a dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    Array(usize),
    /// A scalar, or one part of a complex number.
    Scalar(usize, usize),
    Extent(usize, usize),
    Stride(usize, usize),
    Offset(usize),
    /// A table in constant memory, by its position.
    Table(usize),
}

/// A program of `usm._kernel`, with the origin of its parameters.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) program: Program,
    /// One for each parameter of the nodes.
    pub(crate) sources: Vec<Source>,
    pub(crate) tables: Vec<Vec<u8>>,
    /// The `usm._kernel.printing.Log` of a kernel that prints.
    pub(crate) log: Option<Py<PyAny>>,
    /// The extents of the nodes: the array of the nodes, then an argument, -1 for an array of the
    /// kernel itself, and its dimension.
    extents: Vec<(u32, i64, usize)>,
    bounds: Vec<Bounded>,
    /// The arrays of the nodes whose elements are parts of complex numbers.
    pairs: Vec<u32>,
    /// Whether no two arrays share memory.
    is_unshared: bool,
    /// Whether the kernel writes each parameter.
    write_flags: Vec<bool>,
    host: ReplacedState<HostCodes>,
    functions: ReplacedState<DeviceCodes<Dyn>>,
}

/// The result of `usm._kernel`: text of the nodes, sources as `(sort, argument, dimension)`,
/// tables, extents, bounds, the log, the arrays of complex numbers, and whether the author knows
/// that no two items race. An array that the kernel writes has dimension 1, other arrays have 0.
type Parts = (
    String,
    Vec<(u8, usize, usize)>,
    Vec<Vec<u8>>,
    Vec<(u32, i64, usize)>,
    Vec<Bounded>,
    Option<Py<PyAny>>,
    Vec<u32>,
    bool,
);

/// An int argument that the kernel combines with a narrower type: its position, the least and the
/// greatest value of that type, its name, and the place.
type Bounded = (usize, i64, i64, String, String);

impl Code {
    /// `is_unshared` states that no two arrays share memory.
    pub(crate) fn new(parts: &Bound<'_, PyAny>, is_unshared: bool) -> PyResult<Self> {
        let (nodes, sources, tables, extents, bounds, log, pairs, is_ordered): Parts = parts.extract()?;
        let ir = text::parse(&nodes).map_err(|refusal| Class::Kernel.error(format!("nodes: {refusal}")))?;
        let program = if is_ordered { Program::of_ordered(ir) } else { Program::new(ir) };
        let program = program.map_err(|error| Class::Kernel.error(error.to_string()))?;
        let source = |(sort, argument, dimension): &(u8, usize, usize)| match sort {
            0 => Source::Array(*argument),
            1 => Source::Scalar(*argument, *dimension),
            2 => Source::Extent(*argument, *dimension),
            3 => Source::Stride(*argument, *dimension),
            4 => Source::Offset(*argument),
            _ => Source::Table(*argument),
        };
        let write_flags = sources.iter().map(|(sort, _, changes)| *sort == 0 && *changes == 1).collect();
        let sources: Vec<Source> = sources.iter().map(source).collect();
        if sources.len() != program.kernel().parameters.len() {
            return Err(Class::Kernel.error("nodes: as many sources as parameters are needed"));
        }
        let (host, functions) = (ReplacedState::default(), ReplacedState::default());
        Ok(Self {
            program,
            sources,
            tables,
            log,
            extents,
            bounds,
            pairs,
            is_unshared,
            write_flags,
            host,
            functions,
        })
    }

    /// The nodes.
    pub(crate) const fn ir(&self) -> &Kernel {
        self.program.kernel()
    }

    /// The message with the place of the kernel in front.
    pub(crate) fn error(&self, message: &str) -> PyErr {
        Class::Kernel.error(self.program.located(message))
    }

    pub(crate) fn writes(&self, parameter: usize) -> bool {
        self.write_flags.get(parameter).copied().unwrap_or(false)
    }

    /// The error of an index outside of an array of the nodes, at this place.
    pub(crate) fn index_error(
        &self,
        (array, place): (ArrayId, Place),
        index: u64,
        len: u64,
        arguments: &[Argument],
    ) -> PyErr {
        let (place_text, declaration) = (self.ir().locate(place), self.ir().array(array));
        let name = &declaration.name;
        if declaration.assertion().is_some() {
            return Class::Kernel.error(format!("{place_text}: `{name}` is false"));
        }
        let extent = self.extents.iter().find(|(number, ..)| *number == array.0);
        let (argument, dimension) = match extent {
            Some((_, argument, dimension)) => (usize::try_from(*argument).ok(), *dimension),
            None => {
                let mut parameters = self.sources.iter().zip(&self.ir().parameters);
                let position = parameters.find(|(_, parameter)| **parameter == Parameter::Array(array));
                let argument = position.and_then(|(source, _)| match source {
                    Source::Array(argument) => Some(*argument),
                    _ => None,
                });
                (argument, 0)
            }
        };
        let what = match argument.and_then(|argument| arguments.get(argument)) {
            Some(Argument::Array(memory)) => format!("its shape is {:?}", memory.shape_at(dimension)),
            _ => format!("it has {len} elements there"),
        };
        let index = index as i64;
        Class::Kernel.error(format!(
            "{place_text}: index {index} in dimension {dimension} of `{name}` is outside; {what}"
        ))
    }

    /// The name of an element, as `Memory::element_name` has it.
    pub(crate) fn element(&self, array: ArrayId, index: u64, arguments: &[Argument]) -> String {
        let parameters = self.sources.iter().zip(&self.ir().parameters);
        let argument = parameters.into_iter().find_map(|(source, parameter)| match (source, parameter) {
            (Source::Array(argument), Parameter::Array(number)) if *number == array => {
                arguments.get(*argument)
            }
            _ => None,
        });
        match argument {
            Some(Argument::Array(memory)) => memory.element_name(index),
            _ => self.number(array, index).to_string(),
        }
    }

    /// The number of the element that an index of the nodes is in: a complex number has two.
    pub(crate) fn number(&self, array: ArrayId, index: u64) -> u64 {
        index >> u32::from(self.pairs.contains(&array.0))
    }

    /// The error of the words that code which checks these indices recorded, if it recorded any.
    pub(crate) fn recorded(
        &self,
        open: Open,
        words: [u32; checked::WORDS],
        arguments: &[Argument],
    ) -> PyResult<()> {
        self.program.check_record(open, &words).map_err(|outside| match outside {
            Some(Outside { array, place, index, len }) => {
                self.index_error((array, place), index, len, arguments)
            }
            None => self.error("an index outside of its array"),
        })
    }

    /// Refuses numbers that do not fit the type of the other operand, as NumPy does: Python's
    /// numbers take that type.
    fn check_bounded(&self, arguments: &[Argument]) -> PyResult<()> {
        for (place, least, greatest, ty, place_text) in &self.bounds {
            if let Some(Argument::Scalar(literal)) = arguments.get(*place) {
                let value = literal.bits as i64;
                if !(*least..=*greatest).contains(&value) {
                    return Err(Class::Kernel.error(format!(
                        "{place_text}: argument {place} is {value}, which does not fit {ty}, the type of the other \
                         side: cast that, or pass a number of NumPy"
                    )));
                }
            }
        }
        Ok(())
    }

    /// The scalars of a launch, in the order of the nodes' values.
    pub(crate) fn values(&self, arguments: &[Argument]) -> PyResult<Vec<Literal>> {
        self.check_bounded(arguments)?;
        let mut values: Vec<Literal> =
            self.ir().values.iter().map(|value| Literal::integer(value.ty, 0)).collect();
        for (source, parameter) in self.sources.iter().zip(&self.ir().parameters) {
            let Parameter::Value(id) = parameter else { continue };
            let value = self.ir().value(*id);
            values[id.0 as usize] = self.value(*source, value, arguments)?;
        }
        Ok(values)
    }

    fn value(&self, source: Source, value: &Value, arguments: &[Argument]) -> PyResult<Literal> {
        let number = match (source, self.of(source, arguments)) {
            (Source::Scalar(..), Some(Argument::Scalar(literal))) if literal.ty == value.ty => {
                return Ok(*literal);
            }
            (Source::Scalar(_, part), Some(Argument::Complex(parts))) => {
                let part = parts.get(part).filter(|part| part.ty == value.ty);
                return part.copied().ok_or_else(|| self.error(&format!("`{}` has no argument", value.name)));
            }
            (Source::Extent(_, dimension), Some(Argument::Array(memory))) => {
                memory.side.view.shape().get(dimension).copied()
            }
            (Source::Extent(_, dimension), Some(Argument::Local { shape, .. })) => {
                shape.get(dimension).map(|extent| *extent as isize)
            }
            (Source::Stride(_, dimension), Some(Argument::Array(memory))) => memory.stride(dimension),
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
            | Source::Scalar(place, _)
            | Source::Extent(place, _)
            | Source::Stride(place, _)
            | Source::Offset(place) => arguments.get(place),
            Source::Table(_) => None,
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
        let mut lengths = vec![0; self.ir().arrays.len()];
        for (source, parameter) in self.sources.iter().zip(&self.ir().parameters) {
            let Parameter::Array(id) = parameter else { continue };
            lengths[id.0 as usize] = match source {
                Source::Table(place) => {
                    let bytes = self.tables.get(*place).map_or(0, Vec::len) as u64;
                    bytes / self.ir().array(*id).element.bytes()
                }
                _ => {
                    let memory = self.memory(*source, arguments)?;
                    memory.span().1 as u64 / memory.element.bytes()
                }
            };
        }
        Ok(lengths)
    }

    /// The most work-items of a group on all devices that the code was built for.
    pub(crate) fn group_limit(&self, py: Python<'_>) -> Option<u64> {
        let functions = self.functions.lock_of(py);
        let functions = functions.lock_py_attached(py).ok()?;
        functions.group_limit()
    }

    /// Whether a launch with these scalars on a device takes the code for strides of 0. The stride
    /// of a dimension with one element is none.
    pub(crate) fn has_zero_stride(
        &self,
        stream: &Stream,
        (values, arguments): (&[Literal], &[Argument]),
    ) -> bool {
        let origin = |id: ValueId| {
            let place = self.ir().parameters.iter().position(|one| *one == Parameter::Value(id));
            place.map(|place| self.sources[place])
        };
        let counts = |id: ValueId| match origin(id) {
            Some(Source::Stride(argument, dimension)) => match arguments.get(argument) {
                Some(Argument::Array(memory)) => memory.side.view.shape().get(dimension) != Some(&1),
                _ => true,
            },
            _ => true,
        };
        self.program.needs_scalar_loops(stream.context().info(), values, counts)
    }
}
