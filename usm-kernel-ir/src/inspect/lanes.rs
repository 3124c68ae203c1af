//! Values of many items at once.

use alloc::vec;
use alloc::vec::Vec;

use crate::interpret::{cast, compute, math, unary};
use crate::kernel::{ArrayId, Expr, ExprKind, Query, VarId};
use crate::operator::Binary;
use crate::scalar::{Literal, Scalar};

/// One word for each lane, or one for all.
#[derive(Clone, Debug)]
pub(super) enum Lanes {
    One(u64),
    Many(Vec<u64>),
}

impl Lanes {
    pub(super) fn get(&self, lane: usize) -> u64 {
        match self {
            Self::One(word) => *word,
            Self::Many(words) => words.get(lane).copied().unwrap_or(0),
        }
    }

    fn map(self, f: impl Fn(u64) -> u64) -> Self {
        match self {
            Self::One(word) => Self::One(f(word)),
            Self::Many(mut words) => {
                words.iter_mut().for_each(|word| *word = f(*word));
                Self::Many(words)
            }
        }
    }

    fn zip(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        match (self, other) {
            (Self::One(one), Self::One(two)) => Self::One(f(one, two)),
            (Self::Many(mut words), Self::One(two)) => {
                words.iter_mut().for_each(|word| *word = f(*word, two));
                Self::Many(words)
            }
            (Self::One(one), Self::Many(mut words)) => {
                words.iter_mut().for_each(|word| *word = f(one, *word));
                Self::Many(words)
            }
            (Self::Many(mut words), Self::Many(others)) => {
                words.iter_mut().zip(&others).for_each(|(word, other)| *word = f(*word, *other));
                Self::Many(words)
            }
        }
    }

    /// The second where the first is true, else the third.
    fn select(self, one: Self, two: Self) -> Self {
        match self {
            Self::One(is_true) => {
                if is_true != 0 {
                    one
                } else {
                    two
                }
            }
            Self::Many(mut words) => {
                for (lane, word) in words.iter_mut().enumerate() {
                    *word = if *word != 0 { one.get(lane) } else { two.get(lane) };
                }
                Self::Many(words)
            }
        }
    }

    /// Takes the words of `from` where the mask is true.
    pub(super) fn set(&mut self, from: Self, mask: &Mask) {
        if mask.all {
            *self = from;
            return;
        }
        if let Self::One(word) = *self {
            *self = Self::Many(vec![word; mask.lanes.len()]);
        }
        if let Self::Many(words) = self {
            for (lane, (word, is_active)) in words.iter_mut().zip(&mask.lanes).enumerate() {
                if *is_active {
                    *word = from.get(lane);
                }
            }
        }
    }
}

/// The lanes that take part.
#[derive(Clone, Debug)]
pub(super) struct Mask {
    pub(super) lanes: Vec<bool>,
    /// Whether all do.
    pub(super) all: bool,
    /// Number of those that do.
    pub(super) count: usize,
}

impl Mask {
    fn new(lanes: Vec<bool>) -> Self {
        let count = lanes.iter().filter(|lane| **lane).count();
        Self { all: count == lanes.len(), count, lanes }
    }

    pub(super) fn full(lanes: usize) -> Self {
        Self { lanes: vec![true; lanes], all: true, count: lanes }
    }

    pub(super) fn none(lanes: usize) -> Self {
        Self { lanes: vec![false; lanes], all: lanes == 0, count: 0 }
    }

    /// Those where the words are true, and the others.
    pub(super) fn split(self, by: &Lanes) -> (Self, Self) {
        match by {
            Lanes::One(word) => {
                let none = Self::none(self.lanes.len());
                if *word != 0 { (self, none) } else { (none, self) }
            }
            Lanes::Many(words) => {
                let yes = self.lanes.iter().zip(words).map(|(lane, word)| *lane && *word != 0).collect();
                let no = self.lanes.iter().zip(words).map(|(lane, word)| *lane && *word == 0).collect();
                (Self::new(yes), Self::new(no))
            }
        }
    }

    pub(super) fn or(mut self, other: &Self) -> Self {
        if other.count == 0 {
            return self;
        }
        self.lanes.iter_mut().zip(&other.lanes).for_each(|(lane, other)| *lane |= *other);
        Self::new(self.lanes)
    }
}

/// The numbers that expressions of some items are computed from.
pub(super) struct Ids {
    pub(super) lanes: usize,
    /// For each query and dimension.
    pub(super) queries: [[Lanes; 3]; 6],
    pub(super) variables: Vec<Lanes>,
}

impl Ids {
    pub(super) fn variable(&mut self, id: VarId) -> Option<&mut Lanes> {
        self.variables.get_mut(id.0 as usize)
    }

    /// The values of an expression. `length` gives the lengths of arrays. Counts its nodes down
    /// from `left`.
    pub(super) fn value(
        &self,
        expr: &Expr,
        values: &[Literal],
        lengths: &dyn Fn(ArrayId) -> u64,
        left: &mut u64,
    ) -> Lanes {
        let of = |expr: &Expr, left: &mut u64| self.value(expr, values, lengths, left);
        *left = left.saturating_sub(self.lanes as u64);
        match &expr.kind {
            ExprKind::Literal(literal) => Lanes::One(literal.bits),
            ExprKind::Variable(id) => self.variables.get(id.0 as usize).cloned().unwrap_or(Lanes::One(0)),
            ExprKind::Value(id) => Lanes::One(values.get(id.0 as usize).map_or(0, |value| value.bits)),
            ExprKind::Len(array) => Lanes::One(lengths(*array)),
            ExprKind::Query(query, dimension) => {
                let row = Query::ALL.iter().position(|one| one == query).unwrap_or(0);
                self.queries[row][usize::from(*dimension).min(2)].clone()
            }
            // Only those of extents are here.
            ExprKind::Load(_, index) => of(index, left),
            ExprKind::Unary(operator, operand) => {
                let (operator, ty) = (*operator, expr.ty);
                of(operand, left).map(|word| unary(operator, ty, word))
            }
            ExprKind::Binary { operator, left: one, right: two } => {
                let ty = one.ty;
                binary(*operator, ty, of(one, left), of(two, left))
            }
            ExprKind::Cast(operand) => {
                let (from, to) = (operand.ty, expr.ty);
                let words = of(operand, left);
                if from.bits() == 64 && to.bits() == 64 {
                    return words;
                }
                words.map(|word| cast(from, to, word))
            }
            ExprKind::Select { condition, then, other } => {
                of(condition, left).select(of(then, left), of(other, left))
            }
            ExprKind::Math(function, arguments) if function.counts() => {
                of(&arguments[0], left).map(|word| math(*function, expr.ty, [word, 0, 0]))
            }
            ExprKind::Math(..) | ExprKind::Bits(_) => Lanes::One(0),
        }
    }
}

/// [`compute`] for each lane. The usual operators are loops of their own.
fn binary(operator: Binary, ty: Scalar, one: Lanes, two: Lanes) -> Lanes {
    let signed = ty.is_signed();
    if ty.bits() == 64 && ty.is_integer() {
        match operator {
            Binary::Add => return one.zip(two, u64::wrapping_add),
            Binary::Sub => return one.zip(two, u64::wrapping_sub),
            Binary::Mul => return one.zip(two, u64::wrapping_mul),
            _ => {}
        }
    }
    match operator {
        Binary::Eq => one.zip(two, |one, two| u64::from(one == two)),
        Binary::Ne => one.zip(two, |one, two| u64::from(one != two)),
        Binary::And | Binary::AndThen => one.zip(two, |one, two| one & two),
        Binary::Or | Binary::OrElse => one.zip(two, |one, two| one | two),
        Binary::Lt if signed => one.zip(two, |one, two| u64::from((one as i64) < two as i64)),
        Binary::Le if signed => one.zip(two, |one, two| u64::from(one as i64 <= two as i64)),
        Binary::Gt if signed => one.zip(two, |one, two| u64::from(one as i64 > two as i64)),
        Binary::Ge if signed => one.zip(two, |one, two| u64::from(one as i64 >= two as i64)),
        Binary::Lt => one.zip(two, |one, two| u64::from(one < two)),
        Binary::Le => one.zip(two, |one, two| u64::from(one <= two)),
        Binary::Gt => one.zip(two, |one, two| u64::from(one > two)),
        Binary::Ge => one.zip(two, |one, two| u64::from(one >= two)),
        Binary::Div if !signed => one.zip(two, |one, two| one / two.max(1)),
        Binary::Rem if !signed => one.zip(two, |one, two| one % two.max(1)),
        _ => one.zip(two, |one, two| compute(operator, ty, one, two)),
    }
}
