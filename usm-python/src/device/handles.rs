//! Python's handles of devices, contexts and queues. Their methods are in the files that they need.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::device::runtime::{Entry, Scope, Stream};

/// A device of a runtime.
#[pyclass(frozen, weakref, module = "usm", name = "Device")]
#[derive(Clone, Debug)]
pub(crate) struct PyDevice(pub(crate) Arc<Entry>);

/// The scope of pointers, statistics and limits: a context on one device.
#[pyclass(frozen, weakref, module = "usm", name = "Context")]
#[derive(Clone, Debug)]
pub(crate) struct PyContext(pub(crate) Arc<Scope>);

/// Ordered submission of work.
#[pyclass(frozen, weakref, module = "usm", name = "Queue")]
#[derive(Clone, Debug)]
pub(crate) struct PyQueue(pub(crate) Arc<Stream>);
