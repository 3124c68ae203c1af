//! `usm.track`: counts a thread's allocations in a `with` block.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

thread_local! {
    /// This thread's blocks, outermost first.
    static OPEN: RefCell<Vec<Arc<Counts>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes and blocks of one `with` block. Any thread may free the memory.
#[derive(Debug, Default)]
struct Counts {
    live: AtomicUsize,
    peak: AtomicUsize,
    allocations: AtomicUsize,
}

/// The blocks that count a piece of memory; usually none.
#[derive(Debug, Default)]
pub(crate) struct Tracked {
    counts: Vec<Arc<Counts>>,
    bytes: usize,
}

impl Tracked {
    /// Counts an allocation of this thread.
    pub(crate) fn allocation(bytes: usize) -> Self {
        // At the end of a thread its list may already be dropped.
        let counts = OPEN.try_with(|open| open.borrow().clone()).unwrap_or_default();
        for count in &counts {
            let live = count.live.fetch_add(bytes, Ordering::Relaxed) + bytes;
            count.peak.fetch_max(live, Ordering::Relaxed);
            count.allocations.fetch_add(1, Ordering::Relaxed);
        }
        Self { counts, bytes }
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        for count in &self.counts {
            count.live.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// Counts the memory of arrays and memory objects that this thread makes in a ``with`` block, in
/// bytes. The numbers can be read inside and afterwards; later frees still count down.
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
        OPEN.with_borrow_mut(|open| {
            if open.iter().any(|known| Arc::ptr_eq(known, counts)) {
                return Err(PyRuntimeError::new_err("this block is open already"));
            }
            open.push(Arc::clone(counts));
            Ok(())
        })?;
        Ok(slf.clone())
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) {
        OPEN.with_borrow_mut(|open| open.retain(|known| !Arc::ptr_eq(known, &self.0)));
    }

    fn __repr__(&self) -> String {
        format!("<usm.track live={} peak={} allocations={}>", self.live(), self.peak(), self.allocations())
    }
}
