//! Operations on values in registers.

use core::cmp::Ordering;

use super::program::{Comparison, Logic, Operation, Rounding};
use super::types::Type;

/// The result; `None` for a division by zero.
#[inline]
pub(super) fn calculate(operation: Operation, of: Type, [a, b, c]: [u64; 3]) -> Option<u64> {
    match of {
        Type::Float(32) => {
            let [a, b, c] = [a, b, c].map(|bits| f32::from_bits(bits as u32));
            Some(u64::from(single(operation, a, b, c)?.to_bits()))
        }
        Type::Float(_) => {
            let [a, b, c] = [a, b, c].map(f64::from_bits);
            Some(double(operation, a, b, c)?.to_bits())
        }
        _ => integer(operation, of, a, b, c),
    }
}

macro_rules! floats {
    ($name:ident, $of:ty) => {
        fn $name(operation: Operation, a: $of, b: $of, c: $of) -> Option<$of> {
            Some(match operation {
                Operation::Move => a,
                Operation::Negate => -a,
                Operation::Absolute => a.abs(),
                Operation::Add => a + b,
                Operation::Subtract => a - b,
                Operation::Multiply => a * b,
                Operation::MultiplyAdd => a.mul_add(b, c),
                Operation::MultiplyAddDown => {
                    // If rounding moved the sum up, step back by one.
                    let near = a.mul_add(b, c);
                    let is_above = a.mul_add(b, c - near) < 0.0;
                    if !is_above {
                        near
                    } else if near == 0.0 {
                        -<$of>::from_bits(1)
                    } else if near > 0.0 {
                        <$of>::from_bits(near.to_bits() - 1)
                    } else {
                        <$of>::from_bits(near.to_bits() + 1)
                    }
                }
                Operation::MultiplyAddToZero => {
                    // If rounding moved the sum away from zero, step back by one.
                    let near = a.mul_add(b, c);
                    let rest = a.mul_add(b, c - near);
                    let is_beyond = (near > 0.0 && rest < 0.0) || (near < 0.0 && rest > 0.0);
                    if is_beyond { <$of>::from_bits(near.to_bits() - 1) } else { near }
                }
                Operation::AddToZero => {
                    // The same; the sum's error is exact.
                    let near = a + b;
                    let of_b = near - a;
                    let rest = (a - (near - of_b)) + (b - of_b);
                    let is_beyond = (near > 0.0 && rest < 0.0) || (near < 0.0 && rest > 0.0);
                    let overflows = near.is_infinite() && a.is_finite() && b.is_finite();
                    if is_beyond || overflows { <$of>::from_bits(near.to_bits() - 1) } else { near }
                }
                Operation::Power => a.exp2(),
                Operation::Logarithm => a.log2(),
                Operation::Divide => a / b,
                Operation::Minimum => a.min(b),
                Operation::Maximum => a.max(b),
                Operation::Root => a.sqrt(),
                Operation::Reciprocal => 1.0 / a,
                _ => return None,
            })
        }
    };
}
floats!(single, f32);
floats!(double, f64);

/// A register has more bits than the type. The upper bits are arbitrary, so an operation that needs
/// them extends the value first.
#[inline]
fn integer(operation: Operation, of: Type, a: u64, b: u64, c: u64) -> Option<u64> {
    let bits = of.bits();
    let pair = |function: fn(i64, i64) -> i64, otherwise: fn(u64, u64) -> u64| {
        if of.is_signed() {
            function(of.signed(a), of.signed(b)) as u64
        } else {
            otherwise(of.unsigned(a), of.unsigned(b))
        }
    };
    let high = || {
        let product = if of.is_signed() {
            i128::from(of.signed(a)) * i128::from(of.signed(b))
        } else {
            (u128::from(of.unsigned(a)) * u128::from(of.unsigned(b))) as i128
        };
        (product >> bits) as u64
    };
    let wide = || pair(i64::wrapping_mul, u64::wrapping_mul);
    Some(match operation {
        Operation::Move => a,
        Operation::Not => !a,
        Operation::Negate => a.wrapping_neg(),
        Operation::Absolute => of.signed(a).unsigned_abs(),
        Operation::Add => a.wrapping_add(b),
        Operation::Subtract => a.wrapping_sub(b),
        Operation::Multiply => a.wrapping_mul(b),
        Operation::MultiplyAdd => a.wrapping_mul(b).wrapping_add(c),
        Operation::MultiplyHigh => high(),
        Operation::MultiplyHighAdd => high().wrapping_add(c),
        Operation::MultiplyWide => wide(),
        Operation::MultiplyWideAdd => wide().wrapping_add(c),
        Operation::Divide | Operation::Remainder if of.unsigned(b) == 0 => return None,
        Operation::Divide => pair(i64::wrapping_div, |a, b| a / b),
        Operation::Remainder => pair(i64::wrapping_rem, |a, b| a % b),
        Operation::Minimum => pair(i64::min, u64::min),
        Operation::Maximum => pair(i64::max, u64::max),
        Operation::And => a & b,
        Operation::Or => a | b,
        Operation::Xor => a ^ b,
        // The distance has 32 bits. One at or above the width shifts every bit out.
        Operation::ShiftLeft => a.checked_shl(b as u32).filter(|_| (b as u32) < bits).unwrap_or(0),
        Operation::ShiftRight => {
            let distance = (b as u32).min(bits - 1);
            match of.is_signed() {
                true => (of.signed(a) >> distance) as u64,
                false if (b as u32) < bits => of.unsigned(a) >> distance,
                false => 0,
            }
        }
        Operation::CountOnes => u64::from(of.unsigned(a).count_ones()),
        Operation::CountZeros => u64::from(of.unsigned(a).leading_zeros() - (64 - bits)),
        Operation::HighestBit | Operation::HighestBitShift => {
            let a = if of.is_signed() && of.signed(a) < 0 { of.unsigned(!a) } else { of.unsigned(a) };
            match a.checked_ilog2() {
                None => u64::from(u32::MAX),
                Some(place) if operation == Operation::HighestBit => u64::from(place),
                Some(place) => u64::from(bits - 1 - place),
            }
        }
        // Of two words, the second one above the first.
        Operation::FunnelLeft => (((b << 32 | a & 0xFFFF_FFFF) << (c & 31)) >> 32) & 0xFFFF_FFFF,
        Operation::FunnelRight => ((b << 32 | a & 0xFFFF_FFFF) >> (c & 31)) & 0xFFFF_FFFF,
        Operation::Reverse => a.reverse_bits() >> (64 - bits),
        Operation::Field => {
            // Position and length have 8 bits. Bits above the value repeat its sign.
            let (place, len) = ((b as u8).min(63) as u32, u32::from(c as u8).min(bits));
            let whole = pair(|a, _| a, |a, _| a);
            let from = if of.is_signed() { (whole as i64 >> place) as u64 } else { whole >> place };
            let from = if u32::from(b as u8) < bits { from } else { 0 };
            match len {
                0 => 0,
                len if of.is_signed() => ((from << (64 - len)) as i64 >> (64 - len)) as u64,
                len => from & (u64::MAX >> (64 - len)),
            }
        }
        Operation::Root
        | Operation::Reciprocal
        | Operation::Power
        | Operation::Logarithm
        | Operation::MultiplyAddDown
        | Operation::MultiplyAddToZero
        | Operation::AddToZero => return None,
    })
}

/// Whether two values satisfy a comparison.
#[inline]
pub(super) fn compare(comparison: Comparison, of: Type, a: u64, b: u64) -> bool {
    let order = match of {
        Type::Float(32) => f32::from_bits(a as u32).partial_cmp(&f32::from_bits(b as u32)),
        Type::Float(_) => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
        Type::Signed(_) => Some(of.signed(a).cmp(&of.signed(b))),
        _ => Some(of.unsigned(a).cmp(&of.unsigned(b))),
    };
    match order {
        Some(Ordering::Less) => comparison.less,
        Some(Ordering::Equal) => comparison.equal,
        Some(Ordering::Greater) => comparison.greater,
        None => comparison.unordered,
    }
}

/// Combines the result of a comparison with a predicate.
pub(super) fn together(logic: Option<Logic>, found: bool, other: bool) -> bool {
    match logic {
        None => found,
        Some(Logic::And) => found & other,
        Some(Logic::Or) => found | other,
        Some(Logic::Xor) => found ^ other,
    }
}

/// Converts a value to another type.
#[inline]
pub(super) fn convert(to: Type, from: Type, rounding: Rounding, value: u64) -> u64 {
    let number = match from {
        Type::Float(32) => f64::from(f32::from_bits(value as u32)),
        Type::Float(_) => f64::from_bits(value),
        _ if !to.is_float() => return to.carried(from.carried(value)),
        // Converts to `f32` directly: a detour through `f64` would round twice.
        Type::Signed(_) if to.bits() == 32 => return u64::from((from.signed(value) as f32).to_bits()),
        Type::Signed(_) => return (from.signed(value) as f64).to_bits(),
        _ if to.bits() == 32 => return u64::from((from.unsigned(value) as f32).to_bits()),
        _ => return (from.unsigned(value) as f64).to_bits(),
    };
    let number = match rounding {
        Rounding::None => number,
        Rounding::Nearest => number.round_ties_even(),
        Rounding::Zero => number.trunc(),
        Rounding::Down => number.floor(),
        Rounding::Up => number.ceil(),
        Rounding::Unit if number.is_nan() => 0.0,
        Rounding::Unit => number.clamp(0.0, 1.0),
    };
    // A conversion to an integer saturates.
    match to {
        Type::Float(32) => u64::from((number as f32).to_bits()),
        Type::Float(_) => number.to_bits(),
        Type::Signed(bits) => {
            let most = i64::MAX >> (64 - bits);
            (number as i64).clamp(-most - 1, most) as u64
        }
        _ => (number as u64).min(to.unsigned(u64::MAX)),
    }
}
