//! The guarantees of the Rust interface.

#![allow(clippy::std_instead_of_alloc, reason = "tests have std")]

use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use proptest::prelude::*;
use usm_nrt::{DEAD, Error, ExternalAllocator, FRESH, MemInfo, MemRef, Owner, OwnerTag, Request};

/// The bytes of a block.
fn bytes(mi: &MemRef) -> &[u8] {
    // SAFETY: the tests write all bytes before they read them, on one thread.
    unsafe { core::slice::from_raw_parts(mi.data().cast(), mi.size()) }
}

fn write(mi: &MemRef, byte: u8) {
    // SAFETY: the block has `size` bytes, used by this thread only.
    unsafe { mi.data().cast::<u8>().write_bytes(byte, mi.size()) };
}

proptest! {
    /// Blocks are aligned, disjoint and of the requested size, with and without the thread cache.
    #[test]
    fn blocks_are_aligned_and_disjoint(
        requests in prop::collection::vec((0usize..5000, 0u32..14, any::<bool>(), any::<bool>()), 1..40),
        cached in any::<bool>(),
    ) {
        usm_nrt::set_thread_cache(cached);
        let mut live: Vec<(MemRef, u8)> = Vec::new();
        for (index, (size, log_align, fill, drop_one)) in requests.into_iter().enumerate() {
            let align = 1usize << log_align;
            let mut request = Request::new(size).align(align);
            if fill {
                request = request.filled();
            }
            let mi = MemRef::allocate(request).unwrap();
            prop_assert_eq!(mi.size(), size);
            prop_assert_eq!(mi.refcount(), 1);
            prop_assert_eq!(mi.data().addr() % align, 0);
            if fill {
                prop_assert!(bytes(&mi).iter().all(|&byte| byte == FRESH));
            }
            let mark = index as u8;
            write(&mi, mark);
            live.push((mi, mark));
            if drop_one {
                live.swap_remove(index / 2 % live.len());
            }
            for (mi, mark) in &live {
                prop_assert!(bytes(mi).iter().all(|byte| byte == mark));
            }
        }
    }

    /// A list that grows and shrinks keeps its elements.
    #[test]
    fn varsize_keeps_contents(sizes in prop::collection::vec(0usize..3000, 1..20), cached in any::<bool>()) {
        usm_nrt::set_thread_cache(cached);
        let mi = MemRef::new_varsize(16).unwrap();
        write(&mi, 7);
        let mut kept = 16;
        for size in sizes {
            // SAFETY: only this thread uses the payload.
            let payload = unsafe { mi.varsize_realloc(size) }.unwrap();
            prop_assert_eq!(payload.as_ptr().cast(), mi.data());
            prop_assert_eq!(mi.size(), size);
            kept = kept.min(size);
            prop_assert!(bytes(&mi)[..kept].iter().all(|&byte| byte == 7));
            write(&mi, 7);
            kept = size;
        }
    }

    /// No size and alignment panics, overflows or returns a wild pointer.
    #[test]
    fn hostile_requests_are_refused(size in (1usize << 48).., align in any::<usize>(), external in any::<bool>()) {
        let mut request = Request::new(size).align(align);
        if external {
            // SAFETY: a static, which refuses these sizes.
            request = unsafe { request.allocator(NonNull::from(&usm_nrt::BUILTIN)) };
        }
        let refused = MemRef::allocate(request).unwrap_err();
        let expected = match refused {
            Error::InvalidAlignment { align: named } => named == align && !align.is_power_of_two(),
            Error::SizeOverflow { .. } | Error::OutOfMemory { .. } => align.is_power_of_two(),
            _ => false,
        };
        prop_assert!(expected, "{refused:?}");
    }
}

#[test]
fn sizes_next_to_the_end_are_refused() {
    for size in (0..200).map(|back| usize::MAX - back).chain([isize::MAX as usize, isize::MAX as usize - 63])
    {
        for align in [1, 16, 32, 64, 4096, 1 << 31, 1 << 62] {
            assert!(MemRef::allocate(Request::new(size).align(align)).is_err(), "{size} at {align}");
        }
        assert!(MemRef::new_varsize(size).is_err());
    }
    for align in [0, 3, 24, 48, usize::MAX] {
        assert_eq!(
            MemRef::allocate(Request::new(64).align(align)).unwrap_err(),
            Error::InvalidAlignment { align }
        );
    }
}

#[test]
fn varsize_failure_keeps_the_old_payload() {
    let mi = MemRef::new_varsize(100).unwrap();
    write(&mi, 42);
    let before = mi.data();
    // SAFETY: only this thread uses the payload.
    assert!(unsafe { mi.varsize_realloc(usize::MAX / 2) }.is_err());
    // SAFETY: only this thread uses the payload.
    assert!(unsafe { mi.varsize_alloc(usize::MAX / 2) }.is_err());
    assert_eq!((mi.data(), mi.size()), (before, 100));
    assert!(bytes(&mi).iter().all(|&byte| byte == 42));
}

#[test]
fn varsize_functions_refuse_other_blocks() {
    let mi = MemRef::allocate(Request::new(100)).unwrap();
    assert!(!mi.is_varsize());
    // SAFETY: refused before any memory is touched.
    let resized = unsafe { mi.varsize_realloc(200) };
    assert_eq!(resized.unwrap_err(), Error::NotVarsize);
    // SAFETY: refused before any memory is touched.
    let replaced = unsafe { mi.varsize_alloc(200) };
    assert_eq!(replaced.unwrap_err(), Error::NotVarsize);
    write(&mi, 7);
    // SAFETY: refused before any memory is touched. Otherwise the call would free an address inside
    // a block.
    let freed = unsafe { mi.varsize_free(mi.data()) };
    assert_eq!(freed.unwrap_err(), Error::NotVarsize);
    assert!(mi.size() == 100 && bytes(&mi).iter().all(|&byte| byte == 7));
    assert!(MemRef::new_varsize(1).unwrap().is_varsize());
}

static SEEN: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn record(data: *mut c_void, size: usize, info: *mut c_void) {
    assert!(info.is_null());
    // SAFETY: the runtime passes the block's own data.
    let sum: usize =
        unsafe { core::slice::from_raw_parts(data.cast::<u8>(), size) }.iter().map(|&b| usize::from(b)).sum();
    SEEN.fetch_add(sum, Ordering::Relaxed);
}

#[test]
fn the_destructor_runs_once_with_the_data() {
    // SAFETY: `record` only reads the data.
    let request = unsafe { Request::new(10).dtor(record) };
    let mi = MemRef::allocate(request).unwrap();
    write(&mi, 3);
    let other = mi.clone();
    assert_eq!(mi.refcount(), 2);
    drop(mi);
    assert_eq!(SEEN.load(Ordering::Relaxed), 0);
    drop(other);
    assert_eq!(SEEN.load(Ordering::Relaxed), 30);
}

#[test]
fn owners_are_typed_and_dropped_once() {
    let owner = Arc::new(vec![1u8, 2, 3]);
    let (data, size) = (owner.as_ptr().cast_mut().cast(), owner.len());
    // SAFETY: the vector's buffer does not move with the Arc.
    let mi = unsafe { MemRef::with_owner(data, size, Arc::clone(&owner)) }.unwrap();
    assert_eq!(bytes(&mi), [1, 2, 3]);
    assert!(Arc::ptr_eq(mi.owner::<Arc<Vec<u8>>>().unwrap(), &owner));
    assert!(mi.owner::<Arc<Vec<u16>>>().is_none());
    assert_eq!(MemInfo::owner(&mi).unwrap().tag, OwnerTag::RUST);
    assert_eq!(Arc::strong_count(&owner), 2);
    drop(mi);
    assert_eq!(Arc::strong_count(&owner), 1);
}

#[test]
fn a_plain_block_has_no_owner() {
    let mi = MemRef::allocate(Request::new(8).filled()).unwrap();
    assert!(MemInfo::owner(&mi).is_none());
    assert!(mi.owner::<u32>().is_none());
}

#[test]
fn foreign_owners_are_released_with_the_block() {
    unsafe extern "C" fn release(object: *mut c_void) {
        // SAFETY: the test's counter outlives the block.
        unsafe { &*object.cast::<AtomicUsize>() }.fetch_add(1, Ordering::Relaxed);
    }
    let released = AtomicUsize::new(0);
    let object = (&raw const released).cast_mut().cast::<c_void>();
    let owner = Owner { tag: OwnerTag::PYTHON, object, release: Some(release) };
    // SAFETY: no data; the counter outlives the block.
    let mi = unsafe { MemInfo::wrap_owned(ptr::null_mut(), 0, owner) }.unwrap();
    // SAFETY: the test owns the only reference.
    let mi = unsafe { MemRef::from_raw(mi) };
    assert_eq!(MemInfo::owner(&mi).unwrap().object, object);
    drop(mi);
    assert_eq!(released.load(Ordering::Relaxed), 1);
}

/// A counting allocator that fails on demand.
struct Source {
    live: AtomicUsize,
    fail: bool,
}

unsafe extern "C" fn source_malloc(size: usize, opaque: *mut c_void) -> *mut c_void {
    // SAFETY: `opaque` is the test's `Source`.
    let source = unsafe { &*opaque.cast::<Source>() };
    if source.fail {
        return ptr::null_mut();
    }
    source.live.fetch_add(1, Ordering::Relaxed);
    let malloc = usm_nrt::BUILTIN.malloc.unwrap();
    // SAFETY: any size may be requested.
    unsafe { malloc(size, ptr::null_mut()) }
}

unsafe extern "C" fn source_free(block: *mut c_void, opaque: *mut c_void) {
    // SAFETY: `opaque` is the test's `Source`.
    unsafe { &*opaque.cast::<Source>() }.live.fetch_sub(1, Ordering::Relaxed);
    let free = usm_nrt::BUILTIN.free.unwrap();
    // SAFETY: came from `source_malloc`.
    unsafe { free(block, ptr::null_mut()) };
}

fn allocator(source: &Source) -> ExternalAllocator {
    ExternalAllocator {
        malloc: Some(source_malloc),
        realloc: None,
        free: Some(source_free),
        opaque: ptr::from_ref(source).cast_mut().cast(),
    }
}

#[test]
fn external_blocks_go_back_where_they_came_from() {
    let source = Source { live: AtomicUsize::new(0), fail: false };
    let table = allocator(&source);
    for align in [1, 16, 32, 4096] {
        // SAFETY: table and source outlive the block.
        let request = unsafe { Request::new(100).align(align).filled().allocator(NonNull::from(&table)) };
        let mi = MemRef::allocate(request).unwrap();
        assert_eq!(source.live.load(Ordering::Relaxed), 1);
        assert_eq!(mi.data().addr() % align, 0);
        assert_eq!(mi.external_allocator().cast_const(), &raw const table);
        assert!(bytes(&mi).iter().all(|&byte| byte == FRESH));
        drop(mi);
        assert_eq!(source.live.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn incomplete_and_failing_allocators_are_refused() {
    let source = Source { live: AtomicUsize::new(0), fail: true };
    let failing = allocator(&source);
    // SAFETY: the table outlives the attempt.
    let request = unsafe { Request::new(5).allocator(NonNull::from(&failing)) };
    assert_eq!(MemRef::allocate(request).unwrap_err(), Error::OutOfMemory { size: 5 });
    for table in [ExternalAllocator { malloc: None, ..failing }, ExternalAllocator { free: None, ..failing }]
    {
        // SAFETY: the table outlives the attempt.
        let request = unsafe { Request::new(5).allocator(NonNull::from(&table)) };
        assert_eq!(MemRef::allocate(request).unwrap_err(), Error::IncompleteAllocator);
    }
}

#[test]
fn safe_blocks_are_overwritten_before_they_are_freed() {
    /// Keeps the memory of a freed block readable for the test.
    unsafe extern "C" fn keep(_: *mut c_void, _: *mut c_void) {}
    let source = Source { live: AtomicUsize::new(0), fail: false };
    let table = ExternalAllocator { free: Some(keep), ..allocator(&source) };
    // SAFETY: table and source outlive the block.
    let request = unsafe { Request::new(40).filled().allocator(NonNull::from(&table)) };
    let mi = MemRef::allocate(request).unwrap();
    let (base, data) = (mi.as_ptr(), mi.data().cast::<u8>());
    write(&mi, 1);
    drop(mi);
    // SAFETY: `keep` freed nothing.
    let dead = unsafe { core::slice::from_raw_parts(data, 40) };
    assert!(dead.iter().all(|&byte| byte == DEAD));
    // SAFETY: frees the block that `keep` left.
    unsafe { source_free(base.as_ptr().cast(), table.opaque) };
}

#[test]
fn references_from_many_threads_add_up() {
    let owner = Arc::new(());
    // SAFETY: there is no data.
    let mi = unsafe { MemRef::with_owner(ptr::null_mut(), 0, Arc::clone(&owner)) }.unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let mi = mi.clone();
            scope.spawn(move || {
                for _ in 0..10_000 {
                    drop(mi.clone());
                }
            });
        }
    });
    assert_eq!(mi.refcount(), 1);
    drop(mi);
    assert_eq!(Arc::strong_count(&owner), 1);
}

#[test]
#[cfg(feature = "std")]
fn blocks_may_be_freed_by_another_thread() {
    usm_nrt::set_thread_cache(true);
    for _ in 0..50 {
        let blocks: Vec<MemRef> =
            (0..200).map(|size| MemRef::allocate(Request::new(size * 8)).unwrap()).collect();
        std::thread::spawn(move || drop(blocks)).join().unwrap();
    }
    usm_nrt::drain_thread_cache();
}
