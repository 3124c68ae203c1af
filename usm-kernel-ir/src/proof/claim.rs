//! The claims about a launch.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::number::Number;
use crate::kernel::{ArrayId, Kernel, Place};
use crate::scalar::Literal;

/// Weights up to this one, in all, leave the terms of an index below 2^60, because no launch comes
/// to its item or round 2^54: at one a nanosecond, that takes half a year.
pub(super) const SMALL: i64 = 64;

/// The numbers of a launch: sizes of the range in each dimension, lengths of all arrays, values of
/// all scalars.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'s> {
    /// Items of the range.
    pub global: &'s [u64],
    /// Items of a group.
    pub local: &'s [u64],
    /// Number of elements of each array, in the order of [`Kernel::arrays`](crate::Kernel).
    pub lengths: &'s [u64],
    /// Each scalar, in the order of [`Kernel::values`](crate::Kernel).
    pub values: &'s [Literal],
}

/// A condition on a launch. A number that does not fit 64 bits makes it false.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// The first number is at most the second.
    AtMost(Number, Number),
    /// Equal items have equal sums of weighted digits and a shift from zero up to the number, and
    /// different items different ones: in ascending order, each weight exceeds everything below it.
    /// All of them fit, so indices of 64 bits differ where the sums do.
    Distinct(Vec<Digit>, Number),
    /// All conditions of at least one list hold.
    Any(Vec<Vec<Condition>>),
}

/// A digit of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct Digit {
    /// Its weight in the index.
    pub weight: Number,
    /// Number of its values.
    pub extent: Number,
}

/// The claim that an index is inside its array.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The array.
    pub array: ArrayId,
    /// The place of the index.
    pub place: Place,
    /// The conditions; `None` if no condition on the launch implies the claim.
    pub conditions: Option<Vec<Condition>>,
}

/// The claim that two accesses do not touch the same element.
#[derive(Clone, Debug, PartialEq)]
pub struct Race {
    /// The array.
    pub array: ArrayId,
    /// The place of the write.
    pub write: Place,
    /// The place of the other access.
    pub other: Place,
    /// The condition; `None` if only an [inspection](crate::inspect) can decide the claim.
    pub condition: Option<Condition>,
}

/// All claims about a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims {
    /// Indices, except those that are always inside.
    pub bounds: Vec<Bound>,
    /// Pairs of accesses, except those that never conflict.
    pub races: Vec<Race>,
    /// The arrays of pairs that no inspection decides, because indices or conditions follow from
    /// memory. A launch is then *unordered*: possible with code of a kernel that names them as
    /// [`unordered`](crate::Kernel::unordered).
    pub unordered: Vec<ArrayId>,
}

impl Condition {
    /// Whether it holds for a launch.
    #[must_use]
    pub fn holds(&self, shape: &Shape<'_>) -> bool {
        match self {
            Self::AtMost(low, high) => {
                matches!((low.of(shape), high.of(shape)), (Some(low), Some(high)) if low <= high)
            }
            Self::Distinct(digits, shift) => {
                let values =
                    digits.iter().map(|digit| Some((digit.weight.of(shape)?, digit.extent.of(shape)?)));
                let (Some(mut values), Some(shift)) = (values.collect::<Option<Vec<_>>>(), shift.of(shape))
                else {
                    return false;
                };
                distinct(&mut values, shift)
            }
            Self::Any(lists) => lists.iter().any(|list| list.iter().all(|one| one.holds(shape))),
        }
    }

    /// Counts its numbers' nodes down from `left`; false if there are more.
    pub(super) fn counts(&self, left: &mut u32) -> bool {
        match self {
            Self::AtMost(low, high) => low.counts(left) && high.counts(left),
            Self::Distinct(digits, shift) => {
                shift.counts(left)
                    && digits.iter().all(|digit| digit.weight.counts(left) && digit.extent.counts(left))
            }
            Self::Any(lists) => lists.iter().flatten().all(|one| one.counts(left)),
        }
    }

    /// Whether it holds for every launch.
    pub(super) fn known(&self) -> Option<bool> {
        match self {
            Self::AtMost(low, high) => {
                if let (Some(low), Some(high)) = (low.constant(), high.constant()) {
                    return Some(low <= high);
                }
                if high.constant() == Some(i64::MAX) && low.is_size() {
                    return Some(true);
                }
                let room = high.clone().sub(low.clone());
                let least = room.least().or_else(|| match (low.constant(), high.least()) {
                    (Some(low), Some(high)) => high.checked_sub(low),
                    _ => None,
                });
                least.is_some_and(|least| least >= 0).then_some(true)
            }
            Self::Distinct(digits, shift) => {
                // There is only one item, whatever the launch is.
                let open: Vec<_> = digits.iter().filter(|digit| digit.extent.constant() != Some(1)).collect();
                let shift = shift.constant()?;
                match open[..] {
                    [] => Some(true),
                    [one] if one.weight.constant().is_some() => {
                        let weight = one.weight.constant()?.checked_abs()?;
                        if weight <= shift {
                            // At least two items conflict.
                            return (one.extent.constant()? > 1).then_some(false);
                        }
                        // Greater indices may wrap and be equal.
                        if weight <= SMALL {
                            return Some(true);
                        }
                        Some(distinct(&mut [(weight, one.extent.constant()?)], shift))
                    }
                    _ => {
                        let values = digits
                            .iter()
                            .map(|digit| Some((digit.weight.constant()?, digit.extent.constant()?)));
                        values.collect::<Option<Vec<_>>>().map(|mut values| distinct(&mut values, shift))
                    }
                }
            }
            Self::Any(lists) => {
                let is_known = |list: &Vec<Self>| list.iter().all(|one| one.known() == Some(true));
                lists.iter().any(is_known).then_some(true)
            }
        }
    }
}

/// Whether the sum of digits, each a weight and a number of values, and of a shift from zero up to
/// `shift`, determines the digits.
pub(crate) fn distinct(digits: &mut [(i64, i64)], shift: i64) -> bool {
    digits.sort_unstable_by_key(|(weight, _)| weight.unsigned_abs());
    let mut below = shift;
    for (weight, extent) in digits {
        if *extent <= 1 {
            continue;
        }
        let Some(weight) = weight.checked_abs().filter(|weight| *weight > below) else { return false };
        let Some(reach) = weight.checked_mul(*extent - 1).and_then(|reach| reach.checked_add(below)) else {
            return false;
        };
        below = reach;
    }
    true
}

impl Bound {
    /// Whether it is proven for a launch.
    #[must_use]
    pub fn holds(&self, shape: &Shape<'_>) -> bool {
        self.conditions.as_ref().is_some_and(|conditions| conditions.iter().all(|one| one.holds(shape)))
    }
}

impl Claims {
    /// The kernel with its [unordered](Self::unordered) arrays named, for the writers of code.
    #[must_use]
    pub fn name_unordered<'k>(&self, kernel: &'k Kernel) -> Cow<'k, Kernel> {
        if self.unordered.is_empty() || self.unordered == kernel.unordered {
            return Cow::Borrowed(kernel);
        }
        Cow::Owned(Kernel { unordered: self.unordered.clone(), ..kernel.clone() })
    }

    /// The first index that is not proven to be inside, if any.
    #[must_use]
    pub fn unproven(&self, shape: &Shape<'_>) -> Option<&Bound> {
        self.bounds.iter().find(|bound| !bound.holds(shape))
    }

    /// The first pair of accesses that may conflict, if any.
    #[must_use]
    pub fn race(&self, shape: &Shape<'_>) -> Option<&Race> {
        self.races
            .iter()
            .find(|race| !race.condition.as_ref().is_some_and(|condition| condition.holds(shape)))
    }

    /// The arrays of all pairs of accesses that may conflict.
    #[must_use]
    pub fn open_arrays(&self, shape: &Shape<'_>) -> Vec<ArrayId> {
        let mut arrays = Vec::new();
        if shape.global.contains(&0) {
            return arrays;
        }
        for race in &self.races {
            let holds = || race.condition.as_ref().is_some_and(|condition| condition.holds(shape));
            if !arrays.contains(&race.array) && !holds() {
                arrays.push(race.array);
            }
        }
        arrays.sort_unstable();
        arrays
    }

    /// Whether everything is proven for a launch. A range without items proves everything.
    #[must_use]
    pub fn holds(&self, shape: &Shape<'_>) -> bool {
        shape.global.contains(&0) || (self.unproven(shape).is_none() && self.race(shape).is_none())
    }
}
