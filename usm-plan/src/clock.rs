//! The deadline of a plan.

use core::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use usm_pool::{Options, Strategy};

/// Search time of [`Strategy::Auto`](usm_pool::Strategy::Auto) without a user's limit: a person
/// waits, and a search finds almost everything early.
pub const AUTO_LIMIT: Duration = Duration::from_secs(10);

/// The reason why a plan was stopped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stopped {
    /// Its time was over.
    Time,
    /// The user pressed Ctrl-C.
    Interrupt,
}

impl Stopped {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Interrupt => "interrupt",
        }
    }
}

/// Stops the planning. With a user's limit, counted from the start, it stops early enough to check
/// and write the plan. Otherwise it stops after [`AUTO_LIMIT`] of planning.
pub struct Clock<'i> {
    start: Instant,
    limit: Option<Duration>,
    automatic: Option<Duration>,
    interrupted: &'i (dyn Fn() -> bool + Sync),
    /// The time of the planner's first question: reading the input ended there.
    asked: OnceLock<Instant>,
    stopped: OnceLock<Stopped>,
}

impl<'i> Clock<'i> {
    /// A clock that runs since `start`. Without a limit it stops [`Strategy::Auto`] only.
    #[must_use]
    pub fn new(start: Instant, limit: Option<Duration>, strategy: Strategy) -> Self {
        let automatic = (limit.is_none() && strategy == Strategy::Auto).then_some(AUTO_LIMIT);
        let (asked, stopped) = (OnceLock::new(), OnceLock::new());
        Self { start, limit, automatic, interrupted: &|| false, asked, stopped }
    }

    /// Also stops when `interrupted` returns true.
    #[must_use]
    pub fn or_when(self, interrupted: &'i (dyn Fn() -> bool + Sync)) -> Self {
        Self { interrupted, ..self }
    }

    /// Whether the planning must stop now. The planner asks first when the input is read; checking
    /// and writing take about half as long as reading did.
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

    /// The reason of the stop, if it was stopped.
    #[must_use]
    pub fn stopped(&self) -> Option<Stopped> {
        self.stopped.get().copied()
    }

    /// Makes the limit decide instead of a count of nodes.
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
