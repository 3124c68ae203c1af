//! Numba's own six-entry table.

use core::ffi::c_void;
use core::ptr::{self, NonNull};

use super::checked_block;
use crate::destructor::ManagedDtor;
use crate::error::Error;
use crate::external::ExternalAllocator;
use crate::meminfo::{MemInfo, Request};

/// Numba's public table `NRT_api_functions`: the same entries in the same order with the same
/// meaning.
///
/// An entry returns null, or does nothing, for a null argument. A failed allocation returns null.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct NumbaApi {
    /// Makes a block of `nbytes` bytes.
    pub allocate: unsafe extern "C" fn(nbytes: usize) -> *mut MemInfo,
    /// Makes a block from `allocator`.
    pub allocate_external:
        unsafe extern "C" fn(nbytes: usize, allocator: *mut ExternalAllocator) -> *mut MemInfo,
    /// Wraps foreign memory, which `dtor` will free.
    pub manage_memory: unsafe extern "C" fn(data: *mut c_void, dtor: Option<ManagedDtor>) -> *mut MemInfo,
    /// Adds a reference.
    pub acquire: unsafe extern "C" fn(mi: *mut MemInfo),
    /// Releases a reference.
    pub release: unsafe extern "C" fn(mi: *mut MemInfo),
    /// The data pointer.
    pub get_data: unsafe extern "C" fn(mi: *mut MemInfo) -> *mut c_void,
}

const _: () = assert!(size_of::<NumbaApi>() == 6 * size_of::<usize>());

/// The six-entry table of this runtime.
pub static NUMBA_API: NumbaApi =
    NumbaApi { allocate, allocate_external, manage_memory, acquire, release, get_data: data };

// The six entries. C callers guarantee that a pointer is null or a live block on which they own a
// reference, and that an allocator outlives its blocks.

pub(crate) unsafe extern "C" fn allocate(size: usize) -> *mut MemInfo {
    // The alignment of `malloc`.
    MemInfo::allocate_inline(size, 16).map_or(ptr::null_mut(), NonNull::as_ptr)
}

pub(crate) unsafe extern "C" fn allocate_external(
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

pub(crate) unsafe extern "C" fn manage_memory(data: *mut c_void, dtor: Option<ManagedDtor>) -> *mut MemInfo {
    // SAFETY: the C caller answers for data and destructor.
    or_null(unsafe { MemInfo::manage(data, dtor) })
}

pub(crate) unsafe extern "C" fn acquire(mi: *mut MemInfo) {
    if let Some(mi) = NonNull::new(mi) {
        // SAFETY: the C caller owns a reference.
        unsafe { MemInfo::acquire(mi) }
    }
}

pub(crate) unsafe extern "C" fn release(mi: *mut MemInfo) {
    if let Some(mi) = NonNull::new(mi) {
        // SAFETY: the C caller owns a reference and gives it up.
        unsafe { MemInfo::release_inline(mi) }
    }
}

pub(crate) unsafe extern "C" fn data(mi: *mut MemInfo) -> *mut c_void {
    // SAFETY: null or a live block.
    unsafe { checked_block(mi, "data") }.map_or(ptr::null_mut(), MemInfo::data)
}

/// Null or the block.
fn or_null(result: Result<NonNull<MemInfo>, Error>) -> *mut MemInfo {
    result.map_or(ptr::null_mut(), NonNull::as_ptr)
}
