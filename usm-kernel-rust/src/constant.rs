//! Constants: items beside kernels, and those of the scalar types, such as `u32::MAX`.

use syn::Result;
use syn::spanned::Spanned as _;
use usm_kernel_ir::{Binary, Expr, ExprKind, Literal, Scalar, Unary};

use crate::reader::Reader;
use crate::refusal::refuse;
use crate::types::scalar;

impl Reader {
    /// Reads the value of a constant.
    pub(crate) fn read_constant(&mut self, item: &syn::ItemConst) -> Result<Literal> {
        let value = self.read_typed(&item.expr, scalar(&item.ty)?)?;
        fold(&value).map_or_else(
            || refuse(item.expr.span(), "a constant of kernels is a number, or a sum or product of numbers"),
            Ok,
        )
    }
}

/// The constant of a type, by its path of two names.
pub(crate) fn of_type(path: &syn::ExprPath) -> Result<Literal> {
    let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    // `f32::consts::PI`, also behind `core` or `std`.
    let names = match &names[..] {
        [first, rest @ ..] if matches!(first.as_str(), "core" | "std") && rest.len() > 1 => rest,
        all => all,
    };
    if let [ty, module, name] = names {
        if module == "consts" {
            return of_mathematics(path, ty, name);
        }
    }
    let ty = match names {
        [ty, _] if path.path.leading_colon.is_none() && path.qself.is_none() => {
            Scalar::from_name(if ty == "usize" { "u64" } else { ty })
        }
        _ => None,
    };
    let Some(ty) = ty else {
        return refuse(path.span(), "a kernel sees nothing outside of itself: make it a parameter");
    };
    let name = names[1].as_str();
    let literal = match ty {
        Scalar::Bool => None,
        Scalar::F32 => float(name, [f32::MIN_POSITIVE, f32::MAX, f32::EPSILON, f32::INFINITY, f32::NAN])
            .map(Literal::f32),
        Scalar::F64 => float(name, [f64::MIN_POSITIVE, f64::MAX, f64::EPSILON, f64::INFINITY, f64::NAN])
            .map(Literal::f64),
        ty => integer(name, ty),
    };
    literal.map_or_else(
        || {
            let names = match ty {
                Scalar::Bool => "bool has no constants".to_string(),
                ty if ty.is_float() => {
                    format!("{ty} has MIN, MAX, MIN_POSITIVE, EPSILON, INFINITY, NEG_INFINITY and NAN here")
                }
                ty => format!("{ty} has MIN, MAX and BITS here"),
            };
            refuse(path.span(), format!("`{name}` is unknown: {names}"))
        },
        Ok,
    )
}

fn of_mathematics(path: &syn::ExprPath, ty: &str, name: &str) -> Result<Literal> {
    macro_rules! named {
        ($($name:ident)*) => {
            match name {
                $(stringify!($name) => (core::f32::consts::$name, core::f64::consts::$name),)*
                _ => return refuse(path.span(), format!("`{name}` is unknown: consts has {}", stringify!($($name),*))),
            }
        };
    }
    let (narrow, wide) = named! {
        PI TAU E SQRT_2 LN_2 LN_10 LOG2_E LOG2_10 LOG10_E LOG10_2 FRAC_1_PI FRAC_2_PI FRAC_1_SQRT_2 FRAC_2_SQRT_PI
        FRAC_PI_2 FRAC_PI_3 FRAC_PI_4 FRAC_PI_6 FRAC_PI_8
    };
    match ty {
        "f32" => Ok(Literal::f32(narrow)),
        "f64" => Ok(Literal::f64(wide)),
        _ => refuse(path.span(), "f32 and f64 have `consts`"),
    }
}

fn integer(name: &str, ty: Scalar) -> Option<Literal> {
    let lowest = if ty.is_signed() { 1_u64 << (ty.bits() - 1) } else { 0 };
    Some(match name {
        "MIN" => Literal::integer(ty, lowest),
        "MAX" => Literal::integer(ty, !lowest),
        "BITS" => Literal::integer(Scalar::U32, ty.bits().into()),
        _ => return None,
    })
}

fn float<T: core::ops::Neg<Output = T>>(
    name: &str,
    [least, largest, epsilon, infinity, nan]: [T; 5],
) -> Option<T> {
    Some(match name {
        "MIN" => -largest,
        "MAX" => largest,
        "MIN_POSITIVE" => least,
        "EPSILON" => epsilon,
        "INFINITY" => infinity,
        "NEG_INFINITY" => -infinity,
        "NAN" => nan,
        _ => return None,
    })
}

pub(crate) fn fold(value: &Expr) -> Option<Literal> {
    match &value.kind {
        ExprKind::Literal(literal) => Some(*literal),
        ExprKind::Unary(Unary::Neg, inner) => {
            let inner = fold(inner)?;
            Some(match value.ty {
                Scalar::F32 => Literal::f32(-inner.to_f32()),
                Scalar::F64 => Literal::f64(-inner.to_f64()),
                ty => Literal::integer(ty, inner.bits.wrapping_neg()),
            })
        }
        ExprKind::Cast(inner) if value.ty.is_integer() && inner.ty.is_integer() => {
            fold(inner).map(|inner| Literal::integer(value.ty, inner.bits))
        }
        ExprKind::Binary { operator, left: one, right: two } if value.ty.is_integer() => {
            let (one, two) = (fold(one)?, fold(two)?);
            let bits = match operator {
                Binary::Add => one.bits.wrapping_add(two.bits),
                Binary::Sub => one.bits.wrapping_sub(two.bits),
                Binary::Mul => one.bits.wrapping_mul(two.bits),
                Binary::Div if !one.ty.is_signed() => one.bits.checked_div(two.bits)?,
                Binary::Shl => one.bits.checked_shl(two.bits as u32)?,
                _ => return None,
            };
            Some(Literal::integer(value.ty, bits))
        }
        _ => None,
    }
}
