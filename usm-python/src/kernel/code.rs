//! A kernel for arguments of certain types: nodes, proofs, and device code.

mod build;
mod proven;

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use usm_core::DeviceType;
use usm_core::backend::Dyn;
use usm_kernel::Function;
use usm_kernel_ir::emit::checked;
use usm_kernel_ir::inspect::{Inspector, Verdict};
use usm_kernel_ir::proof::{Claims, Shape, bounds, claims};
use usm_kernel_ir::{
    ArrayId, Expr, Kernel, Literal, Parameter, Place, Refusal, Scalar, Space, Stmt, StmtKind, Value, ValueId,
    emit, length, text, verify,
};

use self::proven::Proven;
use super::argument::{Argument, Memory};
use super::compiled::Compiled;
use crate::device::runtime::Stream;
use crate::process::fork::Replaced;
use crate::text::error::Class;

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
}

/// Verified nodes.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) ir: Kernel,
    /// One for each parameter of the nodes.
    pub(crate) sources: Vec<Source>,
    pub(crate) tables: Vec<Vec<u8>>,
    /// The `usm._kernel.printing.Log` of a kernel that prints.
    pub(crate) log: Option<Py<PyAny>>,
    /// The extents of the nodes: the array of the nodes, then an argument, -1 for an array of the
    /// kernel itself, and its dimension.
    extents: Vec<(u32, i64, usize)>,
    bounded: Vec<Bounded>,
    pub(crate) bounds: Claims,
    /// The conditions for `bounds` and for the absence of races, or the reason why there are none.
    pub(crate) claims: Result<Claims, Refusal>,
    /// The answers about launches that these conditions leave undecided.
    inspector: Mutex<Inspector>,
    /// The last launches whose indices are all inside.
    proven: Mutex<Proven>,
    /// Whether no two arrays share memory.
    apart: bool,
    /// Whether the kernel writes each parameter.
    written: Vec<bool>,
    /// Answers of the nodes that every launch needs.
    pub(crate) answers: Answers,
    /// Machine code of the host, by the indices that it checks.
    host: Replaced<Vec<(Open, Host)>>,
    functions: Replaced<Vec<(FunctionKey, Function<Dyn>)>>,
}

/// What a launch asks the nodes. The answers are kept, because each is a walk through the nodes.
#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) needs_groups: bool,
    /// [`Kernel::is_guarded`].
    guarded: bool,
    /// Whether there are atomic operations on memory that groups share.
    pub(crate) has_atomics: bool,
    /// Local arrays: the type of their elements, and their lengths.
    pub(crate) locals: Vec<(Scalar, Expr)>,
    /// The arrays whose lengths the code takes.
    pub(crate) lengths: Vec<ArrayId>,
    /// The same for code that checks indices.
    pub(crate) checked_lengths: Vec<ArrayId>,
    /// The scalars of [`Kernel::strides`].
    strides: Vec<ValueId>,
}

impl Answers {
    fn of(ir: &Kernel, bounds: &Claims) -> Self {
        Self {
            needs_groups: ir.needs_groups(),
            guarded: ir.is_guarded(),
            has_atomics: has_atomics(ir),
            locals: emit::locals(ir),
            lengths: ir.lengths(),
            checked_lengths: checked::lengths(ir, bounds),
            strides: ir.strides(),
        }
    }
}

fn inspector_of(ir: &Kernel, bounds: &Claims, claims: &Result<Claims, Refusal>) -> Inspector {
    let races = claims.as_ref().map_or_else(|_| Vec::new(), |claims| claims.races.clone());
    Inspector::new(ir.clone(), Claims { bounds: bounds.bounds.clone(), races })
}

fn has_atomics(ir: &Kernel) -> bool {
    let mut found = ir.arrays.iter().any(|array| matches!(array.space, Space::Atomic));
    let mut note = |stmt: &Stmt| {
        if let StmtKind::Atomic(_, array, ..) | StmtKind::CompareExchange(array, ..) = &stmt.kind {
            found |= ir.array(*array).space.is_parameter();
        }
    };
    ir.for_each(&mut note, &mut |_| ());
    found
}

/// The number of a function's context, and which one it is.
type FunctionKey = (u64, Variant);

/// Which of a kernel's functions for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    /// It checks indices.
    pub(crate) checks: bool,
    /// It is built with [`emit::SCALAR_LOOPS`].
    pub(crate) scalar: bool,
    /// It gets the sizes of the range, and ignores items beyond it.
    pub(crate) guarded: bool,
}

/// Machine code; `None` where the kernel is interpreted.
type Host = Result<Option<Arc<Compiled>>, String>;

/// The indices that a launch does not prove to be inside: a bit for each of the bounds, or
/// [`ALL`].
pub(crate) type Open = u64;

/// All indices, also where there are more than bits.
pub(crate) const ALL: Open = u64::MAX;

/// The most sets of indices for which one kernel has machine code of its own. Further launches
/// check all indices.
const SETS: usize = 4;

/// The result of `usm._kernel`: text of the nodes, sources as `(sort, argument, dimension)`,
/// tables, extents, bounds and the log. An array that the kernel writes has dimension 1, other
/// arrays have 0.
type Made =
    (String, Vec<(u8, usize, usize)>, Vec<Vec<u8>>, Vec<(u32, i64, usize)>, Vec<Bounded>, Option<Py<PyAny>>);

/// An int argument that the kernel combines with a narrower type: its position, the least and the
/// greatest value of that type, its name, and the place.
type Bounded = (usize, i64, i64, String, String);

impl Code {
    /// `apart` states that no two arrays share memory.
    pub(crate) fn new(made: &Bound<'_, PyAny>, apart: bool) -> PyResult<Self> {
        let (nodes, sources, tables, extents, bounded, log): Made = made.extract()?;
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
            _ => Source::Table(*argument),
        };
        let written = sources.iter().map(|(sort, _, changes)| *sort == 0 && *changes == 1).collect();
        let sources: Vec<Source> = sources.iter().map(source).collect();
        if sources.len() != ir.parameters.len() {
            return Err(Class::Kernel.error("nodes: as many sources as parameters are needed"));
        }
        let (bounds, claims) = (bounds(&ir), claims(&ir));
        let inspector = Mutex::new(inspector_of(&ir, &bounds, &claims));
        Ok(Self {
            written,
            apart,
            extents,
            bounded,
            answers: Answers::of(&ir, &bounds),
            bounds,
            claims,
            inspector,
            proven: Mutex::default(),
            functions: Replaced::default(),
            host: Replaced::default(),
            sources,
            tables,
            log,
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

    /// The error of an index outside of an array of the nodes, at this place.
    pub(crate) fn index_error(
        &self,
        (array, place): (ArrayId, Place),
        index: u64,
        len: u64,
        arguments: &[Argument],
    ) -> PyErr {
        let (located, declared) = (self.ir.locate(place), self.ir.array(array));
        let name = &declared.name;
        if declared.assertion().is_some() {
            return Class::Kernel.error(format!("{located}: `{name}` is false"));
        }
        let extent = self.extents.iter().find(|(known, ..)| *known == array.0);
        let (argument, dimension) = match extent {
            Some((_, argument, dimension)) => (usize::try_from(*argument).ok(), *dimension),
            None => {
                let mut parameters = self.sources.iter().zip(&self.ir.parameters);
                let found = parameters.find(|(_, parameter)| **parameter == Parameter::Array(array));
                let argument = found.and_then(|(source, _)| match source {
                    Source::Array(argument) => Some(*argument),
                    _ => None,
                });
                (argument, 0)
            }
        };
        let what = match argument.and_then(|argument| arguments.get(argument)) {
            Some(Argument::Array(memory)) => format!("its shape is {:?}", memory.side.view.shape),
            _ => format!("it has {len} elements there"),
        };
        let index = index as i64;
        Class::Kernel.error(format!(
            "{located}: index {index} in dimension {dimension} of `{name}` is outside; {what}"
        ))
    }

    /// The name of an element: its index in each dimension, or its number if the array has one
    /// dimension or the number does not determine them.
    pub(crate) fn element(&self, array: ArrayId, index: u64, arguments: &[Argument]) -> String {
        let parameters = self.sources.iter().zip(&self.ir.parameters);
        let argument = parameters.into_iter().find_map(|(source, parameter)| match (source, parameter) {
            (Source::Array(argument), Parameter::Array(known)) if *known == array => arguments.get(*argument),
            _ => None,
        });
        let indices = match argument {
            Some(Argument::Array(memory)) => memory.indices(index),
            _ => None,
        };
        indices.map_or_else(|| index.to_string(), |indices| format!("{indices:?}"))
    }

    /// The indices that a launch leaves open; 0 where all are inside for any contents of the
    /// arrays. Without `first`, launches are inspected from the second time on, since an inspection
    /// may take longer than the launch.
    pub(crate) fn open(&self, shape: &Shape<'_>, first: bool) -> Open {
        if self.bounds.bounds.is_empty() || self.proven.try_lock().is_ok_and(|proven| proven.has(shape)) {
            return 0;
        }
        let mut open = 0;
        if self.bounds.unproven(shape).is_some() && !shape.global.contains(&0) {
            let places = self.inspected(|inspector| inspector.open_bounds(shape, first));
            open = places.into_iter().fold(0, |open, place| match place {
                0..63 => open | 1 << place,
                _ => ALL,
            });
        }
        if open == 0
            && let Ok(mut proven) = self.proven.try_lock()
        {
            proven.keep(shape);
        }
        open
    }

    /// Asks the inspector. A thread that finds it in use asks a new one, so nobody waits.
    fn inspected<R>(&self, ask: impl FnOnce(&mut Inspector) -> R) -> R {
        match self.inspector.try_lock() {
            Ok(mut inspector) => ask(&mut inspector),
            Err(_) => ask(&mut inspector_of(&self.ir, &self.bounds, &self.claims)),
        }
    }

    /// The verdict about a launch whose claims leave the order of items undecided. Without `first`,
    /// `None` at the first question, since an inspection may take longer than the launch.
    pub(crate) fn verdict(&self, shape: &Shape<'_>, first: bool) -> Option<Verdict> {
        self.claims.as_ref().ok()?;
        self.inspected(|inspector| match first {
            true => Some(inspector.verdict(shape)),
            false => inspector.verdict_if_repeated(shape),
        })
    }

    /// The claims about these indices.
    pub(crate) fn claims_of(&self, open: Open) -> Claims {
        let is_open = |place: usize| open == ALL || (place < 63 && open >> place & 1 == 1);
        let bounds = self.bounds.bounds.iter().enumerate().filter(|(place, _)| is_open(*place));
        Claims { bounds: bounds.map(|(_, bound)| bound.clone()).collect(), races: Vec::new() }
    }

    /// The error of the words that code which checks these indices recorded, if it recorded any.
    pub(crate) fn recorded(
        &self,
        open: Open,
        words: [u32; checked::WORDS],
        arguments: &[Argument],
    ) -> PyResult<()> {
        let Some(checked::Outside { place, index, len }) = checked::read(&words) else { return Ok(()) };
        Err(match checked::places(&self.claims_of(open)).get(place) {
            Some(at) => self.index_error(*at, index, len, arguments),
            None => self.error("an index outside of its array"),
        })
    }

    /// Refuses numbers that do not fit the type of the other operand, as NumPy does: Python's
    /// numbers take that type.
    fn check_bounded(&self, arguments: &[Argument]) -> PyResult<()> {
        for (place, least, greatest, ty, located) in &self.bounded {
            if let Some(Argument::Scalar(literal)) = arguments.get(*place) {
                let value = literal.bits as i64;
                if !(*least..=*greatest).contains(&value) {
                    return Err(Class::Kernel.error(format!(
                        "{located}: argument {place} is {value}, which does not fit {ty}, the type of the other \
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
        let mut lengths = vec![0; self.ir.arrays.len()];
        for (source, parameter) in self.sources.iter().zip(&self.ir.parameters) {
            let Parameter::Array(id) = parameter else { continue };
            lengths[id.0 as usize] = match source {
                Source::Table(place) => {
                    let bytes = self.tables.get(*place).map_or(0, Vec::len) as u64;
                    bytes / self.ir.array(*id).element.bytes()
                }
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
        let locals = self.answers.locals.iter();
        locals.map(|(element, len)| length(len, &[], &[], &[]).saturating_mul(element.bytes())).sum()
    }

    /// The most work-items of a group on all devices that the code was built for.
    pub(crate) fn group_limit(&self, py: Python<'_>) -> Option<u64> {
        let functions = self.functions.lock_of(py);
        let functions = functions.lock_py_attached(py).ok()?;
        functions.iter().map(|(_, function)| function.info().max_work_group_size).min()
    }

    /// Whether a launch with these scalars on a device takes the code for strides of 0. The stride
    /// of a dimension with one element is none.
    pub(crate) fn has_zero_stride(
        &self,
        stream: &Stream,
        (values, arguments): (&[Literal], &[Argument]),
    ) -> bool {
        if self.answers.strides.is_empty() || stream.context().info().device_type != DeviceType::Cpu {
            return false;
        }
        let origin = |id: ValueId| {
            let place = self.ir.parameters.iter().position(|one| *one == Parameter::Value(id));
            place.map(|place| self.sources[place])
        };
        let counts = |id: ValueId| match origin(id) {
            Some(Source::Stride(argument, dimension)) => match arguments.get(argument) {
                Some(Argument::Array(memory)) => memory.side.view.shape.get(dimension) != Some(&1),
                _ => true,
            },
            _ => true,
        };
        self.answers.strides.iter().any(|id| values[id.0 as usize].bits == 0 && counts(*id))
    }
}
