//! Bytes of the Rust heap that each thread holds, for the cases that look for leaks: an allocator that counts on the way to the system's.

use core::cell::Cell;
use std::alloc::{GlobalAlloc, Layout, System};

/// The allocator of every program that links this crate.
#[derive(Clone, Copy, Debug)]
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

std::thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this thread took from the heap, less those that it gave back, its own or another's.
#[must_use]
pub fn held() -> isize {
    HELD.get()
}

fn count(bytes: isize) {
    // A thread that ends has no counter any more, and nobody asks for it.
    let _ = HELD.try_with(|held| held.set(held.get().wrapping_add(bytes)));
}

// SAFETY: the system's allocator does it all; counting touches a cell of the thread and takes no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) };
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
