//! Copies whose stores go past the caches: what is written is not read first, and leaves the caches
//! to the blocks of the ring.

/// Bytes of a store.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
const WORD: usize = 16;

/// Copies `len` bytes.
///
/// # Safety
/// Both ranges are live and do not overlap; nothing else accesses the target or writes the source.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    // Four stores fill a cache line, which is then written at once.
    const LINE: usize = 4 * WORD;
    let head = to.align_offset(LINE).min(len);
    let middle = (len - head) / LINE * LINE;
    let tail = head + middle;
    // SAFETY: the caller's promise.
    unsafe { to.copy_from_nonoverlapping(from, head) };
    for line in (head..tail).step_by(LINE) {
        let load = |word: usize| {
            // SAFETY: inside of the source; any alignment.
            unsafe { _mm_loadu_si128(from.wrapping_add(line + word * WORD).cast::<__m128i>()) }
        };
        let words = [load(0), load(1), load(2), load(3)];
        for (word, value) in words.into_iter().enumerate() {
            // SAFETY: inside of the target, and aligned to a line.
            unsafe { _mm_stream_si128(to.wrapping_add(line + word * WORD).cast::<__m128i>(), value) };
        }
    }
    // These stores are ordered before later ones, such as those that tell other threads.
    //
    // SAFETY: every processor of this target has it.
    unsafe { _mm_sfence() };
    // SAFETY: the caller's promise.
    unsafe { to.wrapping_add(tail).copy_from_nonoverlapping(from.wrapping_add(tail), len - tail) };
}

/// Copies `len` bytes.
///
/// # Safety
/// Both ranges are live and do not overlap; nothing else accesses the target or writes the source.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { to.copy_from_nonoverlapping(from, len) };
}
