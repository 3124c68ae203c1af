//! Device memory first, within limits; host memory for the rest.
//!
//! Two restrictions hold for device memory: no single object above `max_alloc`, and no operator
//! whose inputs and outputs together exceed the memory. A buffer that breaks one of them goes to
//! host memory. If the plan exceeds the memory, further buffers follow one by one, chosen so that
//! few bytes move. A buffer and all tensors in it are in one memory. A graph may have memories of
//! its own instead, each with a capacity and a cost.

mod memories;

use alloc::vec::Vec;

pub(crate) use memories::plan_in_memories;

use crate::Error;
use crate::bound;
use crate::graph::Graph;
use crate::plan::{Certificate, Memory, Plan};
use crate::planner::{Options, Strategy, plan, plan_graph};
use crate::problem::Problem;
use crate::sort;

/// Sizes of device memory in bytes; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of device memory for this arena.
    pub device_memory: Option<u64>,
    /// Largest single object.
    pub max_alloc: Option<u64>,
}

impl Limits {
    /// Both limits.
    #[must_use]
    pub const fn new(device_memory: Option<u64>, max_alloc: Option<u64>) -> Self {
        Self { device_memory, max_alloc }
    }
}

/// Plans a graph within limits. The arena itself is one object: with `max_alloc` the device part
/// stays below it too.
///
/// # Errors
/// As [`plan_graph`].
pub fn plan_graph_within(
    graph: &Graph,
    options: &Options<'_>,
    limits: &Limits,
) -> Result<(Problem, Plan), Error> {
    let (problem, free) = plan_graph(graph, options)?;
    if fits(&free, limits) && operators_fit(graph, &problem, limits) {
        return Ok((problem, free));
    }
    let mut placement = alloc::vec![Memory::Device; problem.buffers().len()];
    if let Some(limit) = limits.device_memory {
        spill_for_operators(graph, &problem, limit, &mut placement);
    }
    let plan = plan_placed(&problem, options, limits, placement)?;
    Ok((problem, plan))
}

/// Plans a problem within limits.
///
/// # Errors
/// As [`plan`].
pub fn plan_within(problem: &Problem, options: &Options<'_>, limits: &Limits) -> Result<Plan, Error> {
    let free = plan(problem, options)?;
    if fits(&free, limits) {
        return Ok(free);
    }
    plan_placed(problem, options, limits, alloc::vec![Memory::Device; problem.buffers().len()])
}

fn fits(plan: &Plan, limits: &Limits) -> bool {
    device_limit(limits).is_none_or(|room| plan.peak <= room)
}

/// Limit for the device part.
fn device_limit(limits: &Limits) -> Option<u64> {
    match (limits.device_memory, limits.max_alloc) {
        (Some(memory), Some(object)) => Some(memory.min(object)),
        (memory, object) => memory.or(object),
    }
}

/// Distinct buffers of every operator.
fn operands(graph: &Graph, problem: &Problem) -> Vec<Vec<usize>> {
    let mut place = alloc::vec![None; graph.tensors().len()];
    for member in problem.members() {
        if let Some(tensor) = graph.tensor_index(member.tensor.id) {
            place[tensor] = Some(member.buffer);
        }
    }
    let of = |op: &crate::graph::OpNode| {
        let mut operands: Vec<usize> =
            op.inputs.iter().chain(&op.outputs).filter_map(|&tensor| place[tensor]).collect();
        operands.sort_unstable();
        operands.dedup();
        operands
    };
    graph.ops().iter().map(of).collect()
}

fn operators_fit(graph: &Graph, problem: &Problem, limits: &Limits) -> bool {
    let Some(limit) = limits.device_memory else { return true };
    // Operands of one operator are live together, so a plan that fits has room for them; only a sum
    // beyond 64 bits could be wrong.
    operands(graph, problem).into_iter().all(|operands| {
        let sizes = operands.into_iter().map(|buffer| problem.buffers()[buffer].size);
        sizes.fold(0, u64::saturating_add) <= limit
    })
}

/// Sends the largest operands of every operator that cannot run from device memory to host memory.
fn spill_for_operators(graph: &Graph, problem: &Problem, limit: u64, placement: &mut [Memory]) {
    for mut operands in operands(graph, problem) {
        operands.retain(|&buffer| placement[buffer] == Memory::Device);
        sort::by_key(&mut operands, |buffer| problem.buffers()[buffer].size);
        let mut sum =
            operands.iter().map(|&buffer| problem.buffers()[buffer].size).fold(0, u64::saturating_add);
        while sum > limit {
            let Some(largest) = operands.pop() else { break };
            placement[largest] = Memory::Host;
            sum = operands.iter().map(|&buffer| problem.buffers()[buffer].size).fold(0, u64::saturating_add);
        }
    }
}

/// Moves buffers to host memory until the device part fits, then plans both parts.
fn plan_placed(
    problem: &Problem,
    options: &Options<'_>,
    limits: &Limits,
    mut placement: Vec<Memory>,
) -> Result<Plan, Error> {
    for (buffer, memory) in problem.buffers().iter().zip(&mut placement) {
        if limits.max_alloc.is_some_and(|limit| buffer.size > limit) {
            *memory = Memory::Host;
        }
    }
    let mut options = *options;
    let capacity = options.capacity.take();
    let device = plan_part(problem, &options, device_limit(limits).unwrap_or(u64::MAX), &mut placement)?;
    let host_buffers: Vec<usize> = (0..placement.len()).filter(|&i| placement[i] == Memory::Host).collect();
    let host = plan(&problem.subset(&host_buffers)?, &options)?;
    let mut offsets = alloc::vec![0; placement.len()];
    let (mut from_device, mut from_host) = (device.offsets.iter(), host.offsets.iter());
    for (offset, memory) in offsets.iter_mut().zip(&placement) {
        let next = if *memory == Memory::Device { from_device.next() } else { from_host.next() };
        *offset = next.copied().unwrap_or(0);
    }
    let bound = if host_buffers.is_empty() || host_buffers.len() == placement.len() {
        crate::planner::bound(problem, &options)?
    } else {
        shared_bound(problem)?
    };
    let mut whole = Plan::new(problem, offsets, device.strategy, bound);
    whole.spilled = host_buffers.iter().map(|&buffer| problem.buffers()[buffer].id).collect();
    whole.placement = placement;
    whole.capacity = capacity;
    whole.nodes = device.nodes.saturating_add(host.nodes);
    whole.fill(problem);
    Ok(whole)
}

/// Plans the buffers that `placement` puts in device memory, and moves some to host memory until
/// `room` bytes suffice.
fn plan_part(
    problem: &Problem,
    options: &Options<'_>,
    room: u64,
    placement: &mut [Memory],
) -> Result<Plan, Error> {
    loop {
        let device_buffers: Vec<usize> =
            (0..placement.len()).filter(|&i| placement[i] == Memory::Device).collect();
        let part = problem.subset(&device_buffers)?;
        let plan = plan_in(&part, options, room)?;
        match evicted(&part, &plan, room).filter(|_| plan.peak > room) {
            Some(buffer) => placement[device_buffers[buffer]] = Memory::Host,
            None => return Ok(plan),
        }
    }
}

/// A plan that needs at most `room` bytes, if one is found.
fn plan_in(part: &Problem, options: &Options<'_>, room: u64) -> Result<Plan, Error> {
    let mut cheap = *options;
    // The cheap strategy selects buffers to move; near the limit the requested strategy decides.
    cheap.strategy = Strategy::GreedyBySize;
    let mut best = plan(part, &cheap)?;
    if best.peak > room && best.lower_bound <= room && options.strategy != Strategy::GreedyBySize {
        let mut within = *options;
        within.capacity = Some(room);
        best = plan(part, &within)?;
    }
    if best.peak > room {
        return Ok(best);
    }
    let last = plan(part, options)?;
    Ok(if last.peak <= room { last } else { best })
}

/// The buffer to move out of a part that needs too much: of those in the bound's certificate when
/// the bound itself is too high, else of those that end above the room. The smallest that suffices,
/// else the largest.
fn evicted(part: &Problem, plan: &Plan, room: u64) -> Option<usize> {
    let buffers = part.buffers();
    let is_proven = plan.lower_bound > room;
    let excess = if is_proven { plan.lower_bound - room } else { plan.peak.saturating_sub(room) };
    let ids: &[u64] = match &plan.certificate {
        Certificate::TimeCut { buffers, .. } | Certificate::Antichain { buffers } => buffers,
        Certificate::Search { .. } => &[],
    };
    let ids: alloc::collections::BTreeSet<u64> = ids.iter().copied().collect();
    let candidates = || {
        (0..buffers.len()).filter(|&i| {
            let above = plan.offsets[i].saturating_add(buffers[i].size) > room;
            buffers[i].size > 0
                && if is_proven && !ids.is_empty() { ids.contains(&buffers[i].id) } else { above }
        })
    };
    let best_fit = candidates().filter(|&i| buffers[i].size >= excess).min_by_key(|&i| (buffers[i].size, i));
    best_fit.or_else(|| candidates().max_by_key(|&i| (buffers[i].size, core::cmp::Reverse(i))))
}

/// A bound on the sum over several memories: sizes alone, because each memory has a topmost buffer
/// that needs no rounding.
pub(crate) fn shared_bound(problem: &Problem) -> Result<(u64, Certificate), Error> {
    let plain: Vec<crate::Buffer> = problem.buffers().iter().map(|buffer| buffer.aligned(1)).collect();
    match problem.conflicts() {
        Some(_) if !problem.pieces().is_empty() => {
            let pieces: Vec<crate::Buffer> = problem.pieces().iter().map(|piece| piece.aligned(1)).collect();
            let cut = bound::time_cut(&pieces);
            let live = pieces.iter().filter(|p| p.lower <= cut.time && cut.time < p.upper && p.size > 0);
            let buffers =
                live.filter_map(|piece| problem.buffers().get(piece.id as usize)).map(|buffer| buffer.id);
            Ok((cut.bytes, Certificate::TimeCut { time: cut.time, buffers: buffers.collect() }))
        }
        Some(_) if !problem.is_exact() => crate::planner::bound(problem, &Options::default()),
        Some(conflicts) => {
            let (bytes, set) = bound::antichain(&plain, conflicts)?;
            Ok((bytes, Certificate::Antichain { buffers: set.into_iter().map(|i| plain[i].id).collect() }))
        }
        None => {
            let cut = bound::time_cut(&plain);
            let live = plain.iter().filter(|b| b.lower <= cut.time && cut.time < b.upper && b.size > 0);
            Ok((cut.bytes, Certificate::TimeCut { time: cut.time, buffers: live.map(|b| b.id).collect() }))
        }
    }
}
