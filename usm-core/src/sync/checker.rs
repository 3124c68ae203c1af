//! What a memory checker knows of blocks that a pool gives out of larger memory: a block without an
//! owner is not addressable. Used only in `cargo xtask memcheck` and `cargo xtask sanitize`.

/// Nobody may access these bytes until they are [shown](show).
pub fn hide(base: *const u8, len: usize) {
    #[cfg(usm_valgrind)]
    super::memcheck::without_access(base, len);
    #[cfg(usm_asan)]
    asan::hide(base, len);
}

/// Gives these bytes to an owner. Unless operations of an earlier owner may still read them, they
/// count as uninitialised.
pub fn show(base: *const u8, len: usize, is_in_use: bool) {
    #[cfg(usm_valgrind)]
    match is_in_use {
        true => super::memcheck::with_values(base, len),
        false => super::memcheck::without_values(base, len),
    }
    #[cfg(usm_asan)]
    asan::show(base, len);
    let _ = is_in_use;
}

#[cfg(usm_asan)]
mod asan {
    use core::ffi::c_void;

    // Of `sanitizer/asan_interface.h`, in the runtime that the compiler links.
    unsafe extern "C" {
        fn __asan_poison_memory_region(address: *const c_void, len: usize);
        fn __asan_unpoison_memory_region(address: *const c_void, len: usize);
    }

    pub(super) fn hide(base: *const u8, len: usize) {
        // SAFETY: the call touches only the sanitizer's own record of these addresses.
        unsafe { __asan_poison_memory_region(base.cast(), len) };
    }

    pub(super) fn show(base: *const u8, len: usize) {
        // SAFETY: as above.
        unsafe { __asan_unpoison_memory_region(base.cast(), len) };
    }
}
