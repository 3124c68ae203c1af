//! Client requests for valgrind's memcheck: memory that a backend has just given out is
//! uninitialised, even if a runtime or a test driver wrote it. Used only in `cargo xtask memcheck`.

/// From here on these bytes have no value: a decision that depends on them is reported, a copy of
/// them is not. Outside of valgrind nothing happens.
pub fn without_values(base: *const u8, len: usize) {
    /// `VG_USERREQ__MAKE_MEM_UNDEFINED` of `valgrind/memcheck.h`: `'M'`, `'C'`, 1.
    const MAKE_MEM_UNDEFINED: usize = 0x4d43_0001;
    super::valgrind::request([MAKE_MEM_UNDEFINED, base.addr(), len, 0, 0, 0]);
}
