//! Parts of an array that work-items have for themselves, such as rows.

use alloc::vec::Vec;

use super::claim::Condition;
use super::linear::Atom;
use super::number::Number;
use super::race::{coordinates, distinct_by};
use super::walk::{Access, Walker};

/// The condition under which each item has a part of the array for itself: what lies between the
/// multiples of the weights of its coordinates is less than those.
pub(super) fn own_parts(
    walker: &mut Walker<'_>,
    one: &Access,
    two: &Access,
    in_group: bool,
) -> Option<Vec<Condition>> {
    let mut terms = one.index.terms.iter().chain(&two.index.terms);
    if !terms.any(|(atom, _)| matches!(atom, Atom::Other(..))) {
        // Coordinates alone, which `distinct` knows.
        return None;
    }
    let mut needs = one.needs.clone().and(&two.needs);
    let (mut first, mut second) = (one.index.clone(), two.index.clone());
    let digits = coordinates(walker, [one, two], [&mut first, &mut second], in_group, &mut needs)?;
    let mut ends = Vec::new();
    for (own, other, guards) in [(&first, &second, &one.guards), (&second, &first, &two.guards)] {
        let mut rest = own.clone();
        rest.terms.retain(|(atom, weight)| {
            let is_same = *weight == other.weight(*atom);
            !is_same || matches!(atom, Atom::Other(number, _) if !in_group || !walker.infos[*number as usize].shared)
        });
        if rest.terms.iter().any(|(atom, _)| !matches!(atom, Atom::Other(..))) {
            return None;
        }
        let [low, high] = walker.interval(&rest, guards).ends(&mut needs);
        ends.push((low?, high?));
    }
    let [(low, high), (least, most)] = <[(Number, Number); 2]>::try_from(ends).ok()?;
    distinct_by(digits, high.sub(least).max(most.sub(low)), needs)
}
