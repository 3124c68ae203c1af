//! The schedule of a search: the capacity, the order and the nodes of each step.
//!
//! A schedule returns the next step and takes its result. Almost all steps spend their nodes and
//! find nothing, so a caller can begin steps before earlier ones have ended.

use alloc::vec::Vec;

use super::Progress;
use super::minimise::Goal;
use super::model::Model;
use super::order::Rule;

/// Nodes of a try, as a multiple of the number of items. Most searches that succeed do so after a
/// few dives. For the others a new order is worth more than more nodes.
const NODES_PER_ITEM: u64 = 12;

/// The undisturbed rules, and orders close to them, are worth more nodes than the others.
const PATIENCE: u64 = 5;

/// Random share of a key in thousandths, in turn. Measured on the instances A-K: about a third is
/// best on ten of them, a few hundredths on one.
const NOISE: [u64; 4] = [300, 300, 30, 300];

/// One rule for each try, all in turn.
const RULES: [Rule; 3] = [Rule::WidthTotalArea, Rule::TotalAreaWidth, Rule::TotalWidthArea];

/// One in this many tries aims at the bound, because the bound is often reached. The others lower
/// the peak by a share of the gap. At first it is one in two: the eight published instances that
/// meet their bound then do so in 2^21 nodes each. With one in four, two of them need more than
/// four times as many. After [`EARLY`] nodes the bound is likely out of reach.
const AT_BOUND: [u64; 2] = [2, 4];

/// Nodes after which the bound is aimed at less often.
const EARLY: u64 = 1 << 21;

/// Number of halvings of the gap after which the share is one half again.
const HALVINGS: u32 = 6;

/// One turn in this many repairs the best plan.
const REPAIRS: u64 = 3;

/// Nodes of a repair as a share of those of a try, in eighths: each of its steps costs more. A
/// repair that succeeds gets twice as many next time, up to the second number.
const SHARES: (u64, u64) = (8, 128);

/// The rule of a try, and how much it is disturbed; the first ones are not.
pub(super) fn of_rank(rank: u64) -> (Rule, u64) {
    let noise = if rank < 3 { 0 } else { NOISE[(rank / 3 % 4) as usize] };
    (RULES[(rank % 3) as usize], noise)
}

/// One try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Repairs the best plan.
    Repair(Repair),
    /// Looks for a placement at a capacity.
    Decide(Decide),
}

/// A turn of the repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repair {
    pub(super) peak: u64,
    /// The lowest possible peak.
    pub(super) least: u64,
    pub(super) unit: u64,
    pub(super) nodes: u64,
}

/// A turn of the exhaustive search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decide {
    pub(super) aim: u64,
    pub(super) rule: Rule,
    pub(super) noise: u64,
    pub(super) seed: u64,
    pub(super) nodes: u64,
    at_bound: bool,
}

/// The result of a step.
#[derive(Debug)]
pub(super) struct StepResult {
    /// Nodes that it took.
    pub(super) used: u64,
    pub(super) end: End,
}

/// How a step ended.
#[derive(Debug)]
pub(super) enum End {
    /// The step spent its nodes.
    Failed,
    /// A lower placement: the offset of each item.
    Found(Vec<u64>),
    /// No placement exists at the capacity.
    Infeasible,
}

/// The state between two steps.
#[derive(Clone, Debug)]
pub(super) struct Schedule<'m> {
    model: &'m Model,
    capacity: Option<u64>,
    budget: u64,
    nodes: u64,
    /// The cost of a node of the exhaustive search.
    weight: u64,
    peak: u64,
    lower: u64,
    /// No placement ends at or below this.
    pub(super) infeasible: Option<u64>,
    limit: u64,
    turn: u64,
    round: u64,
    halvings: u32,
    share: u64,
    /// The repair of this turn had nothing to do, so the exhaustive search has it.
    is_through: bool,
}

impl<'m> Schedule<'m> {
    pub(super) fn new(model: &'m Model, bound: u64, best: &[u64], goal: &Goal<'_>) -> Self {
        let weight = model.weight();
        Self {
            model,
            capacity: goal.capacity,
            budget: goal.nodes,
            nodes: goal.nodes,
            weight,
            peak: model.peak(best),
            // The ends of compacted placements are multiples of the unit.
            lower: bound.div_ceil(model.unit).saturating_mul(model.unit),
            infeasible: None,
            limit: (model.items.len() as u64).saturating_mul(NODES_PER_ITEM).saturating_mul(weight),
            turn: 0,
            round: 0,
            halvings: 1,
            share: SHARES.0,
            is_through: false,
        }
    }

    /// Number of nodes until now.
    pub(super) fn nodes_used(&self) -> u64 {
        self.budget - self.nodes
    }

    pub(super) fn progress(&self) -> Progress {
        Progress { peak: self.peak, bound: self.lower.min(self.peak), nodes: self.nodes_used() }
    }

    /// The next step; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Step> {
        let Self { nodes, peak, lower, capacity, .. } = *self;
        let unit = self.model.unit;
        if nodes < self.weight || peak <= lower || capacity.is_some_and(|capacity| peak <= capacity) {
            return None;
        }
        if !core::mem::take(&mut self.is_through) {
            self.turn += 1;
            if self.turn % REPAIRS == 0 {
                let nodes = (self.limit.saturating_mul(self.share) / 8).min(nodes);
                let least = capacity.unwrap_or(0).max(lower).div_ceil(unit) * unit;
                return Some(Step::Repair(Repair { peak, least, unit, nodes }));
            }
        }
        let upper = (peak - 1) / unit * unit;
        let turns = AT_BOUND[usize::from(self.nodes_used() > EARLY)];
        let at_bound = capacity.is_none() && self.round % turns == 0;
        let aim = match capacity {
            Some(capacity) => (capacity / unit * unit).min(upper),
            None if at_bound => lower,
            // In units, so that the aim stays a multiple.
            None => upper - (((upper - lower) / unit) >> self.halvings) * unit,
        };
        if aim < lower {
            return None;
        }
        // The rules in turn at every aim.
        let rank = if capacity.is_some() { self.round } else { self.round / turns };
        let (rule, noise) = of_rank(rank);
        let patience = if noise < 100 { PATIENCE } else { 1 };
        let nodes = self.limit.saturating_mul(patience).min(nodes);
        Some(Step::Decide(Decide { aim, rule, noise, seed: self.round, nodes, at_bound }))
    }

    /// The nodes of a step that ends with all of them spent.
    #[cfg(feature = "threads")]
    pub(super) fn all(&self, step: Step) -> u64 {
        match step {
            Step::Repair(step) => step.nodes,
            Step::Decide(step) => step.nodes - step.nodes % self.weight,
        }
    }

    /// Continues with the result of the last step of [`Self::next`]. Returns whether the peak or
    /// the bound is better now.
    pub(super) fn take(&mut self, step: Step, result: &StepResult) -> bool {
        self.nodes -= result.used;
        if let End::Found(offsets) = &result.end {
            self.peak = self.model.peak(offsets);
        }
        match (step, &result.end) {
            (Step::Repair(_), End::Found(_)) => {
                self.share = (self.share * 2).min(SHARES.1);
                self.is_through = result.used == 0;
            }
            (Step::Repair(_), _) => {
                self.share = (self.share - self.share / 8).max(SHARES.0);
                self.is_through = result.used == 0;
                return false;
            }
            (Step::Decide(_), End::Found(_)) => {
                self.halvings = self.halvings.saturating_sub(1).max(1);
                self.round += 1;
            }
            (Step::Decide(step), End::Infeasible) => {
                self.infeasible = Some(step.aim + (self.model.unit - 1));
                self.lower = step.aim + self.model.unit;
                self.round += 1;
            }
            (Step::Decide(step), End::Failed) => {
                if !step.at_bound {
                    self.halvings = if self.halvings < HALVINGS { self.halvings + 1 } else { 1 };
                }
                self.round += 1;
                if self.round % 3 == 0 {
                    self.limit = self.limit.saturating_add(self.limit / 20);
                }
                return false;
            }
        }
        true
    }
}
