//! Copies of one run by the processor.

use core::ops::Range;

/// Bytes from which on C libraries may copy by one instruction, `rep movsb`, and no longer do.
const BY_ONE_INSTRUCTION: Range<usize> = 2 << 10..1 << 20;
/// Bytes of a page, and by how many the places of two addresses in their pages are too near.
const PAGE: usize = 4 << 10;
const NEAR: Range<usize> = 1..32;

/// Copies `len` bytes through the caches.
///
/// On processors of AMD `rep movsb` takes 12 to 18 times as long if the target begins up to 31
/// bytes after the source in their pages. Large blocks of a C library begin 16 bytes after a page,
/// those of OpenCL and SYCL with one. So such a copy goes in pieces that are too short for it.
///
/// # Safety
/// Both ranges are live and do not overlap; nothing else accesses the target or writes the source.
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    let distance = to.addr().wrapping_sub(from.addr()) % PAGE;
    let is_slow =
        cfg!(target_arch = "x86_64") && BY_ONE_INSTRUCTION.contains(&len) && NEAR.contains(&distance);
    let piece = if is_slow { BY_ONE_INSTRUCTION.start - 1 } else { len };
    let mut position = 0;
    while position < len {
        let next = piece.min(len - position);
        // SAFETY: the caller's promise, for a part of the bytes.
        unsafe { to.wrapping_add(position).copy_from_nonoverlapping(from.wrapping_add(position), next) };
        position += next;
    }
}

#[cfg(all(test, feature = "alloc", not(loom)))]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn every_length_and_place_is_copied() {
        let source: Vec<u8> = (0..(1_usize << 20) + 64).map(|at| (at * 7 + at / 253) as u8).collect();
        let mut target = vec![0; source.len() + 2 * PAGE];
        for len in [0, 1, 2047, 2048, 2049, 4096, 65_537, (1 << 20) - 1, 1 << 20] {
            for ahead in [0, 1, 16, 31, 32, PAGE - 1] {
                let to = target.as_mut_ptr();
                let start = source.as_ptr().addr().wrapping_sub(to.addr()).wrapping_add(ahead) % PAGE;
                target.fill(255);
                // SAFETY: inside of both vectors.
                unsafe { copy(target.as_mut_ptr().wrapping_add(start), source.as_ptr(), len) };
                assert!(target[start..start + len] == source[..len], "{len} {ahead}");
                let around = target[..start].iter().chain(&target[start + len..]);
                assert!(around.into_iter().all(|byte| *byte == 255), "{len} {ahead}");
            }
        }
    }
}
