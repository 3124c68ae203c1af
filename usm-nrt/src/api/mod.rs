//! Function tables for C: Numba's six entries, and the versioned table of this runtime.

mod block;
pub(crate) mod numba;
mod slots;
mod status;
mod system;

use core::ffi::{c_char, c_void};
use core::ptr::NonNull;

pub use numba::{NUMBA_API, NumbaApi};
pub use status::Status;

pub use crate::source::kind_number;

#[cfg(feature = "capi")]
pub(crate) use block::call_dtor;

use crate::destructor::{Dtor, Owner};
use crate::external::ExternalAllocator;
use crate::meminfo::MemInfo;
use crate::stats::Stats;
use crate::symbols::{Slot, SlotTable};
use crate::track;

/// Version of [`Api`]. It rises when an entry's meaning changes. New entries are added at the end
/// and raise [`Api::size`] only.
pub const API_VERSION: u32 = 1;

/// The versioned table of this runtime. Check `version` first; check `size` before you call an
/// entry that is newer than your header.
///
/// A function that can fail returns a [`Status`], and writes its result through the last argument
/// only on success. Block arguments must not be null unless the entry says so.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Api {
    /// [`API_VERSION`] of the library.
    pub version: u32,
    /// Bytes of the library's table.
    pub size: u32,
    /// The six-entry table, for code written against Numba's header.
    pub numba: *const NumbaApi,
    /// Makes a block. Bit 0 of `flags` selects the safe variant, which fills with 0xCB and 0xDE.
    /// `dtor` and `allocator` may be null.
    pub allocate: unsafe extern "C" fn(
        size: usize,
        align: usize,
        flags: u32,
        dtor: Option<Dtor>,
        allocator: *mut ExternalAllocator,
        out: *mut *mut MemInfo,
    ) -> Status,
    /// Wraps foreign memory of known size in bytes.
    pub wrap: unsafe extern "C" fn(
        data: *mut c_void,
        size: usize,
        dtor: Option<Dtor>,
        info: *mut c_void,
        out: *mut *mut MemInfo,
    ) -> Status,
    /// Wraps foreign memory with a tagged owner. The record is copied.
    pub wrap_owned: unsafe extern "C" fn(
        data: *mut c_void,
        size: usize,
        owner: *const Owner,
        out: *mut *mut MemInfo,
    ) -> Status,
    /// Makes a block with a replaceable payload of `size` bytes.
    pub new_varsize: unsafe extern "C" fn(size: usize, dtor: Option<Dtor>, out: *mut *mut MemInfo) -> Status,
    /// Allocates a new payload. The caller frees the old one. On failure the old one stays in
    /// place.
    pub varsize_alloc: unsafe extern "C" fn(mi: *mut MemInfo, size: usize, out: *mut *mut c_void) -> Status,
    /// Resizes the payload. On failure the old one stays in place.
    pub varsize_realloc: unsafe extern "C" fn(mi: *mut MemInfo, size: usize, out: *mut *mut c_void) -> Status,
    /// Frees a current or former payload of the block. Does nothing for a block without a payload
    /// of this runtime.
    pub varsize_free: unsafe extern "C" fn(mi: *mut MemInfo, payload: *mut c_void),
    /// Adds a reference without an atomic instruction. No other thread may use the block meanwhile.
    pub acquire_unsync: unsafe extern "C" fn(mi: *mut MemInfo),
    /// Releases a reference without an atomic instruction.
    pub release_unsync: unsafe extern "C" fn(mi: *mut MemInfo),
    /// Destroys a block whose count compiled code lowered to zero.
    pub call_dtor: unsafe extern "C" fn(mi: *mut MemInfo),
    /// The current number of references.
    pub refcount: unsafe extern "C" fn(mi: *const MemInfo) -> usize,
    /// Size of the data in bytes.
    pub data_size: unsafe extern "C" fn(mi: *const MemInfo) -> usize,
    /// Kind of USM: 0 unknown or plain memory, 1 host, 2 device, 3 shared (the numbers of Level
    /// Zero).
    pub kind: unsafe extern "C" fn(mi: *const MemInfo) -> u32,
    /// Copies the owner record. Returns false if the block has none.
    pub owner: unsafe extern "C" fn(mi: *const MemInfo, out: *mut Owner) -> bool,
    /// Copies the counts. Returns whether counting is on.
    pub stats: unsafe extern "C" fn(out: *mut Stats) -> bool,
    /// Turns counting on or off.
    pub set_stats: unsafe extern "C" fn(on: bool),
    /// Turns the thread cache of small blocks on or off.
    pub set_thread_cache: unsafe extern "C" fn(on: bool),
    /// Frees the blocks that the calling thread keeps.
    pub drain_thread_cache: unsafe extern "C" fn(),
    /// Enters or leaves shutdown, during which foreign destructors are skipped.
    pub set_shutdown: unsafe extern "C" fn(on: bool),
    /// Turns the registry of live blocks on or off.
    pub set_tracking: unsafe extern "C" fn(on: bool),
    /// Calls `visit` (may be null) with every live tracked block. Returns their number, or
    /// `usize::MAX` without any visit if there is no memory for the list. `visit` must not release
    /// the block that it sees.
    pub live_blocks: unsafe extern "C" fn(
        visit: Option<unsafe extern "C" fn(block: *const CLiveBlock, context: *mut c_void)>,
        context: *mut c_void,
    ) -> usize,
    /// Makes a table of symbol slots, which hold `abort` until resolved. Null if `abort` is null or
    /// memory is short.
    pub slots_new: unsafe extern "C" fn(abort: *mut c_void) -> *mut SlotTable,
    /// Frees a table. No code may call through its slots afterwards.
    pub slots_free: unsafe extern "C" fn(slots: *mut SlotTable),
    /// The slot of a symbol; `length` is in bytes. Null if the name is not UTF-8, or there is no
    /// memory for a new slot.
    pub slots_get:
        unsafe extern "C" fn(slots: *const SlotTable, name: *const c_char, length: usize) -> *const Slot,
    /// Defines a symbol. False if it has another definition, the name is not UTF-8, the address is
    /// null, or memory is short.
    pub slots_resolve: unsafe extern "C" fn(
        slots: *const SlotTable,
        name: *const c_char,
        length: usize,
        address: *mut c_void,
    ) -> bool,
    /// Calls `visit` (may be null) with every unresolved name. Returns their number.
    pub slots_unresolved: unsafe extern "C" fn(
        slots: *const SlotTable,
        visit: Option<unsafe extern "C" fn(name: *const c_char, length: usize, context: *mut c_void)>,
        context: *mut c_void,
    ) -> usize,
    /// Allocates later blocks that name no allocator from this one; null restores the global
    /// allocator. The functions are copied. Live blocks keep their allocator.
    pub set_allocator: unsafe extern "C" fn(allocator: *const ExternalAllocator) -> Status,
    /// Number of this runtime's blocks that another runtime destroyed while counting was on. Both
    /// runtimes count them as freed.
    pub foreign_frees: unsafe extern "C" fn() -> usize,
    /// [`Self::set_allocator`] for slow functions: small blocks are carved out of slabs and kept by
    /// threads. The argument must not be null.
    pub set_kept_allocator: unsafe extern "C" fn(allocator: *const ExternalAllocator) -> Status,
    /// Writes the number of slabs of such an allocator, and of live blocks in them. Both may be
    /// null.
    pub kept_counts: unsafe extern "C" fn(slabs: *mut usize, live: *mut usize),
    /// `set_allocator`, or with `kept` `set_kept_allocator`, for USM of a known kind: 1 host, 3
    /// shared, 0 unknown. `kind` then reports this kind for their blocks.
    pub set_allocator_of_kind:
        unsafe extern "C" fn(allocator: *const ExternalAllocator, kind: u32, kept: bool) -> Status,
    /// `wrap_owned` for USM of a known kind, 0 to 3.
    pub wrap_owned_of_kind: unsafe extern "C" fn(
        data: *mut c_void,
        size: usize,
        owner: *const Owner,
        kind: u32,
        out: *mut *mut MemInfo,
    ) -> Status,
    /// The `sequence` of a live tracked block. No two blocks ever share one. `u64::MAX` for other
    /// addresses.
    pub sequence: unsafe extern "C" fn(mi: *const MemInfo) -> u64,
}

// SAFETY: constant function pointers and a pointer to a static.
unsafe impl Sync for Api {}
// SAFETY: as above.
unsafe impl Send for Api {}

/// The block that C passed to function `what`, or `None` for null, after the check for misuse.
///
/// # Safety
/// `mi` is null or a live block, and lives for `'a`.
#[inline(always)]
pub(crate) unsafe fn checked_block<'a>(mi: *const MemInfo, what: &str) -> Option<&'a MemInfo> {
    let mi = NonNull::new(mi.cast_mut())?;
    track::check(mi, what);
    // SAFETY: as the caller promises.
    Some(unsafe { mi.as_ref() })
}

/// A live tracked block, for C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CLiveBlock {
    /// The header. Another thread may have freed it since the report.
    pub mi: *const c_void,
    /// The data pointer.
    pub data: *const c_void,
    /// Size of the data in bytes.
    pub size: usize,
    /// The number of references.
    pub refcount: usize,
    /// Order of allocation.
    pub sequence: u64,
    /// The place of allocation: UTF-8, `origin_length` bytes, not terminated. Valid during the
    /// visit.
    pub origin: *const c_char,
    /// Bytes of `origin`.
    pub origin_length: usize,
}

/// The versioned table of this runtime.
pub static API: Api = Api {
    version: API_VERSION,
    size: size_of::<Api>() as u32,
    numba: &raw const NUMBA_API,
    allocate: block::allocate,
    wrap: block::wrap,
    wrap_owned: block::wrap_owned,
    new_varsize: block::new_varsize,
    varsize_alloc: block::varsize_alloc,
    varsize_realloc: block::varsize_realloc,
    varsize_free: block::varsize_free,
    acquire_unsync: block::acquire_unsync,
    release_unsync: block::release_unsync,
    call_dtor: block::call_dtor,
    refcount: block::refcount,
    data_size: block::data_size,
    kind: block::kind,
    owner: block::owner,
    stats: system::stats,
    set_stats: system::set_stats,
    set_thread_cache: system::set_thread_cache,
    drain_thread_cache: system::drain_thread_cache,
    set_shutdown: system::set_shutdown,
    set_tracking: system::set_tracking,
    live_blocks: system::live_blocks,
    slots_new: slots::new,
    slots_free: slots::free,
    slots_get: slots::get,
    slots_resolve: slots::resolve,
    slots_unresolved: slots::unresolved,
    set_allocator: system::set_allocator,
    foreign_frees: system::foreign_frees,
    set_kept_allocator: system::set_kept_allocator,
    kept_counts: system::kept_counts,
    set_allocator_of_kind: system::set_allocator_of_kind,
    wrap_owned_of_kind: block::wrap_owned_of_kind,
    sequence: system::sequence,
};
