//! Blocks that another runtime destroys: it goes by the allocator in the header and tells nobody. Books are global, so this
//! is one test in a process of its own.
#![cfg(feature = "std")]

use core::ffi::c_void;
use core::ptr::NonNull;

use usm_nrt::{ExternalAllocator, MemInfo, MemRef, Request, Stats, foreign_frees, live_blocks};

const WORDS: usize = (48usize + 24 + 15).div_ceil(8);

unsafe extern "C" fn malloc(size: usize, _: *mut c_void) -> *mut c_void {
    assert!(size <= WORDS * 8);
    Box::into_raw(Box::new([0u64; WORDS])).cast()
}

unsafe extern "C" fn free(block: *mut c_void, _: *mut c_void) {
    // SAFETY: allocated above, freed once.
    drop(unsafe { Box::from_raw(block.cast::<[u64; WORDS]>()) });
}

static THEIRS: ExternalAllocator = ExternalAllocator {
    malloc: Some(malloc),
    realloc: None,
    free: Some(free),
    opaque: core::ptr::null_mut(),
};

/// What another runtime does when the last reference is gone.
fn destroyed_elsewhere(block: NonNull<MemInfo>) {
    // SAFETY: a live block that nobody else uses.
    let allocator = unsafe { *block.as_ref().external_allocator() };
    // SAFETY: the allocator's own function, with the address of the header.
    unsafe { (allocator.free.unwrap())(block.as_ptr().cast(), allocator.opaque) };
}

#[test]
fn a_block_that_another_runtime_destroys_is_not_read_afterwards() {
    usm_nrt::set_tracking(true);
    usm_nrt::set_stats(true);

    // Ours: the way goes through us, so it is counted and leaves the report.
    let before = (Stats::totals(), foreign_frees());
    let ours = MemRef::allocate(Request::new(24)).unwrap().into_raw();
    assert_eq!(live_blocks().len(), 1);
    destroyed_elsewhere(ours);
    assert!(live_blocks().is_empty());
    let after = Stats::totals();
    assert_eq!((after.alloc - before.0.alloc, after.free - before.0.free), (1, 1));
    assert_eq!((after.mi_alloc - before.0.mi_alloc, after.mi_free - before.0.mi_free), (1, 1));
    assert_eq!(foreign_frees() - before.1, 1);

    // Of somebody else's allocator: nobody tells us, so the report says what it knew and looks at nothing.
    // SAFETY: a static allocator whose functions may be called anywhere.
    let request = unsafe { Request::new(24).allocator(NonNull::from(&THEIRS)) };
    let theirs = MemRef::allocate(request).unwrap().into_raw();
    destroyed_elsewhere(theirs);
    let report = live_blocks();
    assert_eq!(report.iter().map(|block| (block.size, block.refcount)).collect::<Vec<_>>(), [(24, 0)]);
    assert_eq!(report[0].address, theirs.as_ptr().addr());

    // What is freed while nobody looks is not looked at later either.
    let unseen = MemRef::allocate(Request::new(8)).unwrap();
    usm_nrt::set_tracking(false);
    drop(unseen);
    usm_nrt::set_tracking(true);
    assert!(live_blocks().is_empty());
}
