//! Client requests for valgrind's memcheck: memory that a backend has just given out is
//! uninitialised, even if a runtime or a test driver wrote it. Used only in `cargo xtask memcheck`.

/// Marks these bytes as uninitialised: memcheck then reports a branch that depends on them, but not
/// a copy. Does nothing outside of valgrind.
pub fn without_values(base: *const u8, len: usize) {
    /// `VG_USERREQ__MAKE_MEM_UNDEFINED` of `valgrind/memcheck.h`: `'M'`, `'C'`, 1.
    const MAKE_MEM_UNDEFINED: usize = 0x4d43_0001;
    super::valgrind::request([MAKE_MEM_UNDEFINED, base.addr(), len, 0, 0, 0]);
}

/// Marks these bytes as not addressable. Does nothing outside of valgrind.
pub(super) fn without_access(base: *const u8, len: usize) {
    /// `VG_USERREQ__MAKE_MEM_NOACCESS`: `'M'`, `'C'`, 0.
    const MAKE_MEM_NOACCESS: usize = 0x4d43_0000;
    super::valgrind::request([MAKE_MEM_NOACCESS, base.addr(), len, 0, 0, 0]);
}

/// Marks these bytes as initialised. Does nothing outside of valgrind.
pub fn with_values(base: *const u8, len: usize) {
    /// `VG_USERREQ__MAKE_MEM_DEFINED`: `'M'`, `'C'`, 2.
    const MAKE_MEM_DEFINED: usize = 0x4d43_0002;
    super::valgrind::request([MAKE_MEM_DEFINED, base.addr(), len, 0, 0, 0]);
}
