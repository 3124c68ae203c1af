//! The command while a job runs: Ctrl-C, and what a terminal shows.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use usm_plan::Watch;
use usm_plan::request::Stage;
use usm_pool::planner::Progress as SearchProgress;
use usm_pool::{Plan, Problem};

use super::{Arguments, plan_files};
use crate::input;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::Progress;

pub(super) struct Session<'a> {
    arguments: &'a Arguments,
    start: Instant,
    state: Mutex<ProgressState>,
}

#[derive(Default)]
struct ProgressState {
    display: Option<Progress>,
    /// Set when the search begins: until then Ctrl-C ends the command.
    interrupt: Option<Interrupt>,
}

impl<'a> Session<'a> {
    pub(super) fn new(arguments: &'a Arguments, start: Instant) -> Self {
        Self { arguments, start, state: Mutex::default() }
    }

    /// Clears the terminal, and lets Ctrl-C end the command again.
    pub(super) fn end(&self) {
        *self.shown() = ProgressState::default();
    }

    fn shown(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for Session<'_> {
    fn start(&self) -> Instant {
        self.start
    }

    fn is_interrupted(&self) -> bool {
        interrupt::is_pressed()
    }

    fn stage(&self, stage: Stage) {
        let message = match stage {
            Stage::Reading => format!("reading {}", input::called(&self.arguments.input).display()),
            Stage::PlanningEveryValue => "planning for every value".to_owned(),
            Stage::Curve => "planning along the curve".to_owned(),
            Stage::Comparing => "comparing the strategies".to_owned(),
            Stage::Proving if self.arguments.check.is_some() => "replaying the proof".to_owned(),
            Stage::Proving => "writing the proof".to_owned(),
            Stage::Recomputing => "searching for operators to run again".to_owned(),
            _ => "planning".to_owned(),
        };
        let mut state = self.shown();
        if stage == Stage::Planning && state.interrupt.is_none() {
            state.interrupt = Some(Interrupt::watch());
        }
        // The old display is erased first.
        state.display = None;
        state.display = Some(Progress::start(message));
    }

    fn wants_progress(&self) -> bool {
        true
    }

    fn progress(&self, progress: SearchProgress) {
        if let Some(display) = &self.shown().display {
            display.show_gap(progress.peak, progress.bound, progress.nodes);
        }
    }

    fn remark(&self, remark: &str) {
        output::warning(remark);
    }

    fn rehearse(&self, problem: &Problem, plan: &Plan) {
        let _ = plan_files(problem, plan, None, None, self.arguments, |_, path, text| {
            if path.is_some() {
                text();
            }
            Ok(())
        });
    }
}
