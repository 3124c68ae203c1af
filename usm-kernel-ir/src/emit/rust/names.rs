//! The spelling of values and types in Rust, and the uses of variables.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::kernel::{ArrayId, ExprKind, Stmt, StmtKind, VarId, for_each};
use crate::phase::Part;
use crate::scalar::{Literal, Scalar};

pub(super) fn rust_literal(literal: Literal) -> String {
    match literal.ty {
        ty if ty.is_half() => format!("{}::from_bits({})", memory_type(ty), literal.bits),
        Scalar::Bool => (literal.bits != 0).to_string(),
        Scalar::F32 if literal.to_f32().is_finite() => format!("({:?}_f32)", literal.to_f32()),
        Scalar::F64 if literal.to_f64().is_finite() => format!("({:?}_f64)", literal.to_f64()),
        Scalar::F32 => format!("f32::from_bits(0x{:x})", literal.bits),
        Scalar::F64 => format!("f64::from_bits(0x{:x})", literal.bits),
        ty if ty.is_signed() => format!("({}_{})", literal.bits as i64, ty.name()),
        ty => format!("{}_{}", literal.bits, ty.name()),
    }
}

/// The type of values.
pub(super) const fn rust_type(ty: Scalar) -> &'static str {
    match ty {
        Scalar::F16 => "__F16",
        Scalar::Bf16 => "__Bf16",
        _ => ty.name(),
    }
}

pub(super) const fn memory_type(ty: Scalar) -> &'static str {
    if matches!(ty, Scalar::Bool) { "u8" } else { rust_type(ty) }
}

pub(super) fn zero(ty: Scalar) -> String {
    rust_literal(Literal::integer(ty, 0))
}

pub(super) fn zero_stored(ty: Scalar) -> String {
    zero(if ty == Scalar::Bool { Scalar::U8 } else { ty })
}

pub(super) fn variables_of(body: &[&Stmt]) -> Vec<VarId> {
    let mut variables = sets_of(body);
    for stmt in body {
        for_each(core::slice::from_ref(*stmt), &mut |_| (), &mut |expr| {
            if let ExprKind::Variable(id) = expr.kind {
                variables.push(id);
            }
        });
    }
    variables.sort_unstable();
    variables.dedup();
    variables
}

pub(super) fn sets_of(body: &[&Stmt]) -> Vec<VarId> {
    let mut variables = Vec::new();
    for stmt in body {
        for_each(core::slice::from_ref(*stmt), &mut |stmt| variables.extend(stmt.sets()), &mut |_| ());
    }
    variables
}

pub(super) fn count_users(parts: &[Part<'_>], id: ArrayId, users: &mut usize) {
    for part in parts {
        match part {
            Part::Items(body) => {
                let mut uses = false;
                for stmt in body {
                    let stmts = core::slice::from_ref(*stmt);
                    // Private arrays have no atomic operations.
                    let stores =
                        |stmt: &Stmt| matches!(stmt.kind, StmtKind::Store { array, .. } if array == id);
                    for_each(stmts, &mut |stmt| uses |= stores(stmt), &mut |_| ());
                    for_each(stmts, &mut |_| (), &mut |expr| {
                        uses |= matches!(expr.kind, ExprKind::Load(array, _) if array == id)
                    });
                }
                *users += usize::from(uses);
            }
            Part::If(_, then, other) => {
                count_users(then, id, users);
                count_users(other, id, users);
            }
            // A loop returns to its phases.
            Part::While(_, body) | Part::For(.., body) => {
                let mut inside = 0;
                count_users(body, id, &mut inside);
                *users += 2 * inside;
            }
            _ => {}
        }
    }
}
