//! Expressions and their types.

use alloc::format;

use super::Checker;
use crate::builtin::Math;
use crate::error::Refusal;
use crate::kernel::{Expr, ExprKind};
use crate::operator::Binary;
use crate::scalar::{Literal, Scalar};
use crate::text::DEPTH;

impl Checker<'_> {
    pub(super) fn expr(&self, expr: &Expr, defined_at: &[bool], depth: usize) -> Result<(), Refusal> {
        let refuse = |message| Err(Refusal::new(expr.place, message));
        if depth >= DEPTH {
            return refuse(format!("more than {DEPTH} nested expressions"));
        }
        expr.operands().into_iter().try_for_each(|operand| self.expr(operand, defined_at, depth + 1))?;
        let kernel = self.kernel;
        let ty = match &expr.kind {
            ExprKind::Literal(literal) if *literal != Literal::integer(literal.ty, literal.bits) => {
                return refuse(format!("a literal of {} with the bits {:#x}", literal.ty, literal.bits));
            }
            ExprKind::Literal(literal) => literal.ty,
            ExprKind::Variable(variable) => {
                let Some(declaration) = kernel.variables.get(variable.0 as usize) else {
                    return refuse("no such variable".into());
                };
                if !defined_at.get(variable.0 as usize).copied().unwrap_or(false) {
                    return refuse(format!("`{}` may have no value here", declaration.name));
                }
                declaration.ty
            }
            ExprKind::Value(value) => match kernel.values.get(value.0 as usize) {
                Some(value) => value.ty,
                None => return refuse("no such parameter".into()),
            },
            ExprKind::Len(array) => match kernel.arrays.get(array.0 as usize) {
                Some(_) => Scalar::U64,
                None => return refuse("no such array".into()),
            },
            ExprKind::Query(_, dimension) if *dimension >= kernel.dimensions => {
                return refuse(format!("dimension {dimension}, the kernel has {}", kernel.dimensions));
            }
            ExprKind::Query(..) => Scalar::U64,
            ExprKind::Load(array, index) => {
                let Some(array) = kernel.arrays.get(array.0 as usize) else {
                    return refuse("no such array".into());
                };
                self.same(index, Scalar::U64)?;
                array.element
            }
            ExprKind::Unary(operator, operand) if !operator.takes(operand.ty) => {
                return refuse(format!("{} has no `{}`", operand.ty, operator.name()));
            }
            ExprKind::Unary(_, operand) => operand.ty,
            ExprKind::Binary { operator, left, right } => {
                if !operator.takes(left.ty) {
                    return refuse(format!("{} has no `{}`", left.ty, operator.name()));
                }
                let shifts = matches!(operator, Binary::Shl | Binary::Shr);
                if shifts && right.ty.is_integer() {
                    left.ty
                } else {
                    self.same(right, left.ty)?;
                    if operator.compares() { Scalar::Bool } else { left.ty }
                }
            }
            ExprKind::Cast(operand) => self.cast(expr, operand)?,
            ExprKind::Bits(operand) => {
                let is_number = |ty: Scalar| ty.is_float() || ty.is_half();
                let (from, to) = (operand.ty, expr.ty);
                let fits = |number: Scalar, word: Scalar| is_number(number) && word == number.unsigned();
                if !fits(from, to) && !fits(to, from) {
                    return refuse(format!("the bits of {from} are no {to}"));
                }
                to
            }
            ExprKind::Select { condition, then, other } => {
                self.same(condition, Scalar::Bool)?;
                self.same(other, then.ty)?;
                then.ty
            }
            ExprKind::Math(function, arguments) => self.math(expr, *function, arguments)?,
        };
        if ty == expr.ty { Ok(()) } else { refuse(format!("{} that says it is {}", ty, expr.ty)) }
    }

    fn cast(&self, expr: &Expr, operand: &Expr) -> Result<Scalar, Refusal> {
        let refuse = |message| Err(Refusal::new(expr.place, message));
        if expr.ty == Scalar::Bool && operand.ty != Scalar::Bool {
            return refuse("a number is no bool: write `!= 0`".into());
        }
        let half = [operand.ty, expr.ty].into_iter().find(|ty| ty.is_half());
        if let Some(half) = half.filter(|_| operand.ty != expr.ty) {
            if ![operand.ty, expr.ty].contains(&Scalar::F32) {
                return refuse(format!("{} as {}: a {half} is converted by f32", operand.ty, expr.ty));
            }
        }
        if operand.ty == Scalar::Bool && expr.ty.is_float() {
            return refuse("a bool is no floating point number: write `if`".into());
        }
        Ok(expr.ty)
    }

    fn math(&self, expr: &Expr, function: Math, arguments: &[Expr]) -> Result<Scalar, Refusal> {
        let refuse = |message| Err(Refusal::new(expr.place, message));
        if arguments.len() != function.arguments() {
            return refuse(format!(
                "`{}` has {} arguments, {} are given",
                function.name(),
                function.arguments(),
                arguments.len()
            ));
        }
        let ty = arguments[0].ty;
        if !function.takes(ty) {
            let types = if function.counts() { "u32 and u64" } else { "floating point numbers" };
            return refuse(format!("`{}` of {ty}: only {types} have it", function.name()));
        }
        arguments.iter().try_for_each(|argument| self.same(argument, ty))?;
        Ok(ty)
    }
}
