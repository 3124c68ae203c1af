//! Counts each thread's bytes of the Rust heap, for cases that search leaks, and simulates an
//! exhausted heap: an allocator in front of the system's.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};
use std::alloc::{GlobalAlloc, Layout, System};

/// The allocator of every program that links this crate.
#[derive(Clone, Copy, Debug)]
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

std::thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// Maximum size of a block that is not refused.
    static ROOM: Cell<usize> = const { Cell::new(usize::MAX) };
}

static KEEPS_FREED: AtomicBool = AtomicBool::new(false);

/// Whether the heap keeps freed blocks of the alignment that blocks for copies of slices have, so
/// that no object gets their memory. For programs whose backends write to them after they are free.
pub fn keep_freed_blocks(keeps: bool) {
    KEEPS_FREED.store(keeps, Ordering::Relaxed);
}

/// Bytes that this thread allocated minus bytes that it freed, of any thread's blocks.
#[must_use]
pub fn held() -> isize {
    HELD.get()
}

/// Runs `work` while the heap gives this thread no block of more than `room` bytes.
pub fn without_larger_blocks<R>(room: usize, work: impl FnOnce() -> R) -> R {
    struct Room(usize);

    impl Drop for Room {
        fn drop(&mut self) {
            ROOM.set(self.0);
        }
    }

    let _before = Room(ROOM.replace(room));
    work()
}

fn has_room(size: usize) -> bool {
    ROOM.try_with(|room| size <= room.get()).unwrap_or(true)
}

fn count(bytes: isize) {
    // A thread that ends has no counter any more, and no test reads it.
    let _ = HELD.try_with(|held| held.set(held.get().wrapping_add(bytes)));
}

// SAFETY: the system's allocator does the work, and may refuse. Counting only touches thread-local
// cells and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !has_room(layout.size()) {
            return core::ptr::null_mut();
        }
        count(layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !has_room(layout.size()) {
            return core::ptr::null_mut();
        }
        count(layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        if layout.align() >= align_of::<u128>() && KEEPS_FREED.load(Ordering::Relaxed) {
            return;
        }
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) };
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !has_room(size) {
            return core::ptr::null_mut();
        }
        count(size as isize - layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
