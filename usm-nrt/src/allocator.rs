//! The allocator behind all blocks that name none of their own: Rust's global one, until the embedder puts
//! another in its place.
//!
//! Three designs were weighed. One set of function pointers for everybody frees a live block through a
//! stranger when it is exchanged (what Numba's does with statistics off). Refusing the exchange while blocks live needs
//! a count of all blocks at all times. Here every block remembers, in a byte of its prefix that was free, which
//! allocator it came from: the exchange may happen at any time, and costs nothing until it does.

use alloc::boxed::Box;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use spin::Mutex;

use crate::error::Error;
use crate::external::ExternalAllocator;
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
static INSTALLING: Mutex<()> = Mutex::new(());

/// Takes all blocks that name no allocator from `allocator`, headers and payloads of varsize blocks included;
/// `None` goes back to Rust's global allocator. The functions are copied. Blocks are always freed by the
/// functions that allocated them, so this may be called while others live. Nothing is cached per thread
/// meanwhile.
///
/// Refused without `malloc` or `free`, and when 255 different allocators were installed before.
///
/// # Safety
/// The functions follow C99's rules and may be called from any thread with `opaque`, as long as any block of theirs lives.
pub unsafe fn set_allocator(allocator: Option<&ExternalAllocator>) -> Result<(), Error> {
    let Some(allocator) = allocator else {
        system::set_allocator(0);
        return Ok(());
    };
    if allocator.malloc.is_none() || allocator.free.is_none() {
        return Err(Error::IncompleteAllocator);
    }
    install(*allocator, None)
}

/// [`set_allocator`] with functions that take no `opaque`; a missing `realloc` is done by `malloc` and `free`.
///
/// # Safety
/// As there.
pub unsafe fn set_plain_allocator(
    malloc: PlainMalloc,
    realloc: Option<PlainRealloc>,
    free: PlainFree,
) -> Result<(), Error> {
    let functions = ExternalAllocator { realloc: realloc.and(PLAIN.realloc), ..PLAIN };
    install(functions, Some(Plain { malloc, realloc, free }))
}

/// The number that new blocks are allocated under.
fn install(functions: ExternalAllocator, plain: Option<Plain>) -> Result<(), Error> {
    let _guard = INSTALLING.lock();
    for (number, cell) in ENTRIES.iter().enumerate().skip(1) {
        let known = cell.load(Ordering::Acquire);
        // SAFETY: null, or an entry that is never freed.
        match unsafe { known.as_ref() } {
            Some(entry) if !entry.is(&functions, plain) => continue,
            Some(_) => {}
            None => {
                let entry = Box::leak(Box::new(Entry { functions, plain }));
                if let Some(plain) = &entry.plain {
                    entry.functions.opaque = ptr::from_ref(plain).cast_mut().cast();
                }
                cell.store(entry, Ordering::Release);
            }
        }
        // Fits: there are 256 entries.
        system::set_allocator(number as u8);
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

/// The functions of an installed allocator.
pub(crate) fn installed(number: u8) -> Option<&'static ExternalAllocator> {
    let entry = ENTRIES[usize::from(number)].load(Ordering::Acquire);
    // SAFETY: null, or an entry that is never freed.
    unsafe { entry.as_ref() }.map(|entry| &entry.functions)
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
