//! What facts rest on, and bounds that are read only together with it.

use alloc::vec::Vec;

use super::unknown;
use crate::proof::claim::Condition;
use crate::proof::number::Number;

/// What a fact rests on: conditions on the launch, and, while the facts about the counters of a
/// loop are sought, the counters that are assumed not to wrap.
#[derive(Clone, Debug, Default)]
pub(in crate::proof) struct Needs {
    conditions: Vec<Condition>,
    /// A bit for each counter.
    assumptions: u64,
}

impl Needs {
    /// Most counters of a loop that facts are sought about.
    pub(super) const COUNTERS: usize = 64;

    pub(super) const fn none() -> Self {
        Self { conditions: Vec::new(), assumptions: 0 }
    }

    /// Rests on a counter that is assumed not to wrap.
    pub(super) const fn counter(number: usize) -> Self {
        Self { conditions: Vec::new(), assumptions: 1 << number }
    }

    pub(super) const fn assumes(&self, number: usize) -> bool {
        self.assumptions >> number & 1 == 1
    }

    /// The conditions alone, where they imply what was assumed.
    pub(super) fn without_assumptions(self) -> Self {
        Self { assumptions: 0, ..self }
    }

    pub(in crate::proof) fn add(&mut self, other: &Self) {
        self.conditions.extend_from_slice(&other.conditions);
        self.assumptions |= other.assumptions;
    }

    /// As [`add`](Self::add), without conditions that it has.
    pub(super) fn add_new(&mut self, other: &Self) {
        for one in &other.conditions {
            if !self.conditions.contains(one) {
                self.conditions.push(one.clone());
            }
        }
        self.assumptions |= other.assumptions;
    }

    pub(in crate::proof) fn and(mut self, other: &Self) -> Self {
        self.add(other);
        self
    }

    pub(in crate::proof) fn push(&mut self, condition: Condition) {
        self.conditions.push(condition);
    }

    /// Without the conditions that every launch fulfils.
    pub(super) fn unknown(self) -> Self {
        Self { conditions: unknown(self.conditions), assumptions: self.assumptions }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.conditions.is_empty() && self.assumptions == 0
    }

    /// Whether no launch fulfils them.
    pub(super) fn is_impossible(&self) -> bool {
        self.conditions.iter().any(|one| one.known() == Some(false))
    }

    /// Whether they are part of others.
    pub(super) fn are_in(&self, others: &Self) -> bool {
        self.assumptions & !others.assumptions == 0
            && self.conditions.iter().all(|one| others.conditions.contains(one))
    }

    /// Counts its numbers' nodes down from `left`; false if there are more.
    pub(super) fn counts(&self, left: &mut u32) -> bool {
        self.conditions.iter().all(|one| one.counts(left))
    }

    /// The conditions on the launch. What still rests on an assumption holds for no launch.
    pub(in crate::proof) fn into_conditions(mut self) -> Vec<Condition> {
        if self.assumptions != 0 {
            self.conditions.push(Condition::AtMost(Number::ONE, Number::ZERO));
        }
        self.conditions
    }
}

/// A least and a greatest value, each `None` if there is none. They can be read only by
/// [`ends`](Self::ends), which hands over what they rest on.
#[derive(Clone, Debug)]
#[must_use]
pub(in crate::proof) struct Interval {
    low: Option<Number>,
    high: Option<Number>,
    needs: Needs,
}

impl Interval {
    pub(super) fn new([low, high]: [Option<Number>; 2], needs: Needs) -> Self {
        Self { low, high, needs }
    }

    /// The least and the greatest value; adds to `needs` what they rest on.
    pub(in crate::proof) fn ends(self, needs: &mut Needs) -> [Option<Number>; 2] {
        needs.add(&self.needs);
        [self.low, self.high]
    }
}
