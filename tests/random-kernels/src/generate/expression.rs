//! Random expressions.

use usm_kernel_ir::{Binary, Expr, ExprKind, Literal, Math, Query, Scalar, Space, Unary, ValueId, VarId};

use super::{Generator, State, TYPES, computed, widened};

/// Integer operators whose result has the operands' type.
const OF_INTEGERS: &[Binary] = &[
    Binary::Add,
    Binary::Sub,
    Binary::Mul,
    Binary::Div,
    Binary::Rem,
    Binary::And,
    Binary::Or,
    Binary::Xor,
    Binary::Min,
    Binary::Max,
];
const COMPARISONS: &[Binary] = &[Binary::Eq, Binary::Ne, Binary::Lt, Binary::Le, Binary::Gt, Binary::Ge];
const ROUNDINGS: &[Math] = &[Math::Abs, Math::Floor, Math::Ceil, Math::Trunc, Math::Round, Math::RoundEven];
const QUERIES: &[Query] = Query::ALL;

impl Generator {
    /// A value of this type, of at most `depth` levels.
    pub(crate) fn expr(&mut self, ty: Scalar, depth: u32) -> Expr {
        if depth == 0 || self.random.percent(20) {
            return self.leaf(ty);
        }
        let place = self.place();
        if self.random.percent(8) {
            let condition = self.expr(Scalar::Bool, depth - 1);
            let (one, two) = (self.expr(ty, depth - 1), self.expr(ty, depth - 1));
            return self.select(condition, one, two);
        }
        match ty {
            Scalar::Bool => self.truth(depth),
            _ if ty.is_float() => self.float(ty, depth),
            _ => match self.random.below(10) {
                0 => {
                    let from = self.scalar();
                    let value = self.expr(from, depth - 1);
                    value.cast(ty, place)
                }
                1 => {
                    let operator =
                        if ty.is_signed() && self.random.percent(50) { Unary::Neg } else { Unary::Not };
                    Expr::unary(operator, self.expr(ty, depth - 1), place)
                }
                2 => {
                    let by = *self.random.pick(&Scalar::ALL[1..9]);
                    let operator = *self.random.pick(&[Binary::Shl, Binary::Shr]);
                    let (one, two) = (self.expr(ty, depth - 1), self.expr(by, depth - 1));
                    Expr::binary(operator, one, two, place)
                }
                3 if matches!(ty, Scalar::U32 | Scalar::U64) && self.random.percent(50) => {
                    let float = if ty == Scalar::U32 { Scalar::F32 } else { Scalar::F64 };
                    let value = self.expr(float, depth - 1);
                    self.bits_of(value)
                }
                3 => {
                    // Converts to a float and back, with one rounding.
                    let float = *self.random.pick(&[Scalar::F32, Scalar::F64]);
                    let from = *self.random.pick(&Scalar::ALL[1..9]);
                    let value = self.expr(from, depth - 1);
                    value.cast(float, place).cast(ty, place)
                }
                _ => {
                    let operator = *self.random.pick(OF_INTEGERS);
                    let (one, two) = (self.expr(ty, depth - 1), self.expr(ty, depth - 1));
                    Expr::binary(operator, one, two, place)
                }
            },
        }
    }

    fn truth(&mut self, depth: u32) -> Expr {
        let place = self.place();
        match self.random.below(6) {
            0 => Expr::unary(Unary::Not, self.expr(Scalar::Bool, depth - 1), place),
            1 | 2 => {
                let all = [
                    Binary::AndThen,
                    Binary::OrElse,
                    Binary::And,
                    Binary::Or,
                    Binary::Xor,
                    Binary::Eq,
                    Binary::Ne,
                ];
                let operator = *self.random.pick(&all);
                let (one, two) = (self.expr(Scalar::Bool, depth - 1), self.expr(Scalar::Bool, depth - 1));
                Expr::binary(operator, one, two, place)
            }
            _ => {
                let ty = *self.random.pick(&TYPES[1..]);
                let operator = *self.random.pick(COMPARISONS);
                let (one, two) = (self.expr(ty, depth - 1), self.expr(ty, depth - 1));
                Expr::binary(operator, one, two, place)
            }
        }
    }

    fn float(&mut self, ty: Scalar, depth: u32) -> Expr {
        let place = self.place();
        let small =
            |value: f64| if ty == Scalar::F32 { Literal::f32(value as f32) } else { Literal::f64(value) };
        match self.random.below(9) {
            0 => Expr::unary(Unary::Neg, self.expr(ty, depth - 1), place),
            1 => {
                let value = *self.random.pick(&[-2.0, -1.0, 0.5, 2.0, 3.0]);
                let by = Expr::literal(small(value), place);
                Expr::binary(Binary::Mul, self.expr(ty, depth - 1), by, place)
            }
            2 => {
                let (operator, value) =
                    *self.random.pick(&[(Binary::Div, 2.0), (Binary::Rem, 7.0), (Binary::Rem, -3.0)]);
                let by = Expr::literal(small(value), place);
                Expr::binary(operator, self.expr(ty, depth - 1), by, place)
            }
            3 => {
                let argument = self.expr(ty, depth - 1);
                Expr { kind: ExprKind::Math(*self.random.pick(ROUNDINGS), vec![argument]), ty, place }
            }
            4 if self.random.percent(50) => {
                // Whole numbers, in which only the lowest bits of the mantissa change.
                let value = self.expr(ty, depth - 1);
                let whole = self.bits_of(value);
                let one = Expr::literal(Literal::integer(whole.ty, 3), place);
                Expr::binary(Binary::Xor, whole, one, place).bits(ty, place)
            }
            4 => {
                let from = *self.random.pick(&TYPES[1..]);
                let value = self.expr(from, depth - 1).cast(ty, place);
                self.tame(value)
            }
            _ => {
                let operator = *self.random.pick(&[Binary::Add, Binary::Sub, Binary::Min, Binary::Max]);
                let (one, two) = (self.expr(ty, depth - 1), self.expr(ty, depth - 1));
                Expr::binary(operator, one, two, place)
            }
        }
    }

    /// The bits of a float, which is a whole number around 1,024 first: no device has another NaN
    /// or zero, or flushes it.
    fn bits_of(&mut self, value: Expr) -> Expr {
        let (ty, place) = (value.ty, self.place());
        let far = if ty == Scalar::F32 { Literal::f32(1024.0) } else { Literal::f64(1024.0) };
        let whole = self.tame(value);
        Expr::binary(Binary::Add, whole, Expr::literal(far, place), place).bits(ty.unsigned(), place)
    }

    /// Converts a float, also a NaN, to an integer that is small enough for further arithmetic.
    pub(crate) fn tame(&mut self, value: Expr) -> Expr {
        let (ty, place) = (value.ty, self.place());
        if !ty.is_float() {
            return value;
        }
        let limit = |value: f64| {
            Expr::literal(
                if ty == Scalar::F32 { Literal::f32(value as f32) } else { Literal::f64(value) },
                place,
            )
        };
        let whole = Expr { kind: ExprKind::Math(Math::Trunc, vec![value]), ty, place };
        let low = Expr::binary(Binary::Min, whole, limit(256.0), place);
        Expr::binary(Binary::Max, low, limit(-256.0), place)
    }

    fn leaf(&mut self, ty: Scalar) -> Expr {
        let place = self.place();
        // Mostly converts an available value of another type.
        if ty != Scalar::Bool && self.random.percent(40) {
            if let Some(found) = self.anything() {
                let value = found.cast(ty, place);
                return self.tame(value);
            }
        }
        let known: Vec<VarId> =
            self.known.iter().copied().filter(|id| self.kernel.variable(*id).ty == ty).collect();
        match self.random.below(10) {
            0..=3 if !known.is_empty() => {
                let variable = *self.random.pick(&known);
                self.of(variable)
            }
            4 | 5 => {
                let values: Vec<u32> = (0..self.kernel.values.len() as u32)
                    .filter(|id| self.kernel.value(ValueId(*id)).ty == ty)
                    .collect();
                if values.is_empty() {
                    return Expr::literal(self.literal(ty), place);
                }
                let id = ValueId(*self.random.pick(&values));
                Expr { kind: ExprKind::Value(id), ty, place }
            }
            6..=8 => self.load(ty).unwrap_or_else(|| Expr::literal(self.literal(ty), place)),
            _ if ty == Scalar::U64 => {
                let dimension = self.random.below(u64::from(self.kernel.dimensions)) as u8;
                Expr::query(*self.random.pick(QUERIES), dimension, place)
            }
            _ if ty.is_float() && self.random.percent(15) => {
                let value = *self.random.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
                Expr::literal(
                    if ty == Scalar::F32 { Literal::f32(value as f32) } else { Literal::f64(value) },
                    place,
                )
            }
            _ => Expr::literal(self.literal(ty), place),
        }
    }

    /// A number from a variable or an array.
    fn anything(&mut self) -> Option<Expr> {
        let numbers = |ty: Scalar| ty != Scalar::Bool;
        if self.random.percent(50) {
            let known: Vec<VarId> =
                self.known.iter().copied().filter(|id| numbers(self.kernel.variable(*id).ty)).collect();
            let variable = *self.random.pick(&known);
            return Some(self.of(variable));
        }
        let id = self.random.below(self.kernel.arrays.len() as u64) as usize;
        let element = self.kernel.arrays[id].element;
        if numbers(element) { self.load(computed(element)) } else { None }
    }

    /// An index below a number that is not zero.
    pub(crate) fn index(&mut self, len: u64) -> Expr {
        let place = self.place();
        let (index, len) = (self.expr(Scalar::U64, 1), self.number(len));
        Expr::binary(Binary::Rem, index, len, place)
    }

    /// An index below the number of items, by way of an extent that has as many.
    fn within_extent(&mut self, index: Expr) -> Expr {
        let place = self.place();
        let known = self.kernel.arrays.iter().position(|array| matches!(array.space, Space::Extent(_)));
        let id = match known {
            Some(id) => usm_kernel_ir::ArrayId(id as u32),
            None => {
                let sizes = (0..self.kernel.dimensions).map(|d| Expr::query(Query::GlobalSize, d, place));
                let product = sizes.reduce(|all, size| Expr::binary(Binary::Mul, all, size, place));
                let len = product.unwrap_or_else(|| self.number(1));
                self.array("extent", Scalar::U64, Space::Extent(len))
            }
        };
        Expr::load(id, Scalar::U64, index, place)
    }

    /// An element that the item may read now.
    fn load(&mut self, ty: Scalar) -> Option<Expr> {
        let place = self.place();
        let arrays: Vec<u32> = (0..self.kernel.arrays.len() as u32)
            .filter(|id| computed(self.kernel.arrays[*id as usize].element) == ty)
            .collect();
        let id = usm_kernel_ir::ArrayId(*arrays.get(self.random.below(arrays.len() as u64) as usize)?);
        let stored = self.kernel.array(id).element;
        let index = match self.kernel.array(id).space.clone() {
            Space::Write => self.of(self.item),
            Space::Read if self.random.percent(50) => {
                let (own, more) = (self.of(self.item), self.random.below(4));
                let more = self.number(more);
                Expr::binary(Binary::Add, own, more, place)
            }
            Space::Read => {
                let index = self.expr(Scalar::U64, 1);
                let len = Expr { kind: ExprKind::Len(id), ty: Scalar::U64, place };
                if self.random.percent(50) {
                    Expr::binary(Binary::Rem, index, len, place)
                } else {
                    // An index outside must not be read.
                    let inside = Expr::binary(Binary::Lt, index.clone(), len, place);
                    let element = widened(Expr::load(id, stored, index, place));
                    let other = Expr::literal(self.literal(ty), place);
                    return Some(self.select(inside, element, other));
                }
            }
            Space::Local(_) => match self.states.iter().find(|(found, _)| *found == id)?.1 {
                State::Own => self.of(self.local),
                State::Shared => self.index(self.group),
                State::Fresh | State::Atomic(_) => return None,
            },
            Space::Private(len) => self.index(len),
            Space::Atomic | Space::Constant(_) | Space::Extent(_) => return None,
        };
        let is_global = matches!(self.kernel.array(id).space, Space::Write);
        let index = if is_global && self.random.percent(30) { self.within_extent(index) } else { index };
        Some(widened(Expr::load(id, stored, index, place)))
    }
}
