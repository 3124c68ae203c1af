//! Containers driven by bytes, beside a `Vec` with linear search. The fuzz target calls this; its
//! corpus runs through it as an ordinary test, and so do proptest's programs.
//!
//! The first bytes choose the container, its sizes, its callbacks and an allocator that sometimes
//! fails; the others are steps. Each step checks status, content, order and references, and that a
//! failure changed nothing. AddressSanitizer finds memory errors.
#![allow(dead_code, unreachable_pub, missing_docs)] // Each user takes some of the functions; the fuzz target takes them by name.

mod keyed;
mod list;

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;

use usm_nrt::{ExternalAllocator, Stats, set_allocator, set_stats};

thread_local! {
    /// References that containers hold: their number, and the sum of a hash of their bytes. Two
    /// different sets of references with the same sum are too unlikely to matter; a table of them
    /// took most of the run time.
    static HELD: Cell<(isize, u64)> = const { Cell::new((0, 0)) };
    /// Number of allocations until all fail, until it is set again.
    static GRANTED: Cell<usize> = const { Cell::new(usize::MAX) };
    /// The change that callbacks attempt on the container that calls them.
    static NESTED: Cell<Option<fn()>> = const { Cell::new(None) };
}

/// The numbers of a step, from the bytes.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }
}

/// # Safety
/// As the sample allocator's.
unsafe extern "C" fn malloc(size: usize, opaque: *mut c_void) -> *mut c_void {
    let granted = GRANTED.get();
    if granted == 0 {
        return ptr::null_mut();
    }
    GRANTED.set(granted.saturating_sub(usize::from(granted != usize::MAX)));
    // SAFETY: the sample allocator takes any size.
    unsafe { sample().malloc.unwrap()(size, opaque) }
}

unsafe extern "C" fn realloc(block: *mut c_void, size: usize, opaque: *mut c_void) -> *mut c_void {
    if GRANTED.get() == 0 {
        return ptr::null_mut();
    }
    // SAFETY: a block of this allocator.
    unsafe { sample().realloc.unwrap()(block, size, opaque) }
}

unsafe extern "C" fn free(block: *mut c_void, opaque: *mut c_void) {
    // SAFETY: a block of this allocator, once.
    unsafe { sample().free.unwrap()(block, opaque) }
}

fn sample() -> &'static ExternalAllocator {
    // SAFETY: a static of the library.
    unsafe { &*usm_nrt::capi::_nrt_get_sample_external_allocator() }
}

static FAILING: ExternalAllocator = ExternalAllocator {
    malloc: Some(malloc),
    realloc: Some(realloc),
    free: Some(free),
    opaque: ptr::null_mut(),
};

/// FNV-1a, then the final mix of MurmurHash3.
fn hash(element: &[u8]) -> u64 {
    let start = 0xCBF2_9CE4_8422_2325_u64 ^ element.len() as u64;
    let sum = element.iter().fold(start, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3));
    let sum = (sum ^ (sum >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    sum ^ (sum >> 33)
}

/// Counts a reference that a container took or released.
fn count(element: &[u8], change: isize) {
    let (number, sum) = HELD.get();
    HELD.set((number + change, sum.wrapping_add(hash(element).wrapping_mul(change as u64))));
    if let Some(nested) = NESTED.get() {
        nested();
    }
}

/// # Safety
/// `element` has `N` bytes to read.
unsafe extern "C" fn incref<const N: usize>(element: *const c_void) {
    // SAFETY: as the caller promises.
    count(unsafe { core::slice::from_raw_parts(element.cast(), N) }, 1);
}

/// # Safety
/// As [`incref`].
unsafe extern "C" fn decref<const N: usize>(element: *const c_void) {
    // SAFETY: as the caller promises.
    count(unsafe { core::slice::from_raw_parts(element.cast(), N) }, -1);
}

/// Compares the held references with a model's.
fn assert_held<'a>(elements: impl Iterator<Item = &'a [u8]>) {
    let expected =
        elements.fold((0, 0_u64), |(number, sum), element| (number + 1, sum.wrapping_add(hash(element))));
    assert_eq!(HELD.get(), expected, "references");
}

/// Runs a program. Panics if a container breaks its contract. Programs take turns, because the
/// allocator belongs to the whole runtime.
pub fn containers(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let (Some(kind), Some(allocator)) = (bytes.next(), bytes.next()) else { return };
    HELD.set((0, 0));
    GRANTED.set(usize::MAX);
    NESTED.set(None);
    set_stats(true);
    let before = Stats::totals();
    if allocator % 4 != 0 {
        // SAFETY: the C library's functions.
        unsafe { set_allocator(Some(&FAILING)) }.unwrap();
    }
    // Sizes that are copied in different ways.
    match kind % 8 {
        0 => keyed::run::<8, 8>(bytes, allocator & 1 != 0),
        1 => keyed::run::<4, 16>(bytes, allocator & 1 != 0),
        2 => keyed::run::<3, 1>(bytes, allocator & 1 != 0),
        3 => keyed::run::<24, 100>(bytes, allocator & 1 != 0),
        4 => keyed::run::<8, 0>(bytes, allocator & 1 != 0),
        5 => list::run::<8>(bytes),
        6 => list::run::<3>(bytes),
        _ => list::run::<0>(bytes),
    }
    // SAFETY: no functions.
    unsafe { set_allocator(None) }.unwrap();
    let (before, after) = (before.live_blocks(), Stats::totals().live_blocks());
    assert_eq!(after, before, "everything is freed");
    assert_held([].into_iter());
}
