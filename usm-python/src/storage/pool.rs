//! `usm.Pool`, and the segments of all pools.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use usm_core::AllocKind;
use usm_plan::usm_pool::PoolStats;
use usm_plan::usm_pool::pool::PoolSegment;

use crate::device::choice::device_of;
use crate::device::handles::PyContext;
use crate::device::runtime::Scope;
use crate::nrt::source;
use crate::storage::source::{OPEN, Pools};
use crate::text::argument::{self, Kind};

/// All pools, for snapshots.
static ALL: Mutex<Vec<Weak<Pools>>> = Mutex::new(Vec::new());

/// The segments of all pools of a context, and their kinds.
pub(crate) fn segments(py: Python<'_>, scope: &Scope) -> Vec<(AllocKind, PoolSegment)> {
    let context = scope.context.id();
    let all: Vec<Arc<Pools>> = {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|pools| pools.strong_count() > 0);
        all.iter().filter_map(Weak::upgrade).collect()
    };
    let of_context = all.iter().filter(|pools| pools.scope.context.id() == context);
    let of_numba = source::pools(py, context);
    let of_numba = of_numba.iter().map(|(kind, pool)| (*kind, *pool));
    let pools = of_context.flat_map(|pools| pools.all()).chain(scope.cache.pools()).chain(of_numba);
    pools.flat_map(|(kind, pool)| pool.snapshot().into_iter().map(move |segment| (kind, segment))).collect()
}

/// ``with usm.Pool(device):`` takes the memory of new arrays on the device from larger segments,
/// and reuses what earlier ones left, also while work on the device still uses it. An allocation
/// then costs no call of the driver. `usm.empty`, `usm.zeros`, `usm.full`, `usm.memory` and copies
/// draw from the innermost block of their context. Arrays may outlive the block and the pool.
///
/// ``kind`` is the kind of memory, or ``None`` for each kind. ``limit`` is the most bytes that it
/// reserves, of each kind.
///
/// >>> with usm.Pool("host") as pool:
/// ...     array = usm.empty(1000, "u1", device="host")
/// ...     pool.stats()["live"]
/// 1000
#[pyclass(frozen, weakref, module = "usm", name = "Pool")]
#[derive(Debug)]
pub(crate) struct PyPool(Arc<Pools>);

#[pymethods]
impl PyPool {
    #[new]
    #[pyo3(signature = (device=None, *, kind=None, limit=None))]
    fn new(
        py: Python<'_>,
        device: Option<&Bound<'_, PyAny>>,
        kind: Option<Kind>,
        #[pyo3(from_py_with = argument::limit)] limit: Option<usize>,
    ) -> PyResult<Self> {
        let scope = match device {
            Some(argument) if argument.is_instance_of::<PyContext>() => {
                Arc::clone(&argument.cast::<PyContext>()?.get().0)
            }
            _ => device_of(py, device, ("device", "a device, its selector or a context"))?.0.scope()?,
        };
        let pools = Arc::new(Pools::new(scope, kind.map(|kind| kind.0), limit));
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&pools));
        Ok(Self(pools))
    }

    /// The context of the memory.
    #[getter]
    fn context(&self) -> PyContext {
        PyContext(Arc::clone(&self.0.scope))
    }

    /// Bytes: ``live``, those of the arrays; ``reserved``, those of the segments; the most of each,
    /// ``peak_live`` and ``peak_reserved``. Sums over the kinds.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all: Vec<PoolStats> = self.0.all().map(|(_, pool)| pool.stats()).collect();
        let sum = |field: fn(&PoolStats) -> u64| all.iter().map(field).sum::<u64>();
        let dict = PyDict::new(py);
        dict.set_item("live", sum(|stats| stats.live))?;
        dict.set_item("reserved", sum(|stats| stats.reserved))?;
        dict.set_item("peak_live", sum(|stats| stats.peak_live))?;
        dict.set_item("peak_reserved", sum(|stats| stats.peak_reserved))?;
        Ok(dict)
    }

    /// Returns segments that nothing uses to the runtime, until at most ``bytes`` of each kind are
    /// reserved. Returns the bytes that went.
    #[pyo3(signature = (bytes=0))]
    fn trim(&self, py: Python<'_>, #[pyo3(from_py_with = argument::bytes)] bytes: usize) -> u64 {
        py.detach(|| self.0.all().map(|(_, pool)| pool.trim(bytes as u64)).sum())
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        OPEN.enter(slf, Arc::clone(&slf.get().0))?;
        Ok(slf.clone())
    }

    fn __exit__(
        slf: &Bound<'_, Self>,
        _class: &Bound<'_, PyAny>,
        _raised: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        OPEN.leave::<Pools>(slf).map(drop)
    }

    fn __repr__(&self) -> String {
        let selector = usm_core::Selector::of(self.0.scope.context.info());
        let (live, reserved) = self.0.all().fold((0, 0), |(live, reserved), (_, pool)| {
            let stats = pool.stats();
            (live + stats.live, reserved + stats.reserved)
        });
        format!("<usm.Pool on {selector}: {live} bytes live, {reserved} reserved>")
    }
}
