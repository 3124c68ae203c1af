//! Expressions in C.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Dialect, Writer, plain};
use crate::builtin::Math;
use crate::kernel::{Expr, ExprKind, Query, Space};
use crate::operator::{Binary, Unary};
use crate::scalar::{Literal, Scalar};

impl Writer<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> String {
        let c = self.ty(expr.ty);
        match &expr.kind {
            ExprKind::Literal(literal) => self.literal(*literal),
            ExprKind::Variable(variable) => self.variable_name(*variable),
            ExprKind::Value(value) => {
                let name = format!("{}_p{}", plain(&self.kernel.value(*value).name), value.0);
                if expr.ty == Scalar::Bool { format!("({name} != 0)") } else { name }
            }
            ExprKind::Len(array) => match &self.kernel.array(*array).space {
                Space::Constant(len) | Space::Private(len) => {
                    self.literal(Literal::integer(Scalar::U64, *len))
                }
                Space::Local(len) | Space::Extent(len) => self.expr(&len.clone()),
                _ => format!("len_{}", array.0),
            },
            ExprKind::Query(query, dimension) => self.query(*query, *dimension),
            ExprKind::Load(array, index) => {
                let (index, check) = self.index(*array, index, expr.place);
                if matches!(self.kernel.array(*array).space, Space::Extent(_)) {
                    return match check {
                        Some(check) => format!("({check} ? {index} : 0)"),
                        None => index,
                    };
                }
                let mut load = self.element(*array, &index);
                if let Some(check) = check {
                    // A conditional of narrow integers would have type `int`.
                    load = format!("(({})({check} ? {load} : 0))", self.memory_type(expr.ty));
                }
                if expr.ty == Scalar::Bool { format!("({load} != 0)") } else { load }
            }
            ExprKind::Unary(Unary::Not, operand) if expr.ty == Scalar::Bool => {
                format!("(!{})", self.expr(operand))
            }
            ExprKind::Unary(Unary::Not, operand) => format!("(({c})(~{}))", self.expr(operand)),
            ExprKind::Unary(Unary::Neg, operand) if expr.ty.is_float() => {
                format!("(-{})", self.expr(operand))
            }
            ExprKind::Unary(Unary::Neg, operand) => {
                let wide = self.ty(wide(expr.ty));
                format!("(({c})(({wide})0 - ({wide})({})))", self.expr(operand))
            }
            ExprKind::Binary { operator, left, right } => {
                let (one, two) = (self.expr(left), self.expr(right));
                self.binary(*operator, left.ty, &one, &two, right)
            }
            ExprKind::Cast(operand) => {
                let value = self.expr(operand);
                if operand.ty != expr.ty && (operand.ty.is_half() || expr.ty.is_half()) {
                    return format!("{}({value})", self.half(operand.ty, expr.ty));
                }
                if operand.ty.is_float() && expr.ty.is_integer() {
                    return format!("{}({value})", self.float_to_integer(operand.ty, expr.ty));
                }
                format!("(({c})({value}))")
            }
            ExprKind::Bits(operand) => {
                let value = self.expr(operand);
                let number = if expr.ty.is_integer() { operand.ty } else { expr.ty };
                if number.is_half() {
                    return value;
                }
                let [bits, number] = self.bits_of(number);
                format!("{}({value})", if expr.ty.is_integer() { bits } else { number })
            }
            ExprKind::Select { condition, then, other } => {
                // A conditional of narrow integers would have type `int`, which functions such as
                // `min` do not accept beside a narrow integer.
                format!("(({c})({} ? {} : {}))", self.expr(condition), self.expr(then), self.expr(other))
            }
            ExprKind::Math(Math::Erf, arguments)
                if expr.ty == Scalar::F32 && self.dialect == Dialect::OpenCl =>
            {
                let argument = self.expr(&arguments[0]);
                format!("{}({argument})", self.error_function())
            }
            ExprKind::Math(function, arguments) => {
                let arguments: Vec<String> = arguments.iter().map(|argument| self.expr(argument)).collect();
                let (builtin, is_cuda) = (function.builtin(), self.dialect == Dialect::Cuda);
                let names = if is_cuda { builtin.cuda } else { builtin.host.filter(|_| self.host) };
                let name = names.map_or(builtin.c, |names| names[usize::from(expr.ty.bits() == 64)]);
                let suffix = if is_cuda && expr.ty == Scalar::F32 { "f" } else { "" };
                let call = format!("{name}{suffix}({})", arguments.join(", "));
                // Some of these have type `int`.
                if function.counts() { format!("(({c}){call})") } else { call }
            }
        }
    }

    fn literal(&mut self, literal: Literal) -> String {
        match literal.ty {
            Scalar::Bool => if literal.bits == 0 { "false" } else { "true" }.to_string(),
            Scalar::F32 => {
                let value = literal.to_f32();
                if value.is_finite() {
                    format!("({value:?}f)")
                } else {
                    let cast = if self.dialect == Dialect::OpenCl { "as_float" } else { "__uint_as_float" };
                    format!("{cast}(0x{:x}u)", literal.bits)
                }
            }
            Scalar::F64 => {
                let value = literal.to_f64();
                if value.is_finite() {
                    format!("({value:?})")
                } else if self.dialect == Dialect::OpenCl {
                    format!("as_double(0x{:x}ul)", literal.bits)
                } else {
                    format!("__longlong_as_double(0x{:x}ll)", literal.bits)
                }
            }
            Scalar::U64 => {
                format!("{}{}", literal.bits, if self.dialect == Dialect::OpenCl { "ul" } else { "ull" })
            }
            Scalar::I64 => {
                let suffix = if self.dialect == Dialect::OpenCl { "ul" } else { "ull" };
                format!("(({})0x{:x}{suffix})", self.ty(Scalar::I64), literal.bits)
            }
            Scalar::U32 => format!("{}u", literal.bits),
            ty if ty.is_signed() => format!("(({}){})", self.ty(ty), literal.bits as i64),
            ty => format!("(({}){}u)", self.ty(ty), literal.bits),
        }
    }

    pub(super) fn query(&self, query: Query, dimension: u8) -> String {
        // The last dimension is the fastest; it is dimension 0 of both languages.
        let axis = self.kernel.dimensions - 1 - dimension;
        if self.has_guard && query == Query::GlobalSize {
            let is_open_cl = self.dialect == Dialect::OpenCl;
            return if is_open_cl { format!("own_global_size({axis})") } else { format!("own_size_{axis}") };
        }
        if self.dialect == Dialect::OpenCl {
            let name = match query {
                Query::GlobalId => "get_global_id",
                Query::LocalId => "get_local_id",
                Query::GroupId => "get_group_id",
                Query::GlobalSize => "get_global_size",
                Query::LocalSize => "get_local_size",
                Query::Groups => "get_num_groups",
            };
            return format!("(ulong){name}({axis})");
        }
        let (axis, wide) = (["x", "y", "z"][usize::from(axis.min(2))], "(unsigned long long)");
        match query {
            Query::GlobalId => format!("({wide}blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis})"),
            Query::LocalId => format!("{wide}threadIdx.{axis}"),
            Query::GroupId => format!("{wide}blockIdx.{axis}"),
            Query::GlobalSize => format!("({wide}gridDim.{axis} * blockDim.{axis})"),
            Query::LocalSize => format!("{wide}blockDim.{axis}"),
            Query::Groups => format!("{wide}gridDim.{axis}"),
        }
    }

    fn binary(&mut self, operator: Binary, ty: Scalar, one: &str, two: &str, right: &Expr) -> String {
        let c = self.ty(ty);
        let symbol = match operator {
            Binary::Add => "+",
            Binary::Sub => "-",
            Binary::Mul => "*",
            Binary::Div => "/",
            Binary::Rem => "%",
            Binary::And => "&",
            Binary::Or => "|",
            Binary::Xor => "^",
            Binary::Shl => "<<",
            Binary::Shr => ">>",
            Binary::Eq => "==",
            Binary::Ne => "!=",
            Binary::Lt => "<",
            Binary::Le => "<=",
            Binary::Gt => ">",
            Binary::Ge => ">=",
            Binary::AndThen => "&&",
            Binary::OrElse => "||",
            Binary::Min => "min",
            Binary::Max => "max",
        };
        match operator {
            Binary::Add | Binary::Sub | Binary::Mul
                if !ty.is_float() && !matches!(ty, Scalar::U32 | Scalar::U64) =>
            {
                // Avoids signed overflow and promotion to a signed type.
                let wide = self.ty(wide(ty));
                format!("(({c})(({wide}){one} {symbol} ({wide}){two}))")
            }
            Binary::Div | Binary::Rem if ty.is_integer() => {
                let plain = matches!(right.kind, ExprKind::Literal(literal) if literal.bits != 0 && (literal.bits as i64) > 0);
                if plain {
                    return format!("(({c})({one} {symbol} {two}))");
                }
                format!("{}({one}, {two})", self.division(operator, ty, symbol))
            }
            Binary::Rem => {
                let suffix = if self.dialect == Dialect::Cuda && ty == Scalar::F32 { "f" } else { "" };
                format!("fmod{suffix}({one}, {two})")
            }
            Binary::Shl => {
                let (wide, mask) = (self.ty(wide(ty)), ty.bits() - 1);
                format!("(({c})(({wide}){one} << ({two} & {mask})))")
            }
            Binary::Shr => format!("(({c})({one} >> ({two} & {})))", ty.bits() - 1),
            Binary::Min | Binary::Max if ty.is_float() => {
                let suffix = if self.dialect == Dialect::Cuda && ty == Scalar::F32 { "f" } else { "" };
                format!("f{symbol}{suffix}({one}, {two})")
            }
            Binary::Min | Binary::Max => format!("(({c}){symbol}({one}, {two}))"),
            Binary::And | Binary::Or | Binary::Xor => format!("(({c})({one} {symbol} {two}))"),
            _ => format!("({one} {symbol} {two})"),
        }
    }

    /// Writes a function with the meaning of [`Binary::Div`] and [`Binary::Rem`].
    fn division(&mut self, operator: Binary, ty: Scalar, symbol: &str) -> String {
        let (c, name) = (self.ty(ty), format!("own_{}_{ty}", operator.name()));
        let fallback = if operator == Binary::Div { "a" } else { "0" };
        let least = if ty.is_signed() {
            let least = self.literal(Literal::integer(ty, 1 << (ty.bits() - 1)));
            format!(" || (b == -1 && a == {least})")
        } else {
            String::new()
        };
        let qualifiers = self.qualifiers();
        self.helpers.insert(format!(
            "{qualifiers}{c} {name}({c} a, {c} b)\n{{\n    return b == 0{least} ? ({c}){fallback} : ({c})(a {symbol} b);\n}}\n"
        ));
        name
    }

    /// Writes the error function of `float` by two polynomials, which compilers vectorise. It is
    /// wrong by at most 2 units in the last place, that of OpenCL C by 16.
    fn error_function(&mut self) -> &'static str {
        let qualifiers = self.qualifiers();
        self.helpers.insert(format!("{qualifiers}{ERROR_FUNCTION}"));
        "own_erf_f32"
    }

    /// Writes a function with the meaning of a [`ExprKind::Cast`] from floating point.
    fn float_to_integer(&mut self, from: Scalar, to: Scalar) -> String {
        let (c, float, name) = (self.ty(to), self.ty(from), format!("own_{to}_{from}"));
        let bits = if to.is_signed() { to.bits() - 1 } else { to.bits() };
        let most = if bits == 64 { u64::MAX } else { (1_u64 << bits) - 1 };
        let (least, most) = (
            self.literal(Literal::integer(to, if to.is_signed() { 1 << (to.bits() - 1) } else { 0 })),
            self.literal(Literal::integer(to, most)),
        );
        let limit = libm::ldexp(1.0, bits as i32);
        let suffix = if from == Scalar::F32 { "f" } else { "" };
        let bottom =
            if to.is_signed() { format!("x <= -{limit:?}{suffix}") } else { format!("x <= 0.0{suffix}") };
        let qualifiers = self.qualifiers();
        self.helpers.insert(format!(
            "{qualifiers}{c} {name}({float} x)\n{{\n    return x != x ? ({c})0 : {bottom} ? {least} : x >= {limit:?}{suffix} ? {most} : ({c})x;\n}}\n"
        ));
        name
    }
}

/// Below 0.9277 a polynomial, else 1 minus a power of e, which is 1 from 4 on.
const ERROR_FUNCTION: &str = "float own_erf_f32(float x)
{
    float a = fabs(x), s = x * x;
    float b = a < 4.0f ? a : 4.0f, t = b * b;
    float p = (-1.72853470e-5f * b + 3.83197126e-4f) * t + (-3.88396438e-3f * b + 2.42546219e-2f);
    p = ((p * b - 1.06777877e-1f) * b - 6.34846687e-1f) * b - 1.28717512e-1f;
    float q = ((((-5.96761703e-4f * s + 4.99119423e-3f) * s - 2.67681349e-2f) * s + 1.12819925e-1f) * s - 3.76125336e-1f) * s + 1.28379166e-1f;
    return a > 0.927734375f ? copysign(1.0f - exp(p * b - b), x) : q * x + x;
}
";

/// The unsigned type for arithmetic of this type.
const fn wide(ty: Scalar) -> Scalar {
    if ty.bits() == 64 { Scalar::U64 } else { Scalar::U32 }
}
