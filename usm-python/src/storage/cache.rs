//! The pools of a context of CUDA, and what its frees wait for.

use std::alloc::Layout;
use std::sync::OnceLock;

use usm_core::backend::Dyn;
use usm_core::segment::Segment;
use usm_core::{AllocKind, BackendKind, Context, MemorySource, Request};
use usm_plan::usm_pool::{Pool, PoolOptions, Reuse};

/// The variable that turns the caches of all contexts off with the value 0: then each array takes
/// memory of the runtime, for tools that watch the driver's calls.
const CACHE_VARIABLE: &str = "USM_DEVICE_CACHE";

/// Shared memory moves between host and device by pages: small blocks in one page would take each
/// other along.
const LEAST_SHARED: usize = 1 << 16;

/// Whether memory for a request comes from a cache.
pub(super) fn is_kept(request: &Request) -> bool {
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
    pub(super) fn pools(&self) -> impl Iterator<Item = (AllocKind, &Pool<Dyn>)> {
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
