//! Complex power, as Python defines it.

use super::math::{atan2, cos, exp, hypot, log, pow, sin};
use crate::export::export;

/// A complex number of C (`double complex` or `Py_complex`).
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Complex<T> {
    /// Real part.
    pub real: T,
    /// Imaginary part.
    pub imag: T,
}

export! {
    /// `*out = *a ** *b`. Writes NaN + NaN j where Python raises `ZeroDivisionError`: zero to a
    /// negative or complex power.
    fn numba_cpow(a: *const Complex<f64>, b: *const Complex<f64>, out: *mut Complex<f64>) {
        // SAFETY: the C caller's to read.
        let a = unsafe { a.read() };
        // SAFETY: the C caller's to read.
        let b = unsafe { b.read() };
        // SAFETY: the C caller's to write.
        unsafe { out.write(power(a, b)) }
    }
    /// [`numba_cpow`] for single precision, computed in double precision.
    fn numba_cpowf(a: *const Complex<f32>, b: *const Complex<f32>, out: *mut Complex<f32>) {
        let wide = |z: Complex<f32>| Complex { real: f64::from(z.real), imag: f64::from(z.imag) };
        // SAFETY: the C caller's to read.
        let a = unsafe { a.read() };
        // SAFETY: the C caller's to read.
        let b = unsafe { b.read() };
        let power = power(wide(a), wide(b));
        // SAFETY: the C caller's to write.
        unsafe { out.write(Complex { real: power.real as f32, imag: power.imag as f32 }) }
    }
}

/// The power in polar form: |a|^Re b · e^(−arg a · Im b), at the angle arg a · Re b + Im b · ln
/// |a|.
fn power(a: Complex<f64>, b: Complex<f64>) -> Complex<f64> {
    if b.real == 0.0 && b.imag == 0.0 {
        return Complex { real: 1.0, imag: 0.0 };
    }
    if a.real == 0.0 && a.imag == 0.0 {
        let is_undefined = b.imag != 0.0 || b.real < 0.0;
        let part = if is_undefined { f64::NAN } else { 0.0 };
        return Complex { real: part, imag: part };
    }
    let (length, angle) = (hypot(a.real, a.imag), atan2(a.imag, a.real));
    let mut power = pow(length, b.real);
    let mut turn = angle * b.real;
    if b.imag != 0.0 {
        power /= exp(angle * b.imag);
        turn += b.imag * log(length);
    }
    Complex { real: power * cos(turn), imag: power * sin(turn) }
}
