//! Arithmetic of one item, with the meaning of [`usm_kernel_ir::Binary`] and of casts.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value, types};
use usm_kernel_ir::{Binary, Math, Scalar};

use crate::machine::function::{Writer, type_of};

impl Writer<'_> {
    pub(crate) fn operate(&mut self, operator: Binary, ty: Scalar, one: Value, two: Value) -> Value {
        if ty.is_float() {
            return self.operate_floats(operator, ty, one, two);
        }
        let signed = ty.is_signed();
        let ins = self.builder.ins();
        match operator {
            Binary::Add => ins.iadd(one, two),
            Binary::Sub => ins.isub(one, two),
            Binary::Mul => ins.imul(one, two),
            Binary::Div | Binary::Rem => self.divide(operator, ty, one, two),
            Binary::And | Binary::AndThen => ins.band(one, two),
            Binary::Or | Binary::OrElse => ins.bor(one, two),
            Binary::Xor => ins.bxor(one, two),
            // The amount counts modulo the width.
            Binary::Shl => ins.ishl(one, two),
            Binary::Shr if signed => ins.sshr(one, two),
            Binary::Shr => ins.ushr(one, two),
            Binary::Min if signed => ins.smin(one, two),
            Binary::Min => ins.umin(one, two),
            Binary::Max if signed => ins.smax(one, two),
            Binary::Max => ins.umax(one, two),
            _ => ins.icmp(integer_condition(operator, signed), one, two),
        }
    }

    fn operate_floats(&mut self, operator: Binary, ty: Scalar, one: Value, two: Value) -> Value {
        let ins = self.builder.ins();
        match operator {
            Binary::Add => ins.fadd(one, two),
            Binary::Sub => ins.fsub(one, two),
            Binary::Mul => ins.fmul(one, two),
            Binary::Div => ins.fdiv(one, two),
            Binary::Rem => {
                let remainder: extern "C" fn(f64, f64) -> f64 = remainder;
                self.call(ty, remainder as usize, &[one, two])
            }
            // Of a NaN and a number, the number. Of two zeros, the second as a minimum and the
            // first as a maximum, as in the interpreter.
            Binary::Min => {
                let nan = ins.fcmp(FloatCC::Unordered, two, two);
                let less = self.builder.ins().fcmp(FloatCC::LessThan, one, two);
                let first = self.builder.ins().bor(nan, less);
                self.builder.ins().select(first, one, two)
            }
            Binary::Max => {
                let nan = ins.fcmp(FloatCC::Unordered, one, one);
                let less = self.builder.ins().fcmp(FloatCC::LessThan, one, two);
                let second = self.builder.ins().bor(nan, less);
                self.builder.ins().select(second, two, one)
            }
            _ => ins.fcmp(float_condition(operator), one, two),
        }
    }

    /// A divisor of zero, and of -1 below the least value, counts as one.
    fn divide(&mut self, operator: Binary, ty: Scalar, one: Value, two: Value) -> Value {
        let ins = self.builder.ins();
        // Narrow types are divided as 32-bit ones.
        let wide = if ty.bits() < 32 { types::I32 } else { type_of(ty) };
        let [mut one, mut two] = [one, two];
        if ty.bits() < 32 {
            let extend = |ins: cranelift_frontend::FuncInstBuilder<'_, '_>, value| {
                if ty.is_signed() { ins.sextend(wide, value) } else { ins.uextend(wide, value) }
            };
            one = extend(ins, one);
            two = extend(self.builder.ins(), two);
        }
        let unit = self.builder.ins().iconst(wide, 1);
        let mut counts_as_one = self.builder.ins().icmp_imm_s(IntCC::Equal, two, 0);
        if ty.is_signed() && ty.bits() >= 32 {
            let negative = self.builder.ins().icmp_imm_s(IntCC::Equal, two, -1);
            let least = self.builder.ins().icmp_imm_s(IntCC::Equal, one, ty.min());
            let both = self.builder.ins().band(negative, least);
            counts_as_one = self.builder.ins().bor(counts_as_one, both);
        }
        let divisor = self.builder.ins().select(counts_as_one, unit, two);
        let ins = self.builder.ins();
        let value = match (operator, ty.is_signed()) {
            (Binary::Div, true) => ins.sdiv(one, divisor),
            (Binary::Div, false) => ins.udiv(one, divisor),
            (_, true) => ins.srem(one, divisor),
            (_, false) => ins.urem(one, divisor),
        };
        if ty.bits() < 32 { self.builder.ins().ireduce(type_of(ty), value) } else { value }
    }

    pub(crate) fn cast(&mut self, from: Scalar, to: Scalar, value: Value) -> Value {
        let into = type_of(to);
        if from != to && (from.is_half() || to.is_half()) {
            return if from.is_half() {
                self.widened_half(from, value)
            } else {
                self.narrowed_half(to, value)
            };
        }
        let ins = self.builder.ins();
        match (from.is_float(), to.is_float()) {
            (true, true) if from == to => value,
            (true, true) if to == Scalar::F64 => ins.fpromote(into, value),
            (true, true) => ins.fdemote(into, value),
            (true, false) => match to {
                Scalar::U64 => ins.fcvt_to_uint_sat(types::I64, value),
                Scalar::I64 => ins.fcvt_to_sint_sat(types::I64, value),
                Scalar::Bool => {
                    let word = ins.fcvt_to_uint_sat(types::I64, value);
                    self.builder.ins().icmp_imm_s(IntCC::NotEqual, word, 0)
                }
                _ => {
                    // Saturates in 64 bits first.
                    let word = ins.fcvt_to_sint_sat(types::I64, value);
                    let most = to.max().unwrap_or(i64::MAX);
                    let (least, most) = (self.number(to.min()), self.number(most));
                    let word = self.builder.ins().smax(word, least);
                    let word = self.builder.ins().smin(word, most);
                    self.builder.ins().ireduce(into, word)
                }
            },
            (false, true) => match from {
                Scalar::U64 => ins.fcvt_from_uint(into, value),
                _ => {
                    let word = self.widen(from, value);
                    self.builder.ins().fcvt_from_sint(into, word)
                }
            },
            (false, false) if to == Scalar::Bool => ins.icmp_imm_s(IntCC::NotEqual, value, 0),
            (false, false) => {
                let (have, want) = (from.bits(), to.bits());
                match have.cmp(&want) {
                    core::cmp::Ordering::Equal => value,
                    core::cmp::Ordering::Greater => ins.ireduce(into, value),
                    core::cmp::Ordering::Less if from.is_signed() => ins.sextend(into, value),
                    core::cmp::Ordering::Less => ins.uextend(into, value),
                }
            }
        }
    }

    /// Extends an integer of less than 64 bits, or a signed one, to 64 bits.
    fn widen(&mut self, from: Scalar, value: Value) -> Value {
        let ins = self.builder.ins();
        match from {
            Scalar::I64 | Scalar::U64 => value,
            _ if from.is_signed() => ins.sextend(types::I64, value),
            _ => ins.uextend(types::I64, value),
        }
    }

    pub(crate) fn math(&mut self, function: Math, ty: Scalar, arguments: &[Value]) -> Value {
        let ins = self.builder.ins();
        match (function, arguments) {
            (Math::Abs, &[one]) => ins.fabs(one),
            (Math::Sqrt, &[one]) => ins.sqrt(one),
            (Math::Floor, &[one]) => ins.floor(one),
            (Math::Ceil, &[one]) => ins.ceil(one),
            (Math::Trunc, &[one]) => ins.trunc(one),
            (Math::RoundEven, &[one]) => ins.nearest(one),
            (Math::CopySign, &[one, two]) => ins.fcopysign(one, two),
            (Math::CountOnes, &[one]) => ins.popcnt(one),
            _ => self.call(ty, crate::machine::math::address(function, ty), arguments),
        }
    }
}

extern "C" fn remainder(one: f64, two: f64) -> f64 {
    libm::fmod(one, two)
}

pub(crate) const fn integer_condition(operator: Binary, signed: bool) -> IntCC {
    match (operator, signed) {
        (Binary::Ne, _) => IntCC::NotEqual,
        (Binary::Lt, true) => IntCC::SignedLessThan,
        (Binary::Lt, false) => IntCC::UnsignedLessThan,
        (Binary::Le, true) => IntCC::SignedLessThanOrEqual,
        (Binary::Le, false) => IntCC::UnsignedLessThanOrEqual,
        (Binary::Gt, true) => IntCC::SignedGreaterThan,
        (Binary::Gt, false) => IntCC::UnsignedGreaterThan,
        (Binary::Ge, true) => IntCC::SignedGreaterThanOrEqual,
        (Binary::Ge, false) => IntCC::UnsignedGreaterThanOrEqual,
        _ => IntCC::Equal,
    }
}

pub(crate) const fn float_condition(operator: Binary) -> FloatCC {
    match operator {
        Binary::Ne => FloatCC::NotEqual,
        Binary::Lt => FloatCC::LessThan,
        Binary::Le => FloatCC::LessThanOrEqual,
        Binary::Gt => FloatCC::GreaterThan,
        Binary::Ge => FloatCC::GreaterThanOrEqual,
        _ => FloatCC::Equal,
    }
}
