//! Function tables for C: Numba's six entries, and this runtime's own versioned table.

use alloc::boxed::Box;
use core::ffi::{c_char, c_void};
use core::ptr::{self, NonNull};

use usm_core::AllocKind;

use crate::destructor::{Dtor, ManagedDtor, Owner};
use crate::error::Error;
use crate::external::ExternalAllocator;
use crate::local;
use crate::meminfo::{MemInfo, Request};
use crate::stats::Stats;
use crate::symbols::{Slot, SlotTable};
use crate::system;
use crate::track;

/// Numba's public table, `NRT_api_functions`: same entries, same order, same meaning.
///
/// Null in gives null (or nothing) out; a failed allocation gives null.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct NumbaApi {
    /// A new block of `nbytes` bytes.
    pub allocate: unsafe extern "C" fn(nbytes: usize) -> *mut MemInfo,
    /// A new block whose memory comes from `allocator`.
    pub allocate_external:
        unsafe extern "C" fn(nbytes: usize, allocator: *mut ExternalAllocator) -> *mut MemInfo,
    /// A block around foreign memory that `dtor` will free.
    pub manage_memory: unsafe extern "C" fn(data: *mut c_void, dtor: Option<ManagedDtor>) -> *mut MemInfo,
    /// Adds a reference.
    pub acquire: unsafe extern "C" fn(mi: *mut MemInfo),
    /// Gives a reference back.
    pub release: unsafe extern "C" fn(mi: *mut MemInfo),
    /// The data pointer.
    pub get_data: unsafe extern "C" fn(mi: *mut MemInfo) -> *mut c_void,
}

const _: () = assert!(size_of::<NumbaApi>() == 6 * size_of::<usize>());

/// The six-entry table of this runtime.
pub static NUMBA_API: NumbaApi = NumbaApi {
    allocate: nrt_allocate,
    allocate_external: nrt_allocate_external,
    manage_memory: nrt_manage_memory,
    acquire: nrt_acquire,
    release: nrt_release,
    get_data: nrt_data,
};

/// Version of [`Api`]; raised when the meaning of an entry changes. New entries are added at the end and
/// raise [`Api::size`] only.
pub const API_VERSION: u32 = 1;

/// This runtime's own table. Check `version`, and `size` before using an entry newer than your header.
///
/// Functions that can fail return a [`Status`] and write their result through the last argument, only on
/// success. Blocks passed in must not be null unless an entry says so.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Api {
    /// [`API_VERSION`] of the library.
    pub version: u32,
    /// Bytes of the library's table.
    pub size: u32,
    /// The six-entry table, for code written against Numba's header.
    pub numba: *const NumbaApi,
    /// A new block. `flags`: bit 0 asks for the safe variant (0xCB / 0xDE fill). `dtor` and `allocator` may be
    /// null.
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
    /// Frees a payload that the block has or had.
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
    /// Kind of USM: 0 unknown or plain memory, 1 host, 2 device, 3 shared (the numbers of Level Zero).
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
    /// Calls `visit` (may be null) with every tracked block that is alive, and returns how many there are. `visit`
    /// must not release the block it sees.
    pub live_blocks: unsafe extern "C" fn(
        visit: Option<unsafe extern "C" fn(block: *const CLiveBlock, context: *mut c_void)>,
        context: *mut c_void,
    ) -> usize,
    /// A table of symbol slots that hold `abort` until resolved; null for null.
    pub slots_new: unsafe extern "C" fn(abort: *mut c_void) -> *mut SlotTable,
    /// Frees a table; no code may call through its slots any more.
    pub slots_free: unsafe extern "C" fn(slots: *mut SlotTable),
    /// The slot of a symbol; null unless the name (length in bytes) is UTF-8.
    pub slots_get:
        unsafe extern "C" fn(slots: *const SlotTable, name: *const c_char, length: usize) -> *const Slot,
    /// Defines a symbol; false when it is defined otherwise, or the name is not UTF-8, or the address null.
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
    /// Takes all blocks that name no allocator from this one (the functions are copied), null: from the global one
    /// again. Live blocks keep theirs.
    pub set_allocator: unsafe extern "C" fn(allocator: *const ExternalAllocator) -> Status,
}

// SAFETY: constant function pointers and a pointer to a static.
unsafe impl Sync for Api {}
// SAFETY: as above.
unsafe impl Send for Api {}

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
    /// Where it was allocated, UTF-8, `origin_length` bytes, not terminated; valid during the visit.
    pub origin: *const c_char,
    /// Bytes of `origin`.
    pub origin_length: usize,
}

/// The versioned table of this runtime.
pub static API: Api = Api {
    version: API_VERSION,
    size: size_of::<Api>() as u32,
    numba: &raw const NUMBA_API,
    allocate: api_allocate,
    wrap: api_wrap,
    wrap_owned: api_wrap_owned,
    new_varsize: api_new_varsize,
    varsize_alloc: api_varsize_alloc,
    varsize_realloc: api_varsize_realloc,
    varsize_free: api_varsize_free,
    acquire_unsync: api_acquire_unsync,
    release_unsync: api_release_unsync,
    call_dtor: api_call_dtor,
    refcount: api_refcount,
    data_size: api_data_size,
    kind: api_kind,
    owner: api_owner,
    stats: api_stats,
    set_stats: api_set_stats,
    set_thread_cache: api_set_thread_cache,
    drain_thread_cache: api_drain_thread_cache,
    set_shutdown: api_set_shutdown,
    set_tracking: api_set_tracking,
    live_blocks: api_live_blocks,
    slots_new: api_slots_new,
    slots_free: api_slots_free,
    slots_get: api_slots_get,
    slots_resolve: api_slots_resolve,
    slots_unresolved: api_slots_unresolved,
    set_allocator: api_set_allocator,
};

/// The outcome of an entry of [`Api`]: zero, or why nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Status(pub i32);

impl Status {
    /// Done.
    pub const OK: Self = Self(0);
    /// Size and alignment overflow the address space.
    pub const SIZE_OVERFLOW: Self = Self(1);
    /// The alignment is not a power of two.
    pub const INVALID_ALIGNMENT: Self = Self(2);
    /// The allocator returned null.
    pub const OUT_OF_MEMORY: Self = Self(3);
    /// The external allocator lacks a function.
    pub const INCOMPLETE_ALLOCATOR: Self = Self(4);
    /// The block has no replaceable payload of this runtime.
    pub const NOT_VARSIZE: Self = Self(5);
    /// A null pointer where none is allowed.
    pub const NULL: Self = Self(6);
    /// The owner's tag is kept for Rust values.
    pub const RESERVED_TAG: Self = Self(7);
    /// No more allocators can be told apart.
    pub const TOO_MANY_ALLOCATORS: Self = Self(8);
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        match error {
            Error::SizeOverflow { .. } => Self::SIZE_OVERFLOW,
            Error::InvalidAlignment { .. } => Self::INVALID_ALIGNMENT,
            Error::OutOfMemory { .. } => Self::OUT_OF_MEMORY,
            Error::IncompleteAllocator => Self::INCOMPLETE_ALLOCATOR,
            Error::NotVarsize => Self::NOT_VARSIZE,
            Error::Null => Self::NULL,
            Error::ReservedTag => Self::RESERVED_TAG,
            Error::TooManyAllocators { .. } => Self::TOO_MANY_ALLOCATORS,
        }
    }
}

/// Writes a result for a C caller.
///
/// # Safety
/// `out` is null or writable.
unsafe fn answer<T>(result: Result<T, Error>, out: *mut T) -> Status {
    match result {
        Ok(value) => {
            // SAFETY: not null, and writable as the caller promises.
            unsafe { out.write(value) };
            Status::OK
        }
        Err(error) => error.into(),
    }
}

/// Null or the block.
fn or_null(result: Result<NonNull<MemInfo>, Error>) -> *mut MemInfo {
    result.map_or(ptr::null_mut(), NonNull::as_ptr)
}

// The six entries. C callers answer for their pointers: null, or a live block of which they own a
// reference, or of an allocator that outlives the block.

pub(crate) unsafe extern "C" fn nrt_allocate(size: usize) -> *mut MemInfo {
    MemInfo::allocate_plain(size).map_or(ptr::null_mut(), NonNull::as_ptr)
}

pub(crate) unsafe extern "C" fn nrt_allocate_external(
    size: usize,
    allocator: *mut ExternalAllocator,
) -> *mut MemInfo {
    let mut request = Request::new(size);
    if let Some(allocator) = NonNull::new(allocator) {
        // SAFETY: the C caller's allocator outlives the block.
        request = unsafe { request.allocator(allocator) };
    }
    or_null(MemInfo::allocate(request))
}

pub(crate) unsafe extern "C" fn nrt_manage_memory(
    data: *mut c_void,
    dtor: Option<ManagedDtor>,
) -> *mut MemInfo {
    // SAFETY: the C caller answers for data and destructor.
    or_null(unsafe { MemInfo::manage(data, dtor) })
}

pub(crate) unsafe extern "C" fn nrt_acquire(mi: *mut MemInfo) {
    if let Some(mi) = NonNull::new(mi) {
        // SAFETY: the C caller owns a reference.
        unsafe { MemInfo::acquire(mi) }
    }
}

pub(crate) unsafe extern "C" fn nrt_release(mi: *mut MemInfo) {
    if let Some(mi) = NonNull::new(mi) {
        // SAFETY: the C caller owns a reference and gives it up.
        unsafe { MemInfo::release(mi) }
    }
}

pub(crate) unsafe extern "C" fn nrt_data(mi: *mut MemInfo) -> *mut c_void {
    // SAFETY: null or a live block.
    unsafe { mi.as_ref() }.map_or(ptr::null_mut(), MemInfo::data)
}

// The versioned table.

unsafe extern "C" fn api_allocate(
    size: usize,
    align: usize,
    flags: u32,
    dtor: Option<Dtor>,
    allocator: *mut ExternalAllocator,
    out: *mut *mut MemInfo,
) -> Status {
    if out.is_null() {
        return Status::NULL;
    }
    let mut request = Request::new(size).align(align);
    if flags & 1 != 0 {
        request = request.filled();
    }
    if let Some(dtor) = dtor {
        // SAFETY: the C caller answers for its destructor.
        request = unsafe { request.dtor(dtor) };
    }
    if let Some(allocator) = NonNull::new(allocator) {
        // SAFETY: the C caller's allocator outlives the block.
        request = unsafe { request.allocator(allocator) };
    }
    // SAFETY: `out` is not null and the C caller's to write.
    unsafe { answer(MemInfo::allocate(request).map(NonNull::as_ptr), out) }
}

unsafe extern "C" fn api_wrap(
    data: *mut c_void,
    size: usize,
    dtor: Option<Dtor>,
    info: *mut c_void,
    out: *mut *mut MemInfo,
) -> Status {
    if out.is_null() {
        return Status::NULL;
    }
    // SAFETY: the C caller answers for data and destructor.
    let mi = unsafe { MemInfo::wrap(data, size, dtor, info) };
    // SAFETY: `out` is not null and the C caller's to write.
    unsafe { answer(mi.map(NonNull::as_ptr), out) }
}

unsafe extern "C" fn api_wrap_owned(
    data: *mut c_void,
    size: usize,
    owner: *const Owner,
    out: *mut *mut MemInfo,
) -> Status {
    // SAFETY: null or a readable record.
    let (Some(owner), false) = (unsafe { owner.as_ref() }, out.is_null()) else {
        return Status::NULL;
    };
    // SAFETY: the C caller answers for data and owner.
    let mi = unsafe { MemInfo::wrap_owned(data, size, *owner) };
    // SAFETY: `out` is not null and the C caller's to write.
    unsafe { answer(mi.map(NonNull::as_ptr), out) }
}

unsafe extern "C" fn api_new_varsize(size: usize, dtor: Option<Dtor>, out: *mut *mut MemInfo) -> Status {
    if out.is_null() {
        return Status::NULL;
    }
    // SAFETY: the C caller answers for its destructor.
    let mi = unsafe { MemInfo::new_varsize(size, dtor) };
    // SAFETY: `out` is not null and the C caller's to write.
    unsafe { answer(mi.map(NonNull::as_ptr), out) }
}

unsafe extern "C" fn api_varsize_alloc(mi: *mut MemInfo, size: usize, out: *mut *mut c_void) -> Status {
    // SAFETY: null or a live block.
    let (Some(mi), false) = (unsafe { mi.as_ref() }, out.is_null()) else {
        return Status::NULL;
    };
    // SAFETY: the C caller uses the payload alone.
    let payload = unsafe { mi.varsize_alloc(size) };
    // SAFETY: `out` is not null and the C caller's to write.
    unsafe { answer(payload.map(|payload| payload.as_ptr().cast()), out) }
}

unsafe extern "C" fn api_varsize_realloc(mi: *mut MemInfo, size: usize, out: *mut *mut c_void) -> Status {
    // SAFETY: null or a live block.
    let (Some(mi), false) = (unsafe { mi.as_ref() }, out.is_null()) else {
        return Status::NULL;
    };
    // SAFETY: the C caller uses the payload alone.
    let payload = unsafe { mi.varsize_realloc(size) };
    // SAFETY: `out` is not null and the C caller's to write.
    unsafe { answer(payload.map(|payload| payload.as_ptr().cast()), out) }
}

unsafe extern "C" fn api_varsize_free(mi: *mut MemInfo, payload: *mut c_void) {
    // SAFETY: null or a live block.
    if let Some(mi) = unsafe { mi.as_ref() } {
        // SAFETY: the C caller's payload, given up.
        unsafe { mi.varsize_free(payload) }
    }
}

unsafe extern "C" fn api_acquire_unsync(mi: *mut MemInfo) {
    if let Some(mi) = NonNull::new(mi) {
        // SAFETY: the C caller owns a reference and is alone.
        unsafe { MemInfo::acquire_unsync(mi) }
    }
}

unsafe extern "C" fn api_release_unsync(mi: *mut MemInfo) {
    if let Some(mi) = NonNull::new(mi) {
        // SAFETY: the C caller owns a reference, gives it up and is alone.
        unsafe { MemInfo::release_unsync(mi) }
    }
}

pub(crate) unsafe extern "C" fn api_call_dtor(mi: *mut MemInfo) {
    if let Some(mi) = NonNull::new(mi) {
        // SAFETY: the C caller brought the count to zero.
        unsafe { MemInfo::destroy(mi) }
    }
}

unsafe extern "C" fn api_refcount(mi: *const MemInfo) -> usize {
    // SAFETY: null or a live block.
    unsafe { mi.as_ref() }.map_or(0, MemInfo::refcount)
}

unsafe extern "C" fn api_data_size(mi: *const MemInfo) -> usize {
    // SAFETY: null or a live block.
    unsafe { mi.as_ref() }.map_or(0, MemInfo::size)
}

unsafe extern "C" fn api_kind(mi: *const MemInfo) -> u32 {
    // SAFETY: null or a live block.
    match unsafe { mi.as_ref() }.map_or(AllocKind::Unknown, MemInfo::kind) {
        AllocKind::Unknown => 0,
        AllocKind::Host => 1,
        AllocKind::Device => 2,
        AllocKind::Shared => 3,
    }
}

unsafe extern "C" fn api_owner(mi: *const MemInfo, out: *mut Owner) -> bool {
    // SAFETY: null or a live block.
    let owner = unsafe { mi.as_ref() }.and_then(MemInfo::owner);
    match owner {
        Some(owner) if !out.is_null() => {
            // SAFETY: not null and the C caller's to write.
            unsafe { out.write(owner) };
            true
        }
        Some(_) => true,
        None => false,
    }
}

unsafe extern "C" fn api_stats(out: *mut Stats) -> bool {
    if !out.is_null() {
        // SAFETY: not null and the C caller's to write.
        unsafe { out.write(Stats::totals()) };
    }
    system::stats_enabled()
}

unsafe extern "C" fn api_set_stats(on: bool) {
    system::set_stats(on);
}

unsafe extern "C" fn api_set_thread_cache(on: bool) {
    system::set_thread_cache(on);
}

unsafe extern "C" fn api_drain_thread_cache() {
    local::drain_thread_cache();
}

unsafe extern "C" fn api_set_shutdown(on: bool) {
    system::set_shutdown(on);
}

unsafe extern "C" fn api_set_tracking(on: bool) {
    system::set_tracking(on);
}

unsafe extern "C" fn api_live_blocks(
    visit: Option<unsafe extern "C" fn(block: *const CLiveBlock, context: *mut c_void)>,
    context: *mut c_void,
) -> usize {
    let blocks = track::live_blocks();
    if let Some(visit) = visit {
        for block in &blocks {
            let view = CLiveBlock {
                mi: ptr::without_provenance(block.address),
                data: ptr::without_provenance(block.data),
                size: block.size,
                refcount: block.refcount,
                sequence: block.sequence,
                origin: block.origin.as_ptr().cast(),
                origin_length: block.origin.len(),
            };
            // SAFETY: the C caller's function, with a record that lives during the call.
            unsafe { visit(&raw const view, context) };
        }
    }
    blocks.len()
}

unsafe extern "C" fn api_slots_new(abort: *mut c_void) -> *mut SlotTable {
    NonNull::new(abort).map_or(ptr::null_mut(), |abort| Box::into_raw(Box::new(SlotTable::new(abort))))
}

unsafe extern "C" fn api_slots_free(slots: *mut SlotTable) {
    if !slots.is_null() {
        // SAFETY: made by `api_slots_new`, and the C caller gives it up.
        drop(unsafe { Box::from_raw(slots) });
    }
}

/// A name of C.
///
/// # Safety
/// `name` is null or points to `length` readable bytes that live for `'a`.
unsafe fn name_of<'a>(name: *const c_char, length: usize) -> Option<&'a str> {
    let name = NonNull::new(name.cast_mut())?;
    // SAFETY: as the caller promises.
    let bytes = unsafe { core::slice::from_raw_parts(name.as_ptr().cast::<u8>(), length) };
    core::str::from_utf8(bytes).ok()
}

unsafe extern "C" fn api_slots_get(
    slots: *const SlotTable,
    name: *const c_char,
    length: usize,
) -> *const Slot {
    // SAFETY: null or a live table.
    let slots = unsafe { slots.as_ref() };
    // SAFETY: null or the C caller's readable bytes.
    let name = unsafe { name_of(name, length) };
    slots.zip(name).map_or(ptr::null(), |(slots, name)| slots.slot(name))
}

unsafe extern "C" fn api_slots_resolve(
    slots: *const SlotTable,
    name: *const c_char,
    length: usize,
    address: *mut c_void,
) -> bool {
    // SAFETY: null or a live table.
    let slots = unsafe { slots.as_ref() };
    // SAFETY: null or the C caller's readable bytes.
    let name = unsafe { name_of(name, length) };
    match (slots, name, NonNull::new(address)) {
        (Some(slots), Some(name), Some(address)) => slots.resolve(name, address).is_ok(),
        _ => false,
    }
}

unsafe extern "C" fn api_slots_unresolved(
    slots: *const SlotTable,
    visit: Option<unsafe extern "C" fn(name: *const c_char, length: usize, context: *mut c_void)>,
    context: *mut c_void,
) -> usize {
    // SAFETY: null or a live table.
    let Some(slots) = (unsafe { slots.as_ref() }) else { return 0 };
    let names = slots.unresolved();
    if let Some(visit) = visit {
        for name in &names {
            // SAFETY: the C caller's function, with readable bytes.
            unsafe { visit(name.as_ptr().cast(), name.len(), context) };
        }
    }
    names.len()
}

unsafe extern "C" fn api_set_allocator(allocator: *const ExternalAllocator) -> Status {
    // SAFETY: null or a readable record.
    let allocator = unsafe { allocator.as_ref() };
    // SAFETY: the C caller answers for its functions.
    match unsafe { crate::allocator::set_allocator(allocator) } {
        Ok(()) => Status::OK,
        Err(error) => error.into(),
    }
}
