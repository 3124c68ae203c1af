//! Large pages for large blocks of the host, as NumPy asks for them. Without them a copy of 64 MiB
//! takes 1.4 times as long.

use std::ffi::{c_int, c_void};

use usm_core::{Allocation, backend::Dyn};

/// Bytes from which on it is worth a call; NumPy's number.
const LEAST: usize = 4 << 20;
/// Alignment of the system's own pages.
const PAGE: usize = 4096;
/// `MADV_HUGEPAGE`.
const ADVICE: c_int = 14;

unsafe extern "C" {
    fn madvise(start: *mut c_void, length: usize, advice: c_int) -> c_int;
}

/// Requests large pages for the whole pages of a plain host block, before its first write.
pub(crate) fn advise(block: &Allocation<Dyn>) {
    if block.size() < LEAST {
        return;
    }
    let start = block.as_ptr().map_addr(|address| address.next_multiple_of(PAGE));
    let length = block.size().saturating_sub(start.addr() - block.as_ptr().addr()) / PAGE * PAGE;
    // SAFETY: a hint that changes no byte, over pages inside the block. A system that does not
    // support it returns an error, which is harmless.
    let _ = unsafe { madvise(start.cast(), length, ADVICE) };
}
