//! Runs a job: reads, plans and checks.

use std::path::Path;
use std::time::Instant;

use usm_pool::planner::Progress;
use usm_pool::planner::pareto::pareto;
use usm_pool::planner::pool_rules;
use usm_pool::planner::recompute::Curve;
use usm_pool::report::compare;
use usm_pool::{Options, Plan, Problem, Strategy};

use super::fields::Refuser;
use super::source::{Form, RangeConstraints};
use super::{EveryValue, Job, Request, refuse};
use crate::clock::{Clock, StopReason};
use crate::error::{Error, Result};
use crate::graph_json::RangePlan;
use crate::model::Input;
use crate::outcome::{self, Outcome};
use crate::proof;

/// Maximum number of plans along the curve of peak against edges: more are unreadable.
const CURVE_POINTS: usize = 24;

/// A step of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The input is read.
    Reading,
    /// A plan is searched.
    Planning,
    /// A plan for every value is searched.
    PlanningEveryValue,
    /// Plans along the curve of peak against edges are searched.
    Curve,
    /// Every strategy plans.
    Comparing,
    /// The proof of the bound is written.
    Proving,
    /// Operators to run again are searched.
    Recomputing,
}

/// The caller of a job while it runs.
pub trait Watch: Sync {
    /// The time from which a limit counts.
    fn start(&self) -> Instant;

    /// Whether the search must end with what it has.
    fn is_interrupted(&self) -> bool {
        false
    }

    /// A step begins.
    fn stage(&self, _stage: Stage) {}

    /// Whether [`Self::progress`] is wanted.
    fn wants_progress(&self) -> bool {
        false
    }

    /// The search has a better plan or bound.
    fn progress(&self, _progress: Progress) {}

    /// A remark about the input: unused columns and keys, lifetimes that differ.
    fn remark(&self, _remark: &str) {}

    /// Makes the texts that the caller will write of such a plan, on a part of a table: the search
    /// ends so much earlier.
    fn rehearse(&self, _problem: &Problem, _plan: &Plan) {}
}

/// A caller that waits for the end: the limit counts from this time.
impl Watch for Instant {
    fn start(&self) -> Instant {
        *self
    }
}

/// What a job leads to.
#[derive(Debug)]
#[allow(clippy::exhaustive_enums, reason = "a caller handles all")]
pub enum Answer {
    /// A plan, checked.
    One(Box<Outcome>),
    /// A plan for every value of the dimensions.
    Every(Box<RangePlan>),
    /// A plan, and a curve of peak against time whose points are checked.
    Recompute(Box<Outcome>, Box<Curve>, Option<StopReason>),
}

impl Job {
    /// Reads, plans and checks, with everything that the request wants beside the plan.
    ///
    /// # Errors
    /// An input that cannot be read or planned, and fields that have no meaning for its content.
    pub fn run(self, watch: &dyn Watch) -> Result<Answer> {
        self.run_with(watch, &|request, outcome, watch, file| request.add_extras(outcome, watch, file))
    }

    /// As [`Self::run`] for a request that wants nothing beside the plan; a program that calls this
    /// alone is smaller.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_plain(self, watch: &dyn Watch) -> Result<Answer> {
        self.run_with(watch, &|_, outcome, _, _| outcome.check().map(|()| Answer::One(outcome)))
    }

    fn run_with(self, watch: &dyn Watch, extras: &Extras) -> Result<Answer> {
        if self.is_for_every_value()? {
            return self.run_every_value(watch).map(|plan| Answer::Every(Box::new(plan)));
        }
        let Self { request, source } = self;
        let file = source.0.name();
        watch.stage(Stage::Reading);
        let remark = |remark: &str| watch.remark(remark);
        let is_interrupted = || watch.is_interrupted();
        let input = source.0.read(&request.hints(&remark, &is_interrupted))?;
        refuse::content(&request, &input).map_err(|refusal| Error::from(refusal).in_file(&file))?;
        watch.stage(Stage::Planning);
        let outcome = request.plan(input, watch, &file)?;
        extras(&request, Box::new(outcome), watch, &file)
    }

    /// Replays a proof for the source, without the code of the search.
    ///
    /// # Errors
    /// The first line of the proof that proves nothing, an input that cannot be read, and fields of
    /// a search.
    pub fn check_proof(self, text: &str, proof: &Path, watch: &dyn Watch) -> Result<proof::ProvenBound> {
        let Self { request, source } = self;
        Refuser::ProofCheck.refuse(&request)?;
        let file = source.0.name();
        watch.stage(Stage::Reading);
        let remark = |remark: &str| watch.remark(remark);
        let is_interrupted = || watch.is_interrupted();
        let input = source.0.read(&request.hints(&remark, &is_interrupted))?;
        refuse::content(&request, &input).map_err(|refusal| Error::from(refusal).in_file(&file))?;
        watch.stage(Stage::Proving);
        proof::check(input, request.queue, request.reorder, &file, text, proof)
    }

    fn is_for_every_value(&self) -> Result<bool> {
        let Self { request, source } = self;
        if request.is_for_ranges() {
            return Ok(true);
        }
        if request.every_value == EveryValue::OfRanges || !request.dims.is_empty() {
            return Ok(false);
        }
        let plans = match source.0.form() {
            Form::Text => source.0.has_plans().map_err(|error| error.in_file(&source.0.name()))?,
            _ => None,
        };
        let is_for_every_value = match request.every_value {
            EveryValue::OfPlans => plans == Some(true),
            _ => plans.is_some(),
        };
        if is_for_every_value {
            refuse::every_value(request)?;
        }
        Ok(is_for_every_value)
    }

    fn run_every_value(self, watch: &dyn Watch) -> Result<RangePlan> {
        let Self { request, source } = self;
        watch.stage(Stage::PlanningEveryValue);
        let is_interrupted = || watch.is_interrupted();
        let clock = Clock::new(watch.start(), request.time_limit, request.strategy).or_when(&is_interrupted);
        let stop = || clock.must_stop();
        let remark = |remark: &str| watch.remark(remark);
        let constraints = RangeConstraints {
            hints: request.hints(&remark, &is_interrupted),
            ranges: request.ranges(),
            take_plans: request.every_value != EveryValue::Always,
        };
        let plan = source.0.plan_every_value(&constraints, &request.options(&clock, &stop));
        plan.map_err(|error| error.in_file(&source.0.name()))
    }
}

/// Adds what a request wants beside its plan.
type Extras = dyn Fn(&Request, Box<Outcome>, &dyn Watch, &Path) -> Result<Answer>;

impl Request {
    /// The planner's options. The planner calls `stop` regularly; true ends the search.
    fn options<'a>(&self, clock: &Clock<'_>, stop: &'a (dyn Fn() -> bool + Sync)) -> Options<'a> {
        let mut options = Options::default();
        options.strategy = self.strategy;
        options.queue = self.queue;
        options.capacity = self.capacity;
        options.threads = self.threads;
        options.ordering_edges = self.ordering_edges.unwrap_or(0);
        options.keep_critical_path = self.keep_critical_path;
        options.stop = Some(stop);
        clock.rule(&mut options);
        options.order_sets = self.order_sets();
        options
    }

    /// The number of parts of the work, which have equal shares of the time limit.
    fn parts(&self) -> u32 {
        let more = [self.curve, self.recompute.is_some(), self.compare, self.proof];
        1 + more.into_iter().map(u32::from).sum::<u32>()
    }

    fn clock<'i>(
        &self,
        watch: &dyn Watch,
        part: u32,
        is_interrupted: &'i (dyn Fn() -> bool + Sync),
    ) -> Clock<'i> {
        let limit = self.time_limit.map(|limit| limit / self.parts() * part);
        Clock::new(watch.start(), limit, self.strategy).or_when(is_interrupted)
    }

    fn plan(&self, input: Input, watch: &dyn Watch, file: &Path) -> Result<Outcome> {
        let is_interrupted = || watch.is_interrupted();
        let clock = self.clock(watch, 1, &is_interrupted);
        clock.reserve(&input, &|problem, plan| watch.rehearse(problem, plan));
        let stop = || clock.must_stop();
        let better = |progress| watch.progress(progress);
        let mut options = self.options(&clock, &stop);
        if watch.wants_progress() {
            options.progress = Some(&better);
        }
        let mut outcome = outcome::make(input, &options, &self.limits(), self.reorder, file)?;
        outcome.stop_reason = clock.stopped();
        if let (Some(graph), true) = (&outcome.graph, self.has_pool_rules(&outcome)) {
            let pool_plan = self.within(watch, 1, |options| pool_rules::plan_graph(graph, options));
            let in_file = |error| Error::bad(error).in_file(file);
            (outcome.problem, outcome.plan) = pool_plan.map_err(in_file)?;
        }
        Ok(outcome)
    }

    /// Checks the plan, and adds the curves, the other strategies and the proof.
    fn add_extras(&self, mut outcome: Box<Outcome>, watch: &dyn Watch, file: &Path) -> Result<Answer> {
        let is_interrupted = || watch.is_interrupted();
        let in_file = |error| Error::bad(error).in_file(file);
        outcome.check()?;
        if let (Some(graph), true) = (&outcome.graph, self.curve) {
            watch.stage(Stage::Curve);
            let points = self.within(watch, 2, |options| pareto(graph, options, CURVE_POINTS));
            outcome.curve = Some(points.map_err(in_file)?);
        }
        if self.compare {
            watch.stage(Stage::Comparing);
            let part = 2 + u32::from(self.curve);
            let comparison = self.within(watch, part, |options| compare(&outcome.problem, options));
            outcome.comparison = Some(comparison.map_err(in_file)?);
        }
        if self.proof {
            watch.stage(Stage::Proving);
            outcome.proof = Some(self.within(watch, self.parts(), |options| proof::of(&outcome, options))?);
        }
        let Some(recompute) = self.recompute else { return Ok(Answer::One(outcome)) };
        watch.stage(Stage::Recomputing);
        let job = recompute.check(&outcome).map_err(|refusal| match refusal.of_input {
            true => Error::from(refusal).in_file(file),
            false => Error::from(refusal),
        })?;
        let clock = Clock::new(watch.start(), self.time_limit, Strategy::Auto).or_when(&is_interrupted);
        let stop = || clock.must_stop();
        let mut options = Options::default();
        (options.strategy, options.threads) = (self.strategy, self.threads);
        options.stop = Some(&stop);
        let curve = job.run(&options, &stop)?;
        Ok(Answer::Recompute(outcome, Box::new(curve), clock.stopped()))
    }

    /// Runs a search with the clock of a part of the work.
    fn within<T>(&self, watch: &dyn Watch, part: u32, run: impl FnOnce(&Options<'_>) -> T) -> T {
        let is_interrupted = || watch.is_interrupted();
        let clock = self.clock(watch, part, &is_interrupted);
        let stop = || clock.must_stop();
        run(&self.options(&clock, &stop))
    }

    /// Whether OpenVINO's rules for padded and dynamic tensors can change a plan of whole buffers.
    fn has_pool_rules(&self, outcome: &Outcome) -> bool {
        let Some(graph) = &outcome.graph else { return false };
        let special = graph.tensors().iter().any(|tensor| tensor.padding > 0 || tensor.dynamic);
        let has_limits = self.device_memory.is_some() || self.max_alloc.is_some();
        outcome.plan.strategy == Strategy::WholeBuffer
            && special
            && outcome.plan.memory_plan.is_none()
            && !has_limits
            && self.strategy == Strategy::WholeBuffer
    }
}
