//! The system's mathematical functions under the names that compiled code uses, so that it needs no
//! symbol of the C library. Results equal the system's bit for bit, except where a comment says
//! otherwise.

use core::ffi::c_int;

use crate::export::export;

/// The system's functions. They accept any value.
mod system {
    use core::ffi::c_int;

    macro_rules! declare {
        ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {
            unsafe extern "C" {
                $(pub(in crate::helper) safe fn $name($($arg: $ty),*) -> $ret;)*
            }
        };
    }

    #[cfg_attr(target_os = "linux", link(name = "m"))]
    unsafe extern "C" {
        pub(super) fn frexp(x: f64, exponent: *mut c_int) -> f64;
        pub(super) fn frexpf(x: f32, exponent: *mut c_int) -> f32;
        pub(super) safe fn ldexp(x: f64, exponent: c_int) -> f64;
        pub(super) safe fn ldexpf(x: f32, exponent: c_int) -> f32;
    }

    declare! {
        tgamma(x: f64) -> f64; tgammaf(x: f32) -> f32;
        lgamma(x: f64) -> f64; lgammaf(x: f32) -> f32;
        erf(x: f64) -> f64; erff(x: f32) -> f32;
        erfc(x: f64) -> f64; erfcf(x: f32) -> f32;
        nextafter(x: f64, y: f64) -> f64; nextafterf(x: f32, y: f32) -> f32;
        sin(x: f64) -> f64; sinf(x: f32) -> f32;
        cos(x: f64) -> f64; cosf(x: f32) -> f32;
        tan(x: f64) -> f64; tanf(x: f32) -> f32;
        sinh(x: f64) -> f64; sinhf(x: f32) -> f32;
        cosh(x: f64) -> f64; coshf(x: f32) -> f32;
        tanh(x: f64) -> f64; tanhf(x: f32) -> f32;
        asin(x: f64) -> f64; asinf(x: f32) -> f32;
        acos(x: f64) -> f64; acosf(x: f32) -> f32;
        atan(x: f64) -> f64; atanf(x: f32) -> f32;
        asinh(x: f64) -> f64; asinhf(x: f32) -> f32;
        acosh(x: f64) -> f64; acoshf(x: f32) -> f32;
        atanh(x: f64) -> f64; atanhf(x: f32) -> f32;
        exp(x: f64) -> f64; expf(x: f32) -> f32;
        expm1(x: f64) -> f64; expm1f(x: f32) -> f32;
        log(x: f64) -> f64; logf(x: f32) -> f32;
        log10(x: f64) -> f64; log10f(x: f32) -> f32;
        log1p(x: f64) -> f64; log1pf(x: f32) -> f32;
        pow(x: f64, y: f64) -> f64; powf(x: f32, y: f32) -> f32;
        fmod(x: f64, y: f64) -> f64; fmodf(x: f32, y: f32) -> f32;
        atan2(y: f64, x: f64) -> f64; atan2f(y: f32, x: f32) -> f32;
        hypot(x: f64, y: f64) -> f64;
    }
}
pub(super) use system::{atan2, cos, exp, fmod, fmodf, hypot, log, pow, sin};

macro_rules! bridge {
    ($($(#[$attr:meta])* $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty = $function:path;)*) => {
        export! {
            $(
                #[doc = concat!("`", stringify!($function), "` of the system.")]
                fn $name($($arg: $ty),*) -> $ret { $function($($arg),*) }
            )*
        }
    };
}

bridge! {
    numba_gamma(x: f64) -> f64 = system::tgamma;
    numba_gammaf(x: f32) -> f32 = system::tgammaf;
    numba_lgamma(x: f64) -> f64 = system::lgamma;
    numba_lgammaf(x: f32) -> f32 = system::lgammaf;
    numba_erf(x: f64) -> f64 = system::erf;
    numba_erff(x: f32) -> f32 = system::erff;
    numba_erfc(x: f64) -> f64 = system::erfc;
    numba_erfcf(x: f32) -> f32 = system::erfcf;
    numba_nextafter(x: f64, y: f64) -> f64 = system::nextafter;
    numba_nextafterf(x: f32, y: f32) -> f32 = system::nextafterf;
    numba_sin(x: f64) -> f64 = system::sin;
    numba_sinf(x: f32) -> f32 = system::sinf;
    numba_cos(x: f64) -> f64 = system::cos;
    numba_cosf(x: f32) -> f32 = system::cosf;
    numba_tan(x: f64) -> f64 = system::tan;
    numba_tanf(x: f32) -> f32 = system::tanf;
    numba_sinh(x: f64) -> f64 = system::sinh;
    numba_sinhf(x: f32) -> f32 = system::sinhf;
    numba_cosh(x: f64) -> f64 = system::cosh;
    numba_coshf(x: f32) -> f32 = system::coshf;
    numba_tanh(x: f64) -> f64 = system::tanh;
    numba_tanhf(x: f32) -> f32 = system::tanhf;
    numba_asin(x: f64) -> f64 = system::asin;
    numba_asinf(x: f32) -> f32 = system::asinf;
    numba_acos(x: f64) -> f64 = system::acos;
    numba_acosf(x: f32) -> f32 = system::acosf;
    numba_atan(x: f64) -> f64 = system::atan;
    numba_atanf(x: f32) -> f32 = system::atanf;
    numba_asinh(x: f64) -> f64 = system::asinh;
    numba_asinhf(x: f32) -> f32 = system::asinhf;
    numba_acosh(x: f64) -> f64 = system::acosh;
    numba_acoshf(x: f32) -> f32 = system::acoshf;
    numba_atanh(x: f64) -> f64 = system::atanh;
    numba_atanhf(x: f32) -> f32 = system::atanhf;
    numba_exp(x: f64) -> f64 = system::exp;
    numba_expf(x: f32) -> f32 = system::expf;
    numba_expm1(x: f64) -> f64 = system::expm1;
    numba_expm1f(x: f32) -> f32 = system::expm1f;
    numba_log(x: f64) -> f64 = system::log;
    numba_logf(x: f32) -> f32 = system::logf;
    numba_log10(x: f64) -> f64 = system::log10;
    numba_log10f(x: f32) -> f32 = system::log10f;
    numba_log1p(x: f64) -> f64 = system::log1p;
    numba_log1pf(x: f32) -> f32 = system::log1pf;
    numba_pow(x: f64, y: f64) -> f64 = system::pow;
    numba_powf(x: f32, y: f32) -> f32 = system::powf;
    numba_fmod(x: f64, y: f64) -> f64 = system::fmod;
    numba_fmodf(x: f32, y: f32) -> f32 = system::fmodf;
    numba_atan2(y: f64, x: f64) -> f64 = system::atan2;
    numba_atan2f(y: f32, x: f32) -> f32 = system::atan2f;
    // One or a few instructions on every machine, and correctly rounded by each.
    numba_sqrt(x: f64) -> f64 = f64::sqrt;
    numba_sqrtf(x: f32) -> f32 = f32::sqrt;
    numba_fabs(x: f64) -> f64 = f64::abs;
    numba_fabsf(x: f32) -> f32 = f32::abs;
    numba_floor(x: f64) -> f64 = f64::floor;
    numba_floorf(x: f32) -> f32 = f32::floor;
    numba_ceil(x: f64) -> f64 = f64::ceil;
    numba_ceilf(x: f32) -> f32 = f32::ceil;
    numba_round(x: f64) -> f64 = f64::round;
    numba_roundf(x: f32) -> f32 = f32::round;
    numba_trunc(x: f64) -> f64 = f64::trunc;
    numba_truncf(x: f32) -> f32 = f32::trunc;
}

export! {
    /// Mantissa in [0.5, 1) and exponent. Zero, infinity and NaN are returned unchanged, with
    /// exponent 0.
    fn numba_frexp(x: f64, exponent: *mut c_int) -> f64 {
        if x == 0.0 || !x.is_finite() {
            // SAFETY: the C caller's to write.
            unsafe { exponent.write(0) };
            return x;
        }
        // SAFETY: the C caller's to write.
        unsafe { system::frexp(x, exponent) }
    }
    /// [`numba_frexp`] for single precision.
    fn numba_frexpf(x: f32, exponent: *mut c_int) -> f32 {
        if x == 0.0 || !x.is_finite() {
            // SAFETY: the C caller's to write.
            unsafe { exponent.write(0) };
            return x;
        }
        // SAFETY: the C caller's to write.
        unsafe { system::frexpf(x, exponent) }
    }
    /// `x` times two to the `exponent`.
    fn numba_ldexp(x: f64, exponent: c_int) -> f64 {
        // IEEE 754 demands this for zero, infinity and NaN. Some C libraries did not follow it.
        if x == 0.0 || !x.is_finite() || exponent == 0 { x } else { system::ldexp(x, exponent) }
    }
    /// [`numba_ldexp`] for single precision.
    fn numba_ldexpf(x: f32, exponent: c_int) -> f32 {
        if x == 0.0 || !x.is_finite() || exponent == 0 { x } else { system::ldexpf(x, exponent) }
    }
}
