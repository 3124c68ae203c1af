//! Checks a plan against the memories of its graph: capacities, chunks, pins, the cost, and the
//! bound on the cost.

use alloc::vec::Vec;

use super::Violation;
use super::graph::is_written;
use crate::graph::{Graph, Space, TensorKind};
use crate::plan::{Memory, Plan};
use crate::problem::Problem;
use crate::sort;

/// Checks that every tensor lies within its memory, and how much the plan costs. A plan that was
/// made for a graph without memories has none of this.
///
/// # Errors
/// The first [`Violation`] found.
pub fn memories(graph: &Graph, problem: &Problem, plan: &Plan) -> Result<(), Violation> {
    let spaces = graph.memories();
    let Some(memory_plan) =
        plan.memory_plan.as_ref().filter(|memory_plan| memory_plan.bounds.len() == spaces.len())
    else {
        let actual = plan.memory_plan.as_ref().map_or(0, |memory_plan| memory_plan.bounds.len()) as u64;
        return equal("memories", actual, spaces.len() as u64);
    };
    for row in &plan.rows {
        let (id, offset, size) = (row.id, row.offset, row.size);
        let tensor = graph.tensor_index(id).ok_or(Violation::Missing { id })?;
        let number =
            own(row.memory).filter(|&number| number < spaces.len()).ok_or(Violation::Missing { id })?;
        if let Some(pin) = graph.tensors()[tensor].memory {
            equal("memory of a pinned tensor", number as u64, pin as u64)?;
        }
        let Space { capacity, chunk, .. } = spaces[number];
        let end = offset.saturating_add(size);
        let chunk = chunk.unwrap_or(capacity);
        let limit = (offset / chunk).saturating_add(1).saturating_mul(chunk).min(capacity);
        if end > limit && size > 0 {
            return Err(Violation::Outside { id, offset, size, capacity: limit });
        }
    }
    let mut traffic = alloc::vec![0_u128; problem.buffers().len()];
    for member in problem.members() {
        let Some(tensor) = graph.tensor_index(member.tensor.id) else { continue };
        let node = &graph.tensors()[tensor];
        let times = node.users.len() + usize::from(is_written(graph, tensor));
        traffic[member.buffer] += u128::from(node.size) * times as u128;
    }
    let cost = |buffer: usize, space: &Space| traffic[buffer].saturating_mul(u128::from(space.cost));
    equal("placed buffers", plan.placement.len() as u64, traffic.len() as u64)?;
    let mut sum = 0_u128;
    for (buffer, &memory) in plan.placement.iter().enumerate() {
        let violation = || Violation::Missing { id: problem.buffers()[buffer].id };
        let space = own(memory).and_then(|number| spaces.get(number)).ok_or_else(violation)?;
        sum = sum.saturating_add(cost(buffer, space));
    }
    equal("cost", memory_plan.cost, u64::try_from(sum).unwrap_or(u64::MAX))?;
    let bound = cost_bound(graph, problem, &memory_plan.times, &traffic);
    equal("cost_bound", memory_plan.cost_bound, u64::try_from(bound).unwrap_or(u64::MAX))?;
    if memory_plan.cost_bound > memory_plan.cost {
        return Err(Violation::Field {
            field: "cost_bound above the cost",
            actual: memory_plan.cost_bound,
            expected: memory_plan.cost,
        });
    }
    Ok(())
}

fn own(memory: Memory) -> Option<usize> {
    match memory {
        Memory::Own(number) => Some(usize::from(number)),
        _ => None,
    }
}

fn equal(field: &'static str, actual: u64, expected: u64) -> Result<(), Violation> {
    if actual == expected { Ok(()) } else { Err(Violation::Field { field, actual, expected }) }
}

/// What the buffers cost at least: each in its cheapest memory, and at the named instants those
/// that the cheap memories cannot hold in others.
fn cost_bound(graph: &Graph, problem: &Problem, times: &[u64], traffic: &[u128]) -> u128 {
    let spaces = graph.memories();
    let buffers = problem.buffers();
    // The costs of the memories that may hold the buffer, ascending.
    let mut costs: Vec<Vec<u64>> = buffers
        .iter()
        .map(|buffer| {
            let fits =
                |space: &&Space| buffer.size <= space.chunk.unwrap_or(space.capacity).min(space.capacity);
            let mut costs: Vec<u64> = spaces.iter().filter(fits).map(|space| space.cost).collect();
            costs.sort_unstable();
            costs
        })
        .collect();
    for member in problem.members() {
        let node = graph.tensor_index(member.tensor.id).map(|tensor| &graph.tensors()[tensor]);
        if let Some((TensorKind::Activation, Some(pin))) = node.map(|node| (node.kind, node.memory)) {
            costs[member.buffer] = [spaces[pin].cost].into();
        }
    }
    let least = |buffer: usize| costs[buffer].first().copied().unwrap_or(0);
    let cheap = (0..buffers.len()).map(|i| traffic[i].saturating_mul(u128::from(least(i))));
    let mut sum = cheap.fold(0, u128::saturating_add);
    let mut is_counted = alloc::vec![false; buffers.len()];
    for &time in times {
        let live: Vec<usize> = (0..buffers.len())
            .filter(|&i| buffers[i].lower <= time && time < buffers[i].upper && !is_counted[i])
            .filter(|&i| buffers[i].size > 0)
            .collect();
        let move_cost = |limit: u64| {
            let bytes = spaces.iter().filter(|space| space.cost <= limit).map(|space| space.capacity);
            let room: u128 = bytes.map(u128::from).sum();
            let cheap: Vec<usize> = live.iter().copied().filter(|&i| least(i) <= limit).collect();
            let load: u128 = cheap.iter().map(|&i| u128::from(buffers[i].size)).sum();
            let out = |&i: &usize| {
                let next = costs[i].iter().find(|&&cost| cost > limit)?;
                Some((traffic[i].saturating_mul(u128::from(next - least(i))), u128::from(buffers[i].size)))
            };
            cheapest(&cheap.iter().filter_map(out).collect::<Vec<_>>(), load.saturating_sub(room))
        };
        sum = sum.saturating_add(spaces.iter().map(|space| move_cost(space.cost)).max().unwrap_or(0));
        live.into_iter().for_each(|i| is_counted[i] = true);
    }
    sum
}

/// The least cost of so many bytes of things `(cost, bytes)`: of whole things, if they are at most
/// twelve. Otherwise each byte costs the thing's cost for its bytes, rounded down.
fn cheapest(things: &[(u128, u128)], mut bytes: u128) -> u128 {
    if things.len() <= 12 {
        let sums = (0_u32..1 << things.len()).map(|subset| {
            let members = things.iter().enumerate().filter(|(at, _)| subset >> at & 1 == 1);
            members.fold((0_u128, 0), |sum, (_, thing)| (sum.0.saturating_add(thing.0), sum.1 + thing.1))
        });
        return sums.filter(|sum| sum.1 >= bytes).map(|sum| sum.0).min().unwrap_or(u128::MAX);
    }
    let each = |at: usize| things[at].0 / things[at].1;
    let mut order: Vec<usize> = (0..things.len()).collect();
    sort::by_key(&mut order, each);
    let mut sum = 0_u128;
    for at in order {
        let part = bytes.min(things[at].1);
        sum = sum.saturating_add(each(at) * part);
        bytes -= part;
    }
    sum
}
