//! The allocator behind all blocks that name none of their own: Rust's global one, until the
//! embedder puts another in its place.
//!
//! Three designs were weighed. One set of function pointers for everybody frees a live block
//! through a stranger when it is exchanged (what Numba's does with statistics off). Refusing the
//! exchange while blocks live needs a count of all blocks at all times. Here every block remembers,
//! in a byte of its prefix that was free, which allocator it came from: the exchange may happen at
//! any time, and costs nothing until it does.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use spin::Mutex;
use usm_core::AllocKind;

#[cfg(feature = "std")]
use crate::block;
use crate::error::Error;
use crate::external::ExternalAllocator;
use crate::fallible::leaked;
use crate::fork;
#[cfg(feature = "std")]
use crate::local;
use crate::source;
use crate::system;

/// `malloc` of the C library, or one like it.
pub type PlainMalloc = unsafe extern "C" fn(size: usize) -> *mut c_void;
/// `realloc` of the C library, or one like it.
pub type PlainRealloc = unsafe extern "C" fn(ptr: *mut c_void, size: usize) -> *mut c_void;
/// `free` of the C library, or one like it.
pub type PlainFree = unsafe extern "C" fn(ptr: *mut c_void);

/// Allocators that can be told apart; number 0 is Rust's global allocator and has no entry.
const ALLOCATORS: usize = 256;

/// An allocator that was installed once. Never freed, because its blocks know its number.
struct Entry {
    functions: ExternalAllocator,
    /// What its memory is.
    kind: AllocKind,
    /// What `functions.opaque` points to when they are [`PLAIN`].
    plain: Option<Plain>,
}

#[derive(Clone, Copy)]
struct Plain {
    malloc: PlainMalloc,
    realloc: Option<PlainRealloc>,
    free: PlainFree,
}

static ENTRIES: [AtomicPtr<Entry>; ALLOCATORS] = [const { AtomicPtr::new(ptr::null_mut()) }; ALLOCATORS];
/// Taken by those who install; those who allocate only read entries.
pub(crate) static INSTALLING: Mutex<()> = Mutex::new(());

/// Takes all blocks that name no allocator from `allocator`, headers and payloads of varsize blocks
/// included; `None` goes back to Rust's global allocator. The functions are copied. Blocks are
/// always freed by the functions that allocated them, so this may be called while others live. Each
/// block is asked of the functions ([`set_kept_allocator`] is for those that take long).
///
/// Refused without `malloc` or `free`, and when 255 different allocators were installed before.
///
/// # Safety
/// The functions follow C99's rules and may be called from any thread with `opaque`, as long as any
/// block of theirs lives, and until the allocations have returned that other threads had begun when
/// another allocator was installed.
pub unsafe fn set_allocator(allocator: Option<&ExternalAllocator>) -> Result<(), Error> {
    let Some(allocator) = allocator else {
        choose(0, false);
        return Ok(());
    };
    let kind = source::kind_of(allocator).unwrap_or(AllocKind::Unknown);
    // SAFETY: same contract.
    unsafe { set_allocator_of_kind(allocator, kind, false) }
}

/// [`set_allocator`], or with `kept` [`set_kept_allocator`], of functions that give USM of a known
/// kind, which [`MemInfo::kind`](crate::MemInfo::kind) then tells of their blocks. Refused for
/// device memory: blocks hold their own headers.
///
/// # Safety
/// As there; the memory is of that kind.
pub unsafe fn set_allocator_of_kind(
    allocator: &ExternalAllocator,
    kind: AllocKind,
    kept: bool,
) -> Result<(), Error> {
    if allocator.malloc.is_none() || allocator.free.is_none() {
        return Err(Error::IncompleteAllocator);
    }
    if kind == AllocKind::Device {
        return Err(Error::InvalidKind { kind: source::kind_number(kind) });
    }
    #[cfg(feature = "std")]
    if kept {
        // Where it cannot be had, threads give back what they keep by themselves.
        let _ = local::prepare_barrier();
    }
    install(*allocator, None, kind, kept)
}

/// [`set_allocator`] with functions that take longer than a heap's, as those of a device's driver
/// do: blocks of up to 1 KiB are carved out of slabs of 64 KiB, and each thread keeps up to 256 KiB
/// of them for its next ones. The functions see slabs and large blocks.
///
/// A slab goes back when all of its blocks have; the last one of a size stays.
/// [`crate::drain_thread_cache`] gives back what the calling thread keeps, and the next call of
/// this function or of [`set_allocator`] what all threads keep: on Linux at once, elsewhere each
/// thread's with its next block or at its end. Live blocks stay with their slabs.
///
/// As [`set_allocator`], every block from the functions, where threads keep nothing
/// ([`crate::set_thread_cache`]), and while blocks are tracked ([`crate::set_tracking`]).
///
/// # Safety
/// As there.
pub unsafe fn set_kept_allocator(allocator: &ExternalAllocator) -> Result<(), Error> {
    let kind = source::kind_of(allocator).unwrap_or(AllocKind::Unknown);
    // SAFETY: same contract.
    unsafe { set_allocator_of_kind(allocator, kind, true) }
}

/// What lies between the functions of [`set_kept_allocator`] and the owners of blocks.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct KeptCounts {
    /// Slabs that the functions gave and have not got back.
    pub slabs: usize,
    /// Blocks of those slabs that are alive.
    pub live: usize,
}

/// The counts at this moment; with other threads at work each of them may be a little off.
#[cfg(feature = "std")]
pub fn kept_counts() -> KeptCounts {
    let (slabs, live) = block::kept_counts();
    KeptCounts { slabs, live }
}

/// New blocks come from that one; what threads keep of the one before goes back.
fn choose(number: u8, kept: bool) {
    system::set_allocator(number, kept);
    #[cfg(feature = "std")]
    block::begin_generation();
}

/// [`set_allocator`] with functions that take no `opaque`; a missing `realloc` is done by `malloc`
/// and `free`.
///
/// # Safety
/// As there.
pub unsafe fn set_plain_allocator(
    malloc: PlainMalloc,
    realloc: Option<PlainRealloc>,
    free: PlainFree,
) -> Result<(), Error> {
    let functions = ExternalAllocator { realloc: realloc.and(PLAIN.realloc), ..PLAIN };
    install(functions, Some(Plain { malloc, realloc, free }), AllocKind::Unknown, false)
}

/// The number that new blocks are allocated under.
fn install(
    functions: ExternalAllocator,
    plain: Option<Plain>,
    kind: AllocKind,
    kept: bool,
) -> Result<(), Error> {
    fork::watch();
    let guard = INSTALLING.lock();
    for (number, cell) in ENTRIES.iter().enumerate().skip(1) {
        let known = cell.load(Ordering::Acquire);
        // SAFETY: null, or an entry that is never freed.
        match unsafe { known.as_ref() } {
            Some(entry) if entry.kind != kind || !entry.is(&functions, plain) => continue,
            Some(_) => {}
            None => {
                let fresh = leaked(Entry { functions, kind, plain });
                let Some(mut fresh) = fresh else {
                    return Err(Error::OutOfMemory { size: size_of::<Entry>() });
                };
                // SAFETY: nobody else knows it yet.
                let entry = unsafe { fresh.as_mut() };
                if let Some(plain) = &entry.plain {
                    entry.functions.opaque = ptr::from_ref(plain).cast_mut().cast();
                }
                cell.store(entry, Ordering::Release);
            }
        }
        // What is given back may call whom it likes.
        drop(guard);
        // Fits: there are 256 entries.
        choose(number as u8, kept);
        return Ok(());
    }
    Err(Error::TooManyAllocators { limit: ALLOCATORS - 1 })
}

impl Entry {
    fn is(&self, functions: &ExternalAllocator, plain: Option<Plain>) -> bool {
        let addresses =
            |plain: Plain| (plain.malloc as usize, plain.realloc.map(|f| f as usize), plain.free as usize);
        match (self.plain, plain) {
            (Some(ours), Some(theirs)) => addresses(ours) == addresses(theirs),
            (None, None) => self.functions.is_same(functions),
            _ => false,
        }
    }
}

fn entry(number: u8) -> Option<&'static Entry> {
    let entry = ENTRIES[usize::from(number)].load(Ordering::Acquire);
    // SAFETY: null, or an entry that is never freed.
    unsafe { entry.as_ref() }
}

/// The functions of an installed allocator.
pub(crate) fn installed(number: u8) -> Option<&'static ExternalAllocator> {
    entry(number).map(|entry| &entry.functions)
}

/// What kind of memory an installed allocator gives; `None` for the global one.
pub(crate) fn kind_of(number: u8) -> Option<AllocKind> {
    entry(number).map(|entry| entry.kind)
}

/// Functions without `opaque`, behind functions with one.
static PLAIN: ExternalAllocator = ExternalAllocator {
    malloc: Some(plain_malloc),
    realloc: Some(plain_realloc),
    free: Some(plain_free),
    opaque: ptr::null_mut(),
};

/// # Safety
/// `opaque` is that of an entry made by [`install`] with plain functions.
unsafe fn plain(opaque: *mut c_void) -> Plain {
    // SAFETY: as the caller promises; entries are never freed or changed.
    unsafe { opaque.cast::<Plain>().read() }
}

unsafe extern "C" fn plain_malloc(size: usize, opaque: *mut c_void) -> *mut c_void {
    // SAFETY: called with the opaque pointer of its entry.
    let plain = unsafe { plain(opaque) };
    // SAFETY: the installed function.
    unsafe { (plain.malloc)(size) }
}

unsafe extern "C" fn plain_realloc(block: *mut c_void, size: usize, opaque: *mut c_void) -> *mut c_void {
    // SAFETY: called with the opaque pointer of its entry.
    match unsafe { plain(opaque) }.realloc {
        // SAFETY: the installed function, with a block of its own.
        Some(realloc) => unsafe { realloc(block, size) },
        None => ptr::null_mut(),
    }
}

unsafe extern "C" fn plain_free(block: *mut c_void, opaque: *mut c_void) {
    // SAFETY: called with the opaque pointer of its entry.
    let plain = unsafe { plain(opaque) };
    // SAFETY: the installed function, with a block of its own.
    unsafe { (plain.free)(block) }
}
