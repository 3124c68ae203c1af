//! Objects of dpctl's and the queues that they mean, so that each is unwrapped once: that takes a
//! hundred times as long as finding it here.
//!
//! A table of a fixed size would make programs with one queue more than that pay for every import.
//! So an object stays for as long as the program has it; those that only the table still holds are
//! let go whenever it has doubled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::runtime::Stream;

#[derive(Default)]
struct Seen {
    /// By address, which is no other object's while the entry holds this one.
    entries: HashMap<usize, Entry>,
    /// Entries at which the table is looked through.
    limit: usize,
}

struct Entry {
    object: Py<PyAny>,
    stream: Arc<Stream>,
}

impl Entry {
    /// Whether nothing but the table leads to the object.
    fn is_forgotten(&self, _: Python<'_>) -> bool {
        let of_stream = self.stream.foreign.get().is_some_and(|foreign| foreign.is(&self.object));
        let ours = 1 + isize::from(of_stream);
        // SAFETY: an object that the entry holds; the interpreter is attached.
        let references = unsafe { ffi::Py_REFCNT(self.object.as_ptr()) };
        references == ours && !(of_stream && Arc::strong_count(&self.stream) > 1)
    }
}

/// Entries below which nothing is let go.
const FEW: usize = 16;

fn table() -> &'static Mutex<Seen> {
    static SEEN: OnceLock<Mutex<Seen>> = OnceLock::new();
    SEEN.get_or_init(Mutex::default)
}

/// What the object means, if it was remembered.
pub(crate) fn seen(value: &Bound<'_, PyAny>) -> Option<Arc<Stream>> {
    let seen = table().lock().unwrap_or_else(PoisonError::into_inner);
    seen.entries.get(&(value.as_ptr() as usize)).map(|entry| Arc::clone(&entry.stream))
}

/// Keeps in mind what an object means, which will never mean anything else.
pub(crate) fn remember(value: &Bound<'_, PyAny>, stream: &Arc<Stream>) {
    let py = value.py();
    let mut seen = table().lock().unwrap_or_else(PoisonError::into_inner);
    let mut forgotten = Vec::new();
    if seen.entries.len() >= seen.limit.max(FEW) {
        let old = std::mem::take(&mut seen.entries);
        let (gone, kept): (Vec<_>, Vec<_>) = old.into_iter().partition(|(_, entry)| entry.is_forgotten(py));
        seen.entries.extend(kept);
        seen.limit = 2 * seen.entries.len();
        forgotten = gone;
    }
    let entry = Entry { object: value.clone().unbind(), stream: Arc::clone(stream) };
    seen.entries.insert(value.as_ptr() as usize, entry);
    drop(seen);
    // Their destructors may come back here.
    drop(forgotten);
}
