//! Lowers the peak by decisions: runs the steps of a schedule, one after the other or on several
//! threads.

use alloc::vec::Vec;

use super::Progress;
use super::decide::{Answer, Search};
use super::eject::{Ejection, Relation};
use super::log::NoLog;
use super::model::Model;
use super::order::Order;
use super::schedule::{End, Schedule, Step, StepResult};

/// The request of a search.
pub(super) struct Goal<'a> {
    /// Maximum number of nodes.
    pub(super) nodes: u64,
    /// A placement at or below this is good enough.
    pub(super) capacity: Option<u64>,
    /// Ends the search when it returns `true`.
    pub(super) stop: &'a (dyn Fn() -> bool + Sync),
    /// Receives every better placement and bound.
    pub(super) progress: &'a dyn Fn(Progress),
    /// Threads that try at the same time.
    #[cfg_attr(not(feature = "threads"), allow(dead_code, reason = "one thread searches"))]
    pub(super) threads: usize,
}

/// The result of a search.
#[derive(Debug)]
pub(super) struct SearchResult {
    /// Offset of each item, if a placement below the peak to beat was found.
    pub(super) offsets: Option<Vec<u64>>,
    /// Nodes visited.
    pub(super) nodes: u64,
    /// No placement ends at or below this: everything was tried. The bytes up to the next multiple
    /// of the unit are included.
    pub(super) infeasible: Option<u64>,
}

/// Lowers the peak of a plan, with `bound` a proven lower bound. `best` has the offset of each
/// item.
pub(super) fn minimise(model: &Model, bound: u64, best: Vec<u64>, goal: &Goal<'_>) -> SearchResult {
    let mut run = Run { schedule: Schedule::new(model, bound, &best, goal), best, is_better: false };
    #[cfg(feature = "threads")]
    if goal.threads > 1 {
        super::parallel::minimise(model, &mut run, goal);
        return run.into_result();
    }
    let (mut search, mut ejection) = (Search::new(model), Ejection::new(model));
    while !(goal.stop)() {
        let Some(step) = run.schedule.next() else { break };
        let result = match step {
            Step::Repair(_) => repair_once(&mut ejection, step, &run.best, &mut || (goal.stop)()),
            Step::Decide(_) => decide_once(&mut search, model, step, &mut || (goal.stop)()),
        };
        run.take(step, result, goal);
    }
    run.into_result()
}

/// A schedule with the best placement so far.
#[derive(Debug)]
pub(super) struct Run<'m> {
    pub(super) schedule: Schedule<'m>,
    pub(super) best: Vec<u64>,
    is_better: bool,
}

impl Run<'_> {
    /// Continues with the result of a step.
    pub(super) fn take(&mut self, step: Step, result: StepResult, goal: &Goal<'_>) {
        let news = self.schedule.take(step, &result);
        if let End::Found(offsets) = result.end {
            self.best = offsets;
            self.is_better = true;
        }
        if news {
            (goal.progress)(self.schedule.progress());
        }
    }

    fn into_result(self) -> SearchResult {
        let Self { schedule, best, is_better } = self;
        SearchResult {
            offsets: is_better.then_some(best),
            nodes: schedule.nodes_used(),
            infeasible: schedule.infeasible,
        }
    }
}

/// Repairs `best` within the nodes of a step.
pub(super) fn repair_once(
    ejection: &mut Ejection<'_, Model>,
    step: Step,
    best: &[u64],
    stop: &mut dyn FnMut() -> bool,
) -> StepResult {
    let Step::Repair(step) = step else { return StepResult { used: 0, end: End::Failed } };
    let (mut left, mut best) = (step.nodes, best.to_vec());
    let better = ejection.improve(&mut best, step.peak, (step.least, step.unit), &mut left, stop);
    StepResult { used: step.nodes - left, end: better.map_or(End::Failed, |_| End::Found(best)) }
}

/// Decides within the nodes of a step.
pub(super) fn decide_once(
    search: &mut Search<'_>,
    model: &Model,
    step: Step,
    stop: &mut dyn FnMut() -> bool,
) -> StepResult {
    let Step::Decide(step) = step else { return StepResult { used: 0, end: End::Failed } };
    let order = Order::new(model, step.rule, step.noise, step.seed);
    let mut left = step.nodes;
    let end = match search.decide(step.aim, &order, &mut left, stop, &mut NoLog) {
        Answer::Found => End::Found(search.state.offset.clone()),
        Answer::Infeasible => End::Infeasible,
        Answer::Limit => End::Failed,
    };
    StepResult { used: step.nodes - left, end }
}

/// Lowers the peak of a plan by repair alone: for instances too large for the tables of the
/// exhaustive search.
pub(super) fn repair<R: Relation>(
    relation: &R,
    bound: u64,
    mut best: Vec<u64>,
    goal: &Goal<'_>,
) -> SearchResult {
    let Goal { nodes: budget, capacity, stop, progress, .. } = *goal;
    let mut nodes = budget;
    let mut result = SearchResult { offsets: None, nodes: 0, infeasible: None };
    let mut peak = (0..best.len()).map(|i| best[i] + relation.shape(i).0).max().unwrap_or(0);
    let least = bound.max(capacity.unwrap_or(0));
    let mut ejection = Ejection::new(relation);
    while nodes > 0 && peak > least && !stop() {
        if let Some(better) = ejection.improve(&mut best, peak, (least, 1), &mut nodes, &mut || stop()) {
            peak = better;
            result.offsets = Some(best.clone());
            progress(Progress { peak, bound, nodes: budget - nodes });
        }
    }
    result.nodes = budget - nodes;
    result
}
