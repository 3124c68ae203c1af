//! Calls without memory: each one fails cleanly at every allocation, and leaks nothing.
#![cfg(feature = "capi")]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::ffi::{c_char, c_void};
use core::ptr::{self, NonNull};
use std::alloc::System;

use usm_nrt::api::{API, Status};
use usm_nrt::helper::random::{
    numba_get_internal_random_state, numba_get_np_random_state, numba_get_py_random_state,
};
use usm_nrt::{Error, ExternalAllocator, MemInfo, MemRef, Owner, OwnerTag, SlotTable};

struct Failing;

thread_local! {
    /// Number of allocations until all fail.
    static GRANTED: Cell<usize> = const { Cell::new(usize::MAX) };
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

fn granted() -> bool {
    let left = GRANTED.get();
    GRANTED.set(left.saturating_sub(usize::from(left != usize::MAX)));
    left > 0
}

// SAFETY: the system's allocator, which may refuse.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !granted() {
            return ptr::null_mut();
        }
        LIVE.set(LIVE.get() + 1);
        // SAFETY: same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, base: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - 1);
        // SAFETY: same contract.
        unsafe { System.dealloc(base, layout) }
    }

    unsafe fn realloc(&self, base: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: same contract.
        if granted() { unsafe { System.realloc(base, layout, size) } } else { ptr::null_mut() }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// Calls `work` with ever more allocations granted until it succeeds, and returns the number of
/// failures. A failure leaks nothing.
fn until_granted(what: &str, mut work: impl FnMut() -> bool) -> usize {
    for granted in 0..100 {
        let before = LIVE.get();
        GRANTED.set(granted);
        let done = work();
        GRANTED.set(usize::MAX);
        if done {
            return granted;
        }
        assert_eq!(LIVE.get(), before, "{what}, {granted} allocations granted: memory leaked");
    }
    panic!("{what}: fails with a hundred allocations granted");
}

/// Checks an entry that makes a block; the block is released.
fn makes(what: &str, entry: impl Fn(*mut *mut MemInfo) -> Status) {
    let failed = until_granted(what, || {
        let mut block = ptr::null_mut();
        match entry(&raw mut block) {
            Status::OK => {
                // SAFETY: the entry made it, and this test owns its reference.
                unsafe { (API.numba().release)(block) };
                true
            }
            status => {
                assert_eq!((status, block), (Status::OUT_OF_MEMORY, ptr::null_mut()), "{what}");
                false
            }
        }
    });
    assert!(failed > 0, "{what} asks for no memory");
}

trait Numba {
    fn numba(&self) -> &'static usm_nrt::api::NumbaApi;
}

impl Numba for usm_nrt::api::Api {
    fn numba(&self) -> &'static usm_nrt::api::NumbaApi {
        // SAFETY: a static.
        unsafe { &*self.numba }
    }
}

unsafe extern "C" fn release(_: *mut c_void) {}

unsafe extern "C" fn count_name(_: *const c_char, length: usize, context: *mut c_void) {
    // SAFETY: the test's number.
    unsafe { *context.cast::<usize>() += length };
}

unsafe extern "C" fn malloc(_: usize, opaque: *mut c_void) -> *mut c_void {
    opaque
}

unsafe extern "C" fn free(_: *mut c_void, _: *mut c_void) {}

#[test]
fn every_entry_answers_without_memory() {
    if cfg!(windows) {
        // Open: an allocation of 26 bytes, of a caller that is not known yet, ends the process.
        skip::limit("exhausted memory on Windows", "an allocation that cannot fail ends the process");
        return;
    }
    usm_nrt::set_thread_cache(false);
    let mut bytes = [0_u8; 8];
    let data: *mut c_void = bytes.as_mut_ptr().cast();
    let owner = Owner { tag: OwnerTag::PYTHON, object: data, release: Some(release) };
    // SAFETY: every block is released at once; data and owner outlive it.
    unsafe {
        makes("allocate", |out| (API.allocate)(10, 16, 1, None, ptr::null_mut(), out));
        makes("allocate, aligned", |out| (API.allocate)(10, 4096, 0, None, ptr::null_mut(), out));
        makes("wrap", |out| (API.wrap)(data, 8, None, ptr::null_mut(), out));
        makes("wrap_owned", |out| (API.wrap_owned)(data, 8, &raw const owner, out));
        makes("wrap_owned_of_kind", |out| (API.wrap_owned_of_kind)(data, 8, &raw const owner, 3, out));
        makes("new_varsize", |out| (API.new_varsize)(10, None, out));
        for entry in [(API.numba().allocate), usm_nrt::capi::NRT_MemInfo_new_varsize] {
            until_granted("by name", || {
                NonNull::new(entry(10)).map(|block| MemInfo::release(block)).is_some()
            });
        }
        let managed = || NonNull::new((API.numba().manage_memory)(data, None));
        assert!(
            until_granted("manage_memory", || managed().map(|block| MemInfo::release(block)).is_some()) > 0
        );

        let list = MemRef::new_varsize(4).unwrap();
        for entry in [API.varsize_alloc, API.varsize_realloc] {
            let first = list.data();
            let failed = until_granted("varsize", || {
                let mut payload = ptr::null_mut();
                let status = entry(list.as_ptr().as_ptr(), 1000, &raw mut payload);
                assert!(status == Status::OK || (status == Status::OUT_OF_MEMORY && list.data() == first));
                status == Status::OK
            });
            assert!(failed > 0);
            if list.data() != first && ptr::fn_addr_eq(entry, API.varsize_alloc) {
                list.varsize_free(first).unwrap();
            }
        }

        let mut table = ptr::null_mut();
        assert!(
            until_granted("slots_new", || {
                table = (API.slots_new)(data);
                !table.is_null()
            }) > 0
        );
        let name = "a name".as_bytes();
        let (start, length) = (name.as_ptr().cast::<c_char>(), name.len());
        // Granted first: room for names stays even if the slot behind it fails.
        assert!(!(API.slots_get)(table, c"x".as_ptr(), 1).is_null());
        assert!(until_granted("slots_get", || !(API.slots_get)(table, start, length).is_null()) > 0);
        assert!(
            until_granted("slots_resolve", || (API.slots_resolve)(
                table,
                start,
                3,
                data.cast::<u8>().add(1).cast()
            )) > 0
        );
        GRANTED.set(0);
        let mut lengths = 0_usize;
        let unresolved = (API.slots_unresolved)(table, Some(count_name), (&raw mut lengths).cast());
        GRANTED.set(usize::MAX);
        assert_eq!((unresolved, lengths), (2, 7), "looking takes no memory");
        (API.slots_free)(table);

        let allocator =
            ExternalAllocator { malloc: Some(malloc), realloc: None, free: Some(free), opaque: data };
        let failed = until_granted("set_allocator", || {
            let status = (API.set_allocator)(&raw const allocator);
            assert!(status == Status::OK || status == Status::OUT_OF_MEMORY);
            status == Status::OK
        });
        assert!(failed > 0);
        assert_eq!((API.set_allocator)(ptr::null()), Status::OK);

        for state in [numba_get_py_random_state, numba_get_np_random_state, numba_get_internal_random_state] {
            until_granted("random state", || !state().is_null());
        }
    }

    let failed = until_granted("with_owner", || {
        let value = [1_u64; 4];
        // SAFETY: the data is not accessed.
        match unsafe { MemRef::with_owner(ptr::null_mut(), 0, value) } {
            Ok(block) => block.owner::<[u64; 4]>() == Some(&value),
            Err(error) => {
                assert!(matches!(error, Error::OutOfMemory { .. }));
                false
            }
        }
    });
    assert_eq!(failed, 3, "value, record and header");
    let table = SlotTable::new(NonNull::dangling());
    table.slot("a name before, for which room is made").unwrap();
    assert!(until_granted("SlotTable::slot", || table.slot("name").is_ok()) > 0);

    // With `debug` a record contains a stack trace, which the standard library allocates.
    if cfg!(not(feature = "debug")) {
        usm_nrt::set_tracking(true);
        let mut kept = Vec::with_capacity(100);
        // The table of records stays if the list finds no room, so leftover memory is not counted.
        let listed = (0..100).position(|granted| {
            GRANTED.set(granted);
            kept.extend(MemRef::allocate(usm_nrt::Request::new(10)).ok());
            let listed = usm_nrt::live_blocks();
            GRANTED.set(usize::MAX);
            listed.is_ok_and(|listed| !listed.is_empty())
        });
        assert!(listed.is_some_and(|granted| granted > 0));
        kept.clear();
        usm_nrt::set_tracking(false);
    }
}
