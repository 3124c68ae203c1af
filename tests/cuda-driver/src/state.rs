//! The driver's whole state behind one lock.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use core::fmt::{Arguments, Write as _};
use std::sync::LazyLock;
use std::time::Instant;

use crate::code::{Answer, INVALID_HANDLE};
use crate::context::{Context, Device};
use crate::fault::Faults;
use crate::kernel::{Function, Module};
use crate::memory::{Allocation, Spaces};
use crate::pool::Pool;
use crate::stream::{Event, Stream};
use crate::sync::{Mutex, MutexGuard};

/// A handle is a number that is never reused, so that a destroyed object is recognised.
#[derive(Debug)]
pub(crate) struct State {
    next: usize,
    pub(crate) initialized: bool,
    pub(crate) settings: Settings,
    pub(crate) faults: Faults,
    pub(crate) devices: Vec<Device>,
    pub(crate) contexts: BTreeMap<usize, Context>,
    pub(crate) spaces: Spaces,
    pub(crate) allocations: BTreeMap<usize, Allocation>,
    pub(crate) pools: BTreeMap<usize, Pool>,
    pub(crate) streams: BTreeMap<usize, Stream>,
    pub(crate) events: BTreeMap<usize, Event>,
    pub(crate) modules: BTreeMap<usize, Module>,
    pub(crate) functions: BTreeMap<usize, Function>,
    /// Numbers of the commands that are not complete.
    pub(crate) unfinished: BTreeSet<u64>,
    /// When the records of timed events were complete.
    pub(crate) times: BTreeMap<u64, Option<Instant>>,
    /// Under `late`: whether one operation may start.
    pub(crate) asked: bool,
    /// Threads that wait inside a call.
    pub(crate) waiting: usize,
    /// The number of misuses.
    misuses: u64,
    /// The log of calls, one a line, while it is on.
    pub(crate) log: Option<String>,
    /// The objects of the last call, for the log.
    pub(crate) about: String,
}

/// The driver's settings.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Bytes of each kind of memory of a device.
    pub(crate) memory: usize,
    /// `late`: work starts when its state is queried, one operation for each query, the newest
    /// ready one first.
    pub(crate) late: bool,
    /// `turns`: instructions that a thread executes before the next thread of its block continues.
    pub(crate) turns: Option<u64>,
    /// `hold`: no work starts.
    pub(crate) hold: bool,
    /// `frees-wait`: `cuMemFree` waits for all work of the context.
    pub(crate) frees_wait: bool,
    /// Host and device may access managed memory concurrently.
    pub(crate) concurrent: bool,
    /// Calls require a current context, even if their stream or event determines one.
    pub(crate) current: bool,
}

impl Settings {
    /// Parses `late`, `hold`, `frees-wait`, `exclusive`, `current`, `turns=N`, `memory=BYTES`,
    /// `devices=N`. The error is the first other word. The number of devices is returned beside the
    /// settings.
    pub(crate) fn parse(text: &str) -> Result<(Self, usize), &str> {
        let mut settings = Self {
            memory: 1 << 28,
            late: false,
            turns: None,
            hold: false,
            frees_wait: false,
            concurrent: true,
            current: false,
        };
        let mut devices = 1;
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                None if part == "late" => settings.late = true,
                None if part == "hold" => settings.hold = true,
                None if part == "frees-wait" => settings.frees_wait = true,
                None if part == "exclusive" => settings.concurrent = false,
                None if part == "current" => settings.current = true,
                Some(("turns", count)) => {
                    settings.turns = Some(count.parse().ok().filter(|count| *count > 0).ok_or(part)?);
                }
                Some(("memory", bytes)) => settings.memory = bytes.parse().map_err(|_| part)?,
                Some(("devices", count)) => devices = count.parse().map_err(|_| part)?,
                _ => return Err(part),
            }
        }
        Ok((settings, devices))
    }
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(|| Mutex::new(State::new()));

impl State {
    fn new() -> Self {
        let read = |name| std::env::var(name).unwrap_or_default();
        let (settings, faults) = (read("USM_CUDA_SETTINGS"), read("USM_CUDA_FAULTS"));
        let (settings, devices) =
            Settings::parse(&settings).unwrap_or_else(|part| panic!("USM_CUDA_SETTINGS: {part}"));
        Self {
            next: 0x0CDA_0000,
            initialized: false,
            settings,
            faults: Faults::parse(&faults).unwrap_or_else(|part| panic!("USM_CUDA_FAULTS: {part}")),
            devices: (0..devices).map(|_| Device::default()).collect(),
            contexts: BTreeMap::new(),
            spaces: Spaces::new().expect("address space"),
            allocations: BTreeMap::new(),
            pools: BTreeMap::new(),
            streams: BTreeMap::new(),
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            unfinished: BTreeSet::new(),
            times: BTreeMap::new(),
            asked: false,
            waiting: 0,
            misuses: 0,
            log: None,
            about: String::new(),
        }
    }

    /// A new number, for a handle or a command.
    pub(crate) fn number(&mut self) -> usize {
        self.next += 16;
        self.next
    }

    /// Counts a misuse and prints it.
    pub(crate) fn misuse(&mut self, what: Arguments<'_>) {
        self.misuses += 1;
        eprintln!("usm-cuda-driver: {what}");
    }

    /// Records the objects of the call for the log.
    pub(crate) fn note(&mut self, about: Arguments<'_>) {
        if self.log.is_some() {
            let _ = write!(self.about, " {about}");
        }
    }

    /// The value of a counter; `None` for an unknown name.
    pub(crate) fn count(&self, what: &str) -> Option<u64> {
        if let Some((what, device)) = what.split_once('@') {
            let device: usize = device.parse().ok()?;
            let of = |context: &usize| self.contexts.get(context).is_some_and(|found| found.device == device);
            return Some(match what {
                "allocations" => self.allocations.values().filter(|live| live.device == device).count(),
                "pools" => self.pools.values().filter(|pool| pool.device == device).count(),
                "reserved" => self.pooled(device),
                "events" => self.events.values().filter(|event| of(&event.context)).count(),
                "modules" => self.modules.values().filter(|module| of(&module.context)).count(),
                _ => return None,
            } as u64);
        }
        Some(match what {
            "devices" => self.devices.len() as u64,
            "allocations" => self.allocations.len() as u64,
            "contexts" => self.contexts.len() as u64,
            // Two streams of each context are its default streams.
            "streams" => (self.streams.len() - 2 * self.contexts.len()) as u64,
            "events" => self.events.len() as u64,
            "modules" => self.modules.len() as u64,
            "commands" => self.unfinished.len() as u64,
            "misuses" => self.misuses,
            _ => return None,
        })
    }
}

/// The object of a handle, or the error for an unknown handle.
pub(crate) fn find<T>(objects: &mut BTreeMap<usize, T>, handle: usize) -> Answer<&mut T> {
    objects.get_mut(&handle).ok_or(INVALID_HANDLE)
}

/// The state, made on first use.
pub(crate) fn lock() -> MutexGuard<'static, State> {
    STATE.lock()
}
