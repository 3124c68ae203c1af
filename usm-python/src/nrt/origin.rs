//! The origins of blocks as lines of Python, recorded on request only.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use usm_core::ends::ForkOnce;
use usm_nrt::MemInfo;

use crate::nrt::library::Runtime;
use crate::process::{fork, symbol};

/// Whether origins are recorded.
static WANTED: AtomicBool = AtomicBool::new(false);

/// The origins of memory.
struct Origins {
    /// First byte of a range of a source's memory → (bytes, origin). The source reports when it is
    /// freed.
    runs: BTreeMap<usize, (usize, String)>,
    /// Header of a block → (its position in the order of allocation, origin). Blocks are freed
    /// without a report, and their addresses are reused; but no two blocks have the same position.
    blocks: BTreeMap<usize, (u64, String)>,
    /// Number of recorded blocks at which freed ones are removed.
    limit: usize,
}

const LIMIT: usize = 1024;

static ORIGINS: Mutex<Origins> =
    Mutex::new(Origins { runs: BTreeMap::new(), blocks: BTreeMap::new(), limit: LIMIT });

/// Runs `work` while no fork happens. `work` needs neither the interpreter nor the library.
fn with<T>(work: impl FnOnce(&mut Origins) -> T) -> T {
    let _inside = fork::enter::<{ fork::SOURCE }>();
    work(&mut ORIGINS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Starts or stops recording. Earlier records are cleared.
pub(crate) fn set_wanted(on: bool) {
    fork::prepare::<{ fork::SOURCE }>();
    WANTED.store(on, Ordering::Relaxed);
    let _gone = with(|origins| {
        origins.limit = LIMIT;
        (std::mem::take(&mut origins.runs), std::mem::take(&mut origins.blocks))
    });
}

/// Records that a source returned `size` bytes at `address`.
#[inline]
pub(crate) fn note(address: usize, size: usize) {
    if WANTED.load(Ordering::Relaxed) {
        // Without the lock: the stack trace runs Python.
        let origin = stack().unwrap_or_default();
        with(|origins| origins.runs.insert(address, (size, origin)));
    }
}

/// Removes the record of memory that is about to be freed.
#[inline]
pub(crate) fn forget(address: usize) {
    if WANTED.load(Ordering::Relaxed) {
        let _gone = with(|origins| origins.runs.remove(&address));
    }
}

/// Records that a block was made for Python.
pub(crate) fn note_block(block: *const MemInfo, runtime: &Runtime) {
    if !WANTED.load(Ordering::Relaxed) {
        return;
    }
    let (sequence, origin) = (runtime.sequence(block), stack().unwrap_or_default());
    let many = with(|origins| {
        origins.blocks.insert(block as usize, (sequence, origin));
        (origins.blocks.len() > origins.limit).then(|| std::mem::take(&mut origins.blocks))
    });
    let Some(mut live_blocks) = many else { return };
    // The library is called without the lock: it has locks too.
    live_blocks.retain(|&address, (sequence, _)| {
        runtime.sequence(std::ptr::without_provenance(address)) == *sequence
    });
    with(|origins| {
        let newer = std::mem::replace(&mut origins.blocks, live_blocks);
        origins.blocks.extend(newer);
        origins.limit = LIMIT.max(2 * origins.blocks.len());
    });
}

/// Number of recorded origins.
#[pyfunction]
pub(crate) fn _nrt_origins() -> usize {
    with(|origins| origins.runs.len() + origins.blocks.len())
}

/// The origin of a block in the report of leaks.
pub(crate) fn of(block: usize, sequence: u64, data: usize) -> Option<String> {
    with(|origins| {
        let entry = origins.blocks.get(&block).filter(|(number, _)| *number == sequence);
        if let Some((_, origin)) = entry {
            return Some(origin.clone());
        }
        let run_of = |address: usize| {
            let (start, (size, origin)) = origins.runs.range(..=address).next_back()?;
            (address - start < *size).then(|| origin.clone())
        };
        run_of(block).or_else(|| run_of(data))
    })
}

/// The Python stack of this thread, outermost call first. `None` on a thread without the
/// interpreter, which must not wait for it: the thread that holds it may be waiting for this one.
fn stack() -> Option<String> {
    if !has_interpreter() {
        return None;
    }
    Python::try_attach(|py| {
        // The allocation may happen while an exception is set.
        let pending = PyErr::take(py);
        let lines = py
            .import("traceback")
            .and_then(|traceback| traceback.call_method0("format_stack"))
            .and_then(|lines| lines.extract::<Vec<String>>());
        if let Some(pending) = pending {
            pending.restore(py);
        }
        lines.ok().map(|lines| lines.concat())
    })?
}

/// `PyGILState_Check`, which every interpreter has but the stable interface lacks.
pub(crate) fn has_interpreter() -> bool {
    static CHECK: ForkOnce<Option<unsafe extern "C" fn() -> c_int>> = ForkOnce::new();
    // SAFETY: the documented type of this function.
    let check = CHECK.get_or_make(|| unsafe { symbol::function(&[c"PyGILState_Check"]) });
    // SAFETY: any thread may call it.
    check.is_some_and(|check| unsafe { check() } != 0)
}
