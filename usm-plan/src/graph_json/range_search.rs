//! Searches plans for every value. Plans for some values give orders; the orders that do best on
//! all values are kept.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use usm_pool::alias::InPlace;
use usm_pool::range::{Dimension, below};
use usm_pool::{ConflictGraph, Options, Problem, plan};

use super::{File, JsonPlan, JsonTensor};
use crate::error::{Error, Result};
use crate::field::Field;
use crate::model::Hints;
use crate::ranged::{NamedDimension, PLANS, PlanSet};

/// Maximum number of value combinations that are planned one by one.
const PROBES: usize = 64;

/// One value for every dimension.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Probe {
    /// In the order of the dimensions.
    pub values: Vec<u64>,
    /// Peak in bytes by the best of the plans.
    pub peak: u64,
    /// Lower bound in bytes for these values.
    pub lower_bound: u64,
}

/// Searches plans for every value of a file's dimensions. `ranges` narrows dimensions by name; a
/// dimension with a value in the hints has only that value.
///
/// # Errors
/// Ranges outside the file's, sizes without a value, and every refusal of a plan for one value.
pub(super) fn search(
    mut file: File,
    hints: &Hints<'_>,
    ranges: &[(String, Dimension)],
    options: &Options<'_>,
) -> Result<(File, Vec<Probe>)> {
    if !file.plans.is_empty() {
        return Err(Error::bad("the file has plans for every value already").in_field("plans"));
    }
    let mut dims = file.dimensions()?;
    if dims.is_empty() {
        return Err(Error::bad("the graph has no dimension").in_field("dims"));
    }
    let fixed_values = hints
        .dims
        .iter()
        .map(|(name, value)| (name.clone(), Dimension { low: *value, high: *value, step: 1 }));
    narrow(&mut dims, &fixed_values.chain(ranges.iter().cloned()).collect::<Vec<_>>())?;
    for (json, dim) in file.dims.iter_mut().zip(&dims) {
        (json.low, json.high, json.step) = (dim.values.low, dim.values.high, dim.values.step);
    }
    let probes = probes(&dims);
    take_permits(&mut file, &dims, &probes, hints, options)?;
    // A permit that is free alone may conflict with another one for some value.
    let probes = match plans(&mut file, &dims, &probes, hints, options) {
        Err(_) if file.tensors.iter().any(|tensor| tensor.over.is_some()) => {
            file.tensors.iter_mut().for_each(|tensor| tensor.over = None);
            plans(&mut file, &dims, &probes, hints, options)
        }
        problem => problem,
    }?;
    Ok((file, probes))
}

/// Whether the dimensions have no other values than those of the probes, which all differ.
pub(super) fn are_all_values(dims: &[NamedDimension], probes: &[Probe]) -> bool {
    let count = |dim: &NamedDimension| (dim.values.high - dim.values.low) / dim.values.step;
    let all = dims.iter().try_fold(1, |all: u64, dim| all.checked_mul(count(dim).checked_add(1)?));
    all.is_some_and(|all| all <= probes.len() as u64)
}

/// Adds plans to the file. Returns their results on the probes.
fn plans(
    file: &mut File,
    dims: &[NamedDimension],
    probes: &[Vec<u64>],
    hints: &Hints<'_>,
    options: &Options<'_>,
) -> Result<Vec<Probe>> {
    file.plans = vec![JsonPlan { below: Vec::new() }];
    let mut part = *options;
    part.nodes = (options.nodes / probes.len() as u64).max(1);
    let mut orders = Vec::with_capacity(probes.len());
    let mut bounds = Vec::with_capacity(probes.len());
    let problem = |values: &Vec<u64>| problem(file, dims, values, hints, options);
    // An order must hold for all probes. Out of order, a view that no operator makes follows the
    // operators that write its bytes: which these are depends on the values, and none writes a view
    // without bytes.
    let mut all: Option<ConflictGraph> = None;
    for values in probes {
        let problem = problem(values)?;
        match (&mut all, problem.conflicts()) {
            (_, None) => break,
            (Some(all), Some(conflicts)) if all.len() == conflicts.len() => all.merge(conflicts),
            (_, Some(conflicts)) => all = Some(conflicts.clone()),
        }
    }
    for values in probes {
        let problem = problem(values)?;
        let plan = plan(&problem, &part).map_err(Error::bad)?;
        let problem = match all.clone().filter(|all| all.len() == problem.buffers().len()) {
            Some(all) => Problem::from_conflicts(problem.buffers().to_vec(), all).map_err(Error::bad)?,
            None => problem,
        };
        let id = |buffer: usize| problem.buffers()[buffer].id;
        let pairs = below(&problem, &plan.offsets).map_err(Error::bad)?;
        let order: Vec<(u64, u64)> = pairs.into_iter().map(|(low, high)| (id(low), id(high))).collect();
        if !orders.contains(&order) {
            orders.push(order);
        }
        bounds.push(plan.lower_bound);
    }
    let mut peaks = Vec::with_capacity(orders.len());
    for order in &orders {
        file.plans = vec![JsonPlan { below: order.clone() }];
        let on = |values: &Vec<u64>| -> Result<u64> {
            let graph = file.graph(dims, values, hints)?;
            let plan_set: PlanSet = file.planned(dims.to_vec(), values.clone())?;
            Ok(plan_set.plan(&graph, options)?.1.peak)
        };
        peaks.push(probes.iter().map(on).collect::<Result<Vec<u64>>>()?);
    }
    let choice = choose(&peaks, &bounds);
    let best = |probe: usize| choice.iter().map(|&order| peaks[order][probe]).min().unwrap_or(0);
    let outcome = probes.iter().zip(&bounds).enumerate();
    let outcome = outcome.map(|(probe, (values, &lower_bound))| Probe {
        values: values.clone(),
        peak: best(probe),
        lower_bound,
    });
    let outcome = outcome.collect();
    file.plans = choice.iter().map(|&order| JsonPlan { below: orders[order].clone() }).collect();
    Ok(outcome)
}

/// Narrows dimensions to the user's ranges, which must lie in the file's values.
fn narrow(dims: &mut [NamedDimension], ranges: &[(String, Dimension)]) -> Result<()> {
    let refuse = |reason: String| Err(Error::bad(reason).in_option(Field::Dims));
    let mut names = HashSet::new();
    for (name, range) in ranges {
        let Some(dim) = dims.iter_mut().find(|dim| dim.name == *name || dim.of.as_ref() == Some(name)) else {
            return refuse(format!("the graph has no dimension {name:?}"));
        };
        if !names.insert(dim.name.clone()) {
            return refuse(format!("{name} is given twice"));
        }
        let Dimension { low, high, step } = *range;
        let last = range.greatest();
        let inside = dim.values.contains(low) && dim.values.contains(last);
        if !inside || (low != last && step % dim.values.step != 0) {
            return refuse(format!("{name}={low}..{high}:{step} is not all in {}", dim.values));
        }
        dim.values = Dimension { low, high: last, step };
    }
    Ok(())
}

/// Sample values: the ends of every dimension, and some between if there is room.
fn probes(dims: &[NamedDimension]) -> Vec<Vec<u64>> {
    let each = match dims.len() {
        1 => 9,
        2 => 5,
        3 => 4,
        _ => 2,
    };
    let mut probes = vec![Vec::new()];
    for NamedDimension { values, .. } in dims {
        let steps = (values.high - values.low) / values.step;
        let at = |k: u64| values.low + (u128::from(steps) * u128::from(k) / (each - 1)) as u64 * values.step;
        let mut some: Vec<u64> = (0..each as u64).map(at).collect();
        some.dedup();
        // If all combinations are too many, the later dimensions vary with the first.
        let room = PROBES / probes.len();
        let grow = |probe: &Vec<u64>, value: u64| probe.iter().copied().chain([value]).collect::<Vec<_>>();
        probes = if some.len() <= room {
            probes.iter().flat_map(|probe| some.iter().map(move |&value| grow(probe, value))).collect()
        } else {
            probes.iter().enumerate().map(|(at, probe)| grow(probe, some[at % some.len()])).collect()
        };
    }
    probes
}

/// Adds the permits between tensors of equal size for all values that are free on the queue; none
/// if they differ between values.
fn take_permits(
    file: &mut File,
    dims: &[NamedDimension],
    probes: &[Vec<u64>],
    hints: &Hints<'_>,
    options: &Options<'_>,
) -> Result<()> {
    file.plans = vec![JsonPlan { below: Vec::new() }];
    let size = |tensor: &JsonTensor| Some((tensor.id, (tensor.size.to_terms(dims).ok()?, tensor.padding)));
    let sizes: HashMap<u64, _> = file.tensors.iter().filter_map(size).collect();
    // From the output to the first input that it may be written over.
    let mut bases: HashMap<u64, u64> = HashMap::new();
    for &(input, output) in file.ops.iter().flat_map(|op| &op.in_place) {
        if sizes.get(&input).is_some_and(|size| sizes.get(&output) == Some(size)) {
            bases.entry(output).or_insert(input);
        }
    }
    let take = |file: &mut File, bases_of: &HashMap<u64, u64>| {
        for tensor in &mut file.tensors {
            tensor.over = bases_of.get(&tensor.id).copied().filter(|_| tensor.alias_of.is_none());
        }
    };
    take(file, &bases);
    let mut used_tensors: Option<HashSet<u64>> = None;
    for values in probes {
        let problem = problem(file, dims, values, hints, options)?;
        let joined_members = problem.members().iter().filter(|member| !member.view);
        let joined_members =
            joined_members.filter(|member| problem.buffers()[member.buffer].id != member.tensor.id);
        let joined_tensors: HashSet<u64> = joined_members.map(|member| member.tensor.id).collect();
        let both =
            used_tensors.as_ref().map_or_else(|| joined_tensors.clone(), |others| others & &joined_tensors);
        used_tensors = Some(both);
    }
    let used_tensors = used_tensors.unwrap_or_default();
    bases.retain(|output, _| used_tensors.contains(output));
    take(file, &bases);
    Ok(())
}

fn problem(
    file: &File,
    dims: &[NamedDimension],
    values: &[u64],
    hints: &Hints<'_>,
    options: &Options<'_>,
) -> Result<Problem> {
    let graph = file.graph(dims, values, hints)?;
    Problem::from_graph(&graph, options.queue, InPlace::Always).map_err(Error::bad)
}

/// Few orders that together come close to the bounds of all probes. Each step adds the order that
/// lowers the sum of ratios of peak to bound the most.
fn choose(peaks: &[Vec<u64>], bounds: &[u64]) -> Vec<usize> {
    // In millionths of the bound.
    let cost = |candidate: &[usize]| -> u128 {
        let best =
            |probe: usize| candidate.iter().map(|&order| peaks[order][probe]).min().unwrap_or(u64::MAX);
        let share =
            |(probe, &bound): (usize, &u64)| u128::from(best(probe)) * 1_000_000 / u128::from(bound.max(1));
        bounds.iter().enumerate().map(share).sum()
    };
    let mut choice: Vec<usize> = Vec::new();
    while choice.len() < PLANS {
        let with = |order: usize| [&choice[..], &[order]].concat();
        let Some(next) = (0..peaks.len()).min_by_key(|&order| (cost(&with(order)), order)) else { break };
        if !choice.is_empty() && cost(&with(next)) >= cost(&choice) {
            break;
        }
        choice.push(next);
    }
    choice
}
