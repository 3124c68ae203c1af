//! `usm.track`: counts the allocations in a `with` block.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::device::blocks::Blocks;
use crate::storage::origin::NoteHandle;

/// The blocks, each with its counts.
static OPEN: Blocks = Blocks::new();

pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    OPEN.prepare(py, "usm.track")
}

/// Bytes and blocks of one `with` block. Any thread may free the memory.
#[derive(Debug, Default)]
struct Counts {
    live: AtomicUsize,
    peak: AtomicUsize,
    allocations: AtomicUsize,
}

/// The blocks that count a piece of memory, and the note of its origin; usually none.
#[derive(Debug, Default)]
pub(crate) struct BlockCounts {
    counts: Vec<Arc<Counts>>,
    bytes: usize,
    _note: NoteHandle,
}

impl BlockCounts {
    /// Counts an allocation in the blocks that are open where this thread runs. The thread may or
    /// may not be attached to the interpreter.
    pub(crate) fn allocation(bytes: usize, note: NoteHandle) -> Self {
        let counts = if OPEN.is_used() { open_counts() } else { Vec::new() };
        for count in &counts {
            let live = count.live.fetch_add(bytes, Ordering::Relaxed) + bytes;
            count.peak.fetch_max(live, Ordering::Relaxed);
            count.allocations.fetch_add(1, Ordering::Relaxed);
        }
        Self { counts, bytes, _note: note }
    }
}

#[cold]
fn open_counts() -> Vec<Arc<Counts>> {
    let mut all = Vec::new();
    let _ = Python::try_attach(|py| {
        OPEN.find(py, |counts: &Arc<Counts>| {
            all.push(Arc::clone(counts));
            None::<()>
        })
    });
    all
}

impl Drop for BlockCounts {
    fn drop(&mut self) {
        for count in &self.counts {
            count.live.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// Counts the memory of arrays and memory objects that are made in a ``with`` block, in bytes: by
/// this thread or task, and by tasks that begin in the block. The numbers can be read inside and
/// afterwards; later frees still count down. The caller of a generator counts in a block that is
/// open across a ``yield``.
///
/// >>> with usm.track() as t:
/// ...     array = usm.zeros(1000, "u1", device="host")
/// >>> t.live, t.peak, t.allocations
/// (1000, 1000, 1)
#[pyclass(frozen, weakref, module = "usm", name = "track")]
#[derive(Debug)]
pub(crate) struct PyTrack(Arc<Counts>);

#[pymethods]
impl PyTrack {
    #[new]
    fn new() -> Self {
        Self(Arc::default())
    }

    /// Live bytes.
    #[getter]
    fn live(&self) -> usize {
        self.0.live.load(Ordering::Relaxed)
    }

    /// Largest number of bytes alive at the same time.
    #[getter]
    fn peak(&self) -> usize {
        self.0.peak.load(Ordering::Relaxed)
    }

    /// Number of allocated blocks.
    #[getter]
    fn allocations(&self) -> usize {
        self.0.allocations.load(Ordering::Relaxed)
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let counts = &slf.get().0;
        let is_open = |other: &Arc<Counts>| Arc::ptr_eq(other, counts).then_some(());
        if OPEN.find(slf.py(), is_open)?.is_some() {
            return Err(PyRuntimeError::new_err("this block is open already"));
        }
        OPEN.enter(slf, Arc::clone(counts))?;
        Ok(slf.clone())
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        OPEN.leave::<Counts>(slf).map(drop)
    }

    fn __repr__(&self) -> String {
        format!("<usm.track live={} peak={} allocations={}>", self.live(), self.peak(), self.allocations())
    }
}
