//! The memory functions that compiled Rust code calls and that a C library would bring.
//!
//! Written with string instructions: a plain loop would be recognised as the very function it
//! implements, and call itself.

use core::arch::asm;

/// # Safety
///
/// As C's `memcpy`: `count` bytes readable at `from`, writable at `to`, and no overlap.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: the caller vouches for both ranges; the direction flag is clear in all Rust code.
    unsafe {
        asm!(
            "rep movsb",
            inout("rcx") count => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags),
        );
    }
    to
}

/// # Safety
///
/// As C's `memmove`: `count` bytes readable at `from` and writable at `to`; the ranges may overlap.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    let distance = (to as usize).wrapping_sub(from as usize);
    if distance >= count {
        // SAFETY: copying upwards overwrites no byte that is still to be read, since `to` is not
        // inside [from, from + count).
        return unsafe { memcpy(to, from, count) };
    }
    // SAFETY: 0 <= distance < count, so count > 0 and both last bytes are inside the caller's
    // ranges. Copying downwards overwrites only bytes that were read; the direction flag is cleared
    // again.
    unsafe {
        asm!(
            "std",
            "rep movsb",
            "cld",
            inout("rcx") count => _,
            inout("rdi") to.wrapping_add(count).wrapping_sub(1) => _,
            inout("rsi") from.wrapping_add(count).wrapping_sub(1) => _,
            options(nostack),
        );
    }
    to
}

/// # Safety
///
/// As C's `memset`: `count` bytes writable at `to`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, count: usize) -> *mut u8 {
    // SAFETY: the caller vouches for the range; the direction flag is clear in all Rust code.
    unsafe {
        asm!(
            "rep stosb",
            inout("rcx") count => _,
            inout("rdi") to => _,
            in("al") byte as u8,
            options(nostack, preserves_flags),
        );
    }
    to
}

/// # Safety
///
/// As C's `memcmp`: `count` bytes readable at both addresses.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, count: usize) -> i32 {
    let order: i32;
    // SAFETY: the caller vouches for both ranges. The comparison of a register with itself sets the
    // zero flag, so that an empty range is equal; on a difference both pointers stand one past it.
    unsafe {
        asm!(
            "cmp rcx, rcx",
            "repe cmpsb",
            "seta al",
            "setb cl",
            "movzx eax, al",
            "movzx ecx, cl",
            "sub eax, ecx",
            inout("rcx") count => _,
            inout("rdi") right => _,
            inout("rsi") left => _,
            out("eax") order,
            options(nostack, readonly),
        );
    }
    order
}

/// # Safety
///
/// As [`memcmp`].
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, count: usize) -> i32 {
    // SAFETY: the same contract.
    unsafe { memcmp(left, right, count) }
}

/// # Safety
///
/// As C's `strlen`: a zero byte follows at or after `text`, and all before it is readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(text: *const u8) -> usize {
    let rest: usize;
    // SAFETY: the scan ends at the zero byte that the caller vouches for.
    unsafe {
        asm!(
            "repne scasb",
            inout("rcx") usize::MAX => rest,
            inout("rdi") text => _,
            in("al") 0_u8,
            options(nostack, readonly),
        );
    }
    // The scan counts down from the maximum, the zero byte included.
    usize::MAX - rest - 1
}
