//! The origin of each allocation in a context with a history: the queue and, on request, the Python
//! lines.
//!
//! The core's history contains neither. A note is written right after each request, and found again
//! by its address and time. The block was live at that time, so the last allocation at the address
//! before the note is the right one. The notes of live blocks stay while the blocks live, however
//! many records follow.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use pyo3::prelude::*;
use usm_core::Context;
use usm_core::backend::Dyn;
use usm_core::history::{Operation, Record};
use usm_plan::usm_pool::snapshot::{Frame, Origin};

use crate::process::once::name;

/// Whether any context keeps a history. Usually none does, and a request then costs one load.
static ACTIVE: AtomicBool = AtomicBool::new(false);

/// Whether notes contain lines.
static LINES: AtomicBool = AtomicBool::new(false);

/// The notes of each context with a history, by its id.
static NOTES: Mutex<Option<HashMap<u64, Notes>>> = Mutex::new(None);

/// Maximum number of calls in a note.
const DEPTH: usize = 16;

/// The notes of a context.
#[derive(Clone, Debug, Default)]
struct Notes {
    capacity: usize,
    /// The last ones, oldest first.
    notes: VecDeque<Arc<Note>>,
    /// Those of live blocks, in the order of the requests.
    live: BTreeMap<u64, Arc<Note>>,
}

/// Number of the notes of live blocks so far, of all contexts: no two have the same.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// The note of a live block, which its owner holds.
#[derive(Debug, Default)]
pub(crate) struct NoteHandle {
    context: u64,
    /// From 1; 0 if there is no note.
    number: u64,
}

impl Drop for NoteHandle {
    fn drop(&mut self) {
        if self.number == 0 {
            return;
        }
        let note = with_notes(|all| all.as_mut()?.get_mut(&self.context)?.live.remove(&self.number));
        // After the lock, because it frees memory of its own.
        drop(note);
    }
}

#[derive(Debug)]
struct Note {
    /// 0 for a refused request, as in the history.
    address: usize,
    /// Microseconds since the beginning of 1970, as in the history.
    time: u64,
    origin: Origin,
}

/// Runs a few instructions on the notes, and never during a fork: threads without the interpreter
/// write notes too.
fn with_notes<R>(call: impl FnOnce(&mut Option<HashMap<u64, Notes>>) -> R) -> R {
    usm_core::ends::delay_forks(|| call(&mut NOTES.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Keeps the last `capacity` notes of a context; 0 keeps none.
fn keep(context: u64, capacity: usize) {
    with_notes(|all| {
        let all = all.get_or_insert_default();
        if capacity == 0 {
            all.remove(&context);
        } else {
            let notes = all.entry(context).or_default();
            notes.capacity = capacity;
            let surplus = notes.notes.len().saturating_sub(capacity);
            notes.notes.drain(..surplus);
        }
        ACTIVE.store(!all.is_empty(), Ordering::Relaxed);
    });
}

/// Number of records that a new context keeps: the last argument of `history`.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// Sets the number of records that a new context keeps.
pub(crate) fn keep_in_new_contexts(records: usize) {
    KEPT.store(records, Ordering::Relaxed);
}

/// Starts the history of a new context, if one is kept.
pub(crate) fn begin_history(context: &Context<Dyn>) {
    let limit = KEPT.load(Ordering::Relaxed);
    if limit > 0 {
        keep_history(context, limit);
    }
}

/// Keeps the last `records` of a context, with their origins.
pub(crate) fn keep_history(context: &Context<Dyn>, records: usize) {
    keep(context.id(), records);
    context.keep_history(records);
}

/// Turns the recording of lines on or off.
pub(crate) fn keep_lines(keep: bool) {
    LINES.store(keep, Ordering::Relaxed);
}

/// Records the origin of memory at `address`, or of a refused request (0): the queue by its number
/// and context. The owner of the memory holds the result.
#[inline]
pub(crate) fn note(queue: (u64, &Context<Dyn>), address: usize) -> NoteHandle {
    match ACTIVE.load(Ordering::Relaxed) {
        true => write(queue, address),
        false => NoteHandle::default(),
    }
}

#[cold]
fn write((queue, context): (u64, &Context<Dyn>), address: usize) -> NoteHandle {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let time = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
    // Before the lock, because this waits for the interpreter.
    let frames = match LINES.load(Ordering::Relaxed) {
        true => Python::attach(frames).unwrap_or_default(),
        false => Vec::new(),
    };
    let note = Arc::new(Note { address, time, origin: Origin { queue, frames } });
    let context = context.id();
    with_notes(|all| {
        let Some(notes) = all.as_mut().and_then(|all| all.get_mut(&context)) else {
            return NoteHandle::default();
        };
        if notes.notes.len() == notes.capacity {
            notes.notes.pop_front();
        }
        notes.notes.push_back(Arc::clone(&note));
        if address == 0 {
            return NoteHandle::default();
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
        notes.live.insert(number, note);
        NoteHandle { context, number }
    })
}

/// The origins of the live blocks of a context, by their addresses.
pub(crate) fn live(context: u64) -> HashMap<usize, Origin> {
    let notes: Vec<Arc<Note>> = with_notes(|all| {
        let notes = all.as_ref().and_then(|all| all.get(&context));
        notes.map_or_else(Vec::new, |list| list.live.values().cloned().collect())
    });
    // The last note of an address is that of the block there now: an earlier owner may not have
    // given up its own yet.
    notes.iter().map(|note| (note.address, note.origin.clone())).collect()
}

/// The Python calls of this thread, innermost first, from the one that called this package.
fn frames(py: Python<'_>) -> PyResult<Vec<Frame>> {
    let mut frames = Vec::new();
    let mut next = py.import(name!(py, "sys"))?.call_method1(name!(py, "_getframe"), (0,))?;
    while !next.is_none() && is_of_package(&next)? {
        next = next.getattr(name!(py, "f_back"))?;
    }
    while !next.is_none() && frames.len() < DEPTH {
        let code = next.getattr(name!(py, "f_code"))?;
        // A line may be unknown: `None`.
        let line = next.getattr(name!(py, "f_lineno"))?.extract().unwrap_or(0);
        let file = code.getattr(name!(py, "co_filename"))?.extract()?;
        let name = code.getattr(name!(py, "co_name"))?.extract()?;
        frames.push(Frame { file, line, name });
        next = next.getattr(name!(py, "f_back"))?;
    }
    Ok(frames)
}

/// Whether a frame runs Python code of this package, which allocates for its caller.
fn is_of_package(frame: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = frame.py();
    let globals = frame.getattr(name!(py, "f_globals"))?;
    let Ok(name) = globals.get_item(name!(py, "__name__")).and_then(|name| name.extract::<String>()) else {
        return Ok(false);
    };
    Ok(name == "usm" || name.starts_with("usm."))
}

/// The origin of each record in a context's history; `None` without a note. A free has the origin
/// of its allocation.
pub(crate) fn of(context: u64, records: &[Record]) -> Vec<Origin> {
    let notes = with_notes(|all| all.as_ref().and_then(|all| all.get(&context)).cloned());
    let mut by_address: HashMap<usize, Vec<&Arc<Note>>> = HashMap::new();
    for note in notes.iter().flat_map(|list| &list.notes) {
        by_address.entry(note.address).or_default().push(note);
    }
    let mut origins = vec![Origin::default(); records.len()];
    for (record, origin) in records.iter().zip(&mut origins).rev() {
        if record.operation == Operation::Free {
            continue;
        }
        let Some(notes) = by_address.get_mut(&record.address) else { continue };
        if let Some(note) = notes.pop_if(|note| note.time >= record.time) {
            *origin = note.origin.clone();
        }
    }
    let mut live: HashMap<usize, usize> = HashMap::new();
    for (index, record) in records.iter().enumerate() {
        match record.operation {
            Operation::Allocate => drop(live.insert(record.address, index)),
            Operation::Free => {
                if let Some(allocation) = live.remove(&record.address) {
                    origins[index] = origins[allocation].clone();
                }
            }
            _ => {}
        }
    }
    origins
}
