//! From decisions to a small peak: chooses the next capacity, the order and the number of nodes.

use alloc::vec::Vec;

use super::Progress;
use super::decide::{Answer, Search};
use super::eject::{Ejection, Relation};
use super::model::Model;
use super::order::{Order, Rule};

/// The goal of the search.
pub(super) struct Goal<'a> {
    /// Maximum number of nodes.
    pub(super) nodes: u64,
    /// A placement at or below this ends the search.
    pub(super) capacity: Option<u64>,
    /// Ends the search when it returns `true`.
    pub(super) stop: &'a mut dyn FnMut() -> bool,
    /// Receives every better placement and bound.
    pub(super) progress: &'a mut dyn FnMut(Progress),
}

/// The result of the search.
#[derive(Debug)]
pub(super) struct Found {
    /// Offset of each item, if a placement below the initial peak was found.
    pub(super) offsets: Option<Vec<u64>>,
    /// Nodes visited.
    pub(super) nodes: u64,
    /// No placement ends at or below this: the search was exhaustive. Includes the bytes up to the
    /// next multiple of the unit.
    pub(super) infeasible: Option<u64>,
}

/// Nodes of a try, as a multiple of the number of items. Most successful searches need few dives.
/// The others are stuck in a corner of the tree, where a new order helps more than more nodes.
const NODES_PER_ITEM: u64 = 12;

/// Undisturbed rules, and orders close to them, deserve more nodes than the others.
const PATIENCE: u64 = 5;

/// Random share of a key in thousandths, in turn. Measured on the instances A-K: about a third is
/// best on ten of them, a few hundredths on one.
const NOISE: [u64; 4] = [300, 300, 30, 300];

const RULES: [Rule; 3] = [Rule::WidthTotalArea, Rule::TotalAreaWidth, Rule::TotalWidthArea];

/// One in this many tries targets the bound; the others lower the peak by a fraction of the gap.
/// Initially every second: then the eight published instances that meet their bound do so in 2^21
/// nodes each. With every fourth, two of them need more than four times as many. After [`EARLY`]
/// nodes the bound is likely out of reach.
const AT_BOUND: [u64; 2] = [2, 4];

/// Number of nodes after which fewer tries target the bound.
const EARLY: u64 = 1 << 21;

/// Number of halvings of the gap before the fraction is reset to one half.
const HALVINGS: u32 = 6;

/// One in this many turns repairs the best plan.
const REPAIRS: u64 = 3;

/// Nodes of a repair in eighths of a try's nodes, because each of its steps costs more. After a
/// success the number doubles, up to the second value.
const SHARES: (u64, u64) = (8, 128);

/// Lowers the peak of a plan, with `bound` a proven lower bound. `best` has the offset of each
/// item.
pub(super) fn minimise(model: &Model, bound: u64, mut best: Vec<u64>, goal: Goal<'_>) -> Found {
    let Goal { nodes: budget, capacity, stop, progress } = goal;
    let unit = model.unit;
    let mut nodes = budget;
    let mut search = Search::new(model);
    let mut found = Found { offsets: None, nodes: 0, infeasible: None };
    let mut peak = (0..best.len()).map(|i| best[i] + model.items[i].size).max().unwrap_or(0);
    let mut ejection = Ejection::new(model);
    let (mut turn, mut share) = (0_u64, SHARES.0);
    // The ends of compacted placements are multiples of the unit.
    let mut lower = bound.div_ceil(unit).saturating_mul(unit);
    let mut limit = (model.items.len() as u64).saturating_mul(NODES_PER_ITEM).saturating_mul(search.weight);
    let mut round = 0_u64;
    let mut halvings = 1_u32;
    while nodes >= search.weight && peak > lower && capacity.is_none_or(|capacity| peak > capacity) && !stop()
    {
        turn += 1;
        if turn % REPAIRS == 0 {
            let mut left = (limit.saturating_mul(share) / 8).min(nodes);
            let given = left;
            let least = capacity.unwrap_or(0).max(lower);
            let better =
                ejection.improve(&mut best, peak, (least.div_ceil(unit) * unit, unit), &mut left, stop);
            nodes -= given - left;
            match better {
                Some(better) => {
                    (peak, share) = (better, (share * 2).min(SHARES.1));
                    found.offsets = Some(best.clone());
                    progress(Progress { peak, bound: lower.min(peak), nodes: budget - nodes });
                }
                None => share = (share - share / 8).max(SHARES.0),
            }
            if given > left {
                continue;
            }
        }
        let upper = (peak - 1) / unit * unit;
        let turns = AT_BOUND[usize::from(budget - nodes > EARLY)];
        let at_bound = capacity.is_none() && round % turns == 0;
        let aim = match capacity {
            Some(capacity) => (capacity / unit * unit).min(upper),
            None if at_bound => lower,
            // In units, so that the target stays a multiple.
            None => upper - (((upper - lower) / unit) >> halvings) * unit,
        };
        if aim < lower {
            break;
        }
        // The rules in turn at every target; the first ones are undisturbed.
        let rank = if capacity.is_some() { round } else { round / turns };
        let rule = RULES[(rank % 3) as usize];
        let noise = if rank < 3 { 0 } else { NOISE[(rank / 3 % 4) as usize] };
        let order = Order::new(model, rule, noise, round);
        let patience = if noise < 100 { PATIENCE } else { 1 };
        let mut left = limit.saturating_mul(patience).min(nodes);
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
                best.clone_from(offset);
                found.offsets = Some(best.clone());
                halvings = halvings.saturating_sub(1).max(1);
            }
            Answer::Infeasible => {
                found.infeasible = Some(aim + (unit - 1));
                lower = aim + unit;
            }
            Answer::Limit => {
                if !at_bound {
                    halvings = if halvings < HALVINGS { halvings + 1 } else { 1 };
                }
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

/// Lowers the peak of a plan by repair alone: for instances too large for the tables of the
/// exhaustive search.
pub(super) fn repair<R: Relation>(relation: &R, bound: u64, mut best: Vec<u64>, goal: Goal<'_>) -> Found {
    let Goal { nodes: budget, capacity, stop, progress } = goal;
    let mut nodes = budget;
    let mut found = Found { offsets: None, nodes: 0, infeasible: None };
    let mut peak = (0..best.len()).map(|i| best[i] + relation.shape(i).0).max().unwrap_or(0);
    let least = bound.max(capacity.unwrap_or(0));
    let mut ejection = Ejection::new(relation);
    while nodes > 0 && peak > least && !stop() {
        if let Some(better) = ejection.improve(&mut best, peak, (least, 1), &mut nodes, stop) {
            peak = better;
            found.offsets = Some(best.clone());
            progress(Progress { peak, bound, nodes: budget - nodes });
        }
    }
    found.nodes = budget - nodes;
    found
}
