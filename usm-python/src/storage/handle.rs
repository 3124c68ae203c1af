//! Python's handle of a range of bytes.

use std::sync::Arc;

use pyo3::prelude::*;
use usm_interface::Dtype;

use crate::array::view::View;
use crate::device::runtime::Stream;
use crate::storage::Storage;
use crate::storage::side::Side;

/// A contiguous range of bytes in USM memory.
#[pyclass(frozen, subclass, weakref, module = "usm.memory", name = "_Memory")]
#[derive(Debug)]
pub(crate) struct Memory {
    pub(super) storage: Storage,
    pub(super) stream: Arc<Stream>,
    /// Bytes from the storage's start.
    pub(super) offset: usize,
    pub(super) nbytes: usize,
}

impl Memory {
    /// The bytes of a view.
    pub(crate) fn of_span(side: Side) -> Self {
        let span = side.view.span();
        // An empty span still needs an address: the storage has at least one byte.
        let nbytes = span.len().max(1).min(side.storage.size());
        let offset = span.start.min(side.storage.size() - nbytes);
        Self { storage: side.storage, stream: side.stream, offset, nbytes }
    }

    pub(super) fn share(&self) -> Self {
        let Self { storage, stream, offset, nbytes } = self;
        Self { storage: storage.clone(), stream: Arc::clone(stream), offset: *offset, nbytes: *nbytes }
    }

    pub(crate) fn side(&self) -> PyResult<Side> {
        let view = View::contiguous(Dtype::U8, &[self.nbytes as i64])?.moved_to(self.offset);
        Ok(Side { storage: self.storage.clone(), stream: Arc::clone(&self.stream), view })
    }

    /// Address of the first byte.
    pub(super) fn pointer(&self) -> usize {
        self.storage.address() + self.offset
    }
}
