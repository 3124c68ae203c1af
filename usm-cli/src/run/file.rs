//! A user's own kernel on a device, compared with the interpreter.

use core::fmt;
use core::time::Duration;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use usm_core::backend::Dyn;
use usm_core::{Context, Device, Queue, QueueOrder, UsmVec};
use usm_kernel_ir::{Kernel, Literal, Parameter, Scalar, Space, Structure};
use usm_kernel_jit::program::Answer;
use usm_kernel_jit::{Argument, Function, Launch, LaunchError};

use super::Arguments;
use super::job::{build_error, launch_error};
use super::value::{ArgumentWord, Number, difference, literal};
use crate::error::{Error, Exit, Result};
use crate::{backends, kernel, output};

/// The time that the interpreter gets for a comparison.
const MOST_TIME: Duration = Duration::from_secs(60);

/// Elements of an array that the report shows.
const SHOWN: usize = 8;

/// The JSON document.
#[derive(Serialize)]
struct Report {
    kernel: String,
    device: String,
    global: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    local: Option<Vec<u64>>,
    repeat: u32,
    /// `None`: there is nothing to compare with.
    ok: Option<bool>,
    /// Why there is nothing to compare with.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_compared: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_error: Option<f64>,
    seconds: f64,
    proof: String,
    arrays: Vec<Contents>,
}

/// The JSON document of `--check`; a fault is an error.
#[derive(Serialize)]
struct CheckReport<'r> {
    kernel: &'r str,
    device: String,
    global: &'r [u64],
    ok: bool,
}

/// An array that the kernel wrote.
#[derive(Serialize)]
struct Contents {
    name: String,
    r#type: &'static str,
    len: usize,
    /// The first elements.
    first: Vec<Number>,
}

/// An array among the arguments, and its bytes before the launch.
struct Array {
    name: String,
    element: Scalar,
    is_written: bool,
    bytes: Vec<u8>,
}

/// An argument of the launch.
enum Operand {
    Array(Array),
    Value(Literal),
    /// A tuple or structure by value.
    Fields(Vec<Literal>),
}

pub(super) fn run(file: &Path, arguments: &Arguments, json: bool) -> Result<Exit> {
    let context = backends::select_or_host(arguments.device.as_deref())?;
    let kernels = kernel::read(file)?;
    let name = arguments.kernel_name.as_deref();
    let kernel = kernel::choose(&kernels, name).map_err(|error| error.in_file(file))?.clone();
    let global = &arguments.global;
    if global.is_empty() {
        return Err(
            Error::bad("a kernel of a file needs its range, such as 1024 or 64,32").in_field("--global")
        );
    }
    let operands = operands(&kernel, &arguments.arg)?;
    check_memory(&context, &operands)?;
    let queue = context.queue(QueueOrder::InOrder).map_err(Error::unable)?;
    super::job::check_executes(&queue)?;
    if kernel.trusted && !arguments.check {
        let reason =
            "the kernel is an `unsafe fn`, for which only a program can vouch; --check looks for its faults";
        return Err(Error::bad(reason).in_file(file));
    }
    let function = Function::new(kernel).map_err(Error::bad)?;
    let job = Job { function: &function, queue: &queue, operands: &operands, arguments };
    if arguments.check {
        job.check()?;
        let (kernel, device) = (function.name(), backends::name(context.info()));
        if json {
            output::json(&CheckReport { kernel, device, global, ok: true })?;
        } else {
            output::line(format_args!("{kernel}: no fault in three orders of items"))?;
        }
        return Ok(Exit::Done);
    }
    let report = job.run(backends::name(context.info()))?;
    if json {
        output::json(&report)?;
    } else {
        output::line(&report)?;
    }
    Ok(if report.ok == Some(false) { Exit::Unable } else { Exit::Done })
}

/// The arguments of a kernel, from those of the command.
fn operands(kernel: &Kernel, words: &[ArgumentWord]) -> Result<Vec<Operand>> {
    let argument_error = |message: String| Error::bad(message).in_field("--arg");
    let parameters = kernel.arguments();
    let names: Vec<String> = parameters.iter().map(|parameter| described(kernel, parameter)).collect();
    if words.len() != names.len() {
        let (parameter_count, count) = (names.len(), words.len());
        return Err(argument_error(format!(
            "{count} are given, the kernel has {parameter_count}: {}",
            names.join(", ")
        )));
    }
    // Elements of one type are numbers, which the command makes.
    let has_form = |parameter: &Parameter| match parameter {
        Parameter::Array(id) => kernel.columns(*id).is_none_or(|(_, columns)| columns.len() == 1),
        Parameter::Value(_) => true,
    };
    let one = |((parameter, name), word): ((&Parameter, &String), &ArgumentWord)| match (parameter, word) {
        (parameter, _) if !has_form(parameter) => {
            Err(argument_error(format!("{name} cannot be written here: launch the kernel from a program")))
        }
        (Parameter::Array(id), ArgumentWord::Array { element, len, fill }) => {
            let array = kernel.array(*id);
            if *element != array.element {
                return Err(argument_error(format!("an array of {element}, and the kernel has {name}")));
            }
            let bytes = contents(*element, *len, fill.as_deref()).map_err(argument_error)?;
            let is_written = matches!(array.space, Space::Write | Space::Atomic);
            Ok(Operand::Array(Array { name: array.name.clone(), element: *element, is_written, bytes }))
        }
        (Parameter::Value(id), ArgumentWord::Value(text)) => {
            if let Some(structure) = kernel.structure(*parameter) {
                let values = fields(structure, text).ok_or_else(|| {
                    let example = structure.fields.iter().map(|(_, ty)| ty.name()).collect::<Vec<_>>();
                    argument_error(format!("{text:?} is not ({}): {name}", example.join(",")))
                })?;
                return Ok(Operand::Fields(values));
            }
            let ty = kernel.value(*id).ty;
            let value =
                literal(ty, text).ok_or_else(|| argument_error(format!("{text:?} is no {ty}: {name}")))?;
            Ok(Operand::Value(value))
        }
        (_, ArgumentWord::Array { element, .. }) => {
            Err(argument_error(format!("an array of {element}, and the kernel has {name}: write a number")))
        }
        (Parameter::Array(_), ArgumentWord::Value(text)) => Err(argument_error(format!(
            "{text:?} is a number, and the kernel has {name}: write its type and its elements, such as f32:1024"
        ))),
    };
    parameters.iter().zip(&names).zip(words).map(one).collect()
}

/// The values of a tuple or structure from a text such as `(2,0.5)`.
fn fields(structure: &Structure, text: &str) -> Option<Vec<Literal>> {
    let inside = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    let words: Vec<&str> = inside.split(',').map(str::trim).collect();
    let types = structure.fields.iter().map(|(_, ty)| *ty);
    (words.len() == structure.fields.len()).then_some(())?;
    types.zip(words).map(|(ty, word)| literal(ty, word)).collect()
}

/// A parameter as messages name it.
fn described(kernel: &Kernel, parameter: &Parameter) -> String {
    match parameter {
        Parameter::Array(id) => match kernel.columns(*id) {
            Some((structure, columns)) if columns.len() > 1 => {
                format!("`{}`, an array of `{}`", kernel.argument_name(*parameter), structure.name)
            }
            _ => format!("`{}`, an array of {}", kernel.array(*id).name, kernel.array(*id).element),
        },
        Parameter::Value(id) => match kernel.structure(*parameter) {
            Some(structure) => {
                let what = if structure.is_tuple() { "tuple" } else { "structure" };
                format!("`{}`, a {what} `{structure}`", kernel.argument_name(*parameter))
            }
            None => format!("`{}`, a {}", kernel.value(*id).name, kernel.value(*id).ty),
        },
    }
}

/// The bytes of an array: all elements are `fill`, or small whole numbers from -8 to 8, from 0 to
/// 16 where the type has no sign.
fn contents(element: Scalar, len: usize, fill: Option<&str>) -> core::result::Result<Vec<u8>, String> {
    let fill = match fill {
        Some(text) => Some(literal(element, text).ok_or_else(|| format!("{text:?} is no {element}"))?),
        None => None,
    };
    let least = if element.is_signed() || !element.is_integer() { -8 } else { 0 };
    let bytes = len.checked_mul(element.bytes() as usize).filter(|bytes| *bytes < isize::MAX as usize);
    let bytes = bytes.ok_or_else(|| format!("{len} elements of {element} are too many"))?;
    let mut all = Vec::new();
    all.try_reserve_exact(bytes).map_err(|_| format!("{bytes} bytes are not there"))?;
    for place in 0..len {
        let whole = (place.wrapping_mul(5) % 17) as i64 + least;
        let value = fill.unwrap_or_else(|| super::value::whole(element, whole));
        let (word, width) = value.to_ne_bytes();
        all.extend_from_slice(&word[..width]);
    }
    Ok(all)
}

/// Refuses arrays that the device cannot hold.
fn check_memory(context: &Context<Dyn>, operands: &[Operand]) -> Result<()> {
    let bytes = |one: &Operand| match one {
        Operand::Array(array) => array.bytes.len() as u64,
        Operand::Value(_) | Operand::Fields(_) => 0,
    };
    let (operand_bytes, available) =
        (operands.iter().map(bytes).sum::<u64>(), context.info().global_mem_size);
    if operand_bytes > available {
        return Err(Error::unable(format!("{operand_bytes} bytes needed, the device has {available}"))
            .in_field("--arg"));
    }
    Ok(())
}

/// The work of one command.
struct Job<'j> {
    function: &'j Function<Dyn>,
    queue: &'j Queue<Dyn>,
    operands: &'j [Operand],
    arguments: &'j Arguments,
}

impl Job<'_> {
    fn launch(&self) -> Launch<'_, Dyn> {
        let launch = self.function.launch(self.queue, &self.arguments.global);
        match self.arguments.local.as_slice() {
            [] => launch,
            local => launch.groups(local),
        }
    }

    /// The arrays on the device, as they are before a launch.
    fn arrays(&self) -> Result<Vec<UsmVec<u8, Device, Dyn>>> {
        let arrays = self.operands.iter().filter_map(|one| match one {
            Operand::Array(array) => Some(array),
            Operand::Value(_) | Operand::Fields(_) => None,
        });
        arrays.map(|array| UsmVec::from_slice(self.queue, &array.bytes).map_err(Error::unable)).collect()
    }

    /// Runs `ask` with the arguments of the launch over these arrays.
    fn with_arguments<R>(
        &self,
        memory: &mut [UsmVec<u8, Device, Dyn>],
        ask: impl FnOnce(&[Argument<'_, Dyn>]) -> core::result::Result<R, LaunchError>,
    ) -> Result<R> {
        let mut memory = memory.iter_mut();
        let one = |operand: &Operand| match operand {
            Operand::Value(value) => Some(Argument::literal(*value)),
            Operand::Fields(values) => Some(Argument::literals(values)),
            Operand::Array(array) if array.is_written => Argument::write_as(memory.next()?, array.element),
            Operand::Array(array) => Argument::read_as(memory.next()?, array.element),
        };
        let arguments: Option<Vec<Argument<'_, Dyn>>> = self.operands.iter().map(one).collect();
        let arguments = arguments.ok_or_else(|| Error::bad("arrays of bool").in_field("--arg"))?;
        ask(&arguments).map_err(run_error)
    }

    fn check(&self) -> Result<()> {
        let mut memory = self.arrays()?;
        self.with_arguments(&mut memory, |arguments| self.launch().check(arguments))
    }

    fn run(&self, device: String) -> Result<Report> {
        let mut memory = self.arrays()?;
        let proof = self.with_arguments(&mut memory, |arguments| self.launch().proof(arguments))?;
        let start = Instant::now();
        let mut may_continue = || start.elapsed() < MOST_TIME;
        let expected = self.with_arguments(&mut memory, |arguments| {
            if let Answer::Unordered(_) = proof {
                return Ok(Err("its order is unknown".to_owned()));
            }
            match self.launch().interpret(arguments, &mut may_continue) {
                Ok(Some(contents)) => Ok(Ok(contents)),
                Ok(None) => Ok(Err(format!("the interpreter needs more than {} s", MOST_TIME.as_secs()))),
                // The arguments fit, since there is a proof; the interpreter has limits of its own.
                Err(LaunchError::Refused(reason)) => Ok(Err(reason)),
                Err(error) => Err(error),
            }
        })?;
        if let Err(reason) = &expected {
            let limit = match proof {
                Answer::Unordered(_) => "",
                _ => "; the kernel runs without a limit",
            };
            output::warning(format_args!("not compared: {reason}{limit}"));
        }
        let (mut seconds, mut max_error, mut ok) = (f64::INFINITY, 0.0_f64, true);
        let mut last = Vec::new();
        for _ in 0..self.arguments.repeat {
            let mut memory = self.arrays()?;
            let mut duration = 0.0;
            self.with_arguments(&mut memory, |arguments| {
                // The first launch builds the code; a program does that once.
                let start = Instant::now();
                self.launch().run(arguments)?.wait()?;
                duration = start.elapsed().as_secs_f64();
                Ok(())
            })?;
            seconds = seconds.min(duration);
            last.clear();
            for array in &memory {
                last.push(array.to_vec(self.queue).map_err(Error::unable)?);
            }
            let arrays = self.arrays_of().zip(&last);
            for ((array, bytes), expected) in arrays.zip(expected.iter().flatten()) {
                let (error, is_close) = difference(array.element, bytes, expected);
                max_error = max_error.max(error);
                ok &= is_close;
            }
        }
        let written_arrays = self.arrays_of().zip(&last).filter(|(array, _)| array.is_written);
        Ok(Report {
            kernel: self.function.name().to_owned(),
            device,
            global: self.arguments.global.clone(),
            local: (!self.arguments.local.is_empty()).then(|| self.arguments.local.clone()),
            repeat: self.arguments.repeat,
            ok: expected.is_ok().then_some(ok),
            max_error: expected.is_ok().then_some(max_error),
            not_compared: expected.err(),
            seconds,
            proof: match proof {
                Answer::Proven => "proven".to_owned(),
                Answer::Inspected => "inspected".to_owned(),
                Answer::Open(reason) | Answer::Unordered(reason) => reason,
            },
            arrays: written_arrays.map(|(array, bytes)| array.shown(bytes)).collect(),
        })
    }

    fn arrays_of(&self) -> impl Iterator<Item = &Array> {
        self.operands.iter().filter_map(|one| match one {
            Operand::Array(array) => Some(array),
            Operand::Value(_) | Operand::Fields(_) => None,
        })
    }
}

impl Array {
    fn shown(&self, bytes: &[u8]) -> Contents {
        let size = self.element.bytes() as usize;
        let elements = bytes.chunks_exact(size).map(|bytes| Literal::from_ne_bytes(self.element, bytes));
        Contents {
            name: self.name.clone(),
            r#type: self.element.name(),
            len: bytes.len() / size,
            first: elements.take(SHOWN).map(Number::of).collect(),
        }
    }
}

/// A failed launch: a wrong kernel or argument is bad input, an index outside and the device's
/// failures are results.
fn run_error(error: LaunchError) -> Error {
    match error {
        LaunchError::Build(error) => build_error(error),
        LaunchError::Launch(error) => launch_error(error, "--local"),
        LaunchError::Device(error) => Error::unable(error),
        error @ (LaunchError::Outside { .. } | LaunchError::Fault(_)) => Error::unable(error),
        error => Error::bad(error),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match (self.ok, &self.not_compared) {
            (Some(true), _) => "as the interpreter".to_owned(),
            (Some(false), _) => "WRONG".to_owned(),
            (None, reason) => format!("not compared: {}", reason.as_deref().unwrap_or_default()),
        };
        write!(f, "{} on {}, range {:?}", self.kernel, self.device, self.global)?;
        if let Some(local) = &self.local {
            write!(f, ", groups of {local:?}")?;
        }
        writeln!(f, ": {verdict}")?;
        writeln!(f, "  proof          {}", self.proof)?;
        if let Some(error) = self.max_error {
            writeln!(f, "  largest error  {error}")?;
        }
        write!(f, "  kernel         {:.6} s, fastest of {}", self.seconds, self.repeat)?;
        for Contents { name, r#type, len, first } in &self.arrays {
            let dots = if first.len() < *len { ", .." } else { "" };
            let first: Vec<String> = first.iter().map(ToString::to_string).collect();
            write!(f, "\n  {name:<14} {}{dots} ({len} of {type})", first.join(", "))?;
        }
        Ok(())
    }
}
