//! The compiled side of `usm.numba`: blocks from a context's memory, and the two functions that
//! distinguish blocks of Numba's own runtime from this library's.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use pyo3::prelude::*;
use usm_core::backend::Dyn;
use usm_core::{AllocKind, Selector};
use usm_nrt::api::CLiveBlock;
use usm_nrt::{ExternalAllocator, FreeFn, MemInfo, SourceAllocator, Stats};
use usm_plan::usm_pool::Pool;

use crate::device::queue::PyQueue;
use crate::device::runtime::Stream;
use crate::exchange::import;
use crate::nrt::library::{Runtime, runtime};
use crate::nrt::origin;
use crate::nrt::trace;
use crate::process::fork;
use crate::text::argument::Kind;
use crate::text::error::Class;

/// The source of new blocks.
struct Source {
    /// Blocks, and slabs of small ones, come from a pool of the context: a driver's call for each
    /// takes microseconds.
    allocator: SourceAllocator<Dyn, Pool<Dyn>>,
    kind: AllocKind,
    stream: Arc<Stream>,
}

static SOURCE: RwLock<Option<Arc<Source>>> = RwLock::new(None);
/// Number of allocations that the source has not got back: large blocks, and slabs of small ones.
static GIVEN: AtomicUsize = AtomicUsize::new(0);
/// Frees a block of any source; each block names its own.
static FREE: OnceLock<FreeFn> = OnceLock::new();

fn source() -> Option<Arc<Source>> {
    SOURCE.read().unwrap_or_else(PoisonError::into_inner).clone()
}

unsafe extern "C" fn source_malloc(size: usize, _: *mut c_void) -> *mut c_void {
    // Counted before the source is read, so that it cannot be removed in between.
    GIVEN.fetch_add(1, Ordering::SeqCst);
    let block = {
        let _inside = fork::enter::<{ fork::SOURCE }>();
        source().map_or(std::ptr::null_mut(), |source| {
            // SAFETY: it lives as long as `source`.
            let table = unsafe { source.allocator.as_table().as_ref() };
            match table.malloc {
                // SAFETY: the allocator's own function and opaque pointer.
                Some(malloc) => unsafe { malloc(size, table.opaque) },
                None => std::ptr::null_mut(),
            }
        })
    };
    if block.is_null() {
        GIVEN.fetch_sub(1, Ordering::SeqCst);
    } else {
        origin::note(block as usize, size);
        trace::record_new(block as usize, size);
    }
    block
}

unsafe extern "C" fn source_free(block: *mut c_void, _: *mut c_void) {
    if block.is_null() {
        return;
    }
    origin::forget(block as usize);
    trace::record_free(block as usize);
    if let Some(free) = FREE.get() {
        let _inside = fork::enter::<{ fork::SOURCE }>();
        // SAFETY: a block of `source_malloc`, freed once; the function finds the source in the
        // block.
        unsafe { free(block, std::ptr::null_mut()) };
    }
    GIVEN.fetch_sub(1, Ordering::SeqCst);
}

/// Number of the source's live blocks; the library counts small ones.
fn live(runtime: &Runtime) -> usize {
    let (slabs, small) = runtime.kept_counts();
    (GIVEN.load(Ordering::SeqCst) + small).saturating_sub(slabs)
}

/// The source in the library's form.
const FUNCTIONS: ExternalAllocator = ExternalAllocator {
    malloc: Some(source_malloc),
    realloc: None,
    free: Some(source_free),
    opaque: std::ptr::null_mut(),
};

/// Makes the memory of a queue's context the source of new blocks.
#[pyfunction]
#[pyo3(signature = (source, kind))]
pub(crate) fn _nrt_take_source(
    py: Python<'_>,
    source: Option<&Bound<'_, PyAny>>,
    kind: Kind,
) -> PyResult<()> {
    let runtime = runtime(py)?;
    let (stream, kind) = (import::stream(py, source)?, kind.0);
    let Some(allocator) = SourceAllocator::new(Pool::new(stream.context(), kind), kind) else {
        let message = "blocks hold their own headers, which the host reads at any time: kind must be \"host\" or \"shared\", with concurrent access";
        return Err(Class::Request.error(message));
    };
    // SAFETY: it lives as long as `allocator`.
    let table = unsafe { allocator.as_table().read() };
    let (Some(malloc), Some(free)) = (table.malloc, table.free) else {
        return Err(Class::Request.error("the source's allocator lacks a function"));
    };
    // One trial, so that an unsupported kind is refused here and not by every array.
    // SAFETY: the allocator's own function and opaque pointer.
    let probe = unsafe { malloc(1, table.opaque) };
    if probe.is_null() {
        let device = Selector::of(stream.context().info());
        return Err(Class::Allocation.error(format!("{device} gives no memory of kind {}", kind.name())));
    }
    // SAFETY: just allocated by this allocator.
    unsafe { free(probe, table.opaque) };
    let _ = FREE.set(free);
    fork::prepare::<{ fork::SOURCE }>();
    let fresh = Arc::new(Source { allocator, kind, stream });
    // The error is made without the lock: that runs Python code, and another thread may fork.
    let is_taken = {
        let mut slot = SOURCE.write().unwrap_or_else(PoisonError::into_inner);
        let is_taken = slot.is_some();
        if !is_taken {
            *slot = Some(fresh);
        }
        is_taken
    };
    if is_taken {
        return Err(Class::Request.error("a source is installed already"));
    }
    runtime.set_source(&FUNCTIONS, kind)
}

/// Allocates blocks from the heap again. Refused while blocks of the source live.
#[pyfunction]
pub(crate) fn _nrt_give_source(py: Python<'_>) -> PyResult<()> {
    let runtime = runtime(py)?;
    let refused = |live: usize| {
        Class::Request.error(format!(
            "{live} blocks of the source are alive; usm.nrt.leaks() tells where they came from"
        ))
    };
    match live(runtime) {
        0 => {}
        live => return Err(refused(live)),
    }
    // Threads return their kept blocks to the source here. Without the slot's lock, because memory
    // is freed.
    runtime.set_heap()?;
    let gone = {
        let mut slot = SOURCE.write().unwrap_or_else(PoisonError::into_inner);
        let live = live(runtime);
        if live != 0 {
            let kind = slot.as_ref().map_or(AllocKind::Unknown, |source| source.kind);
            drop(slot);
            runtime.set_source(&FUNCTIONS, kind)?;
            return Err(refused(live));
        }
        slot.take()
    };
    py.detach(|| drop(gone));
    Ok(())
}

/// The queue and kind of new blocks, and the number of live ones.
#[pyfunction]
pub(crate) fn _nrt_source(py: Python<'_>) -> Option<(PyQueue, &'static str, usize)> {
    let source = source()?;
    let live = live(runtime(py).ok()?);
    Some((PyQueue(Arc::clone(&source.stream)), source.kind.name(), live))
}

/// Frees the blocks that the calling thread keeps. At the `end` of the process threads keep none
/// from then on.
#[pyfunction]
pub(crate) fn _nrt_drain(py: Python<'_>, end: bool) -> PyResult<()> {
    let runtime = runtime(py)?;
    if end {
        // SAFETY: an entry that takes any boolean.
        unsafe { (runtime.api.set_thread_cache)(false) };
    }
    // SAFETY: an entry without preconditions.
    unsafe { (runtime.api.drain_thread_cache)() };
    Ok(())
}

/// The kind and queue of host-accessible bytes in a block of the source.
pub(crate) fn kind_and_queue(address: usize, size: usize) -> Option<(AllocKind, Arc<Stream>)> {
    if GIVEN.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let source = source()?;
    let info = source.stream.context().query(address as *const u8).ok()?;
    // Without a base only the runtime knows the pointer, so the memory is foreign.
    let end = info.base.checked_add(info.size).filter(|_| info.base != 0)?;
    (address.checked_add(size)? <= end).then(|| (info.kind, Arc::clone(&source.stream)))
}

/// Distinguishes Numba's function and ours of one name: a block of Numba's runtime names no
/// allocator.
struct Pair {
    numba: unsafe extern "C" fn(*mut MemInfo),
    own: unsafe extern "C" fn(*mut MemInfo),
}

impl Pair {
    /// # Safety
    /// `mi` is the argument that compiled code passes to the function of that name: a live block.
    unsafe fn call(cell: &OnceLock<Self>, mi: *mut MemInfo) {
        // SAFETY: as the caller promises.
        let (Some(pair), Some(block)) = (cell.get(), unsafe { mi.as_ref() }) else { return };
        let function = if block.external_allocator().is_null() { pair.numba } else { pair.own };
        // SAFETY: the function of the runtime that made the block.
        unsafe { function(mi) }
    }
}

static CALL_DTOR: OnceLock<Pair> = OnceLock::new();
static RELEASE: OnceLock<Pair> = OnceLock::new();

unsafe extern "C" fn call_dtor(mi: *mut MemInfo) {
    // SAFETY: called by compiled code, which lowered the count to zero.
    unsafe { Pair::call(&CALL_DTOR, mi) }
}

unsafe extern "C" fn release(mi: *mut MemInfo) {
    // SAFETY: called by compiled code, which gives up a reference.
    unsafe { Pair::call(&RELEASE, mi) }
}

/// Addresses for compiled code of the replacements of Numba's `NRT_MemInfo_call_dtor` and
/// `NRT_MemInfo_release`. The arguments are the addresses of the originals.
#[pyfunction]
#[pyo3(signature = (numba_call_dtor, numba_release))]
pub(crate) fn _nrt_bridge(
    py: Python<'_>,
    numba_call_dtor: usize,
    numba_release: usize,
) -> PyResult<(usize, usize)> {
    let runtime = runtime(py)?;
    for (cell, numba, name) in [
        (&CALL_DTOR, numba_call_dtor, "NRT_MemInfo_call_dtor"),
        (&RELEASE, numba_release, "NRT_MemInfo_release"),
    ] {
        let own = runtime.symbol(name).filter(|_| numba != 0);
        let own = own.ok_or_else(|| Class::Device.error(format!("{name} is missing")))?;
        // SAFETY: Numba's dictionary of C functions has this name with this type.
        let numba = unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(*mut MemInfo)>(numba) };
        // SAFETY: the library exports this name with this type.
        let own = unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(*mut MemInfo)>(own) };
        // A second call has the same addresses, because a process has one Numba.
        let _ = cell.set(Pair { numba, own });
    }
    Ok((call_dtor as *const () as usize, release as *const () as usize))
}

/// The address of a function of the library; ``None`` if it exports no such name.
#[pyfunction]
pub(crate) fn _nrt_symbol(py: Python<'_>, name: &str) -> PyResult<Option<usize>> {
    Ok(runtime(py)?.symbol(name))
}

/// Numbers of blocks and headers made and freed since the library was opened, and of those that
/// other runtimes freed.
#[pyfunction]
pub(crate) fn _nrt_stats(py: Python<'_>) -> PyResult<((usize, usize, usize, usize), usize)> {
    let runtime = runtime(py)?;
    let mut stats = Stats::default();
    // SAFETY: room for the record.
    let _ = unsafe { (runtime.api.stats)(&raw mut stats) };
    let Stats { alloc, free, mi_alloc, mi_free } = stats;
    Ok(((alloc, free, mi_alloc, mi_free), runtime.foreign_frees()))
}

/// Starts or stops the registry of live blocks; with `origins`, records the Python lines that made
/// them.
#[pyfunction]
#[pyo3(signature = (on, origins))]
pub(crate) fn _nrt_track(py: Python<'_>, on: bool, origins: bool) -> PyResult<()> {
    let runtime = runtime(py)?;
    origin::set_wanted(on && origins);
    // SAFETY: an entry that takes any boolean.
    unsafe { (runtime.api.set_tracking)(on) };
    Ok(())
}

/// A live block: address, data, size, refcount, sequence, origin.
type Live = (usize, usize, usize, usize, u64, String);

/// The live tracked blocks, oldest first.
#[pyfunction]
pub(crate) fn _nrt_leaks(py: Python<'_>) -> PyResult<Vec<Live>> {
    unsafe extern "C" fn visit(block: *const CLiveBlock, context: *mut c_void) {
        // SAFETY: the library passes a readable record.
        let block = unsafe { &*block };
        // SAFETY: the vector below, not used otherwise meanwhile.
        let found = unsafe { &mut *context.cast::<Vec<Live>>() };
        let origin = match block.origin_length {
            0 => String::new(),
            length => {
                // SAFETY: that many bytes, valid during the visit.
                let bytes = unsafe { std::slice::from_raw_parts(block.origin.cast::<u8>(), length) };
                String::from_utf8_lossy(bytes).into_owned()
            }
        };
        let address = block.mi as usize;
        found.push((address, block.data as usize, block.size, block.refcount, block.sequence, origin));
    }
    let runtime = runtime(py)?;
    let mut found: Vec<Live> = Vec::new();
    // SAFETY: the visitor reads records and writes the vector.
    let count = unsafe { (runtime.api.live_blocks)(Some(visit), (&raw mut found).cast()) };
    if count == usize::MAX {
        return Err(Class::Allocation.error("there is no memory for the list of live blocks"));
    }
    for (address, data, _, _, sequence, origin) in &mut found {
        if let Some(line) = origin::of(*address, *sequence, *data) {
            *origin = line;
        }
    }
    Ok(found)
}
