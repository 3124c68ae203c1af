//! 64-bit division for targets without it, and the conversion of floats to unsigned integers.
//!
//! Compiled code checks the divisor first. Cases that trap in C are defined here: a division by
//! zero gives 0, and the lowest number by -1 wraps.

use crate::export::export;

export! {
    /// The quotient, rounded towards zero.
    fn numba_sdiv(a: i64, b: i64) -> i64 {
        if b == 0 { 0 } else { a.wrapping_div(b) }
    }
    /// The remainder, with the sign of `a`.
    fn numba_srem(a: i64, b: i64) -> i64 {
        if b == 0 { 0 } else { a.wrapping_rem(b) }
    }
    /// The quotient, rounded down.
    fn numba_udiv(a: u64, b: u64) -> u64 {
        a.checked_div(b).unwrap_or(0)
    }
    /// The remainder.
    fn numba_urem(a: u64, b: u64) -> u64 {
        a.checked_rem(b).unwrap_or(0)
    }
    /// Rounds towards zero to a signed number, and returns its bits. A value outside of `i64` (NaN
    /// included) gives 2^63 on every machine, as on x86-64.
    fn numba_fptoui(x: f64) -> u64 {
        to_bits(x)
    }
    /// [`numba_fptoui`] for single precision.
    fn numba_fptouif(x: f32) -> u64 {
        to_bits(f64::from(x))
    }
}

fn to_bits(x: f64) -> u64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let number = if (-LIMIT..LIMIT).contains(&x) { x as i64 } else { i64::MIN };
    number as u64
}
