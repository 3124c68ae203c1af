//! Where blocks were made, as lines of Python: kept only while somebody wants them.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;

/// Whether origins are noted.
static WANTED: AtomicBool = AtomicBool::new(false);

/// First byte of a run of memory → (bytes, where it was allocated).
static ORIGINS: Mutex<BTreeMap<usize, (usize, String)>> = Mutex::new(BTreeMap::new());

/// Starts or stops noting; what was noted before is forgotten.
pub(crate) fn set_wanted(on: bool) {
    WANTED.store(on, Ordering::Relaxed);
    let gone = std::mem::take(&mut *ORIGINS.lock().unwrap_or_else(PoisonError::into_inner));
    drop(gone);
}

/// `size` bytes were allocated at `address`.
#[inline]
pub(crate) fn note(address: usize, size: usize) {
    if WANTED.load(Ordering::Relaxed) {
        note_stack(address, size);
    }
}

/// They are about to be freed.
#[inline]
pub(crate) fn forget(address: usize) {
    if WANTED.load(Ordering::Relaxed) {
        let gone = ORIGINS.lock().unwrap_or_else(PoisonError::into_inner).remove(&address);
        drop(gone);
    }
}

/// Where the memory that holds `address` was allocated.
pub(crate) fn of(address: usize) -> Option<String> {
    let origins = ORIGINS.lock().unwrap_or_else(PoisonError::into_inner);
    let (start, (size, origin)) = origins.range(..=address).next_back()?;
    (address - start < *size).then(|| origin.clone())
}

#[cold]
fn note_stack(address: usize, size: usize) {
    // Without the lock held: the stack runs Python.
    let origin = stack().unwrap_or_default();
    ORIGINS.lock().unwrap_or_else(PoisonError::into_inner).insert(address, (size, origin));
}

/// The Python stack of this thread, outermost call first; `None` on a thread that runs without the interpreter. Such a
/// thread must not ask for it: the one that has it may be waiting for this one.
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
