//! Runs of machine code over the parts of a launch, on one thread or several.

use std::ffi::c_void;
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use usm_core::threads::{self, Shares};
use usm_kernel_ir::emit::checked;

use super::{Groups, HostCode, Pause, RunArguments};

/// The interval at which a launch asks its [`Watch`].
const SLICE: Duration = Duration::from_millis(20);

/// The iterations of loops between two questions of the code, which look at the time.
const ITERATIONS: u64 = 1 << 16;

/// What a launch asks, on the calling thread, while it runs.
pub trait Watch {
    /// Whether the launch may go on. Asked every 20 ms, between parts and in long loops. Meanwhile
    /// no other thread runs the launch. `is_forked` says whether this process is now a child of the
    /// one that began.
    fn may_continue(&mut self, is_forked: &dyn Fn() -> bool) -> bool;
}

/// A launch that nobody interrupts.
impl Watch for () {
    fn may_continue(&mut self, is_forked: &dyn Fn() -> bool) -> bool {
        !is_forked()
    }
}

/// A launch of machine code.
#[derive(Debug)]
pub struct HostLaunch<'l> {
    /// The code.
    pub code: &'l HostCode,
    /// Addresses of the arrays among the parameters, in their order.
    pub addresses: &'l [usize],
    /// Whether the code checks indices.
    pub checks: bool,
    /// Bits of the scalars, in the order of the kernel's values.
    pub values: &'l [u64],
    /// The length of each array of the kernel, in elements.
    pub lengths: &'l [u64],
    /// The range.
    pub groups: Groups,
}

/// Why a launch on the host did not run to its end.
#[derive(Debug)]
pub enum RunError {
    /// `USM_NUM_THREADS` is no number of threads; nothing ran.
    Setting(usm_core::Error),
    /// There is no memory for the local arrays of a group: the bytes, in words.
    Memory(String),
}

impl HostLaunch<'_> {
    /// Runs the launch and returns when no thread works on it any more: with an index outside that
    /// code with checks recorded, with zeros if there was none. `may_be_divided` is asked once,
    /// when other threads are worth waking.
    ///
    /// # Errors
    /// [`RunError`].
    ///
    /// # Safety
    /// Until this returns the arrays are live, have the given lengths, and no other code uses them
    /// in conflict. All indices of the launch are inside, except those that the code checks. If
    /// `may_be_divided` returns true, no two items race.
    pub unsafe fn run(
        &self,
        watch: &mut dyn Watch,
        may_be_divided: impl FnOnce() -> bool,
    ) -> Result<[u32; checked::WORDS], RunError> {
        let (failure, record) = (Mutex::new(None), Mutex::new([0; checked::WORDS]));
        let pause = Pause { ask: HostCall::ask, rounds: ITERATIONS };
        let (start, shares) = (Instant::now(), core::ptr::null());
        let mut call = HostCall { pause, start, shares, goes_on: true, watch };
        let mut worker = Worker::new(self);
        let run_all = |parts, shares: &Shares| {
            call.shares = shares;
            if let Err(error) = worker.run(parts, &mut call) {
                call.goes_on = false;
                *lock(&failure) = Some(error);
            }
            if call.goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let others = |shares: &Shares| {
            let mut worker = Worker::new(self);
            let mut beside = Beside { pause: Pause { ask: Beside::ask, rounds: ITERATIONS }, shares };
            shares.for_each(|parts| {
                if let Err(error) = worker.run(parts, &mut beside) {
                    *lock(&failure) = Some(error);
                    shares.close();
                }
            });
            if worker.record[0] != 0 {
                *lock(&record) = *worker.record;
            }
        };
        let outcome = threads::divide_if(self.groups.count(), None, may_be_divided, run_all, others);
        outcome.map_err(RunError::Setting)?;
        if let Some(error) = lock(&failure).take() {
            return Err(RunError::Memory(error));
        }
        let other = *lock(&record);
        Ok(if worker.record[0] == 0 { other } else { *worker.record })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread of a launch.
struct Worker<'r> {
    launch: &'r HostLaunch<'r>,
    arrays: Vec<*mut c_void>,
    /// Memory for groups, from the first run on.
    scratch: Option<Vec<u8>>,
    /// The words in which code that checks records an index outside. In a box, whose address the
    /// code has.
    record: Box<[u32; checked::WORDS]>,
}

impl<'r> Worker<'r> {
    fn new(launch: &'r HostLaunch<'r>) -> Self {
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
    fn run(&mut self, mut parts: Range<u64>, state: &mut impl State) -> Result<(), String> {
        let HostLaunch { code, values, lengths, groups, .. } = *self.launch;
        while state.may_continue() {
            let Some(sizes) = groups.take_run(&mut parts) else { break };
            let arguments = RunArguments { arrays: &self.arrays, values, lengths, sizes };
            if self.scratch.is_none() {
                self.scratch = Some(code.scratch(&arguments)?);
            }
            let scratch = self.scratch.as_deref_mut().unwrap_or_default();
            let pause = core::ptr::from_mut(state).cast();
            // SAFETY: the promise of the caller of `HostLaunch::run` for the arrays; other threads
            // run other parts, which do not race. `state` begins with a pause, and nothing else
            // uses it meanwhile.
            unsafe { code.run(&arguments, scratch, pause) };
            if self.record[0] != 0 {
                // An index was outside: no other part has to begin.
                state.close();
                break;
            }
        }
        Ok(())
    }
}

/// What a thread asks between runs and in long loops: a structure that begins with a [`Pause`].
trait State {
    fn may_continue(&mut self) -> bool;

    /// Lets no thread begin another part.
    fn close(&mut self);
}

/// The state of another thread of a launch.
#[repr(C)]
struct Beside<'w> {
    pause: Pause,
    shares: &'w Shares,
}

impl State for Beside<'_> {
    fn may_continue(&mut self) -> bool {
        self.shares.may_continue()
    }

    fn close(&mut self) {
        self.shares.close();
    }
}

impl Beside<'_> {
    /// Answers the code.
    unsafe extern "C" fn ask(pause: *mut Pause) -> u64 {
        // SAFETY: as for [`HostCall::ask`].
        let beside = unsafe { &mut *pause.cast::<Beside<'_>>() };
        if beside.may_continue() { ITERATIONS } else { 0 }
    }
}

/// The state of a launch on the calling thread, which long loops of the code ask whether they may
/// go on.
#[repr(C)]
struct HostCall<'w> {
    pause: Pause,
    start: Instant,
    /// Null before the first part. The calls of the code that ask are inside the work that these
    /// are the shares of.
    shares: *const Shares,
    goes_on: bool,
    watch: &'w mut dyn Watch,
}

impl HostCall<'_> {
    /// Answers the code.
    unsafe extern "C" fn ask(pause: *mut Pause) -> u64 {
        // SAFETY: the code passes the address that it was given, of a whole structure that nothing
        // else uses while the code runs.
        let call = unsafe { &mut *pause.cast::<HostCall<'_>>() };
        if call.may_continue() { ITERATIONS } else { 0 }
    }
}

impl State for HostCall<'_> {
    /// Asks the watch every [`SLICE`], while no other thread runs the launch.
    fn may_continue(&mut self) -> bool {
        if self.start.elapsed() < SLICE || !self.goes_on {
            return self.goes_on;
        }
        // SAFETY: null, or the shares of the work that this thread is in.
        let shares = unsafe { self.shares.as_ref() };
        let is_forked = || shares.is_some_and(Shares::is_forked);
        let mut ask = || self.watch.may_continue(&is_forked);
        self.goes_on = match shares {
            Some(shares) => shares.while_others_wait(&mut ask),
            None => ask(),
        };
        self.start = Instant::now();
        if !self.goes_on {
            self.close();
        }
        self.goes_on
    }

    fn close(&mut self) {
        self.goes_on = false;
        // SAFETY: as above.
        if let Some(shares) = unsafe { self.shares.as_ref() } {
            shares.close();
        }
    }
}
