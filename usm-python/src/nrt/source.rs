//! The source of blocks: a context's memory in place of the heap.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use usm_core::AllocKind;
use usm_core::backend::Dyn;
use usm_nrt::{ExternalAllocator, allocate_block, free_block, holds_blocks};
use usm_plan::usm_pool::Pool;

use crate::device::runtime::Stream;
use crate::nrt::library::Runtime;
use crate::nrt::origin;
use crate::nrt::trace;

/// The source of new blocks: a pool of a context, because a driver's call for each takes
/// microseconds. Its kind is one for blocks ([`Source::new`]).
pub(super) struct Source {
    pub(super) pool: Pool<Dyn>,
    pub(super) kind: AllocKind,
    pub(super) stream: Arc<Stream>,
}

/// The installed source, or null. What it points to is never freed, so that threads read it without
/// a lock or a count.
pub(super) static SOURCE: AtomicPtr<Source> = AtomicPtr::new(ptr::null_mut());
/// All sources of this process so far. A queue that is installed again has its old one.
static SOURCES: Mutex<Vec<&'static Source>> = Mutex::new(Vec::new());

pub(super) fn source() -> Option<&'static Source> {
    // After the library's table was read, which names the functions below once a source is there.
    fence(Ordering::Acquire);
    // SAFETY: null or from a box that is never freed.
    unsafe { SOURCE.load(Ordering::Acquire).as_ref() }
}

impl Source {
    /// `None` for a kind that blocks cannot have: see [`holds_blocks`].
    pub(super) fn new(stream: Arc<Stream>, kind: AllocKind) -> Option<Self> {
        let pool = Pool::new(stream.context(), kind);
        holds_blocks(&pool, kind).then_some(Self { pool, kind, stream })
    }

    pub(super) fn allocate(&self, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: `new` checked the kind, and a pool returns what it is asked for.
        unsafe { allocate_block(&self.pool, self.kind, size) }
    }
}

unsafe extern "C" fn source_malloc(size: usize, _: *mut c_void) -> *mut c_void {
    let Some(block) = source().and_then(|source| source.allocate(size)) else { return ptr::null_mut() };
    origin::note(block.addr().get(), size);
    trace::record_new(block.addr().get(), size);
    block.as_ptr().cast()
}

unsafe extern "C" fn source_free(block: *mut c_void, _: *mut c_void) {
    let Some(block) = NonNull::new(block.cast::<u8>()) else { return };
    origin::forget(block.addr().get());
    trace::record_free(block.addr().get());
    // SAFETY: a block of `source_malloc`, freed once.
    unsafe { free_block::<Dyn>(block) };
}

/// Number of the source's live blocks. The pool counts slabs of small ones, and the library what is
/// in them.
pub(super) fn live(source: &Source, runtime: &Runtime) -> usize {
    let (slabs, small) = runtime.kept_counts();
    let blocks = usize::try_from(source.pool.stats().blocks).unwrap_or(usize::MAX);
    blocks.saturating_add(small).saturating_sub(slabs)
}

/// The source in the library's form.
pub(super) const FUNCTIONS: ExternalAllocator = ExternalAllocator {
    malloc: Some(source_malloc),
    realloc: None,
    free: Some(source_free),
    opaque: ptr::null_mut(),
};

/// Keeps a source for the rest of the process. Returns the earlier one of the same queue and kind,
/// if there is one.
pub(super) fn register(py: Python<'_>, fresh: Source) -> &'static Source {
    let mut sources = SOURCES.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
    let key = |source: &Source| (source.kind, source.stream.number);
    let earlier = sources.iter().find(|source| key(source) == key(&fresh)).copied();
    earlier.unwrap_or_else(|| {
        let source: &'static Source = Box::leak(Box::new(fresh));
        sources.push(source);
        source
    })
}

/// The pools of a context's sources, installed or not, with the kind of each.
pub(crate) fn pools(py: Python<'_>, context: u64) -> Vec<(AllocKind, &'static Pool<Dyn>)> {
    let sources = SOURCES.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
    let of_context = sources.iter().filter(|source| source.stream.context().id() == context);
    of_context.map(|source| (source.kind, &source.pool)).collect()
}

/// The kind and queue of host-accessible bytes in a block of the source.
pub(crate) fn kind_and_queue(address: usize, size: usize) -> Option<(AllocKind, Arc<Stream>)> {
    let source = source()?;
    let info = source.stream.context().query(address as *const u8).ok()?;
    // Without a base only the runtime knows the pointer, so the memory is foreign.
    let end = info.base.checked_add(info.size).filter(|_| info.base != 0)?;
    (address.checked_add(size)? <= end).then(|| (info.kind, Arc::clone(&source.stream)))
}
