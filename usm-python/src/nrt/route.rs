//! The compiled side of `usm.numba`: the choice of the source of blocks, and the two functions that
//! distinguish blocks of Numba's own runtime from this library's.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use usm_core::Selector;
use usm_core::backend::Dyn;
use usm_nrt::api::CLiveBlock;
use usm_nrt::{MemInfo, Stats, free_block};

use crate::device::choice;
use crate::device::handles::PyQueue;
use crate::nrt::library::runtime;
use crate::nrt::origin;
use crate::nrt::source::{FUNCTIONS, SOURCE, Source, live, register, source};
use crate::text::argument::Kind;
use crate::text::error::Class;

/// Makes the memory of a queue's context the source of new blocks.
#[pyfunction]
#[pyo3(signature = (source, kind))]
pub(crate) fn _nrt_take_source(
    py: Python<'_>,
    source: Option<&Bound<'_, PyAny>>,
    kind: Kind,
) -> PyResult<()> {
    let runtime = runtime(py)?;
    let (stream, kind) = (choice::stream(py, source)?, kind.0);
    let Some(fresh) = Source::new(stream, kind) else {
        let message = "blocks hold their own headers, which the host reads at any time: kind must be \"host\" or \"shared\", with concurrent access";
        return Err(Class::Request.error(message));
    };
    // One trial, so that an unsupported kind is refused here and not by every array.
    let Some(probe) = fresh.allocate(1) else {
        let device = Selector::of(fresh.stream.context().info());
        return Err(Class::Allocation.error(format!("{device} gives no memory of kind {}", kind.name())));
    };
    // SAFETY: just allocated from this pool.
    unsafe { free_block::<Dyn>(probe) };
    let source = ptr::from_ref(register(py, fresh)).cast_mut();
    let order = (Ordering::AcqRel, Ordering::Relaxed);
    if SOURCE.compare_exchange(ptr::null_mut(), source, order.0, order.1).is_err() {
        return Err(Class::Request.error("a source is installed already"));
    }
    runtime.set_source(&FUNCTIONS, kind)
}

/// Allocates blocks from the heap again. Refused while blocks of the source live, as far as the
/// counts of other threads are seen. The source's context lives to the end of the process: another
/// thread may be about to ask it, and what that gets is memory of its own, which it may free later.
#[pyfunction]
pub(crate) fn _nrt_give_source(py: Python<'_>) -> PyResult<()> {
    let runtime = runtime(py)?;
    let Some(source) = source() else { return runtime.set_heap() };
    let route_error = |live: usize| {
        Class::Request.error(format!(
            "{live} blocks of the source are alive; usm.nrt.leaks() tells where they came from"
        ))
    };
    match live(source, runtime) {
        0 => {}
        live => return Err(route_error(live)),
    }
    // Threads return their kept blocks to the source here.
    runtime.set_heap()?;
    match live(source, runtime) {
        0 => {}
        live => {
            runtime.set_source(&FUNCTIONS, source.kind)?;
            return Err(route_error(live));
        }
    }
    SOURCE.store(ptr::null_mut(), Ordering::Release);
    py.detach(|| source.pool.trim(0));
    Ok(())
}

/// The queue and kind of new blocks, and the number of live ones.
#[pyfunction]
pub(crate) fn _nrt_source(py: Python<'_>) -> Option<(PyQueue, &'static str, usize)> {
    let source = source()?;
    let live = live(source, runtime(py).ok()?);
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
        let blocks = unsafe { &mut *context.cast::<Vec<Live>>() };
        let origin = match block.origin_length {
            0 => String::new(),
            length => {
                // SAFETY: that many bytes, valid during the visit.
                let bytes = unsafe { std::slice::from_raw_parts(block.origin.cast::<u8>(), length) };
                String::from_utf8_lossy(bytes).into_owned()
            }
        };
        let address = block.mi as usize;
        blocks.push((address, block.data as usize, block.size, block.refcount, block.sequence, origin));
    }
    let runtime = runtime(py)?;
    let mut blocks: Vec<Live> = Vec::new();
    // SAFETY: the visitor reads records and writes the vector.
    let count = unsafe { (runtime.api.live_blocks)(Some(visit), (&raw mut blocks).cast()) };
    if count == usize::MAX {
        return Err(Class::Allocation.error("there is no memory for the list of live blocks"));
    }
    for (address, data, _, _, sequence, origin) in &mut blocks {
        if let Some(line) = origin::of(*address, *sequence, *data) {
            *origin = line;
        }
    }
    Ok(blocks)
}
