//! The functions of Numba's `nrt.h` under their names, for linking.

mod libc;

use core::ffi::{c_uint, c_void};
use core::ptr::{self, NonNull};

use crate::allocator::{PlainFree, PlainMalloc, PlainRealloc, set_allocator, set_plain_allocator};
use crate::api;
use crate::block;
use crate::destructor::Dtor;
use crate::error::Error;
use crate::export::export;
use crate::external::ExternalAllocator;
use crate::meminfo::{MemInfo, Request};
use crate::stats::{Event, Stats, count};
use crate::system;
use crate::track;

/// Result of the statistics getters while statistics are off.
const DISABLED: usize = 0x4141_4141;

fn make(
    size: usize,
    align: usize,
    fill: bool,
    dtor: Option<Dtor>,
    allocator: *mut ExternalAllocator,
) -> *mut MemInfo {
    let mut request = Request::new(size).align(align);
    if fill {
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
    MemInfo::allocate(request).map_or(ptr::null_mut(), NonNull::as_ptr)
}

fn counter(field: impl Fn(Stats) -> usize) -> usize {
    Stats::current().map_or(DISABLED, field)
}

export! {
    /// The six-entry table.
    fn NRT_get_api() -> *const api::NumbaApi {
        &raw const api::NUMBA_API
    }
    /// The versioned table; null if `version` is not the library's.
    fn usm_nrt_get_api(version: u32) -> *const api::Api {
        if version == api::API_VERSION { &raw const api::API } else { ptr::null() }
    }

    /// Turns statistics on if the environment variable `NUMBA_NRT_STATS` is set, not empty and not
    /// 0.
    fn NRT_MemSys_init() {
        if std::env::var_os("NUMBA_NRT_STATS").is_some_and(|value| !value.is_empty() && value != "0") {
            system::set_stats(true);
        }
        system::set_shutdown(false);
    }
    /// Skips destructors from now on.
    fn NRT_MemSys_shutdown() {
        system::set_shutdown(true);
    }
    /// Allocates later blocks that name no allocator with these functions; all null restores the
    /// global allocator. A block is freed by the functions that allocated it, so live blocks are no
    /// obstacle. Does nothing if only `malloc` or `free` is missing, or after 255 different
    /// allocators.
    fn NRT_MemSys_set_allocator(malloc: Option<PlainMalloc>, realloc: Option<PlainRealloc>, free: Option<PlainFree>) {
        let result = match (malloc, free) {
            // SAFETY: the C caller answers for its functions.
            (Some(malloc), Some(free)) => unsafe { set_plain_allocator(malloc, realloc, free) },
            // SAFETY: no functions.
            (None, None) => unsafe { set_allocator(None) },
            _ => Err(Error::IncompleteAllocator),
        };
        // Numba's function returns nothing; the versioned table's entry returns the reason.
        let _ = result;
    }
    /// Starts counting.
    fn NRT_MemSys_enable_stats() {
        system::set_stats(true);
    }
    /// Stops counting.
    fn NRT_MemSys_disable_stats() {
        system::set_stats(false);
    }
    /// Whether blocks are counted.
    fn NRT_MemSys_stats_enabled() -> usize {
        usize::from(system::stats_enabled())
    }
    /// Number of blocks allocated.
    fn NRT_MemSys_get_stats_alloc() -> usize {
        counter(|stats| stats.alloc)
    }
    /// Number of blocks freed.
    fn NRT_MemSys_get_stats_free() -> usize {
        counter(|stats| stats.free)
    }
    /// Number of MemInfos initialised.
    fn NRT_MemSys_get_stats_mi_alloc() -> usize {
        counter(|stats| stats.mi_alloc)
    }
    /// Number of MemInfos destroyed.
    fn NRT_MemSys_get_stats_mi_free() -> usize {
        counter(|stats| stats.mi_free)
    }

    /// Allocates a plain block of `size` bytes.
    fn NRT_Allocate(size: usize) -> *mut c_void {
        // SAFETY: null asks for the built-in allocator.
        unsafe { NRT_Allocate_External(size, ptr::null_mut()) }
    }
    /// Allocates a plain block from `allocator`, or from the built-in one if null.
    fn NRT_Allocate_External(size: usize, allocator: *mut ExternalAllocator) -> *mut c_void {
        // SAFETY: null or the C caller's live allocator.
        let block = match unsafe { allocator.as_ref() }.filter(|candidate| !ptr::eq(*candidate, &raw const block::BUILTIN)) {
            None => block::allocate_plain(size).map_or(ptr::null_mut(), |block| block.as_ptr().cast()),
            // SAFETY: the allocator's own function with its own opaque pointer.
            Some(external) => external.malloc.map_or(ptr::null_mut(), |malloc| unsafe { malloc(size, external.opaque) }),
        };
        if !block.is_null() {
            count([Event::Alloc]);
        }
        block
    }
    /// Resizes a plain block of the built-in allocator. On failure returns null, and the old block
    /// is unchanged.
    fn NRT_Reallocate(block: *mut c_void, size: usize) -> *mut c_void {
        // SAFETY: null or a block of `NRT_Allocate`.
        let new: *mut c_void = unsafe { block::reallocate_plain(block.cast(), size) }.map_or(ptr::null_mut(), |block| block.as_ptr().cast());
        if block.is_null() && !new.is_null() {
            count([Event::Alloc]);
        }
        new
    }
    /// Frees a plain block of the built-in allocator.
    fn NRT_Free(block: *mut c_void) {
        if let Some(block) = NonNull::new(block.cast()) {
            count([Event::Free]);
            track::forget_header(block);
            // SAFETY: a block of `NRT_Allocate`, given up.
            unsafe { block::free(block) }
        }
    }

    /// Wraps foreign data in a header.
    fn NRT_MemInfo_new(data: *mut c_void, size: usize, dtor: Option<Dtor>, info: *mut c_void) -> *mut MemInfo {
        // SAFETY: the C caller answers for data and destructor.
        unsafe { MemInfo::wrap(data, size, dtor, info) }.map_or(ptr::null_mut(), NonNull::as_ptr)
    }
    /// Writes a header with one reference into memory of the caller. It must be a block of
    /// `NRT_Allocate` or of `allocator`, because it will be freed as one.
    fn NRT_MemInfo_init(mi: *mut MemInfo, data: *mut c_void, size: usize, dtor: Option<Dtor>, info: *mut c_void, allocator: *mut ExternalAllocator) {
        let Some(mi) = NonNull::new(mi) else { return };
        // SAFETY: the C caller answers for data, destructor and allocator.
        let header = unsafe { MemInfo::from_parts(data, size, dtor, info, allocator) };
        // SAFETY: room for a header, as the C caller promises.
        unsafe { mi.write(header) };
        track::record_adopted(mi);
    }
    /// Makes a block of `size` bytes.
    fn NRT_MemInfo_alloc(size: usize) -> *mut MemInfo {
        // SAFETY: an entry without conditions.
        unsafe { api::numba::allocate(size) }
    }
    /// Makes a block from an external allocator.
    fn NRT_MemInfo_alloc_external(size: usize, allocator: *mut ExternalAllocator) -> *mut MemInfo {
        make(size, 16, false, None, allocator)
    }
    /// Makes a filled block.
    fn NRT_MemInfo_alloc_safe(size: usize) -> *mut MemInfo {
        make(size, 16, true, None, ptr::null_mut())
    }
    /// Makes a block with a destructor.
    fn NRT_MemInfo_alloc_dtor(size: usize, dtor: Option<Dtor>) -> *mut MemInfo {
        make(size, 16, false, dtor, ptr::null_mut())
    }
    /// Makes a filled block with a destructor.
    fn NRT_MemInfo_alloc_dtor_safe(size: usize, dtor: Option<Dtor>) -> *mut MemInfo {
        make(size, 16, true, dtor, ptr::null_mut())
    }
    /// Makes a block with aligned data; null if `align` is not a power of two.
    fn NRT_MemInfo_alloc_aligned(size: usize, align: c_uint) -> *mut MemInfo {
        MemInfo::allocate_inline(size, align as usize).map_or(ptr::null_mut(), NonNull::as_ptr)
    }
    /// Makes a filled block with aligned data.
    fn NRT_MemInfo_alloc_safe_aligned(size: usize, align: c_uint) -> *mut MemInfo {
        make(size, align as usize, true, None, ptr::null_mut())
    }
    /// Makes a filled block with aligned data from an external allocator.
    fn NRT_MemInfo_alloc_safe_aligned_external(size: usize, align: c_uint, allocator: *mut ExternalAllocator) -> *mut MemInfo {
        make(size, align as usize, true, None, allocator)
    }
    /// Frees the block without running its destructor.
    fn NRT_MemInfo_destroy(mi: *mut MemInfo) {
        if let Some(mi) = NonNull::new(mi) {
            // SAFETY: the C caller owns the only reference.
            unsafe { MemInfo::free(mi) }
        }
    }
    /// Frees the memory of the block. Unlike `NRT_MemInfo_destroy`, does not count the header as
    /// destroyed.
    fn NRT_dealloc(mi: *mut MemInfo) {
        if let Some(mi) = NonNull::new(mi) {
            // SAFETY: the C caller owns the block alone.
            unsafe { MemInfo::deallocate(mi) }
        }
    }
    /// Writes one line about the block to a C `FILE`. Does nothing for a null file.
    fn NRT_MemInfo_dump(mi: *mut MemInfo, out: *mut c_void) {
        // SAFETY: null or a live block.
        unsafe { libc::dump(mi, out) }
    }
    /// The C library's `malloc`, `realloc` and `free` as an external allocator.
    fn _nrt_get_sample_external_allocator() -> *const ExternalAllocator {
        &raw const libc::SAMPLE
    }
    /// Adds a reference.
    fn NRT_MemInfo_acquire(mi: *mut MemInfo) {
        // SAFETY: same contract.
        unsafe { api::numba::acquire(mi) }
    }
    /// Releases a reference.
    fn NRT_MemInfo_release(mi: *mut MemInfo) {
        // SAFETY: same contract.
        unsafe { api::numba::release(mi) }
    }
    /// Adds a reference, from compiled code.
    fn NRT_incref(mi: *mut MemInfo) {
        // SAFETY: same contract.
        unsafe { api::numba::acquire(mi) }
    }
    /// Releases a reference, from compiled code.
    fn NRT_decref(mi: *mut MemInfo) {
        // SAFETY: same contract.
        unsafe { api::numba::release(mi) }
    }
    /// Runs the destructor and frees the block, for code that counts references by itself.
    fn NRT_MemInfo_call_dtor(mi: *mut MemInfo) {
        // SAFETY: same contract.
        unsafe { api::call_dtor(mi) }
    }
    /// The number of references; `(size_t)-1` for null and for a block without data.
    fn NRT_MemInfo_refcount(mi: *mut MemInfo) -> usize {
        // SAFETY: null or a live block.
        match unsafe { api::checked_block(mi, "refcount") } {
            Some(mi) if !mi.data().is_null() => mi.refcount(),
            _ => usize::MAX,
        }
    }
    /// The data pointer.
    fn NRT_MemInfo_data(mi: *mut MemInfo) -> *mut c_void {
        // SAFETY: same contract.
        unsafe { api::numba::data(mi) }
    }
    /// Size of the data in bytes.
    fn NRT_MemInfo_size(mi: *mut MemInfo) -> usize {
        // SAFETY: null or a live block.
        unsafe { api::checked_block(mi, "size") }.map_or(0, MemInfo::size)
    }
    /// The allocator that will free the block.
    fn NRT_MemInfo_external_allocator(mi: *mut MemInfo) -> *mut c_void {
        // SAFETY: null or a live block.
        unsafe { api::checked_block(mi, "external_allocator") }.map_or(ptr::null_mut(), |mi| mi.external_allocator().cast())
    }
    /// The Python object that owns the data, or null. Unlike Numba's function, never mistakes
    /// another destructor's info pointer for an object.
    fn NRT_MemInfo_parent(mi: *mut MemInfo) -> *mut c_void {
        // SAFETY: null or a live block.
        let owner = unsafe { api::checked_block(mi, "parent") }.and_then(MemInfo::owner);
        owner.filter(|owner| owner.tag == crate::OwnerTag::PYTHON).map_or(ptr::null_mut(), |owner| owner.object)
    }
    /// Makes a block with a replaceable payload.
    fn NRT_MemInfo_new_varsize(size: usize) -> *mut MemInfo {
        // SAFETY: there is no element destructor.
        unsafe { NRT_MemInfo_new_varsize_dtor(size, None) }
    }
    /// Makes a block with a replaceable payload and an element destructor.
    fn NRT_MemInfo_new_varsize_dtor(size: usize, dtor: Option<Dtor>) -> *mut MemInfo {
        // SAFETY: the C caller answers for its destructor.
        unsafe { MemInfo::new_varsize(size, dtor) }.map_or(ptr::null_mut(), NonNull::as_ptr)
    }
    /// Allocates a new payload, and does not free the old one. Null if memory is short or the block
    /// is not varsize.
    fn NRT_MemInfo_varsize_alloc(mi: *mut MemInfo, size: usize) -> *mut c_void {
        // SAFETY: null or a live block.
        let Some(mi) = (unsafe { mi.as_ref() }) else { return ptr::null_mut() };
        // SAFETY: only the C caller uses the payload.
        unsafe { mi.varsize_alloc(size) }.map_or(ptr::null_mut(), |payload| payload.as_ptr().cast())
    }
    /// Resizes the payload. Null on failure; the old payload is then still in place.
    fn NRT_MemInfo_varsize_realloc(mi: *mut MemInfo, size: usize) -> *mut c_void {
        // SAFETY: null or a live block.
        let Some(mi) = (unsafe { mi.as_ref() }) else { return ptr::null_mut() };
        // SAFETY: only the C caller uses the payload.
        unsafe { mi.varsize_realloc(size) }.map_or(ptr::null_mut(), |payload| payload.as_ptr().cast())
    }
    /// Frees a current or former payload of the block. Does nothing if the block is not varsize.
    fn NRT_MemInfo_varsize_free(mi: *mut MemInfo, payload: *mut c_void) {
        // SAFETY: null or a live block.
        if let Some(mi) = unsafe { mi.as_ref() } {
            // This function returns nothing; a refusal changes nothing.
            // SAFETY: the C caller's payload, given up.
            let _ = unsafe { mi.varsize_free(payload) };
        }
    }
}
