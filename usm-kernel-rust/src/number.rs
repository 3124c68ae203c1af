//! Methods of numbers that are made of other operators.

use syn::{Expr as Rust, ExprMethodCall, Result};
use usm_kernel_ir::{Binary, Expr, ExprKind, Literal, Math, Place, Scalar, Stmt, StmtKind, Unary};

use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;

/// The names, with the numbers of their arguments and the types that have them.
const METHODS: &[(&str, usize, Types)] = &[
    ("clamp", 2, Types::All),
    ("signum", 0, Types::Signed),
    ("abs_diff", 1, Types::Integers),
    ("div_ceil", 1, Types::Unsigned),
    ("rem_euclid", 1, Types::All),
    ("saturating_add", 1, Types::Unsigned),
    ("saturating_sub", 1, Types::Unsigned),
    ("rotate_left", 1, Types::Integers),
    ("rotate_right", 1, Types::Integers),
    ("count_ones", 0, Types::Integers),
    ("count_zeros", 0, Types::Integers),
    ("leading_zeros", 0, Types::Integers),
    ("trailing_zeros", 0, Types::Integers),
    ("ilog2", 0, Types::Integers),
    ("is_power_of_two", 0, Types::Unsigned),
    ("div_euclid", 1, Types::All),
    ("pow", 1, Types::Integers),
    ("powi", 1, Types::Floats),
    ("wrapping_neg", 0, Types::Integers),
    ("wrapping_shl", 1, Types::Integers),
    ("wrapping_shr", 1, Types::Integers),
    ("recip", 0, Types::Floats),
    ("to_degrees", 0, Types::Floats),
    ("to_radians", 0, Types::Floats),
    ("fract", 0, Types::Floats),
];

/// The types of numbers that have a method.
#[derive(Clone, Copy)]
enum Types {
    All,
    Signed,
    Integers,
    Unsigned,
    Floats,
}

impl Types {
    const fn has(self, ty: Scalar) -> bool {
        match self {
            Self::All => ty.is_integer() || ty.is_float(),
            Self::Signed => ty.is_signed() || ty.is_float(),
            Self::Integers => ty.is_integer(),
            Self::Unsigned => ty.is_integer() && !ty.is_signed(),
            Self::Floats => ty.is_float(),
        }
    }
}

/// Makes expressions of a type at a place.
#[derive(Clone, Copy)]
pub(crate) struct With {
    pub(crate) ty: Scalar,
    pub(crate) at: Place,
}

impl With {
    pub(crate) fn two(self, operator: Binary, one: Expr, two: Expr) -> Expr {
        Expr::binary(operator, one, two, self.at)
    }

    pub(crate) fn sub(self, one: Expr, two: Expr) -> Expr {
        self.two(Binary::Sub, one, two)
    }

    fn less(self, one: &Expr, two: &Expr) -> Expr {
        self.two(Binary::Lt, one.clone(), two.clone())
    }

    pub(crate) fn math(self, function: Math, arguments: Vec<Expr>) -> Expr {
        Expr { kind: ExprKind::Math(function, arguments), ty: self.ty, place: self.at }
    }

    pub(crate) fn select(self, condition: Expr, one: Expr, two: Expr) -> Expr {
        let kind =
            ExprKind::Select { condition: Box::new(condition), then: Box::new(one), other: Box::new(two) };
        Expr { kind, ty: self.ty, place: self.at }
    }

    fn cast(self, value: Expr) -> Expr {
        if value.ty == self.ty {
            return value;
        }
        Expr { kind: ExprKind::Cast(Box::new(value)), ty: self.ty, place: self.at }
    }

    fn unsigned(self, value: Expr) -> Expr {
        Self { ty: self.ty.unsigned(), ..self }.cast(value)
    }

    fn number(self, value: u64) -> Expr {
        Expr::literal(Literal::integer(self.ty, value), self.at)
    }

    pub(crate) fn one(self) -> Expr {
        match self.ty {
            Scalar::F32 => Expr::literal(Literal::f32(1.0), self.at),
            Scalar::F64 => Expr::literal(Literal::f64(1.0), self.at),
            _ => self.number(1),
        }
    }

    pub(crate) fn zero(self) -> Expr {
        match self.ty {
            Scalar::F32 => Expr::literal(Literal::f32(0.0), self.at),
            Scalar::F64 => Expr::literal(Literal::f64(0.0), self.at),
            _ => self.number(0),
        }
    }

    /// The value in a variable, so that it is computed once.
    pub(crate) fn reuse(self, value: Expr, name: &str, reader: &mut Reader) -> Expr {
        if matches!(value.kind, ExprKind::Variable(_) | ExprKind::Literal(_) | ExprKind::Value(_)) {
            return value;
        }
        let variable = reader.add_hidden(name, value.ty, self.at);
        let ty = value.ty;
        reader.before.push(Stmt::new(StmtKind::Set(variable, value), self.at));
        Expr::variable(variable, ty, self.at)
    }

    fn sign(self, value: Expr) -> Expr {
        if self.ty.is_float() {
            let arguments = vec![self.one(), value.clone()];
            let sign = Expr { kind: ExprKind::Math(Math::CopySign, arguments), ty: self.ty, place: self.at };
            return self.select(self.two(Binary::Eq, value.clone(), value.clone()), sign, value);
        }
        let negative = self.select(self.less(&value, &self.number(0)), self.number(u64::MAX), self.number(0));
        self.select(self.less(&self.number(0), &value), self.number(1), negative)
    }

    /// The remainder that is not negative.
    fn remainder(self, value: Expr, by: Expr, reader: &mut Reader) -> Expr {
        let rest = self.two(Binary::Rem, value, by.clone());
        if !self.ty.is_signed() && !self.ty.is_float() {
            return rest;
        }
        let rest = self.reuse(rest, "rem_euclid", reader);
        let up = self.two(Binary::Add, rest.clone(), by.clone());
        let down = self.sub(rest.clone(), by.clone());
        let more = self.select(self.less(&by, &self.zero()), down, up);
        self.select(self.less(&rest, &self.zero()), more, rest)
    }

    /// The quotient that belongs to [`remainder`](Self::remainder).
    fn quotient(self, value: Expr, by: &Expr, reader: &mut Reader) -> Expr {
        let Self { ty, at } = self;
        let quotient = self.two(Binary::Div, value.clone(), by.clone());
        let quotient = match ty.is_float() {
            true => Expr { kind: ExprKind::Math(Math::Trunc, vec![quotient]), ty, place: at },
            false => quotient,
        };
        let rest = self.two(Binary::Rem, value, by.clone());
        let quotient = self.reuse(quotient, "div_euclid", reader);
        if !ty.is_signed() && !ty.is_float() {
            return quotient;
        }
        let down = self.sub(quotient.clone(), self.one());
        let up = self.two(Binary::Add, quotient.clone(), self.one());
        let further = self.select(self.less(&self.zero(), by), down, up);
        self.select(self.less(&rest, &self.zero()), further, quotient)
    }

    fn rotate(self, value: Expr, by: &Expr, is_left: bool) -> Expr {
        let Self { ty, at } = self;
        let wide = Self { ty: ty.unsigned(), at };
        let by = wide.cast(by.clone());
        let back = Expr::unary(Unary::Neg, Self { ty: signed(wide.ty), at }.cast(by.clone()), at);
        let (left, right) = if is_left { (by, wide.cast(back)) } else { (wide.cast(back), by) };
        let bits = self.unsigned(value);
        let (high, low) = (wide.two(Binary::Shl, bits.clone(), left), wide.two(Binary::Shr, bits, right));
        self.cast(wide.two(Binary::Or, high, low))
    }

    /// A power of an integer by squares; it wraps.
    fn power(self, value: Expr, by: &Expr, reader: &mut Reader) -> Expr {
        let at = self.at;
        if let ExprKind::Literal(by) = by.kind {
            let (mut result, mut square, mut rest) = (None, value, by.bits);
            while rest > 0 {
                if rest & 1 == 1 {
                    let product = match result {
                        Some(product) => self.two(Binary::Mul, product, square.clone()),
                        None => square.clone(),
                    };
                    result = Some(self.reuse(product, "power", reader));
                }
                rest >>= 1;
                if rest > 0 {
                    square = self.reuse(self.two(Binary::Mul, square.clone(), square), "square", reader);
                }
            }
            return result.unwrap_or_else(|| self.number(1));
        }
        let variable = |name, ty, value, reader: &mut Reader| {
            let id = reader.add_hidden(name, ty, at);
            reader.before.push(Stmt::new(StmtKind::Set(id, value), at));
            (id, Expr::variable(id, ty, at))
        };
        let (square_id, square) = variable("square", self.ty, value, reader);
        let (result_id, result) = variable("power", self.ty, self.number(1), reader);
        let (rest_id, rest) = variable("rest", Scalar::U32, by.clone(), reader);
        let number = |value| Expr::literal(Literal::integer(Scalar::U32, value), at);
        let odd = Expr::binary(Binary::And, rest.clone(), number(1), at);
        let odd = Expr::binary(Binary::Ne, odd, number(0), at);
        let set = |id, value| Stmt::new(StmtKind::Set(id, value), at);
        let product = self.two(Binary::Mul, result.clone(), square.clone());
        let body = vec![
            Stmt::new(
                StmtKind::If { condition: odd, then: vec![set(result_id, product)], other: Vec::new() },
                at,
            ),
            set(square_id, self.two(Binary::Mul, square.clone(), square)),
            set(rest_id, Expr::binary(Binary::Shr, rest.clone(), number(1), at)),
        ];
        let more = Expr::binary(Binary::Gt, rest, number(0), at);
        reader.before.push(Stmt::new(StmtKind::While(more, body), at));
        result
    }

    /// A number of bits, which is a `u32`. All are made of the number of ones.
    fn count(self, name: &str, value: Expr, reader: &mut Reader) -> Expr {
        let own = self.ty.bits();
        let wide = Self { ty: if own == 64 { Scalar::U64 } else { Scalar::U32 }, ..self };
        let mut bits = wide.cast(self.unsigned(value));
        match name {
            "leading_zeros" => {
                bits = wide.reuse(bits, name, reader);
                for by in [1, 2, 4, 8, 16, 32].into_iter().filter(|by| *by < own) {
                    let shift = wide.two(Binary::Shr, bits.clone(), wide.number(u64::from(by)));
                    bits = wide.reuse(wide.two(Binary::Or, bits, shift), name, reader);
                }
            }
            "trailing_zeros" => {
                bits = wide.reuse(bits, name, reader);
                let negative = wide.sub(wide.number(0), bits.clone());
                let lowest = wide.two(Binary::And, bits, negative);
                bits = wide.sub(lowest, wide.number(1));
            }
            _ => {}
        }
        let ones = wide.math(Math::CountOnes, vec![bits]);
        let own = wide.number(u64::from(own));
        let number = match name {
            "count_zeros" | "leading_zeros" => wide.sub(own, ones),
            "trailing_zeros" => wide.two(Binary::Min, ones, own),
            _ => ones,
        };
        Self { ty: Scalar::U32, ..self }.cast(number)
    }

    /// What a method computes; each of its operands is read as often as needed.
    fn expand(self, name: &str, value: Expr, others: &[Expr], reader: &mut Reader) -> Expr {
        let Self { ty, at } = self;
        match (name, others) {
            ("clamp", [low, high]) => {
                let below = self.select(self.less(&value, low), low.clone(), value.clone());
                self.select(self.less(high, &value), high.clone(), below)
            }
            ("signum", _) => self.sign(value),
            ("abs_diff", [other]) => {
                let (one, two) = (self.unsigned(value.clone()), self.unsigned(other.clone()));
                let wide = Self { ty: ty.unsigned(), at };
                let (up, down) = (wide.sub(two.clone(), one.clone()), wide.sub(one, two));
                wide.select(self.less(&value, other), up, down)
            }
            ("div_ceil", [by]) => {
                let quotient = self.two(Binary::Div, value.clone(), by.clone());
                let rest = self.two(Binary::Rem, value, by.clone());
                let more = self.two(Binary::Add, quotient.clone(), self.number(1));
                self.select(Expr::binary(Binary::Eq, rest, self.number(0), at), quotient, more)
            }
            ("rem_euclid", [by]) => self.remainder(value, by.clone(), reader),
            ("saturating_add", [other]) => {
                let sum = self.reuse(self.two(Binary::Add, value.clone(), other.clone()), name, reader);
                self.select(self.less(&sum, &value), self.number(u64::MAX), sum)
            }
            ("saturating_sub", [other]) => {
                self.select(self.less(&value, other), self.number(0), self.sub(value.clone(), other.clone()))
            }
            ("rotate_left" | "rotate_right", [by]) => self.rotate(value, by, name == "rotate_left"),
            ("pow", [by]) => self.power(value, by, reader),
            ("powi", [by]) => {
                let by = self.cast(by.clone());
                Expr { kind: ExprKind::Math(Math::Pow, vec![value, by]), ty, place: at }
            }
            ("div_euclid", [by]) => self.quotient(value, by, reader),
            ("ilog2", _) => {
                let zeros = self.count("leading_zeros", value, reader);
                let last = Expr::literal(Literal::integer(Scalar::U32, u64::from(ty.bits()) - 1), at);
                Expr::binary(Binary::Sub, last, zeros, at)
            }
            ("is_power_of_two", _) => {
                let below = self.two(Binary::And, value.clone(), self.sub(value.clone(), self.number(1)));
                let is = |operator, one| Expr::binary(operator, one, self.number(0), at);
                Expr::binary(Binary::And, is(Binary::Ne, value), is(Binary::Eq, below), at)
            }
            ("wrapping_neg", _) => self.sub(self.number(0), value),
            ("wrapping_shl", [by]) => self.two(Binary::Shl, value, by.clone()),
            ("wrapping_shr", [by]) => self.two(Binary::Shr, value, by.clone()),
            ("to_degrees" | "to_radians", _) => {
                // As in std: the factor is rounded once.
                let (narrow, wide) = match name {
                    "to_degrees" => (57.295_78_f32, 180.0 / core::f64::consts::PI),
                    _ => (core::f32::consts::PI / 180.0, core::f64::consts::PI / 180.0),
                };
                let factor = if ty == Scalar::F32 { Literal::f32(narrow) } else { Literal::f64(wide) };
                self.two(Binary::Mul, value, Expr::literal(factor, at))
            }
            ("recip", _) => self.two(Binary::Div, self.one(), value),
            ("fract", _) => {
                let whole = Expr { kind: ExprKind::Math(Math::Trunc, vec![value.clone()]), ty, place: at };
                self.sub(value, whole)
            }
            _ => self.count(name, value, reader),
        }
    }
}

impl Reader {
    /// Reads such a method; `None` for other names.
    pub(crate) fn read_number_method(
        &mut self,
        call: &ExprMethodCall,
        name: &str,
        hint: Option<Scalar>,
    ) -> Result<Option<Expr>> {
        let Some((_, count, types)) = METHODS.iter().find(|(method, ..)| *method == name) else {
            return Ok(None);
        };
        let arguments: Vec<&Rust> = call.args.iter().collect();
        if arguments.len() != *count {
            let plural = if *count == 1 { "" } else { "s" };
            return refuse(call.method.span(), format!("`{name}` has {count} argument{plural}"));
        }
        let at = place_of(call.method.span());
        // The type of these results says nothing about the operand.
        let is_count =
            matches!(name, "abs_diff" | "count_ones" | "count_zeros" | "leading_zeros" | "trailing_zeros")
                || matches!(name, "ilog2" | "is_power_of_two");
        let hint = hint.filter(|_| !is_count);
        let (mut value, others) = match (name, &arguments[..]) {
            ("clamp", [low, high]) => {
                let (mut value, mut low) = self.read_pair(&call.receiver, low, hint)?;
                let ty = value.ty;
                let high =
                    self.read_after(&mut [&mut value, &mut low], |reader| reader.read_typed(high, ty))?;
                (value, vec![low, high])
            }
            ("rotate_left" | "rotate_right" | "wrapping_shl" | "wrapping_shr" | "pow" | "powi", [by]) => {
                let by_type = if name == "powi" { Scalar::I32 } else { Scalar::U32 };
                let mut value = self.read_expr(&call.receiver, hint)?;
                let by = self.read_after(&mut [&mut value], |reader| reader.read_typed(by, by_type))?;
                (value, vec![by])
            }
            (_, [other]) => {
                let (value, other) = self.read_pair(&call.receiver, other, hint)?;
                (value, vec![other])
            }
            _ => (self.read_expr(&call.receiver, hint)?, Vec::new()),
        };
        let ty = value.ty;
        if !types.has(ty) {
            return refuse(call.method.span(), format!("{ty} has no `{name}`"));
        }
        let mut others: Vec<Expr> = others;
        let with = With { ty, at };
        value = with.reuse(value, name, self);
        for other in &mut others {
            *other = with.reuse(other.clone(), name, self);
        }
        Ok(Some(with.expand(name, value, &others, self)))
    }
}

const fn signed(ty: Scalar) -> Scalar {
    match ty.bits() {
        8 => Scalar::I8,
        16 => Scalar::I16,
        32 => Scalar::I32,
        _ => Scalar::I64,
    }
}
