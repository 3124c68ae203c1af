//! Arguments of kernels as words of the command, and their values.

use core::fmt;
use core::str::FromStr;

use serde::Serialize;
use usm_kernel::{Bf16, F16};
use usm_kernel_ir::{Literal, Scalar};

/// An argument, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ArgumentWord {
    /// `TYPE:SIZE` or `TYPE:SIZE=VALUE`.
    Array { element: Scalar, len: usize, fill: Option<String> },
    /// A number.
    Value(String),
}

impl FromStr for ArgumentWord {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let Some((ty, rest)) = word.split_once(':') else { return Ok(Self::Value(word.to_owned())) };
        // Not every byte is a bool.
        let element = Scalar::from_name(ty).filter(|element| *element != Scalar::Bool).ok_or_else(|| {
            let types = Scalar::ALL.iter().filter(|element| **element != Scalar::Bool);
            let names: Vec<&str> = types.map(|element| element.name()).collect();
            format!("{ty:?} is no type of elements; these are: {}", names.join(", "))
        })?;
        let (len, fill) = match rest.split_once('=') {
            Some((len, fill)) => (len, Some(fill.to_owned())),
            None => (rest, None),
        };
        let len = len.parse().map_err(|_| format!("{len:?} is no number of elements"))?;
        Ok(Self::Array { element, len, fill })
    }
}

/// The value of a type that a word is.
pub(super) fn literal(ty: Scalar, word: &str) -> Option<Literal> {
    let float = || word.parse::<f64>().ok();
    Some(match ty {
        Scalar::Bool => Literal::bool(word.parse().ok()?),
        Scalar::F64 => Literal::f64(float()?),
        Scalar::F32 => Literal::f32(word.parse().ok()?),
        Scalar::F16 => Literal::integer(ty, F16::from_f32(word.parse().ok()?).to_bits().into()),
        Scalar::Bf16 => Literal::integer(ty, Bf16::from_f32(word.parse().ok()?).to_bits().into()),
        Scalar::U64 => Literal::integer(ty, word.parse().ok()?),
        _ => {
            let value: i64 = word.parse().ok()?;
            let is_inside = value >= ty.min() && ty.max().is_none_or(|max| value <= max);
            is_inside.then(|| Literal::integer(ty, value as u64))?
        }
    })
}

/// A small whole number in a type.
pub(super) fn whole(ty: Scalar, value: i64) -> Literal {
    match ty {
        Scalar::F64 => Literal::f64(value as f64),
        Scalar::F32 => Literal::f32(value as f32),
        Scalar::F16 => Literal::integer(ty, F16::from_f32(value as f32).to_bits().into()),
        Scalar::Bf16 => Literal::integer(ty, Bf16::from_f32(value as f32).to_bits().into()),
        _ => Literal::integer(ty, value as u64),
    }
}

/// A value of an array, as reports show it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Number {
    Float(f64),
    Signed(i64),
    Unsigned(u64),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Float(value) => value.fmt(f),
            Self::Signed(value) => value.fmt(f),
            Self::Unsigned(value) => value.fmt(f),
        }
    }
}

impl Number {
    pub(super) fn of(value: Literal) -> Self {
        match value.ty {
            Scalar::F64 => Self::Float(value.to_f64()),
            Scalar::F32 => Self::Float(value.to_f32().into()),
            Scalar::F16 => Self::Float(F16::from_bits(value.bits as u16).to_f32().into()),
            Scalar::Bf16 => Self::Float(Bf16::from_bits(value.bits as u16).to_f32().into()),
            Scalar::U64 => Self::Unsigned(value.bits),
            _ => Self::Signed(value.bits as i64),
        }
    }

    /// The absolute difference to a value of the same type.
    fn distance(self, other: Self) -> f64 {
        match (self, other) {
            (Self::Signed(one), Self::Signed(other)) => one.abs_diff(other) as f64,
            (Self::Unsigned(one), Self::Unsigned(other)) => one.abs_diff(other) as f64,
            (Self::Float(one), Self::Float(other)) if one == other || one.is_nan() && other.is_nan() => 0.0,
            (Self::Float(one), Self::Float(other)) => (one - other).abs(),
            _ => f64::INFINITY,
        }
    }

    /// The absolute value of a finite number of floating point, else 0.
    fn magnitude(self) -> f64 {
        match self {
            Self::Float(value) if value.is_finite() => value.abs(),
            _ => 0.0,
        }
    }
}

/// The largest difference of two arrays, and whether they are as close as rounding explains:
/// integers are equal, numbers of floating point within 1e-4 of their own size (`f64`: 1e-10, 16
/// bits: 1e-2), or of a thousandth of the largest expected number.
pub(super) fn difference(element: Scalar, result: &[u8], expected: &[u8]) -> (f64, bool) {
    let tolerance = match element {
        Scalar::F64 => 1e-10,
        Scalar::F32 => 1e-4,
        Scalar::F16 | Scalar::Bf16 => 1e-2,
        _ => 0.0,
    };
    let size = element.bytes() as usize;
    let numbers = |bytes: &'_ [u8]| Number::of(Literal::from_ne_bytes(element, bytes));
    let scale = expected.chunks_exact(size).map(|bytes| numbers(bytes).magnitude()).fold(0.0, f64::max);
    let (mut largest, mut is_close) = (0.0_f64, result.len() == expected.len());
    for (one, other) in result.chunks_exact(size).zip(expected.chunks_exact(size)) {
        if one == other {
            continue;
        }
        let [one, other] = [one, other].map(numbers);
        let error = one.distance(other);
        is_close &= error <= tolerance * one.magnitude().max(other.magnitude()).max(scale * 1e-3);
        // NaN counts as the largest error; JSON has no infinity.
        largest = largest.max(if error.is_finite() { error } else { f64::MAX });
    }
    (largest, is_close)
}

#[cfg(test)]
mod tests {
    use usm_kernel_ir::Scalar;

    use super::difference;

    #[test]
    fn rounding_is_close_and_everything_else_is_not() {
        let close = |one: &[f32], other: &[f32]| {
            let bytes = [one, other].map(bytemuck::cast_slice::<f32, u8>);
            difference(Scalar::F32, bytes[0], bytes[1]).1
        };
        let (nan, infinity) = (f32::NAN, f32::INFINITY);
        assert!(close(&[1.0, nan, infinity, 0.0], &[1.00005, nan, infinity, -0.0]));
        assert!(close(&[1e3, 1e-5], &[1e3, 2e-5]), "sums that cancel");
        for (one, other) in [
            (&[1.0_f32][..], &[1.0003_f32][..]),
            (&[1e-5, 2e-5], &[0.0, 0.0]),
            (&[0.0, 0.0], &[1e-5, 2e-5]),
            (&[nan], &[1.0]),
            (&[1.0], &[nan]),
            (&[infinity], &[-infinity]),
            (&[infinity], &[1e30]),
            (&[1.0], &[1.0, 1.0]),
        ] {
            assert!(!close(one, other), "{one:?} {other:?}");
        }
    }

    #[test]
    fn integers_are_equal_or_wrong_by_their_difference() {
        let (one, other) = ((1_u64 << 53) + 1, 1_u64 << 53);
        let found = difference(Scalar::U64, &one.to_ne_bytes(), &other.to_ne_bytes());
        assert_eq!(found, (1.0, false));
        let found = difference(Scalar::I8, &[0x80], &[0x7F]);
        assert_eq!(found, (255.0, false));
        assert_eq!(difference(Scalar::I32, &[1; 8], &[1; 8]), (0.0, true));
    }
}
