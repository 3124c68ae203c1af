//! Ejection search: repairs a plan at a lower capacity, one buffer at a time.
//!
//! What ends above the capacity is taken out. A buffer that is out goes where it overlaps least,
//! and what it overlaps is taken out in its place; every time that happens its weight grows, so
//! that what is hard to place is not taken out again soon (guided ejection search, Nagata and
//! Bräysy 2009, there for vehicles). A step costs the partners of one buffer, so this works on a
//! million buffers too, where it moves the few hundred that make the peak, and where there is room
//! left in the holes it beats the exhaustive search by far. Where the optimum fills every byte of
//! the heaviest instant the exhaustive search is better; the two take turns.

use alloc::vec;
use alloc::vec::Vec;

use super::order::Random;
use super::state::UNPLACED;
use crate::lifetime::align_up;

/// Buffers to place and who conflicts with whom.
pub(super) trait Relation {
    /// Partners of an item for which a step counts as one node more.
    const PARTNERS_PER_NODE: u64;

    fn len(&self) -> usize;
    /// Size and alignment in bytes.
    fn shape(&self, item: usize) -> (u64, u64);
    /// Length of the life, or what stands for it.
    fn width(&self, item: usize) -> u64;
    fn each_partner(&self, item: usize, visit: impl FnMut(usize));
}

/// Steps without success after which the weights begin anew, as a multiple of the number of items.
const STEPS_PER_ITEM: u64 = 2048;

/// The first aim lies this share of the gap below the peak; every failure halves it.
const SHARE: u32 = 4;

/// Halvings after which the share begins again.
const HALVINGS: u32 = 12;

/// A plan under repair. Keeps its tables and weights between turns.
#[derive(Debug)]
pub(super) struct Ejection<'r, R> {
    relation: &'r R,
    /// Offsets now, [`UNPLACED`] where a buffer is out.
    offset: Vec<u64>,
    weight: Vec<u64>,
    waiting: Vec<u32>,
    /// Where overlap with a partner begins and ends to count, with its weight.
    begins: Vec<(u64, u64)>,
    ends: Vec<(u64, u64)>,
    random: Random,
    capacity: u64,
    steps: u64,
    halvings: u32,
}

impl<'r, R: Relation> Ejection<'r, R> {
    pub(super) fn new(relation: &'r R) -> Self {
        Self {
            relation,
            offset: Vec::new(),
            weight: vec![0; relation.len()],
            waiting: Vec::new(),
            begins: Vec::new(),
            ends: Vec::new(),
            random: Random::new(0),
            capacity: u64::MAX,
            steps: 0,
            halvings: SHARE,
        }
    }

    /// Works on a plan with this peak for at most `nodes` steps, which are taken off. `best` holds
    /// the offsets and is replaced by a better plan; answers the new peak. The ends of all plans
    /// are multiples of `unit`; `lower` is the least that can be hoped for.
    pub(super) fn improve(
        &mut self,
        best: &mut Vec<u64>,
        peak: u64,
        (lower, unit): (u64, u64),
        nodes: &mut u64,
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<u64> {
        if peak <= lower || self.offset.len() != best.len() && !self.offset.is_empty() {
            return None;
        }
        if self.capacity >= peak || self.steps > STEPS_PER_ITEM.saturating_mul(self.relation.len() as u64) {
            if self.capacity < peak {
                self.halvings = if self.halvings < HALVINGS { self.halvings + 1 } else { SHARE };
            } else {
                self.halvings = self.halvings.saturating_sub(1).max(SHARE);
            }
            let upper = (peak - 1) / unit * unit;
            self.aim(best, (upper - (((upper - lower) / unit) >> self.halvings) * unit).max(lower));
        }
        while *nodes > 0 {
            if self.waiting.is_empty() {
                best.clone_from(&self.offset);
                let ends = (0..best.len()).map(|i| best[i].saturating_add(self.relation.shape(i).0));
                return ends.max();
            }
            self.steps += 1;
            if self.steps % 16 == 0 && stop() {
                break;
            }
            let Some(work) = self.step() else { break };
            *nodes = nodes.saturating_sub(work);
        }
        None
    }

    /// Starts over from a plan, with all that ends above the capacity taken out.
    fn aim(&mut self, best: &[u64], capacity: u64) {
        self.capacity = capacity;
        self.steps = 0;
        self.offset.clear();
        self.offset.extend_from_slice(best);
        self.waiting.clear();
        for (item, &offset) in best.iter().enumerate() {
            if offset.saturating_add(self.relation.shape(item).0) > capacity {
                self.offset[item] = UNPLACED;
                self.waiting.push(item as u32);
            }
            self.weight[item] = self.resistance(item);
        }
    }

    /// How much a buffer resists being taken out: the square root of its area, which is about what
    /// it costs to place it again.
    fn resistance(&self, item: usize) -> u64 {
        let area = u128::from(self.relation.shape(item).0) * u128::from(self.relation.width(item));
        area.isqrt() as u64 + 1
    }

    /// Places one of those that are out and answers how many nodes that was worth; `None` when it
    /// does not fit at all.
    fn step(&mut self) -> Option<u64> {
        let at = self.random.below(self.waiting.len() as u64) as usize;
        let item = self.waiting.swap_remove(at) as usize;
        let (size, _) = self.relation.shape(item);
        if size > self.capacity {
            self.waiting.push(item as u32);
            return None;
        }
        let (low, cost) = self.cheapest(item);
        self.offset[item] = low;
        if cost > 0 {
            self.weight[item] = self.weight[item].saturating_add(self.resistance(item));
            let top = low.saturating_add(size);
            let Self { relation, offset, waiting, .. } = self;
            relation.each_partner(item, |other| {
                let at = offset[other];
                if at != UNPLACED && at < top && at.saturating_add(relation.shape(other).0) > low {
                    offset[other] = UNPLACED;
                    waiting.push(other as u32);
                }
            });
        }
        Some(1 + self.ends.len() as u64 / R::PARTNERS_PER_NODE)
    }

    /// The offset where the item overlaps the least weight, and that weight; one of the equals at
    /// random.
    fn cheapest(&mut self, item: usize) -> (u64, u64) {
        let (size, alignment) = self.relation.shape(item);
        let up = |offset: u64| align_up(offset, alignment).unwrap_or(u64::MAX);
        let (mut cost, last) = (0_u64, (self.capacity - size) & !(alignment - 1));
        let Self { relation, offset, weight, begins, ends, random, .. } = self;
        begins.clear();
        ends.clear();
        relation.each_partner(item, |other| {
            let at = offset[other];
            if at != UNPLACED {
                // They overlap above `at - size` and below the end.
                match at.checked_sub(size) {
                    Some(from) => begins.push((from, weight[other])),
                    None => cost = cost.saturating_add(weight[other]),
                }
                ends.push((up(at.saturating_add(relation.shape(other).0)), weight[other]));
            }
        });
        begins.sort_unstable();
        ends.sort_unstable();
        let (mut begins, mut ends) = (begins.iter().peekable(), ends.iter().peekable());
        let (mut low, mut best, mut equals) = (0, (0, u64::MAX), 0_u64);
        while low <= last {
            while let Some((_, weight)) = begins.next_if(|begin| begin.0 < low) {
                cost = cost.saturating_add(*weight);
            }
            if cost <= best.1 {
                equals = if cost < best.1 { 1 } else { equals + 1 };
                if random.below(equals) == 0 {
                    // From here to there nothing changes: either end leaves the larger hole.
                    let high = begins.peek().map_or(last, |begin| begin.0.min(last)) & !(alignment - 1);
                    best = (if random.next() & 1 == 0 { low } else { high.max(low) }, cost);
                } else {
                    best.1 = cost;
                }
            }
            let Some(&&(end, _)) = ends.peek() else { break };
            low = end;
            while let Some((_, weight)) = ends.next_if(|other| other.0 == end) {
                cost = cost.saturating_sub(*weight);
            }
        }
        best
    }
}
