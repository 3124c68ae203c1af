//! Checks a whole plan against its problem: recomputes every number, and the bound from its
//! certificate.

use alloc::vec::Vec;

use super::sweep::events;
use super::{Violation, each, sweep};
use crate::ConflictGraph;
use crate::plan::{Certificate, Memory, MemoryUse, Plan, Row};
use crate::problem::{Member, Problem};

/// Checks every statement of a plan: places, rows, sums, queue, ordering edges, and the bound with
/// its certificate. Returns the peak of each memory in bytes, device first.
///
/// A [`Certificate::Search`] is a claim: its numbers must be consistent, but the search is not
/// repeated.
///
/// # Errors
/// The first [`Violation`] found.
pub fn plan(plan: &Plan, problem: &Problem) -> Result<Vec<u64>, Violation> {
    let buffers = problem.buffers().len();
    for other in [plan.offsets.len(), plan.placement.len()] {
        if other != buffers {
            return Err(Violation::LengthMismatch { buffers, other });
        }
    }
    if plan.queue != problem.queue() {
        return Err(Violation::Queue { actual: plan.queue, expected: problem.queue() });
    }
    let peaks = peaks(plan, problem)?;
    rows(plan, problem)?;
    check_sums(plan, problem, &peaks)?;
    edges(plan, problem)?;
    bounds(plan, problem)?;
    Ok(peaks)
}

/// Checks in each memory that tensors which may be live together share no byte.
fn peaks(plan: &Plan, problem: &Problem) -> Result<Vec<u64>, Violation> {
    let all = memories(plan);
    if let Some((at, &odd)) = plan.placement.iter().enumerate().find(|(_, memory)| !all.contains(memory)) {
        let (index, actual, expected) = (at, odd.number(), all.len() as u64);
        return Err(Violation::Row { index, field: "memory", actual, expected });
    }
    let mut peaks = alloc::vec![0; all.len()];
    for (peak, memory) in peaks.iter_mut().zip(all) {
        let members: Vec<usize> =
            (0..plan.placement.len()).filter(|&i| plan.placement[i] == memory).collect();
        let buffers: Vec<_> = members.iter().map(|&i| problem.buffers()[i]).collect();
        let offsets: Vec<_> = members.iter().map(|&i| plan.offsets[i]).collect();
        *peak = match problem.conflicts() {
            None => sweep(&buffers, &offsets, u64::MAX)?,
            Some(relation) => {
                let peak = each(&buffers, &offsets, u64::MAX)?;
                check_conflicts(plan, problem, relation, &members)?;
                peak
            }
        };
    }
    Ok(peaks)
}

/// The memories that a plan may use.
fn memories(plan: &Plan) -> Vec<Memory> {
    match &plan.memory_plan {
        Some(memory_plan) => (0..memory_plan.bounds.len()).map(|number| Memory::Own(number as u8)).collect(),
        None => [Memory::Device, Memory::Host].into(),
    }
}

/// One pass over the addresses: a buffer that begins must not conflict with any that holds the
/// byte, 64 of them at a time.
fn check_conflicts(
    plan: &Plan,
    problem: &Problem,
    relation: &ConflictGraph,
    indices: &[usize],
) -> Result<(), Violation> {
    let buffers = problem.buffers();
    let ranges = indices.iter().copied().filter(|&i| buffers[i].size > 0);
    // The ends were checked not to overflow.
    let ranges = ranges.map(|i| (i, (plan.offsets[i], plan.offsets[i] + buffers[i].size)));
    let mut live_bits = alloc::vec![0_u64; relation.len().div_ceil(64)];
    for (begins, i) in events(buffers.len(), ranges) {
        let bit = 1 << (i % 64);
        if !begins {
            live_bits[i / 64] &= !bit;
            continue;
        }
        for (word, (&bits, &row)) in live_bits.iter().zip(relation.row(i)).enumerate() {
            if bits & row != 0 {
                let other = word * 64 + (bits & row).trailing_zeros() as usize;
                let (first, second) = (buffers[other].id, buffers[i].id);
                return Err(Violation::Overlap { first, second, offset: plan.offsets[i] });
            }
        }
        live_bits[i / 64] |= bit;
    }
    Ok(())
}

/// One row for each tensor, with the values that follow from the problem, its buffer's offset and
/// its memory.
fn rows(plan: &Plan, problem: &Problem) -> Result<(), Violation> {
    check_equal("rows", plan.rows.len() as u64, problem.members().len() as u64)?;
    for (index, (row, member)) in plan.rows.iter().zip(problem.members()).enumerate() {
        let &Row { id, lower, upper, size, alignment, offset, memory, buffer } = row;
        let Member { tensor, buffer: home, offset: inside, .. } = *member;
        let fields = [
            ("id", id, tensor.id),
            ("lower", lower, tensor.lower),
            ("upper", upper, tensor.upper),
            ("size", size, tensor.size),
            ("alignment", alignment, tensor.alignment),
            ("buffer", buffer as u64, home as u64),
            // The buffer was found to end below 2^64, and the tensor lies inside of it.
            ("offset", offset, plan.offsets[home].saturating_add(inside)),
            ("memory", memory.number(), plan.placement[home].number()),
        ];
        if let Some((field, actual, expected)) = fields.into_iter().find(|(_, actual, right)| actual != right)
        {
            return Err(Violation::Row { index, field, actual, expected });
        }
    }
    Ok(())
}

/// Peak, plain sum, use of each memory, and the list of buffers outside device memory.
fn check_sums(plan: &Plan, problem: &Problem, peaks: &[u64]) -> Result<(), Violation> {
    let roots = problem.members().iter().filter(|member| !member.view);
    let plain = roots.fold(0_u64, |sum, member| sum.saturating_add(member.tensor.size));
    check_equal("naive", plan.naive, plain)?;
    check_equal("peak", plan.peak, peaks.iter().fold(0, |sum, &peak| sum.saturating_add(peak)))?;
    let count = |of: Memory| plan.placement.iter().filter(|&&memory| memory == of).count();
    let host_count = count(Memory::Host);
    let mut all = memories(plan);
    all.retain(|&memory| memory != Memory::Host || host_count > 0);
    check_equal("memories", plan.memories.len() as u64, all.len() as u64)?;
    for (used, (memory, &peak)) in plan.memories.iter().zip(all.into_iter().zip(peaks)) {
        let MemoryUse { memory: actual, peak: high, buffers } = *used;
        check_equal("memories: memory", actual.number(), memory.number())?;
        check_equal("memories: peak", high, peak)?;
        check_equal("memories: buffers", buffers as u64, count(memory) as u64)?;
    }
    check_equal("spilled", plan.spilled.len() as u64, host_count as u64)?;
    let buffers = problem.buffers().iter().zip(&plan.placement);
    let host_buffers = buffers.filter(|(_, memory)| **memory == Memory::Host);
    for (&id, (buffer, _)) in plan.spilled.iter().zip(host_buffers) {
        check_equal("spilled", id, buffer.id)?;
    }
    Ok(())
}

fn check_equal(field: &'static str, actual: u64, expected: u64) -> Result<(), Violation> {
    if actual == expected { Ok(()) } else { Err(Violation::Field { field, actual, expected }) }
}

/// The conflicts hold under the problem's own edges, in any order; these close no cycle.
fn edges(plan: &Plan, problem: &Problem) -> Result<(), Violation> {
    let sorted_edges = |edges: &[(usize, usize)]| {
        let mut edges = edges.to_vec();
        edges.sort_unstable();
        edges
    };
    let (actual, expected) = (sorted_edges(&plan.ordering_edges), sorted_edges(problem.ordering_edges()));
    if actual == expected {
        return Ok(());
    }
    let odd = actual.iter().find(|edge| !expected.contains(edge));
    // A missing edge, or a repeated one.
    let odd = odd.or_else(|| expected.iter().find(|edge| !actual.contains(edge))).or(actual.first());
    let (earlier, later) = odd.copied().unwrap_or_default();
    Err(Violation::OrderingEdge { earlier, later })
}

/// The bound of the plan, and that of each memory for the buffers in it.
fn bounds(plan: &Plan, problem: &Problem) -> Result<(), Violation> {
    let one = plan.placement.first();
    let is_spread = plan.placement.iter().any(|memory| Some(memory) != one);
    bound(plan, problem, (plan.lower_bound, &plan.certificate), plan.peak, is_spread)?;
    let memory_bounds = plan.memory_plan.iter().flat_map(|memory_plan| &memory_plan.bounds);
    for ((lower_bound, certificate), used) in memory_bounds.zip(&plan.memories) {
        let buffers = bound(plan, problem, (*lower_bound, certificate), used.peak, false)?;
        if let Some(&odd) = buffers.iter().find(|&&buffer| plan.placement[buffer] != used.memory) {
            return Err(Violation::Missing { id: problem.buffers()[odd].id });
        }
    }
    Ok(())
}

/// The bound must equal the proven one, and must not exceed the peak. Returns the buffers of the
/// certificate.
fn bound(
    plan: &Plan,
    problem: &Problem,
    (lower_bound, certificate): (u64, &Certificate),
    peak: u64,
    is_spread: bool,
) -> Result<Vec<usize>, Violation> {
    let ids = match certificate {
        Certificate::Search { nodes, capacity } => {
            if *nodes > plan.nodes {
                return Err(Violation::Field {
                    field: "certificate: nodes",
                    actual: *nodes,
                    expected: plan.nodes,
                });
            }
            check_equal("lower_bound", lower_bound, capacity.saturating_add(1))?;
            return check_bound_below_peak(lower_bound, peak).map(|()| Vec::new());
        }
        Certificate::TimeCut { buffers, .. } | Certificate::Antichain { buffers } => buffers,
    };
    let members = certificate_tensors(problem, ids)?;
    match certificate {
        Certificate::TimeCut { time, .. } => live_at(problem, &members, *time)?,
        _ => check_pairwise_conflict(problem, &members)?,
    }
    let bound_with = |alignment: &dyn Fn(&Member) -> u64| {
        // Each memory has a topmost buffer that needs no rounding, so several memories prove only
        // the plain sum.
        let alignment = |member: &Member| if is_spread { 1 } else { alignment(member) };
        least_stack(members.iter().map(|member| (member.tensor.size, alignment(member))).collect())
    };
    // A tensor in another's block may begin only where that one may too. A bound for every use of
    // permits ignores that.
    if lower_bound != bound_with(&|member| problem.buffers()[member.buffer].alignment) {
        check_equal("lower_bound", lower_bound, bound_with(&|member| member.tensor.alignment))?;
    }
    check_bound_below_peak(lower_bound, peak)?;
    Ok(members.iter().map(|member| member.buffer).collect())
}

fn check_bound_below_peak(actual: u64, expected: u64) -> Result<(), Violation> {
    if actual <= expected {
        return Ok(());
    }
    Err(Violation::Field { field: "lower_bound above the peak", actual, expected })
}

/// The tensors of a certificate: known, each once, and no two in one buffer.
fn certificate_tensors<'a>(problem: &'a Problem, ids: &[u64]) -> Result<Vec<&'a Member>, Violation> {
    let mut sorted_ids = ids.to_vec();
    sorted_ids.sort_unstable();
    if let Some(pair) = sorted_ids.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Violation::Repeated { id: pair[0] });
    }
    let mut members: Vec<&Member> = Vec::with_capacity(sorted_ids.len());
    for member in problem.members() {
        if sorted_ids.binary_search(&member.tensor.id).is_ok() {
            members.push(member);
        }
    }
    if members.len() < sorted_ids.len() {
        let is_known = |id: &u64| members.iter().any(|member| member.tensor.id == *id);
        let id = sorted_ids.iter().copied().find(|id| !is_known(id)).unwrap_or_default();
        return Err(Violation::Missing { id });
    }
    let mut homes: Vec<(usize, usize)> = members.iter().map(|member| member.buffer).zip(0..).collect();
    homes.sort_unstable();
    match homes.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(overlap_without_conflict(members[pair[0].1], members[pair[1].1])),
        None => Ok(members),
    }
}

fn overlap_without_conflict(first: &Member, second: &Member) -> Violation {
    Violation::NoConflict { first: first.tensor.id, second: second.tensor.id }
}

/// Checks that all are live at one instant, if conflicts come from lives.
fn live_at(problem: &Problem, members: &[&Member], time: u64) -> Result<(), Violation> {
    let mut live = alloc::vec![false; problem.buffers().len()];
    if problem.conflicts().is_none() {
        for (live, buffer) in live.iter_mut().zip(problem.buffers()) {
            *live = buffer.lower <= time && time < buffer.upper;
        }
    }
    // Lives with gaps come in pieces. Other explicit relations have no instants.
    for piece in problem.pieces().iter().filter(|piece| piece.lower <= time && time < piece.upper) {
        live[piece.id as usize] = true;
    }
    match members.iter().find(|member| !live[member.buffer]) {
        Some(member) => Err(Violation::NotLive { id: member.tensor.id, time }),
        None => Ok(()),
    }
}

fn check_pairwise_conflict(problem: &Problem, members: &[&Member]) -> Result<(), Violation> {
    let Some(relation) = problem.conflicts() else {
        // Intervals overlap in pairs if the last begin is before the first end.
        let life = |member: &&&Member| problem.buffers()[member.buffer].lifetime();
        let (last, first) =
            (members.iter().max_by_key(|m| life(m).lower), members.iter().min_by_key(|m| life(m).upper));
        return match (last, first) {
            (Some(last), Some(first)) if life(&last).lower >= life(&first).upper => {
                Err(overlap_without_conflict(first, last))
            }
            _ => Ok(()),
        };
    };
    let mut all = alloc::vec![0_u64; relation.len().div_ceil(64)];
    for member in members {
        all[member.buffer / 64] |= 1 << (member.buffer % 64);
    }
    for member in members {
        for (word, (&bits, &row)) in all.iter().zip(relation.row(member.buffer)).enumerate() {
            let own = if member.buffer / 64 == word { 1 << (member.buffer % 64) } else { 0 };
            let gaps = bits & !row & !own;
            if gaps != 0 {
                let other = word * 64 + gaps.trailing_zeros() as usize;
                let other = members.iter().find(|one| one.buffer == other).unwrap_or(member);
                return Err(overlap_without_conflict(member, other));
            }
        }
    }
    Ok(())
}

/// The least bytes for buffers `(size, alignment)` at disjoint bytes. Buffers aligned to `unit` or
/// more begin at multiples of it, so each takes its size rounded up, except the topmost. The best
/// unit counts.
fn least_stack(mut set: Vec<(u64, u64)>) -> u64 {
    set.retain(|&(size, _)| size > 0);
    let mut units: Vec<u64> = set.iter().map(|&(_, alignment)| alignment).collect();
    units.sort_unstable();
    units.dedup();
    let sums = units.into_iter().map(|unit| {
        let (mut sum, mut topmost) = (0_u128, 0_u128);
        for &(size, _) in set.iter().filter(|&&(_, alignment)| alignment >= unit) {
            let room = u128::from(size.div_ceil(unit)) * u128::from(unit);
            sum += room;
            topmost = topmost.max(room - u128::from(size));
        }
        sum - topmost
    });
    // A checked problem's sizes, rounded up, sum up to less than 2^64.
    sums.max().and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0)
}
