//! The memories of a graph: which one each buffer lies in, so that the traffic costs little, and
//! its offset there.
//!
//! A buffer's traffic is the bytes that operators read and write in it: an operator reads each
//! input once, and writes each output once. A plan costs the traffic of each buffer times the cost
//! of its memory. The search gives buffers memories in several orders, lets buffers that fare badly
//! come first, and tries all choices of few buffers. If the buffers of a memory do not fit beside
//! each other, it loses one of them, or some of its bytes, and the search begins anew.

mod bound;
mod load;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{evicted, plan_in, shared_bound};
use crate::Error;
use crate::graph::{Graph, Space};
use crate::plan::{Memory, MemoryPlan, Plan};
use crate::planner::{Options, Strategy};
use crate::problem::Problem;
use crate::sort;
use load::Load;

/// Buffers up to which all choices are tried, and choices that are tried at most.
const FEW: usize = 24;
const CHOICES: u32 = 1 << 16;

/// Buffers in all rounds in which those that fare badly come first, and rounds at most.
const TAKEN: usize = 1 << 17;
const ROUNDS: usize = 24;

/// Buffers that memories lose before they lose bytes.
const LOST: u32 = 32;

/// Choices whose rooms are planned at most.
const PLANNED: u32 = 1024;

/// A memory, or one chunk of it.
struct Room {
    memory: usize,
    /// Where it begins in its memory, in bytes.
    base: u64,
    bytes: u64,
    cost: u64,
}

/// A buffer with the rooms that it may lie in, the cheapest first.
struct Item {
    size: u64,
    /// Ranks of its life.
    life: (usize, usize),
    traffic: u128,
    candidates: Vec<usize>,
}

impl Item {
    fn cost(&self, room: &Room) -> u128 {
        self.traffic.saturating_mul(u128::from(room.cost))
    }
}

/// The room of each buffer, and the cost.
struct Choice {
    rooms: Vec<usize>,
    cost: u128,
}

/// Plans a problem of a graph with memories.
///
/// # Errors
/// [`Error::ExceedsMemories`], [`Error::MemoriesFull`], and those of [`plan`](crate::plan()).
pub(crate) fn plan_in_memories(
    graph: &Graph,
    problem: &Problem,
    options: &Options<'_>,
) -> Result<Plan, Error> {
    let mut options = *options;
    options.capacity = None;
    let mut model = Model::new(graph, problem)?;
    let room = graph.memories().iter().fold(0_u64, |sum, space| sum.saturating_add(space.capacity));
    let needed = shared_bound(problem)?.0;
    // Later the buffers may lose rooms.
    let cost_bound = bound::of(&model);
    let mut failures = 0;
    loop {
        let goes_on = needed <= room && failures < PLANNED && !(failures > 0 && options.must_stop());
        let choice = model.choose(&options).filter(|_| goes_on);
        let choice = choice.ok_or(Error::MemoriesFull { needed, room })?;
        match model.place(problem, &choice, &options)? {
            Placement::Fits(plan) => {
                return finish(graph, problem, &model, &choice, cost_bound, plan, &options);
            }
            Placement::Exceeds { buffer, room, .. } if failures < LOST && model.has_other(buffer) => {
                model.items[buffer].candidates.retain(|&other| other != room);
            }
            Placement::Exceeds { room, excess, .. } => {
                // At least so many that this choice is not made again.
                let below = model.load(&choice, room).saturating_sub(1);
                model.limits[room] = model.limits[room].saturating_sub(excess).min(below);
            }
        }
        failures += 1;
    }
}

fn rooms(spaces: &[Space]) -> Vec<Room> {
    let mut rooms = Vec::new();
    for (memory, space) in spaces.iter().enumerate() {
        let chunk = space.chunk.unwrap_or(space.capacity).min(space.capacity);
        let mut base = 0;
        while base < space.capacity {
            rooms.push(Room { memory, base, bytes: chunk.min(space.capacity - base), cost: space.cost });
            base = base.saturating_add(chunk);
        }
    }
    rooms
}

/// What the plans of the rooms say.
enum Placement {
    Fits(Box<Plan>),
    /// This buffer does not fit in its room beside the others, which need so many bytes more.
    Exceeds {
        buffer: usize,
        room: usize,
        excess: u64,
    },
}

struct Model {
    rooms: Vec<Room>,
    /// Bytes of each room that buffers of one instant may use.
    limits: Vec<u64>,
    items: Vec<Item>,
    /// Begins and ends of lives, ascending.
    instants: Vec<u64>,
}

impl Model {
    fn new(graph: &Graph, problem: &Problem) -> Result<Self, Error> {
        let rooms = rooms(graph.memories());
        let buffers = problem.buffers();
        let mut traffic = alloc::vec![0_u128; buffers.len()];
        let mut pins: Vec<Vec<usize>> = alloc::vec![Vec::new(); buffers.len()];
        for member in problem.members() {
            let Some(tensor) = graph.tensor_index(member.tensor.id) else { continue };
            traffic[member.buffer] += graph.traffic(tensor);
            let pins = &mut pins[member.buffer];
            if let Some(pin) = graph.tensors()[tensor].memory.filter(|pin| !pins.contains(pin)) {
                pins.push(pin);
            }
        }
        let mut instants: Vec<u64> = buffers.iter().flat_map(|buffer| [buffer.lower, buffer.upper]).collect();
        instants.sort_unstable();
        instants.dedup();
        let rank = |time: u64| instants.partition_point(|&other| other < time);
        let mut items = Vec::with_capacity(buffers.len());
        for ((buffer, pins), traffic) in buffers.iter().zip(pins).zip(traffic) {
            let is_allowed = |room: &&Room| pins.is_empty() || pins == [room.memory];
            let fits = |room: &Room| buffer.size <= room.bytes && room.base % buffer.alignment == 0;
            let mut candidates: Vec<usize> =
                (0..rooms.len()).filter(|&at| is_allowed(&&rooms[at]) && fits(&rooms[at])).collect();
            if candidates.is_empty() {
                let most = rooms.iter().filter(is_allowed).map(|room| room.bytes).max().unwrap_or(0);
                return Err(Error::ExceedsMemories { id: buffer.id, size: buffer.size, most });
            }
            sort::by_key(&mut candidates, |at| rooms[at].cost);
            let life = (rank(buffer.lower), rank(buffer.upper));
            items.push(Item { size: buffer.size, life, traffic, candidates });
        }
        let limits = rooms.iter().map(|room| room.bytes).collect();
        Ok(Self { rooms, limits, items, instants })
    }

    /// The most bytes of a room that live at one instant.
    fn load(&self, choice: &Choice, room: usize) -> u64 {
        let mut load = Load::new(self.instants.len());
        let items = self.items.iter().zip(&choice.rooms).filter(|(_, other)| **other == room);
        items.for_each(|(item, _)| load.add(item.life, item.size));
        load.largest()
    }

    fn has_other(&self, buffer: usize) -> bool {
        self.items[buffer].candidates.len() > 1
    }

    /// The cheapest choice that the search finds, by the load of the lives alone.
    fn choose(&self, options: &Options<'_>) -> Option<Choice> {
        let stop = || options.stop.is_some_and(|stop| stop());
        let value = |item: &Item, span: usize| {
            let room = u128::from(item.size.max(1)) * span.max(1) as u128;
            (item.traffic << 40) / room
        };
        let keys: [&dyn Fn(&Item) -> u128; 4] = [
            &|item| value(item, item.life.1 - item.life.0),
            &|item| value(item, 1),
            &|item| item.traffic,
            &|item| u128::from(item.size),
        ];
        let rounds = (TAKEN / self.items.len().max(1)).clamp(1, ROUNDS);
        let mut best: Option<Choice> = None;
        for key in keys {
            let mut order: Vec<usize> = (0..self.items.len()).collect();
            sort::by_key(&mut order, |i| (self.has_other(i), Reverse(key(&self.items[i]))));
            for _ in 0..rounds {
                let bad = self.descend(&order, &mut best);
                if bad.is_empty() || stop() {
                    break;
                }
                let mut others = alloc::vec![true; order.len()];
                bad.iter().for_each(|&i| others[i] = false);
                order.retain(|&i| others[i]);
                order = [bad, order].concat();
            }
        }
        if self.items.len() <= FEW {
            let mut order: Vec<usize> = (0..self.items.len()).collect();
            sort::by_key(&mut order, |i| Reverse((self.items[i].traffic, self.items[i].size)));
            Exhaustion::new(self, order).try_from(0, 0, &mut best);
        }
        best
    }

    /// Gives each buffer the cheapest room that is left, in this order. Returns a sixteenth of the
    /// buffers that fared badly: those without a room, then those of the largest additional cost.
    fn descend(&self, order: &[usize], best: &mut Option<Choice>) -> Vec<usize> {
        let mut loads = self.loads();
        let mut choice = Choice { rooms: alloc::vec![0; self.items.len()], cost: 0 };
        let mut more = alloc::vec![0_u128; self.items.len()];
        let mut is_whole = true;
        for &i in order {
            let item = &self.items[i];
            let Some(&room) = item.candidates.iter().find(|&&at| loads[at].holds(item, self.limits[at]))
            else {
                is_whole = false;
                more[i] = u128::MAX;
                continue;
            };
            loads[room].add(item.life, item.size);
            choice.rooms[i] = room;
            let cost = item.cost(&self.rooms[room]);
            choice.cost = choice.cost.saturating_add(cost);
            more[i] = cost - item.cost(&self.rooms[item.candidates[0]]);
        }
        if is_whole && best.as_ref().is_none_or(|best| choice.cost < best.cost) {
            *best = Some(choice);
        }
        let mut bad: Vec<usize> = (0..more.len()).filter(|&i| more[i] > 0).collect();
        sort::by_key(&mut bad, |i| Reverse(more[i]));
        bad.truncate(bad.len().div_ceil(16));
        bad
    }

    fn loads(&self) -> Vec<Load> {
        self.rooms.iter().map(|_| Load::new(self.instants.len())).collect()
    }

    /// Plans each room.
    fn place(&self, problem: &Problem, choice: &Choice, options: &Options<'_>) -> Result<Placement, Error> {
        let mut offsets = alloc::vec![0; self.items.len()];
        let (mut strategy, mut nodes) = (Strategy::GreedyBySize, 0_u64);
        for (at, room) in self.rooms.iter().enumerate() {
            let members: Vec<usize> = (0..offsets.len()).filter(|&i| choice.rooms[i] == at).collect();
            if members.is_empty() {
                continue;
            }
            let part = problem.subset(&members)?;
            let plan = plan_in(&part, options, room.bytes)?;
            if plan.peak > room.bytes {
                let (buffer, excess) =
                    (evicted(&part, &plan, room.bytes).unwrap_or(0), plan.peak - room.bytes);
                return Ok(Placement::Exceeds { buffer: members[buffer], room: at, excess });
            }
            for (&i, &offset) in members.iter().zip(&plan.offsets) {
                offsets[i] = room.base + offset;
            }
            (strategy, nodes) = (plan.strategy, nodes.saturating_add(plan.nodes));
        }
        let mut plan = Plan::new(problem, offsets, strategy, shared_bound(problem)?);
        plan.nodes = nodes;
        Ok(Placement::Fits(Box::new(plan)))
    }
}

/// All choices of few buffers, the cheapest rooms first.
struct Exhaustion<'m> {
    model: &'m Model,
    order: Vec<usize>,
    /// The least cost of the buffers from this place of the order on.
    rest: Vec<u128>,
    loads: Vec<Load>,
    rooms: Vec<usize>,
    left: u32,
}

impl<'m> Exhaustion<'m> {
    fn new(model: &'m Model, order: Vec<usize>) -> Self {
        let least = |&i: &usize| {
            let item = &model.items[i];
            item.candidates.first().map_or(0, |&at| item.cost(&model.rooms[at]))
        };
        let mut rest: Vec<u128> = order.iter().map(least).chain([0]).collect();
        for at in (0..order.len()).rev() {
            rest[at] = rest[at].saturating_add(rest[at + 1]);
        }
        let rooms = alloc::vec![0; order.len()];
        Self { model, order, rest, loads: model.loads(), rooms, left: CHOICES }
    }

    fn try_from(&mut self, at: usize, cost: u128, best: &mut Option<Choice>) {
        if self.left == 0 || best.as_ref().is_some_and(|best| cost.saturating_add(self.rest[at]) >= best.cost)
        {
            return;
        }
        self.left -= 1;
        let Some(&i) = self.order.get(at) else {
            *best = Some(Choice { rooms: self.rooms.clone(), cost });
            return;
        };
        let item = &self.model.items[i];
        for &room in &item.candidates {
            if self.loads[room].holds(item, self.model.limits[room]) {
                self.loads[room].add(item.life, item.size);
                self.rooms[i] = room;
                self.try_from(at + 1, cost.saturating_add(item.cost(&self.model.rooms[room])), best);
                self.loads[room].add(item.life, item.size.wrapping_neg());
            }
        }
    }
}

/// The plan in its memories, with the bound of each and that of the cost.
fn finish(
    graph: &Graph,
    problem: &Problem,
    model: &Model,
    choice: &Choice,
    (cost_bound, times): (u64, Vec<u64>),
    mut plan: Box<Plan>,
    options: &Options<'_>,
) -> Result<Plan, Error> {
    let home: Vec<usize> = choice.rooms.iter().map(|&room| model.rooms[room].memory).collect();
    let mut bounds = Vec::with_capacity(graph.memories().len());
    for memory in 0..graph.memories().len() {
        let members: Vec<usize> = (0..home.len()).filter(|&i| home[i] == memory).collect();
        bounds.push(crate::planner::bound(&problem.subset(&members)?, options)?);
    }
    if home.iter().all(|memory| *memory == home[0]) {
        (plan.lower_bound, plan.certificate) = crate::planner::bound(problem, options)?;
    }
    plan.placement = home.into_iter().map(|memory| Memory::Own(memory as u8)).collect();
    plan.memory_plan = Some(MemoryPlan { cost: bound::whole(choice.cost), cost_bound, times, bounds });
    plan.fill(problem);
    Ok(*plan)
}
