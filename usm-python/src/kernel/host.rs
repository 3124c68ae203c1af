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
use super::prepared_launch::{PreparedLaunch, remedy};
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
pub(crate) fn run(py: Python<'_>, launch: &PreparedLaunch, open: Open) -> PyResult<()> {
    check_limits(launch)?;
    let code = &launch.code;
    if let Some((host_code, open)) = code.host_code(py, open)? {
        return run_compiled(py, launch, &host_code, open);
    }
    let bytes = read(py, launch)?;
    let arguments = interpreter_arguments(launch, &bytes);
    let ones = vec![1; launch.global.len()];
    let local = launch.local.as_deref().unwrap_or(&ones);
    let ran = py.detach(|| {
        let (mut start, mut signal) = (Instant::now(), Ok(()));
        let mut go_on = || may_continue(&mut start, &mut signal);
        let ran = code.program.interpret((&launch.global, local), &arguments, &mut go_on);
        ran.map(|ran| (ran.unwrap_or_default(), signal))
    });
    let (ran, signal) = ran.map_err(|error| check_error(error, launch))?;
    signal?;
    for ((source, writes), after) in arrays(launch).zip(ran) {
        if let (Source::Array(_), true) = (source, writes) {
            let memory = code.memory(source, &launch.arguments)?;
            // The elements alone: another argument may have the bytes between them.
            transfer::store_elements(py, &memory.side, memory.span().0, after)?;
        }
    }
    Ok(())
}

/// Refuses what the host has no room for.
fn check_limits(launch: &PreparedLaunch) -> PyResult<()> {
    let PreparedLaunch { code, stream, global, local, values, .. } = launch;
    let (info, local) = (stream.context().info(), local.as_deref().unwrap_or(&[]));
    code.program.check_limits(info, global, local, values).map_err(|message| code.error(&message))
}

/// Runs machine code on the arrays themselves, on several threads where items cannot race and the
/// launch takes long enough.
fn run_compiled(py: Python<'_>, launch: &PreparedLaunch, host_code: &HostCode, open: Open) -> PyResult<()> {
    let code = &launch.code;
    let values: Vec<u64> = launch.values.iter().map(|value| value.bits).collect();
    let (mut addresses, mut storages) = (Vec::new(), Vec::new());
    for (source, _) in arrays(launch) {
        addresses.push(match source {
            Source::Table(place) => code.tables[place].as_ptr() as usize,
            _ => {
                let memory = code.memory(source, &launch.arguments)?;
                let (start, _) = memory.span();
                storages.push(&memory.side.storage);
                memory.side.storage.address() + start
            }
        });
    }
    let host_launch = HostLaunch {
        code: host_code,
        addresses: &addresses,
        checks: open != 0,
        values: &values,
        lengths: &launch.lengths,
        groups: Groups::of(&launch.global, launch.local.as_deref()),
    };
    let ran = py.detach(|| {
        let mut watch = LaunchWatch::new(&storages)?;
        // SAFETY: the arrays live as long as their storages. No other work uses these: earlier work
        // has finished, and the turns are held. Indices are inside, which was proven for this
        // launch or is checked by the code.
        let ran = unsafe { host_launch.run(&mut watch, || launch.may_be_divided()) };
        watch.signal.map(|()| ran)
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
    code.recorded(open, record, &launch.arguments)
}

/// The state of a launch, which it asks whether it may go on.
struct LaunchWatch<'w> {
    storages: &'w [&'w Storage],
    /// Before the turns: it ends while these are held.
    _launched: LaunchMark<'w>,
    turns: Turns<'w>,
    /// What a signal handler raised.
    signal: PyResult<()>,
}

impl<'w> LaunchWatch<'w> {
    /// Takes the turns of all blocks, and waits for earlier work.
    fn new(storages: &'w [&'w Storage]) -> PyResult<Self> {
        let turns = turns_of(storages).or_raise()?;
        storages.iter().try_for_each(|storage| storage.wait_for_uses()).or_raise()?;
        let _launched = turns.begin_launch();
        Ok(Self { storages, _launched, turns, signal: Ok(()) })
    }

    fn ask(&mut self, is_forked: &dyn Fn() -> bool) -> PyResult<bool> {
        // At the end of the interpreter there is nobody to ask.
        let answer = self.turns.released(|| Python::try_attach(|py| py.check_signals())).or_raise()?;
        let Some(signal) = answer else { return Ok(false) };
        signal?;
        if is_forked() {
            return Err(usm_core::Error::from(ErrorKind::Forked)).or_raise();
        }
        self.storages.iter().try_for_each(|storage| storage.wait_for_uses()).or_raise()?;
        Ok(true)
    }
}

impl Watch for LaunchWatch<'_> {
    /// Whether no signal handler raised. Meanwhile the turns are released, because handlers may use
    /// the arrays.
    fn may_continue(&mut self, is_forked: &dyn Fn() -> bool) -> bool {
        let answer = self.ask(is_forked);
        let goes_on = matches!(answer, Ok(true));
        self.signal = answer.map(drop);
        goes_on
    }
}

/// Interprets a launch on copies of its arrays, in three orders of items.
pub(crate) fn check(py: Python<'_>, launch: &PreparedLaunch) -> PyResult<()> {
    check_limits(launch)?;
    let bytes = read(py, launch)?;
    let arguments = interpreter_arguments(launch, &bytes);
    let ones = vec![1; launch.global.len()];
    let local = launch.local.as_deref().unwrap_or(&ones);
    let code = &launch.code;
    let sizes = (&*launch.global, local);
    let outcome = py.detach(|| {
        let (mut start, mut signal) = (Instant::now(), Ok(()));
        let mut go_on = || may_continue(&mut start, &mut signal);
        let outcome = code.program.check(sizes, &arguments, true, &mut go_on);
        signal.map(|()| outcome)
    });
    outcome?.map_err(|error| check_error(error, launch))?;
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
    let contents = contents?.map_err(|error| check_error(error, launch))?.unwrap_or_default();
    let is_log = |source: Source| matches!(source, Source::Array(place) if place >= launch.caller_arguments);
    let logs = arrays(launch).zip(contents).filter(|((source, _), _)| is_log(*source));
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
fn check_error(error: CheckError, launch: &PreparedLaunch) -> PyErr {
    let code = &launch.code;
    let error_of = |text: String| Class::Kernel.error(text);
    let id = |array: &str| {
        let place = code.ir().arrays.iter().position(|array_id| array_id.name == array);
        place.map(|place| ir::ArrayId(place as u32))
    };
    match error {
        CheckError::Fault(ir::Fault::Outside { id, at, index, len, .. }) => {
            code.index_error((id, at.place), index, len, &launch.arguments)
        }
        CheckError::Fault(ir::Fault::Race { array, index, accesses }) => {
            let [(one, did), (two, does)] = &*accesses;
            let (element, is_local) = match id(&array) {
                Some(array_id) => (
                    code.element(array_id, index, &launch.arguments),
                    matches!(code.ir().array(array_id).space, ir::Space::Local(_)),
                ),
                None => (index.to_string(), false),
            };
            // Accesses at one place have nothing between them.
            let remedy = match is_local && one.place != two.place {
                true => "put `usm.barrier(usm.CLK_LOCAL_MEM_FENCE)` between".to_owned(),
                false => remedy(false, false),
            };
            error_of(format!(
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
            let index = id(&array).map_or(index, |array_id| code.number(array_id, index));
            error_of(ir::Fault::Unwritten { array, at, index }.to_string())
        }
        CheckError::Fault(fault @ ir::Fault::Divergence { .. }) => {
            let ir::Fault::Divergence { items, .. } = &fault else { return code.error(&fault.to_string()) };
            error_of(format!("{}: {fault}", items[0].located))
        }
        CheckError::Fault(ir::Fault::Steps) => code.error(&ir::Fault::Steps.to_string()),
        CheckError::Fault(fault) => error_of(fault.to_string()),
        other => code.error(&other.to_string()),
    }
}

/// The sources of the nodes' arrays, and whether the kernel writes them.
fn arrays(launch: &PreparedLaunch) -> impl Iterator<Item = (Source, bool)> {
    let code = &launch.code;
    let parameters = code.sources.iter().zip(&code.ir().parameters).enumerate();
    let arrays = parameters.filter(|(_, (_, parameter))| matches!(parameter, Parameter::Array(_)));
    arrays.map(|(place, (source, _))| (*source, code.writes(place)))
}

/// The bytes of all arrays, after pending writes.
fn read(py: Python<'_>, launch: &PreparedLaunch) -> PyResult<Vec<Vec<u8>>> {
    let one = |(source, _): (Source, bool)| match source {
        Source::Table(place) => Ok(launch.code.tables[place].clone()),
        _ => {
            let memory = launch.code.memory(source, &launch.arguments)?;
            let (start, len) = memory.span();
            let queue = &memory.side.stream.queue;
            py.detach(|| memory.side.storage.read(queue, start, len, vec![0; len])).or_raise()
        }
    };
    arrays(launch).map(one).collect()
}

/// The arguments of the interpreter.
fn interpreter_arguments<'b>(launch: &PreparedLaunch, bytes: &'b [Vec<u8>]) -> Vec<ir::Argument<'b>> {
    let mut bytes = bytes.iter();
    let one = |parameter: &Parameter| match parameter {
        Parameter::Value(id) => ir::Argument::Value(launch.values[id.0 as usize]),
        Parameter::Array(_) => ir::Argument::Array(bytes.next().map_or(&[], Vec::as_slice)),
    };
    launch.code.ir().parameters.iter().map(one).collect()
}
