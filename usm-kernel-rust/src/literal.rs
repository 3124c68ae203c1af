//! Literals, and values whose type is open because they consist of literals.

use proc_macro2::Span;
use syn::{BinOp, Expr as Rust, Lit, Result};
use usm_kernel_ir::{Literal, Scalar};

use crate::refusal::refuse;

/// Reads a number; `None` if its type is open.
pub(crate) fn literal(literal: &Lit, negative: bool, hint: Option<Scalar>) -> Result<Option<Literal>> {
    let of_suffix = |suffix: &str, span: Span| match suffix {
        "" => Ok(None),
        "usize" => Ok(Some(Scalar::U64)),
        other => match Scalar::from_name(other) {
            Some(ty) => Ok(Some(ty)),
            None => refuse(span, format!("a kernel has no {other}")),
        },
    };
    match literal {
        Lit::Bool(value) => Ok(Some(Literal::bool(value.value))),
        Lit::Int(number) => {
            let suffix = of_suffix(number.suffix(), number.span())?;
            let Some(ty) = suffix.or(hint) else { return Ok(None) };
            if ty.is_float() {
                if suffix.is_none() {
                    return refuse(
                        number.span(),
                        format!("{ty} is needed: write `{}.0`", number.base10_digits()),
                    );
                }
                return float(number.base10_digits(), negative, ty, number.span()).map(Some);
            }
            let value: i128 = number.base10_parse()?;
            let value = if negative { -value } else { value };
            let literal = Literal::integer(ty, value as u64);
            let back =
                if ty.is_signed() { i128::from(literal.bits as i64) } else { i128::from(literal.bits) };
            if back != value || ty == Scalar::Bool {
                return refuse(number.span(), format!("{value} is no {ty}"));
            }
            Ok(Some(literal))
        }
        Lit::Float(number) => {
            let suffix = of_suffix(number.suffix(), number.span())?;
            let Some(ty) = suffix.or(hint) else { return Ok(None) };
            if !ty.is_float() {
                return refuse(number.span(), format!("{ty} is needed, not a floating point number"));
            }
            float(number.base10_digits(), negative, ty, number.span()).map(Some)
        }
        other => refuse(other.span(), "a kernel knows numbers and bools: write a letter as a number"),
    }
}

fn float(digits: &str, negative: bool, ty: Scalar, span: Span) -> Result<Literal> {
    let sign = if negative { -1.0 } else { 1.0 };
    let wrong = || syn::Error::new(span, "no number");
    let too_large = || syn::Error::new(span, format!("{digits} is no {ty}: its largest is {ty}::MAX"));
    if ty == Scalar::F32 {
        let value: f32 = digits.parse().map_err(|_| wrong())?;
        return if value.is_finite() { Ok(Literal::f32(sign as f32 * value)) } else { Err(too_large()) };
    }
    let value: f64 = digits.parse().map_err(|_| wrong())?;
    if value.is_finite() { Ok(Literal::f64(sign * value)) } else { Err(too_large()) }
}

/// Whether the value is an integer without a type.
pub(crate) fn is_integer(value: &Rust) -> bool {
    match value {
        Rust::Paren(inner) => is_integer(&inner.expr),
        Rust::Group(inner) => is_integer(&inner.expr),
        Rust::Lit(literal) => matches!(&literal.lit, Lit::Int(number) if number.suffix().is_empty()),
        Rust::Unary(unary) => matches!(unary.op, syn::UnOp::Neg(_)) && is_integer(&unary.expr),
        _ => false,
    }
}

/// Whether numbers without a type are computed with. Below a cast they have Rust's own types, `i32`
/// and `f64`, and not the cast's.
pub(crate) fn computes(value: &Rust) -> bool {
    match value {
        Rust::Paren(inner) => computes(&inner.expr),
        Rust::Group(inner) => computes(&inner.expr),
        Rust::Unary(unary) => computes(&unary.expr),
        Rust::If(branch) => {
            let other = branch.else_branch.as_ref().is_some_and(|(_, other)| computes(other));
            other || last(&branch.then_branch).is_some_and(computes)
        }
        Rust::Block(inner) => last(&inner.block).is_some_and(computes),
        Rust::Match(choice) => choice.arms.iter().any(|arm| computes(&arm.body)),
        Rust::Lit(_) => false,
        _ => true,
    }
}

/// The value of a block.
pub(crate) fn last(block: &syn::Block) -> Option<&Rust> {
    match block.stmts.last() {
        Some(syn::Stmt::Expr(value, None)) => Some(value),
        _ => None,
    }
}

/// Whether the value consists of literals without a type, so that the context determines its type.
pub(crate) fn is_open(value: &Rust) -> bool {
    match value {
        Rust::Paren(inner) => is_open(&inner.expr),
        Rust::Group(inner) => is_open(&inner.expr),
        Rust::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.suffix().is_empty(),
            Lit::Float(number) => number.suffix().is_empty(),
            _ => false,
        },
        Rust::Unary(unary) => is_open(&unary.expr),
        Rust::Binary(binary) => match binary.op {
            BinOp::Shl(_) | BinOp::Shr(_) => is_open(&binary.left),
            BinOp::Add(_)
            | BinOp::Sub(_)
            | BinOp::Mul(_)
            | BinOp::Div(_)
            | BinOp::Rem(_)
            | BinOp::BitXor(_)
            | BinOp::BitAnd(_)
            | BinOp::BitOr(_) => is_open(&binary.left) && is_open(&binary.right),
            _ => false,
        },
        Rust::If(branch) => {
            let other = branch.else_branch.as_ref().is_some_and(|(_, other)| is_open(other));
            other && last(&branch.then_branch).is_some_and(is_open)
        }
        Rust::Block(inner) => last(&inner.block).is_some_and(is_open),
        Rust::Match(choice) => choice.arms.iter().all(|arm| is_open(&arm.body)),
        Rust::Call(call) => {
            let Rust::Path(path) = &*call.func else { return false };
            let name = path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
            match name.as_str() {
                "group_id" => false,
                "min" | "max" => call.args.iter().all(is_open),
                name if name.starts_with("group_") || name.starts_with("sub_group_") => {
                    call.args.first().is_some_and(is_open)
                }
                _ => false,
            }
        }
        Rust::MethodCall(call) => match call.method.to_string().as_str() {
            "wrapping_add" | "wrapping_sub" | "wrapping_mul" | "min" | "max" => {
                is_open(&call.receiver) && call.args.iter().all(is_open)
            }
            _ => is_open(&call.receiver),
        },
        _ => false,
    }
}
