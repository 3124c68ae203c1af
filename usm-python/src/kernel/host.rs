//! Launches on the host, and checked ones.

use std::borrow::Cow;
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use usm_core::ErrorKind;
use usm_core::threads::{self, Shares};
use usm_kernel::LaunchError;
use usm_kernel_ir::emit::checked;
use usm_kernel_ir::{
    self as ir, ArrayId, CheckError, Expr, Interpreter, Literal, Order, Parameter, Scalar, Space, Stmt,
    StmtKind, VarId, Variable, length,
};
use usm_kernel_jit::Pause;

use super::code::{Open, Source};
use super::compiled::{Compiled, Given, Groups};
use super::launch::Prepared;
use crate::storage::{Launched, Storage, Turns, transfer};
use crate::text::argument;
use crate::text::error::{Class, OrRaise};

/// The most statements of a checked launch in one order, for all items: about a minute.
const STEPS: u64 = 1 << 30;

/// The interval at which a launch checks for Ctrl-C.
const SLICE: Duration = Duration::from_millis(20);

/// The rounds of loops between two questions of the code, which look at the time.
const ROUNDS: u64 = 1 << 16;

/// The most bytes of private arrays in use at a time: those of one work-item, or of a group with
/// barriers.
const MOST_PRIVATE: u64 = 1 << 28;

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
        let input = ir::Input::new(&code.ir, &prepared.global, local, &arguments);
        let input = input.map_err(CheckError::Input)?;
        let (mut start, mut signal) = (Instant::now(), Ok(()));
        let mut go_on = || may_continue(&mut start, &mut signal);
        let run = Interpreter::new(&code.ir, input, Order::Forwards, u64::MAX).unwatched();
        let ran = run.run_while(&mut go_on).map_err(CheckError::Fault)?;
        Ok((ran.unwrap_or_default(), signal))
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

/// Refuses groups and memory of groups above what the device states, and private arrays above
/// [`MOST_PRIVATE`].
fn check_limits(prepared: &Prepared) -> PyResult<()> {
    let Prepared { code, stream, global, local, values, .. } = prepared;
    let (ir, info) = (&code.ir, stream.context().info());
    let sizes = local.as_deref().unwrap_or(&[]);
    let items = sizes.iter().fold(1_u64, |all, size| all.saturating_mul(*size));
    let refused = |error: LaunchError| Err(code.error(&error.to_string()));
    let limit = info.max_work_group_size;
    if items > limit {
        return refused(LaunchError::GroupTooLarge { size: items, limit });
    }
    let local_bytes = |array: &ir::Array| match &array.space {
        Space::Local(len) => length(len, global, sizes, values).saturating_mul(array.element.bytes()),
        _ => 0,
    };
    let (needed, limit) =
        (ir.arrays.iter().map(local_bytes).fold(0, u64::saturating_add), info.local_mem_size);
    if needed > limit {
        return refused(LaunchError::LocalMemoryTooLarge { needed, limit });
    }
    let at_a_time = if ir.body.iter().any(ir::Stmt::has_barrier) { items } else { 1 };
    let (one, all) = (ir.private_bytes(), ir.private_bytes().saturating_mul(at_a_time));
    if all > MOST_PRIVATE {
        return Err(code.error(&format!(
            "private arrays of {one} bytes, for {at_a_time} work-items at a time: {all} bytes, and \
             {MOST_PRIVATE} are the most on the host"
        )));
    }
    Ok(())
}

/// Runs machine code on the arrays themselves, on several threads where items cannot race and the
/// launch takes long enough.
fn run_compiled(py: Python<'_>, prepared: &Prepared, compiled: &Compiled, open: Open) -> PyResult<()> {
    let code = &prepared.code;
    let values: Vec<u64> = prepared.values.iter().map(|value| value.bits).collect();
    let lengths = &prepared.lengths;
    let failed = Mutex::new(None);
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
    let three = |sizes: &[u64]| {
        let mut fastest_first = sizes.iter().rev().copied();
        [(); 3].map(|()| fastest_first.next().unwrap_or(1))
    };
    let groups = Groups::new(three(&prepared.global), prepared.local.as_deref().map(three));
    let run = Run { code: compiled, addresses, checks: open != 0, values, lengths, groups };
    let (mut record, found) = ([0; checked::WORDS], Mutex::new([0; checked::WORDS]));
    let ran = py.detach(|| {
        let mut watched = Watched::new(&storages)?;
        let mut worker = Worker::new(&run);
        let alone = |parts, shares: &Shares| {
            watched.shares = shares;
            if let Err(error) = worker.run(parts, &mut watched) {
                watched.end(Err(code.error(&error)));
            }
            if watched.goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let others = |shares: &Shares| {
            let mut worker = Worker::new(&run);
            let mut beside = Beside { pause: Pause { ask: Beside::ask, rounds: ROUNDS }, shares };
            shares.for_each(|parts| {
                if let Err(error) = worker.run(parts, &mut beside) {
                    *lock(&failed) = Some(error);
                    shares.close();
                }
            });
            if worker.record[0] != 0 {
                *lock(&found) = *worker.record;
            }
        };
        let may = || prepared.may_be_divided();
        threads::divide_if(groups.count(), None, may, alone, others).or_raise()?;
        record = *worker.record;
        watched.signal
    });
    ran?;
    py.check_signals()?;
    if let Some(error) = lock(&failed).take() {
        return Err(code.error(&error));
    }
    if record[0] == 0 {
        record = *lock(&found);
    }
    code.recorded(open, record, &prepared.arguments)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A launch of machine code.
struct Run<'r> {
    code: &'r Compiled,
    addresses: Vec<usize>,
    /// Whether the code checks indices.
    checks: bool,
    values: Vec<u64>,
    lengths: &'r [u64],
    groups: Groups,
}

/// A thread of a launch.
struct Worker<'r> {
    launch: &'r Run<'r>,
    arrays: Vec<*mut c_void>,
    /// Memory for groups, from the first run on.
    scratch: Option<Vec<u8>>,
    /// The words in which code that checks records an index outside. In a box, whose address the
    /// code has.
    record: Box<[u32; checked::WORDS]>,
}

impl<'r> Worker<'r> {
    fn new(launch: &'r Run<'r>) -> Self {
        let mut record = Box::new([0; checked::WORDS]);
        let last = launch.checks.then_some(record.as_mut_ptr() as usize);
        let addresses = launch.addresses.iter().copied().chain(last);
        let arrays = addresses.map(|address| address as *mut c_void).collect();
        Self { launch, arrays, scratch: None, record }
    }

    /// Runs parts of the launch, each of which nobody else runs.
    ///
    /// # Errors
    /// No memory for a group.
    fn run(&mut self, mut parts: Range<u64>, watch: &mut impl Watch) -> Result<(), String> {
        let Run { code, values, lengths, groups, .. } = self.launch;
        while watch.may_continue() {
            let Some(sizes) = groups.take_run(&mut parts) else { break };
            let given = Given { arrays: &self.arrays, values, lengths, sizes };
            if self.scratch.is_none() {
                self.scratch = Some(code.scratch(&given)?);
            }
            let scratch = self.scratch.as_deref_mut().unwrap_or_default();
            let pause = core::ptr::from_mut(watch).cast();
            // SAFETY: the arrays live as long as their storages. No other work uses these: earlier
            // work has finished, the turns are held, and other threads run other parts, which do
            // not race. Indices are inside, which was proven for this launch or is checked by the
            // code. `watch` begins with a pause, and nothing else uses it meanwhile.
            unsafe { code.run(&given, scratch, pause) };
        }
        Ok(())
    }
}

/// What a thread asks between runs and in long loops: a structure that begins with a [`Pause`].
trait Watch {
    fn may_continue(&mut self) -> bool;
}

/// The state of another thread of a launch.
#[repr(C)]
struct Beside<'w> {
    pause: Pause,
    shares: &'w Shares,
}

impl Watch for Beside<'_> {
    fn may_continue(&mut self) -> bool {
        self.shares.may_continue()
    }
}

impl Beside<'_> {
    /// Answers the code.
    unsafe extern "C" fn ask(pause: *mut Pause) -> u64 {
        // SAFETY: as for [`Watched::ask`].
        let beside = unsafe { &mut *pause.cast::<Beside<'_>>() };
        if beside.may_continue() { ROUNDS } else { 0 }
    }
}

/// The state of a launch on the calling thread, which long loops of the code ask whether they may
/// go on.
#[repr(C)]
struct Watched<'w> {
    pause: Pause,
    start: Instant,
    storages: &'w [&'w Storage],
    /// Null before the first part. The calls of the code that ask are inside the work that these
    /// are the shares of.
    shares: *const Shares,
    /// Before the turns: it ends while these are held.
    _launched: Launched<'w>,
    turns: Turns<'w>,
    goes_on: bool,
    /// What a signal handler raised.
    signal: PyResult<()>,
}

impl<'w> Watched<'w> {
    /// Takes the turns of all blocks, and waits for earlier work.
    fn new(storages: &'w [&'w Storage]) -> PyResult<Self> {
        let turns = Turns::of(storages).or_raise()?;
        storages.iter().try_for_each(|storage| storage.wait_for_uses()).or_raise()?;
        let (pause, start) = (Pause { ask: Self::ask, rounds: ROUNDS }, Instant::now());
        let _launched = turns.begin_launch();
        let (shares, signal) = (core::ptr::null(), Ok(()));
        Ok(Self { pause, start, storages, shares, _launched, turns, goes_on: true, signal })
    }

    /// Answers the code.
    unsafe extern "C" fn ask(pause: *mut Pause) -> u64 {
        // SAFETY: the code passes the address that it was given, of a whole structure that nothing
        // else uses while the code runs.
        let watched = unsafe { &mut *pause.cast::<Watched<'_>>() };
        if watched.may_continue() { ROUNDS } else { 0 }
    }

    fn end(&mut self, signal: PyResult<()>) {
        (self.goes_on, self.signal) = (false, signal);
    }
}

impl Watch for Watched<'_> {
    /// Whether no signal handler raised; asks every [`SLICE`]. Meanwhile no thread runs the launch
    /// and the turns are released, because handlers may use the arrays.
    fn may_continue(&mut self) -> bool {
        if self.start.elapsed() < SLICE || !self.goes_on {
            return self.goes_on;
        }
        // SAFETY: null, or the shares of the work that this thread is in.
        let shares = unsafe { self.shares.as_ref() };
        let (turns, storages) = (&mut self.turns, self.storages);
        let mut ask = || -> PyResult<bool> {
            // At the end of the interpreter there is nobody to ask.
            let asked = turns.released(|| Python::try_attach(|py| py.check_signals())).or_raise()?;
            let Some(signal) = asked else { return Ok(false) };
            signal?;
            if shares.is_some_and(Shares::is_forked) {
                return Err(usm_core::Error::from(ErrorKind::Forked)).or_raise();
            }
            storages.iter().try_for_each(|storage| storage.wait_for_uses()).or_raise()?;
            Ok(true)
        };
        let asked = match shares {
            Some(shares) => shares.while_others_wait(&mut ask),
            None => ask(),
        };
        self.start = Instant::now();
        if !matches!(asked, Ok(true)) {
            self.end(asked.map(drop));
            if let Some(shares) = shares {
                shares.close();
            }
        }
        self.goes_on
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
    let kernel = with_private_zeros(&code.ir);
    let checked = py.detach(|| {
        let (mut start, mut signal) = (Instant::now(), Ok(()));
        let mut go_on = || may_continue(&mut start, &mut signal);
        let checked = ir::check_while(&kernel, &prepared.global, local, &arguments, STEPS, &mut go_on);
        signal.map(|()| checked)
    });
    checked?.map_err(|error| check_error(error, prepared))?;
    if code.log.is_none() {
        return Ok(());
    }
    // The lines of items in their order.
    let input = ir::Input::new(&kernel, &prepared.global, local, &arguments);
    let input = input.map_err(|error| code.error(&error.to_string()))?;
    let interpreter = ir::Interpreter::new(&kernel, input, ir::Order::Forwards, STEPS).unwatched();
    let contents = py.detach(|| {
        let (mut start, mut signal) = (Instant::now(), Ok(()));
        let contents = interpreter.run_while(&mut || may_continue(&mut start, &mut signal));
        signal.map(|()| contents)
    });
    let contents = contents?.map_err(|fault| code.error(&fault.to_string()))?.unwrap_or_default();
    let is_log =
        |source: Source| matches!(source, Source::Array(place) if place >= prepared.caller_arguments);
    let logs = arrays(prepared).zip(contents).filter(|((source, _), _)| is_log(*source));
    let logs: Vec<Vec<u8>> = logs.map(|(_, bytes)| bytes).collect();
    super::print::show_contents(py, code, &logs)
}

/// The kernel with private arrays that an item sets to zero first, as `usm.private.array` states;
/// to nodes they have no value.
fn with_private_zeros(kernel: &ir::Kernel) -> Cow<'_, ir::Kernel> {
    let mut zeroed = Cow::Borrowed(kernel);
    for (number, array) in kernel.arrays.iter().enumerate() {
        let Space::Private(len) = array.space else { continue };
        let place = array.place;
        let literal = |ty, value| Expr::literal(Literal::integer(ty, value), place);
        let zeroed = zeroed.to_mut();
        zeroed.variables.push(Variable { name: array.name.clone(), ty: Scalar::U64, place });
        let index = VarId(zeroed.variables.len() as u32 - 1);
        let (array, none) = (ArrayId(number as u32), literal(array.element, 0));
        let store = StmtKind::Store(array, Expr::variable(index, Scalar::U64, place), none);
        let bounds = [0, len, 1].map(|value| literal(Scalar::U64, value));
        let [start, end, step] = bounds;
        let fill = StmtKind::For(index, start, end, step, vec![Stmt::new(store, place)]);
        zeroed.body.insert(0, Stmt::new(fill, place));
    }
    zeroed
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
    match error {
        CheckError::Fault(ir::Fault::Outside { id, at, index, len, .. }) => {
            code.index_error((id, at.place), index, len, &prepared.arguments)
        }
        CheckError::Fault(ir::Fault::Race { array, index, accesses }) => {
            let [(one, did), (two, does)] = &*accesses;
            let known = code.ir.arrays.iter().position(|known| known.name == array);
            let element = match known {
                Some(known) => code.element(ir::ArrayId(known as u32), index, &prepared.arguments),
                None => index.to_string(),
            };
            said(format!(
                "{}: race on element {element} of `{array}`: work-item {} {} it here, work-item {} {} it at {}, \
                 with no barrier between",
                two.located,
                two.item,
                does.verb(),
                one.item,
                did.verb(),
                one.located
            ))
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
    let parameters = code.sources.iter().zip(&code.ir.parameters).enumerate();
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
    prepared.code.ir.parameters.iter().map(one).collect()
}
