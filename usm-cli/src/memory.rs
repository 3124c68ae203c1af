//! Ends the command with one line and exit code 1 if the system refuses memory, as for every other
//! failure.
//!
//! The input's size decides how much memory the command and its libraries need, and the libraries'
//! containers would end the process by a signal. All allocations pass through this file.

use core::alloc::{GlobalAlloc, Layout};
#[cfg(unix)]
use core::sync::atomic::{AtomicBool, Ordering};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: OrEnd = OrEnd;

/// Whether a thread ends the process.
#[cfg(unix)]
static ENDS: AtomicBool = AtomicBool::new(false);

/// The system's allocator; a refusal ends the process.
struct OrEnd;

// SAFETY: forwards to the system's allocator and returns its results. The functions that end the
// process never return.
unsafe impl GlobalAlloc for OrEnd {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: same contract.
        exit_on_null(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: same contract.
        exit_on_null(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: same contract.
        exit_on_null(unsafe { System.realloc(block, layout, size) }, size)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: same contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[inline]
fn exit_on_null(block: *mut u8, size: usize) -> *mut u8 {
    #[cfg(unix)]
    if block.is_null() {
        exit_out_of_memory(size);
    }
    #[cfg(not(unix))]
    let _ = size;
    block
}

/// Prints the refusal and ends the process. Calls nothing that could allocate or wait for a lock:
/// the caller may hold any lock.
#[cfg(unix)]
#[cold]
fn exit_out_of_memory(size: usize) -> ! {
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
    // Another thread may lack memory at the same time: the first one's line is enough. It ends the
    // process, this thread with it.
    while ENDS.swap(true, Ordering::Relaxed) {
        core::hint::spin_loop();
    }
    // A closed standard error has no reader.
    // SAFETY: the first `length` bytes of the text are initialised.
    let _ = unsafe { write(2, text.as_ptr(), length) };
    // SAFETY: ends the process without running any of its code.
    unsafe { _exit(1) }
}
