//! Entries that need the C library: output to a `FILE`, and the allocator that Numba's tests use.

use core::ffi::{c_char, c_int, c_void};
use core::fmt::{self, Write};
use core::ptr::NonNull;

use crate::api;
use crate::external::ExternalAllocator;
use crate::meminfo::MemInfo;

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn free(block: *mut c_void);
    fn fputs(text: *const c_char, out: *mut c_void) -> c_int;
}

/// A text that always ends with a zero byte. Excess is cut off.
struct Line {
    bytes: [u8; 160],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // The last byte stays zero.
        let room = self.bytes.len() - 1 - self.length;
        let copy_len = text.len().min(room);
        let end = self.length + copy_len;
        self.bytes[self.length..end].copy_from_slice(&text.as_bytes()[..copy_len]);
        self.length = end;
        Ok(())
    }
}

/// # Safety
/// `mi` is null or a live block, `out` null or an open `FILE`.
pub(super) unsafe fn dump(mi: *mut MemInfo, out: *mut c_void) {
    let Some(out) = NonNull::new(out) else { return };
    let mut line = Line { bytes: [0; 160], length: 0 };
    // SAFETY: as the caller promises.
    let _ = match unsafe { api::checked_block(mi, "dump") } {
        Some(block) => writeln!(
            line,
            "MemInfo {mi:p} refcount {} data {:p} size {}",
            block.refcount(),
            block.data(),
            block.size()
        ),
        None => writeln!(line, "MemInfo NULL"),
    };
    // SAFETY: an open stream, and text that ends with a zero byte.
    unsafe { fputs(line.bytes.as_ptr().cast(), out.as_ptr()) };
}

unsafe extern "C" fn sample_malloc(size: usize, _: *mut c_void) -> *mut c_void {
    // SAFETY: any size may be asked for.
    unsafe { malloc(size) }
}

unsafe extern "C" fn sample_realloc(block: *mut c_void, size: usize, _: *mut c_void) -> *mut c_void {
    // SAFETY: the caller passes a block of this allocator.
    unsafe { realloc(block, size) }
}

unsafe extern "C" fn sample_free(block: *mut c_void, _: *mut c_void) {
    // SAFETY: the caller passes a block of this allocator, once.
    unsafe { free(block) }
}

/// The C library's allocator in the shape of an external one.
pub(super) static SAMPLE: ExternalAllocator = ExternalAllocator {
    malloc: Some(sample_malloc),
    realloc: Some(sample_realloc),
    free: Some(sample_free),
    opaque: core::ptr::null_mut(),
};
