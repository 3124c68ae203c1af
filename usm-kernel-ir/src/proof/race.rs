//! Accesses of two items that may conflict.
//!
//! For a global array all accesses of a launch are compared, because groups are unordered. For a
//! local array only those between two barriers are compared.

use alloc::format;
use alloc::vec::Vec;

use super::claim::{Condition, Digit, Race, Shape};
use super::linear::{Atom, Linear};
use super::number::Number;
use super::walk::{Access, Guard, Info, Kind, Needs, Walker, hull, unknown};
use crate::error::Refusal;
use crate::inspect::{Doubt, Verdict, follows_from_memory, inspect, sure_race};
use crate::kernel::{ArrayId, Kernel, Place, Space};
use crate::scalar::{Literal, Scalar};

/// Maximum number of conditions on a launch.
const RACES: usize = 1024;
/// Says that a kernel is refused because its proof would take too long.
pub(super) const TOO_MANY: &str = "too many accesses, or barriers in too many loops, to look at in pairs";

/// The claims about pairs of accesses, those of unordered arrays first, and these arrays.
pub(super) fn races(walker: &mut Walker<'_>) -> Result<(Vec<Race>, Vec<ArrayId>), Refusal> {
    let mut pairs = Vec::new();
    for one in 0..walker.accesses.len() {
        if !matches!(walker.kernel.array(walker.accesses[one].array).space, Space::Local(_)) {
            pairs.extend((one..walker.accesses.len()).map(|two| (one, two)));
        }
    }
    let of_groups =
        walker.pairs.iter().copied().filter(|(one, _)| {
            matches!(walker.kernel.array(walker.accesses[*one].array).space, Space::Local(_))
        });
    pairs.extend(of_groups);
    pairs.sort_unstable();
    pairs.dedup();
    let mut races: Vec<Race> = Vec::new();
    let mut fates: Vec<(ArrayId, Fate)> = Vec::new();
    let mut sure: Vec<(ArrayId, Vec<[Place; 2]>)> = Vec::new();
    for (one, two) in pairs {
        let (one, two) = (walker.accesses[one].clone(), walker.accesses[two].clone());
        let harmless = one.kind == two.kind && one.kind != Kind::Write;
        if one.array != two.array || harmless || walker.kernel.array(one.array).is_log() {
            continue;
        }
        let is_local = matches!(walker.kernel.array(one.array).space, Space::Local(_));
        let (write, other) = if one.kind == Kind::Read { (&two, &one) } else { (&one, &two) };
        let meet = !is_local && are_neighbours(walker, write, other);
        let condition = disjointness(walker, write, other, is_local);
        let condition = condition.filter(|condition| !meet || condition.known() == Some(true));
        let is_known = condition.as_ref().and_then(Condition::known) == Some(true);
        if is_known {
            continue;
        }
        let has_fate = fates.iter().any(|(array, _)| *array == one.array);
        if !has_fate && follows_from_memory(walker.kernel, one.array) {
            fates.push((one.array, Fate::Unordered));
        } else if !has_fate && condition.is_none() {
            let fate = Fate::of(walker.kernel, one.array);
            if fate == Fate::Race {
                return Err(refusal(walker.kernel, one.array, write.place, other.place));
            }
            fates.push((one.array, fate));
        }
        if condition.is_none() && fates.contains(&(one.array, Fate::Unordered)) {
            if !sure.iter().any(|(array, _)| *array == one.array) {
                sure.push((one.array, sure_races(walker.kernel, one.array)));
            }
            let is_here = |places: &[Place; 2]| {
                *places == [write.place, other.place] || *places == [other.place, write.place]
            };
            if sure.iter().any(|(array, places)| *array == one.array && places.iter().any(is_here)) {
                return Err(refusal(walker.kernel, one.array, write.place, other.place));
            }
        }
        if races.len() >= RACES {
            return Err(Refusal::new(write.place, TOO_MANY));
        }
        if !races.iter().any(|race| race.array == one.array && race.condition == condition) {
            races.push(Race { array: one.array, write: write.place, other: other.place, condition });
        }
    }
    fates.retain(|(_, fate)| *fate == Fate::Unordered);
    let mut arrays: Vec<ArrayId> = fates.into_iter().map(|(array, _)| array).collect();
    arrays.sort_unstable();
    races.sort_by_key(|race| !arrays.contains(&race.array));
    Ok((races, arrays))
}

/// Refuses a kernel whose launches all race.
pub(super) fn refusal(kernel: &Kernel, array: ArrayId, write: Place, other: Place) -> Refusal {
    let name = &kernel.array(array).name;
    Refusal::with(
        write,
        other,
        format!(
            "two work-items may touch one element of `{name}` here and at {}; write elements that follow from the item's \
             ids, use `Atomic`, put a barrier between, or vouch for it by `unsafe fn`",
            kernel.locate(other)
        ),
    )
}

/// Sizes, scalars and lengths of the launches that [`Fate::of`] tries.
const TRIALS: [(u64, u64, u64); 6] =
    [(2, 8, 1 << 12), (2, 3, 1 << 12), (3, 33, 1 << 14), (3, 1, 1 << 10), (2, 0, 1 << 10), (4, 70, 1 << 16)];

/// Nodes that the items of a trial compute: some milliseconds.
const TRIAL_STEPS: u64 = 1 << 20;

/// What becomes of launches of a kernel whose accesses to an array have no condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// An inspection decides.
    Inspection,
    /// None does, because indices follow from memory, or conditions do in all launches that were
    /// tried.
    Unordered,
    /// All launches that were tried have a race, or a barrier that depends on one.
    Race,
}

impl Fate {
    fn of(kernel: &Kernel, array: ArrayId) -> Self {
        let mut fate = Self::Race;
        for sizes in &TRIALS {
            match trial(kernel, *sizes, |shape| inspect(kernel, &[array], shape, TRIAL_STEPS)) {
                Verdict::Free | Verdict::Undecided(Doubt::Long) => return Self::Inspection,
                Verdict::Undecided(Doubt::Possible(_)) => fate = Self::Unordered,
                Verdict::Race(_) | Verdict::Undecided(Doubt::Memory(_) | Doubt::Barrier(_)) => {}
            }
        }
        fate
    }
}

/// The places of races that do not follow from memory, if all launches that were tried have one.
fn sure_races(kernel: &Kernel, array: ArrayId) -> Vec<[Place; 2]> {
    let race = |sizes: &(u64, u64, u64)| {
        let clash = trial(kernel, *sizes, |shape| sure_race(kernel, array, shape, TRIAL_STEPS))?;
        Some(clash.accesses.map(|(site, _)| site.place))
    };
    TRIALS.iter().map(race).collect::<Option<_>>().unwrap_or_default()
}

/// The inspection of a small launch.
fn trial<T>(
    kernel: &Kernel,
    (times, value, len): (u64, u64, u64),
    inspect: impl FnOnce(&Shape<'_>) -> T,
) -> T {
    let dimensions = usize::from(kernel.dimensions);
    let own = |d: usize| kernel.group.as_ref().and_then(|group| group.get(d)).copied().unwrap_or(0);
    let local: Vec<u64> =
        (0..dimensions).map(|d| if own(d) == 0 { 4 / dimensions as u64 + 1 } else { own(d) }).collect();
    let global: Vec<u64> = local.iter().map(|size| size.saturating_mul(times)).collect();
    let values: Vec<Literal> = (kernel.values.iter())
        .map(|one| match one.ty {
            Scalar::F32 => Literal::f32(1.0),
            Scalar::F64 => Literal::f64(1.0),
            ty => Literal::integer(ty, value),
        })
        .collect();
    let lengths = alloc::vec![len; kernel.arrays.len()];
    let shape = Shape { global: &global, local: &local, lengths: &lengths, values: &values };
    inspect(&shape)
}

/// Whether each item accesses the element of the next one, so that only a range of one item has no
/// race.
fn are_neighbours(walker: &Walker<'_>, one: &Access, two: &Access) -> bool {
    let ([(atom @ Atom::Global(_), weight)], 1) = (&one.index.terms[..], walker.kernel.dimensions) else {
        return false;
    };
    let constants = (weight.constant(), one.index.constant.constant(), two.index.constant.constant());
    let (Some(weight), Some(first), Some(second)) = constants else { return false };
    // A condition on other ids may select a single item.
    let mut guards = one.guards.iter();
    one.index.terms == two.index.terms
        && first.checked_sub(second).is_some_and(|distance| distance.unsigned_abs() == weight.unsigned_abs())
        && one.guards.iter().map(|guard| &guard.sum).eq(two.guards.iter().map(|guard| &guard.sum))
        && guards.all(|guard| guard.sum.terms.iter().all(|(other, _)| other == atom))
}

/// The condition under which two items never access the same element; `None` if they always may.
fn disjointness(walker: &mut Walker<'_>, one: &Access, two: &Access, in_group: bool) -> Option<Condition> {
    let mut ways = Vec::new();
    for way in [
        distinct(walker, one, two, in_group),
        part(walker, one, two, in_group),
        part(walker, two, one, in_group),
        distinct_without_conditions(walker, one, two, in_group),
        super::parts::own_parts(walker, one, two, in_group),
    ] {
        let Some(conditions) = way else { continue };
        let conditions = unknown(conditions);
        if conditions.is_empty() {
            return Some(Condition::Any(alloc::vec![Vec::new()]));
        }
        if conditions.iter().all(|one| one.known() != Some(false)) && !ways.contains(&conditions) {
            ways.push(conditions);
        }
    }
    (!ways.is_empty()).then_some(Condition::Any(ways))
}

/// [`distinct`] without conditions, whose numbers may wrap in a launch.
fn distinct_without_conditions(
    walker: &mut Walker<'_>,
    one: &Access,
    two: &Access,
    in_group: bool,
) -> Option<Vec<Condition>> {
    if one.guards.is_empty() && two.guards.is_empty() {
        return None;
    }
    let [one, two] = [one, two].map(|access| Access { guards: Vec::new(), ..access.clone() });
    distinct(walker, &one, &two, in_group)
}

/// The digits of an index: a counting loop is its start and a number of steps.
fn expand_loops(walker: &mut Walker<'_>, index: &Linear, names: &mut Vec<(Atom, Atom)>) -> Linear {
    let mut index = index.clone();
    // A start may contain loops.
    for _ in 0..8 {
        let next = index.terms.iter().find_map(|(atom, _)| match atom {
            Atom::Other(number, _) => {
                walker.infos[*number as usize].steps.clone().map(|steps| (*atom, steps))
            }
            _ => None,
        });
        let Some((atom, (start, step))) = next else { break };
        let partner = names.iter().find(|(from, _)| *from == atom).map(|(_, to)| *to);
        let rounds = partner.unwrap_or_else(|| {
            let (low, high) = walker.limits(atom);
            let high = high.zip(low).map(|(high, low)| high.sub(low).div(step.clone()));
            let rounds =
                walker.fresh(Info { ty: None, low: Some(Number::ZERO), high, shared: false, steps: None });
            names.push((atom, rounds));
            rounds
        });
        index = index.replace(atom, &start.add(&Linear::atom(rounds).scale(&step)));
    }
    index
}

/// The condition under which equal indices imply equal items.
fn distinct(walker: &mut Walker<'_>, one: &Access, two: &Access, in_group: bool) -> Option<Vec<Condition>> {
    let mut needs = one.needs.clone().and(&two.needs);
    // The guards of a counting loop limit its range. Its steps are renumbered, so the guards are
    // read first.
    let mut names = Vec::new();
    let (first_extents, second_extents) =
        (loop_limits(walker, one, &mut needs), loop_limits(walker, two, &mut needs));
    let mut first = expand_loops(walker, &one.index, &mut names);
    let mut second = expand_loops(walker, &two.index, &mut names);
    for (from, to) in &names {
        let limits = |extents: &[(Atom, Option<Number>, Option<Number>)]| {
            extents.iter().find(|(atom, ..)| atom == from).map(|(_, low, high)| (low.clone(), high.clone()))
        };
        let (Atom::Other(number, _), Atom::Other(loop_number, _)) = (to, from) else { continue };
        let step = walker.infos[*loop_number as usize].steps.clone()?.1;
        let highs: Vec<_> = [limits(&first_extents), limits(&second_extents)].into_iter().flatten().collect();
        let mut most = None;
        for (low, high) in highs {
            let steps = high?.sub(low?).div(step.clone());
            most = Some(match most {
                Some(most) => Number::max(most, steps),
                None => steps,
            });
        }
        walker.infos[*number as usize].high = most;
    }
    let mut digits = coordinates(walker, [one, two], [&mut first, &mut second], in_group, &mut needs)?;
    let mut others: Vec<Atom> = first.terms.iter().chain(&second.terms).map(|(atom, _)| *atom).collect();
    others.sort_unstable();
    others.dedup();
    for atom in others {
        let (weight, same) = (first.weight(atom), second.weight(atom));
        match atom {
            Atom::Other(number, _) => {
                if weight != same {
                    return None;
                }
                if in_group && walker.infos[number as usize].shared {
                    continue;
                }
                let (low, high) = walker.limits(atom);
                let extent = high?.sub(low?).add(Number::ONE);
                digits.push(Digit { weight, extent });
            }
            // Items of the same group, if the index does not distinguish groups.
            Atom::Group(_) if in_group && weight != same => return None,
            _ => {}
        }
    }
    let difference = first.constant.clone().sub(second.constant.clone());
    distinct_by(digits, difference.clone().max(difference.neg()), needs)
}

/// The conditions under which digits tell items apart whose indices differ by `shift` at most
/// beside them; `None` if they never do.
pub(super) fn distinct_by(digits: Vec<Digit>, shift: Number, needs: Needs) -> Option<Vec<Condition>> {
    let claim = Condition::Distinct(digits, shift);
    if claim.known() == Some(false) {
        return None;
    }
    let mut requires = needs.into_conditions();
    requires.push(claim);
    Some(requires)
}

/// The digits of an index that are a work-item's own: the weights and extents of its coordinates.
/// Those that the guards fix are put in. `None` if two items may have the same.
pub(super) fn coordinates(
    walker: &mut Walker<'_>,
    [one, two]: [&Access; 2],
    [first, second]: [&mut Linear; 2],
    in_group: bool,
    needs: &mut Needs,
) -> Option<Vec<Digit>> {
    let dimensions = walker.kernel.dimensions;
    let mut digits = Vec::new();
    for dimension in 0..dimensions {
        let (global, local, group) =
            (Atom::Global(dimension), Atom::Local(dimension), Atom::Group(dimension));
        let names = |atom: Atom| first.weight(atom) != Number::ZERO || second.weight(atom) != Number::ZERO;
        let as_local = Linear::atom(group).scale(&walker.local_size(dimension)).add(&Linear::atom(local));
        let coordinates: &[Atom] = if in_group {
            (*first, *second) = (first.replace(global, &as_local), second.replace(global, &as_local));
            &[local]
        } else if names(local) || names(group) || rest_on_guards(one, local) || rest_on_guards(two, local) {
            (*first, *second) = (first.replace(global, &as_local), second.replace(global, &as_local));
            &[local, group]
        } else {
            &[global]
        };
        for coordinate in coordinates {
            let sum = Linear::atom(*coordinate);
            let of_one = walker.interval(&sum, &one.guards).ends(needs);
            let of_two = walker.interval(&sum, &two.guards).ends(needs);
            let [Some(low), Some(high)] = hull(of_one, of_two) else { return None };
            if low == high {
                // A single item, whose position is a number.
                let bound = Linear::number(low);
                (*first, *second) = (first.replace(*coordinate, &bound), second.replace(*coordinate, &bound));
                continue;
            }
            let weight = first.weight(*coordinate);
            let extent = high.sub(low).add(Number::ONE);
            if weight != second.weight(*coordinate) {
                return None;
            }
            if weight == Number::ZERO {
                // All these items have the same index, so there must be only one; a fixed group may
                // imply that.
                if extent.constant() == Some(1) {
                    continue;
                }
                return None;
            }
            digits.push(Digit { weight, extent });
        }
    }
    Some(digits)
}

/// The least start of the loops in an access's index, and the end that its guards imply.
fn loop_limits(
    walker: &Walker<'_>,
    access: &Access,
    needs: &mut Needs,
) -> Vec<(Atom, Option<Number>, Option<Number>)> {
    let mut pairs = Vec::new();
    for (atom, _) in &access.index.terms {
        if matches!(atom, Atom::Other(number, _) if walker.infos[*number as usize].steps.is_some()) {
            let [_, high] = walker.interval(&Linear::atom(*atom), &access.guards).ends(needs);
            pairs.push((*atom, walker.limits(*atom).0, high));
        }
    }
    pairs
}

fn rest_on_guards(access: &Access, atom: Atom) -> bool {
    access.guards.iter().any(|guard| guard.sum.weight(atom) != Number::ZERO)
}

/// All indices of one access are below all of the other.
fn part(walker: &mut Walker<'_>, low: &Access, high: &Access, in_group: bool) -> Option<Vec<Condition>> {
    // The other item has its own ids and its own rounds.
    let mut names: Vec<(Atom, Atom)> = Vec::new();
    let of_guards = high.guards.iter().flat_map(|guard| guard.sum.terms.iter());
    let atoms: Vec<Atom> = high.index.terms.iter().chain(of_guards).map(|(atom, _)| *atom).collect();
    for atom in atoms {
        let is_shared = match atom {
            Atom::Other(number, _) => in_group && walker.infos[number as usize].shared,
            Atom::Group(_) => in_group,
            _ => false,
        };
        if is_shared || names.iter().any(|(from, _)| *from == atom) {
            continue;
        }
        let (least, most) = walker.limits(atom);
        let other = walker.fresh(Info { ty: None, low: least, high: most, shared: false, steps: None });
        names.push((atom, other));
    }
    let rename = |sum: &Linear| {
        sum.rename(|atom| names.iter().find(|(from, _)| *from == atom).map_or(atom, |(_, to)| *to))
    };
    let other_sum =
        high.guards.iter().map(|guard| Guard { sum: rename(&guard.sum), needs: guard.needs.clone() });
    let guards: Vec<Guard> = low.guards.iter().cloned().chain(other_sum).collect();
    let room = rename(&high.index).sub(&low.index);
    let mut needs = low.needs.clone().and(&high.needs);
    let [least, most] = walker.interval(&room, &guards).ends(&mut needs);
    // Indices of 64 bits differ where their sums do, if the sums are less than 2^64 apart. Small
    // ones are: what is no term in them fits.
    match most {
        _ if walker.is_small(&low.index) && walker.is_small(&high.index) => {}
        Some(most) => needs.push(Condition::AtMost(most, Number::Constant(i64::MAX))),
        None => {
            for access in [low, high] {
                needs.add(&walker.exact_index(access)?);
            }
        }
    }
    let mut conditions = needs.into_conditions();
    conditions.push(Condition::AtMost(Number::ONE, least?));
    Some(conditions)
}
