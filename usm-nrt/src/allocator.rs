//! The allocator behind every block that names none of its own: Rust's global allocator, until the
//! embedding program installs another one.
//!
//! Three designs were compared. Numba's single set of function pointers frees a live block through
//! the wrong allocator when the set is exchanged. Refusing an exchange while blocks live needs a
//! count of all blocks at all times. This crate stores the allocator's number in a free byte of
//! every block's prefix: an exchange is then allowed at any time, and costs nothing before the
//! first one.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use spin::Mutex;
use usm_core::AllocKind;

#[cfg(feature = "std")]
use crate::block;
use crate::error::Error;
use crate::external::ExternalAllocator;
use crate::fallible::try_into_raw;
use crate::fork;
use crate::source;
use crate::system;

/// A function like the C library's `malloc`.
pub type PlainMalloc = unsafe extern "C" fn(size: usize) -> *mut c_void;
/// A function like the C library's `realloc`.
pub type PlainRealloc = unsafe extern "C" fn(ptr: *mut c_void, size: usize) -> *mut c_void;
/// A function like the C library's `free`.
pub type PlainFree = unsafe extern "C" fn(ptr: *mut c_void);

/// Number of allocators that a block can name. Number 0 is Rust's global allocator and has no
/// entry.
const ALLOCATORS: usize = 256;

/// An installed allocator. Never freed, because its blocks store its number.
struct Entry {
    functions: ExternalAllocator,
    /// The kind of its memory.
    kind: AllocKind,
    /// The functions behind `functions.opaque` if `functions` is [`PLAIN`].
    plain: Option<Plain>,
}

#[derive(Clone, Copy)]
struct Plain {
    malloc: PlainMalloc,
    realloc: Option<PlainRealloc>,
    free: PlainFree,
}

static ENTRIES: [AtomicPtr<Entry>; ALLOCATORS] = [const { AtomicPtr::new(ptr::null_mut()) }; ALLOCATORS];
/// Held while an allocator is installed. Allocating threads only read entries.
pub(crate) static INSTALLING: Mutex<()> = Mutex::new(());

/// Allocates all later blocks that name no allocator from `allocator`: headers, and payloads of
/// varsize blocks too. `None` restores Rust's global allocator. The functions are copied. A block
/// is always freed by the functions that allocated it, so an exchange is allowed while blocks live.
/// Every block calls the functions; use [`set_kept_allocator`] for slow functions.
///
/// # Errors
/// [`Error::IncompleteAllocator`] without `malloc` or `free`; [`Error::TooManyAllocators`] after
/// 255 different allocators.
///
/// # Safety
/// The functions follow C99's rules. Any thread may call them with `opaque` as long as a block of
/// theirs lives. After another allocator was installed, they stay callable until every allocation
/// that had begun before has returned.
pub unsafe fn set_allocator(allocator: Option<&ExternalAllocator>) -> Result<(), Error> {
    let Some(allocator) = allocator else {
        select_allocator(0, false);
        return Ok(());
    };
    let kind = source::kind_of(allocator).unwrap_or(AllocKind::Unknown);
    // SAFETY: same contract.
    unsafe { set_allocator_of_kind(allocator, kind, false) }
}

/// [`set_allocator`], or with `is_kept` [`set_kept_allocator`], for functions that allocate USM of a
/// known kind. [`MemInfo::kind`](crate::MemInfo::kind) then reports this kind for their blocks.
/// Refuses device memory, because the host writes headers into blocks.
///
/// # Safety
/// As for those functions; the memory is of kind `kind`.
pub unsafe fn set_allocator_of_kind(
    allocator: &ExternalAllocator,
    kind: AllocKind,
    is_kept: bool,
) -> Result<(), Error> {
    if allocator.malloc.is_none() || allocator.free.is_none() {
        return Err(Error::IncompleteAllocator);
    }
    if kind == AllocKind::Device {
        return Err(Error::InvalidKind { kind: source::kind_number(kind) });
    }
    #[cfg(feature = "std")]
    if is_kept {
        // Without the barrier, each thread returns its kept blocks by itself.
        let _ = usm_core::per_thread::prepare();
    }
    install(*allocator, None, kind, is_kept)
}

/// [`set_allocator`] for slow functions, such as a device driver's. Blocks of up to 1 KiB are
/// carved out of slabs of 64 KiB, and each thread keeps up to 256 KiB of them for reuse. The
/// functions are called for slabs and large blocks only.
///
/// A slab is freed once all of its blocks are free; the last slab of each size class stays.
/// [`crate::drain_thread_cache`] returns the calling thread's kept blocks. The next call of this
/// function or of [`set_allocator`] returns those of all threads: at once on Linux; elsewhere when
/// the thread next allocates, or ends. Live blocks stay in their slabs.
///
/// Every block calls the functions, as with [`set_allocator`], while the thread cache is off
/// ([`crate::set_thread_cache`]) or blocks are tracked ([`crate::set_tracking`]).
///
/// # Safety
/// As for [`set_allocator`].
pub unsafe fn set_kept_allocator(allocator: &ExternalAllocator) -> Result<(), Error> {
    let kind = source::kind_of(allocator).unwrap_or(AllocKind::Unknown);
    // SAFETY: same contract.
    unsafe { set_allocator_of_kind(allocator, kind, true) }
}

/// Counts of the slabs and blocks that [`set_kept_allocator`] keeps.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct KeptCounts {
    /// Slabs that the functions allocated and that are not freed.
    pub slabs: usize,
    /// Live blocks in those slabs.
    pub live: usize,
}

/// The current counts. Each may be slightly off while other threads allocate.
#[cfg(feature = "std")]
pub fn kept_counts() -> KeptCounts {
    let (slabs, live) = block::kept_counts();
    KeptCounts { slabs, live }
}

/// Makes `number` the allocator of new blocks, and returns the blocks that threads keep of the
/// previous one.
fn select_allocator(number: u8, is_kept: bool) {
    system::set_allocator(number, is_kept);
    #[cfg(feature = "std")]
    block::begin_generation();
}

/// [`set_allocator`] for functions without `opaque`. A missing `realloc` is replaced by `malloc`, a
/// copy and `free`.
///
/// # Safety
/// As for [`set_allocator`].
pub unsafe fn set_plain_allocator(
    malloc: PlainMalloc,
    realloc: Option<PlainRealloc>,
    free: PlainFree,
) -> Result<(), Error> {
    let functions = ExternalAllocator { realloc: realloc.and(PLAIN.realloc), ..PLAIN };
    install(functions, Some(Plain { malloc, realloc, free }), AllocKind::Unknown, false)
}

/// Registers the functions and returns their number, which new blocks store.
fn install(
    functions: ExternalAllocator,
    plain: Option<Plain>,
    kind: AllocKind,
    is_kept: bool,
) -> Result<(), Error> {
    fork::watch();
    let guard = INSTALLING.lock();
    for (number, cell) in ENTRIES.iter().enumerate().skip(1) {
        let stored_address = cell.load(Ordering::Acquire);
        // SAFETY: null, or an entry that is never freed.
        match unsafe { stored_address.as_ref() } {
            Some(entry) if entry.kind != kind || !entry.has_functions(&functions, plain) => continue,
            Some(_) => {}
            None => {
                let fresh = try_into_raw(Entry { functions, kind, plain });
                let Some(mut fresh) = fresh else {
                    return Err(Error::OutOfMemory { size: size_of::<Entry>() });
                };
                // SAFETY: the entry is not published yet.
                let entry = unsafe { fresh.as_mut() };
                if let Some(plain) = &entry.plain {
                    entry.functions.opaque = ptr::from_ref(plain).cast_mut().cast();
                }
                cell.store(entry, Ordering::Release);
            }
        }
        // Freeing may call foreign functions, so the lock is released first.
        drop(guard);
        // Fits: there are 256 entries.
        select_allocator(number as u8, is_kept);
        return Ok(());
    }
    Err(Error::TooManyAllocators { limit: ALLOCATORS - 1 })
}

impl Entry {
    fn has_functions(&self, functions: &ExternalAllocator, plain: Option<Plain>) -> bool {
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

/// The kind of memory of an installed allocator; `None` for the global one.
pub(crate) fn kind_of(number: u8) -> Option<AllocKind> {
    entry(number).map(|entry| entry.kind)
}

/// The functions of [`ExternalAllocator`] that call functions without `opaque`.
static PLAIN: ExternalAllocator = ExternalAllocator {
    malloc: Some(plain_malloc),
    realloc: Some(plain_realloc),
    free: Some(plain_free),
    opaque: ptr::null_mut(),
};

/// # Safety
/// `opaque` is that of an entry made by [`install`] with plain functions.
unsafe fn plain_functions(opaque: *mut c_void) -> Plain {
    // SAFETY: as the caller promises; entries are never freed or changed.
    unsafe { opaque.cast::<Plain>().read() }
}

unsafe extern "C" fn plain_malloc(size: usize, opaque: *mut c_void) -> *mut c_void {
    // SAFETY: called with the opaque pointer of its entry.
    let plain = unsafe { plain_functions(opaque) };
    // SAFETY: the installed function.
    unsafe { (plain.malloc)(size) }
}

unsafe extern "C" fn plain_realloc(block: *mut c_void, size: usize, opaque: *mut c_void) -> *mut c_void {
    // SAFETY: called with the opaque pointer of its entry.
    match unsafe { plain_functions(opaque) }.realloc {
        // SAFETY: the installed function, with a block of its own.
        Some(realloc) => unsafe { realloc(block, size) },
        None => ptr::null_mut(),
    }
}

unsafe extern "C" fn plain_free(block: *mut c_void, opaque: *mut c_void) {
    // SAFETY: called with the opaque pointer of its entry.
    let plain = unsafe { plain_functions(opaque) };
    // SAFETY: the installed function, with a block of its own.
    unsafe { (plain.free)(block) }
}
