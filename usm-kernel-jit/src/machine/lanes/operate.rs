//! Arithmetic of sixteen items. Operations without a vector instruction run one item after the
//! other.

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use usm_kernel_ir::{Binary, Expr, ExprKind, Math, Scalar, Unary};

use super::vector::{lane_bytes, registers, type_of};
use super::{Lanes, Row, Shape};
use crate::machine::function::Writer;
use crate::machine::operate::{float_condition, integer_condition};

impl Writer<'_> {
    /// The value of an expression for sixteen items.
    pub(super) fn lanes(&mut self, row: &mut Row, expr: &Expr) -> Lanes {
        match row.shapes.of(self.kernel, expr) {
            Shape::One => Lanes::One(self.expr(expr)),
            Shape::Line(step) => Lanes::Line(self.expr(expr), step),
            Shape::Many => Lanes::Many(self.value_of_each_item(row, expr)),
        }
    }

    fn value_of_each_item(&mut self, row: &mut Row, expr: &Expr) -> Vec<Value> {
        match &expr.kind {
            ExprKind::Variable(variable) => self.take_lanes(row, *variable),
            ExprKind::Load(array, index) => self.load_lanes(row, *array, index),
            ExprKind::Unary(operator, operand) => {
                let values = self.lanes(row, operand);
                let values = self.spread(values, operand.ty);
                let negate = |writer: &mut Self, value| {
                    let ins = writer.builder.ins();
                    match operator {
                        Unary::Neg if expr.ty.is_float() => ins.fneg(value),
                        Unary::Neg => ins.ineg(value),
                        Unary::Not => ins.bnot(value),
                    }
                };
                values.into_iter().map(|value| negate(self, value)).collect()
            }
            ExprKind::Binary { operator, left, right } => {
                let (one, two) = (self.lanes(row, left), self.lanes(row, right));
                if matches!(operator, Binary::Shl | Binary::Shr) {
                    return self.shift(*operator, left.ty, one, (two, right.ty));
                }
                self.operate_lanes(*operator, left.ty, one, two)
            }
            ExprKind::Cast(operand) => {
                let value = self.lanes(row, operand);
                self.cast_lanes(operand.ty, expr.ty, value)
            }
            ExprKind::Bits(operand) => {
                let value = self.lanes(row, operand);
                let values = self.spread(value, operand.ty);
                values.into_iter().map(|value| self.as_type(type_of(expr.ty), value)).collect()
            }
            ExprKind::Select { condition, then, other } => {
                let condition = self.lanes(row, condition);
                let condition = self.spread(condition, Scalar::Bool);
                let masks = self.masks_for(expr.ty, condition);
                let [then, other] = [then, other].map(|side| {
                    let value = self.lanes(row, side);
                    self.spread(value, expr.ty)
                });
                self.blend(&masks, &then, &other)
            }
            ExprKind::Math(function, arguments) => {
                let values: Vec<Lanes> = arguments.iter().map(|argument| self.lanes(row, argument)).collect();
                self.math_lanes(*function, expr.ty, values)
            }
            // These are equal for all items, or lines.
            ExprKind::Literal(_) | ExprKind::Value(_) | ExprKind::Len(_) | ExprKind::Query(..) => {
                let value = Lanes::One(self.expr(expr));
                self.spread(value, expr.ty)
            }
        }
    }

    /// The first value where a mask is set, otherwise the second.
    fn blend(&mut self, masks: &[Value], one: &[Value], two: &[Value]) -> Vec<Value> {
        let mut out = Vec::new();
        for ((mask, one), two) in masks.iter().zip(one).zip(two) {
            let ty = self.builder.func.dfg.value_type(*one);
            let bits = self.builder.func.dfg.value_type(*mask);
            let [one, two] = [*one, *two].map(|value| self.as_type(bits, value));
            let value = self.builder.ins().bitselect(*mask, one, two);
            out.push(self.as_type(ty, value));
        }
        out
    }

    fn pair(
        &mut self,
        ty: Scalar,
        sides: [Lanes; 2],
        mut operate: impl FnMut(&mut Self, Value, Value) -> Value,
    ) -> Vec<Value> {
        let [one, two] = sides.map(|side| self.spread(side, ty));
        one.into_iter().zip(two).map(|(one, two)| operate(self, one, two)).collect()
    }

    fn one_after_another(
        &mut self,
        out: Scalar,
        operands: &[(Lanes, Scalar)],
        mut operate: impl FnMut(&mut Self, &[Value]) -> Value,
    ) -> Vec<Value> {
        self.by_lane(out, |writer, lane| {
            let values: Vec<Value> =
                operands.iter().map(|(lanes, ty)| writer.lane(lanes, *ty, lane)).collect();
            operate(writer, &values)
        })
    }

    pub(super) fn operate_lanes(
        &mut self,
        operator: Binary,
        ty: Scalar,
        one: Lanes,
        two: Lanes,
    ) -> Vec<Value> {
        let out = if operator.compares() { Scalar::Bool } else { ty };
        let narrow = lane_bytes(ty) == 1;
        match operator {
            _ if ty == Scalar::Bool => self.pair(ty, [one, two], |writer, one, two| {
                let ins = writer.builder.ins();
                match operator {
                    Binary::And | Binary::AndThen => ins.band(one, two),
                    Binary::Or | Binary::OrElse => ins.bor(one, two),
                    Binary::Xor | Binary::Ne => ins.bxor(one, two),
                    _ => {
                        let differ = ins.bxor(one, two);
                        writer.builder.ins().bnot(differ)
                    }
                }
            }),
            _ if operator.compares() => {
                let masks = self.compare_lanes(operator, ty, [one, two]);
                self.masks(ty, masks)
            }
            Binary::Min | Binary::Max if ty.is_float() => {
                let [one, two] = [one, two].map(|side| self.spread(side, ty));
                let mut masks = Vec::new();
                for (one, two) in one.iter().zip(&two) {
                    let odd = if operator == Binary::Min { *two } else { *one };
                    let nan = self.builder.ins().fcmp(FloatCC::Unordered, odd, odd);
                    let less = self.builder.ins().fcmp(FloatCC::LessThan, *one, *two);
                    masks.push(self.builder.ins().bor(nan, less));
                }
                if operator == Binary::Min {
                    self.blend(&masks, &one, &two)
                } else {
                    self.blend(&masks, &two, &one)
                }
            }
            Binary::Min | Binary::Max if lane_bytes(ty) == 8 => {
                let masks = self.compare_lanes(Binary::Lt, ty, [one.clone(), two.clone()]);
                let [one, two] = [one, two].map(|side| self.spread(side, ty));
                if operator == Binary::Min {
                    self.blend(&masks, &one, &two)
                } else {
                    self.blend(&masks, &two, &one)
                }
            }
            Binary::Rem => self.combine_lanes(operator, ty, out, one, two),
            Binary::Div if !ty.is_float() => self.combine_lanes(operator, ty, out, one, two),
            Binary::Mul if narrow => self.combine_lanes(operator, ty, out, one, two),
            _ => self.pair(ty, [one, two], |writer, one, two| {
                let (ins, signed) = (writer.builder.ins(), ty.is_signed());
                match (operator, ty.is_float()) {
                    (Binary::Add, true) => ins.fadd(one, two),
                    (Binary::Sub, true) => ins.fsub(one, two),
                    (Binary::Mul, true) => ins.fmul(one, two),
                    (Binary::Div, true) => ins.fdiv(one, two),
                    (Binary::Sub, false) => ins.isub(one, two),
                    (Binary::Mul, false) => ins.imul(one, two),
                    (Binary::And, _) => ins.band(one, two),
                    (Binary::Or, _) => ins.bor(one, two),
                    (Binary::Xor, _) => ins.bxor(one, two),
                    (Binary::Min, _) if signed => ins.smin(one, two),
                    (Binary::Min, _) => ins.umin(one, two),
                    (Binary::Max, _) if signed => ins.smax(one, two),
                    (Binary::Max, _) => ins.umax(one, two),
                    _ => ins.iadd(one, two),
                }
            }),
        }
    }

    /// Shift amounts have their own type.
    fn shift(&mut self, operator: Binary, ty: Scalar, one: Lanes, two: (Lanes, Scalar)) -> Vec<Value> {
        let (Lanes::One(amount), 2..) = (&two.0, lane_bytes(ty)) else {
            return self.one_after_another(ty, &[(one, ty), two], |writer, values| {
                writer.operate(operator, ty, values[0], values[1])
            });
        };
        let (amount, values) = (*amount, self.spread(one, ty));
        let shift = |writer: &mut Self, value| {
            let ins = writer.builder.ins();
            match operator {
                Binary::Shl => ins.ishl(value, amount),
                _ if ty.is_signed() => ins.sshr(value, amount),
                _ => ins.ushr(value, amount),
            }
        };
        values.into_iter().map(|value| shift(self, value)).collect()
    }

    fn combine_lanes(
        &mut self,
        operator: Binary,
        ty: Scalar,
        out: Scalar,
        one: Lanes,
        two: Lanes,
    ) -> Vec<Value> {
        self.one_after_another(out, &[(one, ty), (two, ty)], |writer, values| {
            writer.operate(operator, ty, values[0], values[1])
        })
    }

    /// Masks as wide as the operands.
    fn compare_lanes(&mut self, operator: Binary, ty: Scalar, sides: [Lanes; 2]) -> Vec<Value> {
        let orders = !matches!(operator, Binary::Eq | Binary::Ne);
        // No vector instruction orders unsigned words of 64 bits; with the highest bit inverted
        // they compare as signed.
        let flips = ty == Scalar::U64 && orders;
        let top = flips.then(|| {
            let top = self.number(i64::MIN);
            self.builder.ins().splat(types::I64X2, top)
        });
        self.pair(ty, sides, |writer, one, two| {
            if ty.is_float() {
                return writer.builder.ins().fcmp(float_condition(operator), one, two);
            }
            let [one, two] = [one, two].map(|value| match top {
                Some(top) => writer.builder.ins().bxor(value, top),
                None => value,
            });
            let condition = integer_condition(operator, ty.is_signed() || flips);
            writer.builder.ins().icmp(condition, one, two)
        })
    }

    fn cast_lanes(&mut self, from: Scalar, to: Scalar, value: Lanes) -> Vec<Value> {
        let (have, want) = (lane_bytes(from), lane_bytes(to));
        match (from, to) {
            (Scalar::F32, Scalar::F64) => {
                let values = self.spread(value, from);
                let mut wide = Vec::new();
                for value in values {
                    wide.push(self.builder.ins().fvpromote_low(value));
                    let high = self.shuffle(
                        value,
                        value,
                        [8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15],
                    );
                    wide.push(self.builder.ins().fvpromote_low(high));
                }
                wide
            }
            (Scalar::F64, Scalar::F32) => {
                let values = self.spread(value, from);
                let mut narrow = Vec::new();
                for pair in values.chunks_exact(2) {
                    let [low, high] = [pair[0], pair[1]].map(|value| self.builder.ins().fvdemote(value));
                    let order = [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23];
                    narrow.push(self.shuffle(low, high, order));
                }
                narrow
            }
            (Scalar::F32, Scalar::I32 | Scalar::U32) => {
                let values = self.spread(value, from);
                let convert = |writer: &mut Self, value| {
                    let ins = writer.builder.ins();
                    if to.is_signed() {
                        ins.fcvt_to_sint_sat(types::I32X4, value)
                    } else {
                        ins.fcvt_to_uint_sat(types::I32X4, value)
                    }
                };
                values.into_iter().map(|value| convert(self, value)).collect()
            }
            (Scalar::I32 | Scalar::U32, Scalar::F32) => {
                let values = self.spread(value, from);
                let convert = |writer: &mut Self, value| {
                    let ins = writer.builder.ins();
                    if from.is_signed() {
                        ins.fcvt_from_sint(types::F32X4, value)
                    } else {
                        ins.fcvt_from_uint(types::F32X4, value)
                    }
                };
                values.into_iter().map(|value| convert(self, value)).collect()
            }
            (Scalar::Bool, _) if to.is_integer() => {
                let masks = self.spread(value, from);
                let masks = self.masks_for(to, masks);
                masks.into_iter().map(|mask| self.builder.ins().ineg(mask)).collect()
            }
            (_, Scalar::Bool) if from.is_integer() => {
                let zero = self.spread_zero(from);
                let masks = self.compare_lanes(Binary::Ne, from, [value, Lanes::Many(zero)]);
                self.masks(from, masks)
            }
            _ if from.is_integer() && to.is_integer() => {
                let (mut values, mut bytes) = (self.spread(value, from), have);
                while bytes < want {
                    values = self.with_double_width(values, from.is_signed());
                    bytes *= 2;
                }
                while bytes > want {
                    values = self.narrow(values, bytes as usize, integers(bytes / 2));
                    bytes /= 2;
                }
                values
            }
            _ => self
                .one_after_another(to, &[(value, from)], |writer, values| writer.cast(from, to, values[0])),
        }
    }

    fn math_lanes(&mut self, function: Math, ty: Scalar, operands: Vec<Lanes>) -> Vec<Value> {
        let is_vector = matches!(
            function,
            Math::Abs | Math::Sqrt | Math::Floor | Math::Ceil | Math::Trunc | Math::RoundEven
        );
        if !is_vector {
            let operands: Vec<(Lanes, Scalar)> = operands.into_iter().map(|lanes| (lanes, ty)).collect();
            return self.one_after_another(ty, &operands, |writer, values| writer.math(function, ty, values));
        }
        let mut out = Vec::new();
        for lanes in operands {
            for value in self.spread(lanes, ty) {
                out.push(self.math(function, ty, &[value]));
            }
        }
        debug_assert_eq!(out.len(), registers(ty));
        debug_assert_eq!(
            out.first().map(|value| self.builder.func.dfg.value_type(*value)),
            Some(type_of(ty))
        );
        out
    }
}

/// A register of integers of this many bytes.
const fn integers(bytes: i64) -> Type {
    match bytes {
        1 => types::I8X16,
        2 => types::I16X8,
        4 => types::I32X4,
        _ => types::I64X2,
    }
}
