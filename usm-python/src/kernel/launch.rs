//! `usm.KernelLaunch`: a kernel with its range.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use usm_core::backend::Dyn;
use usm_core::{Event, EventStatus, Selector};

use super::argument::{Argument, Memory, check_unmoved, move_to_device};
use super::code::{Code, Source};
use super::function::PyKernelFunction;
use super::prepared_launch::PreparedLaunch;
use super::range::Sizes;
use super::structure;
use super::{device, host, print};
use crate::device::choice;
use crate::device::queue::{After, PyEvent};
use crate::device::runtime::Stream;
use crate::process::wait;
use crate::text::error::{Class, OrRaise};

/// The purpose of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Run,
    Check,
    Proof,
}

/// A kernel with its range, to be called with its arguments.
#[pyclass(frozen, module = "usm", name = "KernelLaunch")]
#[derive(Debug)]
pub(crate) struct PyLaunch {
    function: Py<PyKernelFunction>,
    sizes: Sizes,
    mode: Mode,
}

impl PyLaunch {
    pub(crate) const fn new(function: Py<PyKernelFunction>, sizes: Sizes, mode: Mode) -> Self {
        Self { function, sizes, mode }
    }
}

#[pymethods]
impl PyLaunch {
    #[pyo3(signature = (*arguments))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.mode {
            Mode::Run => {
                let launch = self.prepare(py, arguments)?;
                if let Some(event) = self.start(arguments, launch, &[])? {
                    wait::for_event(py, &event)?;
                }
                Ok(None)
            }
            Mode::Check => {
                let launch = self.prepare(py, arguments)?;
                if let Some(message) = launch.unchecked() {
                    return Err(Class::Kernel.error(message));
                }
                host::check(py, &launch).map_err(|error| with_lines(py, error))?;
                Ok(None)
            }
            Mode::Proof => {
                let launch = self.prepare(py, arguments)?;
                Ok(Some(PyString::new(py, &launch.proof("so it is checked as it runs")).into_any()))
            }
        }
    }

    /// Launches without waiting, after the events in `after`, and returns the event of the end. The
    /// launch is complete on return where an argument is plain memory of the process, where the
    /// kernel prints, or where indices are checked as it runs.
    #[pyo3(signature = (*arguments, after=After::default()))]
    fn submit(&self, py: Python<'_>, arguments: &Bound<'_, PyTuple>, after: After) -> PyResult<PyEvent> {
        let launch = self.prepare(py, arguments)?;
        let stream = Arc::clone(&launch.stream);
        match self.start(arguments, launch, &after.0)? {
            Some(event) => Ok(PyEvent(event)),
            None => py.detach(|| stream.queue.barrier(&[])).or_raise().map(PyEvent),
        }
    }

    fn __repr__(&self) -> String {
        let Sizes { global, local, .. } = &self.sizes;
        match local {
            Some(local) => format!("<usm.KernelLaunch {}[{global:?}, {local:?}]>", self.function.get().name),
            None => format!("<usm.KernelLaunch {}[{global:?}]>", self.function.get().name),
        }
    }
}

impl PyLaunch {
    /// Arguments, queue and code of a launch.
    fn prepare(&self, py: Python<'_>, objects: &Bound<'_, PyTuple>) -> PyResult<PreparedLaunch> {
        let function = self.function.get();
        let (count, argument_count) = (function.parameters.len(), objects.len());
        if count != argument_count {
            let names = function.parameters.join(", ");
            return Err(function
                .error(&format!("{count} arguments are needed ({names}), {argument_count} are given")));
        }
        let item =
            |place: usize, path: &str| format!("argument {place}, `{}{path}`", function.parameters[place]);
        let (mut arguments, origins) =
            structure::arguments(objects, &|place, path| function.locate(&item(place, path)))?;
        let name = |argument: usize| {
            let (place, path) = origins.of(argument);
            item(place, &path)
        };
        self.check_groups(&arguments, &name)?;
        let stream = stream(py, &arguments, &name, &|message| function.error(message))?;
        let dimensions = self.sizes.global.len();
        let key = origins.key(dimensions, &arguments);
        let code = function.code_of(py, &key)?;
        for (place, source) in code.sources.iter().enumerate() {
            let Source::Array(argument) = source else { continue };
            let is_given = *argument < arguments.len();
            if is_given && code.writes(place) && code.memory(*source, &arguments)?.is_readonly() {
                let message = format!("{} is read-only, and the kernel writes it", name(*argument));
                return Err(Class::Access.error(function.locate(&message)));
            }
        }
        // Other arguments, and the making of code, run code of Python.
        self.check_unmoved(origins.with(objects, &arguments))?;
        if self.mode == Mode::Run {
            move_to_device(py, &mut arguments, &stream, &|message| function.error(message), &name)?;
        }
        for (place, argument) in arguments.iter().enumerate() {
            if let Argument::Array(memory) = argument
                && let Some(reason) = memory.misalignment()
            {
                return Err(function.error(&format!("{}: {reason}", name(place))));
            }
        }
        // Most copies are dense, so the key may have changed.
        let code = match has_copies(&arguments) {
            true => function.code_of(py, &origins.key(dimensions, &arguments))?,
            false => code,
        };
        let caller_arguments = arguments.len();
        print::add_arrays(py, &code, &stream, &mut arguments)?;
        let local = self.local(&code, &stream)?;
        let (values, lengths) = (code.values(&arguments)?, code.lengths(&arguments)?);
        let global = self.sizes.global.clone();
        let strict = function.strict;
        Ok(PreparedLaunch {
            code,
            arguments,
            caller_arguments,
            origins,
            stream,
            global,
            local,
            values,
            lengths,
            strict,
        })
    }

    fn check_unmoved<'a, 'py>(
        &self,
        arguments: impl Iterator<Item = (usize, Bound<'py, PyAny>, &'a Argument)>,
    ) -> PyResult<()> {
        let function = self.function.get();
        check_unmoved(arguments, &|place, message| {
            function.error(&format!("argument {place}, `{}`, {message}", function.parameters[place]))
        })
    }

    /// Refuses what only a range with groups has, where the range is a `usm.Range`.
    fn check_groups(&self, arguments: &[Argument], name: &dyn Fn(usize) -> String) -> PyResult<()> {
        let function = self.function.get();
        let local = arguments.iter().position(|argument| matches!(argument, Argument::Local { .. }));
        let what = match local {
            _ if !self.sizes.is_plain_range => return Ok(()),
            Some(place) => format!("{} is local memory", name(place)),
            None if function.needs_groups => "its item is an NdItem".to_owned(),
            None => return Ok(()),
        };
        let global = &self.sizes.global;
        Err(function.error(&format!(
            "{what}, and usm.Range{global:?} has no groups: launch it over a usm.NdRange, with a local size"
        )))
    }

    /// The local size: the caller's, or one group where the kernel needs groups.
    fn local(&self, code: &Code, stream: &Stream) -> PyResult<Option<Vec<u64>>> {
        let global = &self.sizes.global;
        if let Some(local) = &self.sizes.local {
            return Ok(Some(local.clone()));
        }
        if !code.program.answers().needs_groups {
            return Ok(None);
        }
        let items: u64 = global.iter().product();
        let limit = stream.context().info().max_work_group_size;
        if items > limit {
            let name = &code.ir().name;
            return Err(code.error(&format!(
                "it needs groups, and {items} work-items are too many for one, whose limit is {limit}: write \
                 {name}[global, local](..)"
            )));
        }
        Ok(Some(global.iter().map(|size| (*size).max(1)).collect()))
    }

    /// Runs a launch. `None`: it is complete.
    fn start(
        &self,
        objects: &Bound<'_, PyTuple>,
        launch: PreparedLaunch,
        after: &[Event<Dyn>],
    ) -> PyResult<Option<Event<Dyn>>> {
        let (py, function) = (objects.py(), self.function.get());
        if function.strict {
            let answer = launch.proof("so `strict=True` refuses the launch");
            if answer != "proven" && answer != "inspected" {
                return Err(Class::Kernel.error(answer));
            }
        }
        let event = Self::submit_prepared(py, &launch, after);
        if launch.code.log.is_some() {
            // A launch that failed midway has printed.
            let outcome = match event {
                Ok(Some(event)) => {
                    let outcome = wait::for_event(py, &event);
                    if outcome.is_err() && matches!(event.status(), Ok(EventStatus::Pending)) {
                        // A signal ended the wait: to read its lines would wait again.
                        return outcome.map(|()| None);
                    }
                    outcome
                }
                other => other.map(drop),
            };
            // Results stay when printing fails.
            let outcome = outcome.and_then(|()| {
                self.check_unmoved(launch.origins.with(objects, &launch.arguments))?;
                launch.copy_back(py)
            });
            let print_outcome = print::show(py, &launch);
            return outcome.and(print_outcome).map(|()| None);
        }
        let event = event?;
        if has_copies(&launch.arguments) {
            if let Some(event) = event {
                wait::for_event(py, &event)?;
            }
            self.check_unmoved(launch.origins.with(objects, &launch.arguments))?;
            launch.copy_back(py)?;
            return Ok(None);
        }
        Ok(event)
    }

    fn submit_prepared(
        py: Python<'_>,
        launch: &PreparedLaunch,
        after: &[Event<Dyn>],
    ) -> PyResult<Option<Event<Dyn>>> {
        let open = launch.open();
        if launch.stream.is_host() {
            after.iter().try_for_each(|event| wait::for_event(py, event))?;
            host::run(py, launch, open)?;
            return Ok(None);
        }
        if open == 0 {
            return device::run(py, launch, None, after).map(Some);
        }
        device::run_checked(py, launch, after)?;
        Ok(None)
    }
}

/// The error of a checked launch, with the lines of source that it names.
fn with_lines(py: Python<'_>, error: PyErr) -> PyErr {
    if !Class::Kernel.is_of(&error, py) {
        return error;
    }
    let message = error.value(py).to_string();
    let lines =
        py.import("usm._kernel.source").and_then(|source| source.call_method1("with_lines", (&message,)));
    match lines.and_then(|lines| lines.extract::<String>()) {
        Ok(lines) => Class::Kernel.error(lines),
        Err(_) => error,
    }
}

/// Whether an argument is a copy, on the device, of plain memory of the process.
fn has_copies(arguments: &[Argument]) -> bool {
    let is_copy = |argument| matches!(argument, &Argument::Array(Memory { origin: Some(_), .. }));
    arguments.iter().any(is_copy)
}

/// The queue of all arguments; an error where they have several.
pub(crate) fn stream(
    py: Python<'_>,
    arguments: &[Argument],
    name: &dyn Fn(usize) -> String,
    error: &dyn Fn(&str) -> PyErr,
) -> PyResult<Arc<Stream>> {
    let memory = |(place, argument)| match argument {
        &Argument::Array(ref memory @ Memory { of_process: false, .. }) => Some((place, memory)),
        _ => None,
    };
    let mut memories = arguments.iter().enumerate().filter_map(memory);
    let Some((place, first)) = memories.next() else { return choice::stream(py, None) };
    let stream = &first.side.stream;
    for (other, memory) in memories {
        let other_stream = &memory.side.stream;
        let ours = !first.side.storage.is_foreign() && !memory.side.storage.is_foreign();
        let same_context = stream.context().id() == other_stream.context().id();
        if !same_context || (ours && !Arc::ptr_eq(stream, other_stream)) {
            let queue = |stream: &Stream| {
                let selector = Selector::of(stream.context().info());
                format!("a queue of {selector} (context {})", stream.context().id())
            };
            let (own_device, other_device) = (stream.context().info(), other_stream.context().info());
            let remedy = match own_device.backend == other_device.backend {
                true => String::new(),
                false => format!("; array.to_device(\"{}\") makes a copy", Selector::of(own_device)),
            };
            return Err(error(&format!(
                "{} is of {}, {} of {}: all arrays of a launch are of one queue{remedy}",
                name(place),
                queue(stream),
                name(other),
                queue(other_stream)
            )));
        }
    }
    Ok(Arc::clone(stream))
}
