//! Where blocks were made, as lines of Python: kept only while somebody wants them.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;
use usm_nrt::MemInfo;

use crate::fork;
use crate::nrt_library::Runtime;

/// Whether origins are noted.
static WANTED: AtomicBool = AtomicBool::new(false);

/// Where memory was made.
struct Origins {
    /// First byte of a run of a source's memory → (bytes, where it was allocated). The source tells
    /// when it goes.
    runs: BTreeMap<usize, (usize, String)>,
    /// Header of a block → (its place in the order of allocation, where it was made). Blocks go
    /// without telling us, and others come to their addresses; but no two have the same place.
    blocks: BTreeMap<usize, (u64, String)>,
    /// So many blocks may be noted before those that are gone are looked for.
    limit: usize,
}

const LIMIT: usize = 1024;

static ORIGINS: Mutex<Origins> =
    Mutex::new(Origins { runs: BTreeMap::new(), blocks: BTreeMap::new(), limit: LIMIT });

/// No fork happens meanwhile; `work` needs neither the interpreter nor the library.
fn with<T>(work: impl FnOnce(&mut Origins) -> T) -> T {
    let _inside = fork::enter::<{ fork::SOURCE }>();
    work(&mut ORIGINS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Starts or stops noting; what was noted before is forgotten.
pub(crate) fn set_wanted(on: bool) {
    fork::prepare::<{ fork::SOURCE }>();
    WANTED.store(on, Ordering::Relaxed);
    let _gone = with(|origins| {
        origins.limit = LIMIT;
        (std::mem::take(&mut origins.runs), std::mem::take(&mut origins.blocks))
    });
}

/// A source gave `size` bytes at `address`.
#[inline]
pub(crate) fn note(address: usize, size: usize) {
    if WANTED.load(Ordering::Relaxed) {
        // Without the lock held: the stack runs Python.
        let origin = stack().unwrap_or_default();
        with(|origins| origins.runs.insert(address, (size, origin)));
    }
}

/// They are about to be freed.
#[inline]
pub(crate) fn forget(address: usize) {
    if WANTED.load(Ordering::Relaxed) {
        let _gone = with(|origins| origins.runs.remove(&address));
    }
}

/// A block was made for Python.
pub(crate) fn note_block(block: *const MemInfo, runtime: &Runtime) {
    if !WANTED.load(Ordering::Relaxed) {
        return;
    }
    let (sequence, origin) = (runtime.sequence(block), stack().unwrap_or_default());
    let many = with(|origins| {
        origins.blocks.insert(block as usize, (sequence, origin));
        (origins.blocks.len() > origins.limit).then(|| std::mem::take(&mut origins.blocks))
    });
    let Some(mut noted) = many else { return };
    // The library is asked without the lock held: it has locks too.
    noted.retain(|&address, (sequence, _)| {
        runtime.sequence(std::ptr::without_provenance(address)) == *sequence
    });
    with(|origins| {
        let newer = std::mem::replace(&mut origins.blocks, noted);
        origins.blocks.extend(newer);
        origins.limit = LIMIT.max(2 * origins.blocks.len());
    });
}

/// How many origins are kept.
#[pyfunction]
pub(crate) fn _nrt_origins() -> usize {
    with(|origins| origins.runs.len() + origins.blocks.len())
}

/// Where a block in the report of leaks was made.
pub(crate) fn of(block: usize, sequence: u64, data: usize) -> Option<String> {
    with(|origins| {
        let noted = origins.blocks.get(&block).filter(|(noted, _)| *noted == sequence);
        if let Some((_, origin)) = noted {
            return Some(origin.clone());
        }
        let run_of = |address: usize| {
            let (start, (size, origin)) = origins.runs.range(..=address).next_back()?;
            (address - start < *size).then(|| origin.clone())
        };
        run_of(block).or_else(|| run_of(data))
    })
}

/// The Python stack of this thread, outermost call first; `None` on a thread that runs without the
/// interpreter. Such a thread must not ask for it: the one that has it may be waiting for this one.
fn stack() -> Option<String> {
    if !has_interpreter() {
        return None;
    }
    Python::try_attach(|py| {
        // The allocation may happen while an exception is on its way.
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

/// `PyGILState_Check`, which the stable interface lacks although every interpreter has it.
pub(crate) fn has_interpreter() -> bool {
    static CHECK: OnceLock<Option<unsafe extern "C" fn() -> c_int>> = OnceLock::new();
    let check = CHECK.get_or_init(|| {
        #[cfg(unix)]
        {
            let this = libloading::os::unix::Library::this();
            // SAFETY: the documented type of that function.
            unsafe { this.get(b"PyGILState_Check\0") }.ok().map(|symbol| *symbol)
        }
        #[cfg(not(unix))]
        None
    });
    // SAFETY: may be called on any thread.
    check.is_some_and(|check| unsafe { check() } != 0)
}
