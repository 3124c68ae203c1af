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
        return Err(Violation::Queue { said: plan.queue, expected: problem.queue() });
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
        let (index, said, expected) = (at, odd.number(), all.len() as u64);
        return Err(Violation::Row { index, field: "memory", said, expected });
    }
    let mut peaks = alloc::vec![0; all.len()];
    for (peak, memory) in peaks.iter_mut().zip(all) {
        let here: Vec<usize> = (0..plan.placement.len()).filter(|&i| plan.placement[i] == memory).collect();
        let buffers: Vec<_> = here.iter().map(|&i| problem.buffers()[i]).collect();
        let offsets: Vec<_> = here.iter().map(|&i| plan.offsets[i]).collect();
        *peak = match problem.conflicts() {
            None => sweep(&buffers, &offsets, u64::MAX)?,
            Some(relation) => {
                let peak = each(&buffers, &offsets, u64::MAX)?;
                check_conflicts(plan, problem, relation, &here)?;
                peak
            }
        };
    }
    Ok(peaks)
}

/// The memories that a plan may use.
fn memories(plan: &Plan) -> Vec<Memory> {
    match &plan.placed {
        Some(placed) => (0..placed.bounds.len()).map(|number| Memory::Own(number as u8)).collect(),
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
    let held = indices.iter().copied().filter(|&i| buffers[i].size > 0);
    // The ends were checked not to overflow.
    let held = held.map(|i| (i, (plan.offsets[i], plan.offsets[i] + buffers[i].size)));
    let mut holding = alloc::vec![0_u64; relation.len().div_ceil(64)];
    for (begins, i) in events(buffers.len(), held) {
        let bit = 1 << (i % 64);
        if !begins {
            holding[i / 64] &= !bit;
            continue;
        }
        for (word, (&held, &row)) in holding.iter().zip(relation.row(i)).enumerate() {
            if held & row != 0 {
                let other = word * 64 + (held & row).trailing_zeros() as usize;
                let (first, second) = (buffers[other].id, buffers[i].id);
                return Err(Violation::Overlap { first, second, offset: plan.offsets[i] });
            }
        }
        holding[i / 64] |= bit;
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
        if let Some((field, said, expected)) = fields.into_iter().find(|(_, said, right)| said != right) {
            return Err(Violation::Row { index, field, said, expected });
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
    let hosted = count(Memory::Host);
    let mut all = memories(plan);
    all.retain(|&memory| memory != Memory::Host || hosted > 0);
    check_equal("memories", plan.memories.len() as u64, all.len() as u64)?;
    for (used, (memory, &peak)) in plan.memories.iter().zip(all.into_iter().zip(peaks)) {
        let MemoryUse { memory: said, peak: high, buffers } = *used;
        check_equal("memories: memory", said.number(), memory.number())?;
        check_equal("memories: peak", high, peak)?;
        check_equal("memories: buffers", buffers as u64, count(memory) as u64)?;
    }
    check_equal("spilled", plan.spilled.len() as u64, hosted as u64)?;
    let buffers = problem.buffers().iter().zip(&plan.placement);
    let there = buffers.filter(|(_, memory)| **memory == Memory::Host);
    for (&said, (buffer, _)) in plan.spilled.iter().zip(there) {
        check_equal("spilled", said, buffer.id)?;
    }
    Ok(())
}

fn check_equal(field: &'static str, said: u64, expected: u64) -> Result<(), Violation> {
    if said == expected { Ok(()) } else { Err(Violation::Field { field, said, expected }) }
}

/// The conflicts hold under the problem's own edges, in any order; these close no cycle.
fn edges(plan: &Plan, problem: &Problem) -> Result<(), Violation> {
    let sorted = |edges: &[(usize, usize)]| {
        let mut edges = edges.to_vec();
        edges.sort_unstable();
        edges
    };
    let (said, expected) = (sorted(&plan.ordering_edges), sorted(problem.ordering_edges()));
    if said == expected {
        return Ok(());
    }
    let odd = said.iter().find(|edge| !expected.contains(edge));
    // A missing edge, or a repeated one.
    let odd = odd.or_else(|| expected.iter().find(|edge| !said.contains(edge))).or(said.first());
    let (earlier, later) = odd.copied().unwrap_or_default();
    Err(Violation::OrderingEdge { earlier, later })
}

/// The bound of the plan, and that of each memory for the buffers in it.
fn bounds(plan: &Plan, problem: &Problem) -> Result<(), Violation> {
    let one = plan.placement.first();
    let is_spread = plan.placement.iter().any(|memory| Some(memory) != one);
    bound(plan, problem, (plan.lower_bound, &plan.certificate), plan.peak, is_spread)?;
    let placed = plan.placed.iter().flat_map(|placed| &placed.bounds);
    for ((lower_bound, certificate), used) in placed.zip(&plan.memories) {
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
                    said: *nodes,
                    expected: plan.nodes,
                });
            }
            check_equal("lower_bound", lower_bound, capacity.saturating_add(1))?;
            return check_bound_below_peak(lower_bound, peak).map(|()| Vec::new());
        }
        Certificate::TimeCut { buffers, .. } | Certificate::Antichain { buffers } => buffers,
    };
    let named = certificate_tensors(problem, ids)?;
    match certificate {
        Certificate::TimeCut { time, .. } => live_at(problem, &named, *time)?,
        _ => check_pairwise_conflict(problem, &named)?,
    }
    let proven = |alignment: &dyn Fn(&Member) -> u64| {
        // Each memory has a topmost buffer that needs no rounding, so several memories prove only
        // the plain sum.
        let alignment = |member: &Member| if is_spread { 1 } else { alignment(member) };
        least_stack(named.iter().map(|member| (member.tensor.size, alignment(member))).collect())
    };
    // A tensor in another's block may begin only where that one may too. A bound for every use of
    // permits ignores that.
    if lower_bound != proven(&|member| problem.buffers()[member.buffer].alignment) {
        check_equal("lower_bound", lower_bound, proven(&|member| member.tensor.alignment))?;
    }
    check_bound_below_peak(lower_bound, peak)?;
    Ok(named.iter().map(|member| member.buffer).collect())
}

fn check_bound_below_peak(said: u64, expected: u64) -> Result<(), Violation> {
    if said <= expected {
        return Ok(());
    }
    Err(Violation::Field { field: "lower_bound above the peak", said, expected })
}

/// The tensors of a certificate: known, each once, and no two in one buffer.
fn certificate_tensors<'a>(problem: &'a Problem, ids: &[u64]) -> Result<Vec<&'a Member>, Violation> {
    let mut wanted = ids.to_vec();
    wanted.sort_unstable();
    if let Some(pair) = wanted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Violation::Repeated { id: pair[0] });
    }
    let mut found: Vec<&Member> = Vec::with_capacity(wanted.len());
    for member in problem.members() {
        if wanted.binary_search(&member.tensor.id).is_ok() {
            found.push(member);
        }
    }
    if found.len() < wanted.len() {
        let known = |id: &u64| found.iter().any(|member| member.tensor.id == *id);
        let id = wanted.iter().copied().find(|id| !known(id)).unwrap_or_default();
        return Err(Violation::Missing { id });
    }
    let mut homes: Vec<(usize, usize)> = found.iter().map(|member| member.buffer).zip(0..).collect();
    homes.sort_unstable();
    match homes.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(overlap_without_conflict(found[pair[0].1], found[pair[1].1])),
        None => Ok(found),
    }
}

fn overlap_without_conflict(first: &Member, second: &Member) -> Violation {
    Violation::NoConflict { first: first.tensor.id, second: second.tensor.id }
}

/// Checks that all are live at one instant, if conflicts come from lives.
fn live_at(problem: &Problem, named: &[&Member], time: u64) -> Result<(), Violation> {
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
    match named.iter().find(|member| !live[member.buffer]) {
        Some(member) => Err(Violation::NotLive { id: member.tensor.id, time }),
        None => Ok(()),
    }
}

fn check_pairwise_conflict(problem: &Problem, named: &[&Member]) -> Result<(), Violation> {
    let Some(relation) = problem.conflicts() else {
        // Intervals overlap in pairs if the last begin is before the first end.
        let life = |member: &&&Member| problem.buffers()[member.buffer].lifetime();
        let (last, first) =
            (named.iter().max_by_key(|m| life(m).lower), named.iter().min_by_key(|m| life(m).upper));
        return match (last, first) {
            (Some(last), Some(first)) if life(&last).lower >= life(&first).upper => {
                Err(overlap_without_conflict(first, last))
            }
            _ => Ok(()),
        };
    };
    let mut all = alloc::vec![0_u64; relation.len().div_ceil(64)];
    for member in named {
        all[member.buffer / 64] |= 1 << (member.buffer % 64);
    }
    for member in named {
        for (word, (&wanted, &row)) in all.iter().zip(relation.row(member.buffer)).enumerate() {
            let own = if member.buffer / 64 == word { 1 << (member.buffer % 64) } else { 0 };
            let missing = wanted & !row & !own;
            if missing != 0 {
                let other = word * 64 + missing.trailing_zeros() as usize;
                let other = named.iter().find(|named| named.buffer == other).unwrap_or(member);
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
    let proven = units.into_iter().map(|unit| {
        let (mut sum, mut topmost) = (0_u128, 0_u128);
        for &(size, _) in set.iter().filter(|&&(_, alignment)| alignment >= unit) {
            let room = u128::from(size.div_ceil(unit)) * u128::from(unit);
            sum += room;
            topmost = topmost.max(room - u128::from(size));
        }
        sum - topmost
    });
    // A checked problem's sizes, rounded up, sum up to less than 2^64.
    proven.max().and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0)
}
