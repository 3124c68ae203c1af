//! Arithmetic on words of [`Literal::bits`].

use super::half;
use crate::builtin::{Math, Meaning};
use crate::operator::{Binary, Unary};
use crate::scalar::{Literal, Scalar};

pub(crate) fn is_less(ty: Scalar, one: u64, two: u64) -> bool {
    if ty.is_signed() { (one as i64) < two as i64 } else { one < two }
}

/// The next value of a counting loop; `None` if it would pass the end.
pub(crate) fn next_of_loop(ty: Scalar, count: u64, end: u64, step: u64) -> Option<u64> {
    let unsigned = |word: u64| Literal::integer(ty.unsigned(), word).bits;
    let step = unsigned(step).max(1);
    (unsigned(end.wrapping_sub(count)) > step).then(|| Literal::integer(ty, count.wrapping_add(step)).bits)
}

fn float(ty: Scalar, word: u64) -> f64 {
    let literal = Literal { ty, bits: word };
    if ty == Scalar::F32 { f64::from(literal.to_f32()) } else { literal.to_f64() }
}

/// A result in the type's own precision. One `f64` operation on `f32` values rounds as the `f32`
/// operation does.
fn rounded(ty: Scalar, value: f64) -> u64 {
    if ty == Scalar::F32 { Literal::f32(value as f32).bits } else { Literal::f64(value).bits }
}

pub(crate) fn unary(operator: Unary, ty: Scalar, word: u64) -> u64 {
    match operator {
        Unary::Neg if ty.is_float() => rounded(ty, -float(ty, word)),
        Unary::Neg => Literal::integer(ty, word.wrapping_neg()).bits,
        Unary::Not if ty == Scalar::Bool => u64::from(word == 0),
        Unary::Not => Literal::integer(ty, !word).bits,
    }
}

/// Applies [`Binary`] to two operands.
pub(crate) fn compute(operator: Binary, ty: Scalar, one: u64, two: u64) -> u64 {
    if ty.is_float() {
        let (one, two) = (float(ty, one), float(ty, two));
        let value = match operator {
            Binary::Add => one + two,
            Binary::Sub => one - two,
            Binary::Mul => one * two,
            Binary::Div => one / two,
            Binary::Rem => libm::fmod(one, two),
            Binary::Min => libm::fmin(one, two),
            Binary::Max => libm::fmax(one, two),
            Binary::Eq => return u64::from(one == two),
            Binary::Ne => return u64::from(one != two),
            Binary::Lt => return u64::from(one < two),
            Binary::Le => return u64::from(one <= two),
            Binary::Gt => return u64::from(one > two),
            Binary::Ge => return u64::from(one >= two),
            _ => 0.0,
        };
        return rounded(ty, value);
    }
    let mask = u64::from(ty.bits() - 1);
    let less = is_less(ty, one, two);
    let value = match operator {
        Binary::Add => one.wrapping_add(two),
        Binary::Sub => one.wrapping_sub(two),
        Binary::Mul => one.wrapping_mul(two),
        Binary::Div | Binary::Rem => {
            let least = ty.is_signed() && two == u64::MAX && one as i64 == ty.min();
            let two = if two == 0 || least { 1 } else { two };
            match (operator, ty.is_signed()) {
                (Binary::Div, true) => (one as i64).wrapping_div(two as i64) as u64,
                (Binary::Div, false) => one / two,
                (_, true) => (one as i64).wrapping_rem(two as i64) as u64,
                (_, false) => one % two,
            }
        }
        Binary::And => one & two,
        Binary::Or => one | two,
        Binary::Xor => one ^ two,
        Binary::Shl => one << (two & mask),
        Binary::Shr if ty.is_signed() => (one as i64 >> (two & mask)) as u64,
        Binary::Shr => one >> (two & mask),
        Binary::Min => {
            if less {
                one
            } else {
                two
            }
        }
        Binary::Max => {
            if less {
                two
            } else {
                one
            }
        }
        Binary::Eq => return u64::from(one == two),
        Binary::Ne => return u64::from(one != two),
        Binary::Lt => return u64::from(less),
        Binary::Ge => return u64::from(!less),
        Binary::Gt => return u64::from(is_less(ty, two, one)),
        Binary::Le => return u64::from(!is_less(ty, two, one)),
        Binary::AndThen => return u64::from(one != 0 && two != 0),
        Binary::OrElse => return u64::from(one != 0 || two != 0),
    };
    Literal::integer(ty, value).bits
}

pub(crate) fn cast(from: Scalar, to: Scalar, word: u64) -> u64 {
    if from == to {
        return word;
    }
    if from.is_half() {
        return Literal::f32(half::widen(from, word)).bits;
    }
    if to.is_half() {
        return half::narrow(to, Literal { ty: from, bits: word }.to_f32());
    }
    match (from.is_float(), to.is_float()) {
        (true, true) => rounded(to, float(from, word)),
        (true, false) => {
            let value = float(from, word);
            let word = match to {
                Scalar::I8 => value as i8 as u64,
                Scalar::I16 => value as i16 as u64,
                Scalar::I32 => value as i32 as u64,
                Scalar::I64 => value as i64 as u64,
                Scalar::U8 => u64::from(value as u8),
                Scalar::U16 => u64::from(value as u16),
                Scalar::U32 => u64::from(value as u32),
                _ => value as u64,
            };
            Literal::integer(to, word).bits
        }
        // Rounds once: a 64-bit integer is not converted to `f32` through `f64`.
        (false, true) => match (from.is_signed(), to) {
            (true, Scalar::F32) => Literal::f32(word as i64 as f32).bits,
            (true, _) => Literal::f64(word as i64 as f64).bits,
            (false, Scalar::F32) => Literal::f32(word as f32).bits,
            (false, _) => Literal::f64(word as f64).bits,
        },
        (false, false) => Literal::integer(to, word).bits,
    }
}

pub(crate) fn math(function: Math, ty: Scalar, words: [u64; 3]) -> u64 {
    let [one, two, three] = words.map(|word| float(ty, word));
    match function.builtin().meaning {
        Meaning::One(call) => rounded(ty, call(one)),
        Meaning::Two(call) => rounded(ty, call(one, two)),
        Meaning::Fused { narrow, .. } if ty == Scalar::F32 => {
            let [one, two, three] = words.map(|word| Literal { ty, bits: word }.to_f32());
            Literal::f32(narrow(one, two, three)).bits
        }
        Meaning::Fused { wide, .. } => rounded(ty, wide(one, two, three)),
        Meaning::Count(call) => call(words[0]),
    }
}

/// The neutral value of a collective operator.
pub(crate) fn neutral(operator: Binary, ty: Scalar) -> Literal {
    let float = |value: f64| Literal { ty, bits: rounded(ty, value) };
    let bits = match operator {
        Binary::Mul if ty.is_float() => return float(1.0),
        Binary::Min if ty.is_float() => return float(f64::INFINITY),
        Binary::Max if ty.is_float() => return float(f64::NEG_INFINITY),
        Binary::Mul => 1,
        Binary::Min => ty.max().map_or(u64::MAX, |max| max as u64),
        Binary::Max => ty.min() as u64,
        Binary::And => u64::MAX,
        _ => 0,
    };
    Literal::integer(ty, bits)
}
