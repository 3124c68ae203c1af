//! Arithmetic on one lane. Values are bits, zero-extended to 64.

use super::Fault;
use super::types::Scalar;

/// An operation of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    UDiv,
    SDiv,
    URem,
    SRem,
    SMod,
    UMulHi,
    SMulHi,
    UMin,
    UMax,
    SMin,
    SMax,
    ShiftLeft,
    ShiftRight,
    ShiftRightSigned,
    And,
    Or,
    Xor,
    FAdd,
    FSub,
    FMul,
    FDiv,
    FRem,
    FMin,
    FMax,
    FPow,
    FHypot,
    Equal,
    NotEqual,
    ULess,
    ULessEqual,
    SLess,
    SLessEqual,
    /// Ordered comparisons: false if an operand is NaN.
    FEqual,
    FNotEqual,
    /// Also true if an operand is NaN: C's `!=`.
    FUnorderedNotEqual,
    FLess,
    FLessEqual,
    /// True if an operand is NaN.
    FUnordered,
}

/// An operation of one value of type `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    /// Zero-extends or truncates.
    Resize,
    /// Sign-extends or truncates.
    ResizeSigned,
    FloatToUnsigned,
    FloatToSigned,
    UnsignedToFloat,
    SignedToFloat,
    FloatToFloat,
    Negate,
    FNegate,
    FAbs,
    Sqrt,
    Floor,
    Exp,
    Log,
    Not,
    CountOnes,
}

fn mask(scalar: Scalar, value: u64) -> u64 {
    match scalar.bits() {
        64 => value,
        bits => value & ((1 << bits) - 1),
    }
}

fn signed(scalar: Scalar, value: u64) -> i64 {
    let unused = 64 - scalar.bits();
    ((value << unused) as i64) >> unused
}

/// A floating-point value; `f64` holds every `f32`.
fn float(scalar: Scalar, value: u64) -> f64 {
    match scalar {
        Scalar::F32 => f64::from(f32::from_bits(value as u32)),
        _ => f64::from_bits(value),
    }
}

/// Rounds to the type. A sum, product or quotient of two `f32` may be computed in `f64` first: the
/// second rounding changes nothing.
fn bits(scalar: Scalar, value: f64) -> u64 {
    match scalar {
        Scalar::F32 => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    }
}

/// Applies an operation to two values of one type.
pub(super) fn binary(operation: Binary, of: Scalar, a: u64, b: u64) -> Result<u64, Fault> {
    use Binary as Op;
    let (sa, sb) = (signed(of, a), signed(of, b));
    let floats = || (float(of, a), float(of, b));
    let by_zero = || Err("a division by zero".to_owned());
    let shift = || b < u64::from(of.bits());
    let too_far = || Err(format!("a shift of {} bits by {b}", of.bits()));
    let value = match operation {
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Mul => a.wrapping_mul(b),
        Op::UDiv | Op::URem | Op::SDiv | Op::SRem | Op::SMod if b == 0 => return by_zero(),
        Op::UDiv => a / b,
        Op::URem => a % b,
        Op::SDiv => sa.wrapping_div(sb) as u64,
        Op::SRem => sa.wrapping_rem(sb) as u64,
        // The result has the divisor's sign.
        Op::SMod => {
            let rest = sa.wrapping_rem(sb);
            (if rest != 0 && (rest < 0) != (sb < 0) { rest + sb } else { rest }) as u64
        }
        Op::UMulHi => ((u128::from(a) * u128::from(b)) >> of.bits()) as u64,
        Op::SMulHi => ((i128::from(sa) * i128::from(sb)) >> of.bits()) as u64,
        Op::UMin => a.min(b),
        Op::UMax => a.max(b),
        Op::SMin => sa.min(sb) as u64,
        Op::SMax => sa.max(sb) as u64,
        Op::ShiftLeft | Op::ShiftRight | Op::ShiftRightSigned if !shift() => return too_far(),
        Op::ShiftLeft => a << b,
        Op::ShiftRight => a >> b,
        Op::ShiftRightSigned => (sa >> b) as u64,
        Op::And => a & b,
        Op::Or => a | b,
        Op::Xor => a ^ b,
        Op::FAdd => return Ok(bits(of, floats().0 + floats().1)),
        Op::FSub => return Ok(bits(of, floats().0 - floats().1)),
        Op::FMul => return Ok(bits(of, floats().0 * floats().1)),
        Op::FDiv => return Ok(bits(of, floats().0 / floats().1)),
        Op::FRem => return Ok(bits(of, floats().0 % floats().1)),
        Op::FMin => return Ok(bits(of, floats().0.min(floats().1))),
        Op::FMax => return Ok(bits(of, floats().0.max(floats().1))),
        Op::FPow => return Ok(bits(of, floats().0.powf(floats().1))),
        Op::FHypot => return Ok(bits(of, floats().0.hypot(floats().1))),
        Op::Equal => return Ok(u64::from(a == b)),
        Op::NotEqual => return Ok(u64::from(a != b)),
        Op::ULess => return Ok(u64::from(a < b)),
        Op::ULessEqual => return Ok(u64::from(a <= b)),
        Op::SLess => return Ok(u64::from(sa < sb)),
        Op::SLessEqual => return Ok(u64::from(sa <= sb)),
        Op::FEqual => return Ok(u64::from(floats().0 == floats().1)),
        Op::FNotEqual => return Ok(u64::from(floats().0 < floats().1 || floats().0 > floats().1)),
        Op::FUnorderedNotEqual => return Ok(u64::from(floats().0 != floats().1)),
        Op::FLess => return Ok(u64::from(floats().0 < floats().1)),
        Op::FLessEqual => return Ok(u64::from(floats().0 <= floats().1)),
        Op::FUnordered => return Ok(u64::from(floats().0.is_nan() || floats().1.is_nan())),
    };
    Ok(mask(of, value))
}

/// Converts a value of type `from` to type `to`.
pub(super) fn unary(operation: Unary, from: Scalar, to: Scalar, a: u64) -> u64 {
    match operation {
        Unary::Resize => mask(to, a),
        Unary::ResizeSigned => mask(to, signed(from, a) as u64),
        // A value out of range has no defined result; `as` saturates.
        Unary::FloatToUnsigned => mask(to, float(from, a) as u64),
        Unary::FloatToSigned => mask(to, float(from, a) as i64 as u64),
        Unary::UnsignedToFloat if to == Scalar::F32 => u64::from((a as f32).to_bits()),
        Unary::UnsignedToFloat => (a as f64).to_bits(),
        Unary::SignedToFloat if to == Scalar::F32 => u64::from((signed(from, a) as f32).to_bits()),
        Unary::SignedToFloat => (signed(from, a) as f64).to_bits(),
        Unary::FloatToFloat => bits(to, float(from, a)),
        Unary::Negate => mask(to, a.wrapping_neg()),
        Unary::FNegate => bits(to, -float(from, a)),
        Unary::FAbs => bits(to, float(from, a).abs()),
        Unary::Sqrt => bits(to, float(from, a).sqrt()),
        Unary::Floor => bits(to, float(from, a).floor()),
        Unary::Exp => bits(to, float(from, a).exp()),
        Unary::Log => bits(to, float(from, a).ln()),
        Unary::Not => mask(to, !a),
        Unary::CountOnes => u64::from(a.count_ones()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_numbers_wrap_in_their_own_width() {
        for (a, b) in (0..=255_u8).flat_map(|a| (0..=255_u8).map(move |b| (a, b))) {
            let run = |op| binary(op, Scalar::I8, u64::from(a), u64::from(b)).map(|value| value as u8);
            assert_eq!(run(Binary::Add), Ok(a.wrapping_add(b)));
            assert_eq!(run(Binary::Sub), Ok(a.wrapping_sub(b)));
            assert_eq!(run(Binary::Mul), Ok(a.wrapping_mul(b)));
            assert_eq!(run(Binary::SMin), Ok((a as i8).min(b as i8) as u8));
            assert_eq!(run(Binary::UMulHi), Ok(((u16::from(a) * u16::from(b)) >> 8) as u8));
            assert_eq!(run(Binary::SMulHi), Ok(((i16::from(a as i8) * i16::from(b as i8)) >> 8) as u8));
            assert_eq!(run(Binary::SLess), Ok(u8::from((a as i8) < (b as i8))));
            assert_eq!(run(Binary::SDiv).ok(), (b != 0).then(|| (a as i8).wrapping_div(b as i8) as u8));
            assert_eq!(run(Binary::UDiv).ok(), a.checked_div(b));
            assert_eq!(run(Binary::ShiftLeft).ok(), a.checked_shl(u32::from(b)));
        }
    }

    #[test]
    fn conversions_keep_signs_and_round_once() {
        assert_eq!(unary(Unary::ResizeSigned, Scalar::I8, Scalar::I32, 0xff), 0xffff_ffff);
        assert_eq!(unary(Unary::Resize, Scalar::I8, Scalar::I32, 0xff), 0xff);
        let third = unary(Unary::FloatToFloat, Scalar::F64, Scalar::F32, (1.0_f64 / 3.0).to_bits());
        assert_eq!(third, u64::from((1.0_f32 / 3.0).to_bits()));
        assert_eq!(
            unary(Unary::UnsignedToFloat, Scalar::I64, Scalar::F32, u64::MAX),
            u64::from((u64::MAX as f32).to_bits())
        );
        assert_eq!(unary(Unary::SignedToFloat, Scalar::I32, Scalar::F64, 0xffff_ffff), (-1.0_f64).to_bits());
        let sum =
            binary(Binary::FAdd, Scalar::F32, u64::from(0.1_f32.to_bits()), u64::from(0.2_f32.to_bits()));
        assert_eq!(sum, Ok(u64::from((0.1_f32 + 0.2_f32).to_bits())));
        let nan = f64::NAN.to_bits();
        assert_eq!(binary(Binary::FNotEqual, Scalar::F64, nan, nan), Ok(0));
        assert_eq!(binary(Binary::FUnordered, Scalar::F64, nan, 0), Ok(1));
    }
}
