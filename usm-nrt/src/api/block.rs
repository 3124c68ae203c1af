//! Table entries that make, use and describe blocks.

use core::ffi::c_void;
use core::ptr::NonNull;

use usm_core::AllocKind;

use super::checked_block;
use super::status::{Status, write_result};
use crate::destructor::{Dtor, Owner};
use crate::external::ExternalAllocator;
use crate::meminfo::{MemInfo, Request};
use crate::source;

pub(crate) unsafe extern "C" fn allocate(
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
    unsafe { write_result(MemInfo::allocate(request).map(NonNull::as_ptr), out) }
}

pub(crate) unsafe extern "C" fn wrap(
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
    unsafe { write_result(mi.map(NonNull::as_ptr), out) }
}

pub(crate) unsafe extern "C" fn wrap_owned(
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
    unsafe { write_result(mi.map(NonNull::as_ptr), out) }
}

pub(crate) unsafe extern "C" fn wrap_owned_of_kind(
    data: *mut c_void,
    size: usize,
    owner: *const Owner,
    kind: u32,
    out: *mut *mut MemInfo,
) -> Status {
    // SAFETY: null or a readable record.
    let (Some(owner), false) = (unsafe { owner.as_ref() }, out.is_null()) else {
        return Status::NULL;
    };
    let mi = source::kind_from(kind).and_then(|kind| {
        // SAFETY: the C caller answers for data and owner.
        unsafe { MemInfo::wrap_owned_of_kind(data, size, *owner, kind) }
    });
    // SAFETY: `out` is not null and the C caller's to write.
    unsafe { write_result(mi.map(NonNull::as_ptr), out) }
}

pub(crate) unsafe extern "C" fn new_varsize(
    size: usize,
    dtor: Option<Dtor>,
    out: *mut *mut MemInfo,
) -> Status {
    if out.is_null() {
        return Status::NULL;
    }
    // SAFETY: the C caller answers for its destructor.
    let mi = unsafe { MemInfo::new_varsize(size, dtor) };
    // SAFETY: `out` is not null and the C caller's to write.
    unsafe { write_result(mi.map(NonNull::as_ptr), out) }
}

pub(crate) unsafe extern "C" fn varsize_alloc(
    mi: *mut MemInfo,
    size: usize,
    out: *mut *mut c_void,
) -> Status {
    // SAFETY: null or a live block.
    let (Some(mi), false) = (unsafe { mi.as_ref() }, out.is_null()) else {
        return Status::NULL;
    };
    // SAFETY: only the C caller uses the payload.
    let payload = unsafe { mi.varsize_alloc(size) };
    // SAFETY: `out` is not null and the C caller's to write.
    unsafe { write_result(payload.map(|payload| payload.as_ptr().cast()), out) }
}

pub(crate) unsafe extern "C" fn varsize_realloc(
    mi: *mut MemInfo,
    size: usize,
    out: *mut *mut c_void,
) -> Status {
    // SAFETY: null or a live block.
    let (Some(mi), false) = (unsafe { mi.as_ref() }, out.is_null()) else {
        return Status::NULL;
    };
    // SAFETY: only the C caller uses the payload.
    let payload = unsafe { mi.varsize_realloc(size) };
    // SAFETY: `out` is not null and the C caller's to write.
    unsafe { write_result(payload.map(|payload| payload.as_ptr().cast()), out) }
}

pub(crate) unsafe extern "C" fn varsize_free(mi: *mut MemInfo, payload: *mut c_void) {
    // SAFETY: null or a live block.
    if let Some(mi) = unsafe { mi.as_ref() } {
        // This entry returns nothing; a refusal changes nothing.
        // SAFETY: the C caller's payload, given up.
        let _ = unsafe { mi.varsize_free(payload) };
    }
}

pub(crate) unsafe extern "C" fn acquire_unsync(mi: *mut MemInfo) {
    if let Some(mi) = NonNull::new(mi) {
        // SAFETY: the C caller owns a reference, and no other thread uses the block.
        unsafe { MemInfo::acquire_unsync(mi) }
    }
}

pub(crate) unsafe extern "C" fn release_unsync(mi: *mut MemInfo) {
    if let Some(mi) = NonNull::new(mi) {
        // SAFETY: the C caller gives up its reference, and no other thread uses the block.
        unsafe { MemInfo::release_unsync(mi) }
    }
}

pub(crate) unsafe extern "C" fn call_dtor(mi: *mut MemInfo) {
    if let Some(mi) = NonNull::new(mi) {
        // SAFETY: the C caller lowered the count to zero.
        unsafe { MemInfo::destroy(mi) }
    }
}

pub(crate) unsafe extern "C" fn refcount(mi: *const MemInfo) -> usize {
    // SAFETY: null or a live block.
    unsafe { checked_block(mi, "refcount") }.map_or(0, MemInfo::refcount)
}

pub(crate) unsafe extern "C" fn data_size(mi: *const MemInfo) -> usize {
    // SAFETY: null or a live block.
    unsafe { checked_block(mi, "data_size") }.map_or(0, MemInfo::size)
}

pub(crate) unsafe extern "C" fn kind(mi: *const MemInfo) -> u32 {
    // SAFETY: null or a live block.
    source::kind_number(unsafe { checked_block(mi, "kind") }.map_or(AllocKind::Unknown, MemInfo::kind))
}

pub(crate) unsafe extern "C" fn owner(mi: *const MemInfo, out: *mut Owner) -> bool {
    // SAFETY: null or a live block.
    let owner = unsafe { checked_block(mi, "owner") }.and_then(MemInfo::owner);
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
