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
pub fn plan(plan: &Plan, problem: &Problem) -> Result<[u64; 2], Violation> {
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
    check_sums(plan, problem, peaks)?;
    edges(plan, problem)?;
    bound(plan, problem)?;
    Ok(peaks)
}

/// Checks in each memory that tensors which may be live together share no byte.
fn peaks(plan: &Plan, problem: &Problem) -> Result<[u64; 2], Violation> {
    let mut peaks = [0; 2];
    for (peak, memory) in peaks.iter_mut().zip([Memory::Device, Memory::Host]) {
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
            ("memory", memory as u64, plan.placement[home] as u64),
        ];
        if let Some((field, said, expected)) = fields.into_iter().find(|(_, said, right)| said != right) {
            return Err(Violation::Row { index, field, said, expected });
        }
    }
    Ok(())
}

/// Peak, plain sum, use of each memory, and the list of buffers outside device memory.
fn check_sums(plan: &Plan, problem: &Problem, peaks: [u64; 2]) -> Result<(), Violation> {
    let roots = problem.members().iter().filter(|member| !member.view);
    let plain = roots.fold(0_u64, |sum, member| sum.saturating_add(member.tensor.size));
    check_equal("naive", plan.naive, plain)?;
    check_equal("peak", plan.peak, peaks[0].saturating_add(peaks[1]))?;
    let hosted = plan.placement.iter().filter(|&&memory| memory == Memory::Host).count();
    let counts = [plan.placement.len() - hosted, hosted];
    check_equal("memories", plan.memories.len() as u64, 1 + u64::from(hosted > 0))?;
    let both = [Memory::Device, Memory::Host].into_iter().zip(peaks).zip(counts);
    for (used, ((memory, peak), buffers)) in plan.memories.iter().zip(both) {
        let MemoryUse { memory: said, peak: high, buffers: count } = *used;
        check_equal("memories: memory", said as u64, memory as u64)?;
        check_equal("memories: peak", high, peak)?;
        check_equal("memories: buffers", count as u64, buffers as u64)?;
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

/// The bound must equal the proven one, and must not exceed the peak.
fn bound(plan: &Plan, problem: &Problem) -> Result<(), Violation> {
    let ids = match &plan.certificate {
        Certificate::Search { nodes, capacity } => {
            if *nodes > plan.nodes {
                return Err(Violation::Field {
                    field: "certificate: nodes",
                    said: *nodes,
                    expected: plan.nodes,
                });
            }
            check_equal("lower_bound", plan.lower_bound, capacity.saturating_add(1))?;
            return check_bound_below_peak(plan);
        }
        Certificate::TimeCut { buffers, .. } | Certificate::Antichain { buffers } => buffers,
    };
    let named = certificate_tensors(problem, ids)?;
    match plan.certificate {
        Certificate::TimeCut { time, .. } => live_at(problem, &named, time)?,
        _ => check_pairwise_conflict(problem, &named)?,
    }
    let spread = plan.placement.contains(&Memory::Device) && plan.placement.contains(&Memory::Host);
    let proven = |alignment: &dyn Fn(&Member) -> u64| {
        // Each memory has a topmost buffer that needs no rounding, so several memories prove only
        // the plain sum.
        let alignment = |member: &Member| if spread { 1 } else { alignment(member) };
        least_stack(named.iter().map(|member| (member.tensor.size, alignment(member))).collect())
    };
    // A tensor in another's block may begin only where that one may too. A bound for every use of
    // permits ignores that.
    if plan.lower_bound != proven(&|member| problem.buffers()[member.buffer].alignment) {
        check_equal("lower_bound", plan.lower_bound, proven(&|member| member.tensor.alignment))?;
    }
    check_bound_below_peak(plan)
}

fn check_bound_below_peak(plan: &Plan) -> Result<(), Violation> {
    if plan.lower_bound <= plan.peak {
        return Ok(());
    }
    Err(Violation::Field { field: "lower_bound above the peak", said: plan.lower_bound, expected: plan.peak })
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
