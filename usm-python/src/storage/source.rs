//! Where new arrays come from: the pool of a `with` block, those of the context, or the runtime.

use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use usm_core::backend::Dyn;
use usm_core::{AllocKind, Allocation, MemorySource, Request};
use usm_plan::usm_pool::{Pool, PoolOptions};

use crate::device::blocks::Blocks;
use crate::device::runtime::{Scope, Stream};
use crate::storage::cache::is_kept;

/// The open `with` blocks.
pub(super) static OPEN: Blocks = Blocks::new();

pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    OPEN.prepare(py, "usm.pool")
}

/// The kinds of memory that a pool may have.
const KINDS: [AllocKind; 3] = [AllocKind::Host, AllocKind::Shared, AllocKind::Device];

/// A pool for each kind, made at its first use.
#[derive(Debug)]
pub(super) struct Pools {
    pub(super) scope: Arc<Scope>,
    /// The only kind, or all.
    kind: Option<AllocKind>,
    limit: Option<usize>,
    of_kinds: [OnceLock<Pool<Dyn>>; 3],
}

impl Pools {
    pub(super) fn new(scope: Arc<Scope>, kind: Option<AllocKind>, limit: Option<usize>) -> Self {
        Self { scope, kind, limit, of_kinds: Default::default() }
    }

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

    pub(super) fn all(&self) -> impl Iterator<Item = (AllocKind, &Pool<Dyn>)> {
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
