//! Numbers that a launch determines.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::claim::Shape;
use crate::kernel::{ArrayId, ValueId};

/// A number that range, lengths and scalars determine. All arithmetic is that of `i64` and gives
/// nothing on overflow, so no conclusion depends on wrapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Number {
    /// This number.
    Constant(i64),
    /// Items of the range in a dimension.
    GlobalSize(u8),
    /// Items of a group in a dimension.
    LocalSize(u8),
    /// Groups in a dimension.
    Groups(u8),
    /// Elements of an array.
    Len(ArrayId),
    /// An integer parameter.
    Value(ValueId),
    /// Sum.
    Add(Arc<(Number, Number)>),
    /// Difference.
    Sub(Arc<(Number, Number)>),
    /// Product.
    Mul(Arc<(Number, Number)>),
    /// Quotient rounded down, for a positive divisor; nothing for others.
    Div(Arc<(Number, Number)>),
    /// The smaller one.
    Min(Arc<(Number, Number)>),
    /// The greater one.
    Max(Arc<(Number, Number)>),
}

impl Number {
    pub(super) const ZERO: Self = Self::Constant(0);
    pub(super) const ONE: Self = Self::Constant(1);

    pub(super) const fn constant(&self) -> Option<i64> {
        match self {
            Self::Constant(value) => Some(*value),
            _ => None,
        }
    }

    fn both(
        self,
        other: Self,
        fold: fn(i64, i64) -> Option<i64>,
        node: fn(Arc<(Self, Self)>) -> Self,
    ) -> Self {
        if let (Some(one), Some(two)) = (self.constant(), other.constant()) {
            if let Some(value) = fold(one, two) {
                return Self::Constant(value);
            }
        }
        node(Arc::new((self, other)))
    }

    pub(super) fn add(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Mul(pair), one) | (one, Self::Mul(pair))
                if pair.1 == Self::Constant(-1) && pair.0 == *one =>
            {
                Self::ZERO
            }
            (Self::Constant(0), _) => other,
            (_, Self::Constant(0)) => self,
            // Constants move to the right and combine there.
            (Self::Add(pair), Self::Constant(two)) | (Self::Constant(two), Self::Add(pair))
                if pair.1.constant().is_some_and(|one| one.checked_add(*two).is_some()) =>
            {
                let sum = pair.1.constant().unwrap_or(0) + two;
                pair.0.clone().add(Self::Constant(sum))
            }
            (Self::Constant(_), _) => other.both(self, i64::checked_add, Self::Add),
            _ => self.both(other, i64::checked_add, Self::Add),
        }
    }

    pub(super) fn sub(self, other: Self) -> Self {
        match other.constant() {
            Some(value) if value != i64::MIN => self.add(Self::Constant(-value)),
            _ if self == other => Self::ZERO,
            _ => self.both(other, i64::checked_sub, Self::Sub),
        }
    }

    pub(super) fn mul(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Constant(0), _) | (_, Self::Constant(1)) => self,
            (_, Self::Constant(0)) | (Self::Constant(1), _) => other,
            // Constants move to the right and combine there.
            (Self::Mul(pair), Self::Constant(two)) | (Self::Constant(two), Self::Mul(pair))
                if pair.1.constant().is_some_and(|one| one.checked_mul(*two).is_some()) =>
            {
                let product = pair.1.constant().unwrap_or(1) * two;
                pair.0.clone().mul(Self::Constant(product))
            }
            (Self::Constant(_), _) => other.both(self, i64::checked_mul, Self::Mul),
            _ => self.both(other, i64::checked_mul, Self::Mul),
        }
    }

    pub(super) fn div(self, other: Self) -> Self {
        if other == Self::ONE {
            return self;
        }
        self.both(other, |one, two| (two > 0).then(|| one.div_euclid(two)), Self::Div)
    }

    pub(super) fn min(self, other: Self) -> Self {
        if self == other || self.never_exceeds(&other) {
            self
        } else if other.never_exceeds(&self) {
            other
        } else {
            self.both(other, |one, two| Some(one.min(two)), Self::Min)
        }
    }

    pub(super) fn max(self, other: Self) -> Self {
        if self == other || other.never_exceeds(&self) {
            self
        } else if self.never_exceeds(&other) {
            other
        } else {
            self.both(other, |one, two| Some(one.max(two)), Self::Max)
        }
    }

    /// Whether it is at most `other` in every launch in which both fit. `false` means unknown.
    fn never_exceeds(&self, other: &Self) -> bool {
        let mut steps = 64;
        Sum::of(self).never_exceeds(&Sum::of(other), &mut steps)
    }

    pub(super) fn neg(self) -> Self {
        Self::ZERO.sub(self)
    }

    /// Whether it is a size or a length, or smaller by a constant. No launch has one above
    /// `i64::MAX`.
    pub(super) fn is_size(&self) -> bool {
        match self {
            Self::GlobalSize(_) | Self::LocalSize(_) | Self::Groups(_) | Self::Len(_) => true,
            Self::Add(pair) => pair.0.is_size() && pair.1.constant().is_some_and(|shift| shift <= 0),
            _ => false,
        }
    }

    /// A lower bound for every launch; `None` if there is none.
    pub(super) fn least(&self) -> Option<i64> {
        match self {
            Self::Constant(value) => Some(*value),
            // A range without items proves everything, so it is never evaluated.
            Self::GlobalSize(_) | Self::LocalSize(_) | Self::Groups(_) => Some(1),
            Self::Len(_) => Some(0),
            Self::Value(_) | Self::Sub(_) => None,
            Self::Add(pair) => pair.0.least()?.checked_add(pair.1.least()?),
            Self::Mul(pair) => match (pair.0.least()?, pair.1.least()?) {
                (one @ 0.., two @ 0..) => one.checked_mul(two),
                _ => None,
            },
            Self::Div(pair) => (pair.0.least()? >= 0).then_some(0),
            Self::Min(pair) => Some(pair.0.least()?.min(pair.1.least()?)),
            Self::Max(pair) => pair.0.least().max(pair.1.least()),
        }
    }

    /// An upper bound for every launch; `None` if there is none.
    pub(super) fn most(&self) -> Option<i64> {
        match self {
            Self::Constant(value) => Some(*value),
            Self::Add(pair) => pair.0.most()?.checked_add(pair.1.most()?),
            Self::Min(pair) => match (pair.0.most(), pair.1.most()) {
                (Some(one), Some(two)) => Some(one.min(two)),
                (one, two) => one.or(two),
            },
            Self::Max(pair) => Some(pair.0.most()?.max(pair.1.most()?)),
            _ => None,
        }
    }

    /// Whether a part of it is near the end of a type of 32 or 64 bits: what nothing else bounds.
    pub(super) fn is_far(&self) -> bool {
        match self {
            Self::Constant(value) => value.unsigned_abs() >= (1 << 31) - (1 << 12),
            Self::Add(pair)
            | Self::Sub(pair)
            | Self::Mul(pair)
            | Self::Div(pair)
            | Self::Min(pair)
            | Self::Max(pair) => pair.0.is_far() || pair.1.is_far(),
            _ => false,
        }
    }

    /// Counts its nodes down from `left`, shared ones each time; false if there are more. Numbers
    /// share nodes, so a short chain of sums may have more nodes than any memory holds.
    pub(super) fn counts(&self, left: &mut u32) -> bool {
        let Some(less) = left.checked_sub(1) else { return false };
        *left = less;
        match self {
            Self::Add(pair)
            | Self::Sub(pair)
            | Self::Mul(pair)
            | Self::Div(pair)
            | Self::Min(pair)
            | Self::Max(pair) => pair.0.counts(left) && pair.1.counts(left),
            _ => true,
        }
    }

    /// The value for a launch; `None` if it does not fit.
    #[must_use]
    pub fn of(&self, shape: &Shape<'_>) -> Option<i64> {
        let size = |sizes: &[u64], dimension: u8| i64::try_from(*sizes.get(usize::from(dimension))?).ok();
        let pair = |pair: &(Self, Self)| Some((pair.0.of(shape)?, pair.1.of(shape)?));
        match self {
            Self::Constant(value) => Some(*value),
            Self::GlobalSize(dimension) => size(shape.global, *dimension),
            Self::LocalSize(dimension) => size(shape.local, *dimension),
            Self::Groups(dimension) => {
                size(shape.global, *dimension)?.checked_div(size(shape.local, *dimension)?)
            }
            Self::Len(array) => i64::try_from(*shape.lengths.get(array.0 as usize)?).ok(),
            Self::Value(value) => shape.values.get(value.0 as usize)?.to_i64(),
            Self::Add(both) => pair(both).and_then(|(one, two)| one.checked_add(two)),
            Self::Sub(both) => pair(both).and_then(|(one, two)| one.checked_sub(two)),
            Self::Mul(both) => pair(both).and_then(|(one, two)| one.checked_mul(two)),
            Self::Div(both) => pair(both).and_then(|(one, two)| (two > 0).then(|| one.div_euclid(two))),
            Self::Min(both) => pair(both).map(|(one, two)| one.min(two)),
            Self::Max(both) => pair(both).map(|(one, two)| one.max(two)),
        }
    }
}

/// A number as a sum of terms that are no sums, and a constant.
#[derive(Clone)]
struct Sum<'n> {
    terms: Vec<&'n Number>,
    /// 128 bits hold the sum of as many constants of 64 bits as fit into memory.
    constant: i128,
}

impl<'n> Sum<'n> {
    fn of(number: &'n Number) -> Self {
        let mut sum = Self { terms: Vec::new(), constant: 0 };
        sum.add(number);
        sum
    }

    fn add(&mut self, number: &'n Number) {
        match number {
            Number::Constant(value) => self.constant += i128::from(*value),
            Number::Add(pair) => {
                self.add(&pair.0);
                self.add(&pair.1);
            }
            _ => self.terms.push(number),
        }
    }

    /// With `number` in the place of a term.
    fn with(&self, term: usize, number: &'n Number) -> Self {
        let mut sum = self.clone();
        sum.terms.swap_remove(term);
        sum.add(number);
        sum
    }

    /// Without the terms that both have.
    fn differences(&self, other: &Self) -> (Self, Self) {
        let (mut one, mut two) = (self.clone(), other.clone());
        one.terms.retain(|term| match two.terms.iter().position(|other| other == term) {
            Some(at) => {
                two.terms.swap_remove(at);
                false
            }
            None => true,
        });
        (one, two)
    }

    fn never_exceeds(&self, other: &Self, steps: &mut u32) -> bool {
        let Some(left) = steps.checked_sub(1) else { return false };
        *steps = left;
        let (low, high) = self.differences(other);
        if low.terms.is_empty() {
            let least: Option<i128> = high.terms.iter().map(|term| term.least().map(i128::from)).sum();
            return least.is_some_and(|least| low.constant <= high.constant + least);
        }
        // Factors of one product beside those of the other: `a * b <= c * b` for `0 <= b`.
        if let ([Number::Mul(one), ..], [Number::Mul(two), ..]) = (&low.terms[..], &high.terms[..]) {
            let shared = one.1 == two.1 && one.1.least().is_some_and(|least| least >= 0);
            if shared && Self::of(&one.0).never_exceeds(&Self::of(&two.0), steps) {
                let rest = |sum: &Self| Self { terms: sum.terms[1..].to_vec(), constant: sum.constant };
                return rest(&low).never_exceeds(&rest(&high), steps);
            }
        }
        // The minimum of two numbers is at most any upper bound of one of them.
        low.terms.iter().enumerate().any(|(at, term)| match term {
            Number::Min(pair) => {
                low.with(at, &pair.0).never_exceeds(&high, steps)
                    || low.with(at, &pair.1).never_exceeds(&high, steps)
            }
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::{Number, Shape, ValueId};
    use crate::scalar::{Literal, Scalar};

    fn n() -> Number {
        Number::Value(ValueId(0)).max(Number::ZERO)
    }

    fn below(size: Number) -> Number {
        size.sub(Number::ONE).min(n().sub(Number::ONE))
    }

    #[test]
    fn bounds_that_exceed_others_are_dropped() {
        let row = below(Number::GlobalSize(0)).mul(n());
        let last = n().sub(Number::ONE);
        let exact = row.clone().add(below(Number::GlobalSize(1)));
        assert_eq!(exact.clone().min(below(Number::GlobalSize(1)).add(row.clone())), exact);
        assert_eq!(exact.clone().min(last.clone().mul(n()).add(below(Number::GlobalSize(1)))), exact);
        assert_eq!(last.clone().add(row.clone()).min(exact.clone()), exact);
        assert_eq!(exact.clone().max(last.clone().add(row.clone())), last.add(row));
    }

    #[test]
    fn a_number_is_dropped_only_where_no_launch_makes_it_the_extreme() {
        let numbers = [
            Number::Constant(-3),
            Number::Constant(2),
            Number::GlobalSize(0),
            n(),
            n().sub(Number::ONE),
            below(Number::GlobalSize(0)),
            below(Number::GlobalSize(0)).mul(n()),
            n().sub(Number::ONE).mul(n()),
            n().mul(n()),
            Number::GlobalSize(0).mul(n()),
        ];
        let sums = numbers.iter().flat_map(|one| numbers.iter().map(|two| one.clone().add(two.clone())));
        let all: vec::Vec<Number> = numbers.iter().cloned().chain(sums).collect();
        for value in [-5_i64, 0, 1, 7] {
            for size in [1_u64, 3] {
                let values = [Literal::integer(Scalar::I64, value as u64)];
                let shape = Shape { global: &[size], local: &[1], lengths: &[], values: &values };
                for one in &all {
                    for two in &all {
                        let (a, b) = (one.of(&shape), two.of(&shape));
                        assert_eq!(one.clone().min(two.clone()).of(&shape), a.min(b), "{one:?} {two:?}");
                        assert_eq!(one.clone().max(two.clone()).of(&shape), a.max(b), "{one:?} {two:?}");
                    }
                }
            }
        }
    }
}
