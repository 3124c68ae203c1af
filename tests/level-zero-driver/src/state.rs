//! The driver's whole state behind one lock.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::ffi::CString;

use level_zero_sys::*;

use crate::command::Command;
use crate::fault::Faults;
use crate::kernel::{Kernel, Module};
use crate::memory::Allocation;
use crate::sync::{Mutex, MutexGuard};

/// The result of a call, before it becomes a code.
pub(crate) type Answer<T = ()> = Result<T, ze_result_t>;

/// A handle is a number that is never reused, so that a destroyed object is recognised.
#[derive(Debug)]
pub(crate) struct State {
    next: usize,
    pub(crate) faults: Faults,
    pub(crate) lazy: bool,
    /// Whether unordered lists run the newest ready command first.
    pub(crate) reorder: bool,
    /// Whether counting events are supported.
    counting: bool,
    /// The number of objects destroyed, freed or reset while an incomplete command referred to
    /// them, and of events used by a command of another context.
    pub(crate) misuses: u64,
    pub(crate) devices: Vec<usize>,
    pub(crate) contexts: BTreeSet<usize>,
    /// The context of each list, pool and event ever created. Numbers are never reused.
    pub(crate) owners: BTreeMap<usize, usize>,
    pub(crate) allocations: BTreeMap<usize, Allocation>,
    pub(crate) queues: BTreeMap<usize, VecDeque<Command>>,
    pub(crate) lists: BTreeMap<usize, List>,
    pub(crate) pools: BTreeMap<usize, Pool>,
    /// Whether each event is signalled.
    pub(crate) events: BTreeMap<usize, bool>,
    /// For each counting event, the entry in `events` of its last signal.
    pub(crate) counters: BTreeMap<usize, Option<usize>>,
    /// Whether each fence is signalled.
    pub(crate) fences: BTreeMap<usize, bool>,
    pub(crate) modules: BTreeMap<usize, Module>,
    /// The logs of builds.
    pub(crate) logs: BTreeMap<usize, CString>,
    pub(crate) kernels: BTreeMap<usize, Kernel>,
}

/// A command list. The queue of an immediate one has the same number.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) immediate: bool,
    pub(crate) in_order: bool,
    pub(crate) closed: bool,
    pub(crate) commands: Vec<Command>,
}

/// An event pool and its used slots.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) slots: Vec<Option<usize>>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

impl State {
    fn new() -> Self {
        let count = std::env::var("USM_ZE_DEVICES").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
        let faults = std::env::var("USM_ZE_FAULTS").unwrap_or_default();
        let faults = Faults::parse(&faults).unwrap_or_else(|part| panic!("USM_ZE_FAULTS: {part}"));
        Self {
            next: DRIVER + 0x1000,
            faults,
            lazy: is_set("USM_ZE_LAZY"),
            reorder: is_set("USM_ZE_REORDER"),
            counting: is_set("USM_ZE_COUNTING"),
            misuses: 0,
            devices: (1..=count).map(|index| DRIVER + 16 * index).collect(),
            contexts: BTreeSet::new(),
            owners: BTreeMap::new(),
            allocations: BTreeMap::new(),
            queues: BTreeMap::new(),
            lists: BTreeMap::new(),
            pools: BTreeMap::new(),
            events: BTreeMap::new(),
            counters: BTreeMap::new(),
            fences: BTreeMap::new(),
            modules: BTreeMap::new(),
            logs: BTreeMap::new(),
            kernels: BTreeMap::new(),
        }
    }

    /// Refuses counting events where they are not supported.
    pub(crate) fn has_counting(&self) -> Answer {
        if self.counting { Ok(()) } else { Err(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE) }
    }

    /// Refuses and counts an operation on an object that a command in flight refers to.
    pub(crate) fn unless(&mut self, in_use: bool) -> Answer {
        self.misuses += u64::from(in_use);
        if in_use { Err(ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE) } else { Ok(()) }
    }

    /// Whether a command in flight waits for the event or signals it.
    pub(crate) fn awaits(&self, event: usize) -> bool {
        let refers = |command: &Command| command.waits.contains(&event) || command.signal == Some(event);
        self.queues.values().flatten().any(refers)
    }

    /// The value of a counter; `None` for an unknown name.
    pub(crate) fn count(&self, what: &str) -> Option<u64> {
        Some(match what {
            "allocations" => self.allocations.len() as u64,
            "contexts" => self.contexts.len() as u64,
            "events" => {
                let places = self.pools.values().flat_map(|pool| &pool.slots);
                (places.flatten().count() + self.counters.len()) as u64
            }
            "lists" => self.lists.len() as u64,
            "pools" => self.pools.len() as u64,
            "commands" => self.queues.values().map(VecDeque::len).sum::<usize>() as u64,
            "modules" => self.modules.len() as u64,
            "kernels" => self.kernels.len() as u64,
            "misuses" => self.misuses,
            _ => return None,
        })
    }

    /// A number for a new object.
    pub(crate) fn number(&mut self) -> usize {
        self.next += 16;
        self.next
    }

    /// The device of a handle.
    pub(crate) fn device(&self, handle: ze_device_handle_t) -> Answer<usize> {
        let number = number(handle.0)?;
        self.devices.contains(&number).then_some(number).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)
    }

    /// The context of a handle.
    pub(crate) fn context(&self, handle: ze_context_handle_t) -> Answer<usize> {
        let number = number(handle.0)?;
        self.contexts.contains(&number).then_some(number).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)
    }
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value != "0")
}

/// The driver's own number. The devices' numbers follow it.
pub(crate) const DRIVER: usize = 0x5a00_0000;

/// A handle as a number. Null is a separate error.
pub(crate) fn number(handle: *mut core::ffi::c_void) -> Answer<usize> {
    if handle.is_null() { Err(ZE_RESULT_ERROR_INVALID_NULL_HANDLE) } else { Ok(handle as usize) }
}

/// A number as a handle.
pub(crate) fn handle(number: usize) -> *mut core::ffi::c_void {
    core::ptr::without_provenance_mut(number)
}

/// The object of a handle, or the error for an unknown handle.
pub(crate) fn find<T>(objects: &mut BTreeMap<usize, T>, handle: *mut core::ffi::c_void) -> Answer<&mut T> {
    objects.get_mut(&number(handle)?).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)
}

/// Removes the object of a handle.
pub(crate) fn take<T>(objects: &mut BTreeMap<usize, T>, handle: *mut core::ffi::c_void) -> Answer<T> {
    objects.remove(&number(handle)?).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)
}

/// The state, made on first use.
pub(crate) fn lock() -> MutexGuard<'static, Option<State>> {
    let mut guard = STATE.lock();
    if guard.is_none() {
        *guard = Some(State::new());
    }
    guard
}

/// Returns the planned fault of a function, or runs its body.
pub(crate) fn enter(function: &str, body: impl FnOnce(&mut State) -> Answer<ze_result_t>) -> ze_result_t {
    let mut guard = lock();
    let Some(state) = guard.as_mut() else { return ZE_RESULT_ERROR_UNINITIALIZED };
    if let Some(fault) = state.faults.of(function) {
        return fault;
    }
    body(state).unwrap_or_else(|error| error)
}
