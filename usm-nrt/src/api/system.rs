//! Table entries for the whole runtime: its allocator, counters, caches and live blocks.

use core::ffi::c_void;
use core::ptr::{self, NonNull};

use super::CLiveBlock;
use super::status::Status;
use crate::error::Error;
use crate::external::ExternalAllocator;
use crate::meminfo::MemInfo;
use crate::stats::Stats;
use crate::{allocator, local, source, system, track};

pub(crate) unsafe extern "C" fn set_allocator(allocator: *const ExternalAllocator) -> Status {
    // SAFETY: null or a readable record.
    let allocator = unsafe { allocator.as_ref() };
    // SAFETY: the C caller answers for its functions.
    match unsafe { allocator::set_allocator(allocator) } {
        Ok(()) => Status::OK,
        Err(error) => error.into(),
    }
}

pub(crate) unsafe extern "C" fn set_kept_allocator(allocator: *const ExternalAllocator) -> Status {
    // SAFETY: null or a readable record.
    let Some(allocator) = (unsafe { allocator.as_ref() }) else { return Error::IncompleteAllocator.into() };
    // SAFETY: the C caller answers for its functions.
    match unsafe { allocator::set_kept_allocator(allocator) } {
        Ok(()) => Status::OK,
        Err(error) => error.into(),
    }
}

pub(crate) unsafe extern "C" fn kept_counts(slabs: *mut usize, live: *mut usize) {
    #[cfg(feature = "std")]
    let counts = allocator::kept_counts();
    #[cfg(feature = "std")]
    let counts = (counts.slabs, counts.live);
    #[cfg(not(feature = "std"))]
    let counts = (0, 0);
    for (out, count) in [(slabs, counts.0), (live, counts.1)] {
        if !out.is_null() {
            // SAFETY: not null and the C caller's to write.
            unsafe { out.write(count) };
        }
    }
}

pub(crate) unsafe extern "C" fn set_allocator_of_kind(
    allocator: *const ExternalAllocator,
    kind: u32,
    is_kept: bool,
) -> Status {
    // SAFETY: null or a readable record.
    let Some(allocator) = (unsafe { allocator.as_ref() }) else { return Status::NULL };
    let result = source::kind_from(kind).and_then(|kind| {
        // SAFETY: the C caller answers for its functions and their memory.
        unsafe { allocator::set_allocator_of_kind(allocator, kind, is_kept) }
    });
    result.map_or_else(Status::from, |()| Status::OK)
}

pub(crate) unsafe extern "C" fn stats(out: *mut Stats) -> bool {
    if !out.is_null() {
        // SAFETY: not null and the C caller's to write.
        unsafe { out.write(Stats::totals()) };
    }
    system::stats_enabled()
}

pub(crate) unsafe extern "C" fn set_stats(on: bool) {
    system::set_stats(on);
}

pub(crate) unsafe extern "C" fn set_thread_cache(on: bool) {
    system::set_thread_cache(on);
}

pub(crate) unsafe extern "C" fn drain_thread_cache() {
    local::drain_thread_cache();
}

pub(crate) unsafe extern "C" fn set_shutdown(on: bool) {
    system::set_shutdown(on);
}

pub(crate) unsafe extern "C" fn set_tracking(on: bool) {
    track::set_tracking(on);
}

pub(crate) unsafe extern "C" fn foreign_frees() -> usize {
    track::foreign_frees()
}

pub(crate) unsafe extern "C" fn live_blocks(
    visit: Option<unsafe extern "C" fn(block: *const CLiveBlock, context: *mut c_void)>,
    context: *mut c_void,
) -> usize {
    let Some(visit) = visit else { return track::live_count() };
    let Ok(blocks) = track::live_blocks() else { return usize::MAX };
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
    blocks.len()
}

pub(crate) unsafe extern "C" fn sequence(mi: *const MemInfo) -> u64 {
    NonNull::new(mi.cast_mut()).and_then(track::sequence_of).unwrap_or(u64::MAX)
}
