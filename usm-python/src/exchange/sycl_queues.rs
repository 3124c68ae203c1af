//! A cache from dpctl objects to the queues that they mean: unwrapping an object takes a hundred
//! times as long as a lookup here.
//!
//! A table of fixed size would make programs with one queue too many pay at every import. So an
//! object stays as long as the program has it. Whenever the table has doubled, objects that only
//! the table holds are released.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::device::runtime::Stream;

#[derive(Default)]
struct QueueCache {
    /// By address, which no other object has while the entry holds this one.
    entries: HashMap<usize, Entry>,
    /// Number of entries at which the table is cleaned.
    limit: usize,
}

struct Entry {
    object: Py<PyAny>,
    stream: Arc<Stream>,
}

impl Entry {
    /// Whether only the table holds the object.
    fn is_forgotten(&self, _: Python<'_>) -> bool {
        let of_stream = self.stream.foreign.get().is_some_and(|foreign| foreign.is(&self.object));
        let ours = 1 + isize::from(of_stream);
        // SAFETY: an object that the entry holds, with the interpreter attached.
        let references = unsafe { ffi::Py_REFCNT(self.object.as_ptr()) };
        references == ours && !(of_stream && Arc::strong_count(&self.stream) > 1)
    }
}

/// Number of entries below which nothing is released.
const FEW: usize = 16;

fn table() -> &'static Mutex<QueueCache> {
    static SEEN: OnceLock<Mutex<QueueCache>> = OnceLock::new();
    SEEN.get_or_init(Mutex::default)
}

/// The queue of an object, if it is cached.
pub(crate) fn cached_queue(value: &Bound<'_, PyAny>) -> Option<Arc<Stream>> {
    let cache = table().lock().unwrap_or_else(PoisonError::into_inner);
    cache.entries.get(&(value.as_ptr() as usize)).map(|entry| Arc::clone(&entry.stream))
}

/// Caches the queue of an object, which never changes.
pub(crate) fn remember(value: &Bound<'_, PyAny>, stream: &Arc<Stream>) {
    let py = value.py();
    let mut cache = table().lock().unwrap_or_else(PoisonError::into_inner);
    let mut dropped_entries = Vec::new();
    if cache.entries.len() >= cache.limit.max(FEW) {
        let old = std::mem::take(&mut cache.entries);
        let (stale, live): (Vec<_>, Vec<_>) = old.into_iter().partition(|(_, entry)| entry.is_forgotten(py));
        cache.entries.extend(live);
        cache.limit = 2 * cache.entries.len();
        dropped_entries = stale;
    }
    let entry = Entry { object: value.clone().unbind(), stream: Arc::clone(stream) };
    cache.entries.insert(value.as_ptr() as usize, entry);
    drop(cache);
    // Their destructors may re-enter this module.
    drop(dropped_entries);
}
