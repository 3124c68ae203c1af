//! When a plan is to be ready.

use core::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use usm_pool::{Options, Strategy};

/// How long [`Strategy::Auto`](usm_pool::Strategy::Auto) searches for who says nothing: a person
/// waits, and almost all of what a search finds it finds early.
pub const AUTO_LIMIT: Duration = Duration::from_secs(10);

/// What ended a plan before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stopped {
    /// Its time was over.
    Time,
    /// Somebody pressed Ctrl-C.
    Interrupt,
}

impl Stopped {
    /// The name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Interrupt => "interrupt",
        }
    }
}

/// Ends the making of a plan: so early before the user's time, counted from the start on, that the
/// plan can still be checked and written; or after [`AUTO_LIMIT`] of planning.
pub struct Clock<'i> {
    start: Instant,
    limit: Option<Duration>,
    automatic: Option<Duration>,
    interrupted: &'i (dyn Fn() -> bool + Sync),
    /// When somebody asked first: the input was read then.
    asked: OnceLock<Instant>,
    stopped: OnceLock<Stopped>,
}

impl<'i> Clock<'i> {
    /// A clock that runs since `start`. Without a limit it ends [`Strategy::Auto`] alone.
    #[must_use]
    pub fn new(start: Instant, limit: Option<Duration>, strategy: Strategy) -> Self {
        let automatic = (limit.is_none() && strategy == Strategy::Auto).then_some(AUTO_LIMIT);
        let (asked, stopped) = (OnceLock::new(), OnceLock::new());
        Self { start, limit, automatic, interrupted: &|| false, asked, stopped }
    }

    /// Ends the plan when `interrupted` says so, too.
    #[must_use]
    pub fn or_when(self, interrupted: &'i (dyn Fn() -> bool + Sync)) -> Self {
        Self { interrupted, ..self }
    }

    /// Whether the plan is to be ended now. The planner's first question comes when the input is
    /// read: half as long as that took, checking and writing will take.
    #[must_use]
    pub fn must_stop(&self) -> bool {
        let found = if (self.interrupted)() {
            Some(Stopped::Interrupt)
        } else {
            let asked = *self.asked.get_or_init(Instant::now);
            let late = |limit| self.start.elapsed() + asked.duration_since(self.start) / 2 >= limit;
            let over =
                self.limit.is_some_and(late) || self.automatic.is_some_and(|limit| asked.elapsed() >= limit);
            over.then_some(Stopped::Time)
        };
        if let Some(found) = found {
            let _ = self.stopped.set(found);
        }
        found.is_some()
    }

    /// What has ended the plan.
    #[must_use]
    pub fn stopped(&self) -> Option<Stopped> {
        self.stopped.get().copied()
    }

    /// Has the planner keep to the limit: it decides, and no count of nodes.
    pub fn rule(&self, options: &mut Options<'_>) {
        if self.limit.is_some() {
            options.nodes = u64::MAX;
            options.stop_early = true;
        }
    }
}

impl fmt::Debug for Clock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { start, limit, automatic, stopped, .. } = self;
        f.debug_struct("Clock")
            .field("start", start)
            .field("limit", limit)
            .field("automatic", automatic)
            .field("stopped", stopped)
            .finish_non_exhaustive()
    }
}
