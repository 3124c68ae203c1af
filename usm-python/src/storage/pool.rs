//! Where new arrays come from: `usm.Pool` in a `with` block, and the pools of a context of CUDA.

use std::alloc::Layout;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use usm_core::backend::Dyn;
use usm_core::segment::Segment;
use usm_core::{AllocKind, Allocation, BackendKind, Context, MemorySource, Request};
use usm_plan::usm_pool::pool::PoolSegment;
use usm_plan::usm_pool::{Pool, PoolOptions, PoolStats, Reuse};

use crate::device::blocks::Blocks;
use crate::device::context::{PyContext, device_of};
use crate::device::runtime::{Scope, Stream};
use crate::nrt::route;
use crate::text::argument::{self, Kind};

/// The open `with` blocks.
static OPEN: Blocks = Blocks::new();

/// All pools, for snapshots.
static ALL: Mutex<Vec<Weak<Pools>>> = Mutex::new(Vec::new());

pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    OPEN.prepare(py, "usm.pool")
}

/// The kinds of memory that a pool may have.
const KINDS: [AllocKind; 3] = [AllocKind::Host, AllocKind::Shared, AllocKind::Device];

/// A pool for each kind, made at its first use.
#[derive(Debug)]
struct Pools {
    scope: Arc<Scope>,
    /// The only kind, or all.
    kind: Option<AllocKind>,
    limit: Option<usize>,
    of_kinds: [OnceLock<Pool<Dyn>>; 3],
}

impl Pools {
    fn of_kind(&self, kind: AllocKind) -> Option<&Pool<Dyn>> {
        if self.kind.is_some_and(|pool_kind| pool_kind != kind) {
            return None;
        }
        let place = KINDS.iter().position(|candidate| *candidate == kind)?;
        Some(self.of_kinds[place].get_or_init(|| {
            let mut options = PoolOptions::default();
            options.limit = self.limit;
            Pool::with(&self.scope.context, kind, options)
        }))
    }

    fn all(&self) -> impl Iterator<Item = (AllocKind, &Pool<Dyn>)> {
        KINDS.into_iter().zip(&self.of_kinds).filter_map(|(kind, pool)| Some((kind, pool.get()?)))
    }
}

/// Where new memory comes from.
#[derive(Debug)]
pub(crate) enum Source {
    /// The runtime.
    Context,
    /// The pool of the context; the context serves what that refuses.
    Cache(Pool<Dyn>),
    /// The pool of the innermost `with` block that fits.
    Pool(Pool<Dyn>),
}

impl Source {
    /// The source for memory of this kind that work of `stream` uses first.
    pub(crate) fn of(py: Python<'_>, stream: &Stream, kind: AllocKind) -> PyResult<Self> {
        if OPEN.is_used() {
            let context = stream.context().id();
            let pool = OPEN.find(py, |pools: &Arc<Pools>| {
                let fits = pools.scope.context.id() == context;
                fits.then(|| pools.of_kind(kind)).flatten().map(|pool| pool.on(&stream.queue))
            })?;
            if let Some(pool) = pool {
                return Ok(Self::Pool(pool));
            }
        }
        Ok(Self::outside_blocks(stream, kind))
    }

    /// As [`of`](Self::of), whatever `with` blocks are open.
    pub(crate) fn outside_blocks(stream: &Stream, kind: AllocKind) -> Self {
        stream.cache(kind).map_or(Self::Context, Self::Cache)
    }

    /// Whether an allocation takes less than giving up the interpreter: a small block of the
    /// process, which waits for nothing.
    pub(crate) fn is_quick(&self, stream: &Stream, size: usize) -> bool {
        const SMALL: usize = 4096;
        size <= SMALL && stream.is_host() && !self.is_pool()
    }

    pub(crate) fn is_pool(&self) -> bool {
        !matches!(self, Self::Context)
    }

    pub(crate) fn allocate(&self, stream: &Stream, request: &Request) -> usm_core::Result<Allocation<Dyn>> {
        match self {
            Self::Context => stream.context().allocate(request),
            Self::Pool(pool) => pool.allocate(request),
            Self::Cache(_) if !is_kept(request) => stream.context().allocate(request),
            // A refusal of the context has the numbers of the request.
            Self::Cache(pool) => pool.allocate(request).or_else(|_| stream.context().allocate(request)),
        }
    }

    /// The memory, and whether it is known to be zero.
    pub(crate) fn allocate_zeroed(
        &self,
        stream: &Stream,
        request: &Request,
    ) -> usm_core::Result<(Allocation<Dyn>, bool)> {
        match self {
            Self::Context => stream.context().allocate_zeroed(request),
            Self::Pool(pool) => pool.allocate_zeroed(request),
            // A runtime has no zeros for less than a fill of memory that is there already.
            Self::Cache(_) => Ok((self.allocate(stream, request)?, false)),
        }
    }
}

/// The variable that turns the caches of all contexts off with the value 0: then each array takes
/// memory of the runtime, for tools that watch the driver's calls.
const CACHE_VARIABLE: &str = "USM_DEVICE_CACHE";

/// Shared memory moves between host and device by pages: small blocks in one page would take each
/// other along.
const LEAST_SHARED: usize = 1 << 16;

/// Whether memory for a request comes from a cache.
fn is_kept(request: &Request) -> bool {
    request.kind != AllocKind::Shared || request.size >= LEAST_SHARED
}

/// The kinds of memory that a cache has.
const CACHED: [AllocKind; 2] = [AllocKind::Device, AllocKind::Shared];

/// The pools of a context of CUDA, whose driver takes microseconds for an allocation, milliseconds
/// for a large one, and waits for the device's work in a free.
#[derive(Debug, Default)]
pub(crate) struct Cache([OnceLock<Option<Pool<Dyn>>>; CACHED.len()]);

impl Cache {
    /// The pool for memory of a kind, if a context of this device has one.
    pub(crate) fn of(&self, context: &Context<Dyn>, kind: AllocKind) -> Option<&Pool<Dyn>> {
        let place = CACHED.iter().position(|candidate| *candidate == kind)?;
        let make = || {
            let is_off = std::env::var_os(CACHE_VARIABLE).is_some_and(|value| value == "0");
            if is_off || context.info().backend != BackendKind::Cuda {
                return None;
            }
            let mut options = PoolOptions::default();
            // The first owner outside usm knows no event of an earlier array.
            options.reuse = Reuse::Ready;
            Some(Pool::with(context, kind, options))
        };
        self.0[place].get_or_init(make).as_ref()
    }

    /// The pools that were used.
    fn pools(&self) -> impl Iterator<Item = (AllocKind, &Pool<Dyn>)> {
        CACHED.into_iter().zip(&self.0).filter_map(|(kind, pool)| Some((kind, pool.get()?.as_ref()?)))
    }

    /// Returns what nothing uses to the runtime; its bytes.
    pub(crate) fn trim(&self) -> u64 {
        self.pools().map(|(_, pool)| pool.trim(0)).sum()
    }
}

/// Whether the runtime's free waits until the device has done all work, which programs rely on:
/// CUDA's and HIP's do.
pub(crate) fn is_free_a_wait(context: &Context<Dyn>) -> bool {
    matches!(context.info().backend, BackendKind::Cuda | BackendKind::Hip)
}

/// Waits until the device has done all work, also that of other libraries, by a free of memory that
/// is no pool's. Returns whether it could.
pub(crate) fn wait_for_the_device(context: &Context<Dyn>) -> bool {
    // On a full device the second one first gives back what pools hold without use.
    Segment::allocate(context, AllocKind::Device, Layout::new::<u8>()).is_ok()
        || context.allocate(&Request::new(AllocKind::Device, 1)).is_ok()
}

/// The segments of all pools of a context, and their kinds.
pub(crate) fn segments(py: Python<'_>, scope: &Scope) -> Vec<(AllocKind, PoolSegment)> {
    let context = scope.context.id();
    let all: Vec<Arc<Pools>> = {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|pools| pools.strong_count() > 0);
        all.iter().filter_map(Weak::upgrade).collect()
    };
    let of_context = all.iter().filter(|pools| pools.scope.context.id() == context);
    let of_numba = route::pools(py, context);
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
        let pools =
            Arc::new(Pools { scope, kind: kind.map(|kind| kind.0), limit, of_kinds: Default::default() });
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
