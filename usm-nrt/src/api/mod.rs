//! Function tables for C: Numba's six entries, and this runtime's own versioned table.

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

/// Version of [`Api`]; raised when the meaning of an entry changes. New entries are added at the
/// end and raise [`Api::size`] only.
pub const API_VERSION: u32 = 1;

/// This runtime's own table. Check `version`, and `size` before using an entry newer than your
/// header.
///
/// Functions that can fail return a [`Status`] and write their result through the last argument,
/// only on success. Blocks passed in must not be null unless an entry says so.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Api {
    /// [`API_VERSION`] of the library.
    pub version: u32,
    /// Bytes of the library's table.
    pub size: u32,
    /// The six-entry table, for code written against Numba's header.
    pub numba: *const NumbaApi,
    /// A new block. `flags`: bit 0 asks for the safe variant (0xCB / 0xDE fill). `dtor` and
    /// `allocator` may be null.
    pub allocate: unsafe extern "C" fn(
        size: usize,
        align: usize,
        flags: u32,
        dtor: Option<Dtor>,
        allocator: *mut ExternalAllocator,
        out: *mut *mut MemInfo,
    ) -> Status,
    /// A block around foreign memory of known size.
    pub wrap: unsafe extern "C" fn(
        data: *mut c_void,
        size: usize,
        dtor: Option<Dtor>,
        info: *mut c_void,
        out: *mut *mut MemInfo,
    ) -> Status,
    /// A block around foreign memory with a tagged owner; the record is copied.
    pub wrap_owned: unsafe extern "C" fn(
        data: *mut c_void,
        size: usize,
        owner: *const Owner,
        out: *mut *mut MemInfo,
    ) -> Status,
    /// A block with a replaceable payload.
    pub new_varsize: unsafe extern "C" fn(size: usize, dtor: Option<Dtor>, out: *mut *mut MemInfo) -> Status,
    /// A new payload; the old one is the caller's to free, and on failure it stays in place.
    pub varsize_alloc: unsafe extern "C" fn(mi: *mut MemInfo, size: usize, out: *mut *mut c_void) -> Status,
    /// The payload resized; on failure the old one stays in place.
    pub varsize_realloc: unsafe extern "C" fn(mi: *mut MemInfo, size: usize, out: *mut *mut c_void) -> Status,
    /// Frees a payload that the block has or had; nothing for a block without one of this runtime.
    pub varsize_free: unsafe extern "C" fn(mi: *mut MemInfo, payload: *mut c_void),
    /// Adds a reference without a locked instruction: no other thread may use the block meanwhile.
    pub acquire_unsync: unsafe extern "C" fn(mi: *mut MemInfo),
    /// Gives a reference back without a locked instruction.
    pub release_unsync: unsafe extern "C" fn(mi: *mut MemInfo),
    /// Destroys a block whose count compiled code brought to zero.
    pub call_dtor: unsafe extern "C" fn(mi: *mut MemInfo),
    /// References at this moment.
    pub refcount: unsafe extern "C" fn(mi: *const MemInfo) -> usize,
    /// Bytes at the data pointer.
    pub data_size: unsafe extern "C" fn(mi: *const MemInfo) -> usize,
    /// Kind of USM: 0 unknown or plain memory, 1 host, 2 device, 3 shared (the numbers of Level
    /// Zero).
    pub kind: unsafe extern "C" fn(mi: *const MemInfo) -> u32,
    /// Copies the owner record; false when there is none.
    pub owner: unsafe extern "C" fn(mi: *const MemInfo, out: *mut Owner) -> bool,
    /// Copies the counts so far; returns whether counting is on.
    pub stats: unsafe extern "C" fn(out: *mut Stats) -> bool,
    /// Switches counting.
    pub set_stats: unsafe extern "C" fn(on: bool),
    /// Switches the caching of small blocks per thread.
    pub set_thread_cache: unsafe extern "C" fn(on: bool),
    /// Frees what the calling thread holds back.
    pub drain_thread_cache: unsafe extern "C" fn(),
    /// Enters or leaves shutdown, in which foreign destructors are skipped.
    pub set_shutdown: unsafe extern "C" fn(on: bool),
    /// Switches the record of live blocks.
    pub set_tracking: unsafe extern "C" fn(on: bool),
    /// Calls `visit` (may be null) with every tracked block that is alive, and returns how many
    /// there are; `usize::MAX`, and nothing visited, without memory for the list. `visit` must not
    /// release the block it sees.
    pub live_blocks: unsafe extern "C" fn(
        visit: Option<unsafe extern "C" fn(block: *const CLiveBlock, context: *mut c_void)>,
        context: *mut c_void,
    ) -> usize,
    /// A table of symbol slots that hold `abort` until resolved; null for null, and without memory.
    pub slots_new: unsafe extern "C" fn(abort: *mut c_void) -> *mut SlotTable,
    /// Frees a table; no code may call through its slots any more.
    pub slots_free: unsafe extern "C" fn(slots: *mut SlotTable),
    /// The slot of a symbol; null unless the name (length in bytes) is UTF-8, and without memory
    /// for a new one.
    pub slots_get:
        unsafe extern "C" fn(slots: *const SlotTable, name: *const c_char, length: usize) -> *const Slot,
    /// Defines a symbol; false when it is defined otherwise, or the name is not UTF-8, or the
    /// address null, or without memory.
    pub slots_resolve: unsafe extern "C" fn(
        slots: *const SlotTable,
        name: *const c_char,
        length: usize,
        address: *mut c_void,
    ) -> bool,
    /// Calls `visit` (may be null) with every unresolved name and returns how many there are.
    pub slots_unresolved: unsafe extern "C" fn(
        slots: *const SlotTable,
        visit: Option<unsafe extern "C" fn(name: *const c_char, length: usize, context: *mut c_void)>,
        context: *mut c_void,
    ) -> usize,
    /// Takes all blocks that name no allocator from this one (the functions are copied), null: from
    /// the global one again. Live blocks keep theirs.
    pub set_allocator: unsafe extern "C" fn(allocator: *const ExternalAllocator) -> Status,
    /// How many of this runtime's blocks another runtime destroyed while counting was on; the
    /// statistics have them as freed, and so has the other runtime.
    pub foreign_frees: unsafe extern "C" fn() -> usize,
    /// [`Self::set_allocator`] with functions that take long: small blocks are carved out of slabs,
    /// and kept by threads; not null.
    pub set_kept_allocator: unsafe extern "C" fn(allocator: *const ExternalAllocator) -> Status,
    /// How many slabs such functions gave, and how many blocks of them are alive; both may be null.
    pub kept_counts: unsafe extern "C" fn(slabs: *mut usize, live: *mut usize),
    /// `set_allocator`, or with `kept` `set_kept_allocator`, of functions that give USM of a known
    /// kind (1 host, 3 shared; 0 for what is not known), which `kind` then tells of their blocks.
    pub set_allocator_of_kind:
        unsafe extern "C" fn(allocator: *const ExternalAllocator, kind: u32, kept: bool) -> Status,
    /// `wrap_owned` of USM of a known kind, 0 to 3.
    pub wrap_owned_of_kind: unsafe extern "C" fn(
        data: *mut c_void,
        size: usize,
        owner: *const Owner,
        kind: u32,
        out: *mut *mut MemInfo,
    ) -> Status,
    /// The `sequence` of a tracked block that is alive, which no other block ever has; `u64::MAX`
    /// for any other.
    pub sequence: unsafe extern "C" fn(mi: *const MemInfo) -> u64,
}

// SAFETY: constant function pointers and a pointer to a static.
unsafe impl Sync for Api {}
// SAFETY: as above.
unsafe impl Send for Api {}

/// A block that C passes to the function `what`.
///
/// # Safety
/// `mi` is null or a live block, and lives for `'a`.
#[inline(always)]
pub(crate) unsafe fn live<'a>(mi: *const MemInfo, what: &str) -> Option<&'a MemInfo> {
    let mi = NonNull::new(mi.cast_mut())?;
    track::check(mi, what);
    // SAFETY: as the caller promises.
    Some(unsafe { mi.as_ref() })
}

/// A tracked block, for C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CLiveBlock {
    /// The header; may have been freed by another thread since the report.
    pub mi: *const c_void,
    /// The data.
    pub data: *const c_void,
    /// Bytes of data.
    pub size: usize,
    /// References.
    pub refcount: usize,
    /// Order of allocation.
    pub sequence: u64,
    /// Where it was allocated, UTF-8, `origin_length` bytes, not terminated; valid during the
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
