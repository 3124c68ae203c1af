//! Blocks that another runtime destroys through the allocator in the header, without a report. The
//! counts are global, so this is one test in its own process.
#![cfg(feature = "capi")]

use core::ffi::c_void;
use core::ptr::NonNull;

use usm_nrt::capi::{NRT_Allocate, NRT_Allocate_External, NRT_Free, NRT_MemInfo_init, NRT_Reallocate};
use usm_nrt::{BUILTIN, ExternalAllocator, MemInfo, MemRef, Request, Stats, foreign_frees, live_blocks};

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

/// Destroys a block as another runtime does after the last release.
fn destroyed_elsewhere(block: NonNull<MemInfo>) {
    // SAFETY: a live block that nothing else uses.
    let allocator = unsafe { *block.as_ref().external_allocator() };
    // SAFETY: the allocator's own function, with the address of the header.
    unsafe { (allocator.free.unwrap())(block.as_ptr().cast(), allocator.opaque) };
}

#[test]
fn a_block_that_another_runtime_destroys_is_not_read_afterwards() {
    usm_nrt::set_tracking(true);
    usm_nrt::set_stats(true);

    // Our allocator: the call goes through this runtime, so it is counted and the block leaves the
    // report.
    let before = (Stats::totals(), foreign_frees());
    let ours = MemRef::allocate(Request::new(24)).unwrap().into_raw();
    assert_eq!(live_blocks().unwrap().len(), 1);
    destroyed_elsewhere(ours);
    assert!(live_blocks().unwrap().is_empty());
    let after = Stats::totals();
    assert_eq!((after.alloc - before.0.alloc, after.free - before.0.free), (1, 1));
    assert_eq!((after.mi_alloc - before.0.mi_alloc, after.mi_free - before.0.mi_free), (1, 1));
    assert_eq!(foreign_frees() - before.1, 1);

    // Another allocator: this runtime is not called, so the report shows the record and reads no
    // memory.
    // SAFETY: a static allocator with functions for any thread.
    let request = unsafe { Request::new(24).allocator(NonNull::from(&THEIRS)) };
    let theirs = MemRef::allocate(request).unwrap().into_raw();
    destroyed_elsewhere(theirs);
    let report = live_blocks().unwrap();
    assert_eq!(report.iter().map(|block| (block.size, block.refcount)).collect::<Vec<_>>(), [(24, 0)]);
    assert_eq!(report[0].address, theirs.as_ptr().addr());

    // A block that was freed while tracking was off is not read later either.
    let unseen = MemRef::allocate(Request::new(8)).unwrap();
    usm_nrt::set_tracking(false);
    drop(unseen);
    usm_nrt::set_tracking(true);
    assert!(live_blocks().unwrap().is_empty());

    a_header_whose_memory_is_freed_by_hand_leaves_the_report();
    memory_asked_for_by_the_allocators_own_functions_balances();
}

fn a_header_whose_memory_is_freed_by_hand_leaves_the_report() {
    for freed in [free_it, move_it] {
        // SAFETY: room for a header.
        let raw = unsafe { NRT_Allocate(48) };
        let allocator = (&raw const BUILTIN).cast_mut();
        // SAFETY: memory of that allocator, without data.
        unsafe {
            NRT_MemInfo_init(raw.cast(), core::ptr::null_mut(), 0, None, core::ptr::null_mut(), allocator);
        }
        assert_eq!(live_blocks().unwrap().len(), 1);
        freed(raw);
        assert!(live_blocks().unwrap().is_empty(), "freed blocks are not read");
    }
}

fn free_it(block: *mut c_void) {
    // SAFETY: the test's block, which it gives up.
    unsafe { NRT_Free(block) };
}

fn move_it(block: *mut c_void) {
    // SAFETY: the test's block, which it gives up.
    unsafe { NRT_Free(NRT_Reallocate(block, 1_000_000)) };
}

/// Allocates by hand, as numba-dpex does, in memory with any earlier content.
fn memory_asked_for_by_the_allocators_own_functions_balances() {
    let (malloc, realloc, free) = (BUILTIN.malloc.unwrap(), BUILTIN.realloc.unwrap(), BUILTIN.free.unwrap());
    let null = core::ptr::null_mut();
    usm_nrt::set_tracking(false);
    for cached in [false, true] {
        usm_nrt::set_thread_cache(cached);
        for size in [0, 24, 40, 48, 64, 100, 5000] {
            // The next owner of this memory finds an old header in it.
            drop(MemRef::allocate(Request::new(size.max(16) - 16)).unwrap());
            let (before, foreign) = (Stats::totals(), foreign_frees());
            // SAFETY: blocks of this allocator, each freed once.
            unsafe {
                free(malloc(size, null), null);
                free(realloc(malloc(size, null), 2 * size + 8, null), null);
                free(realloc(null, size, null), null);
                free(NRT_Allocate(size), null);
                free(NRT_Allocate_External(size, (&raw const BUILTIN).cast_mut()), null);
                NRT_Free(malloc(size, null));
                free(NRT_Reallocate(NRT_Allocate(8), size.max(1)), null);
            }
            let after = Stats::totals();
            assert_eq!((after.alloc - before.alloc, after.free - before.free), (7, 7), "{size} bytes");
            assert_eq!((after.mi_alloc, after.mi_free), (before.mi_alloc, before.mi_free), "{size} bytes");
            assert_eq!(foreign_frees(), foreign, "{size} bytes");

            // SAFETY: a static allocator.
            let request = unsafe { Request::new(size).allocator(NonNull::from(&BUILTIN)) };
            let block = MemRef::allocate(request).unwrap().into_raw();
            destroyed_elsewhere(block);
            drop(MemRef::allocate(request).unwrap());
            let at_last = Stats::totals();
            assert_eq!((at_last.alloc - after.alloc, at_last.free - after.free), (2, 2));
            assert_eq!((at_last.mi_alloc - after.mi_alloc, at_last.mi_free - after.mi_free), (2, 2));
            assert_eq!(foreign_frees(), foreign + 1);
        }
    }
}
