//! Arguments of kernels as words of the command, and their values.

use core::str::FromStr;

use usm_kernel::{Bf16, F16};
use usm_kernel_ir::{Literal, Scalar};

/// An argument, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// `TYPE:SIZE` or `TYPE:SIZE=VALUE`.
    Array { element: Scalar, len: usize, fill: Option<String> },
    /// A number.
    Value(String),
}

/// The types of elements.
const TYPES: [Scalar; 12] = [
    Scalar::I8,
    Scalar::I16,
    Scalar::I32,
    Scalar::I64,
    Scalar::U8,
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
    Scalar::F16,
    Scalar::Bf16,
    Scalar::F32,
    Scalar::F64,
];

impl FromStr for Given {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let Some((ty, rest)) = word.split_once(':') else { return Ok(Self::Value(word.to_owned())) };
        let element = TYPES.into_iter().find(|known| known.name() == ty).ok_or_else(|| {
            let names = TYPES.map(Scalar::name).join(", ");
            format!("{ty:?} is no type of elements; these are: {names}")
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

/// A value as a number; integers above 2^53 are rounded.
pub(super) fn number(value: Literal) -> f64 {
    match value.ty {
        Scalar::F64 => value.to_f64(),
        Scalar::F32 => value.to_f32().into(),
        Scalar::F16 => F16::from_bits(value.bits as u16).to_f32().into(),
        Scalar::Bf16 => Bf16::from_bits(value.bits as u16).to_f32().into(),
        Scalar::U64 => value.bits as f64,
        _ => value.bits as i64 as f64,
    }
}

/// The largest difference of two arrays, and whether they are as close as rounding explains:
/// integers are equal, numbers of floating point within 1e-4 of their size (`f64`: 1e-10, 16 bits:
/// 1e-2).
pub(super) fn difference(element: Scalar, result: &[u8], expected: &[u8]) -> (f64, bool) {
    let tolerance = match element {
        Scalar::F64 => 1e-10,
        Scalar::F32 => 1e-4,
        Scalar::F16 | Scalar::Bf16 => 1e-2,
        _ => 0.0,
    };
    let size = element.bytes() as usize;
    let (mut largest, mut is_close) = (0.0_f64, result.len() == expected.len());
    for (one, other) in result.chunks_exact(size).zip(expected.chunks_exact(size)) {
        if one == other {
            continue;
        }
        let [one, other] = [one, other].map(|bytes| number(Literal::from_ne_bytes(element, bytes)));
        if one == other && tolerance != 0.0 || one.is_nan() && other.is_nan() {
            continue;
        }
        let error = (one - other).abs();
        let is_finite = error.is_finite();
        is_close &= is_finite && tolerance != 0.0 && error <= tolerance * one.abs().max(other.abs()).max(1.0);
        // NaN counts as the largest error; JSON has no infinity.
        largest = largest.max(if is_finite { error } else { f64::MAX });
    }
    (largest, is_close)
}
