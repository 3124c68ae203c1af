//! `usm.stats` and `usm.history`.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use usm_core::backend::Dyn;
use usm_core::history::Operation;
use usm_core::{Context, Counters, MemoryType, Stats};
use usm_plan::usm_pool::snapshot::{Frame, Origin};

use crate::device::runtime::{self, Scope};
use crate::storage::origin;
use crate::text::argument;

fn row<'py>(py: Python<'py>, counters: &Counters) -> PyResult<Bound<'py, PyDict>> {
    let Counters { current, peak, total, live, count, .. } = *counters;
    let dict = PyDict::new(py);
    for (name, value) in
        [("current", current), ("peak", peak), ("total", total), ("live", live), ("count", count)]
    {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}

/// Statistics as a dictionary of dictionaries.
pub(crate) fn table<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for memory_type in MemoryType::ALL {
        dict.set_item(memory_type.name(), row(py, stats.of(memory_type))?)?;
    }
    dict.set_item("sum", row(py, &stats.sum)?)?;
    dict.set_item("leaked", stats.leaked)?;
    dict.set_item("ring", row(py, &stats.ring)?)?;
    dict.set_item("ring_refusals", stats.ring_refusals)?;
    for (name, value) in [("reserved", stats.reserved), ("cached", stats.cached), ("pending", stats.pending)]
    {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}

/// The history of a context as dictionaries; `text` is the line for logs.
pub(crate) fn records<'py>(py: Python<'py>, context: &Context<Dyn>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let records = context.history();
    for (record, origin) in records.iter().zip(origin::of(context.id(), &records)) {
        let dict = PyDict::new(py);
        let operation = match record.operation {
            Operation::Allocate => "allocate",
            Operation::Free => "free",
            _ => "refuse",
        };
        dict.set_item("operation", operation)?;
        dict.set_item("type", record.memory_type.name())?;
        dict.set_item("address", record.address)?;
        dict.set_item("bytes", record.bytes)?;
        dict.set_item("current", record.current)?;
        dict.set_item("peak", record.peak)?;
        dict.set_item("time", record.time as f64 / 1e6)?;
        set_origin(&dict, &origin)?;
        dict.set_item("text", record.to_string())?;
        list.append(dict)?;
    }
    Ok(list)
}

/// The queue and the lines of a request.
pub(crate) fn set_origin(dict: &Bound<'_, PyDict>, origin: &Origin) -> PyResult<()> {
    dict.set_item("queue", (origin.queue != 0).then_some(origin.queue))?;
    let lines = origin.frames.iter().map(|Frame { file, line, name }| (file, line, name));
    dict.set_item("lines", lines.collect::<Vec<_>>())
}

/// Names of contexts: the device's selector, with a number behind it for all except a device's
/// first context.
pub(crate) fn names(scopes: &[Arc<Scope>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(scopes.len());
    for scope in scopes {
        let selector = usm_core::Selector::of(scope.context.info()).to_string();
        let is_known = names.contains(&selector);
        names.push(if is_known { format!("{selector}#{}", scope.context.id()) } else { selector });
    }
    names
}

/// Counters of live memory for each context in use, by the device's selector: bytes and blocks.
#[pyfunction]
pub(crate) fn stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    let scopes = runtime::scopes(py);
    for (name, scope) in names(&scopes).into_iter().zip(&scopes) {
        all.set_item(name, table(py, &scope.context.stats())?)?;
    }
    Ok(all)
}

/// Resets the peaks of all contexts in use, and of their devices: from now on they count since this
/// call. Peaks are in bytes.
#[pyfunction]
pub(crate) fn reset_peak(py: Python<'_>) {
    for scope in runtime::scopes(py) {
        scope.context.reset_peak();
    }
}

/// Gives back to the runtimes what all contexts in use hold for later: the memory of earlier arrays
/// on GPUs, row ``cached`` of `stats`, and the pinned memory through which copies of NumPy's memory
/// go, row ``ring``. Returns the bytes. `usm.Pool.trim` does the same for other pools.
#[pyfunction]
pub(crate) fn trim(py: Python<'_>) -> usize {
    let mut scopes = runtime::scopes(py);
    scopes.extend(runtime::scopes_of_users(py));
    let trim = |scope: &Arc<Scope>| scope.context.trim() + scope.cache.trim() as usize;
    py.detach(|| scopes.iter().map(trim).sum())
}

/// The kept allocations, frees and refused requests of the contexts in use, oldest first for each.
/// ``keep`` sets the number that each context keeps from now on, later contexts included; 0 drops
/// all, with their lines. With ``lines=True`` they also keep the Python lines of the requests,
/// innermost first, until ``lines=False``, which keeps those it has. The lines of a live block stay
/// while it lives: :attr:`usm.Snapshot.blocks`.
#[pyfunction]
#[pyo3(signature = (keep=None, *, lines=None))]
pub(crate) fn history(
    py: Python<'_>,
    #[pyo3(from_py_with = argument::keep)] keep: Option<usize>,
    lines: Option<bool>,
) -> PyResult<Bound<'_, PyDict>> {
    if let Some(lines) = lines {
        origin::keep_lines(lines);
    }
    if let Some(keep) = keep {
        origin::keep_in_new_contexts(keep);
    }
    let all = PyDict::new(py);
    let scopes = runtime::scopes(py);
    for (name, scope) in names(&scopes).into_iter().zip(&scopes) {
        if let Some(keep) = keep {
            origin::keep_history(&scope.context, keep);
        }
        all.set_item(name, records(py, &scope.context)?)?;
    }
    Ok(all)
}
