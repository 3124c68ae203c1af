//! Another allocator for all blocks. The whole program has one, so the tests of this file take
//! turns.

extern crate alloc;

use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;
use core::ffi::c_void;
use core::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use proptest::prelude::*;
use usm_core::AllocKind;
use usm_core::backend::host::HostHeap;
use usm_nrt::{
    Error, ExternalAllocator, MemRef, Request, SourceAllocator, set_allocator, set_plain_allocator,
};

/// Restores the global allocator at the end of a test, also of a failed one.
struct Turn(#[allow(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Drop for Turn {
    fn drop(&mut self) {
        // SAFETY: no functions.
        unsafe { set_allocator(None) }.unwrap();
    }
}

fn turn() -> Turn {
    static TURN: Mutex<()> = Mutex::new(());
    Turn(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Distance of every block from a multiple of 16, for code that expects alignment 16.
static SHIFT: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicIsize = AtomicIsize::new(0);
const ROOM: usize = 32;

unsafe extern "C" fn odd_malloc(size: usize) -> *mut c_void {
    let shift = SHIFT.load(Ordering::Relaxed);
    let Ok(layout) = Layout::from_size_align(size + ROOM, 16) else { return core::ptr::null_mut() };
    // SAFETY: not empty.
    let base = unsafe { alloc(layout) };
    // SAFETY: room for two words: the length of the block, and its start.
    unsafe {
        let block = base.add(16 + shift);
        block.sub(8).cast::<u64>().write_unaligned((size as u64) << 8 | shift as u64);
        LIVE.fetch_add(1, Ordering::Relaxed);
        block.cast()
    }
}

unsafe extern "C" fn odd_free(block: *mut c_void) {
    // SAFETY: written by `odd_malloc`.
    unsafe {
        let word = block.cast::<u8>().sub(8).cast::<u64>().read_unaligned();
        let (size, shift) = ((word >> 8) as usize, (word & 0xFF) as usize);
        LIVE.fetch_sub(1, Ordering::Relaxed);
        let layout = Layout::from_size_align_unchecked(size + ROOM, 16);
        dealloc(block.cast::<u8>().sub(16 + shift), layout);
    }
}

unsafe extern "C" fn odd_realloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the same contract as `malloc`, copy, `free`.
    unsafe {
        let old = (block.cast::<u8>().sub(8).cast::<u64>().read_unaligned() >> 8) as usize;
        let new = odd_malloc(size);
        core::ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast::<u8>(), old.min(size));
        odd_free(block);
        new
    }
}

unsafe extern "C" fn counted_malloc(size: usize, opaque: *mut c_void) -> *mut c_void {
    // SAFETY: `opaque` is a test's static counter.
    unsafe { (*opaque.cast::<AtomicIsize>()).fetch_add(1, Ordering::Relaxed) };
    // SAFETY: any size.
    unsafe { odd_malloc(size) }
}

unsafe extern "C" fn counted_free(block: *mut c_void, opaque: *mut c_void) {
    // SAFETY: `opaque` is a test's static counter.
    unsafe { (*opaque.cast::<AtomicIsize>()).fetch_sub(1, Ordering::Relaxed) };
    // SAFETY: a block of `counted_malloc`.
    unsafe { odd_free(block) }
}

fn counted(live: &'static AtomicIsize) -> ExternalAllocator {
    ExternalAllocator {
        malloc: Some(counted_malloc),
        realloc: None,
        free: Some(counted_free),
        opaque: (&raw const *live).cast_mut().cast(),
    }
}

#[test]
fn live_blocks_keep_the_allocator_they_came_from() {
    static FIRST: AtomicIsize = AtomicIsize::new(0);
    static SECOND: AtomicIsize = AtomicIsize::new(0);
    let _turn = turn();
    let before = MemRef::allocate(Request::new(100)).unwrap();
    // SAFETY: the functions follow C's rules.
    unsafe { set_allocator(Some(&counted(&FIRST))) }.unwrap();
    let first = MemRef::allocate(Request::new(100)).unwrap();
    let varsize = MemRef::new_varsize(100).unwrap();
    assert_eq!(FIRST.load(Ordering::Relaxed), 3, "header and payload of the second");
    // SAFETY: the functions follow C's rules.
    unsafe { set_allocator(Some(&counted(&SECOND))) }.unwrap();
    // SAFETY: only this thread uses it.
    unsafe { varsize.varsize_realloc(10_000) }.unwrap();
    let second = MemRef::allocate(Request::new(100)).unwrap();
    assert_eq!((FIRST.load(Ordering::Relaxed), SECOND.load(Ordering::Relaxed)), (3, 1));
    // SAFETY: no functions.
    unsafe { set_allocator(None) }.unwrap();
    drop((before, first, varsize, second));
    assert_eq!((FIRST.load(Ordering::Relaxed), SECOND.load(Ordering::Relaxed)), (0, 0));
}

/// Also blocks that threads keep.
#[test]
fn what_grows_stays_where_it_began() {
    static LIVE: AtomicIsize = AtomicIsize::new(0);
    let _turn = turn();
    let block = MemRef::new_varsize(20).unwrap();
    // SAFETY: the system's functions, with a static counter.
    unsafe { set_allocator(Some(&counted(&LIVE))) }.unwrap();
    for size in [40, 100, 500, 1000, 3000, 100_000] {
        // SAFETY: only this thread uses the payload.
        unsafe { block.varsize_realloc(size) }.unwrap();
        assert_eq!(LIVE.load(Ordering::Relaxed), 0, "{size} bytes");
    }
    drop(block);
    assert_eq!(LIVE.load(Ordering::Relaxed), 0);
}

#[test]
fn an_allocator_without_malloc_or_free_is_refused() {
    static LIVE: AtomicIsize = AtomicIsize::new(0);
    let _turn = turn();
    for broken in [
        ExternalAllocator { malloc: None, ..counted(&LIVE) },
        ExternalAllocator { free: None, ..counted(&LIVE) },
    ] {
        // SAFETY: the functions that are set follow C's rules.
        assert_eq!(unsafe { set_allocator(Some(&broken)) }, Err(Error::IncompleteAllocator));
    }
    drop(MemRef::allocate(Request::new(8)).unwrap());
    assert_eq!(LIVE.load(Ordering::Relaxed), 0);
}

#[test]
fn an_allocator_that_refuses_gives_an_error() {
    unsafe extern "C" fn refuse(_: usize) -> *mut c_void {
        core::ptr::null_mut()
    }
    let _turn = turn();
    // SAFETY: nothing is allocated.
    unsafe { set_plain_allocator(refuse, None, odd_free) }.unwrap();
    assert_eq!(MemRef::allocate(Request::new(8)).unwrap_err(), Error::OutOfMemory { size: 8 });
    assert_eq!(MemRef::new_varsize(8).unwrap_err(), Error::OutOfMemory { size: 8 });
    for size in [usize::MAX, usize::MAX - 47, isize::MAX as usize] {
        assert!(matches!(MemRef::allocate(Request::new(size)), Err(Error::SizeOverflow { .. })));
    }
}

/// Arrays, lists and dicts of compiled code then lie in the source's memory and report its kind.
#[test]
fn a_memory_source_may_stand_behind_all_blocks() {
    let _turn = turn();
    let source = SourceAllocator::new(HostHeap::new().context(), AllocKind::Shared).unwrap();
    // SAFETY: the source outlives the blocks below.
    unsafe { set_allocator(Some(source.as_table().as_ref())) }.unwrap();
    let (block, list) = (MemRef::allocate(Request::new(100)).unwrap(), MemRef::new_varsize(100).unwrap());
    assert_eq!((block.kind(), list.kind()), (AllocKind::Shared, AllocKind::Shared));
    // SAFETY: only this thread uses it.
    unsafe { list.varsize_realloc(1000) }.unwrap();
    assert_eq!(list.kind(), AllocKind::Shared, "a source refuses realloc, so the payload moves within it");
    drop((block, list));
    // SAFETY: no functions.
    unsafe { set_allocator(None) }.unwrap();
    assert_eq!(MemRef::allocate(Request::new(100)).unwrap().kind(), AllocKind::Unknown);
}

proptest! {
    /// Data has the requested alignment, and resized payloads keep their bytes, at every alignment
    /// of the allocator.
    #[test]
    fn odd_alignments_of_the_allocator_do_not_show(
        shifts in prop::collection::vec(0_usize..16, 1..6),
        sizes in prop::collection::vec(0_usize..200, 6),
        align in (0_u32..8).prop_map(|log| 1_usize << log),
    ) {
        let _turn = turn();
        // SAFETY: the functions follow C's rules, except for their alignment.
        unsafe { set_plain_allocator(odd_malloc, Some(odd_realloc), odd_free) }.unwrap();
        let live = LIVE.load(Ordering::Relaxed);
        SHIFT.store(shifts[0], Ordering::Relaxed);
        let block = MemRef::allocate(Request::new(sizes[0]).align(align)).unwrap();
        prop_assert_eq!(block.data().addr() % align, 0);
        let list = MemRef::new_varsize(sizes[0]).unwrap();
        let fill = |from: usize, to: usize| {
            for index in from..to {
                // SAFETY: inside the payload.
                unsafe { list.data().cast::<u8>().add(index).write(index as u8) };
            }
        };
        fill(0, sizes[0]);
        let mut filled = sizes[0];
        for (&shift, &size) in shifts.iter().zip(&sizes[1..]) {
            SHIFT.store(shift, Ordering::Relaxed);
            // SAFETY: only this thread uses it.
            let payload = unsafe { list.varsize_realloc(size) }.unwrap();
            prop_assert_eq!(payload.addr().get() % 16, 0);
            filled = filled.min(size);
            for index in 0..filled {
                // SAFETY: inside the payload.
                prop_assert_eq!(unsafe { payload.add(index).read() }, index as u8);
            }
            fill(filled, size);
            filled = size;
        }
        drop((block, list));
        prop_assert_eq!(LIVE.load(Ordering::Relaxed), live);
    }
}
