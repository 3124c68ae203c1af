//! Ejection search: repairs a plan at a lower capacity, one buffer at a time.
//!
//! Buffers that end above the capacity are removed. A removed buffer goes where it overlaps least,
//! and the buffers that it overlaps are removed in its place. Each removal increases a buffer's
//! weight, so that a buffer that is hard to place stays (guided ejection search, Nagata and Bräysy
//! 2009, for vehicle routing). A step costs time in proportion to one buffer's partners, so this
//! works on a million buffers, where it moves the few hundred of the peak. If the plan has holes it
//! is far better than the exhaustive search; if the optimum fills every byte of the heaviest
//! instant, the exhaustive search is better. The two take turns.

use alloc::vec;
use alloc::vec::Vec;

use super::order::Random;
use super::state::UNPLACED;
use crate::lifetime::align_up;

/// Buffers to place and their conflicts.
pub(super) trait Relation {
    /// Number of partners for which a step counts as one more node.
    const PARTNERS_PER_NODE: u64;

    fn len(&self) -> usize;
    /// Size and alignment in bytes.
    fn shape(&self, item: usize) -> (u64, u64);
    /// Length of the life, or a substitute for it.
    fn width(&self, item: usize) -> u64;
    fn each_partner(&self, item: usize, visit: impl FnMut(usize));
}

/// Steps without success before the weights are reset, as a multiple of the number of items.
const STEPS_PER_ITEM: u64 = 2048;

/// The first target is below the peak by this fraction of the gap; every failure halves the
/// difference.
const SHARE: u32 = 4;

/// Number of halvings before the fraction is reset.
const HALVINGS: u32 = 12;

/// A plan under repair. Keeps its tables and weights between turns.
#[derive(Clone, Debug)]
pub(super) struct Ejection<'r, R> {
    relation: &'r R,
    /// Current offsets; [`UNPLACED`] for removed buffers.
    offset: Vec<u64>,
    weight: Vec<u64>,
    queue: Vec<u32>,
    /// Where overlap with a partner starts and ends to count, with its weight.
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
            queue: Vec::new(),
            begins: Vec::new(),
            ends: Vec::new(),
            random: Random::new(0),
            capacity: u64::MAX,
            steps: 0,
            halvings: SHARE,
        }
    }

    /// Improves a plan with this peak in at most `nodes` steps, which it subtracts. Replaces the
    /// offsets in `best` by those of a better plan, and returns the new peak. The ends of all plans
    /// are multiples of `unit`; `lower` is a lower bound.
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
            self.restart_below(best, (upper - (((upper - lower) / unit) >> self.halvings) * unit).max(lower));
        }
        while *nodes > 0 {
            if self.queue.is_empty() {
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

    /// Restarts from a plan without the buffers that end above the capacity.
    fn restart_below(&mut self, best: &[u64], capacity: u64) {
        self.capacity = capacity;
        self.steps = 0;
        self.offset.clear();
        self.offset.extend_from_slice(best);
        self.queue.clear();
        for (item, &offset) in best.iter().enumerate() {
            if offset.saturating_add(self.relation.shape(item).0) > capacity {
                self.offset[item] = UNPLACED;
                self.queue.push(item as u32);
            }
            self.weight[item] = self.resistance(item);
        }
    }

    /// A buffer's resistance to removal: the square root of its area, roughly the cost of placing
    /// it again.
    fn resistance(&self, item: usize) -> u64 {
        let area = u128::from(self.relation.shape(item).0) * u128::from(self.relation.width(item));
        area.isqrt() as u64 + 1
    }

    /// Places a removed buffer and returns the cost in nodes; `None` if it does not fit at all.
    fn step(&mut self) -> Option<u64> {
        let at = self.random.random_below(self.queue.len() as u64) as usize;
        let item = self.queue.swap_remove(at) as usize;
        let (size, _) = self.relation.shape(item);
        if size > self.capacity {
            self.queue.push(item as u32);
            return None;
        }
        let (low, cost) = self.cheapest(item);
        self.offset[item] = low;
        if cost > 0 {
            self.weight[item] = self.weight[item].saturating_add(self.resistance(item));
            let top = low.saturating_add(size);
            let Self { relation, offset, queue, .. } = self;
            relation.each_partner(item, |other| {
                let at = offset[other];
                if at != UNPLACED && at < top && at.saturating_add(relation.shape(other).0) > low {
                    offset[other] = UNPLACED;
                    queue.push(other as u32);
                }
            });
        }
        Some(1 + self.ends.len() as u64 / R::PARTNERS_PER_NODE)
    }

    /// The offset where the item overlaps the least weight, and that weight. Chooses at random
    /// among equals.
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
                // Overlap occurs above `at - size` and below the end.
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
                if random.random_below(equals) == 0 {
                    // Nothing changes in this range: one of its ends leaves the larger hole.
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
