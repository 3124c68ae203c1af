//! Launches on the host, and checked ones.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use usm_core::ErrorKind;
use usm_core::threads;
use usm_kernel_ir::{self as ir, CheckError, Parameter};
use usm_kernel_jit::host::{Groups, HostCode, HostLaunch, RunError, Watch};
use usm_kernel_jit::program::Open;

use super::code::Source;
use super::launch::{Prepared, remedy};
use crate::storage::{LaunchMark, Storage, Turns, transfer, turns_of};
use crate::text::argument;
use crate::text::error::{Class, OrRaise};

/// The interval at which the interpreter of kernels checks for Ctrl-C.
const SLICE: Duration = Duration::from_millis(20);

/// Uses this number of threads for work on the host from now on, the calling one included, in place
/// of the variable ``USM_NUM_THREADS`` and of the number of processors. In a child of a fork work
/// runs on the calling thread alone, whatever is set.
#[pyfunction]
pub(crate) fn set_threads(#[pyo3(from_py_with = argument::threads)] threads: usize) -> PyResult<()> {
    let threads = NonZeroUsize::new(threads).ok_or_else(|| {
        Class::Request.error(format!("0 threads: a number of threads from 1 to {} is needed", threads::MOST))
    })?;
    threads::set(threads).or_raise()
}

/// Runs a launch, by code that checks these indices, and returns when it is complete.
pub(crate) fn run(py: Python<'_>, prepared: &Prepared, open: Open) -> PyResult<()> {
    check_limits(prepared)?;
    let code = &prepared.code;
    if let Some((compiled, open)) = code.compiled(py, open)? {
        return run_compiled(py, prepared, &compiled, open);
    }
    let bytes = read(py, prepared)?;
    let arguments = interpreter_arguments(prepared, &bytes);
    let ones = vec![1; prepared.global.len()];
    let local = prepared.local.as_deref().unwrap_or(&ones);
    let ran = py.detach(|| {
        let (mut start, mut signal) = (Instant::now(), Ok(()));
        let mut go_on = || may_continue(&mut start, &mut signal);
        let ran = code.program.interpret((&prepared.global, local), &arguments, &mut go_on);
        ran.map(|ran| (ran.unwrap_or_default(), signal))
    });
    let (ran, signal) = ran.map_err(|error| check_error(error, prepared))?;
    signal?;
    for ((source, writes), after) in arrays(prepared).zip(ran) {
        if let (Source::Array(_), true) = (source, writes) {
            let memory = code.memory(source, &prepared.arguments)?;
            // The elements alone: another argument may have the bytes between them.
            transfer::store_elements(py, &memory.side, memory.span().0, after)?;
        }
    }
    Ok(())
}

/// Refuses what the host has no room for.
fn check_limits(prepared: &Prepared) -> PyResult<()> {
    let Prepared { code, stream, global, local, values, .. } = prepared;
    let (info, local) = (stream.context().info(), local.as_deref().unwrap_or(&[]));
    code.program.check_limits(info, global, local, values).map_err(|message| code.error(&message))
}

/// Runs machine code on the arrays themselves, on several threads where items cannot race and the
/// launch takes long enough.
fn run_compiled(py: Python<'_>, prepared: &Prepared, compiled: &HostCode, open: Open) -> PyResult<()> {
    let code = &prepared.code;
    let values: Vec<u64> = prepared.values.iter().map(|value| value.bits).collect();
    let (mut addresses, mut storages) = (Vec::new(), Vec::new());
    for (source, _) in arrays(prepared) {
        addresses.push(match source {
            Source::Table(place) => code.tables[place].as_ptr() as usize,
            _ => {
                let memory = code.memory(source, &prepared.arguments)?;
                let (start, _) = memory.span();
                storages.push(&memory.side.storage);
                memory.side.storage.address() + start
            }
        });
    }
    let launch = HostLaunch {
        code: compiled,
        addresses: &addresses,
        checks: open != 0,
        values: &values,
        lengths: &prepared.lengths,
        groups: Groups::of(&prepared.global, prepared.local.as_deref()),
    };
    let ran = py.detach(|| {
        let mut watched = Watched::new(&storages)?;
        // SAFETY: the arrays live as long as their storages. No other work uses these: earlier work
        // has finished, and the turns are held. Indices are inside, which was proven for this
        // launch or is checked by the code.
        let ran = unsafe { launch.run(&mut watched, || prepared.may_be_divided()) };
        watched.signal.map(|()| ran)
    });
    let ran = ran?;
    if !matches!(ran, Err(RunError::Setting(_))) {
        py.check_signals()?;
    }
    let record = match ran {
        Err(RunError::Setting(error)) => return Err(error).or_raise(),
        Err(RunError::Memory(message)) => return Err(code.error(&message)),
        Ok(record) => record,
    };
    code.recorded(open, record, &prepared.arguments)
}

/// The state of a launch, which it asks whether it may go on.
struct Watched<'w> {
    storages: &'w [&'w Storage],
    /// Before the turns: it ends while these are held.
    _launched: LaunchMark<'w>,
    turns: Turns<'w>,
    /// What a signal handler raised.
    signal: PyResult<()>,
}

impl<'w> Watched<'w> {
    /// Takes the turns of all blocks, and waits for earlier work.
    fn new(storages: &'w [&'w Storage]) -> PyResult<Self> {
        let turns = turns_of(storages).or_raise()?;
        storages.iter().try_for_each(|storage| storage.wait_for_uses()).or_raise()?;
        let _launched = turns.begin_launch();
        Ok(Self { storages, _launched, turns, signal: Ok(()) })
    }

    fn ask(&mut self, is_forked: &dyn Fn() -> bool) -> PyResult<bool> {
        // At the end of the interpreter there is nobody to ask.
        let asked = self.turns.released(|| Python::try_attach(|py| py.check_signals())).or_raise()?;
        let Some(signal) = asked else { return Ok(false) };
        signal?;
        if is_forked() {
            return Err(usm_core::Error::from(ErrorKind::Forked)).or_raise();
        }
        self.storages.iter().try_for_each(|storage| storage.wait_for_uses()).or_raise()?;
        Ok(true)
    }
}

impl Watch for Watched<'_> {
    /// Whether no signal handler raised. Meanwhile the turns are released, because handlers may use
    /// the arrays.
    fn may_continue(&mut self, is_forked: &dyn Fn() -> bool) -> bool {
        let asked = self.ask(is_forked);
        let goes_on = matches!(asked, Ok(true));
        self.signal = asked.map(drop);
        goes_on
    }
}

/// Interprets a launch on copies of its arrays, in three orders of items.
pub(crate) fn check(py: Python<'_>, prepared: &Prepared) -> PyResult<()> {
    check_limits(prepared)?;
    let bytes = read(py, prepared)?;
    let arguments = interpreter_arguments(prepared, &bytes);
    let ones = vec![1; prepared.global.len()];
    let local = prepared.local.as_deref().unwrap_or(&ones);
    let code = &prepared.code;
    let sizes = (&*prepared.global, local);
    let checked = py.detach(|| {
        let (mut start, mut signal) = (Instant::now(), Ok(()));
        let mut go_on = || may_continue(&mut start, &mut signal);
        let checked = code.program.check(sizes, &arguments, true, &mut go_on);
        signal.map(|()| checked)
    });
    checked?.map_err(|error| check_error(error, prepared))?;
    if code.log.is_none() {
        return Ok(());
    }
    // The lines of items in their order.
    let contents = py.detach(|| {
        let (mut start, mut signal) = (Instant::now(), Ok(()));
        let mut go_on = || may_continue(&mut start, &mut signal);
        let contents = code.program.interpret(sizes, &arguments, &mut go_on);
        signal.map(|()| contents)
    });
    let contents = contents?.map_err(|error| check_error(error, prepared))?.unwrap_or_default();
    let is_log =
        |source: Source| matches!(source, Source::Array(place) if place >= prepared.caller_arguments);
    let logs = arrays(prepared).zip(contents).filter(|((source, _), _)| is_log(*source));
    let logs: Vec<Vec<u8>> = logs.map(|(_, bytes)| bytes).collect();
    super::print::show_contents(py, code, &logs)
}

/// Whether no signal handler raised; asks every [`SLICE`].
fn may_continue(start: &mut Instant, signal: &mut PyResult<()>) -> bool {
    if start.elapsed() >= SLICE {
        *signal = Python::attach(|py| py.check_signals());
        *start = Instant::now();
    }
    signal.is_ok()
}

/// The error of the interpreter, with a place in front.
fn check_error(error: CheckError, prepared: &Prepared) -> PyErr {
    let code = &prepared.code;
    let said = |text: String| Class::Kernel.error(text);
    let id = |array: &str| {
        let place = code.ir().arrays.iter().position(|known| known.name == array);
        place.map(|place| ir::ArrayId(place as u32))
    };
    match error {
        CheckError::Fault(ir::Fault::Outside { id, at, index, len, .. }) => {
            code.index_error((id, at.place), index, len, &prepared.arguments)
        }
        CheckError::Fault(ir::Fault::Race { array, index, accesses }) => {
            let [(one, did), (two, does)] = &*accesses;
            let (element, is_local) = match id(&array) {
                Some(known) => (
                    code.element(known, index, &prepared.arguments),
                    matches!(code.ir().array(known).space, ir::Space::Local(_)),
                ),
                None => (index.to_string(), false),
            };
            // Accesses at one place have nothing between them.
            let remedy = match is_local && one.place != two.place {
                true => "put `usm.barrier(usm.CLK_LOCAL_MEM_FENCE)` between".to_owned(),
                false => remedy(false, false),
            };
            said(format!(
                "{}: race on element {element} of `{array}`: work-item {} {} it here, work-item {} {} it at {}, \
                 with no barrier between; {remedy}",
                two.located,
                two.item,
                does.verb(),
                one.item,
                did.verb(),
                one.located
            ))
        }
        CheckError::Fault(ir::Fault::Unwritten { array, at, index }) => {
            let index = id(&array).map_or(index, |known| code.number(known, index));
            said(ir::Fault::Unwritten { array, at, index }.to_string())
        }
        CheckError::Fault(fault @ ir::Fault::Divergence { .. }) => {
            let ir::Fault::Divergence { items, .. } = &fault else { return code.error(&fault.to_string()) };
            said(format!("{}: {fault}", items[0].located))
        }
        CheckError::Fault(ir::Fault::Steps) => code.error(&ir::Fault::Steps.to_string()),
        CheckError::Fault(fault) => said(fault.to_string()),
        other => code.error(&other.to_string()),
    }
}

/// The sources of the nodes' arrays, and whether the kernel writes them.
fn arrays(prepared: &Prepared) -> impl Iterator<Item = (Source, bool)> {
    let code = &prepared.code;
    let parameters = code.sources.iter().zip(&code.ir().parameters).enumerate();
    let arrays = parameters.filter(|(_, (_, parameter))| matches!(parameter, Parameter::Array(_)));
    arrays.map(|(place, (source, _))| (*source, code.writes(place)))
}

/// The bytes of all arrays, after pending writes.
fn read(py: Python<'_>, prepared: &Prepared) -> PyResult<Vec<Vec<u8>>> {
    let one = |(source, _): (Source, bool)| match source {
        Source::Table(place) => Ok(prepared.code.tables[place].clone()),
        _ => {
            let memory = prepared.code.memory(source, &prepared.arguments)?;
            let (start, len) = memory.span();
            let queue = &memory.side.stream.queue;
            py.detach(|| memory.side.storage.read(queue, start, len, vec![0; len])).or_raise()
        }
    };
    arrays(prepared).map(one).collect()
}

/// The arguments of the interpreter.
fn interpreter_arguments<'b>(prepared: &Prepared, bytes: &'b [Vec<u8>]) -> Vec<ir::Argument<'b>> {
    let mut bytes = bytes.iter();
    let one = |parameter: &Parameter| match parameter {
        Parameter::Value(id) => ir::Argument::Value(prepared.values[id.0 as usize]),
        Parameter::Array(_) => ir::Argument::Array(bytes.next().map_or(&[], Vec::as_slice)),
    };
    prepared.code.ir().parameters.iter().map(one).collect()
}
