//! Python's handle of a block.

use std::ptr::NonNull;
use std::sync::atomic::AtomicUsize;

use pyo3::prelude::*;
use usm_nrt::MemInfo;

use crate::nrt::library::Runtime;
use crate::text::error::Class;

/// A reference-counted block of the runtime, shared by compiled code, C and Python.
/// ``MemInfo(obj)`` makes such a block of the memory of ``obj`` (any exporter of an array
/// interface, of DLPack or of a buffer) without a copy. The block keeps ``obj`` alive until its
/// last reference is released, and ``parent`` is ``obj``.
#[pyclass(frozen, weakref, module = "usm.nrt", name = "MemInfo")]
#[derive(Debug)]
pub(crate) struct PyMemInfo {
    pub(super) block: NonNull<MemInfo>,
    pub(super) runtime: &'static Runtime,
    /// Number of references that this object acquired with `acquire` and did not release.
    pub(super) reference_count: AtomicUsize,
}

// SAFETY: any thread may acquire, release and read a block.
unsafe impl Send for PyMemInfo {}
// SAFETY: as above.
unsafe impl Sync for PyMemInfo {}

impl PyMemInfo {
    pub(super) fn block(&self) -> &MemInfo {
        // SAFETY: this object owns a reference.
        unsafe { self.block.as_ref() }
    }

    /// Takes over one reference from the caller.
    pub(super) fn take_reference(block: *mut MemInfo, runtime: &'static Runtime) -> PyResult<Self> {
        let block =
            NonNull::new(block).ok_or_else(|| Class::Request.error("the null pointer is no block"))?;
        Ok(Self { block, runtime, reference_count: AtomicUsize::new(0) })
    }
}

impl Drop for PyMemInfo {
    fn drop(&mut self) {
        // SAFETY: this object gives up its own reference.
        unsafe { (self.runtime.numba.release)(self.block.as_ptr()) };
    }
}
