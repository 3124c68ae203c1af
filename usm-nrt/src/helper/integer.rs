//! 64-bit division for targets without it, and the conversion of floats to unsigned integers.
//!
//! Compiled code checks the divisor first. What would trap in C is defined here: a division by zero
//! gives 0, and the lowest number by -1 wraps.

use crate::export::export;

export! {
    /// Quotient, rounded towards zero.
    fn numba_sdiv(a: i64, b: i64) -> i64 {
        if b == 0 { 0 } else { a.wrapping_div(b) }
    }
    /// Remainder with the sign of `a`.
    fn numba_srem(a: i64, b: i64) -> i64 {
        if b == 0 { 0 } else { a.wrapping_rem(b) }
    }
    /// Quotient, rounded down.
    fn numba_udiv(a: u64, b: u64) -> u64 {
        a.checked_div(b).unwrap_or(0)
    }
    /// Remainder.
    fn numba_urem(a: u64, b: u64) -> u64 {
        a.checked_rem(b).unwrap_or(0)
    }
    /// Rounded towards zero, as a signed number whose bits are returned. What no `i64` holds (NaN
    /// included) gives 2^63 on every machine, as on x86-64.
    fn numba_fptoui(x: f64) -> u64 {
        to_bits(x)
    }
    /// [`numba_fptoui`] of a single.
    fn numba_fptouif(x: f32) -> u64 {
        to_bits(f64::from(x))
    }
}

fn to_bits(x: f64) -> u64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let number = if (-LIMIT..LIMIT).contains(&x) { x as i64 } else { i64::MIN };
    number as u64
}
