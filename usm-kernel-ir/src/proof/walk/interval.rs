//! The least and the greatest value of a sum.

use alloc::vec::Vec;

use super::{Guard, Interval, Needs, Walker};
use crate::proof::claim::SMALL;
use crate::proof::linear::{Atom, Linear};
use crate::proof::number::Number;

impl Walker<'_> {
    /// Number of items in a group, which the kernel may state.
    pub(in crate::proof) fn local_size(&self, dimension: u8) -> Number {
        let said = self.kernel.group.as_ref().and_then(|group| group.get(usize::from(dimension)));
        match said.and_then(|size| i64::try_from(*size).ok()) {
            Some(size) if size > 0 => Number::Constant(size),
            _ => Number::LocalSize(dimension),
        }
    }

    /// The range of an atom, without the guards.
    pub(in crate::proof) fn limits(&self, atom: Atom) -> (Option<Number>, Option<Number>) {
        let below = |size: Number| (Some(Number::ZERO), Some(size.sub(Number::ONE)));
        match atom {
            Atom::Global(dimension) => below(Number::GlobalSize(dimension)),
            Atom::Local(dimension) => below(self.local_size(dimension)),
            Atom::Group(dimension) => below(Number::Groups(dimension)),
            Atom::Other(number, _) => {
                let info = &self.infos[number as usize];
                (info.low.clone(), info.high.clone())
            }
        }
    }

    /// Whether the atom can have almost any value of 64 bits. A guard with it says nothing, and its
    /// sums do not fit, which would make every condition false.
    fn is_wide(&self, atom: Atom) -> bool {
        let (low, high) = self.limits(atom);
        let is_far = |end: Option<Number>| {
            end.and_then(|end| end.constant()).is_some_and(|end| end.unsigned_abs() >= 1 << 62)
        };
        is_far(low) || is_far(high)
    }

    /// Whether a sum's terms stay below 2^60 in every launch, as [`SMALL`] says, and the rest fits.
    pub(in crate::proof) fn is_small(&self, sum: &Linear) -> bool {
        if sum.constant.constant().is_none() && !sum.constant.is_size() {
            return false;
        }
        let weights = sum.terms.iter().try_fold(0_u64, |all, (atom, weight)| {
            let weight = weight.constant()?.unsigned_abs();
            self.is_small_atom(*atom).then(|| all.saturating_add(weight))
        });
        weights.is_some_and(|weights| weights <= SMALL.unsigned_abs())
    }

    fn is_small_atom(&self, atom: Atom) -> bool {
        let Atom::Other(number, _) = atom else { return true };
        let info = &self.infos[number as usize];
        // A counter that begins with an id or near zero has as many rounds as its value says.
        let counts_slowly = info.steps.as_ref().is_some_and(|(start, step)| {
            let is_id =
                |(atom, weight): &(Atom, Number)| !matches!(atom, Atom::Other(..)) && *weight == Number::ONE;
            let is_near = start.constant.constant().is_some_and(|shift| shift.unsigned_abs() < 1 << 32);
            is_near && start.terms.len() <= 1 && start.terms.iter().all(is_id) && *step == Number::ONE
        });
        counts_slowly || info.ty.is_some_and(|ty| ty.bits() <= 32)
    }

    /// The range of a sum from the limits of its atoms.
    fn plain(
        &self,
        sum: &Linear,
        limits: &dyn Fn(Atom) -> (Option<Number>, Option<Number>),
    ) -> [Option<Number>; 2] {
        let mut low = Some(sum.constant.clone());
        let mut high = Some(sum.constant.clone());
        for (atom, weight) in &sum.terms {
            let (least, most) = limits(*atom);
            let times = |end: &Option<Number>| end.clone().map(|end| end.mul(weight.clone()));
            let (one, two) = (times(&least), times(&most));
            let (least, most) = if weight.least().is_some_and(|least| least >= 0) {
                (one, two)
            } else if weight.constant().is_some()
                || weight.clone().neg().least().is_some_and(|least| least >= 0)
            {
                (two, one)
            } else {
                let both = one.zip(two);
                (both.clone().map(|(one, two)| one.min(two)), both.map(|(one, two)| one.max(two)))
            };
            low = low.zip(least).map(|(sum, next)| sum.add(next));
            high = high.zip(most).map(|(sum, next)| sum.add(next));
        }
        [low, high]
    }

    /// The range of a sum under the guards.
    pub(in crate::proof) fn interval(&self, sum: &Linear, guards: &[Guard]) -> Interval {
        let mut needs = Needs::none();
        let mut use_needs = |guard: &Guard| needs.add_new(&guard.needs);
        // A guard that holds for no launch as a sum, because its numbers wrap, says nothing.
        let is_real = |guard: &&Guard| !guard.needs.is_impossible();
        let limits = |atom: Atom| self.limits(atom);
        let mut intervals: Vec<(Atom, Option<Number>, Option<Number>)> = Vec::new();
        for (atom, _) in &sum.terms {
            let (mut least, mut most) = self.limits(*atom);
            for guard in guards.iter().filter(is_real) {
                let weight = guard.sum.weight(*atom).constant();
                let mut rest = guard.sum.clone();
                rest.terms.retain(|(other, _)| other != atom);
                if least.is_some() && most.is_some() && rest.terms.iter().any(|(atom, _)| self.is_wide(*atom))
                {
                    continue;
                }
                match weight {
                    // rest - atom >= 0
                    Some(-1) => {
                        if let [_, Some(high)] = self.plain(&rest, &limits) {
                            use_needs(guard);
                            most = Some(match most {
                                Some(most) => most.min(high),
                                None => high,
                            });
                        }
                    }
                    // atom + rest >= 0
                    Some(1) => {
                        if let [_, Some(high)] = self.plain(&rest, &limits) {
                            let low = high.neg();
                            if low.constant().is_some_and(|low| low <= 0) && least.is_some() {
                                continue;
                            }
                            use_needs(guard);
                            least = Some(match least {
                                Some(least) => least.max(low),
                                None => low,
                            });
                        }
                    }
                    _ => {}
                }
            }
            intervals.push((*atom, least, most));
        }
        let within = |atom: Atom| {
            let found = intervals.iter().find(|(found, ..)| *found == atom);
            found.map_or_else(|| self.limits(atom), |(_, least, most)| (least.clone(), most.clone()))
        };
        let [mut low, mut high] = self.plain(sum, &within);
        // Guards over several atoms: a sum is at most the sum plus something non-negative.
        for guard in guards.iter().filter(is_real) {
            // The multiple of the guard that cancels one of its atoms.
            let found = guard.sum.terms.iter().find_map(|(atom, weight)| {
                let (own, weight) =
                    (sum.weight(*atom), weight.constant().filter(|weight| matches!(weight, 1 | -1))?);
                (own != Number::ZERO).then_some((own, weight))
            });
            let Some((own, weight)) = found else { continue };
            let (times, is_above) = match (own.constant(), own.least()) {
                (Some(own), _) if own < 0 => match own.checked_neg() {
                    Some(times) => (Number::Constant(times), weight == 1),
                    None => continue,
                },
                (_, Some(least)) if least >= 0 => (own, weight == -1),
                _ => continue,
            };
            let scaled = guard.sum.scale(&times);
            let (other, open) =
                if is_above { (sum.add(&scaled), high.is_none()) } else { (sum.sub(&scaled), low.is_none()) };
            if other.terms.len() > sum.terms.len() || (other.terms.len() == sum.terms.len() && !open) {
                continue;
            }
            let is_new = |atom: Atom| sum.weight(atom) == Number::ZERO;
            if !open && other.terms.iter().any(|(atom, _)| is_new(*atom) && self.is_wide(*atom)) {
                continue;
            }
            let [least, most] = self.plain(&other, &within);
            if is_above {
                if let Some(limit) = most {
                    use_needs(guard);
                    high = Some(match high {
                        Some(high) => high.min(limit),
                        None => limit,
                    });
                }
            } else if let Some(limit) = least {
                use_needs(guard);
                low = Some(match low {
                    Some(low) => low.max(limit),
                    None => limit,
                });
            }
        }
        Interval::new([low, high], needs.unknown())
    }
}
