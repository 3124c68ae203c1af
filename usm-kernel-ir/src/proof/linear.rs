//! Indices as sums of terms that differ between items and rounds of loops.

use alloc::vec::Vec;

use super::number::Number;

/// A quantity with many values in a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Atom {
    /// The global id in a dimension.
    Global(u8),
    /// The local id in a dimension.
    Local(u8),
    /// The id of the group in a dimension.
    Group(u8),
    /// Any other quantity, by number. The flag says that it is the other item's.
    Other(u32, bool),
}

/// A sum: weights of atoms, and a number. Its value is the exact one, without wrapping.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Linear {
    pub(super) terms: Vec<(Atom, Number)>,
    pub(super) constant: Number,
}

impl Linear {
    pub(super) const fn number(constant: Number) -> Self {
        Self { terms: Vec::new(), constant }
    }

    pub(super) fn atom(atom: Atom) -> Self {
        Self { terms: alloc::vec![(atom, Number::ONE)], constant: Number::ZERO }
    }

    pub(super) fn as_number(&self) -> Option<&Number> {
        self.terms.is_empty().then_some(&self.constant)
    }

    pub(super) fn weight(&self, atom: Atom) -> Number {
        self.terms.iter().find(|(other, _)| *other == atom).map_or(Number::ZERO, |(_, weight)| weight.clone())
    }

    pub(super) fn add(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        for (atom, weight) in &other.terms {
            match sum.terms.iter_mut().find(|(other, _)| other == atom) {
                Some((_, sum_weight)) => *sum_weight = sum_weight.clone().add(weight.clone()),
                None => sum.terms.push((*atom, weight.clone())),
            }
        }
        sum.terms.retain(|(_, weight)| *weight != Number::ZERO);
        sum.terms.sort_by_key(|(atom, _)| *atom);
        sum.constant = sum.constant.add(other.constant.clone());
        sum
    }

    pub(super) fn scale(&self, by: &Number) -> Self {
        let terms = self.terms.iter().map(|(atom, weight)| (*atom, weight.clone().mul(by.clone())));
        Self {
            terms: terms.filter(|(_, weight)| *weight != Number::ZERO).collect(),
            constant: self.constant.clone().mul(by.clone()),
        }
    }

    pub(super) fn sub(&self, other: &Self) -> Self {
        self.add(&other.scale(&Number::Constant(-1)))
    }

    /// With an atom replaced by a sum.
    pub(super) fn replace(&self, atom: Atom, by: &Self) -> Self {
        let weight = self.weight(atom);
        let mut rest = self.clone();
        rest.terms.retain(|(other, _)| *other != atom);
        rest.add(&by.scale(&weight))
    }

    /// Counts its numbers' nodes down from `left`; false if there are more.
    pub(super) fn counts(&self, left: &mut u32) -> bool {
        self.constant.counts(left) && self.terms.iter().all(|(_, weight)| weight.counts(left))
    }

    /// With atoms renamed.
    pub(super) fn rename(&self, name: impl Fn(Atom) -> Atom) -> Self {
        let mut result = Self::number(self.constant.clone());
        for (atom, weight) in &self.terms {
            result = result
                .add(&Self { terms: alloc::vec![(name(*atom), weight.clone())], constant: Number::ZERO });
        }
        result
    }
}
