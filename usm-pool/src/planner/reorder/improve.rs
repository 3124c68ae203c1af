//! The search for the best order: parts of a good one around its peak are ordered anew, and limits
//! on the whole are tried.

use alloc::vec::Vec;

use super::lives::Lives;
use super::reach::{Budget, Reach, Refutation, Window, reach};
use super::walk::peak;

/// An order, its peak, and the best bound on the peak of every order.
#[derive(Debug)]
pub(super) struct Incumbent {
    pub(super) order: Vec<u32>,
    pub(super) peak: u64,
    pub(super) bound: u64,
    /// Why no order is below the bound, unless one operator says so.
    pub(super) refutation: Option<Refutation>,
}

impl Incumbent {
    /// Lowers the peak of its order as far as the budget goes, and raises its bound.
    pub(super) fn improve(&mut self, lives: &Lives, budget: &mut Budget<'_>) {
        if self.peak <= self.bound {
            return;
        }
        let reverse = lives.reversed();
        self.order_parts(lives, &reverse, budget);
        self.try_limits(lives, &reverse, budget);
    }

    fn is_over(&self, budget: &Budget<'_>) -> bool {
        self.peak <= self.bound || budget.steps == 0 || budget.sets == 0 || (budget.stop)()
    }

    /// Runs a search on a part of the budget.
    fn part<'b>(budget: &mut Budget<'b>, share: u64, run: impl FnOnce(&mut Budget<'b>) -> Reach) -> Reach {
        let (sets, steps) = (budget.sets / share, budget.steps / share);
        let mut part = Budget { sets: sets.max(1), steps: steps.max(1), stop: budget.stop };
        let (sets, steps) = (part.sets, part.steps);
        let result = run(&mut part);
        budget.sets = budget.sets.saturating_sub(sets - part.sets);
        budget.steps = budget.steps.saturating_sub(steps - part.steps);
        result
    }

    /// Orders the operators around the peak anew, more of them when few do not help.
    fn order_parts(&mut self, lives: &Lives, reverse: &Lives, budget: &mut Budget<'_>) {
        let n = self.order.len();
        let mut window = Window::new(lives, reverse);
        let mut costs = alloc::vec![0; n];
        window.costs(&self.order, &mut costs);
        let mut half = 8;
        while half < n && !self.is_over(budget) {
            // The first operator with the most bytes.
            let at = costs.iter().position(|&cost| cost == self.peak).unwrap_or(0);
            let (begin, end) = (at.saturating_sub(half), (at + half).min(n));
            window.place(&self.order, begin, end);
            let limit = self.peak - 1;
            // Finding the peak takes a step for each operator outside.
            budget.steps = budget.steps.saturating_sub((n - (end - begin)) as u64);
            match Self::part(budget, 64, |budget| window.reach(limit, budget)) {
                Reach::Order(part) => {
                    // Outside of the part the sets of finished operators stay, and so do the bytes.
                    window.costs(&part, &mut costs[begin..end]);
                    self.order[begin..end].copy_from_slice(&part);
                    let better = costs.iter().copied().max().unwrap_or(0);
                    if better == self.peak {
                        // Another operator has as many bytes; it is next.
                        continue;
                    }
                    self.peak = better;
                    half = 8;
                }
                Reach::Blocked(_) | Reach::Unknown => half *= 2,
            }
        }
    }

    /// Halves the range between bound and peak.
    fn try_limits(&mut self, lives: &Lives, reverse: &Lives, budget: &mut Budget<'_>) {
        let mut low = self.bound;
        let mut limit = low;
        while low < self.peak && !self.is_over(budget) {
            match Self::part(budget, 3, |budget| reach(lives, reverse, limit, budget)) {
                Reach::Order(order) => {
                    self.peak = peak(lives, &order).0;
                    self.order = order;
                }
                Reach::Blocked(refutation) => {
                    // Nothing is below `least`, which no operator exceeds.
                    self.bound = refutation.least.min(self.peak);
                    low = self.bound;
                    self.refutation = Some(refutation);
                }
                Reach::Unknown => low = limit + 1,
            }
            limit = low + (self.peak.saturating_sub(low)) / 2;
            // The highest limit that may still prove that nothing is better.
            limit = limit.min(self.peak.saturating_sub(1));
        }
    }
}
