//! `usm.snapshot`: live memory and history, as files for two viewers and as a picture.

use std::path::PathBuf;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use usm_core::MemoryType;
use usm_core::history::{Operation, Record};
use usm_plan::usm_pool::snapshot::{Action, Block, Device, Event, Origin, Segment, Snapshot};

use crate::device::runtime;
use crate::storage::origin;
use crate::storage::pool;
use crate::storage::stats;
use crate::text::argument;
use crate::text::html::bundle;

/// The memory of all contexts in use at one moment, from :func:`usm.snapshot`.
#[pyclass(frozen, weakref, module = "usm", name = "Snapshot")]
#[derive(Debug)]
pub(crate) struct PySnapshot(Snapshot);

/// Takes the live memory of every context in use, and their histories (:func:`usm.history`).
#[pyfunction]
pub(crate) fn snapshot(py: Python<'_>) -> PySnapshot {
    let scopes = runtime::scopes(py);
    let entries = stats::names(&scopes).into_iter().zip(&scopes);
    let devices = entries.map(|(name, scope)| {
        let (blocks, records) = (scope.context.blocks(), scope.context.history());
        let origins = origin::of(scope.context.id(), &records);
        let mut live = origin::live(scope.context.id());
        let mut segments = Vec::new();
        for (kind, of_pool) in pool::segments(py, scope) {
            let mut segment = of_pool.for_viewers(kind.name());
            for block in &mut segment.blocks {
                let origin = usize::try_from(block.address).ok().and_then(|base| live.remove(&base));
                block.origin = origin.unwrap_or_default();
            }
            segments.push(segment);
        }
        let segment_ranges: Vec<_> =
            segments.iter().map(|it: &Segment| it.address..it.address + it.size).collect();
        let segment = |info: &usm_core::PointerInfo| {
            let (address, size) = (info.base as u64, info.size as u64);
            let (kind, origin) = (info.kind.name(), live.remove(&info.base).unwrap_or_default());
            let block = Block { address, size, requested: size, is_pending: false, origin };
            Segment { address, size, kind, blocks: vec![block] }
        };
        // The other blocks are segments of their own.
        let is_pooled =
            |info: &&usm_core::PointerInfo| segment_ranges.iter().any(|it| it.contains(&(info.base as u64)));
        segments.extend(blocks.iter().filter(|info| !is_pooled(info)).map(segment));
        let events = records.iter().zip(origins).map(event).collect();
        Device { name, total: scope.context.info().global_mem_size, segments, events }
    });
    PySnapshot(Snapshot { devices: devices.collect() })
}

fn event((record, origin): (&Record, Origin)) -> Event {
    let action = match record.operation {
        Operation::Allocate => Action::Allocate,
        Operation::Free => Action::Free,
        _ => Action::Refuse,
    };
    let kind = match record.memory_type {
        MemoryType::UsmHost => "host",
        MemoryType::UsmShared => "shared",
        MemoryType::UsmDevice => "device",
        _ => "buffer",
    };
    let (address, size) = (record.address as u64, record.bytes as u64);
    let (time, current, in_segment) = (record.time, record.current as u64, record.in_pool);
    Event { action, address, size, time, kind, current, in_segment, origin }
}

bundle!(PySnapshot, "image/svg+xml", |snapshot, py| Ok(snapshot._repr_svg_(py)));

#[pymethods]
impl PySnapshot {
    /// The live blocks, each a dict: ``device``, ``kind``, ``address``, ``bytes``, ``queue`` (its
    /// number, or ``None``) and ``lines``, the Python lines of the request, innermost first, each
    /// ``(file, line, function)``. Blocks from before :func:`usm.history` have neither queue nor
    /// lines.
    #[getter]
    fn blocks<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let mut blocks = Vec::new();
        for device in &self.0.devices {
            for segment in &device.segments {
                for block in segment.blocks.iter().filter(|block| !block.is_pending) {
                    let dict = PyDict::new(py);
                    dict.set_item("device", &device.name)?;
                    dict.set_item("kind", segment.kind)?;
                    dict.set_item("address", block.address)?;
                    dict.set_item("bytes", block.requested)?;
                    stats::set_origin(&dict, &block.origin)?;
                    blocks.push(dict);
                }
            }
        }
        Ok(blocks)
    }

    /// Writes a pickle for PyTorch's ``memory_viz``. ``OSError`` if the file cannot be written.
    fn dump(&self, py: Python<'_>, #[pyo3(from_py_with = argument::path)] path: PathBuf) -> PyResult<()> {
        write(py, path, || self.0.pickle())
    }

    /// Writes a JSON document for Perfetto (``ui.perfetto.dev``): bytes in use, the lifetime of
    /// each block, refusals. ``OSError`` if the file cannot be written.
    fn trace(&self, py: Python<'_>, #[pyo3(from_py_with = argument::path)] path: PathBuf) -> PyResult<()> {
        write(py, path, || self.0.trace().into_bytes())
    }

    /// The picture in notebooks: bytes in use over time.
    fn _repr_svg_(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.svg())
    }

    fn __repr__(&self) -> String {
        let one = |device: &Device| {
            let blocks: usize = device.segments.iter().map(|segment| segment.blocks.len()).sum();
            let (bytes, events) = (device.in_use(), device.events.len());
            format!("{}: {blocks} blocks, {bytes} bytes, {events} events", device.name)
        };
        let all: Vec<String> = self.0.devices.iter().map(one).collect();
        format!("<usm.Snapshot {}>", all.join("; "))
    }
}

fn write(py: Python<'_>, path: PathBuf, content: impl FnOnce() -> Vec<u8> + Send) -> PyResult<()> {
    py.detach(|| std::fs::write(&path, content())).map_err(|error| named(&error, path))
}

/// The failure as Python's own exception, with the file.
pub(crate) fn named(error: &std::io::Error, path: PathBuf) -> PyErr {
    PyOSError::new_err((error.raw_os_error().unwrap_or(0), error.to_string(), path))
}
