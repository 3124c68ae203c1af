//! Floating point numbers of 16 bits, by arithmetic: what the bit operations of the writers are
//! compared with.

use crate::scalar::Scalar;

/// Bits of the fraction, and the exponent of 1.
const fn form(ty: Scalar) -> (i32, i32) {
    if matches!(ty, Scalar::F16) { (10, 15) } else { (7, 127) }
}

/// The number with these bits. NaN has no payload.
pub(super) fn widen(ty: Scalar, word: u64) -> f32 {
    let (digits, bias) = form(ty);
    let (fraction, exponent) =
        ((word & ((1 << digits) - 1)) as f64, (word >> digits) as i32 & (2 * bias + 1));
    let size = match (exponent, fraction) {
        (0, _) => libm::ldexp(fraction, 1 - bias - digits),
        (all, 0.0) if all == 2 * bias + 1 => f64::INFINITY,
        (all, _) if all == 2 * bias + 1 => f64::NAN,
        _ => libm::ldexp(fraction + libm::ldexp(1.0, digits), exponent - bias - digits),
    };
    libm::copysign(size, if word >> 15 == 0 { 1.0 } else { -1.0 }) as f32
}

/// The bits of the nearest number; of two, those of the even one. NaN has the sign of `value`.
pub(super) fn narrow(ty: Scalar, value: f32) -> u64 {
    let (digits, bias) = form(ty);
    let (size, sign) = (libm::fabs(f64::from(value)), u64::from(value.is_sign_negative()) << 15);
    let infinity = (2 * bias as u64 + 1) << digits;
    if size.is_nan() {
        return sign | infinity | 1 << (digits - 1);
    }
    if size == 0.0 || size.is_infinite() {
        return if size == 0.0 { sign } else { sign | infinity };
    }
    // The steps between neighbours are those of the exponent, and of the least one below it.
    let exponent = libm::frexp(size).1.max(2 - bias);
    let steps = libm::rint(libm::ldexp(size, digits + 1 - exponent)) as u64;
    // A fraction that is full carries into the exponent.
    sign | (((exponent + bias - 2) as u64) << digits).wrapping_add(steps).min(infinity)
}
