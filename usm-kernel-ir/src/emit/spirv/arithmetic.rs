//! Operators and conversions, with the meaning that [`Binary`] and
//! [`ExprKind::Cast`](crate::ExprKind::Cast) define.

use rspirv::spirv::{Op, Word};

use super::Writer;
use crate::operator::Binary;
use crate::scalar::{Literal, Scalar};

impl Writer<'_> {
    pub(super) fn binary(
        &mut self,
        operator: Binary,
        (scalar, one): (Scalar, Word),
        (shift, two): (Scalar, Word),
        ty: Word,
    ) -> Word {
        let (float, signed) = (scalar.is_float(), scalar.is_signed());
        let bool = self.ty(Scalar::Bool);
        let of = |for_float: Op, for_signed: Op, for_unsigned: Op| {
            if float {
                for_float
            } else if signed {
                for_signed
            } else {
                for_unsigned
            }
        };
        let op = match operator {
            Binary::Add => of(Op::FAdd, Op::IAdd, Op::IAdd),
            Binary::Sub => of(Op::FSub, Op::ISub, Op::ISub),
            Binary::Mul => of(Op::FMul, Op::IMul, Op::IMul),
            Binary::Div if float => Op::FDiv,
            Binary::Rem if float => Op::FRem,
            Binary::Div | Binary::Rem => {
                let (zero, by) = (self.number(scalar, 0), self.number(scalar, 1));
                let mut wrong = self.op(Op::IEqual, bool, &[two, zero]);
                if signed {
                    let (minus, least) =
                        (self.number(scalar, u64::MAX), self.number(scalar, scalar.min() as u64));
                    let is_minus = self.op(Op::IEqual, bool, &[two, minus]);
                    let is_least = self.op(Op::IEqual, bool, &[one, least]);
                    let overflows = self.op(Op::LogicalAnd, bool, &[is_minus, is_least]);
                    wrong = self.op(Op::LogicalOr, bool, &[wrong, overflows]);
                }
                let two = self.op(Op::Select, ty, &[wrong, by, two]);
                let op = match operator {
                    Binary::Div => of(Op::FDiv, Op::SDiv, Op::UDiv),
                    _ => of(Op::FRem, Op::SRem, Op::UMod),
                };
                return self.op(op, ty, &[one, two]);
            }
            Binary::And if scalar == Scalar::Bool => Op::LogicalAnd,
            Binary::Or if scalar == Scalar::Bool => Op::LogicalOr,
            Binary::Xor if scalar == Scalar::Bool => Op::LogicalNotEqual,
            Binary::And => Op::BitwiseAnd,
            Binary::Or => Op::BitwiseOr,
            Binary::Xor => Op::BitwiseXor,
            Binary::Shl | Binary::Shr => {
                let by = self.cast(shift, scalar, two);
                let mask = self.number(scalar, u64::from(scalar.bits() - 1));
                let by = self.op(Op::BitwiseAnd, ty, &[by, mask]);
                let op = match operator {
                    Binary::Shl => Op::ShiftLeftLogical,
                    _ => of(Op::ShiftRightLogical, Op::ShiftRightArithmetic, Op::ShiftRightLogical),
                };
                return self.op(op, ty, &[one, by]);
            }
            Binary::Min | Binary::Max => {
                // fmin 28, fmax 27; s_min 158, u_min 159, s_max 156, u_max 157.
                let number = match (operator, float, signed) {
                    (Binary::Min, true, _) => 28,
                    (Binary::Max, true, _) => 27,
                    (Binary::Min, _, true) => 158,
                    (Binary::Min, ..) => 159,
                    (_, _, true) => 156,
                    _ => 157,
                };
                return self.call(number, ty, &[one, two]);
            }
            Binary::Eq if scalar == Scalar::Bool => Op::LogicalEqual,
            Binary::Ne if scalar == Scalar::Bool => Op::LogicalNotEqual,
            Binary::Eq => of(Op::FOrdEqual, Op::IEqual, Op::IEqual),
            Binary::Ne => of(Op::FUnordNotEqual, Op::INotEqual, Op::INotEqual),
            Binary::Lt => of(Op::FOrdLessThan, Op::SLessThan, Op::ULessThan),
            Binary::Le => of(Op::FOrdLessThanEqual, Op::SLessThanEqual, Op::ULessThanEqual),
            Binary::Gt => of(Op::FOrdGreaterThan, Op::SGreaterThan, Op::UGreaterThan),
            Binary::Ge => of(Op::FOrdGreaterThanEqual, Op::SGreaterThanEqual, Op::UGreaterThanEqual),
            Binary::AndThen => Op::LogicalAnd,
            Binary::OrElse => Op::LogicalOr,
        };
        let ty = if operator.compares() { bool } else { ty };
        self.op(op, ty, &[one, two])
    }

    pub(super) fn cast(&mut self, from: Scalar, to: Scalar, value: Word) -> Word {
        let ty = self.ty(to);
        if from == to {
            return value;
        }
        if from.is_half() || to.is_half() {
            return self.half(from, to, value);
        }
        if from == Scalar::Bool {
            let (one, zero) = (self.number(to, 1), self.number(to, 0));
            return self.op(Op::Select, ty, &[value, one, zero]);
        }
        let op = match (from.is_float(), to.is_float()) {
            (true, true) => Op::FConvert,
            (false, true) if from.is_signed() => Op::ConvertSToF,
            (false, true) => Op::ConvertUToF,
            (true, false) => return self.saturate(from, to, value),
            // The same bits: integers of this language have no sign.
            (false, false) if from.bits() == to.bits() => return value,
            (false, false) if from.is_signed() => Op::SConvert,
            (false, false) => Op::UConvert,
        };
        self.op(op, ty, &[value])
    }

    /// Converts from floating point: a value out of range becomes the nearest integer, NaN becomes
    /// 0.
    fn saturate(&mut self, from: Scalar, to: Scalar, value: Word) -> Word {
        let (ty, bool) = (self.ty(to), self.ty(Scalar::Bool));
        let bits = if to.is_signed() { to.bits() - 1 } else { to.bits() };
        let limit = libm::ldexp(1.0, bits as i32);
        let float =
            |value: f64| if from == Scalar::F32 { Literal::f32(value as f32) } else { Literal::f64(value) };
        let (most, least) =
            (self.constant(float(limit)), self.constant(float(if to.is_signed() { -limit } else { 0.0 })));
        let zero = self.constant(float(0.0));
        let high = self.op(Op::FOrdGreaterThanEqual, bool, &[value, most]);
        let low = self.op(Op::FOrdLessThanEqual, bool, &[value, least]);
        let nan = self.op(Op::FUnordNotEqual, bool, &[value, value]);
        // The result of converting a value out of range would be undefined, so it is replaced
        // first.
        let inside = self.op(Op::LogicalOr, bool, &[high, low]);
        let inside = self.op(Op::LogicalOr, bool, &[inside, nan]);
        let float_ty = self.ty(from);
        let safe = self.op(Op::Select, float_ty, &[inside, zero, value]);
        let op = if to.is_signed() { Op::ConvertFToS } else { Op::ConvertFToU };
        let plain = self.op(op, ty, &[safe]);
        let greatest = if bits == 64 { u64::MAX } else { (1_u64 << bits) - 1 };
        let (greatest, smallest) = (self.number(to, greatest), self.number(to, to.min() as u64));
        let plain = self.op(Op::Select, ty, &[high, greatest, plain]);
        self.op(Op::Select, ty, &[low, smallest, plain])
    }
}
