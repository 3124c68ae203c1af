//! Memory that the system does not give ends the command like any other thing that could not be
//! done: one line, exit code 1.
//!
//! The sizes of inputs decide how much the command asks for, in its own code and in the libraries
//! below it, whose containers would end the process by a signal. Here is the one place that all of
//! them come through.

use core::alloc::{GlobalAlloc, Layout};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: OrEnd = OrEnd;

/// The system's allocator, or the end of the process.
struct OrEnd;

// SAFETY: the system's allocator, whose answers are passed on; the functions that end the process
// instead never return.
unsafe impl GlobalAlloc for OrEnd {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: same contract.
        or_end(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: same contract.
        or_end(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: same contract.
        or_end(unsafe { System.realloc(block, layout, size) }, size)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: same contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[inline]
fn or_end(block: *mut u8, size: usize) -> *mut u8 {
    #[cfg(unix)]
    if block.is_null() {
        refused(size);
    }
    #[cfg(not(unix))]
    let _ = size;
    block
}

/// Says so and ends the process, without a call that could ask for memory or wait for a lock: the
/// caller may hold any.
#[cfg(unix)]
#[cold]
fn refused(size: usize) -> ! {
    unsafe extern "C" {
        fn write(file: i32, text: *const u8, bytes: usize) -> isize;
        fn _exit(status: i32) -> !;
    }
    let (mut text, mut length) = ([0_u8; 96], 0);
    let mut put = |part: &[u8]| {
        for (place, byte) in text.iter_mut().skip(length).zip(part) {
            *place = *byte;
            length += 1;
        }
    };
    put(b"usm: out of memory: ");
    let (mut digits, mut first, mut rest) = ([b'0'; 20], 19, size);
    while rest >= 10 {
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        first -= 1;
    }
    digits[first] = b'0' + rest as u8;
    put(&digits[first..]);
    put(b" bytes were asked for and not given\n");
    // Nobody is left to tell when standard error is closed.
    // SAFETY: so many bytes of the text are written.
    let _ = unsafe { write(2, text.as_ptr(), length) };
    // SAFETY: ends the process, and runs nothing of it before.
    unsafe { _exit(1) }
}
