//! Expressions of one item.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use usm_kernel_ir::{Binary, Expr, ExprKind, Literal, Query, Scalar, Space, Unary};

use crate::machine::function::{Writer, type_of};

impl Writer<'_> {
    pub(crate) fn expr(&mut self, expr: &Expr) -> Value {
        match &expr.kind {
            ExprKind::Literal(literal) => self.literal(*literal),
            ExprKind::Variable(variable) => self.builder.use_var(self.variables[variable.0 as usize]),
            ExprKind::Value(value) => self.values[value.0 as usize],
            ExprKind::Len(array) => self.len(*array),
            ExprKind::Query(query, dimension) => {
                // The last dimension is the fastest, and the first in this order.
                let axis = usize::from(self.kernel.dimensions - 1 - dimension);
                match query {
                    Query::GlobalId => self.gid[axis],
                    Query::LocalId => self.lid[axis],
                    Query::GroupId => self.group[axis],
                    Query::GlobalSize => self.sizes.global[axis],
                    Query::LocalSize => self.sizes.local[axis],
                    Query::Groups => self.sizes.groups[axis],
                }
            }
            ExprKind::Load(array, index) => {
                let index = self.expr(index);
                if matches!(self.kernel.array(*array).space, Space::Extent(_)) {
                    return self.checked_index(*array, index, expr.place);
                }
                let address = self.checked_address(*array, index, expr.place);
                self.load(expr.ty, address)
            }
            ExprKind::Unary(operator, operand) => {
                let value = self.expr(operand);
                self.unary(*operator, expr.ty, value)
            }
            ExprKind::Binary { operator: operator @ (Binary::AndThen | Binary::OrElse), left, right } => {
                let one = self.expr(left);
                if is_cheap(right) {
                    let two = self.expr(right);
                    return self.operate(*operator, Scalar::Bool, one, two);
                }
                let both = *operator == Binary::AndThen;
                self.either(
                    one,
                    Scalar::Bool,
                    |writer| if both { writer.expr(right) } else { one },
                    |writer| {
                        if both { one } else { writer.expr(right) }
                    },
                )
            }
            ExprKind::Binary { operator, left, right } => {
                let (one, two) = (self.expr(left), self.expr(right));
                self.operate(*operator, left.ty, one, two)
            }
            ExprKind::Cast(operand) => {
                let value = self.expr(operand);
                self.cast(operand.ty, expr.ty, value)
            }
            ExprKind::Bits(operand) => {
                let value = self.expr(operand);
                let into = type_of(expr.ty);
                // Numbers of 16 bits are such integers here.
                let is_half = type_of(operand.ty) == into;
                if is_half { value } else { self.builder.ins().bitcast(into, MemFlagsData::new(), value) }
            }
            ExprKind::Select { condition, then, other } => {
                let condition = self.expr(condition);
                if is_cheap(then) && is_cheap(other) {
                    let (then, other) = (self.expr(then), self.expr(other));
                    return self.builder.ins().select(condition, then, other);
                }
                self.either(condition, expr.ty, |writer| writer.expr(then), |writer| writer.expr(other))
            }
            ExprKind::Math(function, arguments) => {
                let arguments: Vec<Value> = arguments.iter().map(|argument| self.expr(argument)).collect();
                self.math(*function, expr.ty, &arguments)
            }
        }
    }

    /// One of two values; the other is not computed.
    fn either(
        &mut self,
        condition: Value,
        ty: Scalar,
        one: impl FnOnce(&mut Self) -> Value,
        two: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        let [first, second, out] = [(); 3].map(|()| self.builder.create_block());
        let result = self.builder.append_block_param(out, type_of(ty));
        self.builder.ins().brif(condition, first, &[], second, &[]);
        self.builder.switch_to_block(first);
        let value = one(self);
        self.builder.ins().jump(out, &[value.into()]);
        self.builder.switch_to_block(second);
        let value = two(self);
        self.builder.ins().jump(out, &[value.into()]);
        self.builder.switch_to_block(out);
        result
    }

    pub(crate) fn literal(&mut self, literal: Literal) -> Value {
        match literal.ty {
            Scalar::F32 => self.builder.ins().f32const(literal.to_f32()),
            Scalar::F64 => self.builder.ins().f64const(literal.to_f64()),
            ty => {
                let mask = u64::MAX >> (64 - ty.bits());
                self.builder.ins().iconst(type_of(ty), (literal.bits & mask) as i64)
            }
        }
    }

    pub(crate) fn unary(&mut self, operator: Unary, ty: Scalar, value: Value) -> Value {
        let ins = self.builder.ins();
        match operator {
            Unary::Neg if ty.is_float() => ins.fneg(value),
            Unary::Neg => ins.ineg(value),
            Unary::Not if ty == Scalar::Bool => ins.icmp_imm_s(IntCC::Equal, value, 0),
            Unary::Not => ins.bnot(value),
        }
    }
}

/// Whether an unneeded evaluation is cheap and has no effect.
fn is_cheap(expr: &Expr) -> bool {
    let mut cheap = true;
    expr.for_each(&mut |expr| {
        cheap &= !matches!(
            expr.kind,
            ExprKind::Load(..)
                | ExprKind::Math(..)
                | ExprKind::Binary { operator: Binary::Div | Binary::Rem, .. }
        );
    });
    cheap
}
