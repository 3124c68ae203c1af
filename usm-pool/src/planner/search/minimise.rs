//! From decisions to a small peak: which capacity is tried next, in which order, for how long.

use alloc::vec::Vec;

use super::Progress;
use super::decide::{Answer, Search};
use super::model::Model;
use super::order::{Order, Rule};

/// What the search is asked for.
pub(super) struct Goal<'a> {
    /// Nodes at most.
    pub(super) nodes: u64,
    /// A placement at or below this is good enough.
    pub(super) capacity: Option<u64>,
    /// Ends the search when it says `true`.
    pub(super) stop: &'a mut dyn FnMut() -> bool,
    /// Told about every better placement and bound.
    pub(super) progress: &'a mut dyn FnMut(Progress),
}

/// What the search found.
#[derive(Debug)]
pub(super) struct Found {
    /// Offset of each item, if a placement below the peak to beat was found.
    pub(super) offsets: Option<Vec<u64>>,
    /// Nodes visited.
    pub(super) nodes: u64,
    /// No placement ends at or below this: everything was tried. The bytes up to the next multiple of the unit are included.
    pub(super) infeasible: Option<u64>,
}

/// Nodes of the first try, as a multiple of the number of items. Most searches that succeed do so after a few dives; those that
/// do not are lost in a corner of the tree, and a new order is worth more than more nodes.
const NODES_PER_ITEM: u64 = 20;

/// Random share of a key in thousandths.
const NOISE: u64 = 300;

const RULES: [Rule; 3] = [Rule::WidthTotalArea, Rule::TotalAreaWidth, Rule::TotalWidthArea];

/// Where between the bound (0) and the best peak (8) the next try aims, in eighths. Half of the work goes to the bound,
/// because it is reached so often; the rest makes sure that the peak falls when it cannot be.
const AIMS: [u64; 6] = [0, 4, 0, 8, 0, 2];

/// Lowers `peak`, with `bound` a proven lower bound.
pub(super) fn minimise(model: &Model, bound: u64, peak: u64, goal: Goal<'_>) -> Found {
    let Goal { nodes: budget, capacity, stop, progress } = goal;
    let unit = model.unit;
    let mut nodes = budget;
    let mut search = Search::new(model);
    let mut found = Found { offsets: None, nodes: 0, infeasible: None };
    let mut peak = peak;
    // The ends of compacted placements are multiples of the unit.
    let mut lower = bound.div_ceil(unit).saturating_mul(unit);
    let mut limit = (model.items.len() as u64).saturating_mul(NODES_PER_ITEM);
    let mut round = 0_u64;
    while nodes > 0 && peak > lower && capacity.is_none_or(|capacity| peak > capacity) && !stop() {
        let upper = (peak - 1) / unit * unit;
        let aim = match capacity {
            Some(capacity) => (capacity / unit * unit).min(upper),
            None => {
                let steps = (upper - lower) / unit;
                lower + unit * ((u128::from(steps) * u128::from(AIMS[(round % 6) as usize]) / 8) as u64)
            }
        };
        if aim < lower {
            break;
        }
        // The rules in turn at every aim; the first round of all is undisturbed.
        let rule = RULES[(round / if capacity.is_some() { 1 } else { 2 } % 3) as usize];
        let noise = if round < 6 { 0 } else { NOISE };
        let order = Order::new(model, rule, noise, round);
        let mut left = limit.min(nodes);
        let given = left;
        let answer = search.decide(aim, &order, &mut left, stop);
        nodes -= given - left;
        match answer {
            Answer::Found => {
                let offset = &search.state.offset;
                peak = model
                    .items
                    .iter()
                    .zip(offset)
                    .map(|(item, offset)| offset + item.size)
                    .max()
                    .unwrap_or(0);
                found.offsets = Some(offset.clone());
            }
            Answer::Infeasible => {
                found.infeasible = Some(aim + (unit - 1));
                lower = aim + unit;
            }
            Answer::Limit => {
                round += 1;
                if round % 3 == 0 {
                    limit = limit.saturating_add(limit / 20);
                }
                continue;
            }
        }
        progress(Progress { peak, bound: lower.min(peak), nodes: budget - nodes });
        round += 1;
    }
    found.nodes = budget - nodes;
    found
}
